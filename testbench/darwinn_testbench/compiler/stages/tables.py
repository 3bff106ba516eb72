"""Tables of functions: pieces that are as long as an error allows.

The tensor unit evaluates a polynomial of degree 4 in each of eight pieces. The error is the least
with which eight pieces reach over all arguments. Finding them takes seconds, and depends on how a
machine rounds, so ``table_values`` holds what was found; this module as a command writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from darwinn_reference.tflite.softmax import EXPONENTIAL_ONE, ROOT_ONE
from darwinn_sim import chip
from numpy.typing import NDArray

from darwinn_testbench.compiler.stages.operations import FunctionTable
from darwinn_testbench.compiler.stages.table_values import VALUES

_DEGREE = chip.TABLE_COEFFICIENTS - 1
_NODES = 64
_HALVINGS = 40
_SHORTEST = 1e-6

_Curve = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class Function:
    """A function that the compiler has a table of.

    ``first`` and ``last`` are the arguments between which it holds; beyond them its bytes do not
    change. ``amplitude`` is that of the usual result: it is 1 / the scale of bytes, or the value of
    1 in 16 bits. ``reduced`` and ``odd`` are those of ``FunctionTable``.
    """

    curve: _Curve
    first: float
    last: float
    amplitude: float
    reduced: bool = False
    odd: bool = False


FUNCTIONS: Mapping[str, Function] = {
    "exponential": Function(np.exp, -12.0, 0.0, EXPONENTIAL_ONE),
    "inverse root": Function(lambda x: 1 / np.sqrt(x), 1.0, 4.0, ROOT_ONE, reduced=True),
    "sigmoid": Function(lambda x: 1 / (1 + np.exp(-x)), -10.5, 10.5, 256),
    "tanh": Function(np.tanh, 0.0, 5.6, 128, odd=True),
}
"""The functions, by the names that ``verify`` has for them."""


def table_of(name: str, amplitude: float | None = None) -> FunctionTable:
    """The table of a function times ``amplitude``, by default the usual one."""
    function = FUNCTIONS[name]
    words = np.array([int(word, 16) for word in VALUES[name].split()], np.uint32)
    found = words.view(np.float32)
    count = chip.TABLE_SEGMENTS - 1
    factor = (amplitude or function.amplitude) / function.amplitude
    coefficients = (factor * found[count:].astype(np.float64)).astype(np.float32)
    shape = (chip.TABLE_SEGMENTS, chip.TABLE_COEFFICIENTS)
    bounds = found[:count]
    return FunctionTable(coefficients.reshape(shape), bounds, function.reduced, function.odd)


def two_slopes(below: np.float32, above: np.float32) -> FunctionTable:
    """A line through 0 below it, and another one above it."""
    coefficients = np.zeros((chip.TABLE_SEGMENTS, chip.TABLE_COEFFICIENTS), np.float32)
    coefficients[:, 1] = above
    coefficients[0, 1] = below
    bounds = np.full(chip.TABLE_SEGMENTS - 1, np.inf, np.float32)
    bounds[0] = 0
    return FunctionTable(coefficients, bounds)


def parabola(factor: np.float32) -> FunctionTable:
    """The square times a factor: one piece, as a public program has it."""
    coefficients = np.zeros((chip.TABLE_SEGMENTS, chip.TABLE_COEFFICIENTS), np.float32)
    coefficients[:, 2] = factor
    return FunctionTable(coefficients, np.full(chip.TABLE_SEGMENTS - 1, np.inf, np.float32))


# --- how the values are found -------------------------------------------------------------------


def _found(function: Function) -> NDArray[np.float32]:
    """Bounds and coefficients of a table."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5 if low else high / 2
        if len(_pieces(function, middle)) <= chip.TABLE_SEGMENTS:
            high = middle
        else:
            low = middle
    ends = _pieces(function, high)
    bounds = np.full(chip.TABLE_SEGMENTS - 1, np.inf, np.float32)
    bounds[: len(ends) - 1] = ends[:-1]
    coefficients = np.zeros((chip.TABLE_SEGMENTS, _DEGREE + 1), np.float32)
    first = function.first
    for piece, end in enumerate(ends):
        coefficients[piece] = function.amplitude * _fitted(function.curve, first, end)[0]
        first = end
    coefficients[len(ends) :] = coefficients[len(ends) - 1]
    return np.concatenate([bounds, coefficients.reshape(-1)])


def _pieces(function: Function, error: float) -> list[float]:
    """Ends of pieces whose errors are at most ``error``; nine of them if eight do not suffice."""
    ends: list[float] = []
    first, last = function.first, function.last
    while first < last and len(ends) <= chip.TABLE_SEGMENTS:
        low, high = first, last
        if _fitted(function.curve, first, last)[1] <= error:
            low = last
        for _ in range(_HALVINGS if low < last else 0):
            middle = (low + high) / 2
            if _fitted(function.curve, first, middle)[1] <= error:
                low = middle
            else:
                high = middle
        first = low
        ends.append(first)
    return ends


def _fitted(curve: _Curve, first: float, end: float) -> tuple[NDArray[np.float64], float]:
    """Coefficients of a polynomial from ``first`` to ``end``, and how far it is off at most."""
    if end - first < _SHORTEST:
        return np.zeros(_DEGREE + 1), 0.0
    angles = (2 * np.arange(_DEGREE + 1) + 1) * np.pi / (2 * (_DEGREE + 1))
    nodes = (first + end) / 2 + (end - first) / 2 * np.cos(angles)
    fitted = np.polynomial.Polynomial.fit(nodes, curve(nodes), _DEGREE, domain=[first, end])
    found = fitted.convert(domain=[-1, 1], window=[-1, 1]).coef
    coefficients = np.zeros(_DEGREE + 1)
    coefficients[: len(found)] = found
    x = np.linspace(first, end, _NODES)
    off = np.abs(np.polynomial.polynomial.polyval(x, coefficients) - curve(x)).max()
    return coefficients, float(off)


_WORDS_OF_A_LINE = 8


def _text() -> str:
    """The source of ``table_values``."""
    lines = [
        '"""Values of the tables of functions, which',
        '`python -m darwinn_testbench.compiler.stages.tables` writes."""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Mapping",
        "",
        "VALUES: Mapping[str, str] = {",
    ]
    for name, function in FUNCTIONS.items():
        words = [f"{word:08x}" for word in _found(function).view(np.uint32).tolist()]
        lines.append(f'    "{name}": (')
        for first in range(0, len(words), _WORDS_OF_A_LINE):
            part = " ".join(words[first : first + _WORDS_OF_A_LINE])
            end = " " if first + _WORDS_OF_A_LINE < len(words) else ""
            lines.append(f'        "{part}{end}"')
        lines.append("    ),")
    lines += ["}", '"""Words of float32: seven bounds, then five coefficients of each piece."""']
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(_text(), end="")
