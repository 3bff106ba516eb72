"""A simulation that does not end fails, and says how, from which seed and where its log is."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from darwinn_rtl import bounded, build, toolchain
from darwinn_rtl.build_folders import BUILD_VARIABLE
from harness_runs import design, run


def failure(test: str, work: Path) -> str:
    """Why a test fails that does not end."""
    with pytest.raises(build.SimulationFailed) as failed:
        run(design(DataBytes=8), "endless_tests", test, work, seed=5)
    return str(failed.value)


def test_a_test_takes_so_many_cycles_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DARWINN_RTL_CYCLES", "2000")
    why = failure("Waits", tmp_path)
    assert "WaitTimeout: the test did not end within the 2000 cycles of DARWINN_RTL_CYCLES" in why
    assert re.search(r"cycle \d+: it begins to wait", why)


def test_a_simulation_takes_so_much_processor_time_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(bounded.SECONDS_VARIABLE, "2")
    why = failure("loops", tmp_path)
    assert "loops was ended (it did not end within 2 s of processor time" in why
    assert f"{bounded.SECONDS_VARIABLE} sets the seconds) (seed 5); log {tmp_path}" in why


def test_a_simulation_that_does_nothing_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "run", partial(bounded.run, clock_seconds=3))
    assert "sleeps was ended (it did not end within 3 s;" in failure("sleeps", tmp_path)


def test_what_a_program_has_started_ends_with_it(tmp_path: Path) -> None:
    lives = tmp_path / "lives"
    inner = f"while sleep 0.1; do touch {lives}; done"
    with pytest.raises(bounded.Unended):
        bounded.run(["sh", "-c", f"sh -c '{inner}'; true"], clock_seconds=1)
    assert lives.exists()
    lives.unlink()
    time.sleep(0.5)
    assert not lives.exists()


def test_what_a_program_prints_and_returns_is_known() -> None:
    code = "import sys; print(input()[::-1]); sys.exit(3)"
    done = bounded.run(
        [sys.executable, "-c", code], given="abc\n", stdout=subprocess.PIPE, text=True
    )
    assert (done.returncode, done.stdout) == (3, "cba\n")


def test_a_build_that_does_not_end_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = design(DataBytes=8)
    program = tmp_path / "verilator"
    program.write_text("#!/bin/sh\nwhile :; do :; done\n")
    program.chmod(0o700)
    monkeypatch.setattr(toolchain, "use_wheel_programs", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv(BUILD_VARIABLE, str(tmp_path / "builds"))
    monkeypatch.setenv(bounded.SECONDS_VARIABLE, "1")
    with pytest.raises(build.BuildFailed, match="cannot be built: it did not end within 1 s"):
        build._built.__wrapped__(chosen, None)


def test_every_program_has_a_bound() -> None:
    starts = re.compile(r"subprocess\.(run|Popen|call|check_\w+)\(|os\.system\(|create_subprocess")
    sources = Path(bounded.__file__).parent.rglob("*.py")
    found = {path.name for path in sources if starts.search(path.read_text())}
    assert found == {"bounded.py"}
