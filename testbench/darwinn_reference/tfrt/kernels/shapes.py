"""Kernels on shapes of tensors."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass

from darwinn_formats.tfrt import DType
from darwinn_formats.tfrt.encoding import ARRAY_FLAG

from darwinn_reference.tfrt.kernels.numbers import printing
from darwinn_reference.tfrt.registry import kernel, kernels
from darwinn_reference.tfrt.values import KernelError

I64_ARRAY = int(DType.I64) | ARRAY_FLAG
FIXED_RANKS = range(8)
"""Ranks for which there are shapes of a fixed rank; the original's tests use 1 to 3."""


@dataclass(frozen=True, slots=True)
class TensorShape:
    """Sizes of all dimensions."""

    dims: tuple[int, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.dims))}]"

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.dims)


@dataclass(frozen=True, slots=True)
class PartialShape:
    """Sizes of dimensions, -1 where unknown; None when not even the rank is known."""

    dims: tuple[int, ...] | None

    def __str__(self) -> str:
        return "Unknown rank" if self.dims is None else str(TensorShape(self.dims))


def _to_shape(shape: PartialShape) -> TensorShape:
    """The same shape, if everything is known."""
    if shape.dims is None:
        raise KernelError("Unknown rank")
    unknown = [number for number, size in enumerate(shape.dims) if size < 0]
    if unknown:
        raise KernelError(f"Unknown dimensions at following indices = {unknown}")
    return TensorShape(shape.dims)


def _dimension(shape: TensorShape, number: int) -> int:
    """Size of a dimension."""
    if not 0 <= number < len(shape.dims):
        raise KernelError(f"dimension {number} of a shape of rank {len(shape.dims)}")
    return shape.dims[number]


def _register(rank: int) -> None:
    def as_fixed_rank_shape(shape: TensorShape) -> TensorShape:
        if len(shape.dims) != rank:
            raise KernelError(f"a shape of rank {len(shape.dims)}, not {rank}")
        return shape

    kernel(f"ts.as_fixed_rank_shape.{rank}")(as_fixed_rank_shape)
    kernel(f"ts.print_fixed_rank_shape.{rank}", host=True)(printing("fixed_rank_shape"))


kernels(
    {
        "ts.build_shape ts_sync.build_shape": lambda dims: TensorShape(tuple(dims)),
        "ts.build_partial_shape ts_sync.build_partial_shape": lambda dims: PartialShape(
            tuple(dims)
        ),
    },
    attributes=(I64_ARRAY,),
)
kernels(
    {
        "ts.build_unranked_partial_shape": lambda: PartialShape(None),
        "ts.to_partial_shape ts_sync.to_partial_shape": lambda shape: PartialShape(shape.dims),
        "ts.to_shape ts_sync.to_shape": _to_shape,
        "ts.equal_shape": operator.eq,
        "ts.get_dimension": _dimension,
        "ts.get_num_elements ts_sync.get_num_elements": lambda shape: shape.elements,
    }
)
kernels(
    {
        "ts.print_shape": printing("shape"),
        "ts.print_partial_shape": printing("partial_tensor_shape"),
    },
    host=True,
)
for _rank in FIXED_RANKS:
    _register(_rank)
