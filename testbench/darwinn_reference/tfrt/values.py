"""Values of BEF functions: chains, errors, and values that are not there yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Value = Any
"""What a register holds: a number, text, tensor, shape, chain, error or object of a kernel."""


class Chain:
    """The value that only says that something has been done."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "CHAIN"


CHAIN: Final = Chain()

INTERNAL: Final = "INTERNAL"
CANCELLED: Final = "CANCELLED"


class ErrorValue:
    """An error in the place of a value; kernels that would read it do not run."""

    __slots__ = ("code", "message")

    def __init__(self, message: str, code: str = INTERNAL) -> None:
        self.message = message
        self.code = code

    def __repr__(self) -> str:
        return f"ErrorValue({self.message!r})"


class KernelError(Exception):
    """What a kernel raises so that all its results become errors, with a diagnostic."""


class AsyncValue:
    """A value that may come later; ``then`` runs a callback as soon as it is there."""

    __slots__ = ("_waiting", "ready", "value")

    def __init__(self) -> None:
        self.ready = False
        self.value: Value = None
        self._waiting: list[Callable[[Value], None]] | None = None

    def set(self, value: Value) -> None:
        """Give the value; another AsyncValue gives its own as soon as it has it."""
        if value.__class__ is AsyncValue:
            if not value.ready:
                value.then(self.set)
                return
            value = value.value
        self.ready = True
        self.value = value
        waiting, self._waiting = self._waiting, None
        if waiting:
            for callback in waiting:
                callback(value)

    def then(self, callback: Callable[[Value], None]) -> None:
        """Call with the value, now or when it comes."""
        if self.ready:
            callback(self.value)
        elif self._waiting is None:
            self._waiting = [callback]
        else:
            self._waiting.append(callback)


def settled(value: Value) -> Value:
    """The value itself where it is there already."""
    if value.__class__ is AsyncValue and value.ready:
        return value.value
    return value


def is_there(value: Value) -> bool:
    """Whether a value need not be waited for."""
    return value.__class__ is not AsyncValue or value.ready


def when_ready(values: list[Value], callback: Callable[[], None]) -> None:
    """Call when all values are there."""
    pending = [value for value in values if value.__class__ is AsyncValue and not value.ready]
    left = len(pending)
    if left == 0:
        callback()
        return

    def arrived(_: Value) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            callback()

    for value in pending:
        value.then(arrived)
