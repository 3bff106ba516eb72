"""Operators and delegates that the user gives as Python functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.executorch import schema

from darwinn_reference.executorch.operators import Convention, Operator
from darwinn_reference.executorch.placeholders import made_by_delegates
from darwinn_reference.executorch.values import TensorValue

Native = Callable[..., Any]
"""An operator takes the arguments before its output (arrays, numbers, texts, lists, None), and
gives an array; a delegate takes the arrays that it reads, and gives an array or a tuple of them.
"""


def native_operator(name: str, function: Native) -> Operator:
    """An operator of one output, which a function computes."""

    def kernel(*arguments: Any) -> Any:
        return np.asarray(_called(name, function, arguments))

    return Operator(name, kernel, Convention.OUT, 1, 1)


class NativeDelegate:
    """A delegate that a function computes."""

    def __init__(self, name: str, function: Native, made: frozenset[str]) -> None:
        self.name, self.function, self.made = name, function, made

    def __call__(self, arguments: Sequence[Any]) -> Sequence[TensorValue]:
        """Compute and write the results; returns what was written."""
        tensors = [each for each in arguments if isinstance(each, TensorValue)]
        written = [each for each in tensors if each.name in self.made]
        given = [each.array().copy() for each in tensors if each.name not in self.made]
        found = _called(self.name, self.function, given)
        results = found if isinstance(found, tuple | list) else (found,)
        if len(results) != len(written):
            raise ExecutionError(f"{self.name} gives {len(results)} results, not {len(written)}")
        for target, result in zip(written, results, strict=True):
            target.write(np.asarray(result))
        return written


def native_delegate(
    plan: schema.ExecutionPlan, number: int, name: str, function: Native
) -> NativeDelegate:
    """The function as the delegate of this number of a method."""
    return NativeDelegate(name, function, made_by_delegates(plan)[number])


def _called(name: str, function: Native, arguments: Sequence[Any]) -> Any:
    try:
        return function(*arguments)
    except ExecutionError:
        raise
    except Exception as error:
        raise ExecutionError(f"{name}: {type(error).__name__}: {error}") from error
