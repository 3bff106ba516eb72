"""What holds the units of a tile back, as each has noted it where it had to stop.

A unit that stands is asked again and again whether it can go on, far more often than it does. These
few words of a tile say that it cannot, without a look at its state and its instruction. Each is
``FREE``, ``SIGNALLED``, or the flag that is waited for, with its count (``sync.obstacle``). A mesh
unit has two: one for each side. So has, behind them, what hands instructions on to the units.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import TileUnit
from darwinn_sim.kernel import state, sync
from darwinn_sim.kernel.compiled import inner

FREE = 0
"""Nothing is known to hold the unit back: it is to be asked."""

SIGNALLED = -1
"""Whoever fills its queue or FIFO, or makes room in that of its neighbour, sets it free."""

DISPATCHER = chip.TILE_UNITS + state.MESH_LINKS
"""Place of what hands instructions on, to units that have room and behind fences on idle ones."""


@inner
def receiver(which: int) -> int:
    """Place of the receiving side of a mesh unit; the sending one has that of the unit."""
    return which + state.MESH_LINKS


@inner
def may_go_on(tile: state.Tile, which: int) -> bool:
    """A unit is to be asked, on one of its sides at least; what has held it back is forgotten."""
    free = is_free(tile.holds, which, tile.flags)
    if which >= TileUnit.MESH_SOUTH:
        free |= is_free(tile.holds, receiver(which), tile.flags)
    return free


@inner
def is_free(held: NDArray[np.int64], place: int, flags: NDArray[np.int64]) -> bool:
    """Nothing holds back who has that place any more; if so, what has is forgotten."""
    hold = held[place]
    if hold == SIGNALLED or not (hold == FREE or sync.is_overcome(hold, flags)):
        return False
    held[place] = FREE
    return True


@inner
def put(tile: state.Tile, which: int, hold: int) -> None:
    """Hold a unit back, or set it free, on all of its sides."""
    tile.holds[which] = hold
    if which >= TileUnit.MESH_SOUTH:
        tile.holds[receiver(which)] = hold
