"""A lock that is handed to whoever has waited longest."""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType


class Turns:
    """Who may use the chip: its worker between two looks at the host, or the host's requests.

    A plain lock that is given back and taken again at once starves all others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._taken = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False
