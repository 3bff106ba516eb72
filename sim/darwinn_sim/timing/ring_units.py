"""Turns of everything on the ring bus and on the mesh.

One row at a time is on the ring. Whoever wants to send asks in its turn; the infeed has its turn
before the tiles, these in order, and all of them have it after whoever takes rows from the ring. A
row takes room in its receivers' FIFOs from the moment when it is sent.
"""

from __future__ import annotations

from darwinn_sim import chip
from darwinn_sim.isa.codes import ScalarFlag, ScalarUnit, TileFlag, TileUnit
from darwinn_sim.kernel import sync, traversal
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.instructions import RingConsumer, RingInfeed, RingOutfeed
from darwinn_sim.timing import stations
from darwinn_sim.timing.machine import (
    begin_instruction,
    book,
    book_instruction,
    busy,
    complete,
    effect,
    effect_at_once,
    forget,
    grow,
    has_reached,
    passes,
    pause,
    station_of,
    take,
    tile_counters,
    wait,
    wake_at,
    work,
)
from darwinn_sim.timing.places import check_first_row, check_first_words, stays
from darwinn_sim.timing.rates import (
    counted_depth,
    is_watched,
    move_ahead,
    plain_elements,
    quiet_elements,
    rate,
    seen,
    skip,
    words_ahead,
)
from darwinn_sim.timing.state import NO_INSTRUCTION, Machine
from darwinn_sim.timing.stations import Cause
from darwinn_sim.timing.tile_units import end_turn
from darwinn_sim.timing.turns import NEVER, lowest
from darwinn_sim.units import mesh_bus, ring_bus
from darwinn_sim.units.memories import NARROW_WORDS
from darwinn_sim.units.tables import Tables

_RING = int(Cause.RING)
_MESH = int(Cause.MESH)
_DISPATCH = int(Cause.DISPATCH)
_RING_STATION = stations.RING_GROUP * stations.GROUP_STATIONS
_ROW_TAKER = stations.CHIP_GROUP * stations.GROUP_STATIONS + stations.ROW_TAKER
_OUTFEED = ring_bus.OUTFEED_TARGET
_ARRIVED = stations.CHIP_COUNTERS + stations.OUTFEED_ARRIVED
_POPPED = stations.CHIP_COUNTERS + stations.OUTFEED_POPPED
_DELIVERED = stations.CHIP_COUNTERS + stations.BYTES_DELIVERED
_PUSHED = stations.CHIP_COUNTERS + stations.BYTES_PUSHED
_LINKS = stations.RECEIVE - stations.SEND
PUSH_BYTES = 4
"""Bytes that the scalar core pushes into the output FIFO at a time."""

_ON_THE_RING = 1
"""Phase of a sender whose row has yet to arrive."""

_LEAST_ROOM = 2
"""Words on a mesh link with which it moves one in each cycle: a word is seen in the next cycle, and
so is that it was taken."""


@inner
def _ring_is_free(machine: Machine, index: int, channel: int, targets: int) -> bool:
    """The ring carries nothing and all receivers have room; otherwise wait for that."""
    clock = machine.clock[0]
    if clock.ring_free > clock.now:
        pause(machine, index, clock.ring_free, _RING)
        return False
    depth = machine.rates[0].ring_fifo_rows
    for target in range(chip.TILES + 1):
        if not (targets >> target) & 1:
            continue
        popped = tile_counters(target) + stations.ROWS_POPPED + channel
        if target == _OUTFEED:
            popped = _POPPED
        room_from = machine.reserved[target, channel] - depth + 1
        if target == _OUTFEED:
            room_from += machine.reserved[target, 1 - channel] + depth
            room_from -= machine.rates[0].outfeed_rows
        if machine.counters[popped] < room_from:
            wait(machine, index, popped, room_from)
            return False
    return True


@inner
def _make_room(machine: Machine, popped: int) -> None:
    """A row was taken from a FIFO of the ring: senders see it in this cycle, or in the next."""
    if machine.rates[0].ring_room_at_once:
        effect_at_once(machine, popped, 1)
    else:
        effect(machine, popped, 1)


@inner
def _send(machine: Machine, channel: int, targets: int, words: int) -> None:
    """Put a row on the ring."""
    clock = machine.clock[0]
    per_cycle = machine.rates[0].ring_bytes_per_cycle
    least = machine.rates[0].ring_row_cycles
    cycles = max(least, (4 * words + per_cycle - 1) // per_cycle)
    clock.ring_free = clock.now + cycles
    clock.ring_targets = targets
    clock.ring_channel = channel
    clock.ring_rows += 1
    for target in range(chip.TILES + 1):
        if (targets >> target) & 1:
            machine.reserved[target, channel] += 1
    machine.stations[_RING_STATION].elements += words
    machine.usage[_RING_STATION, 0] += cycles
    wake_at(machine, _RING_STATION, clock.ring_free - 1)


@inner
def _must_wait(machine: Machine, index: int) -> bool:
    """The row that was just sent holds its sender until it arrives, and that is later."""
    clock = machine.clock[0]
    arrival = clock.ring_free - 1
    if not machine.rates[0].ring_sender_waits or arrival == clock.now:
        return False
    machine.stations[index].phase = _ON_THE_RING
    pause(machine, index, arrival, _RING)
    return True


@inner
def arrive(machine: Machine) -> None:
    """The row on the ring has reached its receivers, who see it in the next cycle.

    Most of them wait for nothing else: they have one turn together (``take_rows``).
    """
    clock = machine.clock[0]
    takers = 0
    for target in range(chip.TILES):
        if (clock.ring_targets >> target) & 1:
            arrived = tile_counters(target) + stations.ROWS_ARRIVED + clock.ring_channel
            if machine.first_waiter[arrived] >= 0:
                takers |= 1 << target
            else:
                effect(machine, arrived, 1)
    if takers:
        clock.row_takers = takers
        clock.row_channel = clock.ring_channel
        wake_at(machine, _ROW_TAKER, clock.now + 1)
    if (clock.ring_targets >> _OUTFEED) & 1:
        effect(machine, _ARRIVED, 1)


@inner
def _pass_token(machine: Machine, channel: int) -> None:
    for tile in range(chip.TILES):
        effect(machine, tile_counters(tile) + TileFlag.RING_PRODUCER_A + channel, 1)


@inner
def produce(machine: Machine, index: int, tile: int, tables: Tables) -> bool:
    """Send one row of a ring producer; return, as all, whether its instruction has ended."""
    station = machine.stations[index]
    counters = tile_counters(tile)
    parameters = tables.ring_producer[station.row]
    channel = parameters.consumer_b
    if station.phase != _ON_THE_RING:
        if not station.ready:
            if not passes(machine, index, parameters.watchers, counters, station.first.begins, -1):
                return False
            station.ready = 1
        if not _ring_is_free(machine, index, channel, parameters.targets):
            return False
        check_first_row(machine, index, parameters.wide_read)
        _send(machine, channel, parameters.targets, chip.ROW_WORDS)
        if _must_wait(machine, index):
            return False
    station.phase = 0
    ended = ring_bus.step_producer(station, parameters)
    station.elements += 1
    effect(
        machine, counters + TileFlag.RING_BUS_WRITE, sync.produce(parameters.row_producer, ended)
    )
    if sync.produce(parameters.token_producer, ended):
        _pass_token(machine, channel)
        tokens = ring_bus.scalar_tokens(parameters)
        for flag in range(chip.SCALAR_FLAGS):
            effect(machine, stations.CHIP_COUNTERS + flag, (tokens >> flag) & 1)
    busy(machine, index, 1)
    if station.first.done:
        ring_bus.end_producer(station, parameters, machine.sides[tile])
    return bool(station.first.done)


@inner
def consume(machine: Machine, index: int, tile: int, tables: Tables, channel: int) -> bool:
    """Write one row that has arrived."""
    station = machine.stations[index]
    counters = tile_counters(tile)
    parameters = tables.ring_consumer[station.row]
    if ring_bus.waits_for_watchers(station):
        if not passes(machine, index, parameters.watchers, counters, station.first.begins, -1):
            return False
        station.ready = 1
    arrived = counters + stations.ROWS_ARRIVED + channel
    if machine.counters[arrived] <= station.total:
        wait(machine, index, arrived, station.total + 1)
        return False
    only_waits = _take_row(machine, index, tile, channel, parameters)
    if only_waits and machine.counters[arrived] <= station.total:
        # The next turn would only find that the next row has not arrived.
        wait(machine, index, arrived, station.total + 1)
    else:
        wake_at(machine, index, machine.clock[0].now + 1)
    return bool(station.first.done)


@inner
def _take_row(
    machine: Machine, index: int, tile: int, channel: int, parameters: RingConsumer
) -> bool:
    """Write a row that has arrived; return whether the next one need only arrive."""
    station = machine.stations[index]
    counters = tile_counters(tile)
    check_first_row(machine, index, parameters.wide_write)
    station.total += 1
    station.elements += 1
    _make_room(machine, counters + stations.ROWS_POPPED + channel)
    produced = ring_bus.step_consumer(station, parameters)
    effect(machine, counters + TileFlag.RING_BUS_READ_A + channel, produced)
    work(machine, index, 1)
    if not is_watched(station.first.begins, parameters.watchers, -1):
        station.ready = 1
    return bool(station.ready and not station.first.done)


@inner
def take_rows(machine: Machine, tables: Tables) -> None:
    """Write the row that has arrived in all tiles whose consumer waits for it.

    Whoever need only wait for the next row stays among the waiters.
    """
    clock = machine.clock[0]
    channel, takers = clock.row_channel, clock.row_takers
    number = stations.CONSUMER_A + channel
    clock.row_takers = 0
    while takers:
        tile = lowest(takers)
        takers &= takers - 1
        index = station_of(stations.FIRST_TILE_GROUP + tile, number)
        station = machine.stations[index]
        counters = tile_counters(tile)
        machine.counters[counters + stations.ROWS_ARRIVED + channel] += 1
        if _take_row(machine, index, tile, channel, tables.ring_consumer[station.row]):
            station.need = station.total + 1
            continue
        forget(machine, index)
        wake_at(machine, index, clock.now + 1)
        if station.first.done:
            unit = TileUnit.RING_CONSUMER_A + channel
            complete(machine, index, counters + stations.COMPLETED + unit)


@inner
def begin_scalar_unit(machine: Machine, index: int, which: int, tables: Tables) -> bool:
    """Take the next instruction of a pop, the infeed or the outfeed; False if there is none, or it
    only starts now.
    """
    counters = stations.CHIP_COUNTERS
    queued, begun = counters + stations.UNIT_QUEUED + which, counters + stations.UNIT_BEGUN + which
    if not take(machine, index, queued, begun):
        return False
    station = machine.stations[index]
    station.row = tables.row[station.instruction]
    if which == ScalarUnit.RING_INFEED:
        traversal.start(station.first, tables.infeed[station.row].buffer)
    elif which == ScalarUnit.RING_OUTFEED:
        traversal.start(station.first, tables.outfeed[station.row].buffer)
    else:
        traversal.start(station.first, tables.pop[station.row].buffer)
    start = machine.rates[0].scalar_unit_start
    if start > 0:
        busy(machine, index, start)
        return False
    return True


@inner
def infeed(machine: Machine, index: int, tables: Tables) -> bool:
    """Collect a unit of a buffer; if it closes the row, send that."""
    station = machine.stations[index]
    counters = stations.CHIP_COUNTERS
    parameters = tables.infeed[station.row]
    words = ring_bus.unit_words(parameters.fifo)
    closes = ring_bus.closes_row(station, parameters)
    if station.phase != _ON_THE_RING:
        if closes and not _ring_is_free(machine, index, parameters.consumer_b, parameters.targets):
            return False
        if not passes(machine, index, parameters.watchers, counters, station.first.begins, -1):
            return False
        if closes:
            _send(machine, parameters.consumer_b, parameters.targets, station.words + words)
            if _must_wait(machine, index):
                return False
    station.phase = 0
    ended = ring_bus.step_infeed(station, parameters, closes)
    station.elements += 1
    flag = counters + ring_bus.INFEED_FLAG[parameters.fifo]
    effect(machine, flag, ring_bus.infeed_increment(parameters, ended))
    if sync.produce(parameters.token_producer, ended):
        _pass_token(machine, parameters.consumer_b)
    ahead = _collect_ahead(machine, index, parameters, words)
    busy(machine, index, 1 + ahead)
    single = traversal.single_blocks(parameters.buffer)
    grow(machine, flag, ahead, ring_bus.infeed_increment(parameters, single))
    return bool(station.first.done)


@inner
def _collect_ahead(machine: Machine, index: int, parameters: RingInfeed, words: int) -> int:
    """Collect the units that nothing can hold up and that do not close the row; return how many."""
    station = machine.stations[index]
    if rate(parameters.token_producer, parameters.buffer):
        return 0
    units = min(
        plain_elements(station.first, parameters.buffer, parameters.watchers, -1),
        ring_bus.units_before_close(station, parameters),
    )
    station.words += units * words
    skip(station, station.first, parameters.buffer, units)
    return units


@inner
def outfeed(machine: Machine, index: int, tables: Tables) -> bool:
    """Take a unit from the row that has arrived, to the host or to scalar memory."""
    station = machine.stations[index]
    counters = stations.CHIP_COUNTERS
    parameters = tables.outfeed[station.row]
    if machine.counters[_ARRIVED] <= station.total:
        wait(machine, index, _ARRIVED, station.total + 1)
        return False
    size = chip.ACTIVATION_UNIT_BYTES if parameters.to_host else 0
    if size and not room_for_output(machine, index, size):
        return False
    if not passes(machine, index, parameters.watchers, counters, station.first.begins, -1):
        return False
    amount = ring_bus.step_outfeed(station, parameters)
    station.elements += 1
    push_output(machine, size)
    flag = counters + ScalarFlag.RING_OUTFEED
    effect(machine, flag, amount)
    ahead = 0
    if ring_bus.has_used_row(station, parameters):
        station.total += 1
        station.position = 0
        _make_room(machine, _POPPED)
    else:
        ahead = _take_ahead(machine, index, parameters, size)
    busy(machine, index, 1 + ahead)
    grow(machine, flag, ahead, rate(parameters.producer, parameters.buffer))
    return bool(station.first.done)


@inner
def _take_ahead(machine: Machine, index: int, parameters: RingOutfeed, size: int) -> int:
    """Take the units that nothing can hold up and after which more of the row is needed; return
    how many.

    The output FIFO must have room for them, and for what the scalar core can push meanwhile.
    """
    station = machine.stations[index]
    units = min(
        plain_elements(station.first, parameters.buffer, parameters.watchers, -1),
        ring_bus.units_before_use(station, parameters),
    )
    if size and not _has_room(machine, units * (size + PUSH_BYTES)):
        return 0
    station.position += units * ring_bus.taken_words(parameters)
    skip(station, station.first, parameters.buffer, units)
    machine.stations[stations.LINK_OUT].words += units * size
    grow(machine, _PUSHED, units, size)
    return units


@inner
def room_for_output(machine: Machine, index: int, size: int) -> bool:
    """The output FIFO has room for ``size`` bytes; otherwise wait for it."""
    if _has_room(machine, size):
        return True
    wait(machine, index, _DELIVERED, _room_from(machine, size))
    return False


@inner
def _has_room(machine: Machine, size: int) -> bool:
    return bool(machine.counters[_DELIVERED] >= _room_from(machine, size))


@inner
def _room_from(machine: Machine, size: int) -> int:
    """The bytes delivered from which on the output FIFO has room for ``size`` more."""
    return machine.stations[stations.LINK_OUT].words + size - machine.rates[0].host_fifo_bytes


@inner
def push_output(machine: Machine, size: int) -> None:
    """Append ``size`` bytes to the output FIFO, whose writers are never two in a cycle's end."""
    machine.stations[stations.LINK_OUT].words += size
    effect(machine, _PUSHED, size)


@inner
def send_words(machine: Machine, index: int, tile: int, link: int, tables: Tables) -> None:
    """The sending side of a mesh unit."""
    station = machine.stations[index]
    counters = tile_counters(tile)
    if station.done:
        return
    parameters = tables.mesh[station.row]
    neighbour = tile_counters(mesh_bus.neighbour(tile, link))
    popped = neighbour + stations.MESH_POPPED + link
    flag = counters + mesh_bus.OUTBOUND_FLAG[link]
    per_cycle = machine.rates[0].mesh_words_per_cycle
    moved = False
    for _ in range(per_cycle):
        if station.first.done:
            break
        room_from = station.total - machine.rates[0].mesh_fifo_words + 1
        if not has_reached(machine, popped, room_from):
            wait(machine, index, popped, room_from)
            break
        if not passes(machine, index, parameters.watchers, counters, station.first.begins, 0):
            break
        check_first_words(machine, index, parameters.narrow_read, 1)
        amount = mesh_bus.step_read(station.first, parameters)
        station.total += 1
        station.elements += 1
        moved = True
        effect(machine, neighbour + stations.MESH_PUSHED + link, 1)
        effect(machine, flag, amount)
    ahead, quiet = 0, False
    if moved and station.waits_on < 0:
        depth = counted_depth(parameters.read_producer)
        words, quiet = words_ahead(station, parameters.narrow_read, parameters.watchers, 0, depth)
        ahead = _sent_ahead(machine, index, tile, link, words, tables)
    move_ahead(machine, index, parameters.narrow_read, ahead * per_cycle, quiet)
    station.total += ahead * per_cycle
    end_turn(machine, index, moved, ahead)
    grow(machine, neighbour + stations.MESH_PUSHED + link, ahead, per_cycle)
    grow(machine, flag, ahead, per_cycle * rate(parameters.read_producer, parameters.narrow_read))
    station.done = station.first.done


@inner
def receive_words(machine: Machine, index: int, tile: int, link: int, tables: Tables) -> None:
    """The receiving side of a mesh unit."""
    station = machine.stations[index]
    counters = tile_counters(tile)
    parameters = tables.mesh[station.row]
    pushed = counters + stations.MESH_PUSHED + link
    flag = counters + mesh_bus.INBOUND_FLAG[link]
    per_cycle = machine.rates[0].mesh_words_per_cycle
    moved = False
    for _ in range(per_cycle):
        if station.first.done:
            break
        if not parameters.immediate_valid and not has_reached(machine, pushed, station.total + 1):
            wait(machine, index, pushed, station.total + 1)
            break
        if not passes(machine, index, parameters.watchers, counters, station.first.begins, 1):
            break
        check_first_words(machine, index, parameters.narrow_write, 1)
        amount = mesh_bus.step_write(station.first, parameters)
        station.elements += 1
        moved = True
        if not parameters.immediate_valid:
            station.total += 1
            effect(machine, counters + stations.MESH_POPPED + link, 1)
        effect(machine, flag, amount)
    ahead, quiet = 0, False
    if moved and station.waits_on < 0:
        depth = counted_depth(parameters.write_producer)
        words, quiet = words_ahead(station, parameters.narrow_write, parameters.watchers, 1, depth)
        ahead = words // per_cycle
        if not parameters.immediate_valid:
            sender = station_of(
                stations.FIRST_TILE_GROUP + mesh_bus.neighbour(tile, (link + _LINKS // 2) % _LINKS),
                stations.SEND + link,
            )
            under_way = _under_way(machine, sender, pushed)
            ahead = _cycles_ahead(machine, words, pushed, station.total - under_way)
    move_ahead(machine, index, parameters.narrow_write, ahead * per_cycle, quiet)
    end_turn(machine, index, moved, ahead)
    if not parameters.immediate_valid:
        station.total += ahead * per_cycle
        grow(machine, counters + stations.MESH_POPPED + link, ahead, per_cycle)
    grow(machine, flag, ahead, per_cycle * rate(parameters.write_producer, parameters.narrow_write))
    station.done = station.first.done


@inner
def _cycles_ahead(machine: Machine, words: int, counter: int, level: int) -> int:
    """Cycles in which a FIFO lets all words of the cycle pass, for ``words`` words at most.

    The word with number k of those can pass when ``counter`` has reached ``level`` + k.
    """
    per_cycle = machine.rates[0].mesh_words_per_cycle
    first = machine.clock[0].now + 1
    cycles = 0
    while (cycles + 1) * per_cycle <= words and (
        seen(machine, counter, first + cycles) >= level + (cycles + 1) * per_cycle
    ):
        cycles += 1
    return cycles


@inner
def _under_way(machine: Machine, index: int, counter: int) -> int:
    """Return what a station adds in this cycle to the counter of all that it moves; others see it
    in the next cycle."""
    return machine.stations[index].total - seen(machine, counter, NEVER)


@inner
def _sent_ahead(
    machine: Machine, index: int, tile: int, link: int, words: int, tables: Tables
) -> int:
    """Cycles in which the neighbour's FIFO lets all words of the cycle pass, for ``words`` words at
    most: there is room, or the receiver is known to take what is in the way."""
    of_neighbour = mesh_bus.neighbour(tile, link)
    receiver = station_of(stations.FIRST_TILE_GROUP + of_neighbour, stations.RECEIVE + link)
    popped = tile_counters(of_neighbour) + stations.MESH_POPPED + link
    room = machine.rates[0].mesh_fifo_words
    full_from = machine.stations[index].total - room
    under_way = _under_way(machine, receiver, popped)
    cycles = _cycles_ahead(machine, words, popped, full_from - under_way)
    if machine.rates[0].mesh_words_per_cycle > 1 or room < _LEAST_ROOM or cycles == words:
        return cycles
    # The word to be taken before the next one can be sent, counted from the receiver's next one.
    # It takes one in each cycle, as long as they come: a word needs two from sender to receiver.
    behind = full_from + cycles - machine.stations[receiver].total
    taken = _will_take(machine, receiver, of_neighbour, link, tables)
    if behind < 0 or behind >= taken:
        return cycles
    now = machine.clock[0].now
    first = now if machine.stations[receiver].waits_on >= 0 else machine.turns.wake[receiver]
    if first + behind > now + cycles:
        return cycles
    return min(words, cycles + taken - behind)


@inner
def _will_take(machine: Machine, index: int, tile: int, link: int, tables: Tables) -> int:
    """Words that the receiving side of a mesh unit takes from its next turn on, one in each cycle,
    whatever happens: nothing but the words is waited for."""
    station = machine.stations[index]
    if station.instruction < 0 or station.done or station.first.done:
        return 0
    parameters = tables.mesh[station.row]
    if parameters.immediate_valid:
        return 0
    if station.waits_on >= 0:
        if station.waits_on != tile_counters(tile) + stations.MESH_PUSHED + link:
            return 0
    elif machine.turns.wake[index] == NEVER:
        return 0
    if is_watched(station.first.begins, parameters.watchers, 1):
        return 0
    quiet = quiet_elements(
        station.first, parameters.narrow_write, parameters.watchers, 1, traversal.MAX_LOOPS
    )
    if not quiet:
        quiet = plain_elements(station.first, parameters.narrow_write, parameters.watchers, 1)
    return 1 + quiet


@inner
def begin_mesh(machine: Machine, index: int, begun: bool, tables: Tables) -> None:
    """Begin on both sides the instruction that the sending one has taken."""
    station = machine.stations[index]
    parameters = tables.mesh[station.row]
    mesh_bus.begin_read(station.first, parameters, station.base)
    station.stays = stays(station.first, parameters.narrow_read, NARROW_WORDS)
    station.done = not mesh_bus.sends(parameters)
    other = index - stations.SEND + stations.RECEIVE
    receiver = machine.stations[other]
    now = machine.clock[0].now
    book(machine, other, now)
    begin_instruction(machine, other)
    receiver.instruction = station.instruction
    receiver.row = station.row
    receiver.waited[:] = 0
    traversal.start(receiver.first, parameters.narrow_write)
    receiver.stays = stays(receiver.first, parameters.narrow_write, NARROW_WORDS)
    receiver.done = not mesh_bus.receives(parameters)
    if not receiver.done:
        wake_at(machine, other, max(now, station.mark))
    elif station.done and not begun:
        # What has no side to move in its first cycle has ended before.
        wake_at(machine, index, station.mark - 1)


@inner
def end_mesh(machine: Machine, tile: int, link: int) -> None:
    """A side that is done waits for the other; when both are, the instruction ends."""
    sender = station_of(stations.FIRST_TILE_GROUP + tile, stations.SEND + link)
    receiver = station_of(stations.FIRST_TILE_GROUP + tile, stations.RECEIVE + link)
    station = machine.stations[sender]
    other = machine.stations[receiver]
    end = machine.clock[0].now + 1
    if station.done and other.done:
        book(machine, sender, end)
        book(machine, receiver, end)
        book_instruction(machine, receiver)
        other.instruction = NO_INSTRUCTION
        other.cause = _DISPATCH
        unit = TileUnit.MESH_SOUTH + link
        complete(machine, sender, tile_counters(tile) + stations.COMPLETED + unit)
        wake_at(machine, sender, end)
    elif station.done:
        station.cause = _MESH
        machine.turns.wake[sender] = NEVER
    elif other.done:
        other.cause = _MESH
        machine.turns.wake[receiver] = NEVER
