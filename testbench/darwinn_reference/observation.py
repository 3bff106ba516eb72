"""What is seen of a program while it runs: its operators, one after another and in each other.

A reference tells an observer where an operator begins and where it ends. What an operator is, is
the format's: an instruction or a node of a delegate, a function or a dispatch, a kernel. An
operator that runs within another one, as a node does within its delegate, begins after it and
ends before it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from darwinn_reference.arrays import AnyArray

INPUT: Final = "input"
"""The kind of the operator that stands for an input of the function: it reads nothing."""
OUTPUT: Final = "output"
"""The kind of the operator that stands for an output of the function: it writes nothing."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of a program: the same, by its name, each time that it runs.

    ``kind`` is the operation; ``location`` is where in the sources, as far as the program tells.
    """

    name: str
    kind: str
    location: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value lies: bytes ``start`` to ``stop`` (exclusive) of ``memory``.

    Who reads a place reads what was written there last. ``shape`` is None, and ``dtype`` empty,
    where the program does not say. ``constant``: the program brings it along.
    """

    memory: Hashable
    start: int
    stop: int
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    constant: bool = False

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.stop - self.start

    def __str__(self) -> str:
        """The value for tables: ``float32 1x8``, or its size in bytes."""
        if self.shape is None:
            return f"{self.bytes:,} bytes"
        return " ".join(filter(None, (self.dtype, "x".join(map(str, self.shape)))))


Places = tuple[Iterable[Place], Iterable[Place]]
"""What an operator has read, and what it has written."""


class Observer(Protocol):
    """Told of the operators of a call. What it takes for itself is no time of theirs."""

    @property
    def closely(self) -> bool:
        """Whether it asks for places in this call. Finding them out may take operators time."""
        ...

    def begin(self, operator: Operator) -> None:
        """The operator starts now."""
        ...

    def end(self, places: Callable[[], Places]) -> None:
        """What has started last is done; ``places`` is called at once, or not at all."""
        ...


def place_of(array: AnyArray, *, constant: bool = False) -> Place:
    """Where an array lies: the bytes from its first element to its last, in whatever order."""
    low, high = np.lib.array_utils.byte_bounds(array)
    return Place("", low, high, str(array.dtype), array.shape, constant)


def number_place(memory: Hashable, value: Any) -> Place:
    """The place of a number, a text or the like, which lies in no memory: a register's own."""
    return Place(memory, 0, 1, type(value).__name__, ())


def show_port(observer: Observer, kind: str, name: str, places: Iterable[Place]) -> None:
    """Tell of an input (``INPUT``) or output (``OUTPUT``) of the function that is called."""
    observer.begin(Operator(name, kind))
    observer.end(lambda: ((), places) if kind == INPUT else (places, ()))
