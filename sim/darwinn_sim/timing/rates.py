"""Counters that are a linear function of time: what a unit adds in each of several cycles to come.

A unit that has several elements before it at which it tests nothing does them in one turn. What it
adds to a counter with each of them is a run of that counter: ``rate`` at the end of each cycle from
``first`` to ``last`` - 1. A counter has one such unit, hence one run at a time.
"""

from __future__ import annotations

from darwinn_sim.kernel import sync, traversal
from darwinn_sim.kernel.compiled import inner, part
from darwinn_sim.timing.places import FIRST_STAYS, check_first_words
from darwinn_sim.timing.state import Machine, Station

UNREACHED = -1

_MOST = 1 << 30
"""Elements that are skipped at once, at most."""


@inner
def seen(machine: Machine, counter: int, cycle: int) -> int:
    """What a counter is in ``cycle``, the present one or later, if nothing else changes it."""
    run = machine.runs[counter]
    grown = max(min(cycle, run.last) - run.first, 0) * run.rate
    return machine.counters[counter] + grown


@inner
def settle(machine: Machine, counter: int, cycle: int) -> None:
    """Bring ``machine.counters`` up to what is seen in ``cycle``."""
    run = machine.runs[counter]
    if run.first < run.last:
        machine.counters[counter] = seen(machine, counter, cycle)
        run.first = max(run.first, min(cycle, run.last))


@inner
def begin_run(machine: Machine, counter: int, cycles: int, rate: int) -> None:
    """Let a counter grow by ``rate`` in each of ``cycles`` cycles after the present one."""
    now = machine.clock[0].now
    settle(machine, counter, now)
    run = machine.runs[counter]
    run.first = now + 1
    run.last = now + 1 + cycles
    run.rate = rate


@inner
def reached_in(machine: Machine, counter: int, missing: int, cycle: int) -> int:
    """The cycle in which a counter will be seen ``missing`` above what it is seen as in ``cycle``.

    ``UNREACHED`` if its run ends before.
    """
    run = machine.runs[counter]
    if run.last <= cycle:
        return UNREACHED
    reached = max(run.first, cycle) + (missing + run.rate - 1) // run.rate
    return reached if reached <= run.last else UNREACHED


@inner
def is_watched(begins: int, watchers: sync.Watchers, side: int) -> bool:
    """A watcher of ``side`` (-1: any) waits where these blocks begin."""
    for k in range(watchers.count):
        if (begins >> watchers.depth[k]) & 1 and (side < 0 or watchers.side[k] == side):
            return True
    return False


@inner
def plain_elements(
    state: traversal.State, parameters: traversal.Parameters, watchers: sync.Watchers, side: int
) -> int:
    """Elements to come at which no watcher of ``side`` (-1: any) waits and no block ends.

    A block of one element ends with each of them.
    """
    if is_watched(state.begins | traversal.single_blocks(parameters), watchers, side):
        return 0
    return traversal.plain_steps(state, parameters)


@inner
def quiet_elements(
    state: traversal.State,
    parameters: traversal.Parameters,
    watchers: sync.Watchers,
    side: int,
    depth: int,
) -> int:
    """As ``plain_elements``, and further ones: up to the last of the block of ``depth``, or of the
    smaller one whose beginning is watched. 0 where blocks end otherwise."""
    if parameters.alternate_loop or parameters.prologue_length:
        return 0
    for k in range(watchers.count):
        if side < 0 or watchers.side[k] == side:
            if (state.begins >> watchers.depth[k]) & 1:
                return 0
            depth = min(depth, watchers.depth[k])
    if depth <= parameters.inner or state.done:
        return 0
    return traversal.before_end(state, parameters, depth, _MOST)


@inner
def counted_depth(producer: sync.Producer) -> int:
    """Depth of the blocks whose ends a producer counts; that of the whole, if it counts none."""
    return producer.depth if producer.increment else traversal.MAX_LOOPS


@inner
def rate(producer: sync.Producer, parameters: traversal.Parameters) -> int:
    """What a producer adds to its flag with each of the ``plain_elements``."""
    return sync.produce(producer, traversal.single_blocks(parameters))


@inner
def skip(
    station: Station, state: traversal.State, parameters: traversal.Parameters, elements: int
) -> None:
    """Take a station over some of the ``plain_elements`` of one of its traversals."""
    station.elements += elements
    traversal.skip(state, parameters, elements)


@inner
def leap(
    station: Station, state: traversal.State, parameters: traversal.Parameters, elements: int
) -> None:
    """The same over some of the ``quiet_elements``."""
    if elements:
        station.elements += elements
        traversal.advance(state, parameters, elements)


@part
def words_ahead(
    station: Station,
    walk: traversal.Parameters,
    watchers: sync.Watchers,
    side: int,
    depth: int,
) -> tuple[int, bool]:
    """Words to come of a station's first traversal before one that tests a watcher or ends a block
    of ``depth``, as far as they are known; and whether other blocks end among them
    (``quiet_elements``)."""
    if station.stays & FIRST_STAYS:
        quiet = quiet_elements(station.first, walk, watchers, side, depth)
        if quiet:
            return quiet, True
    return plain_elements(station.first, walk, watchers, side), False


@part
def move_ahead(
    machine: Machine, index: int, walk: traversal.Parameters, words: int, quiet: bool
) -> None:
    """Take a station over ``words`` of the ``words_ahead``."""
    station = machine.stations[index]
    if quiet:
        leap(station, station.first, walk, words)
    else:
        check_first_words(machine, index, walk, words)
        skip(station, station.first, walk, words)
