"""Constants of the Beagle chip, each with where it comes from (docs/chip-facts.md).

The SystemVerilog has them as ``chip_pkg``, which is generated from here when a design is built.
"""

from __future__ import annotations

from typing import Final

from darwinn_sim.isa.codes import ScalarFlag, ScalarUnit, TileFlag, TileUnit

TILES: Final = 16
"""Tiles, in a 4 x 4 grid: tile = 4 * row + column (driver's chip structures)."""

GRID: Final = 4
"""Rows and columns of the tile grid."""

LANES: Final = 64
"""Cells of a tile's tensor unit, and words of a wide-memory row (driver's chip structures)."""

NARROW_BYTES: Final = 196_608
"""Bytes of narrow memory per tile (driver's chip structures)."""

NARROW_ADDRESS_BYTES: Final = 262_144
"""Bytes that an 18-bit narrow byte address, or a 16-bit word address, reaches."""

WIDE_ROWS: Final = 2080
"""Rows of wide memory per tile: the largest row in public programs is 2079."""

ROW_WORDS: Final = 64
"""32-bit words of a wide-memory row and of a full ring row."""

WORD_BYTES: Final = 4
"""Bytes of a word of a wide-memory row, and of narrow memory."""

ROW_BYTES: Final = WORD_BYTES * ROW_WORDS
"""Bytes of a wide-memory row."""

TILE_FLAGS: Final = len(TileFlag)
SCALAR_FLAGS: Final = len(ScalarFlag)
"""Sync flags of a tile, and of the scalar core."""

TILE_UNITS: Final = len(TileUnit)
SCALAR_UNITS: Final = len(ScalarUnit)
"""Units of a tile, and beside the scalar core, that a fence can wait for."""

SCALAR_REGISTERS: Final = 32
PREDICATES: Final = 8

SCALAR_MEMORY_WORDS: Final = 4096
"""32-bit words of scalar memory."""

PROGRAM_BUNDLES: Final = 16_384
"""Bundles of program memory: the program counter has 14 bits."""

ACTIVATION_UNIT_BYTES: Final = 8
ACTIVATION_UNITS: Final = 32_768
"""The activation buffer is a ring of 2 x 16,384 units of 8 bytes."""

PARAMETER_UNIT_BYTES: Final = 64
PARAMETER_UNITS: Final = 2048
"""The parameter buffer is a ring of 2 x 1,024 units of 64 bytes."""

SCALE_BIAS_WORDS: Final = 256
"""Scale/bias buffer of a tile: 2 halves of 64 scales, then 2 halves of 64 biases."""

TABLE_SEGMENTS: Final = 8
TABLE_COEFFICIENTS: Final = 5

RING_FIFO_ROWS: Final = 4
"""Rows that a ring consumer holds; results do not depend on it (docs/chip-facts.md)."""

MESH_FIFO_WORDS: Final = 4
"""Words that a mesh link holds, as in the model of time; results do not depend on it
(docs/chip-facts.md)."""

UNIT_QUEUE: Final = 16
TILE_QUEUE: Final = 64
"""Instructions that a unit's and a tile's queue hold; results do not depend on them."""

HOST_FIFO_BYTES: Final = 65_536
"""Bytes of the model's input FIFOs and output FIFO."""
