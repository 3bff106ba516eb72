"""Are the functions right that a program loads into its tiles?

The oracle takes them from the program (``coefficient_tables``), and the outputs show a wrong value
only to inputs that reach it. So each table is compared with the function itself, over all arguments
that its clip lets through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from darwinn_formats.darwinn import Executable
from numpy.typing import NDArray

from darwinn_testbench.reference.tflite.call import IDEAL_FUNCTIONS, RealFunction
from darwinn_testbench.reference.tflite.coefficient_tables import (
    CoefficientTable,
    coefficient_tables,
)

_PER_PIECE = 65
"""Arguments at which each piece of a table is looked at, its ends among them."""

_BEYOND = np.array([-2.0, 2.0])
"""An argument that no clip holds is looked at to so many times the greatest bound."""


@dataclass(frozen=True)
class _Function:
    """A function, and how far from it a table may be, as a share of its amplitude."""

    function: RealFunction
    limit: float


_FUNCTIONS: Mapping[str, _Function] = {
    "exponential": _Function(np.exp, 8e-6),
    "sigmoid": _Function(IDEAL_FUNCTIONS["sigmoid"], 6e-5),
    "tanh": _Function(IDEAL_FUNCTIONS["tanh"], 4e-6),
    "inverse root": _Function(IDEAL_FUNCTIONS["rsqrt"], 4e-6),
}
"""Those of public programs, whose tables are 3.6e-6, 3.0e-5, 2.0e-6 and 6.3e-7 off at most."""


@dataclass(frozen=True, kw_only=True)
class FunctionTable:
    """A table that the instruction at ``pc`` of a chunk loads.

    ``function`` is what it follows in more than half of its pieces, empty if that is none of those
    known. ``error`` is its greatest distance from it, as a share of the amplitude, at ``argument``.
    ``problem`` says what is wrong with it, empty if nothing is.
    """

    chunk: int
    pc: int
    function: str
    error: float = 0.0
    argument: float = 0.0
    problem: str = ""

    def __str__(self) -> str:
        found = self.problem or "follows no known function, and is taken as it is"
        return f"table at chunk {self.chunk}, pc {self.pc}: {found}"


@dataclass(frozen=True)
class FunctionTables:
    """The tables of a program."""

    tables: tuple[FunctionTable, ...] = ()

    @classmethod
    def of(cls, executable: Executable) -> FunctionTables:
        """All that instructions of an executable use.

        Raises:
            FormatError: an instruction stream that cannot be decoded.
        """
        known: dict[bytes, FunctionTable] = {}
        found = []
        for table in coefficient_tables(executable):
            content = table.coefficients.tobytes() + table.lower_bounds.tobytes()
            use = (table.low, table.high, table.symmetric, table.odd, table.range_reduction)
            key = content + repr(use).encode()
            if key not in known:
                known[key] = _judged(table)
            found.append(replace(known[key], chunk=table.chunk, pc=table.pc))
        return cls(tuple(found))

    @property
    def wrong(self) -> tuple[FunctionTable, ...]:
        """Those that are not what they should be."""
        return tuple(each for each in self.tables if each.problem)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What there is to say of single tables, a line each."""
        return tuple(str(each) for each in self.tables if each.problem or not each.function)

    def __str__(self) -> str:
        known = [each for each in self.tables if each.function]
        names = ", ".join(sorted({each.function for each in known}))
        right = sum(not each.problem for each in known)
        which = f" ({names})" if names else ""
        return f"{right} of {len(self.tables)} are right{which}"


def _judged(table: CoefficientTable) -> FunctionTable:
    """What a table follows, with one amplitude, in more than half of its pieces, and how far off it
    is in the others."""
    found = FunctionTable(chunk=table.chunk, pc=table.pc, function="")
    if not (table.lower_bounds[:-1] <= table.lower_bounds[1:]).all():
        return replace(found, problem="its bounds are not in order")
    pieces = _pieces(table)
    arguments = pieces.astype(np.float64)
    with np.errstate(all="ignore"):
        best = _best_fit(arguments, table(pieces).astype(np.float64))
    if 2 * best.good <= len(pieces):
        return found
    worst = int(best.errors.argmax())
    error, argument = float(best.errors.flat[worst]), float(arguments.flat[worst])
    limit = _FUNCTIONS[best.function].limit
    problem = (
        f"is {error:.2g} of its amplitude off the {best.function} at {argument:.5g}; "
        f"{limit:.2g} is allowed"
    )
    return replace(
        found,
        function=best.function,
        error=error,
        argument=argument,
        problem="" if error <= limit else problem,
    )


def _best_fit(arguments: NDArray[np.float64], values: NDArray[np.float64]) -> _Fit:
    """The function that fits best, with the amplitude that one of the pieces has."""
    fits = [_NONE]
    for name, known in _FUNCTIONS.items():
        ideal = known.function(arguments)
        if not np.isfinite(ideal).all():
            continue
        amplitudes = (values * ideal).sum(1) / (ideal * ideal).sum(1)
        for amplitude in amplitudes[amplitudes > 0]:
            # Whatever is no number is wrong.
            errors = np.nan_to_num(np.abs(values - amplitude * ideal) / amplitude, nan=np.inf)
            worst = errors.max(1)
            good = int(np.count_nonzero(worst <= known.limit))
            fits.append(_Fit(good, -float(np.median(worst)), name, errors))
    return max(fits, key=lambda fit: (fit.good, fit.closeness))


class _Fit(NamedTuple):
    """How a function fits: in so many pieces, how well in the middle one, with these errors."""

    good: int
    closeness: float
    function: str
    errors: NDArray[np.float64]


_NONE = _Fit(0, -np.inf, "", np.zeros(0))


def _pieces(table: CoefficientTable) -> NDArray[np.float32]:
    """Arguments of each piece of a table: shape (pieces, _PER_PIECE)."""
    bounds: NDArray[np.float32] = table.lower_bounds[np.isfinite(table.lower_bounds)]
    low, high = (1.0, 4.0) if table.range_reduction else (table.low, table.high)
    # Without a clip: as far as there are bounds.
    first, last = np.clip([low, high], *_BEYOND * np.abs(bounds).max(initial=1))
    cuts = np.concatenate([[first, last], bounds, -bounds if table.symmetric else []])
    ends = np.unique(cuts[(first <= cuts) & (cuts <= last)].astype(np.float32))
    shares = np.linspace(0, 1, _PER_PIECE)
    between = ends[:-1, None] + shares * (ends[1:] - ends[:-1])[:, None].astype(np.float64)
    # The argument at a bound is the next piece's.
    last_before = np.nextafter(ends[1:, None], np.float32(-np.inf))
    found: NDArray[np.float32] = np.minimum(between.astype(np.float32), last_before)
    return found
