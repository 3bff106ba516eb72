"""Kernels of lifted programs: sums, and what is made of them, for many inputs at once.

``values`` holds a byte of each input in each row, shape (slots, inputs).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel.compiled import compiled, inner, unchecked
from darwinn_sim.kernel.structure import Records
from darwinn_sim.units.output_stage import OUTPUT_16BIT, TABLE, clip, function, saturate
from darwinn_sim.units.tensor_cells import INTERPOLATE
from darwinn_sim.units.tensor_records import Parameters

_LEAST = np.int32(-(1 << 30))

Values = NDArray[np.uint8]
Numbers32 = NDArray[np.int32]
Reals = NDArray[np.float32]


class Ending(NamedTuple):
    """What becomes of sums: ``parameters`` of one tensor instruction; ``stored``: they are put
    aside as they are; ``offset`` and ``scale`` of each lane; the table of a function; room for the
    sums of all inputs, as ``total`` and ``scaled``.
    """

    parameters: Records[Parameters]
    stored: bool
    offset: Numbers32
    scale: Reals
    coefficient: Reals
    lower_bound: Reals
    total: Numbers32
    scaled: Reals


@compiled
def gather(values: Values, operands: Numbers32, zero: int, gathered: Reals) -> None:
    """Bytes minus their zero point: (columns, positions * inputs)."""
    _gather(values, operands, np.float32(zero), gathered)


@unchecked
def _gather(values: Values, operands: Numbers32, zero: np.float32, gathered: Reals) -> None:
    """Operands are slots, which the program has numbered."""
    positions, columns = operands.shape
    inputs = values.shape[1]
    if inputs == 1:
        for k in range(columns):
            for p in range(positions):
                gathered[k, p] = np.float32(values[operands[p, k], 0]) - zero
        return
    for k in range(columns):
        for p in range(positions):
            row = values[operands[p, k]]
            first = p * inputs
            for each in range(inputs):
                gathered[k, first + each] = np.float32(row[each]) - zero


@compiled
def finish_real(
    sums: Reals,
    ending: Ending,
    values: Values,
    slot: int,
) -> None:
    """Results of sums (lanes, positions * inputs) that are whole numbers below 2^24."""
    inputs = values.shape[1]
    for p in range(sums.shape[1] // inputs):
        for n in range(len(ending.offset)):
            row = sums[n, p * inputs : (p + 1) * inputs]
            _take_real(row, ending.offset[n], ending.total)
            slot = _end(ending, n, values, slot)


@unchecked
def _take_real(sums: Reals, offset: np.int32, total: Numbers32) -> None:
    """As many as there are inputs."""
    for each in range(len(total)):
        total[each] = np.int32(np.int32(sums[each]) + offset)


@compiled
def finish_whole(
    sums: Numbers32,
    ending: Ending,
    values: Values,
    slot: int,
) -> None:
    """The same of int32 sums."""
    inputs = values.shape[1]
    for p in range(sums.shape[1] // inputs):
        for n in range(len(ending.offset)):
            for each in range(inputs):
                ending.total[each] = sums[n, p * inputs + each] + ending.offset[n]
            slot = _end(ending, n, values, slot)


@compiled
def products(
    operands: Numbers32,
    begin: Numbers32,
    column: Numbers32,
    weight: Numbers32,
    zero: int,
    ending: Ending,
    values: Values,
    slot: int,
) -> None:
    """Sums of few products: of lane n the weights from ``begin[n]`` to ``begin[n + 1]``."""
    total = ending.total
    for p in range(len(operands)):
        for n in range(len(ending.offset)):
            total[:] = ending.offset[n]
            for k in range(begin[n], begin[n + 1]):
                _add(total, values[operands[p, column[k]]], weight[k], np.int32(zero))
            slot = _end(ending, n, values, slot)


@unchecked
def _add(total: Numbers32, row: Values, weight: np.int32, zero: np.int32) -> None:
    """As many as there are inputs."""
    for each in range(len(total)):
        total[each] += np.int32(weight * (np.int32(row[each]) - zero))


@compiled
def maxima(
    operands: Numbers32,
    width: int,
    ending: Ending,
    values: Values,
    slot: int,
) -> None:
    """Greatest of values of ``width`` bytes."""
    total = ending.total
    for p in range(len(operands)):
        total[:] = _LEAST
        for k in range(0, operands.shape[1], width):
            for each in range(len(total)):
                value = np.int32(values[operands[p, k], each])
                if width == 2:
                    value |= np.int32(values[operands[p, k + 1], each]) << 8
                total[each] = max(total[each], value)
        for each in range(len(total)):
            total[each] += ending.offset[0]
        slot = _end(ending, 0, values, slot)


@compiled
def pairs(
    operands: Numbers32,
    others: Numbers32,
    widths: tuple[int, int],
    zeros: tuple[int, int],
    ending: Ending,
    values: Values,
    slot: int,
) -> None:
    """Sums of values times values, of one byte or two each, minus their zero points."""
    total = ending.total
    for p in range(len(operands)):
        total[:] = ending.offset[0]
        for k in range(operands.shape[1] // widths[0]):
            for each in range(len(total)):
                one = _value(values, operands[p], k, widths[0], each) - np.int32(zeros[0])
                other = _value(values, others[p], k, widths[1], each) - np.int32(zeros[1])
                total[each] += np.int32(one * other)
        slot = _end(ending, 0, values, slot)


@inner
def _value(values: Values, operands: Numbers32, k: int, width: int, each: int) -> np.int32:
    """Value ``k`` of a position, of an input."""
    low = np.int32(values[operands[width * k], each])
    if width == 1:
        return low
    return np.int32(low | np.int32(values[operands[width * k + 1], each]) << 8)


@inner
def _end(ending: Ending, lane: int, values: Values, slot: int) -> int:
    """Results of a lane; returns the next slot."""
    return _finish(
        ending.total,
        ending.parameters[0],
        ending.stored,
        ending.scale[lane],
        ending.coefficient,
        ending.lower_bound,
        values,
        slot,
        ending.scaled,
    )


@inner
def _finish(
    total: Numbers32,
    parameters: Parameters,
    stored: bool,
    scale: np.float32,
    coefficient: Reals,
    lower_bound: Reals,
    values: Values,
    slot: int,
    scaled: Reals,
) -> int:
    """What becomes of the sums of a lane, as in ``output_stage``; returns the next slot."""
    if stored:
        for k in range(4):
            for each in range(len(total)):
                values[slot + k, each] = np.uint32(total[each]) >> np.uint32(8 * k)
        return slot + 4
    _scale(total, scaled, scale)
    if parameters.opcode != INTERPOLATE:
        clip(scaled, parameters.low_clip, parameters.high_clip, len(scaled))
    if parameters.function & TABLE:
        for each in range(len(total)):
            scaled[each] = function(coefficient, lower_bound, parameters, scaled[each])
    offset = np.float32(parameters.output_zero_point)
    if parameters.function & OUTPUT_16BIT:
        saturate(scaled, offset, np.float32(0xFFFF), total, len(scaled))
        for each in range(len(total)):
            values[slot, each] = total[each] & 0xFF
            values[slot + 1, each] = total[each] >> 8
        return slot + 2
    if np.isinf(parameters.high_clip):
        for each in range(len(total)):
            value = np.int64(np.rint(scaled[each])) + parameters.output_zero_point
            values[slot, each] = value & 0xFF
        return slot + 1
    saturate(scaled, offset, np.float32(0xFF), total, len(scaled))
    _give(total, values[slot])
    return slot + 1


@unchecked
def _scale(total: Numbers32, scaled: Reals, scale: np.float32) -> None:
    """As many as there are inputs."""
    for each in range(len(total)):
        scaled[each] = np.float32(total[each]) * scale


@unchecked
def _give(total: Numbers32, row: Values) -> None:
    """As many as there are inputs."""
    for each in range(len(total)):
        row[each] = np.uint8(total[each])
