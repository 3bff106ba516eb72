"""Comparison: the verdict follows the policy, the figures follow slow obvious definitions."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from darwinn_testbench.comparison.compare import HistogramBin, compare
from darwinn_testbench.errors import PolicyError
from darwinn_testbench.policy import Exact, FloatTolerance, LsbBudget
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

_shapes = hnp.array_shapes(max_dims=4, max_side=5)
_dtypes = st.sampled_from(["u1", "i1", "u2", "i2", "i4", "u4", "i8", "u8", "f4", "f8", "?"])


@st.composite
def pairs(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[Any]]:
    shape, dtype = draw(_shapes), draw(_dtypes)
    return draw(hnp.arrays(dtype, shape)), draw(hnp.arrays(dtype, shape))


@given(pairs())
def test_figures_equal_their_definition(pair: tuple[NDArray[Any], NDArray[Any]]) -> None:
    actual, expected = pair
    result = compare(actual, expected, Exact())
    same = [_same(a, e) for a, e in zip(actual.flat, expected.flat, strict=True)]
    assert result.differing == result.outside == same.count(False)
    assert result.passed == all(same)
    assert bool(result.reason) != result.passed
    if not all(same):
        first = tuple(map(int, np.unravel_index(same.index(False), actual.shape)))
        assert result.first_difference == first
    gaps = [float(a) - float(e) for a, e in zip(actual.flat, expected.flat, strict=True)]
    finite = [gap for gap in gaps if np.isfinite(gap)]
    assert result.max_difference == pytest.approx(max(map(abs, finite), default=0))
    assert sum(each.count for each in result.histogram) == len(finite)
    for each, after in itertools.pairwise(result.histogram):
        assert each.high < after.low or actual.dtype.kind == "f"
    json.dumps(result.to_json(), allow_nan=False)


def _same(a: Any, e: Any) -> bool:
    if np.isnan(float(a)) or np.isnan(float(e)):
        return bool(np.isnan(float(a)) and np.isnan(float(e)))
    return bool(a == e) and bool(np.signbit(float(a)) == np.signbit(float(e)))


@given(hnp.arrays(_dtypes, _shapes))
def test_an_array_passes_against_itself(values: NDArray[Any]) -> None:
    result = compare(values, values.copy(), Exact())
    assert result.passed
    assert result.non_finite_equal
    assert result.first_difference is None
    assert result.snr_db is None
    assert result.top1 in (None, 1.0)
    assert result.top5 in (None, 1.0)


def test_histogram_of_integers_is_signed_and_doubles_beyond_eight() -> None:
    actual = np.array([10, 9, 10, 19, 26, 27, 0], np.uint8)
    expected = np.full(7, 10, np.uint8)
    assert compare(actual, expected, Exact()).histogram == (
        HistogramBin(-16, -9, 1),
        HistogramBin(-1, -1, 1),
        HistogramBin(0, 0, 2),
        HistogramBin(9, 16, 2),
        HistogramBin(17, 32, 1),
    )


def test_histogram_of_floats_counts_decades() -> None:
    result = compare(np.array([1.0, 1.5, 3.0, np.nan]), np.array([1.0, 1.0, 1.0, 1.0]), Exact())
    assert [(each.low, each.count) for each in result.histogram] == [(0.0, 1), (0.1, 1), (1.0, 1)]
    assert (result.nan, result.expected_nan, result.non_finite_equal) == (1, 0, False)


def test_a_budget_bounds_the_share_of_differing_elements() -> None:
    expected = np.zeros(100, np.uint8)
    actual = expected.copy()
    actual[:2] = 1
    assert compare(actual, expected, LsbBudget(1, 2.0)).passed
    assert compare(actual, expected, LsbBudget(1)).passed
    over = compare(actual, expected, LsbBudget(1, 1.9))
    assert not over.passed
    assert "2 of 100 elements differ" in over.reason
    actual[0] = 2
    assert compare(actual, expected, LsbBudget(1, 2.0)).outside == 1


def test_a_reason_separates_thousands() -> None:
    expected = np.zeros(20_000, np.uint8)
    exact = compare(expected + 1, expected, Exact()).reason
    assert exact.startswith("20,000 of 20,000 elements differ")
    over = compare(expected + 1, expected, LsbBudget(1, 1.9)).reason
    assert over.startswith("20,000 of 20,000 elements differ")


def test_shape_and_dtype_must_agree() -> None:
    assert "shape" in compare(np.zeros((1, 2)), np.zeros(2), FloatTolerance(1, 1)).reason
    assert "dtype" in compare(np.zeros(2, np.int8), np.zeros(2, np.uint8), Exact()).reason
    assert "cannot be compared" in compare(np.zeros(2, "c8"), np.zeros(2, "c8"), Exact()).reason
    with pytest.raises(PolicyError):
        compare(np.zeros(2), np.zeros(2), LsbBudget(1))


def test_saturation_counts_both_ends_of_both_sides() -> None:
    result = compare(np.array([-128, 127, 0], np.int8), np.array([127, 1, 0], np.int8), Exact())
    assert (result.saturated, result.expected_saturated) == (2, 1)


def test_the_worst_channel_is_named() -> None:
    expected = np.zeros((4, 3), np.uint8)
    actual = expected.copy()
    actual[:, 1] = 1
    actual[2, 2] = 9
    worst = compare(actual, expected, Exact()).worst_channel
    assert worst is not None
    assert (worst.channel, worst.differing, worst.max_difference) == (2, 1, 9)


def test_one_zeroed_channel_hides_in_the_cosine_but_not_in_the_verdict() -> None:
    expected = np.random.default_rng(3).normal(size=(16, 1000))
    actual = expected.copy()
    actual[:, 7] = 0
    result = compare(actual, expected, FloatTolerance(1e-5, 1e-5))
    assert result.cosine is not None
    assert result.cosine > 0.999
    assert not result.passed


def test_signal_to_noise_ratio_is_taken_from_real_values() -> None:
    expected = np.array([110, 90], np.uint8)
    actual = np.array([111, 90], np.uint8)
    snr = compare(actual, expected, Exact(), zero_point=100).snr_db
    assert snr == pytest.approx(10 * np.log10(200 / 1))


@given(hnp.arrays("u1", (2, 7), elements=st.integers(0, 4)))
def test_top_five_overlap_is_the_best_over_all_ways_to_break_ties(values: NDArray[Any]) -> None:
    actual, expected = values
    best = max(
        len(a & e) for a in _top_sets(actual.tolist(), 5) for e in _top_sets(expected.tolist(), 5)
    )
    agree = any(
        a & e for a in _top_sets(actual.tolist(), 1) for e in _top_sets(expected.tolist(), 1)
    )
    result = compare(actual, expected, Exact())
    assert result.top5 == pytest.approx(best / 5)
    assert result.top1 == float(agree)


def _top_sets(values: list[int], top: int) -> list[set[int]]:
    greatest = sorted(values, reverse=True)[:top]
    return [
        set(chosen)
        for chosen in itertools.combinations(range(len(values)), top)
        if sorted((values[i] for i in chosen), reverse=True) == greatest
    ]


def test_empty_arrays_pass() -> None:
    assert compare(np.zeros((0, 4), np.int8), np.zeros((0, 4), np.int8), Exact()).passed
