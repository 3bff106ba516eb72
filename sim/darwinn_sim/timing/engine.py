"""The event loop: from one cycle in which something happens to the next."""

from __future__ import annotations

from darwinn_sim.isa.codes import ScalarUnit
from darwinn_sim.kernel.compiled import entry, inner
from darwinn_sim.timing import chip_units, ring_units, stations, tile_units
from darwinn_sim.timing.machine import apply_effects, forget
from darwinn_sim.timing.state import NEVER, Machine
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
        now = NEVER
        for group in range(stations.GROUPS):
            now = min(now, machine.group_wake[group])
        reason = _reason_to_stop(machine, now, limit)
        if reason != _NONE:
            return reason
        clock.now = now
        for senders in range(2):
            for group in range(stations.GROUPS):
                if machine.group_wake[group] <= now:
                    _group_turns(machine, group, senders, tables)
        apply_effects(machine)


@inner
def _group_turns(machine: Machine, group: int, senders: int, tables: Tables) -> None:
    """Turns of all stations of a group that are due, but for those of the ring's senders, which
    come after all others (``senders``: 1), and with them the ring itself.
    """
    now = machine.clock[0].now
    first = group * stations.GROUP_STATIONS
    machine.group_wake[group] = NEVER
    for index in range(first, first + stations.GROUP_STATIONS):
        wake = machine.wake[index]
        sends = index - first == stations.SENDER or group == stations.RING_GROUP
        if wake > now or sends != senders:
            machine.group_wake[group] = min(machine.group_wake[group], wake)
            continue
        # Its turn gives it its next one, in the group's earliest too.
        machine.wake[index] = NEVER
        if machine.stations[index].waits_on >= 0:
            forget(machine, index)
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
