"""Clocks and shadows against a plain model: whole vectors, every access and increment kept."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import IntEnum
from typing import cast

import numpy as np
import pytest
from darwinn_sim import chip
from darwinn_sim.kernel import clocks, order, shadow
from darwinn_sim.kernel.compiled import compiled
from darwinn_sim.kernel.structure import Record, Records
from hypothesis import given, note, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

THREADS = (0, 1, 3 * 16 + clocks.DISPATCHER, clocks.CORE)
PLACES, FLAGS, WORDS = 3, 2, 6
BASE, FIRST_FLAG = 300_000, 40


class What(IntEnum):
    """What a thread does."""

    PUT = 0
    TAKE = 1
    COUNT = 2
    REACH = 3
    LOAD = 4
    AWAIT = 5
    READ = 6
    WRITE = 7
    READ_ROW = 8


_PUT, _TAKE, _COUNT, _REACH, _LOAD, _AWAIT, _READ, _WRITE, _READ_ROW = (int(each) for each in What)


class Event(Record):
    """``thread`` does ``what`` with a place, flag, thread or word, and a number of them."""

    what: int
    thread: int
    where: int
    number: int


@compiled
def perform(core: order.CheckedCore, events: Records[Event]) -> None:
    """Each event is an instruction of its own."""
    known = core.clocks
    for k in range(len(events)):
        event = events[k]
        what, thread, where, number = event.what, event.thread, event.where, event.number
        clocks.begin(known, thread, k)
        if what == _PUT:
            order.puts(core, thread, where)
        elif what == _TAKE:
            order.takes(core, thread, where)
        elif what == _COUNT:
            order.count(known, thread, where, number)
        elif what == _REACH:
            order.reach(known, thread, where, number)
        elif what == _LOAD:
            order.load(known, thread, where, number)
        elif what == _AWAIT:
            order.learn_all(known, thread, where)
        elif what == _READ:
            shadow.read(known, thread, where)
        elif what == _WRITE:
            shadow.write(known, thread, where, False)
        else:
            shadow.read_row(known, thread, where, number)


Known = dict[int, int]
Pair = tuple[int, int, int]
Stamp = tuple[int, int]


@dataclass
class PlainWord:
    """The last write, and all reads since: thread and event of each."""

    writer: Stamp | None = None
    readers: list[Stamp] = field(default_factory=list)


@dataclass
class PlainFlag:
    value: int = 0
    load: Known | None = None
    last_load: Stamp | None = None
    counts: list[tuple[Known, Stamp]] = field(default_factory=list)


class Plain:
    """What each thread knows: of each other one, the last event that is before what it does now."""

    def __init__(self) -> None:
        self.known: dict[int, Known] = {each: {} for each in THREADS}
        self.places: dict[int, Known] = {}
        self.flags: dict[int, PlainFlag] = defaultdict(PlainFlag)
        self.words: dict[int, PlainWord] = defaultdict(PlainWord)
        self.found: set[Pair] = set()

    def learn(self, thread: int, told: Known) -> None:
        known = self.known[thread]
        for other, event in told.items():
            known[other] = max(known.get(other, -1), event)

    def check(self, kind: int, earlier: Stamp | None, thread: int, now: int) -> None:
        if earlier is None or earlier[0] == thread:
            return
        if self.known[thread].get(earlier[0], -1) < earlier[1]:
            self.found.add((kind, earlier[1], now))

    def read(self, thread: int, word: int, now: int) -> None:
        self.check(clocks.READ_AFTER_WRITE, self.words[word].writer, thread, now)
        self.words[word].readers.append((thread, now))

    def write(self, thread: int, word: int, now: int) -> None:
        there = self.words[word]
        self.check(clocks.WRITE_AFTER_WRITE, there.writer, thread, now)
        for reader in there.readers:
            self.check(clocks.WRITE_AFTER_READ, reader, thread, now)
        self.words[word] = PlainWord((thread, now))

    def load(self, thread: int, where: int, value: int, now: int) -> None:
        flag = self.flags[where]
        if not flag.counts and flag.value == value:
            flag.last_load = (thread, now)
            return
        if flag.counts:
            self.check(clocks.LOAD_AFTER_COUNT, flag.counts[-1][1], thread, now)
        self.write(thread, clocks.FLAG_BASE + where, now)
        self.flags[where] = PlainFlag(value, dict(self.known[thread]), (thread, now))

    def reach(self, thread: int, where: int, beyond: int, now: int) -> None:
        flag = self.flags[where]
        self.read(thread, clocks.FLAG_BASE + where, now)
        number = len(flag.counts) - beyond
        if number > 0:
            self.learn(thread, flag.counts[number - 1][0])
        elif flag.load is not None:
            self.learn(thread, flag.load)

    def do(self, event: Event, now: int) -> None:
        what, thread, where, number = (
            int(event[name]) for name in ("what", "thread", "where", "number")
        )
        known = self.known[thread]
        known[thread] = now
        if what == What.PUT:
            self.places[where] = dict(known)
        elif what == What.TAKE:
            self.learn(thread, self.places.get(where, {}))
        elif what == What.COUNT:
            flag = self.flags[where]
            self.check(clocks.COUNT_AFTER_LOAD, flag.last_load, thread, now)
            flag.counts += [(dict(known), (thread, now))] * number
        elif what == What.REACH:
            self.reach(thread, where, number, now)
        elif what == What.LOAD:
            self.load(thread, where, number, now)
        elif what == What.AWAIT:
            self.learn(thread, self.known[where])
        elif what == What.WRITE:
            self.write(thread, where, now)
        else:
            for word in range(where, where + (number if what == What.READ_ROW else 1)):
                self.read(thread, word, now)


@st.composite
def events(draw: st.DrawFn) -> list[tuple[int, int, int, int]]:
    def one() -> tuple[int, int, int, int]:
        what = draw(st.sampled_from(What))
        thread = draw(st.sampled_from(THREADS))
        number = draw(st.integers(1, 3))
        if what in (What.PUT, What.TAKE):
            return what, thread, draw(st.integers(0, PLACES - 1)), 0
        if what in (What.COUNT, What.REACH, What.LOAD):
            flag = FIRST_FLAG + draw(st.integers(0, FLAGS - 1))
            return what, thread, flag, number - (what != What.COUNT)
        if what is What.AWAIT:
            return what, thread, draw(st.sampled_from(THREADS)), 0
        return what, thread, BASE + draw(st.integers(0, WORDS - number)), number

    return [one() for _ in range(draw(st.integers(2, 40)))]


@settings(max_examples=400, deadline=None)
@given(events())
def test_hazards_are_those_of_the_plain_model(program: list[tuple[int, int, int, int]]) -> None:
    records = Event.zeros(len(program))
    records[:] = program
    core = order.new_core()
    perform(cast("order.CheckedCore", core[0]), records)
    plain = Plain()
    for now in range(len(records)):
        plain.do(records[now], now)
    found = core["clocks"]["found"][0][: int(core["clocks"]["pairs"][0])]
    pairs = {(int(each["kind"]), int(each["first"]), int(each["second"])) for each in found}
    note(f"{sorted(pairs)} of {sorted(plain.found)}")
    assert pairs <= plain.found
    if core["clocks"]["more"][0] or core["clocks"]["dropped"][0]:
        return
    # Of reads in order only the last is kept: a write that comes after none of them says that one.
    assert {(kind, second) for kind, _, second in pairs} == {
        (kind, second) for kind, _, second in plain.found
    }


_WRITES, _READS, _FLAG, _WORD = 0, 1, 40, 300_000


@compiled
def take_rows(core: order.CheckedCore, waits: bool, idle: bool, times: int) -> None:
    """One thread writes a word, another one reads it early ``times`` times, having waited for its
    flag, or for it to be idle; then the first one writes the word again."""
    known = core.clocks
    clocks.begin(known, _WRITES, 0)
    shadow.write(known, _WRITES, _WORD, False)
    order.count(known, _WRITES, _FLAG, 1)
    clocks.begin(known, _READS, 1)
    if waits:
        order.reach(known, _READS, _FLAG, 0)
    if idle:
        order.learn_all(known, _READS, _WRITES)
    for _ in range(times):
        shadow.read_at(known, _READS, _WORD, 0)
    clocks.begin(known, _WRITES, 2)
    shadow.write(known, _WRITES, _WORD, False)


def early_reads(waits: bool, idle: bool, times: int) -> list[int]:
    core = order.new_core()
    take_rows(cast("order.CheckedCore", core[0]), waits, idle, times)
    found = core["clocks"]["found"][0][: int(core["clocks"]["pairs"][0])]
    return [int(each["kind"]) for each in found]


def test_who_reads_at_once_what_it_has_waited_for_reads_before_the_next_write() -> None:
    assert early_reads(waits=True, idle=False, times=1) == []


def test_who_reads_again_or_has_not_waited_for_this_write_may_read_after_the_next_one() -> None:
    late = [clocks.WRITE_AFTER_READ]
    assert early_reads(waits=True, idle=False, times=2) == late
    assert early_reads(waits=False, idle=True, times=1) == late
    assert early_reads(waits=False, idle=False, times=1) == [clocks.READ_AFTER_WRITE, *late]


@pytest.mark.parametrize("tile", [0, 1, 15])
def test_a_word_of_the_shadow_is_one_of_a_memory(tile: int) -> None:
    """Narrow memory, then wide memory, then scales and biases, one tile behind the other."""
    sizes = {
        "narrow memory": chip.NARROW_BYTES // 4,
        "wide memory": chip.WIDE_ROWS * chip.ROW_BYTES // 4,
        "scale/bias buffer": chip.SCALE_BIAS_WORDS,
    }
    first = tile * sum(sizes.values())
    for memory, size in sizes.items():
        for word in (0, 1, size - 1):
            assert clocks.memory_of(first + word) == (tile, memory, word)
        first += size


def test_a_thread_is_one_of_a_tile_or_beside_them() -> None:
    for tile in (0, 3, 15):
        for which in (0, clocks.DISPATCHER):
            assert clocks.place_of(16 * tile + which) == (tile, which)
    for thread in (clocks.CORE, clocks.FIRST_SCALAR_UNIT, clocks.HOST, clocks.FIRST_CHANNEL):
        assert clocks.place_of(thread) == (-1, -1)


@compiled
def write_threads(threads: NDArray[np.int64]) -> None:
    """Numbers of all threads, in a row of 16 for each tile and in one for those beside them."""
    for tile in range(chip.TILES):
        for which in range(chip.TILE_UNITS):
            threads[tile, which] = clocks.unit(tile, which)
        for link in range(4):
            threads[tile, chip.TILE_UNITS + link] = clocks.receiver(tile, link)
        threads[tile, chip.TILE_UNITS + 4] = clocks.dispatcher(tile)
    for which in range(4):
        threads[chip.TILES, which] = clocks.scalar_unit(which)
    for number in range(2):
        threads[chip.TILES, 4 + number] = clocks.channel(number)
    threads[chip.TILES, 6], threads[chip.TILES, 7] = clocks.CORE, clocks.HOST


def test_no_two_have_one_thread() -> None:
    """Units, receiving sides and dispatchers of all tiles, and what is beside them."""
    table = np.full((chip.TILES + 1, 16), -1)
    write_threads(table)
    threads = table[table >= 0].tolist()
    assert len(set(threads)) == len(threads) == chip.TILES * (chip.TILE_UNITS + 5) + 8
    assert max(threads) < clocks.THREADS
