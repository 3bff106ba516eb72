"""Policies: the text form round-trips, bad texts are refused, acceptance is by element."""

from __future__ import annotations

import numpy as np
import pytest
from darwinn_testbench.errors import PolicyError
from darwinn_testbench.policy import (
    NAMED,
    Exact,
    FloatTolerance,
    LsbBudget,
    Policy,
    difference,
    parse,
    within,
)
from hypothesis import given
from hypothesis import strategies as st

_tolerances = st.floats(0, 1e300, allow_nan=False)
policies: st.SearchStrategy[Policy] = st.one_of(
    st.just(Exact()),
    st.builds(LsbBudget, st.integers(0, 10**12), st.floats(0, 100)),
    st.builds(FloatTolerance, _tolerances, _tolerances),
)


@given(policies)
def test_text_reads_back_as_the_same_policy(policy: Policy) -> None:
    assert parse(str(policy)) == policy


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("exact", Exact()),
        (" EXACT ", Exact()),
        ("lsb:1", LsbBudget(1)),
        ("lsb:1,2%", LsbBudget(1, 2.0)),
        ("lsb: 3 , 0.5% ", LsbBudget(3, 0.5)),
        ("float:1e-5,1e-5", FloatTolerance(1e-5, 1e-5)),
        *NAMED.items(),
    ],
)
def test_texts(text: str, policy: Policy) -> None:
    assert parse(text) == policy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected exact"),
        ("close", "expected exact"),
        ("lsb", "expected exact"),
        ("exact:1", "expected exact"),
        ("lsb:", "whole number"),
        ("lsb:-1", "whole number"),
        ("lsb:1.5", "whole number"),
        ("lsb:1,2", "ends in %"),
        ("lsb:1,x%", "'x' is not a number"),
        ("lsb:1,101%", "between 0% and 100%"),
        ("lsb:1,nan%", "between 0% and 100%"),
        ("lsb:" + "9" * 5000, "whole number"),
        ("float:1e-5", "float:ATOL,RTOL"),
        ("float:1e-5,x", "'x' is not a number"),
        ("float:-1,0", "not negative"),
        ("float:inf,0", "finite"),
    ],
)
def test_bad_texts_are_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        parse(text)


@given(
    st.lists(st.tuples(st.integers(-128, 127), st.integers(-128, 127)), min_size=1),
    st.integers(0, 300),
)
def test_an_lsb_budget_accepts_by_the_true_difference(
    pairs: list[tuple[int, int]], lsb: int
) -> None:
    actual, expected = np.array(pairs, np.int8).T
    assert within(LsbBudget(lsb), actual, expected).tolist() == [
        abs(a - e) <= lsb for a, e in pairs
    ]


def test_an_lsb_budget_refuses_floats() -> None:
    with pytest.raises(PolicyError, match="have no LSB"):
        within(LsbBudget(1), np.zeros(1, np.float32), np.zeros(1, np.float32))


def test_differences_of_wide_integers_do_not_overflow() -> None:
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    wide = difference(np.array([high, low]), np.array([low, high]))
    assert wide.tolist() == [high - low, low - high]


def test_float_tolerance_treats_special_values_as_values() -> None:
    nan, inf = np.nan, np.inf
    actual = np.array([nan, inf, inf, 1.0, nan, 1.0001, 2.0])
    expected = np.array([nan, inf, -inf, inf, 1.0, 1.0, 1.0])
    accepted = within(FloatTolerance(1e-3, 0), actual, expected)
    assert accepted.tolist() == [True, True, False, False, False, True, False]


def test_exact_tells_zeros_apart_and_equates_nan() -> None:
    actual, expected = np.array([0.0, np.nan, 1.0]), np.array([-0.0, np.nan, 1.0])
    assert within(Exact(), actual, expected).tolist() == [False, True, True]
