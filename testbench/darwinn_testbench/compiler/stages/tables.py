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


def exponential(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(x)."""
    result: NDArray[np.float64] = np.exp(x)
    return result


def inverse_root(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / sqrt(x)."""
    result: NDArray[np.float64] = 1 / np.sqrt(x)
    return result


@lru_cache(maxsize=64)
def table_of(
    function: Function, ends: tuple[float, float], amplitude: float, *, reduced: bool = False
) -> FunctionTable:
    """The table of ``amplitude * function`` from the first to the second of ``ends``."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5 if low else high / 2
        if len(_pieces(function, ends, middle)) <= chip.TABLE_SEGMENTS:
            high = middle
        else:
            low = middle
    found = _pieces(function, ends, high)
    bounds = np.full(chip.TABLE_SEGMENTS - 1, np.inf, np.float32)
    bounds[: len(found) - 1] = found[:-1]
    coefficients = np.zeros((chip.TABLE_SEGMENTS, _DEGREE + 1), np.float32)
    first = ends[0]
    for piece, end in enumerate(found):
        coefficients[piece] = amplitude * _fitted(function, first, end)[0]
        first = end
    coefficients[len(found) :] = coefficients[len(found) - 1]
    return FunctionTable(coefficients, bounds, reduced)


def _pieces(function: Function, ends: tuple[float, float], error: float) -> list[float]:
    """Ends of pieces whose errors are at most ``error``; nine of them if eight do not suffice."""
    found: list[float] = []
    first, last = ends
    while first < last and len(found) <= chip.TABLE_SEGMENTS:
        low, high = first, last
        if _fitted(function, first, last)[1] <= error:
            low = last
        for _ in range(_HALVINGS if low < last else 0):
            middle = (low + high) / 2
            if _fitted(function, first, middle)[1] <= error:
                low = middle
            else:
                high = middle
        first = low
        found.append(first)
    return found


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
