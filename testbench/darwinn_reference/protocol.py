"""What the CPU references of all program formats have in common.

A reference is made from a loaded program and keeps the program's state between calls. Its
functions (methods of a .pte, exports of a .vmfb, functions of a BEF) take and return arrays,
numbers and texts; every array that a function makes on the way can be looked at, or replaced,
through a tap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from darwinn_reference.arrays import AnyArray
from darwinn_reference.observation import Observer

Datum = AnyArray | np.generic | bool | int | float | str | None
"""A value that goes into a function or comes out: None is the absent value."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What floating point values are rounded to within a program: ``scale * (q - zero_point)`` of
    integers ``q`` of ``dtype``.
    """

    scale: float
    zero_point: int
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a function.

    ``shape`` has None where the size is not fixed, and is None as a whole, like ``dtype``, where
    the program does not say what it is. ``scale`` and ``zero_point`` are those of a quantised
    value where the program says so: ``real = scale * (stored - zero_point)``. ``steps`` are
    those of floating point values that the program quantises first, or dequantises last. ``bounds``
    are the greatest sizes where the program leaves sizes open and bounds them; ``limit`` is the
    size of what an integer indexes.
    """

    name: str
    dtype: np.dtype[Any] | None
    shape: tuple[int | None, ...] | None
    scale: float | None = None
    zero_point: int | None = None
    steps: Steps | None = None
    bounds: tuple[int, ...] | None = None
    limit: int | None = None

    def __str__(self) -> str:
        """The port for messages: ``input0 (int8 1x?x4)``."""
        sizes = self.shape and "x".join("?" if size is None else str(size) for size in self.shape)
        known = (self.dtype and str(self.dtype), sizes or ("scalar" if self.shape == () else ""))
        text = " ".join(part for part in known if part)
        return f"{self.name} ({text or 'type not stated'})"


@dataclass(frozen=True, slots=True)
class Output:
    """A result of a function; its dtype is that of ``data``."""

    name: str
    data: Datum
    scale: float | None = None
    zero_point: int | None = None


@dataclass(frozen=True, slots=True)
class Intermediate:
    """An array that a step of a function made.

    ``name`` is unique within the function; ``step`` counts executed steps from 0; ``operation`` is
    what made the array; ``location`` is where in the sources, as far as the program tells.
    ``data`` is a view: copy what is to be kept.
    """

    name: str
    step: int
    operation: str
    data: AnyArray
    location: str = ""


Tap = Callable[[Intermediate], AnyArray | None]
"""Sees every intermediate array; what it returns, if anything, takes the place of the array."""


@runtime_checkable
class Reference(Protocol):
    """A program that runs on the CPU."""

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of what can be called, in the order of the file."""
        ...

    def inputs(self, function: str | None = None) -> tuple[Port, ...]:
        """Inputs of a function; None is the only function, or ``forward`` or ``main``."""
        ...

    def outputs(self, function: str | None = None) -> tuple[Port, ...]:
        """Outputs of a function."""
        ...

    def run(
        self, inputs: Sequence[Datum], *, function: str | None = None, tap: Tap | None = None
    ) -> tuple[Output, ...]:
        """Call a function. State that the program has stays for the next call.

        Raises:
            ExecutionError: the inputs do not fit, or the program fails.
        """
        ...

    def reset(self) -> None:
        """Put the state back to what it was after loading."""
        ...


@runtime_checkable
class ObservableReference(Reference, Protocol):
    """A program on the CPU whose operators can be seen: the project's own references.

    They have ``observable``, by which they are told from original runtimes.
    """

    @property
    def observable(self) -> bool:
        """Whether a call shows its operators."""
        ...

    def run(
        self,
        inputs: Sequence[Datum],
        *,
        function: str | None = None,
        tap: Tap | None = None,
        observer: Observer | None = None,
    ) -> tuple[Output, ...]:
        """Call a function as ``Reference.run`` does, and show its inputs, operators and outputs.

        Raises:
            ExecutionError: the inputs do not fit, or the program fails.
        """
        ...


@runtime_checkable
class NotingReference(Reference, Protocol):
    """A program in an original runtime that notes how long operators take."""

    def noted(self, inputs: Sequence[Datum], *, function: str | None = None, calls: int) -> bytes:
        """Make calls of a function, all on the same inputs, and give the runtime's file about them.

        Raises:
            ExecutionError: the inputs do not fit, the program fails, or nothing is noted.
        """
        ...
