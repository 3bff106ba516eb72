"""Tile fences: hold a tile's later instructions back until its units are idle, and load flags."""

from __future__ import annotations

from darwinn_sim import chip
from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.kernel import state, sync
from darwinn_sim.kernel.compiled import Record, inner

RING_CHANNELS = 2
"""Bits of the field ``producer_count_valid``: one for each channel of the ring."""


@inner
def reached(tile: Record, parameters: Record) -> bool:
    """Execute the fence if what it awaits has come about; True if it was executed.

    That is: the units that it names are idle, and the tokens of the ring producers that it counts
    (flags 17 and 18) are as many as it says, neither fewer nor more.
    """
    for number in range(chip.TILE_UNITS):
        if (parameters.wait_idle >> number) & 1 and not state.idle(tile.units[number]):
            return False
    for channel in range(RING_CHANNELS):
        if (parameters.producer_count_valid >> channel) & 1:
            tokens = tile.flags[TileFlag.RING_PRODUCER_A + channel]
            if (tokens - parameters.producer_count) & sync.FLAG_MASK:
                return False
    for flag in range(chip.TILE_FLAGS):
        if (parameters.reset_flags >> flag) & 1:
            tile.flags[flag] = parameters.reset_value
    # The two units that share a double buffer count its sides by these flags.
    if (parameters.reset_flags >> TileFlag.NARROW_TO_WIDE_WRITE) & 1:
        tile.wide_write_second = 0
    if (parameters.reset_flags >> TileFlag.RING_BUS_WRITE) & 1:
        tile.ring_read_second = 0
    tile.fence_count += parameters.increment
    return True
