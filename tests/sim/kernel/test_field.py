"""Elements of the field of value numbers equal Python's integers modulo 2^61 - 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from darwinn_sim.kernel import field
from darwinn_sim.kernel.compiled import compiled
from darwinn_sim.numbering import kernels
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

P = (1 << 61) - 1
EDGES = (0, 1, 2, 255, 256, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, 1 << 60, P - 2, P - 1)
elements = st.one_of(st.sampled_from(EDGES), st.integers(0, P - 1))
integers = st.one_of(
    st.sampled_from([-(1 << 63), -P - 1, -P, 1 - P, -1, 0, 1, P - 1, P, P + 1, (1 << 63) - 1]),
    st.integers(-(1 << 63), (1 << 63) - 1),
)
words = st.one_of(st.sampled_from([*EDGES, P, P + 1, (1 << 64) - 1]), st.integers(0, (1 << 64) - 1))

Elements = NDArray[np.uint64]


@compiled
def computed(one: np.uint64, other: np.uint64, integer: int, found: Elements) -> None:
    found[0] = field.added(one, other)
    found[1] = field.subtracted(one, other)
    found[2] = field.multiplied(one, other)
    found[3] = field.of_integer(integer)
    found[4] = np.uint64(field.low_part(one))
    found[5] = np.uint64(field.high_part(one))


@compiled
def folded(word: np.uint64) -> np.uint64:
    return field.folded(word)


@compiled
def joined(low: int, high: int) -> np.uint64:
    return field.of_parts(low, high)


@compiled
def mixed(one: np.uint64, other: np.uint64) -> np.uint64:
    return field.mixed(one, other)


@compiled
def inverse(element: np.uint64) -> np.uint64:
    return field.inverse(element)


def u64(number: int) -> np.uint64:
    return np.uint64(number)


@given(elements, elements, integers)
def test_sums_products_and_parts(one: int, other: int, integer: int) -> None:
    found = np.zeros(6, np.uint64)
    computed(u64(one), u64(other), integer, found)
    expected = [(one + other) % P, (one - other) % P, one * other % P, integer % P]
    assert found.tolist() == [*expected, one % (1 << 31), one >> 31]


@given(words)
def test_a_word_is_folded_into_the_field(word: int) -> None:
    assert int(folded(u64(word))) == word % P


@given(integers, integers)
def test_sums_of_parts_are_joined(low: int, high: int) -> None:
    assert int(joined(low, high)) == (low + (high << 31)) % P


@given(st.integers(1, P - 1), st.integers(-(1 << 31), 1 << 31))
def test_an_inverse_gives_1(element: int, weight: int) -> None:
    assert int(inverse(u64(element))) * element % P == 1
    if weight:
        assert int(kernels.inverse(weight)) * weight % P == 1


@given(st.lists(st.tuples(elements, st.integers(-(1 << 16), 1 << 16)), max_size=40), integers)
def test_a_linear_form_is_that_of_its_parts(terms: list[tuple[int, int]], constant: int) -> None:
    """As units and rules add them up: both parts times the weight, joined once."""
    given_elements = np.array([element for element, _ in terms], np.uint64)
    weights = np.array([weight for _, weight in terms], np.int64)
    low, high = np.empty(len(terms), np.int64), np.empty(len(terms), np.int64)
    kernels.split(given_elements, low, high)
    found = np.empty(1, np.uint64)
    sums = [np.array([(weights * part).sum()], np.int64) for part in (low, high)]
    kernels.joined(sums[0], sums[1], found)
    expected = sum(element * weight for element, weight in terms)
    assert int(found[0]) == expected % P
    field.join_parts(
        np.array([(weights * low).sum()], np.int64),
        np.array([(weights * high).sum()], np.int64),
        np.array([constant], np.int64),
        found,
    )
    assert int(found[0]) == (expected + constant) % P


MASK = (1 << 64) - 1


def slow_mixed(one: int, other: int) -> int:
    def scrambled(value: int) -> int:
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
        value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
        return value ^ value >> 31

    step = 0x9E3779B97F4A7C15
    inner = scrambled(one + step & MASK) ^ (other * step + 0xBF58476D1CE4E5B9 & MASK)
    return scrambled(inner) % P


@given(words, words)
def test_a_hash_is_an_element_and_no_constant(one: int, other: int) -> None:
    found = int(mixed(u64(one), u64(other)))
    expected = slow_mixed(one, other)
    assert found == (expected if expected >= 256 else expected + 256)
    assert field.CONSTANTS <= found < P
    many = np.empty(1, np.uint64)
    field.mix(np.array([one], np.uint64), np.array([other], np.uint64), many)
    assert int(many[0]) == found


def test_hashes_of_neighbours_are_all_different() -> None:
    """Of small numbers, of the bits of a word, and in both orders."""
    small = [*range(300), *(1 << k for k in range(9, 64))]
    pairs = [(a, b) for a in small for b in small]
    one, other = (np.array([pair[k] for pair in pairs], np.uint64) for k in (0, 1))
    found = np.empty(len(pairs), np.uint64)
    field.mix(one, other, found)
    assert len(np.unique(found)) == len(pairs)


def test_random_elements_are_elements_and_no_constants() -> None:
    found = field.random_elements(np.random.default_rng(0), 10_000)
    assert found.dtype == np.uint64
    assert field.CONSTANTS <= int(found.min()) <= int(found.max()) < P
    assert len(np.unique(found)) == len(found)


@given(st.integers(0, 255), st.lists(elements, min_size=1, max_size=5), words)
def test_a_function_of_a_byte_maps_constants_and_tells_operands_apart(
    constant: int, of: list[int], seed: int
) -> None:
    table = np.random.default_rng(seed).permutation(256).astype(np.int32)
    function = kernels.function_of_byte(table)
    values = np.array([constant, *(max(each, 256) for each in of)], np.uint64)
    found = np.empty_like(values)
    kernels.apply(np.uint64(function), table, values, found)
    assert found[0] == table[constant]
    assert len(set(found.tolist())) == len(set(values.tolist()))
    same: Callable[..., Any] = kernels.function_of_byte
    assert same(np.arange(256, dtype=np.int32)) == 0
    other = table.copy()
    other[[0, 1]] = table[[1, 0]]
    assert same(other) != function
