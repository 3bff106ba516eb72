"""`darwinn warm-up`: kernels are there afterwards, and what hinders it is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from darwinn_testbench.errors import InputError
from darwinn_testbench.kernels import Part, parts, warm, warm_up
from darwinn_testbench.kernels.build import Told
from darwinn_testbench.report import Report, Row, Verdict

PARTS = ("function", "time")


def command(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "darwinn_testbench", *words],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """The report of a process that comes after one that has compiled them, if that was needed."""
    for _ in range(2):
        report: dict[str, Any] = json.loads(command("warm-up", *PARTS, "--json").stdout)
        if not any(row["compiled"] for row in report["rows"]):
            break
    return report


def test_what_was_compiled_is_found_the_next_time(found: dict[str, Any]) -> None:
    assert found["verdict"] == "pass"
    assert found["message"].startswith("nothing had to be compiled")
    assert [row["name"] for row in found["rows"]] == list(PARTS)
    for row in found["rows"]:
        assert row["compiled"] == 0
        assert row["found"] > 0
        assert row["bytes"] > 1_000_000
        assert row["processor_seconds"] > 0
    assert Path(found["file"]).is_dir()


def test_each_part_has_its_own(found: dict[str, Any]) -> None:
    """What the functional model needs is not enough for times, and the other way round."""
    assert len({row["bytes"] for row in found["rows"]}) == len(PARTS)


def test_wrong_results_are_not_taken_for_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Report[Row](command="verify", file="model", decided=Verdict.MISMATCH, message="wrong")
    monkeypatch.setattr(parts, "_EXERCISES", {Part.TIME: lambda folder: [wrong]})
    with pytest.raises(AssertionError, match="time: model: wrong"):
        parts.exercise(Part.TIME)


@pytest.mark.parametrize("refused", [(), (Path("kernel"),)])
def test_a_cache_that_cannot_be_written_is_an_error(
    monkeypatch: pytest.MonkeyPatch, refused: tuple[Path, ...]
) -> None:
    """Nothing that is stored is none: what holds addresses of a process never is, as with
    NUMBA_OPT=0.
    """
    done = [warm.Exercised(Part.TIME, (), refused, (), 1.0)]
    monkeypatch.setattr(warm, "exercised", lambda *_, **__: done)
    if not refused:
        assert warm_up([Part.TIME]).verdict is Verdict.PASS
        return
    with pytest.raises(InputError, match=r"stored in .*: let NUMBA_CACHE_DIR or"):
        warm_up([Part.TIME])


def test_a_build_says_every_while_how_far_it_is() -> None:
    now = [0.0]
    said: list[str] = []
    told = Told(said.append, lambda: now[0])
    for second, begun in enumerate((1, 5, None, 9)):
        now[0] = 10.0 * second
        told(begun)
    now[0] = 31.0
    told(10)
    assert said == ["darwinn-testbench: 9 kernels so far, 30 s\n"]


def test_an_unknown_part_is_a_usage_error() -> None:
    done = command("warm-up", "everything")
    assert done.returncode == 2
    assert "everything" in done.stderr
