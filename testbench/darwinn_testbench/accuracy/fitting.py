"""Fit a host's parameters to measured times: the numbers alone.

Close to given parameters the time of a model is a sum: its cycles at the clock, bytes that must
wait for the link in either direction, the host's copies of outputs, and the fixed cost. All
parameters are positive and known to a factor, so their logarithms are fitted, and so are those of
the times: an error of a tenth weighs the same for every model. What was known before holds where
the times say nothing. Few far points do not draw the fit: from ``_FAR`` on they count less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NINE_OF_TEN = 1.645
"""Standard deviations on either side of a value within which nine of ten lie."""

_STUDENT = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.90, 1.86, 1.83, 1.81, 1.80, 1.78, 1.77, 1.76)
"""The same where the deviation is estimated from 1, 2, ... degrees of freedom."""

FEWEST_ERROR = 0.01
"""Share of a time that nobody measures better than."""

UNKNOWN_ERROR = 0.05
"""Standard deviation of an error where there are too few times to tell it."""

_FAR = 2.5
_STEPS = 60

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """Fitted logarithms of parameters.

    ``deviations`` are their standard deviations, ``correlations`` how they go together, ``scatter``
    is the standard deviation of the logarithm of a time, ``freedom`` the degrees of freedom that
    were left to tell it.
    """

    values: Vector
    deviations: Vector
    correlations: Vector
    scatter: float
    freedom: float

    @property
    def scatter_span(self) -> float:
        """How far a time is from its prediction nine times out of ten, as a share."""
        return self.scatter * student(self.freedom)


def student(freedom: float) -> float:
    """Deviations on either side within which nine of ten lie, of an estimated deviation."""
    if freedom < 1:
        return NINE_OF_TEN
    return _STUDENT[min(int(freedom), len(_STUDENT)) - 1]


def fit(parts: Vector, measured: Vector, known: Vector, doubts: Vector) -> Fit:
    """Fit parameters to times.

    Args:
        parts: shape ``(models, parameters)``: what each parameter is multiplied with in a model's
            time. A rate stands for its reciprocal.
        measured: seconds of each model.
        known: logarithms of the parameters as they were known before.
        doubts: their standard deviations; 0 holds a parameter where it is.
    """
    free = doubts > 0
    scatter = UNKNOWN_ERROR
    values = known.copy()
    freedom = 0.0
    for _ in range(4):
        values = _solve(parts, measured, known, doubts, values, scatter)
        errors, slopes = _errors(parts, measured, values)
        weights = _weights(errors / scatter)
        information = slopes.T @ (slopes * weights[:, None]) / scatter**2
        told = information[np.ix_(free, free)]
        before = np.diag(1 / doubts[free] ** 2)
        freedom = len(measured) - float(np.trace(np.linalg.solve(told + before, told)))
        if freedom < 1:
            break
        scatter = max(FEWEST_ERROR, math.sqrt(float(weights @ errors**2) / freedom))
    covariance = np.linalg.inv(told + before)
    deviations, correlations = np.zeros_like(doubts), np.eye(len(doubts))
    deviations[free] = np.sqrt(np.diag(covariance))
    correlations[np.ix_(free, free)] = covariance / np.outer(deviations[free], deviations[free])
    return Fit(values, deviations, correlations, scatter, freedom)


def misfit(
    parts: Vector, measured: Vector, known: Vector, doubts: Vector, values: Vector, scatter: float
) -> float:
    """How badly parameters fit, as a sum of squares: of times, and of what was known before."""
    free = doubts > 0
    own = float((((values - known)[free] / doubts[free]) ** 2).sum())
    return own + _cost(parts, measured, values, scatter)


def times(parts: Vector, values: Vector) -> Vector:
    """Seconds of each model."""
    return parts @ np.exp(values)


def left_out(parts: Vector, measured: Vector, known: Vector, doubts: Vector) -> Vector:
    """The error of each model's time, as a share of it, by a fit to the others alone."""
    errors = np.empty(len(measured))
    for model in range(len(measured)):
        others = np.arange(len(measured)) != model
        values = fit(parts[others], measured[others], known, doubts).values
        errors[model] = times(parts[model : model + 1], values)[0] / measured[model] - 1
    return errors


def _errors(parts: Vector, measured: Vector, values: Vector) -> tuple[Vector, Vector]:
    """Logarithms of predicted by measured times, and their slopes by parameter."""
    shares = parts * np.exp(values)
    predicted = shares.sum(axis=1)
    return np.log(predicted / measured), shares / predicted[:, None]


def _weights(deviations: Vector) -> Vector:
    return 1 / np.sqrt(1 + (deviations / _FAR) ** 2)


def _cost(parts: Vector, measured: Vector, values: Vector, scatter: float) -> float:
    deviations = _errors(parts, measured, values)[0] / scatter
    return float((2 * _FAR**2 * (np.sqrt(1 + (deviations / _FAR) ** 2) - 1)).sum())


def _solve(
    parts: Vector,
    measured: Vector,
    known: Vector,
    doubts: Vector,
    start: Vector,
    scatter: float,
) -> Vector:
    """The logarithms of least misfit: steps of Gauss and Newton, damped where they lead astray."""
    free = np.flatnonzero(doubts > 0)
    before = 1 / doubts[free] ** 2
    values, damping = start.copy(), 1e-2
    now = misfit(parts, measured, known, doubts, values, scatter)
    for _ in range(_STEPS):
        errors, slopes = _errors(parts, measured, values)
        weights = _weights(errors / scatter)[:, None] / scatter**2
        own = slopes[:, free]
        matrix = own.T @ (own * weights) + np.diag(before)
        slope = own.T @ (errors * weights[:, 0]) + before * (values - known)[free]
        step = np.zeros_like(values)
        step[free] = np.clip(
            np.linalg.solve(matrix + damping * np.diag(np.diag(matrix)), -slope), -1, 1
        )
        then = misfit(parts, measured, known, doubts, values + step, scatter)
        if then > now:
            damping *= 4
            if damping > 1e6:
                break
            continue
        values, now, damping = values + step, then, max(damping / 4, 1e-9)
        if np.abs(step).max(initial=0) < 1e-6:
            break
    return values


def log(numbers: Sequence[float]) -> Vector:
    """Their logarithms."""
    return np.log(np.array(numbers, np.float64))
