"""How much narrow memory holds values that are still needed, over time.

A word is in use from the instruction that writes it to the last one that reads it before it is
written again. The addresses follow from the instructions, so nothing has to be run; one that a
register supplies counts as the instruction's own.
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
from darwinn_sim.timing import Timing
from darwinn_sim.units import tensor_cells
from darwinn_sim.units.tables import Tables
from numpy.typing import NDArray

Words = NDArray[np.int64]
Series = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Cycles, ascending, and the bytes in use from each of them on."""

_WORDS = chip.NARROW_ADDRESS_BYTES // WORD_BYTES
_NEVER = -1


def narrow_bytes_in_use(timing: Timing) -> dict[int, Series]:
    """For each tile that does anything the bytes of its narrow memory in use.

    ``timing`` was simulated with spans.
    """
    touched = _Touched(timing.program)
    spans = timing.spans
    return {
        tile: _in_use(touched, spans[spans["tile"] == tile])
        for tile in np.unique(spans["tile"][spans["tile"] >= 0]).tolist()
    }


def _in_use(touched: _Touched, spans: NDArray[np.void]) -> Series:
    """Begins and ends of every value: written when its writer begins, read until readers end."""
    written = np.full(_WORDS, _NEVER, np.int64)
    read = np.full(_WORDS, _NEVER, np.int64)
    begins: list[NDArray[np.int64]] = []
    ends: list[NDArray[np.int64]] = []

    def retire(words: Words) -> None:
        """Whatever is in ``words`` and was read is not needed any more."""
        needed = words[read[words] != _NEVER]
        begins.append(written[needed])
        ends.append(read[needed])
        written[needed] = read[needed] = _NEVER

    for cycle, is_read, instruction in _accesses(spans):
        reads, writes = touched.by(instruction)
        if is_read:
            used = reads[written[reads] != _NEVER]
            read[used] = cycle
        else:
            retire(writes)
            # A value that nobody has read yet may be a row of a ring of buffers: it stays in use.
            written[writes[written[writes] == _NEVER]] = cycle
    retire(np.arange(_WORDS))
    return _series(np.concatenate(begins), np.concatenate(ends))


def _accesses(spans: NDArray[np.void]) -> list[tuple[int, bool, int]]:
    """Cycle, whether it is the reads, and instruction; at one cycle reads come first."""
    columns = (spans[name].tolist() for name in ("start", "end", "instruction"))
    accesses = [
        access
        for start, end, instruction in zip(*columns, strict=True)
        for access in ((start, False, instruction), (end, True, instruction))
    ]
    return sorted(accesses, key=lambda access: (access[0], not access[1]))


def _series(begins: NDArray[np.int64], ends: NDArray[np.int64]) -> Series:
    times, places = np.unique(np.concatenate([begins, ends]), return_inverse=True)
    changes = np.repeat([WORD_BYTES, -WORD_BYTES], [len(begins), len(ends)])
    steps = np.bincount(places, changes, len(times)).astype(np.int64)
    return times, np.cumsum(steps)


class _Touched:
    """The words of narrow memory that an instruction reads and writes, found once for each."""

    def __init__(self, program: LoweredProgram) -> None:
        self._tables = program.tables
        self._found: dict[int, tuple[Words, Words]] = {}

    def by(self, instruction: int) -> tuple[Words, Words]:
        """Sorted word addresses that ``instruction`` reads, and that it writes."""
        if instruction not in self._found:
            self._found[instruction] = self._find(instruction)
        return self._found[instruction]

    def _find(self, instruction: int) -> tuple[Words, Words]:
        tables = self._tables
        find = _FINDERS.get(int(tables.unit[instruction]))
        if find is None or tables.opcode[instruction] == _FUNCTION_TABLE:
            return _NONE, _NONE
        return find(tables, int(tables.row[instruction]))


_NONE: Words = np.zeros(0, np.int64)


def _walked(walk: NDArray[np.void]) -> Words:
    """The word addresses of a traversal (a record of ``traversal.Parameters``)."""
    if walk["off"]:
        return _NONE
    addresses = np.array([int(walk["base"])], np.int64)
    for step, limit in zip(walk["step"], walk["limit"], strict=True):
        addresses = np.unique(np.add.outer(addresses, step * np.arange(limit + 1)))
    if walk["double_offset"]:
        addresses = np.unique(np.add.outer(addresses, [0, int(walk["double_offset"])]))
    return np.unique(addresses % _WORDS)


def _tensor(tables: Tables, row: int) -> tuple[Words, Words]:
    plan, place = tables.tensor_plan, tables.tensor_plan.place[row]
    first, count = int(place["iteration"]), int(place["iterations"])
    reads = plan.operand[first : first + count]
    if tables.tensor[row]["opcode"] not in _READS_NARROW:
        reads = reads[:0]
    first, count = int(place["write"]), int(place["writes"])
    return _words(reads), _words(plan.write_address[first : first + count])


def _words(addresses: NDArray[np.signedinteger[Any]]) -> Words:
    """The words in which bytes lie."""
    return np.unique(addresses.astype(np.int64) // WORD_BYTES % _WORDS)


def _to_wide(tables: Tables, row: int) -> tuple[Words, Words]:
    return _walked(tables.narrow_to_wide[row]["narrow_read"]), _NONE


def _to_narrow(tables: Tables, row: int) -> tuple[Words, Words]:
    instruction = tables.wide_to_narrow[row]
    if instruction["scale_bias"]:
        return _NONE, _NONE
    return _NONE, _walked(instruction["narrow_write"])


def _mesh(tables: Tables, row: int) -> tuple[Words, Words]:
    instruction = tables.mesh[row]
    return _walked(instruction["narrow_read"]), _walked(instruction["narrow_write"])


_READS_NARROW = (tensor_cells.MAC, tensor_cells.INTERPOLATE)
_FUNCTION_TABLE = BY_NAME["CoefficientTable"].opcode

_FINDERS: dict[int, Callable[[Tables, int], tuple[Words, Words]]] = {
    TileUnit.TENSOR: _tensor,
    TileUnit.NARROW_TO_WIDE: _to_wide,
    TileUnit.WIDE_TO_NARROW: _to_narrow,
    **dict.fromkeys(range(TileUnit.MESH_SOUTH, len(TileUnit)), _mesh),
}
