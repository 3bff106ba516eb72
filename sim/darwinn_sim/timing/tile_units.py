"""Turns of the units of a tile that neither use the ring nor the mesh, and of its dispatch.

Each function is one turn of a station: it moves what the station can move in this cycle, or makes
it wait. What is moved where does not matter here; when flags change does.
"""

from __future__ import annotations

from darwinn_sim import chip
from darwinn_sim.isa.codes import TileFlag, TileUnit
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.instructions import TileFence, WideToNarrow
from darwinn_sim.timing import stations
from darwinn_sim.timing.machine import (
    busy,
    complete,
    effect,
    grow,
    lets_pass,
    load,
    passes,
    pause,
    settle_watched,
    station_of,
    take,
    tile_counters,
    wait,
    wake_at,
)
from darwinn_sim.timing.places import (
    SECOND_STAYS,
    check,
    check_first_row,
    check_first_words,
    check_row,
    check_write,
    stays,
)
from darwinn_sim.timing.rates import (
    move_ahead,
    plain_elements,
    rate,
    seen,
    skip,
    words_ahead,
)
from darwinn_sim.timing.state import FLAG_CYCLES, MOST_AHEAD, Machine, Station
from darwinn_sim.timing.stations import Cause
from darwinn_sim.timing.stretches import is_quiet
from darwinn_sim.units import narrow_to_wide, ring_bus, tensor_unit, tile_fence, wide_to_narrow
from darwinn_sim.units.memories import NARROW_WORDS, SCALE_STEPS
from darwinn_sim.units.output_stage import result_words
from darwinn_sim.units.tables import Tables
from darwinn_sim.units.tensor_plan import TensorPlan
from darwinn_sim.units.tensor_records import Place, Segment

_TILE_FENCE = BY_NAME["TileFence"].opcode
_STATION_OF_UNIT = stations.STATION_OF_UNIT
_BUSY = int(Cause.BUSY)
_COMPUTE = int(Cause.COMPUTE)

_NOTHING = -1

_STARTS, _ENDS, _DRAINS = range(3)
"""Where the tensor unit stands: before a segment, at its last iteration, after all of them."""


@inner
def begin(machine: Machine, index: int, unit: int, tile: int, tables: Tables) -> bool:
    """Take the next instruction of a tile unit; False if there is none, or it only starts now."""
    counters = tile_counters(tile)
    station = machine.stations[index]
    if not take(
        machine, index, counters + stations.QUEUED + unit, counters + stations.BEGUN + unit
    ):
        return False
    station.row = tables.row[station.instruction]
    _enter(machine, station, unit, tile, tables)
    start = machine.rates[0].instruction_start
    if start > 0 and tables.opcode[station.instruction] != tensor_unit.FUNCTION_TABLE:
        busy(machine, index, start)
        return False
    return True


@inner
def _enter(machine: Machine, station: Station, unit: int, tile: int, tables: Tables) -> None:
    """Put the traversals of the new instruction at their starts."""
    row = station.row
    sides = machine.sides[tile]
    if unit == TileUnit.RING_PRODUCER:
        ring_bus.begin_producer(station, tables.ring_producer[row], sides)
        station.stays = stays(station.first, tables.ring_producer[row].wide_read, chip.WIDE_ROWS)
    elif unit == TileUnit.RING_CONSUMER_A or unit == TileUnit.RING_CONSUMER_B:
        ring_bus.begin_consumer(station, tables.ring_consumer[row])
        station.stays = stays(station.first, tables.ring_consumer[row].wide_write, chip.WIDE_ROWS)
    elif unit == TileUnit.NARROW_TO_WIDE:
        narrow_to_wide.begin(station, tables.narrow_to_wide[row], sides)
        reads = stays(station.first, tables.narrow_to_wide[row].narrow_read, NARROW_WORDS)
        writes = stays(station.second, tables.narrow_to_wide[row].wide_write, chip.WIDE_ROWS)
        station.stays = reads | writes << 1
    elif unit == TileUnit.WIDE_TO_NARROW:
        blocks = tile_counters(tile) + TileFlag.WIDE_TO_SCALING
        counted = seen(machine, blocks, machine.clock[0].now)
        wide_to_narrow.begin(station, tables.wide_to_narrow[row], counted)
        room = SCALE_STEPS if tables.wide_to_narrow[row].scale_bias else NARROW_WORDS
        reads = stays(station.first, tables.wide_to_narrow[row].wide_read, chip.WIDE_ROWS)
        writes = stays(station.second, tables.wide_to_narrow[row].narrow_write, room)
        station.stays = reads | writes << 1


@inner
def dispatch(machine: Machine, index: int, tile: int, tables: Tables) -> None:
    """Hand the first instruction of the tile's queue to its unit, or execute it if a fence."""
    counters = tile_counters(tile)
    station = machine.stations[index]
    if machine.counters[counters + stations.PUSHED] <= station.taken:
        wait(machine, index, counters + stations.PUSHED, station.taken + 1)
        return
    entry = machine.tile_queue[tile][station.taken % stations.TILE_PLACES]
    instruction = entry.instruction
    if tables.opcode[instruction] == _TILE_FENCE:
        if not _pass_fence(machine, index, tile, tables.tile_fence[tables.row[instruction]]):
            return
    else:
        unit = tables.unit[instruction]
        of_unit = station_of(stations.FIRST_TILE_GROUP + tile, _STATION_OF_UNIT[unit])
        target = machine.stations[of_unit]
        begun = counters + stations.BEGUN + unit
        room_from = target.queued - machine.rates[0].unit_queue + 1
        if machine.counters[begun] < room_from:
            wait(machine, index, begun, room_from)
            return
        place = machine.unit_queue[of_unit][target.queued % stations.UNIT_PLACES]
        place.instruction = instruction
        place.base = entry.base
        target.queued += 1
        effect(machine, counters + stations.QUEUED + unit, 1)
    station.taken += 1
    station.elements += 1
    effect(machine, counters + stations.TAKEN, 1)
    busy(machine, index, 1)


@inner
def _pass_fence(machine: Machine, index: int, tile: int, fence: TileFence) -> bool:
    """Pass a tile fence; if something holds it back, wait for that and return False."""
    counters = tile_counters(tile)
    idle = 0
    for unit in range(chip.TILE_UNITS):
        completed = machine.counters[counters + stations.COMPLETED + unit]
        idle |= int(completed == _queued(machine, tile, unit)) << unit
    # Tokens come one by one: their flags need not be settled.
    flags = machine.counters[counters : counters + chip.TILE_FLAGS]
    held_by = tile_fence.guard(fence, idle, flags)
    if held_by >= tile_fence.FIRST_CHANNEL:
        channel = held_by - tile_fence.FIRST_CHANNEL
        wait(machine, index, counters + TileFlag.RING_PRODUCER_A + channel, fence.producer_count)
        return False
    if held_by != tile_fence.OPEN:
        queued = _queued(machine, tile, held_by)
        wait(machine, index, counters + stations.COMPLETED + held_by, queued)
        return False
    for flag in range(chip.TILE_FLAGS):
        if tile_fence.loads(fence, flag):
            load(machine, counters + flag, fence.reset_value)
    tile_fence.restart_sides(fence, machine.sides[tile])
    effect(machine, counters + stations.FENCES, fence.increment)
    return True


@inner
def _queued(machine: Machine, tile: int, unit: int) -> int:
    """Instructions that a tile unit has been given."""
    station = station_of(stations.FIRST_TILE_GROUP + tile, _STATION_OF_UNIT[unit])
    return machine.stations[station].queued


@inner
def drain(machine: Machine, index: int, tile: int) -> bool:
    """End an instruction of the tensor unit, which lasts until its results are in narrow memory.

    Returns whether that takes the turn.
    """
    station = machine.stations[index]
    if station.instruction < 0 or station.phase != _DRAINS:
        return False
    cycles = machine.rates[0].drain_cycles
    if cycles > 0:
        busy(machine, index, cycles)
    complete(machine, index, tile_counters(tile) + stations.COMPLETED + TileUnit.TENSOR)
    return cycles > 0


@inner
def tensor(machine: Machine, index: int, tile: int, tables: Tables) -> bool:
    """A turn at the last iteration of each segment of the plan, and before one that must wait.

    Returns, as all turns of units, whether the instruction has ended.
    """
    station = machine.stations[index]
    counters = tile_counters(tile)
    if tables.opcode[station.instruction] == tensor_unit.FUNCTION_TABLE:
        busy(machine, index, 1)
        return True
    now = machine.clock[0].now
    if station.phase == _STARTS:
        waits = _segment(station, tables).waits
        watchers = tables.tensor[station.row].watchers
        if waits and not passes(machine, index, watchers, counters, waits, -1):
            return False
        station.phase = _ENDS
        rest = _segment(station, tables).count - 1
        if rest:
            busy(machine, index, rest)
            return False
    room_from = _room_from(machine, station)
    if not _has_room(_segment(station, tables), room_from, now):
        pause(machine, index, room_from, _COMPUTE)
        return False
    _end_segments(machine, index, tile, tables, False)
    if station.phase == _STARTS and _may_begin(machine, station, counters, tables):
        quiet = _end_segments(machine, index, tile, tables, True)
        station.phase = _ENDS
        busy(machine, index, quiet + _segment(station, tables).count)
        return False
    busy(machine, index, 1)
    if station.phase == _DRAINS and station.total > now + 1:
        pause(machine, index, station.total, _COMPUTE)
    return False


@inner
def _segment(station: Station, tables: Tables) -> Segment:
    plan = tables.tensor_plan
    return plan.segment[plan.place[station.row].segment + station.position]


@inner
def _may_begin(machine: Machine, station: Station, counters: int, tables: Tables) -> bool:
    """The watchers of the next segment pass, in this cycle and so in the next one.

    Flags only grow, but for those that a fence loads. Where one does so in this cycle, the unit has
    to look again in the next one.
    """
    segment = _segment(station, tables)
    parameters = tables.tensor[station.row]
    if segment.waits:
        if machine.clock[0].loads:
            return False
        settle_watched(machine, parameters.watchers, counters)
    flags = machine.counters[counters : counters + chip.TILE_FLAGS]
    return not tensor_unit.obstacle_of(station, parameters, segment, flags)


@inner
def _has_room(segment: Segment, room_from: int, cycle: int) -> bool:
    """Few enough results of earlier runs wait in ``cycle`` for the segment to end."""
    return not segment.outputs or room_from <= cycle


@inner
def _room_from(machine: Machine, station: Station) -> int:
    """The cycle from which a run can end; ``total`` is the one from which no result waits."""
    return station.total - machine.rates[0].result_queue_cycles


@inner
def _end_segments(machine: Machine, index: int, tile: int, tables: Tables, quiet: bool) -> int:
    """The last iteration of a segment: flags, and results on their way to narrow memory.

    It is that of the present segment, in this cycle; or, if ``quiet``, those of the segments to
    come that change no flag but by results. The one before a test of watchers has a turn at its
    end, and so has the last one. Returns the cycles that they take.
    """
    station = machine.stations[index]
    of_writer = index - stations.TENSOR + stations.WRITER
    writer = machine.stations[of_writer]
    counters = tile_counters(tile)
    parameters, plan = tables.tensor[station.row], tables.tensor_plan
    place = plan.place[station.row]
    delay = 1 + machine.rates[0].result_cycles
    queued, free, room = writer.queued, station.total, machine.rates[0].result_queue_cycles
    now = last = machine.clock[0].now
    iterations = written = writing = 0
    while True:
        segment = plan.segment[place.segment + station.position]
        if quiet:
            if not _is_quiet(station, plan, place) or queued - writer.taken > MOST_AHEAD:
                break
            done = station.words
            cycles, free = _end_stretch(machine, station, plan, place, free, last)
            if cycles:
                last, iterations = last + cycles, iterations + cycles
                written, writing = written + station.words - done, writing + station.words - done
                continue
            if not _has_room(segment, free - room, last + segment.count):
                break
            last += segment.count
        if segment.fault != state.NO_FAULT:
            check(machine, index, False, segment.fault, 0)
        iterations += segment.count
        words = result_words(parameters, segment)
        if words:
            first = max(last + delay, free)
            free, queued = _queue_results(machine, index, tile, words, tables, first, queued)
            written += words
            writing += free - first
        parameter_reads, sum_writes = tensor_unit.step(station, segment)
        effect(machine, counters + TileFlag.PARAMETER_READ, parameter_reads)
        effect(machine, counters + TileFlag.PARTIAL_SUM_WRITE, sum_writes)
        if not quiet:
            break
    station.elements += iterations
    station.total, writer.queued = free, queued
    writer.elements += written
    machine.usage[of_writer, _BUSY] += writing
    if writer.taken < queued:
        wake_at(machine, of_writer, machine.flag_cycles[tile, writer.taken % FLAG_CYCLES])
    station.phase = _STARTS
    if tensor_unit.has_ended(station, place):
        station.phase = _DRAINS
        lacks = tensor_unit.lacks_results(station, place)
        check(machine, index, not lacks, state.FAULT_RESULT_COUNT, station.words)
    return int(last - now)


@inner
def _end_stretch(
    machine: Machine, station: Station, plan: TensorPlan, place: Place, free: int, last: int
) -> tuple[int, int]:
    """End the stretch of segments that begins with the present one behind cycle ``last``, if the
    writer, ``free`` in its cycle, has written what is left by the end of that one.

    Returns the cycles that they take, 0 if there is none, and in which the writer is free then.
    """
    rates = machine.rates[0]
    delay = 1 + rates.result_cycles
    at = place.segment + station.position
    end = machine.stretches.end[at]
    if not end or rates.result_words_per_cycle != 1 or delay > rates.result_queue_cycles:
        return 0, free
    if free > last + delay + plan.segment[at].count:
        return 0, free
    words = machine.stretches.words
    cycles = plan.segment[end].first - plan.segment[at].first
    station.words += words[end] - words[at]
    station.position = end - place.segment
    return cycles, last + cycles + delay + words[end] - words[end - 1]


@inner
def _is_quiet(station: Station, plan: TensorPlan, place: Place) -> bool:
    """The present segment changes no flag but by results, and is neither the last one nor before a
    test of watchers.
    """
    if station.position + 1 == place.segments:
        return False
    return is_quiet(plan, place.segment + station.position)


@inner
def _queue_results(
    machine: Machine, index: int, tile: int, words: int, tables: Tables, first: int, queued: int
) -> tuple[int, int]:
    """Give words to the result writer, which writes the first in cycle ``first``; it needs no turns
    but for those that a flag counts, of which ``queued`` were given to it before.

    Returns the cycle in which it is free again, and how many it has been given.
    """
    station = machine.stations[index]
    plan = tables.tensor_plan
    place = plan.place[station.row]
    per_cycle = machine.rates[0].result_words_per_cycle
    # The cycle of the word, and how many more there is time for in it.
    at, left = first, per_cycle
    for _ in range(words):
        if tensor_unit.lacks_place(station, place):
            check(machine, index, False, state.FAULT_RESULT_COUNT, station.words)
            break
        if tensor_unit.step_result(station, plan, place):
            machine.flag_cycles[tile, queued % FLAG_CYCLES] = at
            queued += 1
        left -= 1
        if left == 0:
            at, left = at + 1, per_cycle
    return at + int(left < per_cycle), queued


@inner
def write_results(machine: Machine, index: int, tile: int) -> None:
    """Count the results that are written in this cycle and that flag 0 counts."""
    writer = machine.stations[index]
    now = machine.clock[0].now
    while writer.taken < writer.queued:
        cycle = machine.flag_cycles[tile, writer.taken % FLAG_CYCLES]
        if cycle > now:
            wake_at(machine, index, cycle)
            return
        effect(machine, tile_counters(tile) + TileFlag.ACTIVATION_WRITE, 1)
        writer.taken += 1


@inner
def pack(machine: Machine, index: int, tile: int, tables: Tables) -> bool:
    """Gather words, and write the row when it is closed."""
    station = machine.stations[index]
    counters = tile_counters(tile)
    parameters = tables.narrow_to_wide[station.row]
    behind = machine.rates[0].row_write_cycles
    moved = False
    for _ in range(machine.rates[0].narrow_to_wide_words_per_cycle):
        if station.row_closed:
            if not _row_is_written(machine, index, counters, parameters):
                break
            moved = True
            if not behind:
                # The row takes the place of a word in its cycle.
                continue
        if station.first.done:
            break
        side = narrow_to_wide.guard(station)
        if not lets_pass(machine, index, parameters.watchers, counters, side):
            break
        check_first_words(machine, index, parameters.narrow_read, 1)
        narrow_to_wide.step(station, parameters)
        station.elements += 1
        moved = True
        if not station.row_closed:
            continue
        if behind or not _row_is_written(machine, index, counters, parameters):
            break
    ahead = _gather_ahead(machine, index, parameters) if moved else 0
    end_turn(machine, index, moved, ahead)
    if narrow_to_wide.has_ended(station):
        narrow_to_wide.end(station, parameters, machine.sides[tile])
        check(machine, index, bool(station.second.done), state.FAULT_ROW_COUNT, 0)
        return True
    return False


@inner
def _row_is_written(
    machine: Machine, index: int, counters: int, parameters: narrow_to_wide.Parameters
) -> bool:
    """Write the closed row of narrow-to-wide; if a watcher fails, wait for it."""
    station = machine.stations[index]
    side = narrow_to_wide.guard(station)
    if not lets_pass(machine, index, parameters.watchers, counters, side):
        return False
    if narrow_to_wide.lacks_place(station):
        check(machine, index, False, state.FAULT_ROW_COUNT, 0)
        return False
    if not station.stays & SECOND_STAYS:
        check_row(machine, index, station.second, parameters.wide_write)
    increment = narrow_to_wide.step(station, parameters)
    effect(machine, counters + narrow_to_wide.FLAG, increment)
    return True


@inner
def _gather_ahead(machine: Machine, index: int, parameters: narrow_to_wide.Parameters) -> int:
    """Move the words that nothing can hold up and that do not close the row; return the cycles."""
    station = machine.stations[index]
    if (
        station.waits_on >= 0
        or station.row_closed
        or parameters.row_loop <= parameters.narrow_read.inner
    ):
        return 0
    per_cycle = machine.rates[0].narrow_to_wide_words_per_cycle
    words, quiet = words_ahead(
        station, parameters.narrow_read, parameters.watchers, 0, parameters.row_loop
    )
    cycles = min(words, chip.ROW_WORDS - 1 - station.words) // per_cycle
    station.words += cycles * per_cycle
    move_ahead(machine, index, parameters.narrow_read, cycles * per_cycle, quiet)
    return cycles


@inner
def end_turn(machine: Machine, index: int, moved: bool, ahead: int) -> None:
    """A station that has moved something has its next turn in the next cycle, even if it waits.

    In ``ahead`` further cycles it moves what nothing can hold up.
    """
    if not moved:
        return
    machine.stations[index].waits_on = _NOTHING
    busy(machine, index, 1 + ahead)


@inner
def spread(machine: Machine, index: int, tile: int, tables: Tables) -> bool:
    """Spread words of a row, fetching the next row when one is used up."""
    station = machine.stations[index]
    counters = tile_counters(tile)
    parameters = tables.wide_to_narrow[station.row]
    write = station.second
    flag = wide_to_narrow.flag(parameters)
    moved = False
    for _ in range(machine.rates[0].wide_to_narrow_words_per_cycle):
        if write.done or not _word_is_there(machine, index, counters, parameters):
            break
        check_write(machine, index, parameters, 1)
        effect(machine, counters + flag, wide_to_narrow.step(station, parameters))
        station.elements += 1
        moved = True
    ahead = _spread_ahead(machine, index, parameters) if moved else 0
    end_turn(machine, index, moved, ahead)
    per_cycle = machine.rates[0].wide_to_narrow_words_per_cycle
    grow(
        machine,
        counters + flag,
        ahead,
        per_cycle * rate(parameters.producer, parameters.narrow_write),
    )
    if write.done:
        check(machine, index, bool(station.first.done), state.FAULT_WORD_COUNT, 0)
    return bool(write.done)


@inner
def _spread_ahead(machine: Machine, index: int, parameters: WideToNarrow) -> int:
    """Move the words of the row that nothing can hold up; return the cycles that takes."""
    station = machine.stations[index]
    if station.waits_on >= 0 or parameters.row_loop <= parameters.narrow_write.inner:
        return 0
    per_cycle = machine.rates[0].wide_to_narrow_words_per_cycle
    step = 1 + parameters.scale_bias
    words = plain_elements(station.second, parameters.narrow_write, parameters.watchers, 1)
    cycles = min(words, (chip.ROW_WORDS - station.position + step - 1) // step) // per_cycle
    station.position += cycles * per_cycle * step
    check_write(machine, index, parameters, cycles * per_cycle)
    skip(station, station.second, parameters.narrow_write, cycles * per_cycle)
    return cycles


@inner
def _word_is_there(machine: Machine, index: int, counters: int, parameters: WideToNarrow) -> bool:
    """The watchers of the next word have passed, and its row has been fetched."""
    station = machine.stations[index]
    side = wide_to_narrow.guard(station)
    while side != wide_to_narrow.OPEN:
        if wide_to_narrow.lacks_row(station, side):
            check(machine, index, False, state.FAULT_WORD_COUNT, 0)
            return False
        if not lets_pass(machine, index, parameters.watchers, counters, side):
            return False
        if side == 0:
            check_first_row(machine, index, parameters.wide_read)
        wide_to_narrow.pass_guard(station, parameters, side)
        side = wide_to_narrow.guard(station)
    return True
