"""The chip's functions: piecewise polynomials that a program loads into its tiles.

They are approximations, and an approximation is the program's own: where a network has a sigmoid
or tanh of its own (an LSTM), the oracle takes the function from the instructions of the
executable, and everything else from the uncompiled model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_formats.errors import FormatError
from darwinn_sim.isa.codec import Columns, DecodeError, decode
from darwinn_sim.isa.table import BY_NAME
from numpy.typing import NDArray

from darwinn_testbench.reference.call import IDEAL_FUNCTIONS, CompilerChoices, ScaledFunction

_TABLE = BY_NAME["CoefficientTable"].opcode
_TENSOR = BY_NAME["TensorMac"].opcode
_TABLE_FUNCTION, _RANGE_REDUCTION = 1, 2
"""Bits of the field `function` of a tensor instruction."""

_SEGMENTS = 8
_SAMPLES = 101
_LIKENESS = 0.01
"""A table is a function if it is nowhere further from it than this share of its amplitude."""


@dataclass(frozen=True, slots=True, eq=False)
class CoefficientTable:
    """One loaded table with the clip of the instruction that uses it.

    ``coefficients`` has shape (8, 5), the constant term first; segment k holds from
    ``lower_bounds[k - 1]`` on. ``symmetric``: evaluated at the absolute value; ``odd``: the sign of
    the argument is restored.
    """

    coefficients: NDArray[np.float32]
    lower_bounds: NDArray[np.float32]
    low: np.float32
    high: np.float32
    symmetric: bool = False
    odd: bool = False

    def __call__(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Values at ``x``: clip, choose the segment, Horner's rule in float32."""
        clipped = np.clip(x.astype(np.float32), self.low, self.high)
        y = np.abs(clipped) if self.symmetric else clipped
        rows = self.coefficients[np.searchsorted(self.lower_bounds, y, side="right")]
        value: NDArray[np.float32] = rows[..., -1]
        for power in range(rows.shape[-1] - 2, -1, -1):
            value = value * y + rows[..., power]
        return np.where(clipped < 0, -value, value) if self.odd else value


def compiler_choices(executable: Executable) -> CompilerChoices:
    """What the executable's program settles: the functions that it loads, each with its amplitude.

    Raises:
        FormatError: an instruction stream that cannot be decoded.
    """
    functions: dict[str, list[ScaledFunction]] = {}
    for table in coefficient_tables(executable):
        recognised = _recognise(table)
        if recognised is not None:
            name, amplitude = recognised
            functions.setdefault(name, []).append(ScaledFunction(amplitude, table))
    return CompilerChoices(functions={name: tuple(each) for name, each in functions.items()})


def coefficient_tables(executable: Executable) -> Iterator[CoefficientTable]:
    """Each table with the first instruction that uses it after it was loaded.

    Raises:
        FormatError: an instruction stream that cannot be decoded.
    """
    for index, chunk in enumerate(executable.instruction_bitstreams):
        try:
            program = decode(chunk.bitstream)
        except DecodeError as fault:
            field = f"Executable.instruction_bitstreams[{index}]"
            raise FormatError(field, str(fault), offset=chunk.file_offset) from None
        loaded: int | None = None
        for opcode, row in zip(program.opcode.tolist(), program.row.tolist(), strict=True):
            if opcode == _TABLE:
                loaded = row
            elif opcode == _TENSOR and loaded is not None:
                user = program.columns[_TENSOR]
                if int(user["function"][row]) & (_TABLE_FUNCTION | _RANGE_REDUCTION) == 1:
                    yield _table(program.columns[_TABLE], loaded, user, row)
                    loaded = None


def _table(tables: Columns, row: int, users: Columns, user: int) -> CoefficientTable:
    return CoefficientTable(
        _float32(tables["coefficient"][row]).reshape(_SEGMENTS, -1),
        _float32(tables["lower_bound"][row]),
        _float32(users["low_clip"][user : user + 1])[0],
        _float32(users["high_clip"][user : user + 1])[0],
        bool(users["symmetric_function"][user]),
        bool(users["odd_function"][user]),
    )


def _float32(bits: NDArray[np.int64]) -> NDArray[np.float32]:
    return bits.astype(np.uint32).view(np.float32)


def _recognise(table: CoefficientTable) -> tuple[str, float] | None:
    """Name and amplitude of the real function that the table follows over its whole clip."""
    low, high = float(table.low), float(table.high)
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        return None
    x = np.linspace(low, high, _SAMPLES)
    values = table(x.astype(np.float32)).astype(np.float64)
    for name, function in IDEAL_FUNCTIONS.items():
        ideal = function(x)
        amplitude = float(values @ ideal / (ideal @ ideal))
        if amplitude > 0 and np.abs(values - amplitude * ideal).max() < _LIKENESS * amplitude:
            return name, amplitude
    return None
