"""Which integers of a method are indices, and how large the tables are that they index.

An input that is an index, of a token say, has to lie in its table: the operators that read it, or
what only moves, repeats or converts it, say how large that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from darwinn_formats.executorch import schema

_Table = Callable[[schema.ExecutionPlan, Sequence[int]], Iterator[tuple[int, int]]]
"""From the arguments of a call to values that index, each with the size of what it indexes."""


def _sizes(plan: schema.ExecutionPlan, index: int) -> Sequence[int]:
    value = plan.values[index].val
    return value.sizes if isinstance(value, schema.Tensor) else ()


def _rows(table: int, indices: int) -> _Table:
    """Indices of the rows of an argument."""

    def found(plan: schema.ExecutionPlan, args: Sequence[int]) -> Iterator[tuple[int, int]]:
        sizes = _sizes(plan, args[table])
        if sizes:
            yield args[indices], sizes[0]

    return found


def _along(plan: schema.ExecutionPlan, args: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Indices along the dimension that the second argument is."""
    sizes, dimension = _sizes(plan, args[0]), plan.values[args[1]].val
    if isinstance(dimension, schema.Int) and -len(sizes) <= dimension.int_val < len(sizes):
        yield args[2], sizes[dimension.int_val]


def _of_each_dimension(
    plan: schema.ExecutionPlan, args: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Indices of the first dimensions, one or none for each."""
    sizes, indices = _sizes(plan, args[0]), plan.values[args[1]].val
    if isinstance(indices, schema.OptionalTensorList | schema.TensorList):
        for entry, size in zip(indices.items, sizes, strict=False):
            if entry >= 0 and _is_integer(plan, entry):
                yield entry, size


def _is_integer(plan: schema.ExecutionPlan, index: int) -> bool:
    value = plan.values[index].val
    if not isinstance(value, schema.Tensor):
        return False
    dtype = schema.DTYPES.get(value.scalar_type)
    return dtype is not None and np.dtype(dtype).kind == "i"


INDEXING: Mapping[str, _Table] = {
    "aten::embedding.out": _rows(0, 1),
    "quantized_decomposed::embedding_byte.out": _rows(0, 5),
    "quantized_decomposed::embedding_byte.dtype_out": _rows(0, 5),
    "quantized_decomposed::embedding_2bit.out": _rows(0, 5),
    "quantized_decomposed::embedding_2bit.dtype_out": _rows(0, 5),
    "quantized_decomposed::embedding_4bit.out": _rows(0, 5),
    "quantized_decomposed::embedding_4bit.dtype_out": _rows(0, 5),
    "aten::gather.out": _along,
    "aten::index_select.out": _along,
    "aten::scatter.src_out": _along,
    "aten::scatter.value_out": _along,
    "aten::scatter_add.out": _along,
    "aten::index.Tensor_out": _of_each_dimension,
    "aten::index_put.out": _of_each_dimension,
    "aten::index_put_": _of_each_dimension,
}
"""Operators that index, and what with."""

MOVING = frozenset(
    f"aten::{name}"
    for name in (
        "_to_copy.out",
        "alias_copy.out",
        "clone.out",
        "detach_copy.out",
        "expand_copy.out",
        "lift_fresh_copy.out",
        "permute_copy.out",
        "repeat.out",
        "select_copy.int_out",
        "slice_copy.Tensor_out",
        "squeeze_copy.dim_out",
        "squeeze_copy.dims_out",
        "t_copy.out",
        "transpose_copy.int_out",
        "unsqueeze_copy.out",
        "view_copy.out",
    )
)
"""Operators whose result, the last argument, holds elements of the first and no others."""


def index_limit(plan: schema.ExecutionPlan, index: int) -> int | None:
    """The size of the smallest table that an input indexes; None if it indexes none."""
    same, found = {index}, []
    for chain in plan.chains:
        for instruction in chain.instructions:
            call = instruction.instr_args
            if isinstance(call, schema.MoveCall):
                same |= {call.move_to} if call.move_from in same else set()
            if not isinstance(call, schema.KernelCall):
                continue
            name = plan.operators[call.op_index].full_name
            if name in MOVING and call.args and call.args[0] in same:
                same.add(call.args[-1])
            if name in INDEXING:
                try:
                    found += [size for at, size in INDEXING[name](plan, call.args) if at in same]
                except IndexError:
                    # Too few arguments are a fault where the operator is called.
                    continue
    return min(found, default=None)
