"""NumPy arrays as tensors of the device, and back."""

from __future__ import annotations

import math

import numpy as np
from darwinn_formats.errors import ExecutionError

from darwinn_reference.arrays import AnyArray
from darwinn_reference.bfloat16 import from_bfloat16, to_bfloat16
from darwinn_reference.iree.element_types import (
    BFLOAT16,
    dtype_of,
    element_type_of,
    spelled_dtype,
)
from darwinn_reference.iree.hal import BufferView, HalBuffer
from darwinn_reference.iree.memory import Buffer, allocate

_DENSE = 1


def view_of(array: AnyArray, element_type: int) -> BufferView:
    """A tensor with a copy of an array, whose values a tensor of bfloat16 rounds."""
    stored = to_bfloat16(array) if element_type == BFLOAT16 else array
    contiguous = np.ascontiguousarray(stored, stored.dtype.newbyteorder("<"))
    memory = allocate(contiguous.nbytes)
    memory[:] = contiguous.tobytes()
    return BufferView(HalBuffer(Buffer(memory)), array.shape, element_type, _DENSE)


def array_of(view: BufferView, name: str) -> AnyArray:
    """A copy of a tensor; ExecutionError, with its name, if its buffer is too short."""
    is_bfloat16 = view.element_type == BFLOAT16
    dtype = np.dtype(np.uint16) if is_bfloat16 else dtype_of(view.element_type)
    memory, count = view.buffer.contents.memory, math.prod(view.shape)
    if count * dtype.itemsize > len(memory):
        raise ExecutionError(f"{name}: {len(memory)} bytes for shape {view.shape} of {dtype}")
    array: AnyArray = np.frombuffer(memory, dtype, count)
    array = from_bfloat16(array) if is_bfloat16 else array.copy()
    return array.reshape(view.shape)


def bits_of(number: AnyArray, spelling: str) -> int:
    """A float of the type that the source spells (``bf16``), as the integer that has its bits."""
    dtype = spelled_dtype(spelling)
    view = view_of(number.astype(dtype), element_type_of(np.dtype(dtype), spelling))
    return int.from_bytes(view.buffer.contents.memory, "little")


def float_of(bits: int, spelling: str) -> AnyArray:
    """The float, without dimensions, whose bits an integer has in its lower ones."""
    element_type = element_type_of(np.dtype(spelled_dtype(spelling)), spelling)
    size = (element_type & 0xFF) // 8
    memory = memoryview((bits % (1 << 8 * size)).to_bytes(size, "little"))
    return array_of(BufferView(HalBuffer(Buffer(memory)), (), element_type, _DENSE), "a number")
