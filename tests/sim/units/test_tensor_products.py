"""Products of whole segments in vectors: the same sums as lane by lane."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from darwinn_sim import chip
from darwinn_sim.kernel.compiled import OPTIONS
from darwinn_sim.units import tensor_products
from darwinn_sim.units.memories import NARROW_MASK
from functional_coverage import Coverage
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from stimulus import constrained_random

BINS = (
    "lanes of one small block",
    "lanes beyond a small block",
    "lanes beyond a large block",
    "no iterations",
    "an operand that is no word",
    "an address that wraps",
    "stops where activations wrap",
    "stops at a granule within a row",
    "stops at a row that is none",
    "greatest zero point",
)

_numba: Any = numba
_add = _numba.njit(**OPTIONS)(lambda *arguments: tensor_products.add_products(*arguments))
_plain = _numba.njit(**OPTIONS)(lambda *arguments: tensor_products.plain_iterations(*arguments))
_RANDOM = np.random.default_rng(1)
NARROW = _RANDOM.integers(0, 1 << 32, chip.NARROW_ADDRESS_BYTES // 4, np.uint32)
WIDE = _RANDOM.integers(0, 1 << 32, chip.WIDE_ROWS * chip.ROW_WORDS, np.uint32)

ZEROS = st.sampled_from((0, 1, 128, 255, tensor_products.MOST_ZERO)) | st.integers(0, 255)
OPERANDS = (
    st.integers(0, 2 * NARROW_MASK)
    | st.integers(0, 2 * NARROW_MASK).map(lambda address: address & ~3)
    | st.integers(NARROW_MASK - 4, NARROW_MASK)
)
ROWS = st.integers(0, chip.WIDE_ROWS - 1).map(lambda row: 4 * row)
GRANULES = ROWS | ROWS | st.integers(-4, 4 * chip.WIDE_ROWS + 4)
Iterations = list[tuple[int, int]]


def stop(operand: int, granule: int) -> str | None:
    """Why an iteration is not one of those that are computed here."""
    if operand & NARROW_MASK > NARROW_MASK - 3:
        return "stops where activations wrap"
    if granule % 4:
        return "stops at a granule within a row"
    if not 0 <= granule < 4 * chip.WIDE_ROWS:
        return "stops at a row that is none"
    return None


def slowly(
    sums: NDArray[np.int32], lanes: int, iterations: Iterations, zero: int, parameter_zero: int
) -> NDArray[np.int32]:
    """The sums, product by product."""
    out = [int(value) for value in sums]
    octets, parameters = NARROW.view(np.uint8), WIDE.view(np.uint8)
    for operand, granule in iterations:
        for lane in range(lanes):
            for k in range(4):
                activation = int(octets[(operand & NARROW_MASK) + k]) - zero
                parameter = int(parameters[granule * chip.ROW_WORDS + 4 * lane + k])
                out[lane] += activation * (parameter - parameter_zero)
    return np.array([value % (1 << 32) for value in out], np.uint32).view(np.int32)


def test_vectors() -> None:
    """Sums, and how many iterations are computed, are those of the rule."""
    coverage = Coverage("products in vectors", BINS)

    @constrained_random(300)
    @given(
        st.integers(0, chip.LANES),
        st.lists(st.tuples(OPERANDS, GRANULES), max_size=9),
        ZEROS,
        ZEROS,
        st.integers(0, 1 << 32),
    )
    def check(
        lanes: int, iterations: Iterations, zero: int, parameter_zero: int, seed: int
    ) -> None:
        before = np.random.default_rng(seed).integers(-(1 << 31), 1 << 31, chip.LANES, np.int32)
        reasons = [stop(*iteration) for iteration in iterations]
        count = next((k for k, reason in enumerate(reasons) if reason), len(iterations))
        operands = np.array([operand for operand, _ in iterations], np.int32)
        granules = np.array([granule for _, granule in iterations], np.int16)
        sums = before.copy()
        zeros = np.int32(zero), np.int32(parameter_zero)
        assert _plain(operands, granules) == count
        _add(sums, lanes, NARROW, operands, WIDE, granules, count, *zeros)
        expected = slowly(before, lanes, iterations[:count], zero, parameter_zero)
        np.testing.assert_array_equal(sums, expected)
        coverage.hit("lanes of one small block", when=0 < lanes <= 4 and count)
        coverage.hit("lanes beyond a small block", when=4 < lanes <= 32 and count)
        coverage.hit("lanes beyond a large block", when=lanes > 32 and count)
        coverage.hit("no iterations", when=not iterations)
        coverage.hit("an operand that is no word", when=any(operands[:count] % 4))
        coverage.hit("an address that wraps", when=any(operands[:count] > NARROW_MASK))
        coverage.hit("greatest zero point", when=max(zeros) == tensor_products.MOST_ZERO)
        if count < len(iterations):
            coverage.hit(reasons[count] or "")

    coverage.close(check)
