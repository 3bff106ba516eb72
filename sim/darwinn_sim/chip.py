"""The chip that this process simulates, as constants of kernels, RTL, compiler and documents.

The values are those of the description that ``chips/selected.py`` chooses, Beagle without a choice.
Kernels are compiled with them, and numba takes a number from a module, not from a record: that is
why they stand here one by one. The SystemVerilog has them as ``chip_pkg``, which is generated from
here when a design is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from darwinn_sim.chips import description
from darwinn_sim.chips.selected import selected
from darwinn_sim.isa.codes import ScalarFlag, ScalarUnit, TileFlag, TileUnit

_SIZES: Final = selected().sizes

GRID_ROWS: Final = _SIZES["grid_rows"]
GRID_COLUMNS: Final = _SIZES["grid_columns"]
"""Rows and columns of the tile grid: tile = GRID_COLUMNS * row + column."""

TILES: Final = selected().tiles
"""Tiles of the grid."""

BEAGLE: Final = "beagle"
_GRID: Final = f"{GRID_ROWS}x{GRID_COLUMNS}"
PROGRAM_NAME: Final = BEAGLE if _GRID == "4x4" else _GRID
"""What executables call a chip with this grid (``Executable.chip``)."""

LANES: Final = _SIZES["lanes"]
"""Cells of a tile's tensor unit, and words of a wide-memory row."""

NARROW_BYTES: Final = _SIZES["narrow_bytes"]
"""Bytes of narrow memory per tile."""

NARROW_ADDRESS_BYTES: Final = 262_144
"""Bytes that an 18-bit narrow byte address, or a 16-bit word address, reaches."""

WIDE_ROWS: Final = _SIZES["wide_rows"]
"""Rows of wide memory per tile."""

ROW_WORDS: Final = _SIZES["row_words"]
"""32-bit words of a wide-memory row and of a full ring row."""

WORD_BYTES: Final = 4
"""Bytes of a word of a wide-memory row, and of narrow memory."""

ROW_BYTES: Final = WORD_BYTES * ROW_WORDS
"""Bytes of a wide-memory row."""

OUTFEED_BIT: Final = description.MOST_TILES
"""Bit of a set of targets, in an instruction, that stands for the ring outfeed."""

TILE_FLAGS: Final = len(TileFlag)
SCALAR_FLAGS: Final = len(ScalarFlag)
"""Sync flags of a tile, and of the scalar core."""

TILE_UNITS: Final = len(TileUnit)
SCALAR_UNITS: Final = len(ScalarUnit)
"""Units of a tile, and beside the scalar core, that a fence can wait for."""

SCALAR_REGISTERS: Final = _SIZES["scalar_registers"]
PREDICATES: Final = _SIZES["predicates"]

SCALAR_MEMORY_WORDS: Final = _SIZES["scalar_memory_words"]
"""32-bit words of scalar memory."""

ACTIVATION_UNIT_BYTES: Final = _SIZES["activation_unit_bytes"]
ACTIVATION_UNITS: Final = _SIZES["activation_units"]
"""The activation buffer is a ring of two halves of such units."""

PARAMETER_UNIT_BYTES: Final = _SIZES["parameter_unit_bytes"]
PARAMETER_UNITS: Final = _SIZES["parameter_units"]
"""The parameter buffer is a ring of two halves of such units."""

SCALE_BIAS_WORDS: Final = _SIZES["scale_bias_words"]
"""Scale/bias buffer of a tile: 2 halves of 64 scales, then 2 halves of 64 biases."""

TABLE_SEGMENTS: Final = _SIZES["table_segments"]
TABLE_COEFFICIENTS: Final = _SIZES["table_coefficients"]

RING_FIFO_ROWS: Final = 4
"""Rows that a ring consumer holds in the functional model; results do not depend on it
(docs/chip-facts.md)."""

MESH_FIFO_WORDS: Final = 4
"""Words that a mesh link holds in the functional model; results do not depend on it
(docs/chip-facts.md)."""

UNIT_QUEUE: Final = description.UNIT_QUEUE
TILE_QUEUE: Final = description.TILE_QUEUE
"""Instructions that a unit's and a tile's queue hold; results do not depend on them."""

HOST_FIFO_BYTES: Final = 65_536
"""Bytes of the model's input FIFOs and output FIFO."""


def constants() -> Mapping[str, int]:
    """The constants by their names: what is compiled into kernels and RTL."""
    return {
        name: value
        for name, value in globals().items()
        if name.isupper() and not name.startswith("_") and isinstance(value, int)
    }
