"""Operators that depend on where a tensor lies, or on the order of its dimensions in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from darwinn_formats.errors import ExecutionError

from darwinn_reference.executorch.values import TensorValue

Kernel = Callable[..., TensorValue]


def copy_to_row(target: TensorValue, source: TensorValue, row: int) -> TensorValue:
    """Let row ``row`` of the target be the source; the target then has ``row + 1`` rows."""
    row_array = source.array()
    target.resize((row + 1, *row_array.shape))
    if target.memory is None:
        target.allocate()
    target.array()[row] = row_array
    return target


def view(source: TensorValue, size: Sequence[int], target: TensorValue) -> TensorValue:
    """Let the target lie in the memory of the source, with other sizes."""
    elements = source.array().size
    known = int(np.prod([entry for entry in size if entry != -1], dtype=np.int64))
    wanted = tuple(elements // max(known, 1) if entry == -1 else entry for entry in size)
    if int(np.prod(wanted, dtype=np.int64)) != elements:
        raise ExecutionError(f"{elements} elements of {source.name} have no sizes {tuple(size)}")
    target.resize(wanted)
    target.bind(source.memory)
    return target


def pad_as_stored(
    source: TensorValue, before: Sequence[int], after: Sequence[int], value: int, out: TensorValue
) -> TensorValue:
    """Pad by margins that are given in the order in which the dimensions are stored."""
    array = source.array()
    order = tuple(source.declared.dim_order)
    # The margins are those of four dimensions, of which the first may be missing.
    pairs = list(zip(before, after, strict=True))[len(before) - array.ndim :]
    by_dimension = dict(zip(order, pairs, strict=True))
    margins = [by_dimension[dimension] for dimension in range(array.ndim)]
    out.write(np.pad(array, margins, constant_values=array.dtype.type(value)))
    return out


KERNELS: Mapping[str, tuple[Kernel, int]] = {
    "cortex_m::pad.out": (pad_as_stored, 1),
    "executorch_prim::et_copy_index.tensor": (copy_to_row, 0),
    "executorch_prim::et_view.default": (view, 0),
}
"""Kernels that take tensors as they lie and return the one that they wrote, and how many
arguments after the output repeat it."""
