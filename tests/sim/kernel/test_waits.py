"""A system without doubts has no deadlock: small random systems, of which every order is tried.

A few threads wait for flags, count and load them, pass turns, and send rows by a FIFO. One order of
each system that ends is told to the checker. A slow explorer goes through all other orders; where
it finds one that stands still, the checker must have had a doubt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, cast

import pytest
from darwinn_sim import chip
from darwinn_sim.isa.codes import DescriptorTag, InputFifo, TileFlag
from darwinn_sim.kernel import clocks, order, state
from darwinn_sim.kernel.compiled import compiled
from darwinn_sim.kernel.structure import Record, Records
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

_TURNS = int(TileFlag.RING_PRODUCER_A)
_FLAGS = (0, 13, _TURNS)
_THREADS = (0, 1, 5, clocks.DISPATCHER)
"""Of tile 0, as all is here."""

_MASK = (1 << 16) - 1


class What(IntEnum):
    """What a thread does: it waits until a flag has reached a count, or, turns, until it is one;
    it counts a flag, or a turn; it loads a flag; it sends a row and takes one; it waits until
    another thread has come to its end."""

    WAIT = 0
    EXACT = 1
    COUNT = 2
    TURN = 3
    LOAD = 4
    SEND = 5
    TAKE = 6
    IDLE = 7


_WAIT, _EXACT, _COUNT, _PASS, _LOAD, _SEND, _TAKE, _IDLE = (int(each) for each in What)


class Step(NamedTuple):
    what: What
    where: int = 0
    number: int = 0


System = tuple[tuple[Step, ...], ...]


class State(NamedTuple):
    """How many steps each thread has done, values of the flags, and rows that wait."""

    done: tuple[int, ...]
    flags: tuple[int, ...]
    rows: int


class Event(Record):
    what: int
    thread: int
    where: int
    number: int


@compiled
def perform(core: order.CheckedCore, tiles: Records[state.Tile], events: Records[Event]) -> None:
    """Tell the checker of events; each is an instruction of its own."""
    known = core.clocks
    known.sparing = 1
    fifo = tiles[0].ring[0]
    for k in range(len(events)):
        event = events[k]
        what, thread, where, number = event.what, event.thread, event.where, event.number
        clocks.begin(known, thread, k)
        if what in (_WAIT, _EXACT):
            order.reach(known, thread, where, number)
            if what == _EXACT:
                known.flags[where].exact = clocks.now(known, thread)
        elif what == _COUNT:
            order.count(known, thread, where, number)
        elif what == _PASS:
            order.passes_token(core, thread, 0, 0)
        elif what == _LOAD:
            order.load(known, thread, where, number)
        elif what == _SEND:
            order.sends_row(core, tiles, thread, 0, 1)
            fifo.length += 1
        elif what == _TAKE:
            order.takes_row(core, thread, 0, 0, fifo.head)
            fifo.head = (fifo.head + 1) % chip.RING_FIFO_ROWS
            fifo.length -= 1
        else:
            order.learn_all(known, thread, where)


def may(system: System, now: State, thread: int) -> bool:
    """Whether a thread can do its next step."""
    if now.done[thread] == len(system[thread]):
        return False
    step = system[thread][now.done[thread]]
    if step.what is What.SEND:
        return now.rows < chip.RING_FIFO_ROWS
    if step.what is What.TAKE:
        return now.rows > 0
    if step.what is What.IDLE:
        return now.done[step.where] == len(system[step.where])
    ahead = (now.flags[step.where] - step.number) & _MASK
    if step.what is What.WAIT:
        return ahead < 1 << 15
    return step.what is not What.EXACT or ahead == 0


def after(system: System, now: State, thread: int) -> State:
    """The state when a thread has done its next step."""
    step = system[thread][now.done[thread]]
    done = tuple(count + (k == thread) for k, count in enumerate(now.done))
    flags = list(now.flags)
    if step.what in (What.COUNT, What.TURN):
        flags[step.where] += step.number
    elif step.what is What.LOAD:
        flags[step.where] = step.number
    rows = now.rows + (step.what is What.SEND) - (step.what is What.TAKE)
    return State(done, tuple(flags), rows)


def begin(system: System) -> State:
    return State((0,) * len(system), (0,) * len(_FLAGS), 0)


def ended(system: System, now: State) -> bool:
    return all(count == len(steps) for count, steps in zip(now.done, system, strict=True))


def can_stand_still(system: System) -> bool:
    """Whether any order does: all are tried."""
    seen, left = set(), [begin(system)]
    while left:
        now = left.pop()
        going = [thread for thread in range(len(system)) if may(system, now, thread)]
        if not going and not ended(system, now):
            return True
        for thread in going:
            then = after(system, now, thread)
            if then not in seen:
                seen.add(then)
                left.append(then)
    return False


def doubts(system: System, going: Sequence[int]) -> int:
    """How many the checker has of a system, from the order in which these threads go on."""
    found = []
    now = begin(system)
    for thread in going:
        assert may(system, now, thread)
        step = system[thread][now.done[thread]]
        where, number = step.where, step.number
        if step.what is What.IDLE:
            where = _THREADS[where]
        elif step.what not in (What.SEND, What.TAKE):
            if step.what in (What.WAIT, What.EXACT):
                number = (now.flags[where] - number) & _MASK
            where = _FLAGS[where]
        found.append((int(step.what), _THREADS[thread], where, number))
        now = after(system, now, thread)
    assert ended(system, now)
    core = cast("Records[order.CheckedCore]", order.new_core())
    events = Event.zeros(len(found))
    for k, event in enumerate(found):
        events[k] = event
    perform(core[0], _TILES.copy(), events)
    return int(core["clocks"]["doubted"][0])


_TILES = state.new_tiles()[:1]
_DISPATCHES = _THREADS.index(clocks.DISPATCHER)
_KINDS = (What.WAIT, What.WAIT, What.COUNT, What.COUNT, What.TURN, What.TURN, *What)
_NUMBERS = (1, 1, 1, 2, 3, 30_000)


def next_step(kind: What, thread: int, flag: int, number: int, now: State) -> Step:
    """A step that a thread can do now; ``number``: how much is counted, or too much."""
    turns = len(_FLAGS) - 1
    if kind in (What.EXACT, What.LOAD) and thread != _DISPATCHES:
        kind = What.COUNT
    if kind is What.TURN or (kind is What.COUNT and flag == turns):
        return Step(What.TURN, turns, 1)
    if kind is What.EXACT:
        return Step(kind, turns, now.flags[turns])
    if kind is What.WAIT:
        return Step(kind, flag, max(now.flags[flag] - number + 1, 0))
    if kind is What.LOAD:
        return Step(kind, flag, number % 2)
    if kind in (What.SEND, What.TAKE):
        return Step(What.TAKE if now.rows == chip.RING_FIFO_ROWS or kind is What.TAKE else kind)
    return Step(kind, flag, number)


def system_of(drawn: Sequence[tuple[int, What, int, int]]) -> tuple[System, tuple[int, ...]]:
    """A system that ends in one order, and that order: who goes on. Only one thread takes rows."""
    steps: list[list[Step]] = [[] for _ in _THREADS]
    going: list[int] = []
    now = begin(((),) * len(_THREADS))
    idle: set[int] = set()
    for thread, kind, flag, number in drawn:
        step = next_step(kind, thread, flag, number, now)
        if step.what is What.TAKE:
            thread = 1
            if not now.rows:
                continue
        if thread in idle:
            continue
        if step.what is What.IDLE:
            step = Step(What.IDLE, flag + (flag >= thread))
            idle.add(step.where)
        going.append(thread)
        steps[thread].append(step)
        system = tuple(map(tuple, steps))
        now = after(system, now, thread)
        now = now._replace(done=tuple(map(len, steps)))
    return tuple(map(tuple, steps)), tuple(going)


_found: Counter[str] = Counter()


@seed(3)
@settings(max_examples=1200, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(_THREADS) - 1),
            st.sampled_from(_KINDS),
            st.integers(0, len(_FLAGS) - 1),
            st.sampled_from(_NUMBERS),
        ),
        min_size=2,
        max_size=10,
    )
)
def check_random_systems(drawn: list[tuple[int, What, int, int]]) -> None:
    system, going = system_of(drawn)
    if not going:
        return
    number, stands = doubts(system, going), can_stand_still(system)
    _found["may stand still" if stands else "doubted" if number else "none"] += 1
    assert number or not stands, system


def test_a_system_without_doubts_ends_in_every_order() -> None:
    _found.clear()
    check_random_systems()
    assert min(_found["none"], _found["may stand still"], _found["doubted"]) >= 40, _found


_TURN, _WAITS, _SEES = Step(What.TURN, 2, 1), Step(What.WAIT, 0, 1), Step(What.EXACT, 2, 1)
_ONE, _MANY = Step(What.COUNT, 0, 1), Step(What.COUNT, 0, 30_000)
_LOADS = Step(What.LOAD, 0, 0)
_IDLES = (Step(What.IDLE, 0), Step(What.IDLE, 2))


@pytest.mark.parametrize(
    ("system", "going", "stands"),
    [
        pytest.param(
            ((_TURN, _TURN), (), (), (_SEES,)),
            (0, 3, 0),
            True,
            id="a turn more than a fence awaits",
        ),
        pytest.param(
            ((_TURN, _WAITS, _TURN), (), (), (_SEES, _ONE)),
            (0, 3, 3, 0, 0),
            False,
            id="a turn that waits for the fence",
        ),
        pytest.param(
            ((_TURN, _WAITS, _TURN), (_ONE,), (), (_SEES, _ONE)),
            (0, 3, 3, 0, 0, 1),
            True,
            id="a turn that waits for the fence, or for another that counts",
        ),
        pytest.param(
            (
                (_TURN, Step(What.WAIT, 0, 40_000), _TURN),
                (),
                (),
                (_SEES, _MANY, Step(What.COUNT, 0, 10_000)),
            ),
            (0, 3, 3, 3, 0, 0),
            True,
            id="a count so far ahead that it has been reached",
        ),
        pytest.param(
            ((_MANY, _MANY), (_WAITS,), (), ()),
            (0, 1, 0),
            True,
            id="a flag that goes on beyond its wait",
        ),
        pytest.param(
            ((_ONE, _MANY, _MANY), (_WAITS,), (), ()),
            (0, 1, 0, 0),
            True,
            id="a flag that goes on long after its wait",
        ),
        pytest.param(
            ((_WAITS,), (_WAITS,), (_WAITS,), (_ONE, *_IDLES, _LOADS)),
            (3, 0, 1, 2, 3, 3, 3),
            True,
            id="a load for which one of three has to wait",
        ),
        pytest.param(
            ((_ONE,), (_WAITS,), (), (_WAITS, _LOADS)),
            (0, 1, 3, 3),
            True,
            id="a load before a wait",
        ),
    ],
)
def test_what_may_be_passed(system: System, going: tuple[int, ...], stands: bool) -> None:
    assert can_stand_still(system) is stands
    assert bool(doubts(system, going)) is stands


@compiled
def take_input(core: order.CheckedCore, thread: int) -> None:
    """Two descriptors of 8 bytes are issued, the second later; 8 bytes are taken."""
    for _ in range(2):
        order.descriptor_issued(core, DescriptorTag.INPUT, 8)
    order.takes_input(core, thread, InputFifo.ACTIVATIONS, 8)


def test_who_takes_input_knows_of_the_descriptor_that_brought_it() -> None:
    core = cast("Records[order.CheckedCore]", order.new_core())
    first = int(core["clocks"]["clock"][0, clocks.CORE])
    take_input(core[0], clocks.FIRST_SCALAR_UNIT)
    known = core["clocks"]["known"][0, clocks.FIRST_SCALAR_UNIT, clocks.CORE]
    assert int(known) == first
