"""What every station does with time: it works, waits, and adds to counters at the end of a cycle.

In a cycle each station that is awake sees the counters as they were at its beginning; what stations
add to them (effects) is seen from the next cycle on. So the order of stations within a cycle
matters only for who gets the ring: the infeed first, then tiles in order, all of them after those
whose rows may make room at once (``effect_at_once``).
"""

from __future__ import annotations

from darwinn_sim import chip
from darwinn_sim.kernel import sync
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.timing import rates, stations, turns
from darwinn_sim.timing.state import NO_INSTRUCTION, Machine
from darwinn_sim.timing.stations import Cause

_NONE = -1
_BUSY = int(Cause.BUSY)
_FENCE = int(Cause.FENCE)
_FETCH = int(Cause.INSTRUCTION_FETCH)
_DISPATCH = int(Cause.DISPATCH)


@inner
def station_of(group: int, number: int) -> int:
    """Index of a station."""
    return group * stations.GROUP_STATIONS + number


@inner
def tile_counters(tile: int) -> int:
    """Index of the first counter of a tile."""
    return tile * stations.TILE_COUNTERS


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
def effect_at_once(machine: Machine, counter: int, amount: int) -> None:
    """Add to a counter that only stations which have their turn later in the cycle look at."""
    machine.counters[counter] += amount
    _wake_waiters(machine, counter, machine.clock[0].now)


@inner
def load(machine: Machine, counter: int, value: int) -> None:
    """Load a counter at the end of the cycle, after what others add to it."""
    clock = machine.clock[0]
    entry = machine.effects[clock.effects]
    entry.counter = counter
    entry.amount = value
    entry.loads = 1
    clock.effects += 1
    clock.loads += 1


@inner
def is_flag(counter: int) -> bool:
    """True for a sync flag, which wraps at 16 bits."""
    if counter >= stations.CHIP_COUNTERS:
        return counter - stations.CHIP_COUNTERS < chip.SCALAR_FLAGS
    return counter % stations.TILE_COUNTERS < chip.TILE_FLAGS


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
    for k in range(clock.effects):
        entry = machine.effects[k]
        if not entry.loads:
            machine.counters[entry.counter] += entry.amount
    for k in range(clock.effects if clock.loads else 0):
        entry = machine.effects[k]
        if entry.loads:
            rates.settle(machine, entry.counter, clock.now + 1)
            machine.counters[entry.counter] = entry.amount
    for k in range(clock.effects):
        counter = machine.effects[k].counter
        _wake_waiters(machine, counter, clock.now + 1)
    clock.effects = clock.loads = 0


@inner
def _wake_waiters(machine: Machine, counter: int, cycle: int) -> None:
    """Give those whose counter is far enough in ``cycle`` their turn then."""
    index = machine.first_waiter[counter]
    while index != _NONE:
        station = machine.stations[index]
        following = station.next_waiter
        if _has_reached_in(machine, counter, station.need, cycle):
            forget(machine, index)
            wake_at(machine, index, cycle)
        else:
            _expect(machine, index, cycle)
        index = following


@inner
def forget(machine: Machine, index: int) -> None:
    """Take a station from the waiters of the counter that it waits for."""
    station = machine.stations[index]
    previous = _NONE
    other = machine.first_waiter[station.waits_on]
    while other != index:
        previous = other
        other = machine.stations[other].next_waiter
    if previous == _NONE:
        machine.first_waiter[station.waits_on] = station.next_waiter
    else:
        machine.stations[previous].next_waiter = station.next_waiter
    station.waits_on = _NONE


@inner
def _expect(machine: Machine, index: int, cycle: int) -> None:
    """Wake a station when the run of the counter that it waits for, seen in ``cycle``, is so
    far."""
    station = machine.stations[index]
    missing = station.need - rates.seen(machine, station.waits_on, cycle)
    if is_flag(station.waits_on):
        missing &= sync.FLAG_MASK
    reached = rates.reached_in(machine, station.waits_on, missing, cycle)
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
        index = machine.stations[index].next_waiter


@inner
def wake_at(machine: Machine, index: int, cycle: int) -> None:
    """Give a station its next turn in ``cycle``."""
    turns.give(machine.turns, index, cycle)


@inner
def book(machine: Machine, index: int, until: int) -> None:
    """Book the time since the station's mark on what it has waited for."""
    station = machine.stations[index]
    spent = until - station.mark
    if spent > 0:
        machine.usage[index, station.cause] += spent
        station.mark = until


@inner
def begin_instruction(machine: Machine, index: int) -> None:
    """Begin to book a station's cycles on the instruction that it takes."""
    for cause in range(stations.CAUSES):
        machine.usage_before[index, cause] = machine.usage[index, cause]


@inner
def book_instruction(machine: Machine, index: int) -> None:
    """Book on its instruction what a station has spent since it took that."""
    instruction = machine.stations[index].instruction
    for cause in range(stations.CAUSES):
        spent = machine.usage[index, cause] - machine.usage_before[index, cause]
        machine.by_instruction[instruction, cause] += spent


@inner
def busy(machine: Machine, index: int, cycles: int) -> None:
    """Work from now on for ``cycles``, and have the next turn then."""
    work(machine, index, cycles)
    wake_at(machine, index, machine.clock[0].now + cycles)


@inner
def work(machine: Machine, index: int, cycles: int) -> None:
    """Work from now on for ``cycles``."""
    now = machine.clock[0].now
    book(machine, index, now)
    station = machine.stations[index]
    machine.usage[index, _BUSY] += cycles
    station.mark = now + cycles


@inner
def pause(machine: Machine, index: int, cycle: int, cause: int) -> None:
    """Wait until ``cycle``."""
    book(machine, index, machine.clock[0].now)
    machine.stations[index].cause = cause
    wake_at(machine, index, cycle)


@inner
def wait(machine: Machine, index: int, counter: int, need: int) -> None:
    """Wait from the end of the turn on until a counter, as others see it, has reached ``need``."""
    station = machine.stations[index]
    station.waits_on = counter
    station.need = need


@inner
def join_waiters(machine: Machine, index: int) -> None:
    """Put a station that waits for a counter, as its turn has ended, among those who do."""
    station = machine.stations[index]
    counter = station.waits_on
    column = counter % stations.TILE_COUNTERS
    if counter >= stations.CHIP_COUNTERS:
        column = counter - stations.CHIP_COUNTERS + stations.TILE_COUNTERS
    book(machine, index, machine.clock[0].now)
    station.cause = machine.causes[index % stations.GROUP_STATIONS, column]
    station.next_waiter = machine.first_waiter[counter]
    machine.first_waiter[counter] = index
    _expect(machine, index, machine.clock[0].now)


@inner
def passes(
    machine: Machine, index: int, watchers: sync.Watchers, flags: int, begins: int, side: int
) -> bool:
    """Test the watchers of one side (-1: both) as ``sync.obstacle``; if one fails, wait for it.

    ``flags`` is the index of the first flag.
    """
    station = machine.stations[index]
    settle_watched(machine, watchers, flags)
    values = machine.counters[flags : flags + chip.TILE_FLAGS]
    obstacle = sync.obstacle(watchers, station.waited, values, begins, side)
    if obstacle:
        wait(machine, index, flags + sync.flag_of(obstacle), sync.count_of(obstacle))
    return not obstacle


@inner
def lets_pass(machine: Machine, index: int, watchers: sync.Watchers, flags: int, side: int) -> bool:
    """Test the watchers of one side at the next element (``sync.obstacle_of``); or wait for one."""
    begins = sync.begins(machine.stations[index], side)
    return passes(machine, index, watchers, flags, begins, side)


@inner
def settle_watched(machine: Machine, watchers: sync.Watchers, flags: int) -> None:
    """Bring the flags that are watched up to the present cycle."""
    for k in range(watchers.count):
        rates.settle(machine, flags + watchers.flag[k], machine.clock[0].now)


@inner
def _waited_at_fences(machine: Machine, index: int) -> int:
    """Cycles that the dispatch of a station's tile has waited at fences."""
    group = index // stations.GROUP_STATIONS
    if group == stations.CHIP_GROUP:
        return 0
    return _waited_for(machine, station_of(group, stations.DISPATCH), _FENCE)


@inner
def _waited_for(machine: Machine, index: int, cause: int) -> int:
    station = machine.stations[index]
    spent = machine.usage[index, cause]
    if station.cause == cause and station.mark < machine.clock[0].now:
        spent += machine.clock[0].now - station.mark
    return int(spent)


@inner
def take(machine: Machine, index: int, queue_counter: int, begun_counter: int) -> bool:
    """Take the next instruction of an idle station; without one, wait for it.

    The time without instruction is booked on the new one: as far as instructions were fetched
    meanwhile on that, then as far as the tile's dispatch waited at a fence, the rest on dispatch.
    """
    station = machine.stations[index]
    if machine.counters[queue_counter] <= station.taken:
        wait(machine, index, queue_counter, station.taken + 1)
        return False
    now = machine.clock[0].now
    core = station_of(stations.CHIP_GROUP, stations.CORE)
    fetch = _waited_for(machine, core, _FETCH)
    idle = max(now - station.mark, 0)
    fetched = min(idle, fetch - station.fetch_mark)
    fenced = min(idle - fetched, _waited_at_fences(machine, index) - station.fence_mark)
    begin_instruction(machine, index)
    entry = machine.unit_queue[index][station.taken % stations.UNIT_PLACES]
    station.instruction = entry.instruction
    station.base = entry.base
    for cause, spent in (
        (_FETCH, fetched),
        (_FENCE, fenced),
        (_DISPATCH, idle - fetched - fenced),
    ):
        machine.usage[index, cause] += spent
    station.mark = now
    station.cause = _BUSY
    station.taken += 1
    station.begun = now
    station.waited[:] = 0
    station.ready = 0
    station.done = 0
    station.row_closed = 0
    station.phase = 0
    station.position = 0
    station.words = 0
    effect(machine, begun_counter, 1)
    return True


@inner
def complete(machine: Machine, index: int, counter: int) -> None:
    """End the instruction of a station at its mark."""
    station = machine.stations[index]
    clock = machine.clock[0]
    book(machine, index, clock.now)
    end = station.mark
    runs = machine.executions[station.instruction]
    runs[0] += 1
    runs[1] = min(runs[1], station.begun)
    runs[2] = max(runs[2], end)
    if len(machine.spans):
        span = machine.spans[clock.spans]
        span.station = index
        span.instruction = station.instruction
        span.start = station.begun
        span.end = end
        for cause in range(stations.CAUSES):
            span.usage[cause] = machine.usage[index, cause]
        clock.spans += 1
    book_instruction(machine, index)
    station.instruction = NO_INSTRUCTION
    station.cause = _DISPATCH
    station.fence_mark = _waited_at_fences(machine, index)
    core = station_of(stations.CHIP_GROUP, stations.CORE)
    station.fetch_mark = _waited_for(machine, core, _FETCH)
    effect(machine, counter, 1)
