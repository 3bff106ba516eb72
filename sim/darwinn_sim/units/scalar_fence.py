"""Scalar fences: hold the scalar core back until units are idle and flags are there; load flags."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import ScalarUnit
from darwinn_sim.kernel import clocks, order, state, sync
from darwinn_sim.kernel.compiled import compiled, inner
from darwinn_sim.kernel.instructions import ScalarFence
from darwinn_sim.kernel.structure import Records

_INPUT_UNITS = 1 << ScalarUnit.AV_POP | 1 << ScalarUnit.PARAMETER_POP | 1 << ScalarUnit.RING_INFEED

OPEN = -1
"""Nothing holds the fence back."""

FIRST_FLAG = chip.TILES
FIRST_UNIT = FIRST_FLAG + chip.SCALAR_FLAGS
"""What holds a fence back is a tile, ``FIRST_FLAG`` plus a flag or ``FIRST_UNIT`` plus a unit."""


@inner
def guard(
    fence: ScalarFence, tile_fences: NDArray[np.int64], flags: NDArray[np.int64], idle: int
) -> int:
    """What holds the fence back: a tile that has passed too few fences, a flag, or a unit.

    ``tile_fences`` has the fences that each tile has passed, ``idle`` the units that are (bit u:
    unit u).
    """
    for number in range(chip.TILES):
        waits = (fence.tile_fence_valid >> number) & 1
        if waits and tile_fences[number] < fence.tile_fence_count:
            return number
    for flag in range(chip.SCALAR_FLAGS):
        waits = (fence.expected_valid >> flag) & 1
        if waits and not sync.reached(flags[flag], fence.expected[flag]):
            return FIRST_FLAG + flag
    busy = fence.wait_idle & ~idle
    for unit in range(chip.SCALAR_UNITS):
        if (busy >> unit) & 1:
            return FIRST_UNIT + unit
    return OPEN


@inner
def forgets(fence: ScalarFence, tile: int) -> bool:
    """Passing, the fence has the tile count its fences from 0."""
    return bool((fence.reset_tile_fences >> tile) & 1)


@inner
def loads(fence: ScalarFence, flag: int) -> bool:
    """Passing, the fence loads this flag with its value."""
    return bool((fence.reset_flags >> flag) & 1)


@inner
def reached(core: state.Core, tiles: Records[state.Tile], fence: ScalarFence) -> bool:
    """Execute the fence if nothing holds it back; True if it was executed."""
    if guard(fence, tiles["fence_count"], core.flags, idle_units(core)) != OPEN:
        return False
    orders(core, fence)
    for number in range(chip.TILES):
        if forgets(fence, number):
            tiles[number].fence_count = 0
    for flag in range(chip.SCALAR_FLAGS):
        if loads(fence, flag):
            core.flags[flag] = fence.reset_value
    return True


@compiled
def idle_units(core: state.Core) -> int:
    """The units beside the scalar core that are idle (bit u: unit u)."""
    idle = 0
    for unit in range(state.QUEUED_SCALAR_UNITS):
        idle |= int(state.idle(core.units[unit])) << unit
    # Rows that wait on the ring for a later outfeed do not count: programs send them before a fence
    # on this bit and issue the outfeed after it.
    delivered = int(core.output.length == 0 and not core.output_pending)
    return idle | (delivered & idle >> ScalarUnit.RING_OUTFEED) << ScalarUnit.DRAIN


@order.hook
@inner
def orders(core: order.CheckedCore, fence: ScalarFence) -> None:
    """A fence is executed: what it has waited for is before what follows."""
    known = core.clocks
    clocks.begin(known, clocks.CORE, core.handed.instruction)
    for unit in range(state.QUEUED_SCALAR_UNITS):
        if (fence.wait_idle >> unit) & 1:
            order.learn_all(known, clocks.CORE, clocks.scalar_unit(unit))
    if (fence.wait_idle >> ScalarUnit.DRAIN) & 1:
        order.learn_all(known, clocks.CORE, clocks.scalar_unit(ScalarUnit.RING_OUTFEED))
        known.drained += 1
    if fence.wait_idle & _INPUT_UNITS:
        known.taken += 1
    for number in range(chip.TILES):
        if (fence.tile_fence_valid >> number) & 1:
            flag = clocks.tile_flag(number, chip.TILE_FLAGS)
            beyond = known.flags[flag].count - fence.tile_fence_count
            order.reach(known, clocks.CORE, flag, beyond)
    for flag in range(chip.SCALAR_FLAGS):
        if (fence.expected_valid >> flag) & 1:
            beyond = (core.flags[flag] - fence.expected[flag]) & sync.FLAG_MASK
            order.reach(known, clocks.CORE, clocks.scalar_flag(flag), beyond)
    for number in range(chip.TILES):
        if forgets(fence, number):
            order.load(known, clocks.CORE, clocks.tile_flag(number, chip.TILE_FLAGS), 0)
    for flag in range(chip.SCALAR_FLAGS):
        if loads(fence, flag):
            order.load(known, clocks.CORE, clocks.scalar_flag(flag), fence.reset_value)
