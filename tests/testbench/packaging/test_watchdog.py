"""A test of ours that would run for ever ends, and its process with it where it must."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_CONFTEST = """
import watchdog
def pytest_configure(config):
    bounds = watchdog.Bounds(processor=1, clock=CLOCK, look=LOOK)
    config.pluginmanager.register(watchdog.Watchdog(bounds))
"""


def outcome(folder: Path, body: str, *, clock: float = 2, look: float = 3) -> tuple[int, str]:
    """How pytest ends that runs a test of such a body, and one behind it."""
    text = _CONFTEST.replace("CLOCK", str(clock)).replace("LOOK", str(look))
    (folder / "conftest.py").write_text(text)
    code = f"import subprocess, sys\ndef test_hangs():\n    {body}\ndef test_behind(): pass\n"
    (folder / "test_it.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, folder],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("program", ["while True: pass", "import time; time.sleep(1000)"])
def test_a_program_that_hangs_fails_its_test(program: str, tmp_path: Path) -> None:
    code, said = outcome(
        tmp_path, f'subprocess.run([sys.executable, "-c", {program!r}], check=True)'
    )
    assert (code, "1 failed, 1 passed" in said) == (1, True), said
    assert "test_hangs takes too long" in said
    assert "died with <Signals.SIGKILL: 9>" in said


def test_a_test_that_hangs_says_where_and_ends_its_process(tmp_path: Path) -> None:
    code, said = outcome(tmp_path, "while True: pass")
    assert code == 3, said
    assert 'test_it.py", line 3 in test_hangs' in said


def test_a_test_within_its_bounds_goes_on(tmp_path: Path) -> None:
    code, said = outcome(tmp_path, "import time; time.sleep(1)", clock=60, look=0.2)
    assert (code, "2 passed" in said, "too long" in said) == (0, True, False), said
