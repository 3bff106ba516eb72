"""The event loop: from one cycle in which something happens to the next."""

from __future__ import annotations

from darwinn_sim.isa.codes import ScalarUnit, TileUnit
from darwinn_sim.kernel.compiled import entry, inner
from darwinn_sim.timing import chip_units, ring_units, stations, tile_units
from darwinn_sim.timing.machine import (
    apply_effects,
    complete,
    forget,
    join_waiters,
    tile_counters,
)
from darwinn_sim.timing.state import Machine
from darwinn_sim.timing.turns import NEVER, WORD, end_cycle, first_word, lowest, next_cycle, words
from darwinn_sim.units.tables import Tables

QUIET, SPANS_FULL, FAULT, LATE, STEPS_USED = range(5)
"""Why the loop stops: nothing more happens; the spans must be emptied; a fault; the limit; the
scalar core needs the next block of its trace."""

_NONE = -1
_LINKS = stations.RECEIVE - stations.SEND
_UNIT_OF_STATION = stations.UNIT_OF_STATION
_SCALAR_UNIT_OF_STATION = stations.SCALAR_UNIT_OF_STATION


@entry
def run(machine: Machine, tables: Tables, limit: int) -> int:
    """Run until one of the reasons above."""
    clock = machine.clock[0]
    while True:
        now = next_cycle(machine.turns, clock.now)
        reason = _reason_to_stop(machine, now, limit)
        if reason != _NONE:
            return reason
        clock.now = now
        first = first_word(machine.turns, now)
        for word in range(words(machine.turns)):
            _turns(machine, first, word, tables)
        apply_effects(machine)
        end_cycle(machine.turns, now)


@inner
def _turns(machine: Machine, first: int, word: int, tables: Tables) -> None:
    """Turns of a word of the stations that are due, in order; the first such word is ``first``.

    One that is given a turn in this cycle meanwhile has it if it comes later.
    """
    due = machine.turns.due[first + word]
    while due:
        number = lowest(due)
        machine.turns.due[first + word] &= ~(1 << number)
        index = machine.turns.order[word * WORD + number]
        if machine.turns.wake[index] == machine.clock[0].now:
            _turn(machine, index, tables)
        due = machine.turns.due[first + word] & (-2 << number)


@inner
def _turn(machine: Machine, index: int, tables: Tables) -> None:
    """A station's turn, which gives it its next one, or something to wait for."""
    machine.turns.wake[index] = NEVER
    if machine.stations[index].waits_on >= 0:
        forget(machine, index)
    group = index // stations.GROUP_STATIONS
    if group == stations.CHIP_GROUP:
        _chip_turn(machine, index, tables)
    elif group == stations.RING_GROUP:
        ring_units.arrive(machine)
    else:
        _tile_turn(machine, index, tables)
    if machine.stations[index].waits_on >= 0:
        join_waiters(machine, index)


@inner
def _reason_to_stop(machine: Machine, now: int, limit: int) -> int:
    """Why the loop stops before cycle ``now``, if it does."""
    clock = machine.clock[0]
    if clock.fault:
        return FAULT
    if clock.more_steps and machine.stations[stations.CORE].position == len(machine.steps):
        return STEPS_USED
    if now == NEVER:
        return QUIET
    if now >= limit:
        return LATE
    if len(machine.spans) and clock.spans + stations.STATIONS > len(machine.spans):
        return SPANS_FULL
    return _NONE


@inner
def _chip_turn(machine: Machine, index: int, tables: Tables) -> None:
    number = index % stations.GROUP_STATIONS
    which = _SCALAR_UNIT_OF_STATION[number]
    if which >= 0:
        if machine.stations[index].instruction < 0 and not ring_units.begin_scalar_unit(
            machine, index, which, tables
        ):
            return
        if _scalar_unit_turn(machine, index, which, tables):
            counter = stations.CHIP_COUNTERS + stations.UNIT_COMPLETED + which
            complete(machine, index, counter)
    elif number == stations.CORE:
        chip_units.core(machine, index, tables)
    elif number == stations.LINK_OUT:
        chip_units.link_out(machine, index)
    elif number == stations.ROW_TAKER:
        ring_units.take_rows(machine, tables)
    else:
        chip_units.link_in(machine, index)


@inner
def _scalar_unit_turn(machine: Machine, index: int, which: int, tables: Tables) -> bool:
    """The turn of a pop, the infeed or the outfeed; whether its instruction has ended."""
    if which == ScalarUnit.RING_INFEED:
        return ring_units.infeed(machine, index, tables)
    if which == ScalarUnit.RING_OUTFEED:
        return ring_units.outfeed(machine, index, tables)
    return chip_units.pop(machine, index, tables)


@inner
def _tile_turn(machine: Machine, index: int, tables: Tables) -> None:
    tile = index // stations.GROUP_STATIONS - stations.FIRST_TILE_GROUP
    number = index % stations.GROUP_STATIONS
    unit = _UNIT_OF_STATION[number]
    if number == stations.DISPATCH:
        tile_units.dispatch(machine, index, tile, tables)
    elif number == stations.WRITER:
        tile_units.write_results(machine, index, tile)
    elif not _has_instruction(machine, index, tile, number, tables):
        return
    elif number >= stations.RECEIVE:
        ring_units.receive_words(machine, index, tile, number - stations.RECEIVE, tables)
    elif number >= stations.SEND:
        ring_units.send_words(machine, index, tile, number - stations.SEND, tables)
    elif _unit_turn(machine, index, tile, unit, tables):
        complete(machine, index, tile_counters(tile) + stations.COMPLETED + unit)
    if number >= stations.SEND:
        ring_units.end_mesh(machine, tile, (number - stations.SEND) % _LINKS)


@inner
def _has_instruction(machine: Machine, index: int, tile: int, number: int, tables: Tables) -> bool:
    """The unit of a station has an instruction, perhaps one that it has just taken, and may go on
    in this cycle.
    """
    station = machine.stations[index]
    if number >= stations.RECEIVE:
        # The sending side takes the instructions of both.
        return station.instruction >= 0 and not station.done
    if number == stations.TENSOR and tile_units.drain(machine, index, tile):
        return False
    if station.instruction >= 0:
        return True
    begun = tile_units.begin(machine, index, _UNIT_OF_STATION[number], tile, tables)
    if number >= stations.SEND and station.instruction >= 0:
        ring_units.begin_mesh(machine, index, begun, tables)
    return begun


@inner
def _unit_turn(machine: Machine, index: int, tile: int, unit: int, tables: Tables) -> bool:
    """The turn of a tile unit without links; whether its instruction has ended."""
    if unit == TileUnit.TENSOR:
        return tile_units.tensor(machine, index, tile, tables)
    if unit == TileUnit.RING_PRODUCER:
        return ring_units.produce(machine, index, tile, tables)
    if unit == TileUnit.NARROW_TO_WIDE:
        return tile_units.pack(machine, index, tile, tables)
    if unit == TileUnit.WIDE_TO_NARROW:
        return tile_units.spread(machine, index, tile, tables)
    return ring_units.consume(machine, index, tile, tables, unit - TileUnit.RING_CONSUMER_A)
