"""Narrow-to-wide unit: packs words of narrow memory into rows of wide memory.

A row is written when 64 words are gathered or when a block of the instruction's ``row_loop`` ends.
A transposing instruction turns each block of 4 x 4 bytes (or 2 x 2 halves of 16 bits) on its way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import TileFlag, TileUnit
from darwinn_sim.kernel import clocks, holds, instructions, numbering, order, state, sync, traversal
from darwinn_sim.kernel.compiled import copy, inner
from darwinn_sim.units import memories


class Parameters(instructions.NarrowToWide):
    """An instruction. ``shares_double_buffer`` is 1 if a watcher waits for the ring producer."""

    shares_double_buffer: int


def derive(records: NDArray[np.void]) -> None:
    """Fill in what follows from the fields."""
    # A transposing read has its short side in loop 0, so the alternate limit is that of loop 1.
    records["narrow_read"]["alternate_target"] = records["transpose"]
    records["shares_double_buffer"] = sync.watching(records, TileFlag.RING_BUS_WRITE).any(axis=1)


FLAG = TileFlag.NARROW_TO_WIDE_WRITE
"""Flag that counts rows."""


@inner
def begin(unit: sync.TwoSided, parameters: Parameters, tile: sync.DoubleBuffered) -> None:
    """Put the traversals of an instruction at their starts."""
    traversal.start(unit.first, parameters.narrow_read)
    traversal.start(unit.second, parameters.wide_write)
    if unit.base >= 0:
        unit.first.address = unit.base
    if parameters.shares_double_buffer:
        unit.second.second ^= tile.wide_write_second


@inner
def end(unit: sync.TwoSided, parameters: Parameters, tile: sync.DoubleBuffered) -> None:
    """Remember the side of the double buffer for the next instruction."""
    if parameters.shares_double_buffer:
        tile.wide_write_second = unit.second.second ^ parameters.wide_write.double_start


@inner
def guard(unit: sync.TwoSided) -> int:
    """Side whose watchers hold the next step back: the write, once a row is closed."""
    return unit.row_closed


@inner
def lacks_place(unit: sync.TwoSided) -> bool:
    """There is a row to write, and no place for it: a fault."""
    return bool(unit.row_closed and unit.second.done)


@inner
def step(unit: sync.TwoSided, parameters: Parameters) -> int:
    """Gather a word, or write the row that is closed; what ``FLAG`` grows by."""
    if unit.row_closed:
        unit.words = 0
        unit.row_closed = 0
        return sync.produce(parameters.producer, traversal.step(unit.second, parameters.wide_write))
    ended = traversal.step(unit.first, parameters.narrow_read)
    unit.words += 1
    if unit.words == chip.ROW_WORDS or (ended >> parameters.row_loop) & 1 or unit.first.done:
        unit.row_closed = 1
    return 0


@inner
def has_ended(unit: sync.TwoSided) -> bool:
    """All words have been gathered, and their rows written."""
    return bool(unit.first.done and not unit.row_closed)


@inner
def advance(core: state.Core, tile: state.Tile, unit: state.Unit, parameters: Parameters) -> bool:
    """Gather and write rows until a watcher blocks or the instruction ends; True if any moved."""
    moved = False
    thread = clocks.unit(tile.number, TileUnit.NARROW_TO_WIDE)
    while not has_ended(unit):
        side = guard(unit)
        obstacle = sync.obstacle_of(unit, parameters.watchers, tile.flags, side)
        if obstacle:
            holds.wait(tile, TileUnit.NARROW_TO_WIDE, obstacle)
            return moved
        order.passes(
            core,
            thread,
            tile.number,
            tile.flags,
            parameters.watchers,
            unit.waited,
            sync.begins(unit, side),
            side,
        )
        if lacks_place(unit):
            state.fail(core, state.FAULT_ROW_COUNT, parameters.pc, tile.number, 0)
        elif unit.row_closed:
            _write_row(core, tile, unit, parameters)
        else:
            _gather(core, tile, unit, parameters)
        moved = True
        if core.fault:
            return moved
        rows = step(unit, parameters)
        order.counts(core, thread, clocks.tile_flag(tile.number, FLAG), rows)
        holds.grow(tile, FLAG, rows)
        if state.paused(core):
            return moved
    end(unit, parameters, tile)
    if not unit.second.done:
        state.fail(core, state.FAULT_ROW_COUNT, parameters.pc, tile.number, 0)
    unit.current = state.IDLE
    return True


@inner
def _gather(core: state.Core, tile: state.Tile, unit: state.Unit, parameters: Parameters) -> None:
    """Copy the next word into the row."""
    address = memories.word_address(unit.first, parameters.narrow_read)
    if memories.lacks_word(address):
        state.fail(core, state.FAULT_NARROW_ADDRESS, parameters.pc, tile.number, 4 * address)
        return
    thread = clocks.unit(tile.number, TileUnit.NARROW_TO_WIDE)
    order.reads(core, thread, clocks.narrow(tile.number, address))
    unit.row.data[unit.words] = tile.narrow[address]
    unit.row.written[unit.words] = tile.narrow_written[address]
    numbering.gathers(core, tile.number, unit.words, address, tile.narrow_written[address])
    core.work += 1


@inner
def _write_row(
    core: state.Core, tile: state.Tile, unit: state.Unit, parameters: Parameters
) -> None:
    """Copy the row to its place."""
    row = traversal.address(unit.second, parameters.wide_write)
    if memories.lacks_row(row):
        state.fail(core, state.FAULT_WIDE_ADDRESS, parameters.pc, tile.number, row)
        return
    words = unit.words
    if parameters.transpose:
        block = 2 if parameters.transpose_16bit else 4
        words = (words + block - 1) // block * block
        # An unfinished block is filled up with zeros: a maximum over its bytes relies on them.
        unit.row.data[unit.words : words] = 0
        unit.row.written[unit.words : words] = state.WRITTEN
        transpose(unit.row.data, words, block)
        transpose(unit.row.written, words, block)
        numbering.turns(core, tile.number, numbering.NARROW_TO_WIDE, words, block)
    base = row * chip.ROW_WORDS
    thread = clocks.unit(tile.number, TileUnit.NARROW_TO_WIDE)
    first = clocks.wide(tile.number, row)
    order.writes_row(core, thread, first, words, tile.wide, base, unit.row.data)
    tile.wide_writes += 1
    copy(tile.wide, base, unit.row.data, 0, words)
    copy(tile.wide_written, base, unit.row.written, 0, words)
    numbering.writes_row(core, tile.number, base, unit.row, words)


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
