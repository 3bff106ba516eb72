"""Telling that kernels are being compiled: it takes a minute in which nothing else happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

_events: Any = event

Watch = Callable[[int | None], None]
"""Called where a kernel begins to be compiled, with the number of kernels begun before it; with
None where none is being compiled any more."""


class _Listener(event.Listener):
    """Counts kernels, of which one begins within another: that which calls it."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._begun = 0
        self._open = 0

    def on_start(self, event: Any) -> None:
        self._watch(self._begun)
        self._begun += 1
        self._open += 1

    def on_end(self, event: Any) -> None:
        self._open -= 1
        if not self._open:
            self._watch(None)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Within, ``watch`` is called while kernels are compiled, not for what is stored."""
    listener = _Listener(watch)
    _events.register("numba:compile", listener)
    try:
        yield
    finally:
        _events.unregister("numba:compile", listener)


@contextmanager
def announced(announce: Callable[[], None]) -> Iterator[None]:
    """Within, ``announce`` is called once when a kernel has to be compiled."""

    def watch(begun: int | None) -> None:
        if begun == 0:
            announce()

    with watched(watch):
        yield
