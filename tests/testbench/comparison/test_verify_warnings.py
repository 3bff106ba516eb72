"""What a run warns of is said by `verify` as well, in text and JSON."""

from __future__ import annotations

from pathlib import Path

import averaging_program as sample
import pytest
from darwinn_testbench.cli import main
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.report import Verdict


def package(path: Path) -> Path:
    """A program whose output cannot change with the unwritten rows that it sums."""
    program = sample.changed("TensorSum", parameter_read_base=4 * 77, output_scale=0.0)
    path.write_bytes(sample.package(program))
    return path


def test_what_may_follow_from_unwritten_memory_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = package(tmp_path / "averages.package")
    report = verify(file, strict=True, runs=1)
    assert report.verdict is Verdict.RAN, report.message
    (warning,) = report.figures["warnings"]
    assert warning.startswith("inference 0: 64 elements of output 'averages'")
    assert verify(file, runs=1).figures["warnings"] == []
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(file), "--strict", "--runs", "1"])
    assert ended.value.code == 0
    assert "warning: inference 0: 64 elements of output" in capsys.readouterr().out
