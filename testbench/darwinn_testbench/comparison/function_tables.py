"""Are the functions right that a program loads into its tiles?

The oracle takes them from the program (``coefficient_tables``), and the outputs show a wrong value
only to inputs that reach it. So each table is compared with the function itself, over all arguments
that its clip lets through. A table that is within the limits, and is none that public programs
or programs of this compiler hold, may be another approximation or a damaged one: it is right, and
keeps its program from being proved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_reference.tflite.call import IDEAL_FUNCTIONS, RealFunction
from darwinn_reference.tflite.coefficient_tables import (
    CoefficientTable,
    coefficient_tables,
)
from numpy.typing import NDArray

from darwinn_testbench.compiler.stages.tables import table_of

_PER_PIECE = 65
"""Arguments at which each piece of a table is looked at, its ends among them."""

SLOPES = "lines through 0"
PARABOLA = "square"
"""Tables that follow one of these two are compared with the network's own function (LEAKY_RELU,
SQUARED_DIFFERENCE): the oracle takes none from them."""

_BEYOND = np.array([-2.0, 2.0])
"""An argument that no clip holds is looked at to so many times the greatest bound."""


@dataclass(frozen=True)
class _Function:
    """A function, how far from it a table may be, as a share of its amplitude, and the digests of
    the tables of it that public programs hold (:func:`_digests`)."""

    function: RealFunction
    limit: float
    public: tuple[str, ...]


_FUNCTIONS: Mapping[str, _Function] = {
    "exponential": _Function(
        np.exp,
        8e-6,
        ("e187e9f5 4b25da9b b93f5e80 e823de16 fa36caad 3cf4adf8 549dccd4 74b2eef5 8f6a064e",),
    ),
    "sigmoid": _Function(
        IDEAL_FUNCTIONS["sigmoid"],
        6e-5,
        (
            "66a0f733 5004dde1 60126e41 31bca37a b83478cb 801e4403 7c0b7759 4dfa4d28 dcc0a680",
            "a03eb524 f87732dc ca215570 c554fb5a 2c17cba2 ffde181d 047cc53e 5041c9d7 dcc0a680",
        ),
    ),
    "tanh": _Function(
        IDEAL_FUNCTIONS["tanh"],
        4e-6,
        (
            "8ac3cd58 27ce5f82 b90b3711 93e4cd02 2d3e403e 090dfe06 ad5e5f9f 408e1dfe e68334e0",
            "fb7af421 857d18d9 55701b93 916bea25 14986a17 dfa276a4 c3a99a3a 3e288246 e68334e0",
        ),
    ),
    "inverse root": _Function(
        IDEAL_FUNCTIONS["rsqrt"],
        4e-6,
        (
            "02fa063d 35593cc9 e521d1c6 73e3f93d c2fa9df1 31498498 a00394d5 a00394d5 f63d26d9",
            "165d1715 c078c25e 1bbc8d2e c90d7359 a372cb2b f2cc19e9 3496b1ec 3496b1ec f63d26d9",
            "8da91060 ea517f4a 2ac53ec1 869e44c7 bf6414d9 7cd7a51d b3cefb12 b3cefb12 f63d26d9",
        ),
    ),
}
"""Those of public programs, whose tables are 3.6e-6, 3.0e-5, 2.1e-6 and 7.0e-7 off at most. All 375
tables of 84 public files are one of these eight."""


@dataclass(frozen=True, kw_only=True)
class FunctionTable:
    """A table that the instruction at ``pc`` of a chunk loads.

    ``function`` is what it follows in more than half of its pieces, empty if that is none of those
    known. ``error`` is its greatest distance from it, as a share of the amplitude, at ``argument``.
    ``problem`` says what is wrong with it, empty if nothing is. ``public``: public programs hold
    the same coefficients and bounds, or programs of this compiler do; or it is ``SLOPES`` or
    ``PARABOLA``.
    """

    chunk: int
    pc: int
    function: str
    error: float = 0.0
    argument: float = 0.0
    problem: str = ""
    public: bool = False

    def __str__(self) -> str:
        if self.problem or not self.function:
            found = self.problem or "follows no known function, so it is taken as it is"
        else:
            found = f"follows the {self.function}, but no public program holds it"
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
            use = (table.low, table.high, table.symmetric, table.odd, table.range_reduction)
            key = _content(table) + repr(use).encode()
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
        return tuple(
            str(each)
            for each in self.tables
            if each.problem or not each.function or not each.public
        )

    @property
    def all_public(self) -> bool:
        """Public programs, or those of this compiler, hold all of them."""
        return all(each.public for each in self.tables)

    def __str__(self) -> str:
        known = [each for each in self.tables if each.function]
        names = ", ".join(sorted({each.function for each in known}))
        right = sum(not each.problem for each in known)
        which = f" ({names})" if names else ""
        return f"{right} of {len(self.tables)} are right{which}"


def _content(table: CoefficientTable) -> bytes:
    return table.coefficients.tobytes() + table.lower_bounds.tobytes()


def _digests(coefficients: NDArray[np.float32], bounds: NDArray[np.float32]) -> list[str]:
    """Of the coefficients of each segment, and of the bounds."""
    parts = (*coefficients, bounds)
    return [hashlib.sha256(part.tobytes()).hexdigest()[:8] for part in parts]


def _known_digests(function: str, table: CoefficientTable) -> Iterator[tuple[str, list[str]]]:
    """Whose the known tables of a function are, and their digests.

    Those of this compiler are one table times factors: of results of other scales.
    """
    for digests in _FUNCTIONS[function].public:
        yield "public programs", digests.split()
    own = table_of(function)
    for factor in _factors(own.coefficients, table.coefficients):
        coefficients = (factor * own.coefficients.astype(np.float64)).astype(np.float32)
        yield "this compiler", _digests(coefficients, own.bounds)


def _factors(own: NDArray[np.float32], found: NDArray[np.float32]) -> Iterator[float]:
    """Factors with which all segments of a table, or all but one, are those of another one."""
    yield 1.0
    known, wanted = own.astype(np.float64), found.astype(np.float64)
    half = np.abs(np.spacing(found)).astype(np.float64) / 2
    with np.errstate(all="ignore"):
        ends = np.sort(np.stack([wanted - half, wanted + half]) / known, axis=0)
    # A coefficient of 0 says nothing about the factor.
    low = np.where(own == 0, -np.inf, ends[0]).max(axis=1)
    high = np.where(own == 0, np.inf, ends[1]).min(axis=1)
    every = np.arange(len(own))
    for chosen in (every >= 0, *(every != k for k in every)):
        least, most = float(low[chosen].max()), float(high[chosen].min())
        if 0 < least <= most < np.inf:
            yield (least + most) / 2


def _damage(table: CoefficientTable, function: str) -> str | None:
    """The part in which a table is not a known one, whose other parts it has for the most part, and
    whose that is; empty if it is known, None if it is another table."""
    own = _digests(table.coefficients, table.lower_bounds)
    for holder, digests in _known_digests(function, table):
        other = [mine != its for mine, its in zip(own, digests, strict=True)]
        if 2 * sum(other) < len(other):
            names = [*(f"segment {k}" for k in range(len(table.coefficients))), "its bounds"]
            found = (name for name, differs in zip(names, other, strict=True) if differs)
            return next((f"of {holder}, except {name}" for name in found), "")
    return None


def _judged(table: CoefficientTable) -> FunctionTable:
    """What a table follows, with one amplitude, in more than half of its pieces, and how far off it
    is in the others."""
    found = FunctionTable(chunk=table.chunk, pc=table.pc, function="")
    if not (table.lower_bounds[:-1] <= table.lower_bounds[1:]).all():
        return replace(found, problem="its bounds are not in order")
    if not table.range_reduction and _is_slopes(table):
        return replace(found, function=SLOPES, public=True)
    if table.square:
        return replace(found, function=PARABOLA, public=True)
    if table.range_reduction:
        # Any argument is reduced, so all of the table counts, wherever the clip begins.
        table = replace(table, low=np.float32(-np.inf), high=np.float32(np.inf))
    pieces = _pieces(table)
    arguments = pieces.astype(np.float64)
    with np.errstate(all="ignore"):
        best = _best_fit(arguments, table(pieces).astype(np.float64))
    if 2 * best.good <= len(pieces):
        return found
    worst = int(best.errors.argmax())
    error, argument = float(best.errors.flat[worst]), float(arguments.flat[worst])
    known = _FUNCTIONS[best.function]
    damage = _damage(table, best.function)
    problem = ""
    if error > known.limit:
        problem = (
            f"differs from the {best.function} by {error:.2g} of its amplitude at {argument:.5g}; "
            f"{known.limit:.2g} is allowed"
        )
    elif damage:
        problem = f"is the {best.function} {damage}"
    return replace(
        found,
        function=best.function,
        error=error,
        argument=argument,
        problem=problem,
        public=damage == "",
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


def _is_slopes(table: CoefficientTable) -> bool:
    """Lines through 0."""
    constants = table.coefficients
    return not (constants[:, 0].any() or constants[:, 2:].any()) and bool(constants[:, 1].any())


class _Fit(NamedTuple):
    """How a function fits: in so many pieces, how well in the middle one, with these errors."""

    good: int
    closeness: float
    function: str
    errors: NDArray[np.float64]


_NONE = _Fit(0, -np.inf, "", np.zeros(0))


_NO_BOUND = 2.0**64
"""No argument is as large: a piece that begins there is never used."""


def _pieces(table: CoefficientTable) -> NDArray[np.float32]:
    """Arguments of each piece of a table: shape (pieces, _PER_PIECE)."""
    bounds: NDArray[np.float32] = table.lower_bounds[np.abs(table.lower_bounds) < _NO_BOUND]
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
