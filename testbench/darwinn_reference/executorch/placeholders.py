"""Operators and delegates that are not there, in whose place a program can be looked at.

They take and give the tensors that they would, and write zeros. So a call shows which operators
there are and whose values they read, but no value behind one of these means anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.executorch import schema

from darwinn_reference.executorch.operators import Convention, Operator
from darwinn_reference.executorch.values import TensorValue


def placeholder_operator(name: str) -> Operator:
    """An operator that writes zeros to its last argument."""
    return Operator(name, _zeros, Convention.PLACED, 0, 1, 1)


def _zeros(*arguments: Any) -> TensorValue:
    """Zeros in the output, which is the last argument or the last tensor of a list."""
    tensors = [each for each in arguments if isinstance(each, TensorValue)]
    if not tensors:
        raise ExecutionError("an operator without an output tensor")
    return _clear(tensors[-1])


def _clear(value: TensorValue) -> TensorValue:
    value.write(np.zeros(value.sizes, np.float32).astype(value.dtype))
    return value


class PlaceholderDelegate:
    """A delegate that writes zeros to what it makes: the arguments that nothing has made before."""

    def __init__(self, made: frozenset[str]) -> None:
        self.made = made

    def __call__(self, arguments: Sequence[Any]) -> Sequence[TensorValue]:
        """Write zeros; returns what was written."""
        tensors = (each for each in arguments if isinstance(each, TensorValue))
        return [_clear(each) for each in tensors if each.name in self.made]


def placeholder_delegates(plan: schema.ExecutionPlan) -> list[PlaceholderDelegate]:
    """A placeholder for each delegate of a method."""
    return [PlaceholderDelegate(entry) for entry in made_by_delegates(plan)]


def made_by_delegates(plan: schema.ExecutionPlan) -> list[frozenset[str]]:
    """Names of the values that each delegate of a method makes: those that nothing made before."""
    made: dict[int, set[int]] = {number: set() for number in range(len(plan.delegates))}
    known = {*plan.inputs, *_stored(plan)}
    for chain in plan.chains:
        for instruction in chain.instructions:
            call = instruction.instr_args
            if isinstance(call, schema.DelegateCall):
                made[call.delegate_index] |= set(call.args) - known
                known |= set(call.args)
            elif isinstance(call, schema.KernelCall):
                known |= set(call.args)
            elif isinstance(call, schema.MoveCall):
                known.add(call.move_to)
    return [frozenset(f"%{each}" for each in entry) for entry in made.values()]


def _stored(plan: schema.ExecutionPlan) -> Iterator[int]:
    """Tensors that have values from the start."""
    for index, value in enumerate(plan.values):
        tensor = value.val
        if isinstance(tensor, schema.Tensor) and (tensor.data_buffer_idx or tensor.is_external):
            yield index
