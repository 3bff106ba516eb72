"""The event loop: from one cycle in which something happens to the next."""

from __future__ import annotations

from darwinn_sim.isa.codes import ScalarUnit
from darwinn_sim.kernel.compiled import entry, inner
from darwinn_sim.timing import chip_units, ring_units, stations, tile_units
from darwinn_sim.timing.machine import apply_effects, forget
from darwinn_sim.timing.state import Machine
from darwinn_sim.timing.turns import NEVER, WORD, end_cycle, first_word, lowest, next_cycle, words
from darwinn_sim.units.tables import Tables

QUIET, SPANS_FULL, FAULT, LATE, STEPS_USED = range(5)
"""Why the loop stops: nothing more happens; the spans must be emptied; a fault; the limit; the
scalar core needs the next block of its trace."""

_NONE = -1


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
    """A station's turn, which gives it its next one."""
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
    if number == stations.CORE:
        chip_units.core(machine, index, tables)
    elif number == stations.POP_PARAMETERS:
        chip_units.pop(machine, index, ScalarUnit.PARAMETER_POP, tables)
    elif number == stations.POP_ACTIVATIONS:
        chip_units.pop(machine, index, ScalarUnit.AV_POP, tables)
    elif number == stations.INFEED:
        ring_units.infeed(machine, index, tables)
    elif number == stations.OUTFEED:
        ring_units.outfeed(machine, index, tables)
    elif number == stations.LINK_OUT:
        chip_units.link_out(machine, index)
    elif number == stations.ROW_TAKER:
        ring_units.take_rows(machine, tables)
    else:
        chip_units.link_in(machine, index)


@inner
def _tile_turn(machine: Machine, index: int, tables: Tables) -> None:
    tile = index // stations.GROUP_STATIONS - stations.FIRST_TILE_GROUP
    number = index % stations.GROUP_STATIONS
    if number == stations.TENSOR:
        tile_units.tensor(machine, index, tile, tables)
    elif number == stations.WRITER:
        tile_units.write_results(machine, index, tile)
    elif number == stations.DISPATCH:
        tile_units.dispatch(machine, index, tile, tables)
    elif number == stations.PRODUCER:
        ring_units.produce(machine, index, tile, tables)
    elif number == stations.CONSUMER_A:
        ring_units.consume(machine, index, tile, tables, 0)
    elif number == stations.CONSUMER_B:
        ring_units.consume(machine, index, tile, tables, 1)
    elif number == stations.TO_WIDE:
        tile_units.pack(machine, index, tile, tables)
    elif number == stations.TO_NARROW:
        tile_units.spread(machine, index, tile, tables)
    elif number < stations.RECEIVE:
        ring_units.send_words(machine, index, tile, number - stations.SEND, tables)
    else:
        ring_units.receive_words(machine, index, tile, number - stations.RECEIVE, tables)
