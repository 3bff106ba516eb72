"""Kernels on shapes of tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass

from darwinn_formats.tfrt import DType
from darwinn_formats.tfrt.encoding import ARRAY_FLAG

from darwinn_testbench.reference.tfrt.kernels.numbers import printing
from darwinn_testbench.reference.tfrt.registry import kernel
from darwinn_testbench.reference.tfrt.values import KernelError

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


@kernel("ts.build_shape", attributes=(I64_ARRAY,))
def build_shape(dims: list[int]) -> TensorShape:
    """A shape."""
    return TensorShape(tuple(dims))


@kernel("ts.build_partial_shape", attributes=(I64_ARRAY,))
def build_partial_shape(dims: list[int]) -> PartialShape:
    """A shape of which sizes may be unknown."""
    return PartialShape(tuple(dims))


@kernel("ts.build_unranked_partial_shape")
def build_unranked_partial_shape() -> PartialShape:
    """A shape of which nothing is known."""
    return PartialShape(None)


@kernel("ts.to_partial_shape")
def to_partial_shape(shape: TensorShape) -> PartialShape:
    """The same shape, as one that could have unknown sizes."""
    return PartialShape(shape.dims)


@kernel("ts.to_shape")
def to_shape(shape: PartialShape) -> TensorShape:
    """The same shape, if everything is known."""
    if shape.dims is None:
        raise KernelError("Unknown rank")
    unknown = [number for number, size in enumerate(shape.dims) if size < 0]
    if unknown:
        raise KernelError(f"Unknown dimensions at following indices = {unknown}")
    return TensorShape(shape.dims)


@kernel("ts.equal_shape")
def equal_shape(first: TensorShape, second: TensorShape) -> bool:
    """Whether two shapes are the same."""
    return first == second


@kernel("ts.get_dimension")
def get_dimension(shape: TensorShape, number: int) -> int:
    """Size of a dimension."""
    if not 0 <= number < len(shape.dims):
        raise KernelError(f"dimension {number} of a shape of rank {len(shape.dims)}")
    return shape.dims[number]


@kernel("ts.get_num_elements")
def get_num_elements(shape: TensorShape) -> int:
    """Number of elements."""
    return shape.elements


def _register(rank: int) -> None:
    def as_fixed_rank_shape(shape: TensorShape) -> TensorShape:
        if len(shape.dims) != rank:
            raise KernelError(f"a shape of rank {len(shape.dims)}, not {rank}")
        return shape

    kernel(f"ts.as_fixed_rank_shape.{rank}")(as_fixed_rank_shape)
    kernel(f"ts.print_fixed_rank_shape.{rank}", host=True)(printing("fixed_rank_shape"))


kernel("ts.print_shape", host=True)(printing("shape"))
kernel("ts.print_partial_shape", host=True)(printing("partial_tensor_shape"))
for _rank in FIXED_RANKS:
    _register(_rank)
