"""Traversals: the compiled address generator against nested loops over encoded strides."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from darwinn_sim.isa.builder import build
from darwinn_sim.isa.codec import decode
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.kernel import traversal
from functional_coverage import Coverage
from hypothesis import given
from hypothesis import strategies as st
from slow_model import traversal as slow
from stimulus import Walk, constrained_random, near_edges, walk

BINS = (
    *(f"loops used: {n}" for n in range(1, 5)),
    "step > 0",
    "step < 0",
    "loop outside the mask",
    "odd stride of a loop that runs once",
    *(f"double buffer at loop {n}" for n in range(4)),
    "double buffer starts on the second side",
    "alternate limit shorter",
    "alternate limit equal",
    "alternate limit for loop 1",
    "prologue once",
    "prologue again",
    "prologue steps",
    "prologue wraps",
    "prologue within the loops",
    "prologue before each element",
    "single element",
)

PLACES = (
    ("WideToNarrow", "narrow_write"),
    ("RingConsumerA", "wide_write"),
    ("RingProducer", "wide_read"),
    ("TensorMac", "narrow_read"),
    ("TensorMac", "parameter_read"),
    ("NarrowToWide", "narrow_read"),
    ("MeshWest", "narrow_write"),
    ("PopInput", "buffer"),
    ("RingInfeed", "buffer"),
)
"""One traversal of every shape: number of loops, widths, with and without prologue."""

HAVE_PROLOGUE = ("WideToNarrow", "RingConsumerA")
HIGHEST = 8000


@st.composite
def cases(draw: Any) -> tuple[str, str, Walk]:
    instruction, name = draw(st.sampled_from(PLACES))
    target = draw(st.integers(0, 1)) if instruction == "NarrowToWide" else 0
    drawn = walk(draw, instruction, name, low=0, high=HIGHEST, most=80, target=target)
    if instruction in HAVE_PROLOGUE and draw(st.booleans()):
        base, elements = draw(near_edges(0, 4000)), draw(near_edges(1, 5))
        step = draw(st.integers(0, 9))
        last = base + draw(st.sampled_from([0, step, 2 * step, 3 * step]))
        loop = draw(st.integers(0, len(drawn.counts) - 1))
        drawn = Walk(**{**drawn.__dict__, "prologue": (loop, base, elements, last, step)})
    return instruction, name, drawn


def lowered(instruction: str, name: str, fields: dict[str, Any], target: int = 0) -> Any:
    """Engine parameters of a traversal, by way of the encoded instruction."""
    program = decode(build([(instruction, fields)]))
    entry = BY_NAME[instruction]
    (part,) = (t for t in entry.traversals if t.name == name)
    parameters = traversal.lower(part, program.columns[entry.opcode], 1)
    parameters["alternate_target"] = target
    return parameters[0]


def marks(bits: int) -> set[int]:
    return {d for d in range(traversal.MAX_LOOPS + 1) if bits >> d & 1}


def engine_walk(parameters: Any) -> list[slow.Element]:
    """Step the compiled traversal to its end."""
    position: Any = traversal.State.zeros(1)[0]
    elements = []
    traversal.start(position, parameters)
    while not position["done"]:
        in_prologue = bool(position["prologue_left"])
        tested = traversal.waits_here(position)
        element = slow.Element(traversal.address(position, parameters), prologue=in_prologue)
        element.begins = marks(int(position["begins"])) if tested else set()
        element.ends = marks(int(traversal.step(position, parameters)))
        elements.append(element)
    return elements


def plain(elements: list[slow.Element]) -> list[tuple[int, set[int], set[int], bool]]:
    return [(e.address, e.begins, e.ends, e.prologue) for e in elements]


def cover(coverage: Coverage, drawn: Walk, elements: list[slow.Element]) -> None:
    used = sum(count > 1 for count in drawn.counts)
    coverage.hit(f"loops used: {used}", when=1 <= used <= 4)
    coverage.hit("single element", when=len(elements) == 1)
    moving = [s for s, c in zip(drawn.steps, drawn.counts, strict=True) if c > 1]
    coverage.hit("step > 0", when=any(s > 0 for s in moving))
    coverage.hit("step < 0", when=any(s < 0 for s in moving))
    coverage.hit("loop outside the mask", when=any(s == 0 for s in moving))
    coverage.hit(
        "odd stride of a loop that runs once",
        when=drawn.odd_stride != 0 and 1 in drawn.counts[1:],
    )
    loop, distance, start = drawn.double
    coverage.hit(f"double buffer at loop {loop}", when=distance > 0 and loop < 4)
    coverage.hit("double buffer starts on the second side", when=distance > 0 and start == 1)
    alternate, count = drawn.alternate
    if alternate:
        shorter = count < drawn.counts[drawn.target]
        coverage.hit("alternate limit shorter" if shorter else "alternate limit equal")
        coverage.hit("alternate limit for loop 1", when=shorter and drawn.target == 1)
    if drawn.prologue:
        loop, base, length, _, step = drawn.prologue
        starts = [e.address for e in elements if e.prologue][::length]
        coverage.hit("prologue once" if len(starts) == 1 else "prologue again")
        coverage.hit("prologue steps", when=step > 0 and base + step in starts)
        coverage.hit("prologue wraps", when=base in starts[1:] and base + step in starts)
        coverage.hit("prologue within the loops", when=loop + 1 < len(drawn.counts))
        body = [e for e in elements if not e.prologue]
        each = len(elements) == len(body) * (length + 1)
        coverage.hit("prologue before each element", when=each and len(body) > 1)


def test_the_engine_walks_as_nested_loops_do() -> None:
    """Addresses, begins and ends of blocks agree for every element, on hundreds of traversals."""
    coverage = Coverage("traversal", BINS)

    @constrained_random(700)
    @given(cases())
    def check(case: tuple[str, str, Walk]) -> None:
        instruction, name, drawn = case
        expected = drawn.elements(instruction, name)
        parameters = lowered(instruction, name, drawn.fields(instruction, name), drawn.target)
        actual = engine_walk(parameters)
        assert plain(actual) == plain(expected)
        cover(coverage, drawn, expected)

    coverage.close(check)


@constrained_random(150)
@given(cases())
def test_a_traversal_that_goes_around_repeats_itself(case: tuple[str, str, Walk]) -> None:
    """Parameter reads wrap: after the last element comes the first one again, as at the start."""
    instruction, name, drawn = case
    parameters = lowered(instruction, name, drawn.fields(instruction, name), drawn.target)
    position: Any = traversal.State.zeros(1)[0]
    traversal.start(position, parameters)
    rounds = []
    for _ in range(2):
        addresses = []
        for _ in range(len(drawn.elements(instruction, name))):
            addresses.append(traversal.address(position, parameters))
            traversal.step_around(position, parameters)
        rounds.append(addresses)
    assert rounds[0] == rounds[1] == [e.address for e in drawn.elements(instruction, name)]


def fields_of(position: Any) -> dict[str, Any]:
    """Where a traversal stands, what is remembered of earlier prologues aside."""
    names = ("index", "address", "second", "begins", "done")
    return {name: position[name].tolist() for name in names}


@constrained_random(300)
@given(cases(), st.data())
def test_many_steps_at_once_are_those_steps(case: tuple[str, str, Walk], data: Any) -> None:
    """From any element: plain steps that are skipped, and a leap to the end of a block."""
    instruction, name, drawn = case
    parameters = lowered(instruction, name, drawn.fields(instruction, name), drawn.target)
    length = len(drawn.elements(instruction, name))
    slowly: Any = traversal.State.zeros(1)[0]
    traversal.start(slowly, parameters)
    for _ in range(data.draw(st.integers(0, length - 1))):
        traversal.step(slowly, parameters)
    if parameters["prologue_length"] == 0 and parameters["alternate_loop"] == 0:
        check_leap(slowly.copy(), parameters, data)
    quickly = slowly.copy()
    plain = traversal.plain_steps(slowly, parameters)
    steps = data.draw(st.integers(0, plain))
    traversal.skip(quickly, parameters, steps)
    for _ in range(steps):
        assert traversal.step(slowly, parameters) == traversal.single_blocks(parameters)
    assert fields_of(quickly) == fields_of(slowly)
    if steps == plain and not slowly["prologue_left"]:
        # The next one ends more than that: none is left.
        assert traversal.step(slowly, parameters) != traversal.single_blocks(parameters) or (
            plain == 0
        )


@pytest.mark.parametrize(("instruction", "name"), PLACES[: len(HAVE_PROLOGUE)])
def test_no_step_is_plain_where_a_prologue_follows(instruction: str, name: str) -> None:
    """Whichever loop moves, and before the blocks of whichever the prologue stands."""
    loops = BY_NAME[instruction].field(f"{name}_limit").count
    for moving, before in product(range(loops), repeat=2):
        counts = tuple(3 if loop == moving else 1 for loop in range(loops))
        drawn = Walk(counts, (1,) * loops, base=10, prologue=(before, 100, 1, 100, 0))
        parameters = lowered(instruction, name, drawn.fields(instruction, name))
        position: Any = traversal.State.zeros(1)[0]
        traversal.start(position, parameters)
        traversal.step(position, parameters)
        again = any(each.prologue for each in drawn.elements(instruction, name)[1:])
        assert traversal.plain_steps(position, parameters) == (0 if again else 2)


def check_leap(slowly: Any, parameters: Any, data: Any) -> None:
    """To the last element of a block, and so many of its inner blocks end on the way."""
    depth = data.draw(st.integers(0, traversal.MAX_LOOPS))
    quickly = slowly.copy()
    steps = traversal.before_end(quickly, parameters, depth, 1 << 30)
    most = data.draw(st.integers(0, 2 * steps))
    assert traversal.before_end(quickly, parameters, depth, most) == min(steps, most)
    counted = data.draw(st.integers(0, traversal.MAX_LOOPS))
    expected = traversal.ends(quickly, parameters, steps, counted)
    if steps:
        traversal.advance(quickly, parameters, steps)
    ended = 0
    for _ in range(steps):
        bits = traversal.step(slowly, parameters)
        assert not bits >> depth & 1
        ended += bits >> counted & 1
    assert fields_of(quickly) == fields_of(slowly)
    assert ended == expected
    assert traversal.step(slowly, parameters) >> depth & 1


@constrained_random(300)
@given(cases(), st.integers(1, 3), st.integers(0, 5))
def test_addresses_are_filled_in_as_they_are_walked(
    case: tuple[str, str, Walk], rounds: int, more: int
) -> None:
    """Fewer than a pass, several, or a pass and a half; nothing beyond the array is touched."""
    instruction, name, drawn = case
    parameters = lowered(instruction, name, drawn.fields(instruction, name), drawn.target)
    walked = [e.address for e in drawn.elements(instruction, name)]
    count = max(1, rounds * len(walked) // 2 + more)
    position: Any = traversal.State.zeros(1)[0]
    addresses = np.full(count + 2, -77, np.int64)
    traversal.fill(addresses[1:-1], position, parameters)
    assert addresses[1:-1].tolist() == (walked * (count // len(walked) + 1))[:count]
    assert addresses[0] == addresses[-1] == -77


LIMITS = st.lists(
    st.sampled_from([0, 1, 2, 255, (1 << 14) - 1, (1 << 18) - 1]), min_size=8, max_size=8
)
"""Limits of loops, among them the greatest ones that the fields of some traversals have."""


@given(
    LIMITS,
    st.tuples(st.integers(0, 1), st.integers(0, 7), st.integers(0, 1)),
    st.integers(1, 300),
)
def test_more_elements_than_64_bits_count(
    limits: list[int], double: tuple[int, int, int], count: int
) -> None:
    """The first of them are those that are walked, whatever the product of all limits is."""
    parameters: Any = traversal.Parameters.zeros(1)
    parameters["loops"], parameters["limit"][0] = traversal.MAX_LOOPS, limits
    parameters["step"][0] = [1, 10, 100, 1000, 0, 0, 0, 0]
    offset, loop, start = double
    parameters["double_offset"], parameters["double_loop"] = 5000 * offset, loop
    parameters["double_start"] = start
    position, walked = traversal.State.zeros(1)[0], []
    traversal.start(position, parameters[0])
    elements = math.prod(limit + 1 for limit in limits)
    for _ in range(min(count, elements)):
        walked.append(traversal.address(position, parameters[0]))
        traversal.step_around(position, parameters[0])
    addresses = np.zeros(len(walked), np.int64)
    traversal.fill(addresses, position, parameters[0])
    assert addresses.tolist() == walked


@given(LIMITS, st.data())
def test_more_steps_than_64_bits_count(limits: list[int], data: Any) -> None:
    """Also where some loops have come to their last element."""
    parameters: Any = traversal.Parameters.zeros(1)
    parameters["loops"], parameters["limit"][0] = traversal.MAX_LOOPS, limits
    indices = [data.draw(st.sampled_from(sorted({0, limit // 2, limit}))) for limit in limits]
    position: Any = traversal.State.zeros(1)
    position["index"][0] = indices
    blocks = [math.prod(limit + 1 for limit in limits[:loop]) for loop in range(len(limits))]
    steps = sum(
        (limit - index) * block for limit, index, block in zip(limits, indices, blocks, strict=True)
    )
    most = 1 << 22
    found = traversal.before_end(position[0], parameters[0], traversal.MAX_LOOPS, most)
    assert found == min(steps, most)


@constrained_random(300)
@given(cases(), st.integers(0, traversal.MAX_LOOPS), st.integers(0, 5))
def test_ends_are_filled_in_as_they_are_walked(
    case: tuple[str, str, Walk], depth: int, more: int
) -> None:
    """Of one pass; nothing behind it is touched."""
    instruction, name, drawn = case
    parameters = lowered(instruction, name, drawn.fields(instruction, name), drawn.target)
    walked = [e.ends for e in engine_walk(parameters)]
    position: Any = traversal.State.zeros(1)[0]
    ended = np.zeros(len(walked) + more, np.uint8)
    assert traversal.fill_ends(ended, position, parameters, depth) == len(walked)
    assert ended.tolist() == [depth in ends for ends in walked] + more * [0]


@pytest.mark.parametrize(
    ("drawn", "addresses"),
    [
        (Walk((3, 2, 1, 1), (1, 10, 0, 0), base=5), [5, 6, 7, 15, 16, 17]),
        (Walk((3, 2, 1, 1), (1, 3, 0, 0), alternate=(1, 2)), [0, 1, 2, 3, 4]),
        (Walk((2, 2, 1, 1), (1, 0, 0, 0), base=4), [4, 5, 4, 5]),
        (Walk((2, 3, 1, 1), (1, 0, 0, 0), double=(1, 100, 0)), [0, 1, 100, 101, 0, 1]),
        (Walk((2, 2, 1, 1), (0, 0, 0, 0), double=(0, 7, 0)), [0, 7, 0, 7]),
        (
            Walk((2, 3, 1, 1), (1, 2, 0, 0), base=50, prologue=(0, 9, 1, 11, 2)),
            [9, 50, 51, 11, 52, 53, 9, 54, 55],
        ),
    ],
    ids=["nested", "alternate", "unmasked", "double", "double each element", "prologue"],
)
def test_addresses_worked_out_by_hand(drawn: Walk, addresses: list[int]) -> None:
    """Small traversals whose addresses a reader can check; both models agree with them."""
    fields = drawn.fields("RingConsumerA", "wide_write")
    assert [e.address for e in slow.walk(fields, "wide_write")] == addresses
    parameters = lowered("RingConsumerA", "wide_write", fields)
    assert [e.address for e in engine_walk(parameters)] == addresses
