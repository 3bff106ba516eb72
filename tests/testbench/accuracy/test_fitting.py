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
    assert found.scatter_span == pytest.approx(fitting.UNKNOWN_ERROR * fitting.NINE_OF_TEN)


def test_fewer_degrees_of_freedom_give_a_wider_interval() -> None:
    spans = [fitting.student(freedom) for freedom in (1, 2, 5, 14, 1000)]
    assert spans == sorted(spans, reverse=True)
    assert math.isclose(spans[0], 6.31)


def test_misfit_counts_times_and_what_was_known() -> None:
    rows = parts(4)
    measured = fitting.times(rows, KNOWN)
    assert fitting.misfit(rows, measured, KNOWN, DOUBTS, KNOWN, 0.1) == pytest.approx(0)
    moved = KNOWN + np.array([0.5, 0, 0])
    assert fitting.misfit(rows, measured, KNOWN, DOUBTS, moved, 0.1) > 0.25
