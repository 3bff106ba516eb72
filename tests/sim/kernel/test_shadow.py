"""Shadows of words against a slow checker that keeps every reader and whole clocks."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import pytest
from darwinn_sim.kernel import clocks, order, shadow
from darwinn_sim.kernel.compiled import compiled
from darwinn_sim.kernel.structure import Record, Records
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

_THREADS = tuple(range(7))
_WORDS = (3, 4)


class What(IntEnum):
    """What a thread does: it reads or writes a word, or learns what another one has done."""

    READ = 0
    WRITE = 1
    LEARN = 2


_READ, _WRITE = int(What.READ), int(What.WRITE)


class Event(Record):
    what: int
    thread: int
    where: int


class Step(NamedTuple):
    what: What
    thread: int
    where: int


@compiled
def perform(known: clocks.Clocks, events: Records[Event]) -> None:
    """Tell the checker of events; each is an instruction of its own."""
    for k in range(len(events)):
        event = events[k]
        clocks.begin(known, event.thread, k)
        if event.what == _READ:
            shadow.read(known, event.thread, event.where)
        elif event.what == _WRITE:
            shadow.write(known, event.thread, event.where, False)
        else:
            told = clocks.tell(known, event.where)
            clocks.learn(known, event.thread, told, known.version[event.where])
            clocks.tick(known, event.where)


def checked(steps: list[Step]) -> tuple[set[tuple[int, int, int]], clocks.Clocks]:
    """The pairs of steps that the checker finds, with their kinds."""
    known = order.new_core()[0]["clocks"]
    events = Event.zeros(len(steps))
    for event, step in zip(events, steps, strict=True):
        event["what"], event["thread"], event["where"] = step
    perform(known, events)
    found = known["found"][: int(known["pairs"])]
    return {(int(e["kind"]), int(e["first"]), int(e["second"])) for e in found}, known


def slow(steps: list[Step]) -> set[tuple[int, int, int]]:
    """The same by sets: each thread has the set of steps that come before what it does."""
    before: dict[int, set[int]] = {thread: set() for thread in _THREADS}
    writer: dict[int, int] = {}
    readers: dict[int, dict[int, int]] = {word: {} for word in _WORDS}
    found = set()
    for number, (what, thread, where) in enumerate(steps):
        if what is What.LEARN:
            before[thread] |= before[where]
            continue
        if where in writer and writer[where] not in before[thread]:
            kind = clocks.READ_AFTER_WRITE if what is What.READ else clocks.WRITE_AFTER_WRITE
            found.add((kind, writer[where], number))
        before[thread].add(number)
        if what is What.READ:
            readers[where][thread] = number
            continue
        last = readers[where].values()
        found |= {(clocks.WRITE_AFTER_READ, r, number) for r in last if r not in before[thread]}
        writer[where], readers[where] = number, {}
    return found


def steps() -> st.SearchStrategy[list[Step]]:
    threads = st.sampled_from(_THREADS)
    touches = st.sampled_from((What.READ, What.READ, What.READ, What.WRITE))
    access = st.builds(Step, touches, threads, st.sampled_from(_WORDS))
    learn = st.builds(Step, st.just(What.LEARN), threads, threads)
    return st.lists(st.one_of(access, access, learn), max_size=clocks.DEPTH)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(steps())
def test_every_pair_without_order_is_found(drawn: list[Step]) -> None:
    """A reader that another one follows in order counts for both: the later one is named."""
    found, known = checked(drawn)
    expected = slow(drawn)
    exact = {each for each in expected if each[0] != clocks.WRITE_AFTER_READ}
    assert exact == {each for each in found if each[0] != clocks.WRITE_AFTER_READ}
    assert found <= expected
    writes = {second for kind, _, second in expected if kind == clocks.WRITE_AFTER_READ}
    assert writes == {second for kind, _, second in found if kind == clocks.WRITE_AFTER_READ}
    assert not known["dropped"]


@pytest.mark.parametrize("number", range(2, len(_THREADS)))
def test_a_write_is_told_of_each_of_many_readers(number: int) -> None:
    readers = [Step(What.READ, thread, 3) for thread in _THREADS[:number]]
    write = Step(What.WRITE, _THREADS[-1], 3)
    found, _ = checked([*readers, write])
    assert found == {(clocks.WRITE_AFTER_READ, k, number) for k in range(number)}


def test_places_of_readers_are_used_again() -> None:
    """Readers that a write has forgotten make room for others."""
    rounds = [
        step
        for _ in range(20)
        for step in (
            *(Step(What.READ, thread, 3) for thread in _THREADS),
            Step(What.WRITE, 0, 3),
        )
    ]
    _, known = checked(rounds)
    assert int(known["crowded"]) == len(_THREADS) - 1


def test_readers_without_a_place_are_counted() -> None:
    known = order.new_core()[0]["clocks"]
    known["crowded"] = clocks.CROWD - 1
    events = Event.zeros(3)
    for thread, event in enumerate(events):
        event["what"], event["thread"], event["where"] = What.READ, thread, 3
    perform(known, events)
    assert int(known["dropped"]) == 2


@compiled
def read_behind_an_old_version(known: clocks.Clocks, rounds: int) -> None:
    """Thread 2 learns late what thread 1 told at first; meanwhile thread 1 has learnt ``rounds``
    times what thread 0 does, and thread 0 has written the word that thread 2 reads."""
    for thread in range(3):
        clocks.begin(known, thread, thread)
    clocks.learn(known, 1, clocks.tell(known, 3) + 1, 0)
    told = clocks.tell(known, 1)
    version = known.version[1]
    shadow.write(known, 0, 3, False)
    for _ in range(rounds):
        clocks.tick(known, 0)
        clocks.learn(known, 1, clocks.tell(known, 0), 0)
        clocks.tell(known, 1)
    clocks.learn(known, 2, told, version)
    shadow.read(known, 2, 3)


@pytest.mark.parametrize("sparing", [0, 1])
@pytest.mark.parametrize("rounds", [clocks.DEPTH - 1, clocks.DEPTH])
def test_what_a_long_history_hides_is_found_by_sparing_clocks(rounds: int, sparing: int) -> None:
    known = order.new_core()[0]["clocks"]
    known["sparing"] = sparing
    read_behind_an_old_version(known, rounds)
    hidden = rounds >= clocks.DEPTH and not sparing
    assert int(known["pairs"]) == int(not hidden)
