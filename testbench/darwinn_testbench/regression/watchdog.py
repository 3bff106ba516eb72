"""An end for tasks that do not end, in a process that others start anew."""

from __future__ import annotations

import faulthandler
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_AT_ONCE = 1e-3
_STANDARD_ERROR = 2


class Watchdog:
    """Ends this process when something in it takes longer than it may, whatever it does: also in a
    library that lets no other thread go on. Where each thread stands is written to standard error.

    A process has one: several threads may use it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._ends: dict[object, float] = {}

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """What is done within may take so many seconds."""
        mark = object()
        with self._lock:
            self._ends[mark] = time.monotonic() + seconds
            self._arm()
        try:
            yield
        finally:
            with self._lock:
                del self._ends[mark]
                self._arm()

    def _arm(self) -> None:
        """Wait for the first end of all."""
        faulthandler.cancel_dump_traceback_later()
        if self._ends:
            left = max(_AT_ONCE, min(self._ends.values()) - time.monotonic())
            faulthandler.dump_traceback_later(left, exit=True, file=_STANDARD_ERROR)
