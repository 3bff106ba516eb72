"""Scalar fences: hold the scalar core back until units are idle and flags are there; load flags."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import ScalarUnit
from darwinn_sim.kernel import state, sync
from darwinn_sim.kernel.compiled import Record, compiled, inner


@inner
def reached(core: Record, tiles: NDArray[np.void], fence: Record) -> bool:
    """Execute the fence if what it awaits has come about; True if it was executed."""
    for number in range(chip.TILES):
        waits = (fence.tile_fence_valid >> number) & 1
        if waits and tiles[number].fence_count < fence.tile_fence_count:
            return False
    for flag in range(chip.SCALAR_FLAGS):
        waits = (fence.expected_valid >> flag) & 1
        if waits and not sync.reached(core.flags[flag], fence.expected[flag]):
            return False
    if not are_idle(core, fence.wait_idle):
        return False
    for number in range(chip.TILES):
        if (fence.reset_tile_fences >> number) & 1:
            tiles[number].fence_count = 0
    for flag in range(chip.SCALAR_FLAGS):
        if (fence.reset_flags >> flag) & 1:
            core.flags[flag] = fence.reset_value
    return True


@compiled
def are_idle(core: Record, units: int) -> bool:
    """True if the scalar units of a ScalarFence.wait_idle mask are idle."""
    for unit in range(state.QUEUED_SCALAR_UNITS):
        if (units >> unit) & 1 and not state.idle(core.units[unit]):
            return False
    # Rows that wait on the ring for a later outfeed do not count: programs send them before a fence
    # on this bit and issue the outfeed after it.
    delivered = core.output.length == 0 and not core.output_pending
    outfeed_idle = state.idle(core.units[ScalarUnit.RING_OUTFEED])
    return not (units >> ScalarUnit.DRAIN) & 1 or (outfeed_idle and delivered)
