"""Imports that the user gives as Python functions: what they get and give, by convention."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.iree import Module
from darwinn_formats.iree.calling_convention import CallingConvention, parse

from darwinn_reference.iree.element_types import element_type_of
from darwinn_reference.iree.hal import BufferView
from darwinn_reference.iree.imports import Handler
from darwinn_reference.iree.interface import NUMBERS
from darwinn_reference.iree.memory import Buffer, allocate
from darwinn_reference.iree.tensors import array_of, view_of

Native = Callable[..., Any]
"""Takes a value for each argument, and gives None, a result, or a tuple of several.

Numbers are Python's. A tensor (``!hal.buffer_view``) is a NumPy array, a copy; a buffer of the
program (``!vm.buffer``) is its memory, as a memoryview, which may be written to unless it is
read-only; null is None. Of an argument that repeats there is a list of tuples. Other references
are handed through as they are. As results arrays become tensors, and bytes buffers.
"""


def native_imports(
    module: Module, natives: Mapping[str, Native]
) -> Mapping[tuple[str, str], Handler]:
    """Handlers of the imports of a module that ``natives`` has under their full names."""
    made = {}
    for entry in module.definition.imported_functions:
        convention = entry.signature.calling_convention if entry.signature else ""
        if (function := natives.get(entry.full_name)) is not None:
            made[entry.full_name, convention] = _handler(function, parse(convention))
    return made


def _handler(function: Native, convention: CallingConvention) -> Handler:
    def call(_: object, *values: Any) -> Any:
        try:
            given = function(*map(_given, values))
        except ExecutionError:
            raise
        except Exception as error:
            raise ExecutionError(f"{type(error).__name__}: {error}") from error
        return _results(convention.results, given)

    return call


def _given(value: Any) -> Any:
    """A value as the function gets it."""
    if isinstance(value, list):
        return [tuple(map(_given, item)) for item in value]
    if isinstance(value, BufferView):
        return array_of(value, "an argument")
    return value.memory if isinstance(value, Buffer) else value


def _results(letters: Sequence[str], given: Any) -> Any:
    """What the function gave as registers take it."""
    values = given if isinstance(given, tuple) and len(letters) != 1 else (given,)
    if not letters:
        return None
    if len(values) != len(letters):
        raise ExecutionError(f"gives {len(values)} values, not {len(letters)}")
    taken = tuple(_taken(letter, value) for letter, value in zip(letters, values, strict=True))
    return taken if len(taken) > 1 else taken[0]


def _taken(letter: str, value: Any) -> Any:
    if letter == "r":
        if isinstance(value, np.ndarray | np.generic):
            return view_of(np.asarray(value), element_type_of(value.dtype))
        if isinstance(value, bytes | bytearray | memoryview):
            memory = allocate(len(bytes(value)))
            memory[:] = bytes(value)
            return Buffer(memory)
        return value
    kind = NUMBERS[letter]
    if np.ndim(value) or np.asarray(value).dtype.kind not in "iufb":
        raise ExecutionError(f"gives a {type(value).__name__}, not a number")
    if letter in "fF":
        return float(kind(value))
    number, bits = int(value), 8 * kind().itemsize
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise ExecutionError(f"gives {number}, which {bits} bits do not hold")
    return number
