"""Fit a host's parameters to measured times: the numbers alone.

Close to given parameters the time of a model is a sum: its cycles at the clock, bytes that must
wait for the link in either direction, the host's copies of outputs, and the fixed cost. All
parameters are positive and known to a factor, so their logarithms are fitted, and so are those of
the times: an error of a tenth weighs the same for every model. A parameter about which the times
say nothing keeps its value from before. A far time does not draw the fit: from ``_FAR`` deviations
on it counts less. The values from before may be those of another kind of host: the farther the
times are from them, the less they count.
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
"""Estimated deviations on either side of a value within which nine of ten lie, by the degrees of
freedom of the estimate: 1, 2, ..."""

FEWEST_ERROR = 0.01
"""Smallest standard deviation of an error, as a share of a time: nobody measures better."""

UNKNOWN_ERROR = 0.05
"""Standard deviation of an error where there are too few times to tell it."""

_FAR = 1.0
_OF_NORMAL = 0.565
"""Mean weighted square of a normal error, as a share of the mean square without weights."""
_STEPS = 60
_ROUNDS = 200
_LEAST_VARIANCE = 1e-8
_WIDER = 1.02
"""Factor by which variances grow until enough errors lie within the interval."""

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """How far a network is from a host's parameters.

    ``deviations`` are the standard deviations of their logarithms, ``correlations`` how these go
    together; nine times out of ten a time is within the share ``scatter`` if they are right.
    """

    deviations: Vector
    correlations: Vector
    scatter: float


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
    def spread(self) -> Spread:
        """The spread of the next network where there are too few to leave one out."""
        return Spread(self.deviations, self.correlations, self.scatter * student(self.freedom))


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
        before = np.diag(_precisions(values, known, doubts, free))
        freedom = len(measured) - float(np.trace(np.linalg.solve(told + before, told)))
        if freedom < 1:
            break
        squares = float(weights @ errors**2) / _OF_NORMAL
        scatter = max(FEWEST_ERROR, math.sqrt(squares / freedom))
    covariance = np.linalg.inv(told + before)
    deviations, correlations = np.zeros_like(doubts), np.eye(len(doubts))
    deviations[free] = np.sqrt(np.diag(covariance))
    correlations[np.ix_(free, free)] = covariance / np.outer(deviations[free], deviations[free])
    return Fit(values, deviations, correlations, scatter, freedom)


def misfit(
    parts: Vector, measured: Vector, known: Vector, doubts: Vector, values: Vector, scatter: float
) -> float:
    """How badly parameters fit, as a sum of squares: of times, and of what was known before.

    What is far counts less: a time with its distance, what was known with the logarithm of it.
    """
    free = doubts > 0
    own = float(np.log1p(((values - known)[free] / doubts[free]) ** 2).sum())
    return own + _cost(_errors(parts, measured, values)[0] / scatter)


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


def spread(parts: Vector, found: Fit, errors: Vector, between_hosts: Vector) -> Spread:
    """What ``errors`` of times by fits to the others say of the next network.

    A rate that is right on average is off for one network, and by more than the fixed cost. So
    each parameter has a variance from network to network beside that of its estimate, and so has
    the whole time. They are those of greatest likelihood, times what makes nine of ten errors lie
    within the interval, and one more, since its shape was fitted to the same errors. No parameter
    differs more between networks than it does ``between_hosts``: an error says nothing of one that
    has a thousandth of the time.
    """
    shares = parts * np.exp(found.values)
    shares /= shares.sum(axis=1)[:, None]
    covariance = found.correlations * np.outer(found.deviations, found.deviations)
    estimated = np.einsum("ij,jk,ik->i", shares, covariance, shares)
    squares = np.hstack([np.ones((len(parts), 1)), shares]) ** 2
    off = np.log1p(errors) ** 2
    most = np.array([np.inf, *np.maximum(between_hosts**2, _LEAST_VARIANCE)])
    variances = np.minimum(np.full(len(most), float(off.mean()) / len(most)), most)
    for _ in range(_ROUNDS):
        total = estimated + squares @ variances
        wanted = squares.T @ (off / total**2) / np.maximum(squares.T @ (1 / total), _LEAST_VARIANCE)
        variances = np.clip(variances * np.sqrt(wanted), _LEAST_VARIANCE, most)
    held = min(math.ceil(0.9 * (len(off) + 1)) + 1, len(off))
    factor = (student(len(off) - 1) / NINE_OF_TEN) ** 2
    while True:
        scaled = np.minimum(variances * factor, most)
        missing = np.sort(off / NINE_OF_TEN**2 - estimated - squares @ scaled)[held - 1]
        if missing <= 0:
            break
        factor *= _WIDER
    variances = scaled
    covariance += np.diag(variances[1:])
    deviations = np.sqrt(np.diag(covariance))
    correlations = covariance / np.outer(deviations, deviations)
    scatter = max(FEWEST_ERROR, math.sqrt(variances[0]))
    return Spread(deviations, correlations, NINE_OF_TEN * scatter)


def left_out_spans(
    parts: Vector, measured: Vector, known: Vector, doubts: Vector, between_hosts: Vector
) -> Vector:
    """Half the width of each model's interval, as a share, by a fit to the others alone."""
    spans = np.empty(len(measured))
    for model in range(len(measured)):
        others = np.arange(len(measured)) != model
        own = parts[others], measured[others]
        found = fit(*own, known, doubts)
        around = found.spread
        if others.sum() > 1:
            around = spread(parts[others], found, left_out(*own, known, doubts), between_hosts)
        shares = parts[model] * np.exp(found.values)
        reach = NINE_OF_TEN * around.deviations * shares / shares.sum()
        spans[model] = math.sqrt(reach @ around.correlations @ reach + around.scatter**2)
    return spans


def _errors(parts: Vector, measured: Vector, values: Vector) -> tuple[Vector, Vector]:
    """Logarithms of predicted by measured times, and their slopes by parameter."""
    shares = parts * np.exp(values)
    predicted = shares.sum(axis=1)
    return np.log(predicted / measured), shares / predicted[:, None]


def _weights(deviations: Vector) -> Vector:
    return 1 / np.sqrt(1 + (deviations / _FAR) ** 2)


def _precisions(
    values: Vector, known: Vector, doubts: Vector, free: NDArray[np.bool_] | NDArray[np.intp]
) -> Vector:
    """Reciprocal variances of what was known of the ``free`` parameters, less where it is far."""
    precisions: Vector = 1 / (doubts[free] ** 2 + (values - known)[free] ** 2)
    return precisions


def _cost(deviations: Vector) -> float:
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
    values, damping = start.copy(), 1e-2
    now = misfit(parts, measured, known, doubts, values, scatter)
    for _ in range(_STEPS):
        errors, slopes = _errors(parts, measured, values)
        weights = _weights(errors / scatter)[:, None] / scatter**2
        own = slopes[:, free]
        before = _precisions(values, known, doubts, free)
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
