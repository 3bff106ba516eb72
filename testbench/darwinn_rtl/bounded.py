"""Other programs (simulations, compilers, yosys), none of which can run for ever.

A process may use so many seconds of processor time: a program that loops uses it up, and a busy
machine does not make it longer. A program that waits for something that never comes uses none, so
it is ended after a multiple of that time by the clock.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

CYCLES_VARIABLE = "DARWINN_RTL_CYCLES"
"""Environment variable: a test that takes more cycles than these fails (``bench``)."""
SECONDS_VARIABLE = "DARWINN_RTL_SECONDS"
"""Environment variable: the seconds of processor time that a process may use."""

_SECONDS = 3600
_CLOCK_FACTOR = 8


class Unended(Exception):
    """A program did not end within its time, and was ended; the text says which time."""


def run(
    command: Sequence[str | Path],
    *,
    seconds: int | None = None,
    clock_seconds: float | None = None,
    given: str | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """As ``subprocess.run``, and what does not end is ended with all that it has started.

    ``seconds`` of processor time (without: those of the environment variable) are for each process;
    ``clock_seconds`` for all of them together. ``given`` is what the program reads.

    Raises:
        Unended: the program took longer.
    """
    most = _seconds() if seconds is None else seconds
    by_clock = _CLOCK_FACTOR * most if clock_seconds is None else clock_seconds
    gives = subprocess.DEVNULL if given is None else subprocess.PIPE
    with subprocess.Popen(list(map(str, command)), stdin=gives, **options) as process:
        try:
            _limit(process.pid, most)
            output, errors = process.communicate(given, timeout=by_clock)
        except subprocess.TimeoutExpired:
            raise Unended(f"it did not end within {by_clock:g} s") from None
        finally:
            if process.poll() is None:
                end(process.pid)
    if process.returncode == -signal.SIGXCPU:
        raise Unended(f"it did not end within {most} s of processor time")
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _seconds() -> int:
    return int(os.environ.get(SECONDS_VARIABLE, _SECONDS))


def _limit(process: int, seconds: int) -> None:
    """Let a process that has just begun, and each that it starts, use so much processor time."""
    with suppress(ProcessLookupError):
        _, most = resource.prlimit(process, resource.RLIMIT_CPU)
        if most == resource.RLIM_INFINITY or most > seconds:
            resource.prlimit(process, resource.RLIMIT_CPU, (seconds, seconds + 1))


def end(process: int) -> None:
    """Kill a process and all that it has started."""
    for each in [process, *started_by(process)]:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def started_by(process: int) -> Iterator[int]:
    """The living processes that ``process`` has started, and those that these have."""
    for child in children_of(process):
        yield child
        yield from started_by(child)


def children_of(process: int) -> set[int]:
    """The processes that any thread of ``process`` has started and not waited for (Linux)."""
    found: set[int] = set()
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # the thread may end meanwhile
            found.update(map(int, listed.read_text().split()))
    return found
