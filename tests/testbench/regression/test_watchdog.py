"""The watchdog ends a process whose work takes too long, and no other."""

from __future__ import annotations

import subprocess
import sys
from textwrap import indent

START = """
import ctypes, threading, time
from darwinn_testbench.regression.watchdog import Watchdog
watchdog = Watchdog()
def main():
"""


def ended(body: str) -> tuple[int, str]:
    """Exit code of a process that does ``body``, and what it says."""
    text = START + indent(body, "    ") + "\nmain()\nprint('the end')\n"
    process = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False
    )
    return process.returncode, process.stdout + process.stderr


def test_what_takes_too_long_ends_the_process() -> None:
    for hang in ("time.sleep(60)", "ctypes.PyDLL(None).sleep(60)", "[0 for _ in iter(int, 1)]"):
        code, said = ended(f"with watchdog.within(0.2):\n    {hang}")
        assert code == 1
        assert "in main" in said and "the end" not in said


def test_what_is_in_time_goes_on() -> None:
    body = "with watchdog.within(0.2):\n    pass\ntime.sleep(0.5)"
    assert ended(body) == (0, "the end\n")
    failing = "try:\n    with watchdog.within(0.2):\n        1 / 0\nexcept ZeroDivisionError:\n"
    assert ended(failing + "    time.sleep(0.5)") == (0, "the end\n")


def test_the_first_end_of_several_counts() -> None:
    """Whichever began first, and also when the one before is over."""
    inner = "with watchdog.within({}):\n    with watchdog.within({}):\n        time.sleep({})"
    assert ended(inner.format(60, 0.2, 60))[0] == 1
    assert ended(inner.format(0.2, 60, 60))[0] == 1
    after = "with watchdog.within(0.3):\n    with watchdog.within(60):\n        pass\n"
    assert ended(after + "    time.sleep(60)")[0] == 1
    assert ended(inner.format(60, 60, 0.2)) == (0, "the end\n")
