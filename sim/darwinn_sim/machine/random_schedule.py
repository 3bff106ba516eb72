"""Random legal orders of the units, of which each is another timing that the chip might have.

A program whose flags and fences order what has to be ordered gives the same bytes in all of them
(docs/chip-facts.md, "Order"). Whoever goes on is drawn, and how far: often a few words, sometimes
until something holds it back. Some units are slow: they go on only when no other one of the chip
can; which ones changes now and then. As in ``schedule`` a row goes on the ring only when nothing
else can move; who sends it is drawn. All follows from the seed, on every machine.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from darwinn_sim import chip
from darwinn_sim.isa.codes import ScalarUnit
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import compiled, entry, inner
from darwinn_sim.kernel.structure import Numbers, Record, Records
from darwinn_sim.machine import schedule
from darwinn_sim.units import observation, scalar_core
from darwinn_sim.units.observation import Seen
from darwinn_sim.units.tables import Tables

_DISPATCH = chip.TILE_UNITS
_PLACES = chip.TILE_UNITS + 1
"""Who goes on in a tile: a unit, or what hands instructions to the units. As the count is a prime,
steps of any width but its multiples come past all of them."""

_CORE = chip.TILES
_SCALAR_UNITS = _CORE + 1
_ACTORS = _SCALAR_UNITS + state.QUEUED_SCALAR_UNITS
_ROUND = 23
"""Who goes on: a tile, the scalar core, or a unit beside it; and the next prime."""

_SENDERS = chip.TILES + 1
"""Who sends rows: a tile, or the infeed. A prime, too."""

_ALL_SLOW = (1 << _PLACES) - 1
_COARSEST = 16
"""At most so many bits has the work that a unit does before another one is drawn."""

_FINEST = 3
"""The same of the finest order."""

_RAREST = 12
"""Which units are slow changes at least once in as many draws (in bits)."""

_SHORTEST_TURN, _LONGEST_TURN = 8, 20
"""Bits of the work between two turns of the host."""

_LEAST_HOST_BYTES = chip.ACTIVATION_UNIT_BYTES
_HOST_BITS = (chip.HOST_FIFO_BYTES // _LEAST_HOST_BYTES).bit_length()

ASLEEP, AWAKE, DROWSY = range(3)
"""Of a tile (``awake``): nothing in it can go on; something may; only what is slow may."""


class Order(Record):
    """An order as far as it has been drawn. ``random`` is the state of the generator; a unit does
    up to 1 << ``grain`` work at a time; one draw in 1 << ``restless`` changes what is slow:
    ``slow_places`` of each tile, and ``slow_actors`` beside them (bit k: number k).
    """

    random: np.uint64
    grain: int
    restless: int
    slow_places: Annotated[Numbers, chip.TILES]
    slow_actors: int


class RandomOrder:
    """The order of a seed, from its beginning on: what is drawn outside of the kernels, too."""

    def __init__(self, seed: int) -> None:
        self.record = Order.zeros(1)[0]
        self.record["random"] = np.uint64(seed & 0xFFFF_FFFF_FFFF_FFFF)
        self.record["grain"] = _FINEST + draw(self.record, _COARSEST + 1 - _FINEST)
        self.record["restless"] = draw(self.record, _RAREST + 1)
        _change_pace(self.record)

    def work_of_a_turn(self) -> int:
        """Work until the host has its turn."""
        return 1 << _SHORTEST_TURN + draw(self.record, _LONGEST_TURN + 1 - _SHORTEST_TURN)

    def host_bytes(self) -> int:
        """How much the host moves of a stream when it has its turn."""
        return _LEAST_HOST_BYTES << draw(self.record, _HOST_BITS)

    def host_is_quick(self) -> bool:
        """The host serves the chip although the chip can go on without."""
        return draw(self.record, 2) == 0


@compiled
def draw(order: Order, count: int) -> int:
    """A random number below ``count``, which has up to 32 bits (splitmix64)."""
    order.random += np.uint64(0x9E3779B97F4A7C15)
    value = order.random
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    value = (value ^ (value >> np.uint64(31))) >> np.uint64(32)
    return int((value * np.uint64(count)) >> np.uint64(32))


@compiled
def _change_pace(order: Order) -> None:
    """Draw who is slow: nobody, some kinds of units, some tiles, or any units."""
    style = draw(order, 4)
    kinds = draw(order, _ALL_SLOW + 1)
    for number in range(chip.TILES):
        slow = 0
        if style == 1:
            slow = kinds
        elif style == 2:
            slow = _ALL_SLOW * draw(order, 2)
        elif style == 3:
            slow = draw(order, _ALL_SLOW + 1)
        order.slow_places[number] = slow
    order.slow_actors = draw(order, 1 << _ACTORS) if style else 0


@entry
def run(
    core: state.Core,
    tiles: Records[state.Tile],
    tables: Tables,
    seen: Seen,
    order: Order,
) -> int:
    """Run until the chip needs the host or can go no further; a reason of ``scalar_core``."""
    limit = core.work_limit
    all_go = False
    while True:
        if observation.has_stopped(seen):
            return scalar_core.STOPPED
        if core.work >= limit:
            return scalar_core.SPENT
        if draw(order, 1 << order.restless) == 0:
            _change_pace(order)
        moved, reason = _advance_one(core, tiles, tables, seen, order, all_go)
        if core.fault:
            return scalar_core.FAULT
        if reason not in schedule.SETTLES and reason != scalar_core.SPENT:
            return reason
        if not moved and all_go:
            if observation.is_full(seen):
                return scalar_core.TAP_FULL
            if not _send_one_row(core, tiles, tables, order):
                return scalar_core.FAULT if core.fault else reason
            moved = True
        all_go = not moved


@inner
def _advance_one(
    core: state.Core,
    tiles: Records[state.Tile],
    tables: Tables,
    seen: Seen,
    order: Order,
    all_go: bool,
) -> tuple[bool, int]:
    """Let somebody go on who can; whether that was so, and why the scalar core stands if it was
    asked, ``scalar_core.SPENT`` if not. Without ``all_go`` those who are slow are not asked."""
    limit = core.work_limit
    reason = scalar_core.SPENT
    moved = False
    first, stride = draw(order, _ROUND), 1 + draw(order, _ROUND - 1)
    for k in range(_ROUND):
        actor = (first + k * stride) % _ROUND
        if actor >= _ACTORS or not (all_go or _is_swift(order, actor)):
            continue
        core.work_limit = min(limit, core.work + (1 << draw(order, order.grain + 1)))
        if actor < chip.TILES:
            moved = _advance_tile(core, tiles, actor, tables, seen, order, all_go)
        elif actor == _CORE:
            steps = core.steps
            reason = schedule.run_core(core, tiles, tables, seen)
            moved = core.steps != steps
        else:
            moved = _advance_scalar_unit(core, tiles, actor - _SCALAR_UNITS, tables)
        core.work_limit = limit
        if moved:
            break
    return moved, reason


@inner
def _is_swift(order: Order, actor: int) -> bool:
    """Whether it does not wait for others; a tile has units that may be slow."""
    return actor < chip.TILES or not (order.slow_actors >> actor) & 1


@inner
def _advance_tile(
    core: state.Core,
    tiles: Records[state.Tile],
    number: int,
    tables: Tables,
    seen: Seen,
    order: Order,
    all_go: bool,
) -> bool:
    """Let a unit of a tile go on; True if one has moved."""
    tile = tiles[number]
    if tile.awake == ASLEEP or (tile.awake == DROWSY and not all_go):
        return False
    first, stride = draw(order, _PLACES), 1 + draw(order, _PLACES - 1)
    for k in range(_PLACES):
        place = (first + k * stride) % _PLACES
        if not all_go and (order.slow_places[number] >> place) & 1:
            continue
        if place == _DISPATCH:
            moved = schedule.dispatch(core, tile, tables)
        else:
            moved = schedule.advance_unit(core, tiles, number, place, tables, seen)
        if moved or core.fault:
            tile.awake = AWAKE
            return True
    tile.awake = ASLEEP if all_go else DROWSY
    return False


@inner
def _advance_scalar_unit(
    core: state.Core, tiles: Records[state.Tile], which: int, tables: Tables
) -> bool:
    if which == ScalarUnit.RING_INFEED:
        return schedule.advance_infeed(core, tiles, tables, False)
    if which == ScalarUnit.RING_OUTFEED:
        return schedule.advance_outfeed(core, tables)
    return schedule.advance_pop(core, which, tables)


@inner
def _send_one_row(
    core: state.Core, tiles: Records[state.Tile], tables: Tables, order: Order
) -> bool:
    """Let a sender that is drawn use the ring; True if a row was sent."""
    first, stride = draw(order, _SENDERS), 1 + draw(order, _SENDERS - 1)
    for k in range(_SENDERS):
        sender = (first + k * stride) % _SENDERS
        if sender == chip.TILES:
            if schedule.advance_infeed(core, tiles, tables, True):
                return True
        elif schedule.produce_row(core, tiles, sender, tables):
            return True
    return False
