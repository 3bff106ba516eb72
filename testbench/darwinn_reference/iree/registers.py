"""Registers of a function.

Scalar registers are cells of 32 bits in one memory with a view for each type, as in the original:
numbers of different types share cells bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from darwinn_formats.iree.opcodes import MOVE_BIT, REFERENCE_BIT
from darwinn_formats.iree.schema import FunctionDescriptor

ORDINAL = ~(REFERENCE_BIT | MOVE_BIT)
"""Bits of a register of a reference that number it."""
SAME_BITS = {"f": "i", "d": "l"}
"""Integers that hold the bits of floats, where they are only moved."""

_CELLS = {"i": ("i", 1), "f": ("f", 1), "l": ("q", 2), "d": ("d", 2)}
"""Code of the view of each register type, and how many cells a register of it takes."""


def views(memory: memoryview) -> dict[str, Any]:
    """Views of a memory by register type."""
    return {
        kind: memory.cast(code)  # type: ignore[call-overload]
        for kind, (code, _) in _CELLS.items()
    }


def size_of(kind: str) -> int:
    """Bytes of a number of a register type."""
    return 4 * _CELLS[kind][1]


class Registers:
    """The registers of one activation.

    Attributes:
        banks: cells by register type.
        references: registers that are references.
        results: what the function returned.
    """

    def __init__(self, descriptor: FunctionDescriptor) -> None:
        cells = 1 << max(descriptor.i32_register_count, 2).bit_length()
        self.cells = memoryview(bytearray(4 * cells))
        self.zeros = bytes(4 * cells)
        self.banks = views(self.cells)
        count = 1 << max(descriptor.ref_register_count - 1, 0).bit_length()
        self.references: list[Any] = [None] * count
        self.results: tuple[Any, ...] = ()

    def clear(self) -> None:
        """Make the registers what they are before a call."""
        self.cells[:] = self.zeros
        self.references[:] = [None] * len(self.references)
        self.results = ()

    def bank(self, kind: str, register: int) -> tuple[Any, int]:
        """Memory of a register and its index in it."""
        if kind == "r":
            return self.references, register & ORDINAL
        return self.banks[kind], register // _CELLS[kind][1]

    def reader(self, kind: str, register: int) -> Callable[[], Any]:
        """What reads a register; a reference that moves leaves null behind."""
        bank, index = self.bank(kind, register)
        if kind != "r" or not register & MOVE_BIT:
            return lambda: bank[index]

        def move() -> Any:
            value, bank[index] = bank[index], None
            return value

        return move
