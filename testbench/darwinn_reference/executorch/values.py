"""Tensors of a running method: views of planned memory, of constants, or of memory of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.executorch import schema
from darwinn_formats.limits import MEMORY, limits
from numpy.typing import NDArray

from darwinn_reference.arrays import AnyArray
from darwinn_reference.bfloat16 import from_bfloat16, to_bfloat16

Memory = NDArray[np.uint8]
"""Bytes that a tensor lies in."""


_taken: ContextVar[int | None] = ContextVar("taken", default=None)
"""Bytes that the instruction under way has asked for; None outside of instructions."""


@contextmanager
def one_instruction() -> Iterator[None]:
    """Within, all that :func:`refuse_more` is asked for counts together."""
    token = _taken.set(0)
    try:
        yield
    finally:
        _taken.reset(token)


def refuse_more(size: int, what: str) -> None:
    """Refuse memory of ``size`` bytes that is more than is allowed, with all that the instruction
    under way has asked for: ExecutionError.
    """
    allowed, taken = limits().memory, _taken.get()
    if size + (taken or 0) > allowed:
        bound = f"{allowed} bytes ({MEMORY})"
        beside = f" beside {taken} others" if taken else ""
        raise ExecutionError(f"{what} of {size} bytes{beside} is more than this can take, {bound}")
    if taken is not None:
        _taken.set(taken + size)


def zeros(shape: Sequence[int], dtype: np.dtype[Any] | type[Any]) -> AnyArray:
    """An array for a result, if it may be that large: ExecutionError."""
    refuse_more(math.prod(shape) * np.dtype(dtype).itemsize, "a result")
    return np.zeros(shape, dtype)


_BFLOAT16 = schema.ScalarType.BFLOAT16

ROUNDINGS: Mapping[schema.ScalarType, Callable[[AnyArray], AnyArray]] = {
    schema.ScalarType.FLOAT16: lambda x: x.astype(np.float16).astype(np.float32),
    _BFLOAT16: lambda x: from_bfloat16(to_bfloat16(np.ascontiguousarray(x))),
}
"""How float32 is rounded to the types of half precision."""


def has_arithmetic(scalar_type: schema.ScalarType) -> bool:
    """Whether tensors of this type of elements can be computed with."""
    return scalar_type is _BFLOAT16 or scalar_type in schema.DTYPES


class TensorValue:
    """A tensor by its element type, sizes and order of dimensions, in memory that it may share.

    ``memory`` holds the whole capacity of the tensor, or is None as long as it has none. A
    bfloat16 tensor is float32 to whoever reads it, and is rounded when it is written.

    Raises:
        ExecutionError: the element type has no arithmetic here.
    """

    __slots__ = ("_array", "_stored", "capacity", "declared", "memory", "name", "sizes")

    def __init__(self, declared: schema.Tensor, name: str, memory: Memory | None = None) -> None:
        self.declared = declared
        self.name = name
        self.capacity = declared.elements
        self.sizes: tuple[int, ...] = tuple(declared.sizes)
        self.memory = memory
        self._array: AnyArray | None = None
        if not has_arithmetic(declared.scalar_type):
            raise ExecutionError(f"{name}: {declared.scalar_type.name} is not supported")
        is_bfloat16 = declared.scalar_type is _BFLOAT16
        stored = np.dtype("<u2") if is_bfloat16 else schema.DTYPES[declared.scalar_type]
        self._stored: np.dtype[Any] = stored

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements as they are read."""
        if self.declared.scalar_type is _BFLOAT16:
            return np.dtype(np.float32)
        return self._stored

    @property
    def type_name(self) -> str:
        """Type of the elements as they are stored, for messages."""
        return "bfloat16" if self.declared.scalar_type is _BFLOAT16 else str(self._stored)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements as they are stored."""
        return math.prod(self.sizes) * self._stored.itemsize

    @property
    def is_static(self) -> bool:
        """Whether the sizes can never change."""
        return self.declared.shape_dynamism is schema.TensorShapeDynamism.STATIC

    def resize(self, sizes: Sequence[int]) -> None:
        """Take other sizes, within the capacity.

        Raises:
            ExecutionError: the sizes are fixed, of another rank, or do not fit.
        """
        wanted = tuple(int(size) for size in sizes)
        if wanted == self.sizes:
            return
        if self.is_static:
            raise ExecutionError(f"{self.name} of sizes {self.sizes} would be {wanted}")
        if len(wanted) != len(self.sizes) or int(np.prod(wanted, dtype=object)) > self.capacity:
            bound = tuple(self.declared.sizes)
            raise ExecutionError(f"{self.name} of at most {bound} would be {wanted}")
        self.sizes = wanted
        self._array = None

    def bind(self, memory: Memory | None) -> None:
        """Lie in other memory from now on, or in none."""
        self.memory = memory
        self._array = None

    def allocate(self) -> None:
        """Take memory of its own, zeros, for the whole capacity.

        Raises:
            ExecutionError: the capacity is more than is allowed.
        """
        size = self.capacity * self._stored.itemsize
        refuse_more(size, self.name)
        self.bind(np.zeros(size, np.uint8))

    def array(self) -> AnyArray:
        """The tensor in logical order: a view, except for bfloat16.

        Raises:
            ExecutionError: the tensor has no memory.
        """
        stored = self._view()
        if self.declared.scalar_type is not _BFLOAT16:
            return stored
        return from_bfloat16(stored)

    def write(self, result: Any) -> None:
        """Take the sizes and the elements of ``result``, converted to the element type.

        Raises:
            ExecutionError: the sizes do not fit, or the memory is a constant's.
        """
        source = np.asarray(result)
        self.resize(source.shape)
        if self.memory is None:
            self.allocate()
        target = self._view()
        if not target.flags.writeable:
            raise ExecutionError(f"{self.name} is a constant and cannot be written")
        if self.declared.scalar_type is _BFLOAT16:
            source = to_bfloat16(source.astype(np.float32))
        np.copyto(target, source, casting="unsafe")

    def _view(self) -> AnyArray:
        if self._array is not None:
            return self._array
        if self.memory is None:
            raise ExecutionError(f"{self.name} has no memory")
        order = self.declared.dim_order
        stored = np.ndarray(
            tuple(self.sizes[dimension] for dimension in order), self._stored, self.memory
        )
        self._array = stored.transpose(np.argsort(order)) if order else stored
        return self._array
