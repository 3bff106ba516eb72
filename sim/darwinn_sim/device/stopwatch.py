"""How long a chip has computed: what a client's clock does not count."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType


class Stopwatch:
    """Adds up the time within ``with`` blocks, which do not overlap; any thread may read it.

    Args:
        now: a clock, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._total = 0.0
        self._since: float | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._since = self._now()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            assert self._since is not None
            self._total += self._now() - self._since
            self._since = None

    @property
    def seconds(self) -> float:
        """All of it until now."""
        with self._lock:
            running = 0.0 if self._since is None else self._now() - self._since
            return self._total + running

    def idle_seconds(self) -> float:
        """A clock that stands still while it runs."""
        with self._lock:
            now = self._now()
            running = 0.0 if self._since is None else now - self._since
            return now - self._total - running
