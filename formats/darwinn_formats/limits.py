"""What the work on a file may cost: the limits of the calling context, and a clock that holds them.

    with limited(Limits(seconds=10, memory=1 << 30)):
        ...  # whatever is read and run here, in this thread

Work that is bounded by the size of its file needs no clock. What a file merely declares is checked
before it is allocated (:func:`refuse_size`), and what may go on for ever looks at a :class:`Clock`
now and then.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from darwinn_formats.errors import FormatError


@dataclass(frozen=True)
class Limits:
    """``seconds`` of computing without progress that the host sees, and :data:`IN_TOTAL` times as
    many in all; ``memory``: bytes that a file may declare, and that a run may need.
    """

    seconds: float = 60.0
    memory: int = 4 << 30


IN_TOTAL = 30
"""A run that the host sees going on may take so many times ``seconds``."""

_LOOK_SECONDS = 0.02
"""Between two looks at what is counted: asking more often costs next to nothing."""

_PAGE_COUNTS = "/proc/self/statm"
_PAGE_COUNTS_BYTES = 256
_RESIDENT = 1

_current: ContextVar[Limits] = ContextVar("limits", default=Limits())  # noqa: B039 (it is frozen)


def limits() -> Limits:
    """The limits that hold here."""
    return _current.get()


@contextmanager
def limited(wanted: Limits) -> Iterator[None]:
    """Within, ``wanted`` hold, in this thread."""
    token = _current.set(wanted)
    try:
        yield
    finally:
        _current.reset(token)


def refuse_size(size: int, field: str) -> None:
    """Refuse what a file declares before it is allocated; ``size`` in bytes.

    Raises:
        FormatError: it is more than the limit, naming ``field`` and the option that raises it.
    """
    allowed = limits().memory
    if size > allowed:
        raise FormatError(field, f"{size} bytes are more than the limit of {allowed} ({MEMORY})")


SECONDS, MEMORY = "--max-seconds", "--max-memory"
"""The options that set the limits."""


class Clock:
    """Says when work has taken too long, or too much memory.

    It counts the seconds that this thread computes, so that a busy machine or a suspended process
    fails nothing. Memory is what the process has in use more than when the clock was made (Linux).
    """

    def __init__(self, allowed: Limits | None = None) -> None:
        self.allowed = allowed or limits()
        self._resident = _resident_bytes()
        self._passed = ""
        self.restart()

    def restart(self) -> None:
        """Other work of the same file begins. A limit that has been passed stays so: many calls
        without end should not take as many times as long.
        """
        self._begin = self._seen = time.thread_time()
        self._looked = time.perf_counter()

    def seen(self) -> None:
        """The host has seen something: the seconds without progress begin again."""
        self._seen = time.thread_time()

    def passed(self) -> str:
        """Which limit has been passed, and how to raise it; empty if none has."""
        self._passed = self._passed or self._look()
        return self._passed

    def _look(self) -> str:
        if (wall := time.perf_counter()) - self._looked < _LOOK_SECONDS:
            return ""
        self._looked = wall
        now, allowed = time.thread_time(), self.allowed.seconds
        if now - self._seen > allowed:
            return f"{allowed:g} s ({SECONDS})"
        if now - self._begin > IN_TOTAL * allowed:
            return f"{IN_TOTAL * allowed:g} s, {IN_TOTAL} times {SECONDS}"
        grown = _resident_bytes() - self._resident
        if grown > self.allowed.memory:
            return f"{grown} bytes of memory, of {self.allowed.memory} allowed ({MEMORY})"
        return ""


def _resident_bytes() -> int:
    """Memory that the process has in use; 0 where the system does not say."""
    try:
        # Each inference asks: file objects would take twice as long.
        file = os.open(_PAGE_COUNTS, os.O_RDONLY)
        try:
            return int(os.read(file, _PAGE_COUNTS_BYTES).split()[_RESIDENT]) * mmap.PAGESIZE
        finally:
            os.close(file)
    except OSError:
        return 0
