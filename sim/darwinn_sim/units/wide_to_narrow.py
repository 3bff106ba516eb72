"""Wide-to-narrow unit: spreads rows of wide memory over narrow memory or the scale/bias buffer.

A row is read when the previous one is used up (64 words) or when a block of the instruction's
``row_loop`` has been written; each step of the write traversal takes the next word of the row, or
the next two words for the scale/bias buffer. A tile skips the part of a row that is not its own by
a prologue that points at words which are overwritten later.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import TileFlag, TileUnit
from darwinn_sim.kernel import clocks, holds, numbering, order, shadow, state, sync, traversal
from darwinn_sim.kernel.compiled import copy, inner
from darwinn_sim.kernel.instructions import WideToNarrow
from darwinn_sim.units import memories, narrow_to_wide

_BLOCK = 4
"""Bytes of the sides of a block that is transposed."""


def derive(records: NDArray[np.void]) -> None:
    """Fill in what follows from the fields."""
    # As in narrow-to-wide: the short side of a block is loop 0.
    records["narrow_write"]["alternate_target"] = records["transpose"]


OPEN = -1
"""Nothing holds the next word back."""


@inner
def flag(parameters: WideToNarrow) -> int:
    """Flag that counts what is written."""
    if parameters.scale_bias:
        return TileFlag.WIDE_TO_SCALING
    return TileFlag.WIDE_TO_NARROW_WRITE


@inner
def begin(unit: sync.TwoSided, parameters: WideToNarrow, blocks: int) -> None:
    """Put the traversals of an instruction at their starts; there is no row yet.

    The half of the scale/bias buffer follows the ``blocks`` that flag 12 has counted so far.
    """
    traversal.start(unit.first, parameters.wide_read)
    traversal.start(unit.second, parameters.narrow_write)
    unit.position = chip.ROW_WORDS
    if parameters.scale_bias:
        unit.second.second = blocks & 1


@inner
def guard(unit: sync.TwoSided) -> int:
    """Side whose watchers hold the next word back: first the write, then the read of a row."""
    if not unit.ready and traversal.waits_here(unit.second):
        return 1
    return 0 if unit.position >= chip.ROW_WORDS else OPEN


@inner
def lacks_row(unit: sync.TwoSided, side: int) -> bool:
    """A row is to be read, and there is none: a fault."""
    return bool(side == 0 and unit.first.done)


@inner
def pass_guard(unit: sync.TwoSided, parameters: WideToNarrow, side: int) -> None:
    """The watchers of a side have passed: the word may be written, or the next row is there."""
    if side == 1:
        unit.ready = 1
    else:
        traversal.step(unit.first, parameters.wide_read)
        unit.position = 0


@inner
def step(unit: sync.TwoSided, parameters: WideToNarrow) -> int:
    """Write a word, or two of the scale/bias buffer; what the flag grows by."""
    ended = traversal.step(unit.second, parameters.narrow_write)
    unit.ready = 0
    unit.position += 1 + parameters.scale_bias
    if (ended >> parameters.row_loop) & 1:
        unit.position = chip.ROW_WORDS
    return sync.produce(parameters.producer, ended)


@inner
def advance(core: state.Core, tile: state.Tile, unit: state.Unit, parameters: WideToNarrow) -> bool:
    """Move words until a watcher blocks or the instruction ends; True if any word moved."""
    moved = False
    while not unit.second.done:
        if state.paused(core) or not _is_open(core, tile, unit, parameters):
            return moved
        _write_word(core, tile, unit, parameters)
        core.work += 1
        if core.fault:
            return moved
        order.spreads(core, tile.number, 1 + parameters.scale_bias)
        written = step(unit, parameters)
        thread = clocks.unit(tile.number, TileUnit.WIDE_TO_NARROW)
        order.counts(core, thread, clocks.tile_flag(tile.number, flag(parameters)), written)
        holds.grow(tile, flag(parameters), written)
        moved = True
    if not unit.first.done:
        state.fail(core, state.FAULT_WORD_COUNT, parameters.pc, tile.number, 0)
    unit.current = state.IDLE
    return True


@inner
def _is_open(
    core: state.Core, tile: state.Tile, unit: state.Unit, parameters: WideToNarrow
) -> bool:
    """Pass the guards of the next word, and read its row; False if it has to wait."""
    side = guard(unit)
    while side != OPEN:
        if lacks_row(unit, side):
            state.fail(core, state.FAULT_WORD_COUNT, parameters.pc, tile.number, 0)
            return False
        obstacle = sync.obstacle_of(unit, parameters.watchers, tile.flags, side)
        if obstacle:
            holds.wait(tile, TileUnit.WIDE_TO_NARROW, obstacle)
            return False
        order.passes(
            core,
            clocks.unit(tile.number, TileUnit.WIDE_TO_NARROW),
            tile.number,
            tile.flags,
            parameters.watchers,
            unit.waited,
            sync.begins(unit, side),
            side,
        )
        if side == 0:
            _read_row(core, tile, unit, parameters)
            if core.fault:
                return False
        pass_guard(unit, parameters, side)
        side = guard(unit)
    return True


@inner
def _read_row(
    core: state.Core, tile: state.Tile, unit: state.Unit, parameters: WideToNarrow
) -> None:
    """Copy the next row."""
    row = traversal.address(unit.first, parameters.wide_read)
    if memories.lacks_row(row):
        state.fail(core, state.FAULT_WIDE_ADDRESS, parameters.pc, tile.number, row)
        return
    base = row * chip.ROW_WORDS
    _reads_row(core, tile.number, row, unit, parameters)
    copy(unit.row.data, 0, tile.wide, base, chip.ROW_WORDS)
    copy(unit.row.written, 0, tile.wide_written, base, chip.ROW_WORDS)
    numbering.reads_row(core, tile.number, base, unit.row)
    if parameters.transpose:
        narrow_to_wide.transpose(unit.row.data, chip.ROW_WORDS, _BLOCK)
        narrow_to_wide.transpose(unit.row.written, chip.ROW_WORDS, _BLOCK)
        numbering.turns(core, tile.number, numbering.WIDE_TO_NARROW, chip.ROW_WORDS, _BLOCK)


@inner
def _write_word(
    core: state.Core, tile: state.Tile, unit: state.Unit, parameters: WideToNarrow
) -> None:
    thread = clocks.unit(tile.number, TileUnit.WIDE_TO_NARROW)
    if parameters.scale_bias:
        address = traversal.address(unit.second, parameters.narrow_write)
        if memories.lacks_scales(address):
            state.fail(core, state.FAULT_SCALE_BIAS_ADDRESS, parameters.pc, tile.number, address)
            return
        for k in range(2):
            word = clocks.scale_bias(tile.number, 2 * address + k)
            same = tile.scale_bias[2 * address + k] == unit.row.data[unit.position + k]
            order.writes(core, thread, word, same)
            tile.scale_bias[2 * address + k] = unit.row.data[unit.position + k]
            tile.scale_bias_written[2 * address + k] = unit.row.written[unit.position + k]
            position, written = unit.position + k, unit.row.written[unit.position + k]
            numbering.loads_scales(core, tile.number, 2 * address + k, position, written)
        return
    address = memories.word_address(unit.second, parameters.narrow_write)
    if memories.lacks_word(address):
        state.fail(core, state.FAULT_NARROW_ADDRESS, parameters.pc, tile.number, 4 * address)
        return
    same = tile.narrow[address] == unit.row.data[unit.position]
    order.writes(core, thread, clocks.narrow(tile.number, address), same)
    tile.narrow[address] = unit.row.data[unit.position]
    tile.narrow_written[address] = unit.row.written[unit.position]
    written = unit.row.written[unit.position]
    numbering.spreads(core, tile.number, address, unit.position, written)


@order.hook
@inner
def _reads_row(
    core: order.CheckedCore, number: int, row: int, unit: state.Unit, parameters: WideToNarrow
) -> None:
    """Of a row, what will be taken of it is read: the rest may be anybody's. It is read as soon as
    it is there and its words are not more than ``clocks.AHEAD`` ahead of what has been written.
    """
    walk = core.clocks.walk
    traversal.follow(walk, unit.second)
    words = 0
    while words < chip.ROW_WORDS and not walk.done:
        ended = traversal.step(walk, parameters.narrow_write)
        words += 1 + parameters.scale_bias
        if (ended >> parameters.row_loop) & 1:
            break
    thread = clocks.unit(number, TileUnit.WIDE_TO_NARROW)
    known = core.clocks
    before = known.spread[number] + words - clocks.AHEAD
    clock = int(known.spread_at[number, (before - 1) % clocks.AHEAD]) if before > 0 else 0
    first = clocks.wide(number, row)
    for word in range(first, first + min(words, chip.ROW_WORDS)):
        shadow.read_at(known, thread, word, clock)
