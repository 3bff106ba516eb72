"""A single tile in simulation: its memories as arrays, and instructions, rows and words for it.

The tile is a shared library that Verilator builds and that works in this process; its memories are
NumPy views of the arrays that the RTL works on, so nothing is copied. Narrow memory in block RAM is
an exception: a copy before and behind each run.
"""

from __future__ import annotations

import atexit
import ctypes
import os
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

import numpy as np
from darwinn_sim import chip
from numpy.typing import NDArray

from darwinn_rtl.build import Design, as_asked, library, simulation_argument
from darwinn_rtl.line_coverage import COVERAGE_VARIABLE, keep_library_counts
from darwinn_rtl.parameters import RATIO, harness_sizes

LINKS: Final = 4
CHANNELS: Final = 2


class TileFailure(AssertionError):
    """An assertion of the RTL has failed, or an instruction did not end within its limit."""


class _Row(ctypes.Structure):
    """A row as ``tile_bench.cpp`` has it."""

    _fields_ = (
        ("targets", ctypes.c_uint32),
        ("channel", ctypes.c_uint32),
        ("token", ctypes.c_uint32),
        ("words", ctypes.c_uint32),
        ("data", ctypes.c_uint32 * chip.ROW_WORDS),
    )


@dataclass(frozen=True)
class RingRow:
    """A row on the ring bus: 32-bit words, its channel (0 A, 1 B), the set of its targets (bit 16
    the outfeed), and whether a token goes with it."""

    words: tuple[int, ...]
    channel: int = 0
    targets: int = 0
    token: bool = False


def design(memory_clock_ratio: int | None = None) -> Design:
    """The tile with its C++ side; with a ratio of more than 1 its memories are block RAM.

    Without one it is that of the environment, or of the description.
    """
    asked = as_asked(Design("tile"))
    sizes = {**harness_sizes(), **asked.sizes}
    ratio = memory_clock_ratio or sizes[RATIO]
    memories = "tile_arrays.cpp" if ratio == 1 else "tile_banks.cpp"
    return Design("tile", c_sources=("tile_bench.cpp", memories), sizes={RATIO: ratio})


@cache
def _library(chosen: Design) -> ctypes.CDLL:
    opened = ctypes.CDLL(str(library(chosen)))
    handle, word, wide = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
    signatures = {
        "tile_new": (handle, word, ctypes.c_char_p, word),
        "tile_delete": (None, handle),
        "tile_reset": (None, handle),
        "tile_write_coverage": (None, handle, ctypes.c_char_p),
        "tile_narrow": (handle, handle),
        "tile_wide": (handle, handle),
        "tile_scale_bias": (handle, handle),
        "tile_flags": (handle, handle),
        "tile_stall": (None, handle, wide, word),
        "tile_give": (None, handle, handle, word, ctypes.c_int64),
        "tile_send_word": (None, handle, word, word),
        "tile_send_row": (None, handle, handle),
        "tile_run": (wide, handle, wide),
        "tile_units_idle": (word, handle),
        "tile_idle": (word, handle),
        "tile_fences": (word, handle),
        "tile_failure": (ctypes.c_char_p, handle),
        "tile_rows_out": (word, handle),
        "tile_row_out": (ctypes.POINTER(_Row), handle),
        "tile_words_out": (word, handle, word),
        "tile_word_out": (ctypes.POINTER(word), handle, word),
        "tile_words_left": (word, handle, word),
        "tile_rows_left": (word, handle, word),
    }
    for name, (result, *arguments) in signatures.items():
        function = getattr(opened, name)
        function.restype, function.argtypes = result, arguments
    return opened


class TileBench:
    """A tile after reset.

    ``narrow`` (uint8, one a byte), ``wide`` and ``scale_bias`` (uint32) and ``flags`` (uint16) are
    the tile's own memories; write them only while the tile executes nothing. ``seed`` decides their
    first contents, and those of all state without a reset. With a ``memory_clock_ratio`` of more
    than 1 narrow and wide memory are block RAM; ``chosen`` is a design of one's own in its place.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        memory_clock_ratio: int | None = None,
        chosen: Design | None = None,
    ) -> None:
        chosen = chosen or design(memory_clock_ratio)
        self._library = _library(chosen)
        argument = simulation_argument().encode()
        self._tile = self._library.tile_new(seed % (1 << 32), argument, chosen.sizes[RATIO])
        if COVERAGE_VARIABLE in os.environ:
            atexit.register(self._keep_counts)
        self.narrow = self._view("narrow", chip.NARROW_BYTES)
        self.wide = self._view("wide", chip.WIDE_ROWS * chip.ROW_BYTES).view(np.uint32)
        self.scale_bias = self._view("scale_bias", 4 * chip.SCALE_BIAS_WORDS).view(np.uint32)
        self.flags = self._view("flags", 2 * chip.TILE_FLAGS).view(np.uint16)

    def _view(self, memory: str, size: int) -> NDArray[np.uint8]:
        address = getattr(self._library, f"tile_{memory}")(self._tile)
        octets = (ctypes.c_uint8 * size).from_address(address)
        return np.frombuffer(memoryview(octets), np.uint8)

    def _keep_counts(self) -> None:
        keep_library_counts(partial(self._library.tile_write_coverage, self._tile), "tile")

    def close(self) -> None:
        """Free the tile's memory; do not use its arrays afterwards."""
        atexit.unregister(self._keep_counts)
        self._library.tile_delete(self._tile)

    def reset(self) -> None:
        """Reset the tile and drop pending rows and words; memories keep their contents."""
        self._library.tile_reset(self._tile)

    def stall(self, seed: int, share: int) -> None:
        """Let ``share`` of 256 transfers with the ring and the mesh wait, chosen by ``seed``."""
        self._library.tile_stall(self._tile, seed, share)

    def give(self, instruction: bytes, base: int | None = None) -> None:
        """Put an encoded instruction into the tile's queue; ``base`` replaces its base address."""
        words = np.frombuffer(instruction, "<u4")
        pointer = words.ctypes.data_as(ctypes.c_void_p)
        self._library.tile_give(self._tile, pointer, len(words), -1 if base is None else base)

    def send_word(self, link: int, word: int) -> None:
        """A word that arrives over the mesh on link 0 to 3 (south, west, north, east)."""
        self._library.tile_send_word(self._tile, link, word)

    def send_row(self, row: RingRow) -> None:
        """A row that arrives over the ring; its targets are ignored."""
        data = (ctypes.c_uint32 * chip.ROW_WORDS)(*row.words)
        record = _Row(0, row.channel, row.token, len(row.words), data)
        self._library.tile_send_row(self._tile, ctypes.addressof(record))

    def run(self, limit: int) -> int:
        """Run until the tile is idle, for at most ``limit`` cycles; return the number of cycles.

        Raises ``TileFailure`` if an assertion of the RTL fails.
        """
        cycles: int = self._library.tile_run(self._tile, limit)
        failure = self._library.tile_failure(self._tile)
        if failure:
            raise TileFailure(failure.decode())
        return cycles

    @property
    def idle(self) -> bool:
        """True if no instruction is queued or executed."""
        return bool(self._library.tile_idle(self._tile))

    @property
    def units_idle(self) -> int:
        """One bit for each unit, in the order of ``TileFence.wait_idle``: it has no work."""
        return int(self._library.tile_units_idle(self._tile))

    @property
    def fences(self) -> int:
        """Tile fences with ``increment`` that were passed."""
        return int(self._library.tile_fences(self._tile))

    def words_out(self, link: int) -> list[int]:
        """Words that the tile has sent over the mesh."""
        count = self._library.tile_words_out(self._tile, link)
        return list(self._library.tile_word_out(self._tile, link)[:count])

    def words_left(self, link: int) -> int:
        """Words that were sent to the tile and that it has not taken."""
        return int(self._library.tile_words_left(self._tile, link))

    def rows_left(self, channel: int) -> int:
        """Rows that were sent to the tile and that it has not taken."""
        return int(self._library.tile_rows_left(self._tile, channel))

    def rows_out(self) -> list[RingRow]:
        """Rows that the tile has sent over the ring.

        Raises:
            TileFailure: one says that it has more words than there are.
        """
        count = self._library.tile_rows_out(self._tile)
        return [_ring_row(row) for row in self._library.tile_row_out(self._tile)[:count]]


def _ring_row(row: _Row) -> RingRow:
    if row.words > chip.ROW_WORDS:
        raise TileFailure(f"a row of {row.words} words")
    return RingRow(tuple(row.data[: row.words]), row.channel, row.targets, bool(row.token))
