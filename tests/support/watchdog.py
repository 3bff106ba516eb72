"""A plugin of pytest: no test can run for ever, whatever it waits for.

What a test has started is killed when the test takes too long, so that the test fails and says so.
Where that does not help, the process of the tests ends, and says where each of its threads is;
pytest-xdist names the test and goes on in another process.

A test that loops uses processor time, and a busy machine does not make that longer. A test that
sleeps has a far wider bound, by the clock.
"""

from __future__ import annotations

import faulthandler
import os
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass

import pytest
from darwinn_rtl.bounded import end, started_by
from other_processes import told_of

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Bounds:
    """Seconds for a test: of the processor, with all that the test starts, and of the clock.

    ``look`` is the time between two looks; so long has a test to end after what it started.
    ``cycles`` are those of a simulation, of which a test may have several.
    """

    processor: float
    clock: float
    cycles: int = 1 << 23
    look: float = 30.0


GATE = Bounds(processor=1800, clock=4 * 3600)
NIGHT = Bounds(processor=12 * 3600, clock=48 * 3600, cycles=1 << 30)


class Watchdog:
    """Looks after the tests of this process, from a thread."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._running: tuple[str, float, float] | None = None
        # Not captured yet.
        self._said = os.fdopen(os.dup(2), "w")
        threading.Thread(target=self._watch, daemon=True).start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Note when a test begins, and that it has ended."""
        self._running = item.nodeid, time.monotonic(), _processor_seconds()
        try:
            return (yield)
        finally:
            self._running = None

    def _watch(self) -> None:
        warned: object = None
        while True:
            time.sleep(self._bounds.look)
            running = self._running
            if running is None or not self._is_overdue(*running[1:]):
                continue
            if running is warned:
                faulthandler.dump_traceback(self._said)
                os._exit(3)
            warned = running
            print(f"{running[0]} takes too long: what it started ends", file=self._said, flush=True)
            for child in [*started_by(os.getpid())]:
                end(child)

    def _is_overdue(self, began: float, used: float) -> bool:
        bounds = self._bounds
        by_clock = time.monotonic() - began
        # Most tests end before anything has to be read.
        busy = by_clock * (os.cpu_count() or 1) > bounds.processor
        return by_clock > bounds.clock or (busy and _processor_seconds() - used > bounds.processor)


def _processor_seconds() -> float:
    """What this process and all that it has started have used."""
    used = os.times()
    own = used.user + used.system + used.children_user + used.children_system
    return own + sum(map(_used_by, started_by(os.getpid())))


def _used_by(process: int) -> float:
    """What a process has used, and those that it has waited for."""
    _, _, after_name = told_of(process, "stat").rpartition(b")")
    return sum(map(int, after_name.split()[11:15])) / _TICKS
