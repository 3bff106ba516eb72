"""Turns of the scalar core, the pops and the two streams of the host link."""

from __future__ import annotations

from darwinn_sim import chip
from darwinn_sim.isa.codes import DescriptorTag, ScalarUnit
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.instructions import ScalarFence
from darwinn_sim.kernel.state import Handover
from darwinn_sim.timing import stations
from darwinn_sim.timing.machine import (
    busy,
    effect,
    has_reached,
    load,
    passes,
    pause,
    station_of,
    tile_counters,
    wait,
    wake_at,
)
from darwinn_sim.timing.places import check
from darwinn_sim.timing.rates import seen, settle
from darwinn_sim.timing.ring_units import PUSH_BYTES, push_output, room_for_output
from darwinn_sim.timing.state import (
    ACTIVATIONS,
    BURST_BOUNDARY,
    HOST_FENCE,
    INSTRUCTIONS,
    INTERRUPT,
    LINK_UNITS,
    PARAMETERS,
    UNREACHABLE,
    Machine,
    Rates,
    Station,
    Step,
    Transfer,
)
from darwinn_sim.timing.stations import Cause
from darwinn_sim.units import input_pop, scalar_fence
from darwinn_sim.units.tables import Tables

_CHIP = stations.CHIP_COUNTERS
_HOST_LINK = int(Cause.HOST_LINK)
_FINISHED = int(Cause.FINISHED)
_OUTFEED = int(ScalarUnit.RING_OUTFEED)


@inner
def core(machine: Machine, index: int, tables: Tables) -> None:
    """Do the next step of the scalar core's trace, or wait until it can be done."""
    station = machine.stations[index]
    if station.position == len(machine.steps):
        station.cause = _FINISHED
        return
    step = machine.steps[station.position]
    per_bundle = machine.rates[0].scalar_bundle_cycles
    if not station.phase:
        # The bundles before the step, which concern nobody else.
        station.phase = 1
        if step.gap * per_bundle:
            busy(machine, index, step.gap * per_bundle)
            return
    if not _step(machine, index, step, tables):
        return
    station.phase = 0
    station.position += 1
    station.elements += step.length
    cycles = max(step.length * per_bundle, _handovers(machine, step))
    if cycles:
        busy(machine, index, cycles)
    else:
        wake_at(machine, index, machine.clock[0].now + 1)


@inner
def _handovers(machine: Machine, step: Step) -> int:
    """Cycles that a step takes if the core's own bundles take none.

    A halt hands nothing over. A fence that waits for outputs also goes to the DMA engine, if reads
    could pass them there.
    """
    rates = machine.rates[0]
    if step.kind == Handover.HALT and rates.scalar_bundle_cycles == 0:
        return 0
    if step.kind == Handover.FENCE and step.target and rates.reads_apart:
        return 2
    return 1


@inner
def _step(machine: Machine, index: int, step: Step, tables: Tables) -> bool:
    """Do a step; if it must wait, wait and return False."""
    if step.kind == Handover.CHUNK:
        loaded = _CHIP + stations.CHUNKS_LOADED
        if machine.counters[loaded] <= step.target:
            wait(machine, index, loaded, step.target + 1)
            return False
    elif step.kind == Handover.DISPATCH:
        return _dispatch(machine, index, step)
    elif step.kind == Handover.FENCE:
        return _pass_fence(machine, index, tables.scalar_fence[step.row])
    elif step.kind == Handover.UNIT:
        return _queue(machine, index, step)
    elif step.kind == Handover.PUSH:
        if not room_for_output(machine, index, PUSH_BYTES):
            return False
        push_output(machine, PUSH_BYTES)
    elif step.kind == Handover.DESCRIPTOR:
        _issue(machine, step.target >= DescriptorTag.OUTPUT)
    elif step.kind == Handover.HALT:
        effect(machine, _CHIP + stations.CHUNKS_HALTED, 1)
    return True


@inner
def _dispatch(machine: Machine, index: int, step: Step) -> bool:
    """Append an instruction to the queues of its tiles, if all have room."""
    for tile in range(chip.TILES):
        if (step.target >> tile) & 1:
            queue = machine.stations[
                station_of(stations.FIRST_TILE_GROUP + tile, stations.DISPATCH)
            ]
            taken = tile_counters(tile) + stations.TAKEN
            room_from = queue.queued - machine.rates[0].tile_queue + 1
            if machine.counters[taken] < room_from:
                wait(machine, index, taken, room_from)
                return False
    for tile in range(chip.TILES):
        if (step.target >> tile) & 1:
            queue = machine.stations[
                station_of(stations.FIRST_TILE_GROUP + tile, stations.DISPATCH)
            ]
            entry = machine.tile_queue[tile][queue.queued % stations.TILE_PLACES]
            entry.instruction = step.instruction
            entry.base = step.base
            queue.queued += 1
            effect(machine, tile_counters(tile) + stations.PUSHED, 1)
    return True


@inner
def _queue(machine: Machine, index: int, step: Step) -> bool:
    """Append an instruction to the queue of a pop, the infeed or the outfeed."""
    which = step.target
    index_of_unit = stations.STATION_OF_SCALAR_UNIT[which]
    unit = machine.stations[index_of_unit]
    begun = _CHIP + stations.UNIT_BEGUN + which
    room_from = unit.queued - machine.rates[0].scalar_queue + 1
    if machine.counters[begun] < room_from:
        wait(machine, index, begun, room_from)
        return False
    place = unit.queued % stations.UNIT_PLACES
    machine.unit_queue[index_of_unit][place].instruction = step.instruction
    unit.queued += 1
    effect(machine, _CHIP + stations.UNIT_QUEUED + which, 1)
    return True


@inner
def _pass_fence(machine: Machine, index: int, fence: ScalarFence) -> bool:
    """Pass a scalar fence; if something holds it back, wait for that and return False."""
    tile_fences = machine.counters[stations.FENCES : _CHIP : stations.TILE_COUNTERS]
    for flag in range(chip.SCALAR_FLAGS):
        settle(machine, _CHIP + flag, machine.clock[0].now)
    flags = machine.counters[_CHIP : _CHIP + chip.SCALAR_FLAGS]
    held_by = scalar_fence.guard(fence, tile_fences, flags, _idle_units(machine))
    if held_by >= scalar_fence.FIRST_UNIT:
        _wait_until_idle(machine, index, held_by - scalar_fence.FIRST_UNIT)
        return False
    if held_by >= scalar_fence.FIRST_FLAG:
        flag = held_by - scalar_fence.FIRST_FLAG
        wait(machine, index, _CHIP + flag, fence.expected[flag])
        return False
    if held_by != scalar_fence.OPEN:
        wait(machine, index, tile_counters(held_by) + stations.FENCES, fence.tile_fence_count)
        return False
    for tile in range(chip.TILES):
        if scalar_fence.forgets(fence, tile):
            load(machine, tile_counters(tile) + stations.FENCES, 0)
    for flag in range(chip.SCALAR_FLAGS):
        if scalar_fence.loads(fence, flag):
            load(machine, _CHIP + flag, fence.reset_value)
    return True


@inner
def _idle_units(machine: Machine) -> int:
    """The units beside the scalar core that are idle (bit u: unit u), as a fence sees them."""
    idle = 0
    for unit in range(state.QUEUED_SCALAR_UNITS):
        completed = machine.counters[_CHIP + stations.UNIT_COMPLETED + unit]
        idle |= int(completed == _queued(machine, unit)) << unit
    delivered = machine.counters[_CHIP + stations.BYTES_DELIVERED]
    drained = int(delivered == machine.stations[stations.LINK_OUT].words)
    return idle | (drained & idle >> ScalarUnit.RING_OUTFEED) << ScalarUnit.DRAIN


@inner
def _wait_until_idle(machine: Machine, index: int, unit: int) -> None:
    """Wait for a unit beside the core; for the host output first until the outfeed is idle."""
    if unit == ScalarUnit.DRAIN:
        unit = _OUTFEED
        if (_idle_units(machine) >> unit) & 1:
            pushed = machine.stations[stations.LINK_OUT].words
            wait(machine, index, _CHIP + stations.BYTES_DELIVERED, pushed)
            return
    wait(machine, index, _CHIP + stations.UNIT_COMPLETED + unit, _queued(machine, unit))


@inner
def _queued(machine: Machine, unit: int) -> int:
    """Instructions that a unit beside the core has been given."""
    return machine.stations[int(stations.STATION_OF_SCALAR_UNIT[unit])].queued


@inner
def _reached(machine: Machine, index: int, counter: int, need: int) -> bool:
    if has_reached(machine, counter, need):
        return True
    wait(machine, index, counter, need)
    return False


@inner
def _issue(machine: Machine, outgoing: bool) -> None:
    """Tell the link of the next descriptor of a direction."""
    now = machine.clock[0].now
    counter = stations.OUTPUTS_ISSUED if outgoing else stations.INPUTS_ISSUED
    station = machine.stations[stations.LINK_OUT if outgoing else stations.LINK_IN]
    transfers = machine.outbound if outgoing else machine.inbound
    while (
        transfers[station.queued].kind == INSTRUCTIONS
        or transfers[station.queued].kind == HOST_FENCE
    ):
        station.queued += 1
    transfers[station.queued].issued = now
    station.queued += 1
    effect(machine, _CHIP + counter, 1)


@inner
def pop(machine: Machine, index: int, tables: Tables) -> bool:
    """Take a unit from an input stream into its buffer; return whether the pop has ended."""
    station = machine.stations[index]
    parameters = tables.pop[station.row]
    size = input_pop.unit_bytes(parameters)
    arrived = _CHIP + stations.BYTES_ARRIVED + parameters.fifo
    if machine.counters[arrived] < station.total + size:
        wait(machine, index, arrived, station.total + size)
        return False
    if not passes(machine, index, parameters.watchers, _CHIP, station.first.begins, -1):
        return False
    amount = input_pop.step(station, parameters)
    station.total += size
    station.elements += 1
    effect(machine, _CHIP + input_pop.flag(parameters), amount)
    effect(machine, _CHIP + stations.BYTES_TAKEN + parameters.fifo, size)
    busy(machine, index, 1)
    return bool(station.first.done)


@inner
def link_in(machine: Machine, index: int) -> None:
    """End the word under way, and begin the next one if the chip can take it.

    ``phase`` holds the bytes under way, ``words`` those of the present transfer that were sent,
    ``ready`` that it need not wait for its first bytes any more; bytes sent to each FIFO are in
    ``reserved``.
    """
    station = machine.stations[index]
    if station.phase:
        _arrive(machine, station)
    while station.position < len(machine.inbound):
        transfer = machine.inbound[station.position]
        if not _is_mine(machine, index, transfer.kind):
            _leave(station, transfer.kind)
            continue
        if not _may_send(machine, index, transfer):
            return
        if transfer.kind != HOST_FENCE:
            size = min(machine.rates[0].link_word_bytes, transfer.size - station.words)
            station.phase = size
            _use_link(machine, index, size, transfer)
            return
        _leave(station, transfer.kind)
    station.cause = _FINISHED


@inner
def _is_mine(machine: Machine, index: int, kind: int) -> bool:
    """A station moves transfers of this kind: one of them all, or each those of its queue.

    Queues know no order among each other, so there no read waits behind an output.
    """
    if not machine.rates[0].reads_apart:
        return index == stations.LINK_IN
    if kind == INSTRUCTIONS:
        return index == stations.LINK_IN
    return kind != HOST_FENCE and index == stations.LINK_IN_APART + kind


@inner
def _leave(station: Station, kind: int) -> None:
    """Go on to the next transfer; ``taken`` counts those that have descriptors."""
    station.position += 1
    station.ready = 0
    station.words = 0
    station.taken += kind in (PARAMETERS, ACTIVATIONS)


@inner
def _arrive(machine: Machine, station: Station) -> None:
    transfer = machine.inbound[station.position]
    station.words += station.phase
    station.elements += station.phase
    done = station.words == transfer.size
    if transfer.kind != INSTRUCTIONS:
        effect(machine, _CHIP + stations.BYTES_ARRIVED + transfer.kind, station.phase)
    elif done:
        effect(machine, _CHIP + stations.CHUNKS_LOADED, 1)
    station.phase = 0
    if done:
        transfer.end = machine.clock[0].now + 1
        _leave(station, transfer.kind)


@inner
def _may_send(machine: Machine, index: int, transfer: Transfer) -> bool:
    """The chip can take the next word of a transfer; otherwise wait for that."""
    station = machine.stations[index]
    if transfer.kind == HOST_FENCE:
        return _reached(machine, index, _CHIP + stations.BYTES_DELIVERED, transfer.number)
    if transfer.kind == INSTRUCTIONS:
        # Program memory holds one chunk: the next one waits until the core has halted.
        halted = _CHIP + stations.CHUNKS_HALTED
        if not _reached(machine, index, halted, transfer.number):
            return False
        halts_at_once = transfer.number > 0 and machine.rates[0].scalar_bundle_cycles == 0
        return _has_come(machine, index, machine.clock[0].now - 1 - int(halts_at_once))
    asked = -1
    if machine.rates[0].link_on_request:
        if not _reached(machine, index, _CHIP + stations.INPUTS_ISSUED, station.taken + 1):
            return False
        asked = transfer.issued
    if not _has_come(machine, index, asked):
        return False
    size = min(machine.rates[0].link_word_bytes, transfer.size - station.words)
    room_from = machine.reserved[stations.STREAMS, transfer.kind] + size
    taken = _CHIP + stations.BYTES_TAKEN + transfer.kind
    if not _reached(machine, index, taken, room_from - machine.rates[0].host_fifo_bytes):
        return False
    machine.reserved[stations.STREAMS, transfer.kind] += size
    return True


@inner
def _has_come(machine: Machine, index: int, asked: int) -> bool:
    """The first bytes of what was asked for in cycle ``asked`` are here; otherwise wait."""
    station = machine.stations[index]
    first = asked + machine.rates[0].read_cycles
    if station.ready or first <= machine.clock[0].now:
        return True
    station.ready = 1
    pause(machine, index, first, _HOST_LINK)
    return False


@inner
def _use_link(machine: Machine, index: int, size: int, transfer: Transfer) -> int:
    """Move ``size`` bytes, and have the next turn in the last cycle of that, which is returned."""
    clock = machine.clock[0]
    rates = machine.rates[0]
    inbound = index != stations.LINK_OUT
    free = clock.link_in_free if inbound else clock.link_out_free
    end = max(free, clock.now * LINK_UNITS) + size * (
        rates.link_in_time if inbound else rates.link_out_time
    )
    if inbound:
        clock.link_in_free = end
    else:
        clock.link_out_free = end + rates.write_gap_cycles * LINK_UNITS
    if transfer.start < 0:
        transfer.start = clock.now
    last = (end + LINK_UNITS - 1) // LINK_UNITS - 1
    busy(machine, index, max(last - clock.now, 1))
    return int(last)


@inner
def link_out(machine: Machine, index: int) -> None:
    """Send bytes of the output FIFO, and interrupts, in descriptor order.

    ``words`` of this station counts bytes that were put into the FIFO, ``taken`` those of the
    present transfer that were sent, ``total`` all that were sent. ``phase`` bursts were sent and
    ``done`` of them answered; the link takes no other before cycle ``ready``.
    """
    station = machine.stations[index]
    _take_answers(machine, index)
    if machine.clock[0].now < station.ready:
        wake_at(machine, index, station.ready)
    else:
        _send(machine, index)
    if station.done < station.phase:
        due = _first_answer(machine, station)
        wake_at(machine, index, min(machine.turns.wake[index], due))


@inner
def _first_answer(machine: Machine, station: Station) -> int:
    """The cycle in which the first of the bursts under way is answered."""
    return machine.writes[station.done % len(machine.writes)].due


@inner
def _take_answers(machine: Machine, index: int) -> None:
    """Deliver the bytes of the bursts that are answered by now."""
    station = machine.stations[index]
    now = machine.clock[0].now
    while station.done < station.phase and _first_answer(machine, station) <= now:
        write = machine.writes[station.done % len(machine.writes)]
        transfer = machine.outbound[write.transfer]
        effect(machine, _CHIP + stations.BYTES_DELIVERED, write.size)
        check(machine, index, write.sent <= transfer.reachable, UNREACHABLE, write.transfer)
        if write.sent == transfer.size:
            transfer.end = now + 1
        station.done += 1


@inner
def _send(machine: Machine, index: int) -> None:
    """Send the next burst and the interrupts before it, as far as they may leave."""
    station = machine.stations[index]
    while station.position < len(machine.outbound):
        transfer = machine.outbound[station.position]
        if not _reached(machine, index, _CHIP + stations.OUTPUTS_ISSUED, station.position + 1):
            return
        if transfer.kind != INTERRUPT:
            _send_output(machine, index, transfer)
            return
        # An interrupt follows the answers to all outputs before it.
        if station.done < station.phase:
            pause(machine, index, _first_answer(machine, station), _HOST_LINK)
            return
        transfer.start = machine.clock[0].now
        transfer.end = transfer.start + machine.rates[0].interrupt_cycles
        station.position += 1
    station.cause = _FINISHED


@inner
def _send_output(machine: Machine, index: int, transfer: Transfer) -> None:
    """Send the next burst of a transfer, once its bytes are there; otherwise wait."""
    station = machine.stations[index]
    rates = machine.rates[0]
    left = transfer.size - station.taken
    address = transfer.address + station.taken
    most = min(_longest_burst(rates, address), left)
    least = min(rates.write_burst_bytes, most)
    if not _reached(machine, index, _CHIP + stations.BYTES_PUSHED, station.total + least):
        return
    if station.phase - station.done == len(machine.writes):
        pause(machine, index, _first_answer(machine, station), _HOST_LINK)
        return
    pushed = seen(machine, _CHIP + stations.BYTES_PUSHED, machine.clock[0].now)
    size = min(most, pushed - station.total)
    station.total += size
    station.taken += size
    station.elements += size
    last = _use_link(machine, index, _on_the_bus(rates, address, size), transfer)
    now = machine.clock[0].now
    station.ready = max(last, now + 1)
    write = machine.writes[station.phase % len(machine.writes)]
    write.size = size
    write.due = max(last + rates.write_cycles, now + 1)
    write.transfer = station.position
    write.sent = station.taken
    station.phase += 1
    if station.taken == transfer.size:
        station.taken = 0
        station.position += 1


@inner
def _longest_burst(rates: Rates, address: int) -> int:
    """Bytes of the longest burst at an address: of whole words, and within a boundary."""
    most = max(rates.link_word_bytes, rates.write_burst_bytes)
    if rates.write_burst_bytes == 1:
        return most
    return min(most - address % rates.link_word_bytes, BURST_BOUNDARY - address % BURST_BOUNDARY)


@inner
def _on_the_bus(rates: Rates, address: int, size: int) -> int:
    """Bytes that the link moves for ``size`` bytes: bursts consist of whole words."""
    if rates.write_burst_bytes == 1:
        return size
    word = rates.link_word_bytes
    return (address % word + size + word - 1) // word * word
