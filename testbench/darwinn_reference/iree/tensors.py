"""NumPy arrays as tensors of the device, and back."""

from __future__ import annotations

import math

import numpy as np
from darwinn_formats.errors import ExecutionError

from darwinn_reference.arrays import AnyArray
from darwinn_reference.iree.element_types import dtype_of
from darwinn_reference.iree.hal import BufferView, HalBuffer
from darwinn_reference.iree.memory import Buffer, allocate

_DENSE = 1


def view_of(array: AnyArray, element_type: int) -> BufferView:
    """A tensor with a copy of an array."""
    contiguous = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    memory = allocate(contiguous.nbytes)
    memory[:] = contiguous.tobytes()
    return BufferView(HalBuffer(Buffer(memory)), array.shape, element_type, _DENSE)


def array_of(view: BufferView, name: str) -> AnyArray:
    """A copy of a tensor; ExecutionError, with its name, if its buffer is too short."""
    dtype = dtype_of(view.element_type)
    memory, count = view.buffer.contents.memory, math.prod(view.shape)
    if count * dtype.itemsize > len(memory):
        raise ExecutionError(f"{name}: {len(memory)} bytes for shape {view.shape} of {dtype}")
    array: AnyArray = np.frombuffer(memory, dtype, count).reshape(view.shape).copy()
    return array
