"""The thread that computes while the host comes and goes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

_LEAST_SECONDS = 1e-3
"""Between two looks for what has become due: it may be the host who is late."""


class Function(Protocol):
    """A device at the end of a cable or on a bus."""

    wake: Callable[[], None]
    """It calls this when there may be work."""
    patience: Callable[[], float | None]
    """Seconds after which there is work by itself; None: not before it calls ``wake``."""

    def work(self) -> bool:
        """Let the chip go on for a moment; False if there is nothing that it can do now."""


class Worker:
    """Lets a function's chip compute whenever there is something to do.

    A context manager: the thread ends with it.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self._condition = threading.Condition()
        self._wanted = self._stopping = False
        self._thread = threading.Thread(target=self._run, name="darwinn-chip", daemon=True)
        function.wake = self._wake

    def __enter__(self) -> Worker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._condition:
            self._stopping = True
            self._condition.notify_all()
        self._thread.join()

    def _wake(self) -> None:
        with self._condition:
            self._wanted = True
            self._condition.notify_all()

    def _run(self) -> None:
        while True:
            with self._condition:
                seconds = self.function.patience()
                if seconds is not None:
                    seconds = max(seconds, _LEAST_SECONDS)
                self._condition.wait_for(lambda: self._wanted or self._stopping, seconds)
                if self._stopping:
                    return
                self._wanted = False
            while self.function.work() and not self._stopping:
                pass
