"""What is written down of a call: who reads whom, against a slow model byte by byte; times."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass

import pytest
from darwinn_reference.observation import Operator, Place
from darwinn_testbench.programs import recorder as recorded
from darwinn_testbench.programs.recorder import Recorder
from hypothesis import given
from hypothesis import strategies as st

SIZE = 12
MEMORIES = "ab"


@dataclass
class Node:
    """An operator with what it reads and writes, and those within it."""

    reads: list[Place]
    writes: list[Place]


def place(memory: str, ends: tuple[int, int]) -> Place:
    return Place(memory, min(ends), max(ends) + 1)


places = st.lists(
    st.builds(place, st.sampled_from(MEMORIES), st.tuples(*[st.integers(0, SIZE - 1)] * 2)),
    max_size=3,
)
leaves = st.builds(Node, places, places)
calls = st.lists(leaves, max_size=12)


def run(recorder: Recorder, name: str, node: Node) -> None:
    recorder.begin(Operator(name, "kind"))
    recorder.end(lambda: (node.reads, node.writes))


@given(calls)
def test_sources_are_who_wrote_each_byte_last(nodes: list[Node]) -> None:
    recorder = Recorder()
    owner: dict[tuple[object, int], str] = {}
    for number, node in enumerate(nodes):
        name = f"n{number}"
        run(recorder, name, node)
        expected = {
            owner[read.memory, at]
            for read in node.reads
            for at in range(read.start, read.stop)
            if (read.memory, at) in owner
        }
        assert set(recorder.seen[name].sources) == expected
        for write in node.writes:
            owner |= {(write.memory, at): name for at in range(write.start, write.stop)}


def test_what_a_part_wrote_is_the_parts() -> None:
    recorder = Recorder()
    whole, half = Place("a", 0, 8), Place("a", 0, 4)
    recorder.begin(Operator("delegate", "delegate"))
    recorder.begin(Operator("node", "node"))
    recorder.end(lambda: ((), (whole,)))
    recorder.end(lambda: ((), (whole,)))
    recorder.begin(Operator("reader", "reader"))
    recorder.end(lambda: ((half,), ()))
    assert list(recorder.seen["reader"].sources) == ["node"]
    assert recorder.seen["delegate"].is_nesting
    assert recorder.seen["node"].depth == 1


def test_what_a_reader_cannot_tell_of_a_value_its_writer_does() -> None:
    recorder = Recorder()
    recorder.begin(Operator("writer", "writer"))
    recorder.end(lambda: ((), (Place("a", 0, 8, "float32", (2,)),)))
    recorder.begin(Operator("reader", "reader"))
    recorder.end(lambda: ((Place("a", 0, 8), Place("a", 0, 4)), ()))
    assert list(map(str, recorder.seen["reader"].reads)) == ["float32 2", "4 bytes"]


class Ticks:
    """A clock that stands still unless a test moves it."""

    def __init__(self) -> None:
        self.now = 0

    def perf_counter_ns(self) -> int:
        return self.now


@given(st.data())
def test_own_times_are_without_those_within(data: st.DataObject) -> None:
    clock = Ticks()
    own: defaultdict[str, int] = defaultdict(int)
    total: defaultdict[str, int] = defaultdict(int)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recorded, "time", clock)
        recorder = Recorder()

        def work(name: str) -> int:
            taken = data.draw(st.integers(0, 100))
            clock.now += taken
            own[name] += taken
            return taken

        def run(depth: int) -> int:
            name = data.draw(st.sampled_from("abc")) + str(depth)
            recorder.begin(Operator(name, "kind"))
            taken = work(name)
            for _ in range(data.draw(st.integers(0, 2)) if depth < 3 else 0):
                taken += run(depth + 1) + work(name)
            total[name] += taken

            def looked() -> tuple[tuple[()], tuple[()]]:
                clock.now += 1000
                return (), ()

            recorder.end(looked)
            return taken

        for _ in range(data.draw(st.integers(1, 4))):
            run(0)
    assert {name: seen.own for name, seen in recorder.seen.items()} == own
    assert {name: seen.total for name, seen in recorder.seen.items()} == total


def test_an_operator_within_itself_counts_its_time_once() -> None:
    recorder = Recorder()
    for _ in range(3):
        recorder.begin(Operator("f", "function"))
    time.sleep(0.002)
    for _ in range(3):
        recorder.end(lambda: ((), ()))
    seen = recorder.seen["f"]
    assert seen.executions == 3
    assert seen.own == seen.total > 0


def test_only_first_executions_are_looked_at() -> None:
    recorder, looked = Recorder(), []
    for number in range(20):
        recorder.begin(Operator("loop", "kind"))

        def places(number: int = number) -> tuple[tuple[()], tuple[()]]:
            looked.append(number)
            return (), ()

        recorder.end(places)
    assert looked == list(range(recorded.DESCRIBED))
    assert recorder.seen["loop"].executions == 20


def test_another_call_counts_anew() -> None:
    recorder = Recorder()
    for _ in range(2):
        recorder.begin_call()
        recorder.begin(Operator("a", "kind"))
        recorder.end(lambda: ((), ()))
    assert recorder.seen["a"].executions == 1
