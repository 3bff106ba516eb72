"""The fit of a host's parameters: exact times, noise, far points, and what times say nothing of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from darwinn_testbench.accuracy import fitting

PARAMETERS = 3
KNOWN = np.log([1e-3, 1e-8, 2e-9])
DOUBTS = np.array([1.0, 1.0, 1.0])


def parts(models: int, seed: int = 0) -> fitting.Vector:
    """Models that spend their time in different ways."""
    random = np.random.default_rng(seed)
    rows = np.empty((models, PARAMETERS))
    rows[:, 0] = 1
    rows[:, 1] = 10 ** random.uniform(3, 5.5, models)
    rows[:, 2] = 10 ** random.uniform(4, 6.5, models)
    return rows


def true_values() -> fitting.Vector:
    return np.log([5e-4, 2.5e-8, 2e-9])


def test_exact_times_give_the_parameters() -> None:
    rows = parts(12)
    found = fitting.fit(rows, fitting.times(rows, true_values()), KNOWN, 10 * DOUBTS)
    assert found.values == pytest.approx(true_values(), abs=2e-3)
    assert found.scatter == fitting.FEWEST_ERROR
    assert (found.deviations < 0.03).all()


def test_a_parameter_without_doubt_stays() -> None:
    rows = parts(12)
    doubts = np.array([1.0, 0.0, 1.0])
    found = fitting.fit(rows, fitting.times(rows, true_values()), KNOWN, doubts)
    assert found.values[1] == KNOWN[1] and found.deviations[1] == 0


def test_what_no_time_depends_on_stays_as_it_was_known() -> None:
    rows = parts(12)
    rows[:, 1] = 0
    found = fitting.fit(rows, fitting.times(rows, true_values()), KNOWN, DOUBTS)
    assert found.values[1] == pytest.approx(KNOWN[1])
    assert found.deviations[1] == pytest.approx(DOUBTS[1])


@pytest.mark.parametrize("noise", [0.02, 0.06])
def test_intervals_hold_nine_of_ten_parameters(noise: float) -> None:
    held = []
    for seed in range(60):
        rows = parts(14, seed)
        random = np.random.default_rng(1000 + seed)
        measured = fitting.times(rows, true_values()) * np.exp(random.normal(0, noise, 14))
        found = fitting.fit(rows, measured, KNOWN, 10 * DOUBTS)
        far = np.abs(found.values - true_values()) / found.deviations
        held.append(far < fitting.student(found.freedom))
        assert noise / 2.5 < found.scatter < 2.2 * noise
    assert 0.82 < np.mean(held) <= 0.99


def test_a_far_point_counts_less() -> None:
    rows = parts(16)
    measured = fitting.times(rows, true_values())
    measured[3] *= 2
    found = fitting.fit(rows, measured, KNOWN, 10 * DOUBTS)
    predicted = fitting.times(rows, found.values)
    others = np.arange(16) != 3
    assert np.abs(predicted / measured - 1)[others].mean() < 0.05
    without = fitting.left_out(rows, measured, KNOWN, 10 * DOUBTS)
    assert abs(without[3]) > 0.4 > 5 * np.abs(np.delete(without, 3)).mean()


def test_too_few_times_leave_the_usual_error() -> None:
    rows = parts(1)
    found = fitting.fit(rows, fitting.times(rows, true_values()), KNOWN, DOUBTS)
    assert found.scatter == fitting.UNKNOWN_ERROR
    assert found.spread.scatter == pytest.approx(fitting.UNKNOWN_ERROR * fitting.NINE_OF_TEN)


def test_fewer_degrees_of_freedom_give_a_wider_interval() -> None:
    spans = [fitting.student(freedom) for freedom in (1, 2, 5, 14, 1000)]
    assert spans == sorted(spans, reverse=True)
    assert math.isclose(spans[0], 6.31)


def test_the_spread_of_a_host_is_wide_where_its_networks_differ() -> None:
    """Rates that are off from network to network: the fixed cost's interval stays narrow."""
    random = np.random.default_rng(0)
    held, widths = [], []
    for seed in range(20):
        rows = parts(30, seed)
        own = rows * np.exp(true_values() + random.normal(0, [0.01, 0.01, 0.2], rows.shape))
        found = fitting.fit(rows, own.sum(axis=1), KNOWN, 10 * DOUBTS)
        errors = fitting.left_out(rows, own.sum(axis=1), KNOWN, 10 * DOUBTS)
        spread = fitting.spread(rows, found, errors, 10 * DOUBTS)
        assert spread.deviations[2] > 0.1 > spread.deviations[:2].max()
        other = parts(20, 100 + seed)
        shares = other * np.exp(found.values)
        predicted = shares.sum(axis=1)
        shares /= predicted[:, None]
        covariance = spread.correlations * np.outer(spread.deviations, spread.deviations)
        half = fitting.NINE_OF_TEN * np.sqrt(np.einsum("ij,jk,ik->i", shares, covariance, shares))
        half = np.hypot(half, spread.scatter)
        times = other * np.exp(true_values() + random.normal(0, [0.01, 0.01, 0.2], other.shape))
        held.append(np.abs(np.log(predicted / times.sum(axis=1))) < half)
        widths.append(half)
    assert 0.86 < np.mean(held) < 0.98
    assert np.quantile(widths, 0.9) > 4 * np.quantile(widths, 0.1)


def test_what_was_known_of_another_host_gives_way_to_times() -> None:
    rows = parts(10)
    measured = fitting.times(rows, KNOWN + np.array([0, 1.0, 0]))
    found = fitting.fit(rows, measured, KNOWN, np.full(3, 0.05))
    assert found.values == pytest.approx(KNOWN + np.array([0, 1.0, 0]), abs=0.03)


def test_misfit_counts_times_and_what_was_known() -> None:
    rows = parts(4)
    measured = fitting.times(rows, KNOWN)
    assert fitting.misfit(rows, measured, KNOWN, DOUBTS, KNOWN, 0.1) == pytest.approx(0)
    moved = KNOWN + np.array([0.5, 0, 0])
    assert fitting.misfit(rows, measured, KNOWN, DOUBTS, moved, 0.1) > 0.25


def test_errors_say_nothing_of_a_parameter_that_has_next_to_no_share_of_the_times() -> None:
    """Its variance between networks was chosen to explain one error: a range of a thousandfold."""
    for seed in range(10):
        rows = np.hstack([parts(8, seed), np.array([[300.0, 1, 1, 9, 1, 1, 40, 1]]).T])
        known, doubts = np.append(KNOWN, np.log(1e-8)), np.append(DOUBTS, 1.0)
        true = np.append(true_values(), np.log(2e-8))
        noise = np.random.default_rng(seed).normal(0, 0.08, 8)
        measured = fitting.times(rows, true) * np.exp(noise)
        found = fitting.fit(rows, measured, known, doubts)
        errors = fitting.left_out(rows, measured, known, doubts)
        around = fitting.spread(rows, found, errors, doubts)
        assert (around.deviations < 1.5 * doubts).all(), seed
        squares = ((rows * np.exp(found.values)) / fitting.times(rows, found.values)[:, None]) ** 2
        reach = fitting.NINE_OF_TEN**2 * squares @ around.deviations**2 + around.scatter**2
        assert (np.abs(np.log1p(errors)) <= 1.05 * np.sqrt(reach)).all(), seed
