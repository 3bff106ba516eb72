"""A chip of four tiles in RTL: bytes and cycles of the models that have the same description."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_runs import require_toolchain
from other_chip import report

SAMPLED = ("--no-hazards", "--no-proof")


@pytest.mark.nightly
@pytest.mark.parametrize("network", ["dense", "convolution"])
def test_samples_run_on_four_tiles(tmp_path: Path, network: str) -> None:
    """The RTL has a grid of 2 x 2 on a torus, and the memories of the description."""
    require_toolchain()
    report("sample", tmp_path)
    compiled, reference = tmp_path / f"{network}_edgetpu.tflite", tmp_path / f"{network}.tflite"
    words = ("--reference", reference, "--engine", "rtl", "--runs", "2", *SAMPLED)
    rows = report("verify", compiled, *words)["rows"]
    assert len(rows) == 2
    for row in rows:
        assert row["rtl"]["elements"] > 0 and row["rtl"]["differing"] == 0
        assert row["chip_arithmetic"]["differing"] == 0
    predicted = report("cycles", compiled)["rows"][0]
    assert predicted["name"] == "executable 0"
    assert [row["rtl_cycles"] for row in rows] == [predicted["cycles"]] * 2
