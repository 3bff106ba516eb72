"""Turns of the units of a tile that neither use the ring nor the mesh, and of its dispatch.

Each function is one turn of a lane: it moves what the lane can move in this cycle, or makes it
wait. What is moved where does not matter here; when flags change does.
"""

from __future__ import annotations

from darwinn_sim import chip
from darwinn_sim.isa.codes import TileFlag, TileUnit
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.kernel import state, sync, traversal
from darwinn_sim.kernel.compiled import Record, inner
from darwinn_sim.timing import lanes
from darwinn_sim.timing.lanes import Cause
from darwinn_sim.timing.machine import (
    busy,
    complete,
    effect,
    forget,
    grow,
    has_reached,
    lane_of,
    lets_pass,
    load,
    passes,
    pause,
    settle_watched,
    take,
    tile_counters,
    wait,
    wake_at,
)
from darwinn_sim.timing.rates import plain_elements, rate, settle, skip
from darwinn_sim.timing.state import FLAG_CYCLES, MOST_AHEAD, Machine
from darwinn_sim.units import narrow_to_wide, tile_fence, wide_to_narrow
from darwinn_sim.units.tables import Tables
from darwinn_sim.units.tensor_unit import OUTPUT_16BIT

_TILE_FENCE = BY_NAME["TileFence"].opcode
_FUNCTION_TABLE = BY_NAME["CoefficientTable"].opcode
_LANE_OF_UNIT = lanes.LANE_OF_UNIT
_BUSY = int(Cause.BUSY)
_COMPUTE = int(Cause.COMPUTE)

_STARTS, _ENDS, _DRAINS = range(3)
"""Where the tensor unit stands: before a segment, at its last iteration, after all of them."""


@inner
def begin(machine: Machine, index: int, unit: int, tile: int, tables: Tables) -> bool:
    """Take the next instruction of a tile unit; False if there is none, or it only starts now."""
    counters = tile_counters(tile)
    lane = machine.lanes[index]
    if not take(machine, index, counters + lanes.QUEUED + unit, counters + lanes.BEGUN + unit):
        return False
    lane.row = tables.row[lane.instruction]
    _enter(machine, lane, unit, tables)
    start = machine.rates[0].instruction_start
    if start > 0 and tables.opcode[lane.instruction] != _FUNCTION_TABLE:
        busy(machine, index, start)
        return False
    return True


@inner
def _enter(machine: Machine, lane: Record, unit: int, tables: Tables) -> None:
    """Put the traversals of the new instruction at their starts."""
    row = lane.row
    if unit == TileUnit.RING_PRODUCER:
        traversal.start(lane.first, tables.ring_producer[row].wide_read)
    elif unit == TileUnit.RING_CONSUMER_A or unit == TileUnit.RING_CONSUMER_B:
        traversal.start(lane.first, tables.ring_consumer[row].wide_write)
    elif unit == TileUnit.NARROW_TO_WIDE:
        narrow_to_wide.begin(lane, tables.narrow_to_wide[row])
    elif unit == TileUnit.WIDE_TO_NARROW:
        wide_to_narrow.begin(lane, tables.wide_to_narrow[row])


@inner
def dispatch(machine: Machine, index: int, tile: int, tables: Tables) -> None:
    """Hand the first instruction of the tile's queue to its unit, or execute it if a fence."""
    counters = tile_counters(tile)
    lane = machine.lanes[index]
    if machine.counters[counters + lanes.PUSHED] <= lane.taken:
        wait(machine, index, counters + lanes.PUSHED, lane.taken + 1)
        return
    instruction = machine.tile_queue[tile, lane.taken % lanes.TILE_PLACES]
    if tables.opcode[instruction] == _TILE_FENCE:
        if not _pass_fence(machine, index, tile, tables.tile_fence[tables.row[instruction]]):
            return
    else:
        unit = tables.unit[instruction]
        target = machine.lanes[lane_of(lanes.FIRST_TILE_GROUP + tile, _LANE_OF_UNIT[unit])]
        begun = counters + lanes.BEGUN + unit
        room_from = target.queued - machine.rates[0].unit_queue + 1
        if machine.counters[begun] < room_from:
            wait(machine, index, begun, room_from)
            return
        target.queue[target.queued % lanes.UNIT_PLACES] = instruction
        target.queued += 1
        effect(machine, counters + lanes.QUEUED + unit, 1)
    lane.taken += 1
    lane.elements += 1
    effect(machine, counters + lanes.TAKEN, 1)
    busy(machine, index, 1)


@inner
def _pass_fence(machine: Machine, index: int, tile: int, fence: Record) -> bool:
    counters = tile_counters(tile)
    for unit in range(chip.TILE_UNITS):
        if (fence.wait_idle >> unit) & 1:
            lane = machine.lanes[lane_of(lanes.FIRST_TILE_GROUP + tile, _LANE_OF_UNIT[unit])]
            completed = counters + lanes.COMPLETED + unit
            if not has_reached(machine, completed, lane.queued):
                wait(machine, index, completed, lane.queued)
                return False
    for channel in range(tile_fence.RING_CHANNELS):
        if (fence.producer_count_valid >> channel) & 1:
            tokens = counters + TileFlag.RING_PRODUCER_A + channel
            settle(machine, tokens, machine.clock[0].now)
            if (machine.counters[tokens] - fence.producer_count) & sync.FLAG_MASK:
                wait(machine, index, tokens, fence.producer_count)
                return False
    for flag in range(chip.TILE_FLAGS):
        if (fence.reset_flags >> flag) & 1:
            load(machine, counters + flag, fence.reset_value)
    effect(machine, counters + lanes.FENCES, fence.increment)
    return True


@inner
def tensor(machine: Machine, index: int, tile: int, tables: Tables) -> None:
    """A turn at the last iteration of each segment of the plan, and before one that must wait."""
    lane = machine.lanes[index]
    counters = tile_counters(tile)
    completed = counters + lanes.COMPLETED + TileUnit.TENSOR
    if lane.instruction >= 0 and lane.phase == _DRAINS:
        # The instruction lasts until its results are in narrow memory.
        drain = machine.rates[0].drain_cycles
        if drain > 0:
            busy(machine, index, drain)
        complete(machine, index, completed)
        if drain > 0:
            return
    if lane.instruction < 0 and not begin(machine, index, TileUnit.TENSOR, tile, tables):
        return
    if tables.opcode[lane.instruction] == _FUNCTION_TABLE:
        busy(machine, index, 1)
        complete(machine, index, completed)
        return
    now = machine.clock[0].now
    if lane.phase == _STARTS:
        if not _may_begin(machine, lane, counters, tables):
            watchers = tables.tensor[lane.row].watchers
            passes(machine, index, watchers, counters, _segment(lane, tables).waits, -1)
            return
        lane.phase = _ENDS
        rest = _segment(lane, tables).count - 1
        if rest:
            busy(machine, index, rest)
            return
    if not _has_room(machine, lane, tables, now):
        pause(machine, index, _room_from(machine, lane), _COMPUTE)
        return
    _end_segment(machine, index, tile, tables, now)
    if lane.phase == _STARTS and _may_begin(machine, lane, counters, tables):
        quiet = _end_quiet_segments(machine, index, tile, tables)
        lane.phase = _ENDS
        busy(machine, index, quiet + _segment(lane, tables).count)
        return
    busy(machine, index, 1)
    if lane.phase == _DRAINS and lane.total > now + 1:
        pause(machine, index, lane.total, _COMPUTE)


@inner
def _segment(lane: Record, tables: Tables) -> Record:
    plan = tables.tensor_plan
    return plan.segment[plan.place[lane.row].segment + lane.position]


@inner
def _may_begin(machine: Machine, lane: Record, counters: int, tables: Tables) -> bool:
    """The watchers of the next segment pass.

    Flags only grow while the unit has an instruction, so what passes now passes in the next cycle.
    """
    waits = _segment(lane, tables).waits
    if waits == 0:
        return True
    flags = machine.counters[counters : counters + chip.TILE_FLAGS]
    watchers = tables.tensor[lane.row].watchers
    settle_watched(machine, watchers, counters)
    return sync.passes(watchers, lane.waited, flags, waits)


@inner
def _has_room(machine: Machine, lane: Record, tables: Tables, cycle: int) -> bool:
    """Few enough results of earlier runs wait in ``cycle`` for the segment to end."""
    return not _segment(lane, tables).outputs or _room_from(machine, lane) <= cycle


@inner
def _room_from(machine: Machine, lane: Record) -> int:
    """The cycle from which a run can end; ``total`` is the one from which no result waits."""
    rates = machine.rates[0]
    waiting = rates.result_queue_words // rates.result_words_per_cycle
    return lane.total - waiting  # type: ignore[no-any-return]


@inner
def _end_quiet_segments(machine: Machine, index: int, tile: int, tables: Tables) -> int:
    """End the segments to come that change no flag but by results; return the cycles they take.

    The one before a test of watchers has a turn at its end, and so has the last one.
    """
    lane = machine.lanes[index]
    writer = machine.lanes[index - lanes.TENSOR + lanes.WRITER]
    plan = tables.tensor_plan
    place = plan.place[lane.row]
    now = machine.clock[0].now
    cycles = 0
    while lane.position + 1 < place.segments:
        segment = plan.segment[place.segment + lane.position]
        following = plan.segment[place.segment + lane.position + 1]
        if segment.parameter_reads or segment.sum_writes or following.waits:
            break
        last = now + cycles + segment.count
        if not _has_room(machine, lane, tables, last):
            break
        if writer.queued - writer.taken > MOST_AHEAD:
            break
        cycles += segment.count
        _end_segment(machine, index, tile, tables, last)
    return cycles


@inner
def _end_segment(machine: Machine, index: int, tile: int, tables: Tables, cycle: int) -> None:
    """The last iteration of a segment: flags, and results on their way to narrow memory."""
    lane = machine.lanes[index]
    counters = tile_counters(tile)
    segment = _segment(lane, tables)
    lane.elements += segment.count
    effect(machine, counters + TileFlag.PARAMETER_READ, segment.parameter_reads)
    effect(machine, counters + TileFlag.PARTIAL_SUM_WRITE, segment.sum_writes)
    if segment.outputs:
        size = 2 if tables.tensor[lane.row].function & OUTPUT_16BIT else 1
        _queue_results(machine, index, tile, (segment.lanes * size + 3) // 4, tables, cycle)
    lane.position += 1
    place = tables.tensor_plan.place[lane.row]
    ended = lane.position == place.segments
    if ended:
        _check(machine, index, lane.words == place.writes, state.FAULT_RESULT_COUNT)
    lane.phase = _DRAINS if ended else _STARTS


@inner
def _queue_results(
    machine: Machine, index: int, tile: int, words: int, tables: Tables, cycle: int
) -> None:
    """Give words to the result writer, which needs no turns but for those that a flag counts."""
    lane = machine.lanes[index]
    writer = machine.lanes[index - lanes.TENSOR + lanes.WRITER]
    per_cycle = machine.rates[0].result_words_per_cycle
    first = max(cycle + 1 + machine.rates[0].result_cycles, lane.total)
    lane.total = first + (words + per_cycle - 1) // per_cycle
    plan = tables.tensor_plan
    place = plan.place[lane.row]
    for k in range(min(words, place.writes - lane.words)):
        if plan.write_flag[place.write + lane.words + k]:
            machine.flag_cycles[tile, writer.queued % FLAG_CYCLES] = first + k // per_cycle
            writer.queued += 1
    lane.words += words
    writer.elements += words
    machine.usage[index - lanes.TENSOR + lanes.WRITER, _BUSY] += lane.total - first
    if writer.taken < writer.queued:
        turn = machine.flag_cycles[tile, writer.taken % FLAG_CYCLES]
        wake_at(machine, index - lanes.TENSOR + lanes.WRITER, turn)


@inner
def write_results(machine: Machine, index: int, tile: int) -> None:
    """Count the results that are written in this cycle and that flag 0 counts."""
    writer = machine.lanes[index]
    now = machine.clock[0].now
    while writer.taken < writer.queued:
        cycle = machine.flag_cycles[tile, writer.taken % FLAG_CYCLES]
        if cycle > now:
            wake_at(machine, index, cycle)
            return
        effect(machine, tile_counters(tile) + TileFlag.ACTIVATION_WRITE, 1)
        writer.taken += 1


@inner
def pack(machine: Machine, index: int, tile: int, tables: Tables) -> None:
    """Gather words, and write the row when it is closed."""
    lane = machine.lanes[index]
    counters = tile_counters(tile)
    completed = counters + lanes.COMPLETED + TileUnit.NARROW_TO_WIDE
    if lane.instruction < 0 and not begin(machine, index, TileUnit.NARROW_TO_WIDE, tile, tables):
        return
    parameters = tables.narrow_to_wide[lane.row]
    behind = machine.rates[0].row_write_cycles
    moved = False
    for _ in range(machine.rates[0].narrow_to_wide_words_per_cycle):
        if lane.row_closed:
            if not _row_is_written(machine, index, counters, parameters):
                break
            moved = True
            if not behind:
                # The row takes the place of a word in its cycle.
                continue
        if lane.first.done:
            break
        side = narrow_to_wide.guard(lane)
        if not lets_pass(machine, index, parameters.watchers, counters, side):
            break
        narrow_to_wide.step(lane, parameters)
        lane.elements += 1
        moved = True
        if not lane.row_closed:
            continue
        if behind or not _row_is_written(machine, index, counters, parameters):
            break
    ahead = _gather_ahead(machine, index, parameters) if moved else 0
    end_turn(machine, index, moved, ahead)
    if narrow_to_wide.has_ended(lane):
        _check(machine, index, bool(lane.second.done), state.FAULT_ROW_COUNT)
        complete(machine, index, completed)


@inner
def _row_is_written(machine: Machine, index: int, counters: int, parameters: Record) -> bool:
    """Write the closed row of narrow-to-wide; if a watcher fails, wait for it."""
    lane = machine.lanes[index]
    side = narrow_to_wide.guard(lane)
    if not lets_pass(machine, index, parameters.watchers, counters, side):
        return False
    if narrow_to_wide.lacks_place(lane):
        _check(machine, index, False, state.FAULT_ROW_COUNT)
        return False
    increment = narrow_to_wide.step(lane, parameters)
    effect(machine, counters + narrow_to_wide.FLAG, increment)
    return True


@inner
def _gather_ahead(machine: Machine, index: int, parameters: Record) -> int:
    """Move the words that nothing can hold up and that do not close the row; return the cycles."""
    lane = machine.lanes[index]
    if lane.waits_on >= 0 or lane.row_closed or parameters.row_loop == 0:
        return 0
    per_cycle = machine.rates[0].narrow_to_wide_words_per_cycle
    words = plain_elements(lane.first, parameters.narrow_read, parameters.watchers, 0)
    cycles = min(words, chip.ROW_WORDS - 1 - lane.words) // per_cycle
    lane.words += cycles * per_cycle
    skip(lane, lane.first, parameters.narrow_read, cycles * per_cycle)
    return cycles  # type: ignore[no-any-return]


@inner
def end_turn(machine: Machine, index: int, moved: bool, ahead: int) -> None:
    """A lane that has moved something has its next turn in the next cycle, even if it waits.

    In ``ahead`` further cycles it moves what nothing can hold up.
    """
    if not moved:
        return
    if machine.lanes[index].waits_on >= 0:
        forget(machine, index)
    busy(machine, index, 1 + ahead)


@inner
def _check(machine: Machine, index: int, holds: bool, fault: int) -> None:
    clock = machine.clock[0]
    if not holds and not clock.fault:
        clock.fault = fault
        clock.fault_lane = index
        clock.fault_instruction = machine.lanes[index].instruction


@inner
def spread(machine: Machine, index: int, tile: int, tables: Tables) -> None:
    """Spread words of a row, fetching the next row when one is used up."""
    lane = machine.lanes[index]
    counters = tile_counters(tile)
    if lane.instruction < 0 and not begin(machine, index, TileUnit.WIDE_TO_NARROW, tile, tables):
        return
    parameters = tables.wide_to_narrow[lane.row]
    write = lane.second
    flag = wide_to_narrow.flag(parameters)
    moved = False
    for _ in range(machine.rates[0].wide_to_narrow_words_per_cycle):
        if write.done or not _word_is_there(machine, index, counters, parameters):
            break
        effect(machine, counters + flag, wide_to_narrow.step(lane, parameters))
        lane.elements += 1
        moved = True
    ahead = _spread_ahead(machine, index, parameters) if moved else 0
    end_turn(machine, index, moved, ahead)
    per_cycle = machine.rates[0].wide_to_narrow_words_per_cycle
    grow(machine, counters + flag, ahead, per_cycle * rate(parameters.producer))
    if write.done:
        _check(machine, index, bool(lane.first.done), state.FAULT_WORD_COUNT)
        complete(machine, index, counters + lanes.COMPLETED + TileUnit.WIDE_TO_NARROW)


@inner
def _spread_ahead(machine: Machine, index: int, parameters: Record) -> int:
    """Move the words of the row that nothing can hold up; return the cycles that takes."""
    lane = machine.lanes[index]
    if lane.waits_on >= 0 or parameters.row_loop == 0:
        return 0
    per_cycle = machine.rates[0].wide_to_narrow_words_per_cycle
    step = 1 + parameters.scale_bias
    words = plain_elements(lane.second, parameters.narrow_write, parameters.watchers, 1)
    cycles = min(words, (chip.ROW_WORDS - lane.position + step - 1) // step) // per_cycle
    lane.position += cycles * per_cycle * step
    skip(lane, lane.second, parameters.narrow_write, cycles * per_cycle)
    return cycles  # type: ignore[no-any-return]


@inner
def _word_is_there(machine: Machine, index: int, counters: int, parameters: Record) -> bool:
    """The watchers of the next word have passed, and its row has been fetched."""
    lane = machine.lanes[index]
    side = wide_to_narrow.guard(lane)
    while side != wide_to_narrow.OPEN:
        if wide_to_narrow.lacks_row(lane, side):
            _check(machine, index, False, state.FAULT_WORD_COUNT)
            return False
        if not lets_pass(machine, index, parameters.watchers, counters, side):
            return False
        wide_to_narrow.pass_guard(lane, parameters, side)
        side = wide_to_narrow.guard(lane)
    return True
