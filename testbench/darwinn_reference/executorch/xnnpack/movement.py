"""Nodes that move numbers and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.executorch.xnnpack import schema

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.values import refuse_more
from darwinn_reference.executorch.xnnpack.operands import Operand, Target


def copy(node: schema.Copy, operands: Sequence[Operand], target: Target) -> AnyArray:
    """The same."""
    return operands[0].array


def transpose(
    node: schema.StaticTranspose, operands: Sequence[Operand], target: Target
) -> AnyArray:
    """Dimensions in another order."""
    return operands[0].array.transpose(node.perm)


def reshape(node: schema.StaticReshape, operands: Sequence[Operand], target: Target) -> AnyArray:
    """Other sizes, of which one of 0 follows from the rest."""
    sizes = [-1 if size == 0 else size for size in node.new_shape]
    return operands[0].array.reshape(sizes)


def cut(node: schema.StaticSlice, operands: Sequence[Operand], target: Target) -> AnyArray:
    """A part; a size of 0 is all behind the offset."""
    array = operands[0].array
    if array.ndim != node.num_dims:
        raise ExecutionError(f"a slice of {node.num_dims} dimensions of sizes {array.shape}")
    ends = [
        start + (size or extent - start)
        for start, size, extent in zip(node.offsets, node.sizes, array.shape, strict=True)
    ]
    if any(end > extent for end, extent in zip(ends, array.shape, strict=True)):
        raise ExecutionError(f"a slice up to {tuple(ends)} of sizes {array.shape}")
    return array[tuple(map(slice, node.offsets, ends))]


def pad(node: schema.StaticConstantPad, operands: Sequence[Operand], target: Target) -> AnyArray:
    """A margin of one number."""
    (operand,) = operands
    margins = list(zip(node.pre_paddings, node.post_paddings, strict=True))
    if len(margins) != operand.array.ndim:
        raise ExecutionError(f"{len(margins)} margins of sizes {operand.array.shape}")
    sizes = [size + sum(entry) for size, entry in zip(operand.array.shape, margins, strict=True)]
    refuse_more(int(np.prod(sizes, dtype=object)) * operand.array.itemsize, "a margin")
    number: Any = target.of_real(np.array(node.padding_value, np.float32))
    return np.pad(operand.array, margins, constant_values=number)


def concatenate(
    node: schema.Concatenation, operands: Sequence[Operand], target: Target
) -> AnyArray:
    """Values one after another."""
    axis = node.axis - 2**32 if node.axis >= 2**31 else node.axis
    if not -operands[0].array.ndim <= axis < operands[0].array.ndim:
        raise ExecutionError(f"a concatenation in dimension {axis}")
    return np.concatenate([entry.array for entry in operands], axis)
