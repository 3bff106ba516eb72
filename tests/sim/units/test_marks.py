"""What is noted of a run on marks, of random tensor instructions, against a slow model."""

from __future__ import annotations

from typing import Any

import numpy as np
from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.units import marks, scalar_core
from darwinn_sim.units.marks import Marks
from darwinn_sim.units.observation import new_notebook
from darwinn_sim.units.sweeps import sweeps
from darwinn_sim.units.tensor_cells import MAC
from functional_coverage import Coverage
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from slow_model import reads as slow
from slow_model import tensor_unit
from slow_model.reads import Noted
from stimulus import Walk, constrained_random
from unit_bench import Bench
from unit_cases.tensor_unit import Case, cases

OPERATIONS = (
    *(tensor_unit.MAC, tensor_unit.MAXIMUM, tensor_unit.SUM),
    tensor_unit.INTERPOLATE,
)
MARKS = (77, marks.SECOND_HALF + 77)
BINS = (
    *OPERATIONS,
    *("held back", "never begun"),
    *("marks", "marks of both halves"),
    *("places", "places from narrow memory", "places of scales"),
    *("made", "not made"),
    "makes room",
    "several segments at once",
)


def memory(random: np.random.Generator, size: int) -> NDArray[np.uint32]:
    """Words of few marks, with stretches of parameters one after another and others alone."""
    words = random.integers(0, 4, (size, 4), np.uint8)
    found: NDArray[np.uint32] = words.view("<u4").ravel()
    parameters = np.arange(size, dtype=np.uint32) + np.uint32(0xFF000000)
    chosen = np.repeat(random.random(-(-size // 8)) < 0.5, 8)[:size] ^ (random.random(size) < 0.02)
    return np.where(chosen, parameters, found)


def prepared(operation: str, case: Case, seed: int) -> Bench:
    """A chip that is about to run the instruction, with such memories."""
    fields, _, flags = case
    bench = Bench([(operation, fields | {"tiles": 1})])
    random = np.random.default_rng(seed)
    for name in ("narrow", "wide", "scale_bias"):
        tile = bench.tiles[0]
        tile[name] = memory(random, tile[name].size)
        tile[f"{name}_written"].view(np.uint8)[:] = random.integers(0, 2, 4 * tile[name].size)
    for flag, value in flags.items():
        bench.tiles[0]["flags"][flag] = value
    return bench


def new_marks(bench: Bench, mark: int = MARKS[0]) -> Marks:
    """Nothing is noted; of each iteration that multiplies somebody asks what it reads."""
    tables = bench.program.tables
    asked = tables.tensor["opcode"][0] == MAC
    group = np.full(len(tables.tensor_plan.operand), asked, np.uint8)
    return marks.new_marks(np.array([mark], np.uint16), sweeps(tables, group))


def noted(bench: Bench, room: int, mark: int) -> tuple[Noted, int]:
    """What is noted, with so much room beside a segment's; how often it was taken out."""
    seen = new_marks(bench, mark)
    seen = seen._replace(notes=seen.notes[: int(seen.marking["most"][0]) + room])
    notes: list[int] = []
    taken = 0
    while True:
        reason = bench.run(new_notebook(marked=seen))
        count = int(seen.marking["notes"][0])
        notes.extend(seen.notes[:count].tolist())
        seen.marking["notes"] = 0
        if reason != scalar_core.TAP_FULL:
            return found(seen, notes), taken
        taken += 1


def noted_as_slowly(
    bench: Bench, operation: str, fields: dict[str, Any], mark: int, room: int
) -> tuple[Noted, int]:
    """What is noted, which the slow model notes too; it leaves the same in narrow memory."""
    tile, halves = bench.tile(0), slow.halves_of(bench.tiles[0])
    expected = slow.run(tile, halves, operation, fields, mark)
    if expected.begun:
        # It says that the instruction has been executed.
        expected.activations.marks.add(0)
    actual, taken = noted(bench, room, mark)
    assert actual == expected
    assert bench.tiles[0]["narrow"].tobytes() == bytes(tile.narrow)
    assert slow.halves_of(bench.tiles[0]).narrow == halves.narrow
    return expected, taken


def found(seen: Marks, notes: list[int]) -> Noted:
    """As the slow model has it."""
    met = np.unpackbits(seen.met, axis=1, bitorder="little")
    result = Noted(begun=bool(met[marks.ACTIVATIONS, 0]))
    memories = (result.activations, result.parameters, result.scales)
    for each, bits in zip(memories, met, strict=False):
        each.marks |= set(np.flatnonzero(bits).tolist())
    for note in notes:
        reader, place = divmod(note, 1 << marks.PLACE_BITS + marks.COUNT_BITS)
        first, count = divmod(place, 1 << marks.COUNT_BITS)
        places = set(range(first, first + count))
        assert count
        if reader == marks.MADE:
            result.made |= places
        else:
            memories[reader].places |= places
    return result


@st.composite
def programs(draw: Any) -> tuple[str, Case]:
    operation = draw(st.sampled_from(OPERATIONS))
    return operation, draw(cases(operation))


def test_what_is_read_is_noted() -> None:
    """Marks and places of all that is read, and marks for results; however often room is made."""
    coverage = Coverage("marks", BINS)

    @constrained_random(400)
    @given(
        programs(),
        st.integers(0, 1 << 32),
        st.sampled_from([0, 5, 10_000]),
        st.sampled_from(MARKS),
    )
    def check(program: tuple[str, Case], seed: int, room: int, mark: int) -> None:
        operation, case = program
        bench = prepared(operation, case, seed)
        expected, taken = noted_as_slowly(bench, operation, case[0], mark, room)
        cover(coverage, operation, bench, expected)
        coverage.hit("makes room", when=taken > 0)

    coverage.close(check)


def test_a_row_that_has_changed_meanwhile_is_noted_again() -> None:
    """The second of two iterations takes the row of the first, when a flag lets it."""
    fields: dict[str, Any] = {
        "tiles": 1,
        "partial_sum_read": 3,
        "mac_disable": 14,
        "block_lanes": 3,
        "last_block_lanes": 3,
        "main_limit": [1, *[0] * 7],
        "parameter_read_base": 40,
        "watcher_valid": [1, *[0] * 5],
        "watcher_flag": [TileFlag.RING_BUS_READ_A, *[0] * 5],
        "watcher_stride": [1, *[0] * 5],
    }
    twice = Walk((2, *[1] * 7), (4, *[0] * 7))
    for name in ("partial_sum", "narrow_write"):
        fields |= twice.fields(tensor_unit.MAC, name)
    bench = Bench([(tensor_unit.MAC, fields)])
    seen = new_marks(bench)
    for number, place in enumerate((100, 200)):
        bench.tiles[0]["wide"][640:644] = np.arange(place, place + 4) + 0xFF000000
        bench.tiles[0]["wide_writes"] += 1
        bench.tiles[0]["flags"][TileFlag.RING_BUS_READ_A] = number
        bench.run(new_notebook(marked=seen))
        assert (bench.waiting == ()) == bool(number)
    count = int(seen.marking["notes"][0])
    places = found(seen, seen.notes[:count].tolist()).parameters.places
    assert places == {*range(100, 104), *range(200, 204)}


def test_what_is_written_is_read_as_it_is_by_then() -> None:
    """Sums of one product, whose results lie near what is read, in both directions: a sweep ends
    before what it has written is read, and not before.
    """
    coverage = Coverage("sweeps", ("held apart", "at once", "written after it is read"))

    @constrained_random(200)
    @given(
        st.integers(2, 12),
        st.integers(-2, 2),
        st.integers(-2, 2).filter(bool),
        st.integers(-8, 8),
        st.integers(0, 1 << 32),
        st.sampled_from(MARKS),
    )
    def check(count: int, read: int, write: int, apart: int, seed: int, mark: int) -> None:
        fields = short_sums(count, read, write, apart)
        bench = prepared(tensor_unit.MAC, (fields, {}, {}), seed)
        noted_as_slowly(bench, tensor_unit.MAC, fields, mark, 10_000)
        begins = held_apart(count, read, write, apart)
        made = sweeps(bench.program.tables, np.zeros(count, np.uint8))
        assert np.cumsum(made.sweeps["segments"]).tolist() == [*begins[1:], count]
        coverage.hit("held apart", when=len(begins) > 1)
        coverage.hit("at once", when=len(begins) == 1)
        before = {read * k for k in range(count)} & {apart + write * k for k in range(count)}
        coverage.hit("written after it is read", when=before and len(begins) == 1)

    coverage.close(check)


def short_sums(count: int, read: int, write: int, apart: int) -> dict[str, Any]:
    """So many sums of a word each, read and written in steps of words."""
    names = {each.name for each in BY_NAME[tensor_unit.MAC].fields} - {"opcode"}
    fields: dict[str, Any] = dict.fromkeys(names, 0)
    fields |= {name: [0] * 6 for name in fields if name.startswith("watcher_")}
    fields |= {
        "tiles": 1,
        "partial_sum_read": 3,
        "block_lanes": 3,
        "last_block_lanes": 3,
        "main_limit": [count - 1, *[0] * 7],
    }
    walks = {"partial_sum": (0, 4), "parameter_read": (0, 0)}
    walks |= {"narrow_read": (4000, 4 * read), "narrow_write": (4000 + 4 * apart, 4 * write)}
    for name, (base, step) in walks.items():
        walk = Walk((count, *[1] * 7), (step, *[0] * 7), base)
        fields |= walk.fields(tensor_unit.MAC, name)
    return fields


def held_apart(count: int, read: int, write: int, apart: int) -> list[int]:
    """Where sweeps begin: at a sum that reads what one since the last of them has written."""
    begins, written, late = [0], set[int](), set[int]()
    for k in range(count):
        if read * k in written:
            begins.append(k)
            written = set()
        written |= late
        late = {apart + write * k}
        if k + 1 == count or read * (k + 1) not in late:
            written, late = written | late, set()
    return begins


def cover(coverage: Coverage, operation: str, bench: Bench, expected: Noted) -> None:
    coverage.hit(operation)
    coverage.hit("never begun", when=not expected.begun)
    coverage.hit("held back", when=expected.begun and bench.waiting)
    coverage.hit("marks", when=expected.parameters.marks)
    halves = {mark // marks.SECOND_HALF for mark in expected.parameters.marks}
    coverage.hit("marks of both halves", when=len(halves) == 2)
    coverage.hit("places", when=expected.parameters.places)
    coverage.hit("places from narrow memory", when=expected.activations.places)
    coverage.hit("places of scales", when=expected.scales.places)
    iterations = int(bench.program.tables.tensor_plan.place["iterations"][0])
    coverage.hit("made", when=expected.made)
    coverage.hit("not made", when=expected.begun and len(expected.made) < iterations)
    tables = bench.program.tables
    made = sweeps(tables, np.zeros(iterations, np.uint8))
    coverage.hit("several segments at once", when=(made.sweeps["segments"] > 1).any())
