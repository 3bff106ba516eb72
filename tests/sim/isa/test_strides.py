"""Real steps of a traversal against an address generator that is stepped one element at a time."""

from __future__ import annotations

import itertools

import numpy as np
from darwinn_sim.isa.strides import is_normalised, normalised, steps
from hypothesis import given
from hypothesis import strategies as st


@st.composite
def traversals(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    loops = draw(st.integers(1, 8))
    step = draw(st.lists(st.integers(-70_000, 70_000), min_size=loops, max_size=loops))
    limit = draw(st.lists(st.integers(0, 2), min_size=loops, max_size=loops))
    return step, limit, draw(st.integers(0, (1 << loops) - 1))


def addresses_of_generator(stride: list[int], limit: list[int]) -> list[int]:
    """Step a hardware-like generator: one addition of one encoded stride per element."""
    counter = [0] * len(limit)
    address = 0
    visited = [address]
    while True:
        loop = next((k for k, count in enumerate(counter) if count < limit[k]), None)
        if loop is None:
            return visited
        counter[loop] += 1
        counter[:loop] = [0] * loop
        address += stride[loop]
        visited.append(address)


def addresses_of_loops(step: list[int], limit: list[int], mask: int) -> list[int]:
    """Address of every element as the plain sum of index * step over the moving loops."""
    ranges = [range(count + 1) for count in reversed(limit)]
    moving = [value if mask >> loop & 1 else 0 for loop, value in enumerate(step)]
    return [
        sum(index * value for index, value in zip(indices, reversed(moving), strict=True))
        for indices in itertools.product(*ranges)
    ]


@given(traversals())
def test_normalised_strides_drive_a_generator_through_the_loop_nest(
    traversal: tuple[list[int], list[int], int],
) -> None:
    step, limit, mask = traversal
    encoded = normalised(np.array(step), np.array(limit), np.array(mask))
    assert addresses_of_generator(encoded.tolist(), limit) == addresses_of_loops(step, limit, mask)


@given(traversals())
def test_steps_inverts_normalised(traversal: tuple[list[int], list[int], int]) -> None:
    step, limit, mask = (np.array(part) for part in traversal)
    encoded = normalised(step, limit, mask)
    moving = np.where((mask >> np.arange(len(step))) & 1, step, 0)
    assert steps(encoded, limit, mask).tolist() == moving.tolist()
    assert is_normalised(encoded, limit, mask)


@given(st.lists(traversals(), min_size=1, max_size=4))
def test_rows_are_independent(rows: list[tuple[list[int], list[int], int]]) -> None:
    width = min(len(step) for step, _, _ in rows)
    step = np.array([row[0][:width] for row in rows])
    limit = np.array([row[1][:width] for row in rows])
    mask = np.array([row[2] & ((1 << width) - 1) for row in rows])
    together = normalised(step, limit, mask)
    for index in range(len(rows)):
        alone = normalised(step[index], limit[index], mask[index])
        assert together[index].tolist() == alone.tolist()


def test_a_loop_outside_the_mask_that_moves_is_not_normalised() -> None:
    stride, limit = np.array([[1, 5], [1, -3]]), np.array([[3, 3], [3, 3]])
    assert is_normalised(stride, limit, np.array([1, 1])).tolist() == [False, True]


def test_the_stride_of_a_loop_that_runs_once_is_ignored() -> None:
    assert is_normalised(np.array([1, 0]), np.array([0, 3]), np.array(0))
