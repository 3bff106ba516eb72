"""The places in a tile's memories that an instruction reads and writes.

They follow from the instruction, so nothing has to be run; an address that a register supplies
counts as the instruction's own. A place is a number: first the words of narrow memory, then the
rows of wide memory, then the scale/bias buffer as one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.isa.codes import TileUnit
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.units import tensor_cells
from darwinn_sim.units.tables import Tables
from numpy.typing import NDArray

Places = NDArray[np.int64]

NARROW_WORDS = chip.NARROW_ADDRESS_BYTES // WORD_BYTES
_SCALES = NARROW_WORDS + chip.WIDE_ROWS
PLACES = _SCALES + 1
"""How many there are."""
MEMORIES = (NARROW_WORDS, _SCALES)
"""Where the second memory begins, and the third."""
_NONE: Places = np.zeros(0, np.int64)


class Touched:
    """The places that an instruction reads and writes, found once for each."""

    def __init__(self, program: LoweredProgram) -> None:
        self._tables = program.tables
        self._found: dict[int, tuple[Places, Places]] = {}

    def by(self, instruction: int) -> tuple[Places, Places]:
        """Sorted places that ``instruction`` reads, and that it writes."""
        if instruction not in self._found:
            self._found[instruction] = self._find(instruction)
        return self._found[instruction]

    def _find(self, instruction: int) -> tuple[Places, Places]:
        tables = self._tables
        find = _FINDERS.get(int(tables.unit[instruction]))
        if find is None or tables.opcode[instruction] == _FUNCTION_TABLE:
            return _NONE, _NONE
        return find(tables, int(tables.row[instruction]))


def written_rows(program: LoweredProgram) -> set[int]:
    """The rows of wide memory that a program writes, in any tile."""
    tables = program.tables
    walks = (*tables.ring_consumer["wide_write"], *tables.narrow_to_wide["wide_write"])
    places = (_walked(walk, chip.WIDE_ROWS).tolist() for walk in walks if walk["loops"])
    return {row for each in places for row in each}


def _narrow(walk: NDArray[np.void]) -> Places:
    return _walked(walk, NARROW_WORDS)


def _wide(walk: NDArray[np.void]) -> Places:
    return _walked(walk, chip.WIDE_ROWS) + NARROW_WORDS


def _walked(walk: NDArray[np.void], size: int) -> Places:
    """The addresses of a traversal (a record of ``traversal.Parameters``) of a memory."""
    addresses = np.array([int(walk["base"])], np.int64)
    for step, limit in zip(walk["step"], walk["limit"], strict=True):
        addresses = np.unique(np.add.outer(addresses, step * np.arange(limit + 1)))
    if walk["double_offset"]:
        addresses = np.unique(np.add.outer(addresses, [0, int(walk["double_offset"])]))
    return np.unique(addresses % size)


def _tensor(tables: Tables, row: int) -> tuple[Places, Places]:
    plan, place = tables.tensor_plan, tables.tensor_plan.place[row]
    if not len(plan.operand):
        raise ValueError("the program was lowered without addresses")
    instruction = tables.tensor[row]
    first, count = int(place["iteration"]), int(place["iterations"])
    operands, granules = (each[first : first + count] for each in (plan.operand, plan.granule))
    if instruction["opcode"] not in _READS_NARROW:
        operands = operands[:0]
    if instruction["opcode"] == tensor_cells.INTERPOLATE:
        # An interpolation has weights in their place.
        granules = granules[:0]
    rows = np.unique(granules.astype(np.int64) // _GRANULES_OF_ROW) % chip.WIDE_ROWS + NARROW_WORDS
    scales = [_SCALES] if instruction["use_scales"] or instruction["apply_bias"] else []
    first, count = int(place["write"]), int(place["writes"])
    reads = np.concatenate([_words(operands), np.sort(rows), np.array(scales, np.int64)])
    return reads, _words(plan.write_address[first : first + count])


def _words(addresses: NDArray[np.signedinteger[Any]]) -> Places:
    """The words in which bytes lie."""
    return np.unique(addresses.astype(np.int64) // WORD_BYTES % NARROW_WORDS)


def _to_wide(tables: Tables, row: int) -> tuple[Places, Places]:
    instruction = tables.narrow_to_wide[row]
    return _narrow(instruction["narrow_read"]), _wide(instruction["wide_write"])


def _to_narrow(tables: Tables, row: int) -> tuple[Places, Places]:
    instruction = tables.wide_to_narrow[row]
    written = (
        np.array([_SCALES]) if instruction["scale_bias"] else _narrow(instruction["narrow_write"])
    )
    return _wide(instruction["wide_read"]), written


def _mesh(tables: Tables, row: int) -> tuple[Places, Places]:
    instruction = tables.mesh[row]
    # A side that is off looks like a walk of one word.
    read, written = instruction["narrow_read"], instruction["narrow_write"]
    sends, receives = not read["off"], not written["off"] or instruction["immediate_valid"]
    return _narrow(read) if sends else _NONE, _narrow(written) if receives else _NONE


def _producer(tables: Tables, row: int) -> tuple[Places, Places]:
    return _wide(tables.ring_producer[row]["wide_read"]), _NONE


def _consumer(tables: Tables, row: int) -> tuple[Places, Places]:
    return _NONE, _wide(tables.ring_consumer[row]["wide_write"])


_GRANULES_OF_ROW = 4
_READS_NARROW = (tensor_cells.MAC, tensor_cells.INTERPOLATE)
_FUNCTION_TABLE = BY_NAME["CoefficientTable"].opcode

_FINDERS: dict[int, Callable[[Tables, int], tuple[Places, Places]]] = {
    TileUnit.TENSOR: _tensor,
    TileUnit.NARROW_TO_WIDE: _to_wide,
    TileUnit.WIDE_TO_NARROW: _to_narrow,
    TileUnit.RING_PRODUCER: _producer,
    TileUnit.RING_CONSUMER_A: _consumer,
    TileUnit.RING_CONSUMER_B: _consumer,
    **dict.fromkeys(range(TileUnit.MESH_SOUTH, len(TileUnit)), _mesh),
}
