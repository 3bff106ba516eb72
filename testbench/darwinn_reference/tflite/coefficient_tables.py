"""The chip's functions: piecewise polynomials that a program loads into its tiles.

They are approximations, and an approximation is the program's own: where a network has a sigmoid
or tanh of its own (an LSTM) or a softmax, the oracle takes the functions from the instructions of
the executable, and everything else from the uncompiled model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_formats.errors import FormatError
from darwinn_sim.isa.codec import Columns, DecodedChunk, DecodeError, decode
from darwinn_sim.isa.table import BY_NAME
from numpy.typing import NDArray

from darwinn_reference.tflite.call import (
    IDEAL_FUNCTIONS,
    SAME_AMPLITUDE,
    CompilerChoices,
    RealFunction,
    ScaledFunction,
    SoftmaxFunctions,
)
from darwinn_reference.tflite.softmax import EXPONENTIAL_ONE, ROOT_ONE

_TABLE = BY_NAME["CoefficientTable"].opcode
_INTERPOLATION = BY_NAME["TensorInterpolate"].opcode
_MULTIPLIER = BY_NAME["TensorMac"].opcode
_USERS = tuple(BY_NAME[name].opcode for name in ("TensorMac", "TensorSum"))
_TABLE_FUNCTION, _RANGE_REDUCTION, _OUTPUT_16_BITS = 1, 2, 4
"""Bits of the field `function` of a tensor instruction."""

_SEGMENTS = 8
_SAMPLES = 101
_SQUARE = 2
_HIGHEST = 255
_GREATEST = np.finfo(np.float32).max
_LIKENESS = 0.01
"""A table is a function if it is nowhere further from it than this share of its amplitude."""

_ROOT = "rsqrt"
"""The one of the operators' functions that is reduced in range."""
_EXPONENTIAL, _INVERSE_ROOT = "exponential", "inverse root"
_SOFTMAX_FUNCTIONS: Mapping[str, tuple[RealFunction, int]] = {
    _EXPONENTIAL: (np.exp, EXPONENTIAL_ONE),
    _INVERSE_ROOT: (lambda x: 1 / np.sqrt(x), ROOT_ONE),
}
"""The functions of a softmax and their amplitudes."""


@dataclass(frozen=True, slots=True, eq=False)
class CoefficientTable:
    """One loaded table with the clip of the instruction that uses it.

    ``coefficients`` has shape (8, 5), the constant term first; segment k holds from
    ``lower_bounds[k - 1]`` on. ``symmetric``: evaluated at the absolute value; ``odd``: the sign of
    the argument is restored. ``range_reduction``: with x = m * 4^k and 1 <= m < 4, the value at x
    is that at m times 2^-k. It is loaded at ``pc`` of ``chunk``.
    """

    coefficients: NDArray[np.float32]
    lower_bounds: NDArray[np.float32]
    low: np.float32
    high: np.float32
    symmetric: bool = False
    odd: bool = False
    range_reduction: bool = False
    chunk: int = 0
    pc: int = 0

    def __call__(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Values at ``x``: clip, choose the segment, Horner's rule in float32."""
        clipped = np.clip(x.astype(np.float32), self.low, self.high)
        if self.range_reduction:
            power = _power_of_4(clipped)
            return np.ldexp(self._polynomial(np.ldexp(clipped, -2 * power)), -power)
        y = np.abs(clipped) if self.symmetric else clipped
        value = self._polynomial(y)
        return np.where(clipped < 0, -value, value) if self.odd else value

    @property
    def square(self) -> np.float32:
        """The factor, if the only segment of finite arguments is a multiple of the square; or 0."""
        segment = int((self.lower_bounds <= -_GREATEST).sum())
        whole = int((self.lower_bounds <= _GREATEST).sum()) == segment
        row = self.coefficients[segment]
        plain = whole and not (self.symmetric or self.odd or self.range_reduction)
        square: np.float32 = row[_SQUARE]
        return square if plain and np.count_nonzero(row) == 1 else np.float32(0)

    def _polynomial(self, y: NDArray[np.float32]) -> NDArray[np.float32]:
        # A program need not sort them: the segment is how many of them are not above.
        segment = np.searchsorted(np.sort(self.lower_bounds), y, side="right")
        rows = self.coefficients[segment]
        value: NDArray[np.float32] = rows[..., -1]
        for power in range(rows.shape[-1] - 2, -1, -1):
            value = value * y + rows[..., power]
        return value


def _power_of_4(x: NDArray[np.float32]) -> NDArray[np.int32]:
    """k of x = m * 4^k, 1 <= m < 4; 0 unless x is positive."""
    _, exponent = np.frexp(x)
    return np.where(x > 0, (exponent - 1) >> 1, 0).astype(np.int32)


def compiler_choices(executable: Executable) -> CompilerChoices:
    """What the executable's program settles: the functions that it loads, each with its amplitude.

    Raises:
        FormatError: an instruction stream that cannot be decoded.
    """
    functions: dict[str, list[ScaledFunction]] = {}
    tables = tuple(coefficient_tables(executable))
    for table in tables:
        reduced = {_ROOT: IDEAL_FUNCTIONS[_ROOT]}
        recognised = _recognise(table, reduced if table.range_reduction else IDEAL_FUNCTIONS)
        if recognised is not None:
            name, amplitude = recognised
            functions.setdefault(name, []).append(ScaledFunction(amplitude, table))
    return CompilerChoices(
        functions={name: tuple(each) for name, each in functions.items()},
        softmax=_softmax(tables),
        unclipped=_unclipped(executable),
        factors=_factors(executable),
        stages=_stages(executable),
        steps=_steps(executable),
        parabolas=_parabolas(tables),
    )


def _steps(executable: Executable) -> frozenset[int]:
    """Steps of interpolating instructions along both axes, in 1/128 pixel."""
    found: set[int] = set()
    for program in _programs(executable):
        columns = program.columns.get(_INTERPOLATION, {})
        for axis in ("x_step", "y_step"):
            found |= set(np.asarray(columns.get(axis, ())).tolist())
    return frozenset(found)


def _unclipped(executable: Executable) -> frozenset[float]:
    """Factors of multiplying instructions without upper bound; copies have a factor of 1."""
    found: set[float] = set()
    for program in _programs(executable):
        columns = program.columns.get(_MULTIPLIER)
        if columns is not None:
            factors = _float32(columns["output_scale"])
            found |= set(factors[np.isposinf(_float32(columns["high_clip"]))].tolist())
    return frozenset(found - {1.0})


def _factors(executable: Executable) -> frozenset[float]:
    """Factors of multiplying instructions."""
    found: set[float] = set()
    for program in _programs(executable):
        columns = program.columns.get(_MULTIPLIER)
        if columns is not None:
            found |= set(_float32(columns["output_scale"]).tolist())
    return frozenset(found)


def _stages(executable: Executable) -> frozenset[tuple[float, float]]:
    """Factors of unbounded sums that are kept in 16 bits, each with that of the sum of them."""
    found: set[tuple[float, float]] = set()
    for program in _programs(executable):
        columns = program.columns.get(_MULTIPLIER)
        if columns is None:
            continue
        kept = columns["function"] == _OUTPUT_16_BITS
        kept &= np.isposinf(_float32(columns["high_clip"]))
        last = kept[:-1] & ~kept[1:] & (columns["activation_16bit"][1:] == 1)
        factors = _float32(columns["output_scale"])
        found |= set(zip(factors[:-1][last].tolist(), factors[1:][last].tolist(), strict=True))
    return frozenset(found)


def coefficient_tables(executable: Executable) -> Iterator[CoefficientTable]:
    """Each table with the first instruction that uses it after it was loaded.

    Raises:
        FormatError: an instruction stream that cannot be decoded.
    """
    for chunk, program in enumerate(_programs(executable)):
        loaded: tuple[int, int] | None = None
        instructions = (program.opcode.tolist(), program.row.tolist(), program.pc.tolist())
        for opcode, row, pc in zip(*instructions, strict=True):
            if opcode == _TABLE:
                loaded = row, pc
            elif opcode in _USERS and loaded is not None:
                user = program.columns[opcode]
                if int(user["function"][row]) & _TABLE_FUNCTION:
                    table = _table(program.columns[_TABLE], loaded[0], user, row)
                    yield replace(table, chunk=chunk, pc=loaded[1])
                    loaded = None


def _programs(executable: Executable) -> Iterator[DecodedChunk]:
    for index, chunk in enumerate(executable.instruction_bitstreams):
        try:
            yield decode(chunk.bitstream)
        except DecodeError as fault:
            field = f"Executable.instruction_bitstreams[{index}]"
            raise FormatError(field, str(fault), offset=chunk.file_offset) from None


def _table(tables: Columns, row: int, users: Columns, user: int) -> CoefficientTable:
    return CoefficientTable(
        _float32(tables["coefficient"][row]).reshape(_SEGMENTS, -1),
        _float32(tables["lower_bound"][row]),
        _float32(users["low_clip"][user : user + 1])[0],
        _float32(users["high_clip"][user : user + 1])[0],
        bool(users["symmetric_function"][user]),
        bool(users["odd_function"][user]),
        bool(int(users["function"][user]) & _RANGE_REDUCTION),
    )


def _float32(bits: NDArray[np.int64]) -> NDArray[np.float32]:
    return bits.astype(np.uint32).view(np.float32)


def _recognise(
    table: CoefficientTable, functions: Mapping[str, RealFunction]
) -> tuple[str, float] | None:
    """Name and amplitude of the real function that the table follows over its whole clip."""
    low, high = float(table.low), float(table.high)
    if table.range_reduction:
        # Any argument is reduced to one of these, wherever the clip lets it begin.
        low, high = 1.0, 4.0
        table = replace(table, low=np.float32(low), high=np.float32(high))
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        return None
    x = np.linspace(low, high, _SAMPLES)
    values = table(x.astype(np.float32)).astype(np.float64)
    for name, function in functions.items():
        ideal = function(x)
        amplitude = float(values @ ideal / (ideal @ ideal))
        if amplitude > 0 and np.abs(values - amplitude * ideal).max() < _LIKENESS * amplitude:
            return name, amplitude
    return None


def _parabolas(tables: Sequence[CoefficientTable]) -> dict[float, CoefficientTable]:
    """Tables that square, by the factor of the square. A clip may end only what has the greatest
    byte."""
    found: dict[float, CoefficientTable] = {}
    for table in tables:
        ends = np.array([end for end in (table.low, table.high) if np.isfinite(end)], np.float32)
        if table.square and (np.rint(table(ends)) >= _HIGHEST).all():
            found[float(table.square)] = table
    return found


def _softmax(tables: Sequence[CoefficientTable]) -> SoftmaxFunctions | None:
    """The two functions of a softmax on the tiles, if both are loaded."""
    found: dict[str, CoefficientTable] = {}
    for table in tables:
        name = _INVERSE_ROOT if table.range_reduction else _EXPONENTIAL
        function, one = _SOFTMAX_FUNCTIONS[name]
        if name == _EXPONENTIAL and table.high > 0:
            continue
        recognised = _recognise(table, {name: function})
        if recognised is not None and abs(recognised[1] / one - 1) < SAME_AMPLITUDE:
            found.setdefault(name, table)
    if len(found) < len(_SOFTMAX_FUNCTIONS):
        return None
    return SoftmaxFunctions(found[_EXPONENTIAL], found[_INVERSE_ROOT])
