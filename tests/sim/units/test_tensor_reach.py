"""Which segments reach beyond the memories: what is marked ahead is what the unit faults at."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from darwinn_sim import chip
from darwinn_sim.kernel import state, traversal
from darwinn_sim.timing.event_model import _mark_faults
from darwinn_sim.units import tensor_bounds
from darwinn_sim.units.tensor_records import Parameters
from functional_coverage import Coverage
from hypothesis import given
from hypothesis import strategies as st
from slow_model import tensor_unit as slow
from stimulus import constrained_random, near_edges
from unit_bench import Bench
from unit_cases.tensor_unit import cases

OPERATIONS = (slow.MAC, slow.MAXIMUM, slow.SUM, slow.INTERPOLATE)
NARROW_END, NARROW_WRAP = chip.NARROW_BYTES, chip.NARROW_ADDRESS_BYTES
GRANULES = 4 * chip.WIDE_ROWS

BINS = (
    *(f"{operation}: nothing is beyond" for operation in OPERATIONS),
    "a result is beyond",
    "a row is beyond",
    "the first segment",
    "another segment",
)


@st.composite
def far(draw: Any) -> tuple[str, dict[str, Any]]:
    """An instruction that waits for nothing, some of whose bases are near the memories' ends."""
    operation = draw(st.sampled_from(OPERATIONS))
    fields, _, _ = draw(cases(operation))
    fields = fields | {"watcher_valid": [0] * len(fields["watcher_valid"])}
    for name, low, high in (
        ("narrow_write_base", NARROW_END - 64, NARROW_END + 16),
        ("narrow_write_base", NARROW_WRAP - 64, NARROW_WRAP - 4),
        ("narrow_write_base", 0, 12),
        ("parameter_read_base", GRANULES - 24, GRANULES + 8),
        ("partial_sum_base", GRANULES - 16, GRANULES + 8),
        ("zero_point_base", chip.WIDE_ROWS - 4, chip.WIDE_ROWS + 2),
    ):
        if draw(st.integers(0, 3)) == 0:
            step = 4 if name in ("narrow_write_base", "partial_sum_base") else 1
            fields[name] = step * (draw(near_edges(low, high)) // step)
    return operation, fields


def marked(bench: Bench) -> list[int]:
    """Faults of the segments, in their order."""
    program = bench.program
    _mark_faults(program)
    place = program.tables.tensor_plan.place[0]
    first = int(place["segment"])
    faults: list[int] = program.tables.tensor_plan.segment["fault"].tolist()
    return faults[first : first + int(place["segments"])]


@given(
    st.integers(-12, 40),
    st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9)), min_size=3, max_size=3),
    st.integers(-12, 12),
    st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 5)),
    st.integers(20, 45),
)
def test_ends_of_a_traversal_are_those_of_all_its_places(
    base: int,
    loops: list[tuple[int, int]],
    offset: int,
    alternate: tuple[int, int, int],
    last: int,
) -> None:
    walks = traversal.Parameters.zeros(1)
    used, target, other = alternate
    walks["base"], walks["double_offset"] = base, offset
    walks["alternate_loop"], walks["alternate_target"] = used, target
    walks["alternate_limit"] = other
    for k, (limit, step) in enumerate(loops):
        walks["limit"][0, k], walks["step"][0, k] = limit, step
    limits = [limit for limit, _ in loops]
    if used:
        limits[target] = max(limits[target], other)
    places = {
        base + begin + sum(step * index for (_, step), index in zip(loops, indices, strict=True))
        for indices in product(*(range(limit + 1) for limit in limits))
        for begin in (0, offset)
    }
    (leaves,) = tensor_bounds._leaves(walks, last)
    assert leaves == (min(places) < 0 or max(places) > last)


def test_a_double_buffer_ends_where_either_side_does() -> None:
    """All bases, offsets and reaches around both ends of a small memory."""
    last = 10
    cases = [*product(range(-3, last + 4), range(-last - 3, last + 4), range(-2, 3))]
    walks = traversal.Parameters.zeros(len(cases))
    walks["base"], walks["double_offset"], walks["step"][:, 0] = np.transpose(cases)
    walks["limit"][:, 0] = 1
    inside = range(last + 1)
    slow = [
        any(base + begin + end not in inside for begin in (0, offset) for end in (0, reach))
        for base, offset, reach in cases
    ]
    assert tensor_bounds._leaves(walks, last).tolist() == slow


def test_what_is_marked_is_what_the_unit_faults_at() -> None:
    coverage = Coverage("reach of the tensor unit", BINS)

    @constrained_random(200)
    @given(far())
    def check(case: tuple[str, dict[str, Any]]) -> None:
        operation, fields = case
        bench = Bench([(operation, fields | {"tiles": 1})])
        bench.run()
        faults = marked(bench)
        # The segment with the fault counts: the unit stops behind it.
        reached = int(bench.tiles[0]["units"]["position"].max())
        found = next((k for k, fault in enumerate(faults) if fault), None)
        if found is None:
            assert bench.fault is None
            coverage.hit(f"{operation}: nothing is beyond")
            return
        assert (int(bench.core["fault"]), reached) == (faults[found], found + 1)
        coverage.hit("a result is beyond", when=faults[found] == state.FAULT_NARROW_ADDRESS)
        coverage.hit("a row is beyond", when=faults[found] == state.FAULT_WIDE_ADDRESS)
        coverage.hit("the first segment" if found == 0 else "another segment")

    coverage.close(check)


def single(**bases: int) -> np.ndarray:
    """An instruction of a single iteration, which reads and writes at these places."""
    tensor = Parameters.zeros(1)
    for name, base in bases.items():
        tensor[name]["base"] = base
    return tensor


@pytest.mark.parametrize("distance", range(-12, 4))
def test_what_may_leave_the_memories_is_looked_at(distance: int) -> None:
    """An iteration reads up to eight planes from its own on; sums are a row, results a word."""
    for name, end, size in (
        ("parameter_read", GRANULES, 8),
        ("partial_sum", GRANULES, 1),
        ("narrow_write", NARROW_END, chip.WORD_BYTES),
    ):
        (leaves,) = tensor_bounds.may_leave(single(**{name: end + distance}))
        if distance + size > 0:
            assert leaves
        # Close to the end anything may be looked at, but not all that there is.
        if distance + size < 0:
            assert not leaves
        assert tensor_bounds.may_leave(single(**{name: -1})).all()
    tensor = single()
    assert not tensor_bounds.may_leave(tensor).any()
    tensor["load_parameter_zero_point"] = 1
    assert tensor_bounds.may_leave(tensor).all()
