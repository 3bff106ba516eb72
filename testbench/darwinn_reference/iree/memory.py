"""What references of the virtual machine point to: buffers that alias memory, and lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.limits import MEMORY, limits

ELEMENT_CODES = {"i8": "B", "s8": "b", "i16": "H", "s16": "h", "i32": "i", "i64": "q"}
"""Element types of accesses, by the code of a memoryview; floats move as integers, bit by bit."""
ELEMENT_CODES |= {"f32": "i", "f64": "q"}
ELEMENT_SIZES = {"B": 1, "b": 1, "H": 2, "h": 2, "i": 4, "q": 8}

MAXIMUM_ALLOCATION = 1 << 30
"""Bytes that a program may ask for at once."""


class TypedViews(dict[str, "memoryview[Any]"]):
    """Views of one memory by the type of their elements, made when they are first asked for."""

    __slots__ = ("memory",)

    def __init__(self, memory: memoryview) -> None:
        super().__init__()
        self.memory = memory

    def __missing__(self, element: str) -> memoryview[Any]:
        code = ELEMENT_CODES[element]
        whole = len(self.memory) // ELEMENT_SIZES[code] * ELEMENT_SIZES[code]
        view: memoryview[Any] = self.memory[:whole].cast(code)  # type: ignore[call-overload]
        self[element] = view
        return view


class WritableViews(TypedViews):
    """Views for stores: their keys are the types of what was stored, in the order of first use."""

    __slots__ = ()

    def __missing__(self, element: str) -> memoryview[Any]:
        if self.memory.readonly:
            raise ExecutionError("a store to read-only data")
        return super().__missing__(element)


def device_copy(data: memoryview) -> memoryview:
    """Data of the program as a device has it: a copy, which only the device may change."""
    copy = np.frombuffer(data, np.uint8).copy()
    return memoryview(copy).toreadonly()  # type: ignore[arg-type]


def device_memory(memory: memoryview) -> memoryview:
    """Memory as the device writes to it, also to constants that it was given (``device_copy``).

    Data of the program itself stays read-only.
    """
    owner = memory.obj
    if not memory.readonly or not isinstance(owner, np.ndarray) or not owner.flags.writeable:
        return memory
    start = address_of(memory) - owner.ctypes.data
    return memoryview(owner.view(np.uint8))[start : start + len(memory)]  # type: ignore[arg-type]


class Buffer:
    """Bytes that loads and stores go to: ``!vm.buffer``.

    ``on_device`` says that a device stores to it (``device_memory``).

    Attributes:
        memory: the bytes; buffers over the same memory see the same bytes.
        loads: views for loads.
        stores: views for stores.
        segment: ordinal of the read-only data segment that the bytes are, or None.
    """

    __slots__ = ("_address", "loads", "memory", "segment", "stores")

    def __init__(
        self, memory: memoryview, segment: int | None = None, *, on_device: bool = False
    ) -> None:
        self.memory = memory
        self.loads = TypedViews(memory)
        self.stores = WritableViews(device_memory(memory) if on_device else memory)
        self.segment = segment
        self._address: int | None = None

    @property
    def address(self) -> int:
        """Where its bytes are in memory; 0 if there are none."""
        if self._address is None:
            self._address = address_of(self.memory)
        return self._address

    def __len__(self) -> int:
        return len(self.memory)

    def part(self, offset: int, length: int) -> memoryview:
        """Bytes of a range; ExecutionError if it leaves the buffer."""
        if offset < 0 or length < 0 or offset + length > len(self.memory):
            raise ExecutionError(
                f"bytes {offset} to {offset + length} are not in a buffer of {len(self.memory)}"
            )
        return self.memory[offset : offset + length]


@dataclass(eq=False, slots=True)
class VmList:
    """A list of numbers or references: ``!vm.list``; ``absent`` is what a new element is."""

    items: list[Any]
    absent: int | None = None


def address_of(memory: memoryview) -> int:
    """Where bytes are in memory, which their owner keeps there; 0 if there are none."""
    if not len(memory):
        return 0
    address: int = np.frombuffer(memory, np.uint8).ctypes.data
    return address


def allocate(size: int) -> memoryview:
    """Zeroed memory; ExecutionError for a size that is negative or beyond all reason."""
    allowed = min(MAXIMUM_ALLOCATION, limits().memory)
    if not 0 <= size <= allowed:
        raise ExecutionError(f"an allocation of {size} bytes, of {allowed} allowed ({MEMORY})")
    # A page that nobody writes to takes no memory.
    return memoryview(np.zeros(size, np.uint8))  # type: ignore[arg-type]
