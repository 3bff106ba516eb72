"""Narrow-to-wide unit: packs words of narrow memory into rows of wide memory.

A row is written when 64 words are gathered or when a block of the instruction's ``row_loop`` ends.
A transposing instruction turns each block of 4 x 4 bytes (or 2 x 2 halves of 16 bits) on its way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.kernel import state, sync, traversal
from darwinn_sim.kernel.compiled import Record, copy, inner

BESIDES = (("shares_double_buffer", "i8"),)
"""What a record has besides the fields; 1 if a watcher waits for the ring producer."""


def derive(records: NDArray[np.void]) -> None:
    """Fill in what follows from the fields."""
    # A transposing read has its short side in loop 0, so the alternate limit is that of loop 1.
    records["narrow_read"]["alternate_target"] = records["transpose"]
    records["shares_double_buffer"] = sync.watching(records, TileFlag.RING_BUS_WRITE).any(axis=1)


@inner
def start(tile: Record, unit: Record, parameters: Record) -> None:
    """Begin an instruction."""
    traversal.start(unit.first, parameters.narrow_read)
    traversal.start(unit.second, parameters.wide_write)
    if unit.base >= 0:
        unit.first.address = unit.base
    if parameters.shares_double_buffer:
        unit.second.second ^= tile.wide_write_second


@inner
def advance(core: Record, tile: Record, unit: Record, parameters: Record) -> bool:
    """Gather and write rows until a watcher blocks or the instruction ends; True if any moved."""
    moved = False
    read = unit.first
    while True:
        if not unit.row_closed:
            if read.done:
                break
            if not sync.passes_side(parameters.watchers, unit.waited, tile.flags, read.begins, 0):
                return moved
            _gather(core, tile, unit, parameters)
            moved = True
        if unit.row_closed:
            if not sync.passes_side(
                parameters.watchers, unit.waited, tile.flags, unit.second.begins, 1
            ):
                return moved
            _write_row(core, tile, unit, parameters)
            moved = True
        if state.paused(core):
            return moved
    if parameters.shares_double_buffer:
        tile.wide_write_second = unit.second.second ^ parameters.wide_write.double_start
    if not unit.second.done:
        state.fail(core, state.FAULT_ROW_COUNT, parameters.pc, tile.number, 0)
    unit.current = state.IDLE
    return True


@inner
def _gather(core: Record, tile: Record, unit: Record, parameters: Record) -> None:
    read = unit.first
    address = traversal.address(read, parameters.narrow_read) & 0xFFFF
    if 4 * address >= chip.NARROW_BYTES:
        state.fail(core, state.FAULT_NARROW_ADDRESS, parameters.pc, tile.number, 4 * address)
        return
    words = unit.row.words
    unit.row.data[words] = tile.narrow[address]
    unit.row.written[words] = tile.narrow_written[address]
    unit.row.words = words + 1
    core.work += 1
    ended = traversal.step(read, parameters.narrow_read)
    if words + 1 == chip.ROW_WORDS or (ended >> parameters.row_loop) & 1 or read.done:
        unit.row_closed = 1


@inner
def _write_row(core: Record, tile: Record, unit: Record, parameters: Record) -> None:
    write = unit.second
    if write.done:
        state.fail(core, state.FAULT_ROW_COUNT, parameters.pc, tile.number, 0)
        return
    row = traversal.address(write, parameters.wide_write)
    if row < 0 or row >= chip.WIDE_ROWS:
        state.fail(core, state.FAULT_WIDE_ADDRESS, parameters.pc, tile.number, row)
        return
    words = unit.row.words
    if parameters.transpose:
        block = 2 if parameters.transpose_16bit else 4
        words = (words + block - 1) // block * block
        # An unfinished block is filled up with zeros: a maximum over its bytes relies on them.
        unit.row.data[unit.row.words : words] = 0
        unit.row.written[unit.row.words : words] = state.WRITTEN
        transpose(unit.row.data, words, block)
        transpose(unit.row.written, words, block)
    base = row * chip.ROW_WORDS
    copy(tile.wide, base, unit.row.data, 0, words)
    copy(tile.wide_written, base, unit.row.written, 0, words)
    ended = traversal.step(write, parameters.wide_write)
    tile.flags[TileFlag.NARROW_TO_WIDE_WRITE] += sync.produce(parameters.producer, ended)
    unit.row.words = 0
    unit.row_closed = 0


@inner
def transpose(data: NDArray[np.uint32], words: int, block: int) -> None:
    """Turn each group of ``block`` words: element j of word i becomes element i of word j."""
    if block == 4:
        octets = data.view(np.uint8)
        for group in range(0, 4 * words, 16):
            for i in range(4):
                for j in range(i):
                    a, b = group + 4 * i + j, group + 4 * j + i
                    octets[a], octets[b] = octets[b], octets[a]
    else:
        halves = data.view(np.uint16)
        for group in range(0, 2 * words, 4):
            halves[group + 1], halves[group + 2] = halves[group + 2], halves[group + 1]
