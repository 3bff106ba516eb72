"""A recording of what driver and scalar core do to a chip: its player is ``plain_player.v``.

A recording is a file with a line for each operation, which says in which cycle Verilator was done
with it, and images of host memory before and after each run.
"""

from __future__ import annotations

import ctypes
import zlib
from enum import IntEnum
from pathlib import Path
from typing import TextIO

import numpy as np

from darwinn_rtl.build import Design
from darwinn_rtl.chip.player import ChipPlayer

PROGRAM = "program.txt"

_FENCE = 1 << 4
"""The bit above a descriptor's tag."""


class Operation(IntEnum):
    """The first field of a line; ``plain_player.v`` has the same names."""

    RESET = 0
    WRITE = 1
    READ = 2
    CHUNK = 3
    FETCH = 4
    HAND_OVER = 5
    DESCRIPTOR = 6
    PUSH = 7
    SETTLE = 8
    SCALAR_WORD = 9
    FORGET = 10
    MAP = 11
    LOAD = 12
    COMPARE = 13
    RUN = 14


class RecordingPlayer(ChipPlayer):
    """A chip in RTL that writes down what is done to it, into ``folder``, which exists.

    ``memory_bytes`` and ``regions`` are the most that host memory had at a time.
    """

    def __init__(self, folder: Path, seed: int = 0, chosen: Design | None = None) -> None:
        self._folder = folder
        self._file: TextIO = (folder / PROGRAM).open("w")
        self._regions: list[tuple[int, int, int]] = []
        self._is_shown = True
        self._images = 0
        self.memory_bytes = self.regions = 0
        super().__init__(seed, chosen)
        self._words = self.scalar_memory.copy()
        self._line(Operation.RESET)

    @property
    def files(self) -> list[Path]:
        """The files of the recording."""
        images = (self._folder / f"memory_{number}.hex" for number in range(self._images))
        return [self._folder / PROGRAM, *images]

    def close(self) -> None:
        """Free the memory of the simulation, and complete the recording."""
        super().close()
        self._file.close()

    def reset(self) -> None:
        """Reset the chip; memories keep their contents."""
        super().reset()
        self._line(Operation.RESET)

    def unmap_all(self) -> None:
        """Forget all host memory."""
        super().unmap_all()
        self._regions = []
        self._is_shown = True
        self._line(Operation.FORGET)

    def map(self, address: int, place: int, size: int) -> None:
        """Let ``size`` bytes of this process be those from a bus address on."""
        super().map(address, place, size)
        before = sum(region[2] for region in self._regions)
        self._regions.append((address, place, size))
        self._is_shown = False
        self._line(Operation.MAP, address, size, before)
        self.regions = max(self.regions, len(self._regions))
        self.memory_bytes = max(self.memory_bytes, before + size)

    def write_register(self, offset: int, value: int) -> None:
        """Write a register of 64 bits, as the host does."""
        self._show_memory()
        super().write_register(offset, value)
        self._done(Operation.WRITE, offset, value)

    def read_register(self, offset: int) -> int:
        """The value of a register of 64 bits, as the host reads it."""
        value = super().read_register(offset)
        self._done(Operation.READ, offset, value)
        return value

    def take_chunk(self) -> int:
        """Request the next chunk of the instruction queue; return its size in bytes."""
        size = super().take_chunk()
        self._done(Operation.CHUNK, size)
        return size

    def fetch(self, size: int) -> bytes:
        """The next ``size`` bytes of the instruction stream."""
        data = super().fetch(size)
        self._done(Operation.FETCH, size, zlib.adler32(data))
        return data

    def hand_over(self, name: str, bits: bytes, tiles: int = 0, base: int | None = None) -> None:
        """Give an instruction (its bundles) to its unit, or to the set ``tiles``."""
        self._core_wrote()
        super().hand_over(name, bits, tiles, base)
        self._done(Operation.HAND_OVER, tiles, base is not None, base or 0, bits=bits)

    def descriptor(self, tag: int, address: int, size: int, *, fence: bool = False) -> None:
        """Give a descriptor, or a fence, to the DMA engine."""
        self._core_wrote()
        self._show_memory()
        super().descriptor(tag, address, size, fence=fence)
        self._done(Operation.DESCRIPTOR, tag | (_FENCE if fence else 0), size, address)

    def push(self, word: int) -> None:
        """Send a word of the scalar core to the host."""
        self._core_wrote()
        super().push(word)
        self._done(Operation.PUSH, word)

    def settle(self) -> None:
        """Wait until all units are idle, and outputs and interrupts have left."""
        super().settle()
        self._done(Operation.SETTLE)
        if self._regions:
            self._note_memory(Operation.COMPARE)

    def run(self, cycles: int) -> None:
        """Run for so many cycles, whatever happens in them."""
        super().run(cycles)
        self._done(Operation.RUN)

    def _show_memory(self) -> None:
        """Record what the host has mapped, before the chip can look at it."""
        if not self._is_shown:
            self._note_memory(Operation.LOAD)
            self._is_shown = True

    def _note_memory(self, operation: Operation) -> None:
        image = b"".join(ctypes.string_at(place, size) for _, place, size in self._regions)
        (self._folder / f"memory_{self._images}.hex").write_text(image.hex("\n") + "\n")
        self._line(operation, self._images, len(image))
        self._images += 1

    def _core_wrote(self) -> None:
        """Show the words of scalar memory that the scalar core has written since the last
        operation."""
        for index in np.flatnonzero(self.scalar_memory != self._words):
            self._line(Operation.SCALAR_WORD, int(index), int(self.scalar_memory[index]))

    def _done(self, operation: Operation, *numbers: int, bits: bytes = b"") -> None:
        """Note an operation that has taken its time; units may have written scalar memory."""
        self._words = self.scalar_memory.copy()
        self._line(operation, *numbers, bits=bits)

    def _line(self, operation: Operation, *numbers: int, bits: bytes = b"") -> None:
        first, second, third = (*numbers, 0, 0, 0)[:3]
        fields = (operation, first, second, third, int.from_bytes(bits, "little"), self.cycle)
        self._file.write(" ".join(f"{int(field):x}" for field in fields) + "\n")
