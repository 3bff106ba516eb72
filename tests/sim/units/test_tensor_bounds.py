"""What the ends of traversals tell of all iterations: the same as to look at each of them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from darwinn_sim import chip
from darwinn_sim.kernel import traversal
from darwinn_sim.units import tensor_bounds, tensor_products
from darwinn_sim.units.memories import NARROW_MASK
from darwinn_sim.units.tensor_records import Parameters
from functional_coverage import Coverage
from hypothesis import given
from hypothesis import strategies as st
from slow_model import tensor_unit as slow
from stimulus import constrained_random, near_edges
from unit_bench import Bench
from unit_cases.tensor_unit import cases

NARROW_END = chip.NARROW_BYTES
GRANULES = 4 * chip.WIDE_ROWS

LOOPS = st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9)), min_size=3, max_size=3)
ALTERNATE = st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 5))


def walk(
    base: int, loops: list[tuple[int, int]], offset: int, alternate: tuple[int, int, int]
) -> tuple[np.ndarray, set[int]]:
    """A traversal, and all places that it can be at."""
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
    return walks, {
        base + begin + sum(step * index for (_, step), index in zip(loops, indices, strict=True))
        for indices in product(*(range(limit + 1) for limit in limits))
        for begin in (0, offset)
    }


@given(st.integers(-12, 40), LOOPS, st.integers(-12, 12), ALTERNATE, st.integers(20, 45))
def test_ends_of_a_traversal_are_those_of_all_its_places(
    base: int,
    loops: list[tuple[int, int]],
    offset: int,
    alternate: tuple[int, int, int],
    last: int,
) -> None:
    walks, places = walk(base, loops, offset, alternate)
    (leaves,) = tensor_bounds._leaves(walks, last)
    assert leaves == (min(places) < 0 or max(places) > last)


@given(st.integers(-4, 4), LOOPS, st.integers(-4, 4), ALTERNATE, st.integers(2, 4))
def test_multiples_are_those_of_all_places(
    base: int,
    loops: list[tuple[int, int]],
    offset: int,
    alternate: tuple[int, int, int],
    factor: int,
) -> None:
    for scale in (1, factor):
        scaled = [(limit, scale * step) for limit, step in loops]
        walks, places = walk(scale * base, scaled, scale * offset, alternate)
        (multiples,) = tensor_bounds._are_multiples(walks, factor)
        assert multiples == (not any(place % factor for place in places))


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


@pytest.mark.parametrize("distance", range(-12, 4))
def test_what_may_leave_the_memories_is_looked_at(distance: int) -> None:
    """An iteration reads so many planes from its own on; sums are a row, results a word."""
    tensor = Parameters.zeros(1)
    tensor["products"], tensor["parameter_16bit"] = 4, 1
    for name, end, size in (
        ("parameter_read", GRANULES, 8),
        ("partial_sum", GRANULES, 1),
        ("narrow_write", NARROW_END, chip.WORD_BYTES),
    ):
        here = tensor.copy()
        here[name]["base"] = end + distance
        (leaves,) = tensor_bounds.may_leave(here)
        assert leaves == (distance + size > 0)
        here[name]["base"] = -1
        assert tensor_bounds.may_leave(here).all()
    assert not tensor_bounds.may_leave(tensor).any()
    tensor["load_parameter_zero_point"] = 1
    assert tensor_bounds.may_leave(tensor).all()


PLAIN = (
    "all are, known ahead",
    "all are, looked at",
    "some are not: activations wrap",
    "some are not: a granule within a row",
    "some are not: a row that is none",
    "none is added up in vectors",
)


@st.composite
def convolutions(draw: Any) -> dict[str, Any]:
    """A TensorMac, mostly of bytes, some of whose bases are near the ends of the memories."""
    fields: dict[str, Any] = draw(cases(slow.MAC))[0]
    if draw(st.integers(0, 3)):
        fields |= {"activation_16bit": 0, "parameter_16bit": 0, "mac_disable": 0}
        fields |= {"load_parameter_zero_point": 0}
    if draw(st.booleans()):
        fields["narrow_read_base"] = draw(near_edges(NARROW_MASK - 64, NARROW_MASK))
    if draw(st.booleans()):
        fields["parameter_read_base"] = 4 * (draw(near_edges(GRANULES - 64, GRANULES)) // 4)
    return fields


def test_iterations_that_are_known_to_be_plain_are() -> None:
    coverage = Coverage("plain iterations", PLAIN)

    @constrained_random(300)
    @given(convolutions())
    def check(fields: dict[str, Any]) -> None:
        tables = Bench([(slow.MAC, fields | {"tiles": 1})]).program.tables
        plan, place = tables.tensor_plan, tables.tensor_plan.place[0]
        known = int(tables.tensor["plain"][0])
        begin, count = int(place["iteration"]), int(place["iterations"])
        operands = plan.operand[begin : begin + count] & NARROW_MASK
        granules = plan.granule[begin : begin + count]
        reasons = {
            PLAIN[2]: operands > NARROW_MASK - 3,
            PLAIN[3]: granules % 4 != 0,
            PLAIN[4]: (granules < 0) | (granules >= GRANULES),
        }
        plain = not any(wrong.any() for wrong in reasons.values())
        if known == tensor_products.ALL:
            assert plain
            coverage.hit(PLAIN[0])
        elif known == tensor_products.SOME:
            coverage.hit(PLAIN[1], when=plain)
            for reason, wrong in reasons.items():
                coverage.hit(reason, when=wrong.any())
        else:
            coverage.hit(PLAIN[5])

    coverage.close(check)
