"""Tile fences: hold a tile's later instructions back until its units are idle, and load flags."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import TileFlag, TileUnit
from darwinn_sim.kernel import clocks, holds, order, state, sync
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.instructions import TileFence

RING_CHANNELS = 2
"""Bits of the field ``producer_count_valid``: one for each channel of the ring."""

OPEN = -1
"""Nothing holds the fence back."""

FIRST_CHANNEL = chip.TILE_UNITS
"""What holds a fence back is a unit, or this plus a channel of the ring."""


@inner
def guard(parameters: TileFence, idle: int, flags: NDArray[np.int64]) -> int:
    """What holds the fence back: a unit that is not ``idle`` (bit u: unit u), or a channel.

    Of a channel, the tokens of its ring producers (flag 17 or 18) have to be as many as the fence
    says, neither fewer nor more.
    """
    busy = parameters.wait_idle & ~idle
    for number in range(chip.TILE_UNITS):
        if (busy >> number) & 1:
            return number
    for channel in range(RING_CHANNELS):
        if (parameters.producer_count_valid >> channel) & 1:
            tokens = flags[TileFlag.RING_PRODUCER_A + channel]
            if (tokens - parameters.producer_count) & sync.FLAG_MASK:
                return FIRST_CHANNEL + channel
    return OPEN


@inner
def loads(parameters: TileFence, flag: int) -> bool:
    """Passing, the fence loads this flag with its value; what it counts is its increment."""
    return bool((parameters.reset_flags >> flag) & 1)


@inner
def restart_sides(parameters: TileFence, tile: sync.DoubleBuffered) -> None:
    """The two units that share a double buffer count its sides by flags that the fence may load."""
    if loads(parameters, TileFlag.NARROW_TO_WIDE_WRITE):
        tile.wide_write_second = 0
    if loads(parameters, TileFlag.RING_BUS_WRITE):
        tile.ring_read_second = 0


@inner
def reached(tile: state.Tile, parameters: TileFence) -> bool:
    """Execute the fence if nothing holds it back; True if it was executed."""
    idle = 0
    for number in range(chip.TILE_UNITS):
        idle |= int(state.idle(tile.units[number])) << number
    if guard(parameters, idle, tile.flags) != OPEN:
        return False
    for flag in range(chip.TILE_FLAGS):
        if loads(parameters, flag):
            holds.load(tile, flag, parameters.reset_value)
    restart_sides(parameters, tile)
    tile.fence_count += parameters.increment
    return True


@order.hook
@inner
def orders(core: order.CheckedCore, number: int, parameters: TileFence) -> None:
    """A fence of tile ``number`` was executed: what it has waited for is before what follows."""
    thread = clocks.dispatcher(number)
    for which in range(chip.TILE_UNITS):
        if (parameters.wait_idle >> which) & 1:
            order.learn_all(core.clocks, thread, clocks.unit(number, which))
            if which >= TileUnit.MESH_SOUTH:
                receiver = clocks.receiver(number, which - TileUnit.MESH_SOUTH)
                order.learn_all(core.clocks, thread, receiver)
    for channel in range(RING_CHANNELS):
        if (parameters.producer_count_valid >> channel) & 1:
            flag = clocks.tile_flag(number, TileFlag.RING_PRODUCER_A + channel)
            order.reach(core.clocks, thread, flag, 0)
            core.clocks.flags[flag].exact = clocks.now(core.clocks, thread)
    for flag in range(chip.TILE_FLAGS):
        if loads(parameters, flag):
            order.load(core.clocks, thread, clocks.tile_flag(number, flag), parameters.reset_value)
    order.count(
        core.clocks, thread, clocks.tile_flag(number, chip.TILE_FLAGS), parameters.increment
    )
