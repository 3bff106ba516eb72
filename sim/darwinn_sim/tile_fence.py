"""Tile fences: hold a tile's later instructions back until its units are idle, and load flags."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip, state, sync
from darwinn_sim.compiled import Record, inner
from darwinn_sim.isa.codec import Columns

PARAMETERS = np.dtype(
    [
        ("pc", "i8"),
        ("wait_idle", "i8"),
        ("reset_flags", "i8"),
        ("reset_value", "i8"),
        ("increment", "i8"),
    ]
)


def lower(columns: Columns, rows: int) -> NDArray[np.void]:
    """Decoded TileFence instructions as an array of ``PARAMETERS``."""
    out = np.zeros(rows, PARAMETERS)
    for name in ("wait_idle", "reset_flags", "reset_value", "increment"):
        out[name] = columns[name]
    return out


@inner
def reached(tile: Record, parameters: Record) -> bool:
    """Execute the fence if the units that it names are idle; True if it was executed."""
    for number in range(state.UNITS):
        if (parameters.wait_idle >> number) & 1 and not state.idle(tile.units[number]):
            return False
    for flag in range(chip.TILE_FLAGS):
        if (parameters.reset_flags >> flag) & 1:
            tile.flags[flag] = parameters.reset_value
    # The two units that share a double buffer count its sides by these flags.
    if (parameters.reset_flags >> sync.WIDE_WRITE) & 1:
        tile.wide_write_second = 0
    if (parameters.reset_flags >> sync.RING_WRITE) & 1:
        tile.ring_read_second = 0
    tile.fence_count += parameters.increment
    return True
