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
from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.kernel import state, sync, traversal
from darwinn_sim.kernel.compiled import Record, copy, inner
from darwinn_sim.units import narrow_to_wide

_BLOCK = 4
"""Bytes of the sides of a block that is transposed."""

_SCALE_STEPS = chip.SCALE_BIAS_WORDS // 2


def derive(records: NDArray[np.void]) -> None:
    """Fill in what follows from the fields."""
    # As in narrow-to-wide: the short side of a block is loop 0.
    records["narrow_write"]["alternate_target"] = records["transpose"]


@inner
def start(tile: Record, unit: Record, parameters: Record) -> None:
    """Begin an instruction. The half of the scale/bias buffer follows the blocks counted so far."""
    traversal.start(unit.first, parameters.wide_read)
    traversal.start(unit.second, parameters.narrow_write)
    if parameters.scale_bias:
        unit.second.second = tile.flags[TileFlag.WIDE_TO_SCALING] & 1
    unit.position = chip.ROW_WORDS


@inner
def advance(core: Record, tile: Record, unit: Record, parameters: Record) -> bool:
    """Move words until a watcher blocks or the instruction ends; True if any word moved."""
    moved = False
    write = unit.second
    while not write.done:
        if state.paused(core):
            return moved
        if not unit.second_ready:
            if traversal.waits_here(write) and not sync.passes_side(
                parameters.watchers, unit.waited, tile.flags, write.begins, 1
            ):
                return moved
            unit.second_ready = 1
        if unit.position >= chip.ROW_WORDS and not _read_row(core, tile, unit, parameters):
            return moved
        _write_word(core, tile, unit, parameters)
        core.work += 1
        if core.fault:
            return moved
        in_prologue = write.prologue_left > 0
        ended = traversal.step(write, parameters.narrow_write)
        unit.second_ready = 0
        moved = True
        if in_prologue:
            continue
        flag = TileFlag.WIDE_TO_SCALING if parameters.scale_bias else TileFlag.WIDE_TO_NARROW_WRITE
        tile.flags[flag] += sync.produce(parameters.producer, ended)
        if (ended >> parameters.row_loop) & 1:
            unit.position = chip.ROW_WORDS
    if not unit.first.done:
        state.fail(core, state.FAULT_WORD_COUNT, parameters.pc, tile.number, 0)
    unit.current = state.IDLE
    return True


@inner
def _read_row(core: Record, tile: Record, unit: Record, parameters: Record) -> bool:
    read = unit.first
    if read.done:
        state.fail(core, state.FAULT_WORD_COUNT, parameters.pc, tile.number, 0)
        return False
    if not sync.passes_side(parameters.watchers, unit.waited, tile.flags, read.begins, 0):
        return False
    row = traversal.address(read, parameters.wide_read)
    if row < 0 or row >= chip.WIDE_ROWS:
        state.fail(core, state.FAULT_WIDE_ADDRESS, parameters.pc, tile.number, row)
        return False
    base = row * chip.ROW_WORDS
    copy(unit.row.data, 0, tile.wide, base, chip.ROW_WORDS)
    copy(unit.row.written, 0, tile.wide_written, base, chip.ROW_WORDS)
    if parameters.transpose:
        narrow_to_wide.transpose(unit.row.data, chip.ROW_WORDS, _BLOCK)
        narrow_to_wide.transpose(unit.row.written, chip.ROW_WORDS, _BLOCK)
    traversal.step(read, parameters.wide_read)
    unit.position = 0
    return True


@inner
def _write_word(core: Record, tile: Record, unit: Record, parameters: Record) -> None:
    address = traversal.address(unit.second, parameters.narrow_write)
    if parameters.scale_bias:
        if address < 0 or address >= _SCALE_STEPS:
            state.fail(core, state.FAULT_SCALE_BIAS_ADDRESS, parameters.pc, tile.number, address)
            return
        for k in range(2):
            tile.scale_bias[2 * address + k] = unit.row.data[unit.position + k]
            tile.scale_bias_written[2 * address + k] = unit.row.written[unit.position + k]
        unit.position += 2
        return
    address &= 0xFFFF
    if 4 * address >= chip.NARROW_BYTES:
        state.fail(core, state.FAULT_NARROW_ADDRESS, parameters.pc, tile.number, 4 * address)
        return
    tile.narrow[address] = unit.row.data[unit.position]
    tile.narrow_written[address] = unit.row.written[unit.position]
    unit.position += 1
