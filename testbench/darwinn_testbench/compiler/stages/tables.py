"""Tables of functions: pieces that are as long as an error allows.

The tensor unit evaluates a polynomial of degree 4 in each of eight pieces. The error is the least
with which eight pieces reach over all arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from darwinn_sim import chip
from numpy.typing import NDArray

from darwinn_testbench.compiler.stages.operations import FunctionTable

_DEGREE = chip.TABLE_COEFFICIENTS - 1
_NODES = 64
_HALVINGS = 40
_SHORTEST = 1e-6

Function = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (1 + exp(-x))."""
    result: NDArray[np.float64] = 1 / (1 + np.exp(-x))
    return result


def tanh(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The hyperbolic tangent."""
    result: NDArray[np.float64] = np.tanh(x)
    return result


@lru_cache(maxsize=64)
def table_of(function: Function, reach: float, amplitude: float) -> FunctionTable:
    """The table of ``amplitude * function`` from ``-reach`` to ``reach``."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5 if low else high / 2
        if len(_pieces(function, reach, middle)) <= chip.TABLE_SEGMENTS:
            high = middle
        else:
            low = middle
    ends = _pieces(function, reach, high)
    bounds = np.full(chip.TABLE_SEGMENTS - 1, np.inf, np.float32)
    bounds[: len(ends) - 1] = ends[:-1]
    coefficients = np.zeros((chip.TABLE_SEGMENTS, _DEGREE + 1), np.float32)
    first = -reach
    for piece, end in enumerate(ends):
        coefficients[piece] = amplitude * _fitted(function, first, end)[0]
        first = end
    coefficients[len(ends) :] = coefficients[len(ends) - 1]
    return FunctionTable(coefficients, bounds)


def _pieces(function: Function, reach: float, error: float) -> list[float]:
    """Ends of pieces whose errors are at most ``error``; nine of them if eight do not suffice."""
    ends: list[float] = []
    first = -reach
    while first < reach and len(ends) <= chip.TABLE_SEGMENTS:
        low, high = first, reach
        if _fitted(function, first, reach)[1] <= error:
            low = reach
        for _ in range(_HALVINGS if low < reach else 0):
            middle = (low + high) / 2
            if _fitted(function, first, middle)[1] <= error:
                low = middle
            else:
                high = middle
        first = low
        ends.append(first)
    return ends


def _fitted(function: Function, first: float, end: float) -> tuple[NDArray[np.float64], float]:
    """Coefficients of a polynomial from ``first`` to ``end``, and how far it is off at most."""
    if end - first < _SHORTEST:
        return np.zeros(_DEGREE + 1), 0.0
    angles = (2 * np.arange(_DEGREE + 1) + 1) * np.pi / (2 * (_DEGREE + 1))
    nodes = (first + end) / 2 + (end - first) / 2 * np.cos(angles)
    fitted = np.polynomial.Polynomial.fit(nodes, function(nodes), _DEGREE, domain=[first, end])
    found = fitted.convert(domain=[-1, 1], window=[-1, 1]).coef
    coefficients = np.zeros(_DEGREE + 1)
    coefficients[: len(found)] = found
    x = np.linspace(first, end, _NODES)
    off = np.abs(np.polynomial.polynomial.polyval(x, coefficients) - function(x)).max()
    return coefficients, float(off)
