"""What every lane does with time: it works, waits, and adds to counters at the end of a cycle.

In a cycle each lane that is awake sees the counters as they were at its beginning; what lanes add
to them (effects) is seen from the next cycle on. So the order of lanes within a cycle matters only
for who gets the ring: the infeed first, then tiles in order.
"""

from __future__ import annotations

from darwinn_sim import chip
from darwinn_sim.kernel import sync
from darwinn_sim.kernel.compiled import Record, inner
from darwinn_sim.timing import lanes, rates
from darwinn_sim.timing.lanes import Cause
from darwinn_sim.timing.state import NO_INSTRUCTION, Machine

_NONE = -1
_BUSY = int(Cause.BUSY)
_FENCE = int(Cause.FENCE)
_FETCH = int(Cause.INSTRUCTION_FETCH)
_DISPATCH = int(Cause.DISPATCH)


@inner
def lane_of(group: int, number: int) -> int:
    """Index of a lane."""
    return group * lanes.GROUP_LANES + number


@inner
def tile_counters(tile: int) -> int:
    """Index of the first counter of a tile."""
    return tile * lanes.TILE_COUNTERS


@inner
def effect(machine: Machine, counter: int, amount: int) -> None:
    """Add to a counter at the end of the cycle."""
    if amount == 0:
        return
    clock = machine.clock[0]
    entry = machine.effects[clock.effects]
    entry.counter = counter
    entry.amount = amount
    entry.loads = 0
    clock.effects += 1


@inner
def load(machine: Machine, counter: int, value: int) -> None:
    """Load a counter at the end of the cycle, after what others add to it."""
    clock = machine.clock[0]
    entry = machine.effects[clock.effects]
    entry.counter = counter
    entry.amount = value
    entry.loads = 1
    clock.effects += 1


@inner
def is_flag(counter: int) -> bool:
    """True for a sync flag, which wraps at 16 bits."""
    if counter >= lanes.CHIP_COUNTERS:
        return counter - lanes.CHIP_COUNTERS < chip.SCALAR_FLAGS
    return counter % lanes.TILE_COUNTERS < chip.TILE_FLAGS


@inner
def has_reached(machine: Machine, counter: int, need: int) -> bool:
    """True if a counter has reached a value."""
    return _has_reached_in(machine, counter, need, machine.clock[0].now)


@inner
def _has_reached_in(machine: Machine, counter: int, need: int, cycle: int) -> bool:
    value = rates.seen(machine, counter, cycle)
    if is_flag(counter):
        return sync.reached(value, need)
    return bool(value >= need)


@inner
def apply_effects(machine: Machine) -> None:
    """End the cycle: change the counters, and wake who has waited for that."""
    clock = machine.clock[0]
    loads = 0
    for k in range(clock.effects):
        entry = machine.effects[k]
        if entry.loads:
            loads += 1
        else:
            machine.counters[entry.counter] += entry.amount
    for k in range(clock.effects if loads else 0):
        entry = machine.effects[k]
        if entry.loads:
            rates.settle(machine, entry.counter, clock.now + 1)
            machine.counters[entry.counter] = entry.amount
    for k in range(clock.effects):
        counter = machine.effects[k].counter
        if machine.first_waiter[counter] != _NONE:
            _wake_waiters(machine, counter)
    clock.effects = 0


@inner
def _wake_waiters(machine: Machine, counter: int) -> None:
    next_cycle = machine.clock[0].now + 1
    index = machine.first_waiter[counter]
    while index != _NONE:
        lane = machine.lanes[index]
        following = lane.next_waiter
        if _has_reached_in(machine, counter, lane.need, next_cycle):
            forget(machine, index)
            wake_at(machine, index, next_cycle)
        else:
            _expect(machine, index, next_cycle)
        index = following


@inner
def forget(machine: Machine, index: int) -> None:
    """Take a lane from the waiters of the counter that it waits for."""
    lane = machine.lanes[index]
    previous = _NONE
    other = machine.first_waiter[lane.waits_on]
    while other != index:
        previous = other
        other = machine.lanes[other].next_waiter
    if previous == _NONE:
        machine.first_waiter[lane.waits_on] = lane.next_waiter
    else:
        machine.lanes[previous].next_waiter = lane.next_waiter
    lane.waits_on = _NONE


@inner
def _expect(machine: Machine, index: int, cycle: int) -> None:
    """Wake a lane when the run of the counter that it waits for, seen in ``cycle``, is so far."""
    lane = machine.lanes[index]
    missing = lane.need - rates.seen(machine, lane.waits_on, cycle)
    if is_flag(lane.waits_on):
        missing &= 0xFFFF
    reached = rates.reached_in(machine, lane.waits_on, missing, cycle)
    if reached != rates.UNREACHED:
        wake_at(machine, index, reached)


@inner
def grow(machine: Machine, counter: int, cycles: int, rate: int) -> None:
    """Let a counter grow by ``rate`` in each of ``cycles`` cycles after the present one."""
    if cycles == 0 or rate == 0:
        return
    rates.begin_run(machine, counter, cycles, rate)
    index = machine.first_waiter[counter]
    while index != _NONE:
        _expect(machine, index, machine.clock[0].now)
        index = machine.lanes[index].next_waiter


@inner
def wake_at(machine: Machine, index: int, cycle: int) -> None:
    """Give a lane its next turn in ``cycle``."""
    machine.wake[index] = cycle
    group = index // lanes.GROUP_LANES
    machine.group_wake[group] = min(machine.group_wake[group], cycle)


@inner
def book(machine: Machine, index: int, until: int) -> None:
    """Book the time since the lane's mark on what it has waited for."""
    lane = machine.lanes[index]
    spent = until - lane.mark
    if spent > 0:
        machine.usage[index, lane.cause] += spent
        if lane.instruction >= 0:
            machine.by_instruction[lane.instruction, lane.cause] += spent
        lane.mark = until


@inner
def busy(machine: Machine, index: int, cycles: int) -> None:
    """Work from now on for ``cycles``, and have the next turn then."""
    now = machine.clock[0].now
    book(machine, index, now)
    lane = machine.lanes[index]
    machine.usage[index, _BUSY] += cycles
    if lane.instruction >= 0:
        machine.by_instruction[lane.instruction, _BUSY] += cycles
    lane.mark = now + cycles
    wake_at(machine, index, now + cycles)


@inner
def pause(machine: Machine, index: int, cycle: int, cause: int) -> None:
    """Wait until ``cycle``."""
    book(machine, index, machine.clock[0].now)
    machine.lanes[index].cause = cause
    wake_at(machine, index, cycle)


@inner
def wait(machine: Machine, index: int, counter: int, need: int) -> None:
    """Wait until a counter, as others see it, has reached ``need``."""
    column = counter % lanes.TILE_COUNTERS
    if counter >= lanes.CHIP_COUNTERS:
        column = counter - lanes.CHIP_COUNTERS + lanes.TILE_COUNTERS
    book(machine, index, machine.clock[0].now)
    lane = machine.lanes[index]
    lane.cause = machine.causes[index % lanes.GROUP_LANES, column]
    lane.waits_on = counter
    lane.need = need
    lane.next_waiter = machine.first_waiter[counter]
    machine.first_waiter[counter] = index
    _expect(machine, index, machine.clock[0].now)


@inner
def passes(
    machine: Machine, index: int, watchers: Record, flags: int, begins: int, side: int
) -> bool:
    """Test the watchers of one side (-1: both) as ``sync.passes_side``; if one fails, wait for it.

    ``flags`` is the index of the first flag.
    """
    lane = machine.lanes[index]
    settle_watched(machine, watchers, flags)
    values = machine.counters[flags : flags + chip.TILE_FLAGS]
    if sync.passes_side(watchers, lane.waited, values, begins, side):
        return True
    for k in range(watchers.count):
        if (side < 0 or watchers.side[k] == side) and (begins >> watchers.depth[k]) & 1:
            expected = watchers.expected[k] + lane.waited[k] * watchers.stride[k]
            if not sync.reached(values[watchers.flag[k]], expected):
                wait(machine, index, flags + watchers.flag[k], expected)
                return False
    return False


@inner
def lets_pass(machine: Machine, index: int, watchers: Record, flags: int, side: int) -> bool:
    """Test the watchers of one side at the next element, as ``sync.lets_pass``; or wait for one."""
    begins = sync.begins(machine.lanes[index], side)
    return passes(machine, index, watchers, flags, begins, side)


@inner
def settle_watched(machine: Machine, watchers: Record, flags: int) -> None:
    """Bring the flags that are watched up to the present cycle."""
    for k in range(watchers.count):
        rates.settle(machine, flags + watchers.flag[k], machine.clock[0].now)


@inner
def _waited_at_fences(machine: Machine, index: int) -> int:
    """Cycles that the dispatch of a lane's tile has waited at fences."""
    group = index // lanes.GROUP_LANES
    if group == lanes.CHIP_GROUP:
        return 0
    return _waited_for(machine, lane_of(group, lanes.DISPATCH), _FENCE)


@inner
def _waited_for(machine: Machine, index: int, cause: int) -> int:
    lane = machine.lanes[index]
    spent = machine.usage[index, cause]
    if lane.cause == cause and lane.mark < machine.clock[0].now:
        spent += machine.clock[0].now - lane.mark
    return spent  # type: ignore[no-any-return]


@inner
def take(machine: Machine, index: int, queue_counter: int, begun_counter: int) -> bool:
    """Take the next instruction of an idle lane; without one, wait for it.

    The time without instruction is booked on the new one: as far as instructions were fetched
    meanwhile on that, then as far as the tile's dispatch waited at a fence, the rest on dispatch.
    """
    lane = machine.lanes[index]
    if machine.counters[queue_counter] <= lane.taken:
        wait(machine, index, queue_counter, lane.taken + 1)
        return False
    now = machine.clock[0].now
    core = lane_of(lanes.CHIP_GROUP, lanes.CORE)
    fetch = _waited_for(machine, core, _FETCH)
    idle = max(now - lane.mark, 0)
    fetched = min(idle, fetch - lane.fetch_mark)
    fenced = min(idle - fetched, _waited_at_fences(machine, index) - lane.fence_mark)
    lane.instruction = lane.queue[lane.taken % lanes.UNIT_PLACES]
    for cause, spent in (
        (_FETCH, fetched),
        (_FENCE, fenced),
        (_DISPATCH, idle - fetched - fenced),
    ):
        machine.usage[index, cause] += spent
        machine.by_instruction[lane.instruction, cause] += spent
    lane.mark = now
    lane.cause = _BUSY
    lane.taken += 1
    lane.begun = now
    lane.waited[:] = 0
    lane.ready = 0
    lane.done = 0
    lane.row_closed = 0
    lane.held_up = 0
    lane.phase = 0
    lane.position = 0
    lane.words = 0
    effect(machine, begun_counter, 1)
    return True


@inner
def complete(machine: Machine, index: int, counter: int) -> None:
    """End the instruction of a lane at its mark."""
    lane = machine.lanes[index]
    clock = machine.clock[0]
    book(machine, index, clock.now)
    end = lane.mark
    runs = machine.executions[lane.instruction]
    runs[0] += 1
    runs[1] = min(runs[1], lane.begun)
    runs[2] = max(runs[2], end)
    if len(machine.spans):
        span = machine.spans[clock.spans]
        span.lane = index
        span.instruction = lane.instruction
        span.start = lane.begun
        span.end = end
        clock.spans += 1
    lane.instruction = NO_INSTRUCTION
    lane.cause = _DISPATCH
    lane.fence_mark = _waited_at_fences(machine, index)
    core = lane_of(lanes.CHIP_GROUP, lanes.CORE)
    lane.fetch_mark = _waited_for(machine, core, _FETCH)
    effect(machine, counter, 1)
