"""What holds the units of a tile back, as each has noted it where it had to stop.

A unit that stands would be asked again and again whether it can go on, far more often than it does.
So a tile has a bit for each that is not to be asked (``held``). Whoever fills its queue or FIFO, or
makes room in that of its neighbour, sets it free; so does a flag of the tile that reaches the count
which the unit waits for. A mesh unit has two bits: one for each side. So has, behind them, what
hands instructions on to the units.
"""

from __future__ import annotations

from darwinn_sim import chip
from darwinn_sim.isa.codes import TileUnit
from darwinn_sim.kernel import state, sync
from darwinn_sim.kernel.compiled import inner, part

DISPATCHER = chip.TILE_UNITS + state.MESH_LINKS
"""Place of what hands instructions on, to units that have room and behind fences on idle ones."""


@part
def receiver(which: int) -> int:
    """Place of the receiving side of a mesh unit; the sending one has that of the unit."""
    return which + state.MESH_LINKS


@part
def may_go_on(tile: state.Tile, which: int) -> bool:
    """A unit is to be asked, on one of its sides at least."""
    return (tile.held & _sides(which)) != _sides(which)


@part
def is_free(tile: state.Tile, place: int) -> bool:
    """Nothing is known to hold back who has that place."""
    return (tile.held >> place) & 1 == 0


@part
def hold(tile: state.Tile, place: int) -> None:
    """Do not ask who has that place before somebody sets it free."""
    tile.held |= 1 << place


@part
def free(tile: state.Tile, place: int) -> None:
    """Ask who has that place."""
    tile.held &= ~(1 << place)


@part
def hold_unit(tile: state.Tile, which: int) -> None:
    """Hold a unit back on all of its sides."""
    tile.held |= _sides(which)


@part
def free_unit(tile: state.Tile, which: int) -> None:
    """Set a unit free on all of its sides."""
    tile.held &= ~_sides(which)


@part
def _sides(which: int) -> int:
    return (1 | int(which >= TileUnit.MESH_SOUTH) << state.MESH_LINKS) << which


@inner
def wait(tile: state.Tile, place: int, obstacle: int) -> None:
    """Hold back until a flag has reached its count (``sync.obstacle``)."""
    hold(tile, place)
    tile.obstacles[place] = obstacle
    tile.waiting[sync.flag_of(obstacle)] |= 1 << place


@part
def grow(tile: state.Tile, flag: int, amount: int) -> None:
    """Count on a flag of a tile, and set free who has waited for that."""
    tile.flags[flag] += amount
    if amount and tile.waiting[flag]:
        _tell(tile, flag)


@part
def load(tile: state.Tile, flag: int, value: int) -> None:
    """Give a flag of a tile another value, and set free who has waited for it."""
    tile.flags[flag] = value
    if tile.waiting[flag]:
        _tell(tile, flag)


@inner
def _tell(tile: state.Tile, flag: int) -> None:
    """A flag has changed. Who has been set free otherwise, and waits for another flag by now, is
    judged by that one."""
    for place in range(DISPATCHER):
        waits = (tile.waiting[flag] >> place) & 1
        if waits and sync.is_overcome(tile.obstacles[place], tile.flags):
            tile.waiting[flag] &= ~(1 << place)
            free(tile, place)
