"""Output stage of the tensor unit: bias, scale, clip, function, rounding, zero point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import OutputFunction, TileUnit
from darwinn_sim.kernel import clocks, order, state
from darwinn_sim.kernel.compiled import inner, part, unchecked
from darwinn_sim.units.tensor_records import Parameters, Segment
from darwinn_sim.units.tensor_shadow import mark

TABLE, RANGE_REDUCTION, OUTPUT_16BIT = (1 << bit for bit in OutputFunction)
"""Bits of the field ``function``."""

OUTPUT_WORK = 16
"""Work that the results of all lanes count for, and their non-linear function again."""

_LEAST_SUM, _GREATEST_SUM = -(1 << 31), (1 << 31) - 1


@inner
def result_words(parameters: Parameters, segment: Segment) -> int:
    """Words of narrow memory that the results of a segment take."""
    if not segment.outputs:
        return 0
    # By a shift: a division by what the compiler does not know takes longer than all the rest.
    shift = 1 if parameters.function & OUTPUT_16BIT else 2
    return (segment.lanes + (1 << shift) - 1) >> shift


@inner
def scale_half(unit: state.Unit, parameters: Parameters) -> int:
    """Half of the scale/bias buffer that holds the present block's values.

    It is the parity of the block number that flag 12 has counted, so it goes on across
    instructions and starts again when a fence resets the flag.
    """
    k = parameters.scale_watcher
    if k < 0:
        return 0
    watchers = parameters.watchers
    block = watchers.expected[k] + (unit.waited[k] - 1) * watchers.stride[k]
    return (block - 1) & 1


@inner
def polynomial(
    coefficient: NDArray[np.float32], lower_bound: NDArray[np.float32], y: np.float32
) -> np.float32:
    """Value of a coefficient table at ``y``, by Horner's rule in float32."""
    segment = 0
    while segment < chip.TABLE_SEGMENTS - 1 and lower_bound[segment] <= y:
        segment += 1
    base = segment * chip.TABLE_COEFFICIENTS
    value = np.float32(coefficient[base + 4])
    for k in range(3, -1, -1):
        value = np.float32(np.float32(value * y) + coefficient[base + k])
    return value


@inner
def function(
    coefficient: NDArray[np.float32],
    lower_bound: NDArray[np.float32],
    parameters: Parameters,
    y: np.float32,
) -> np.float32:
    """The non-linear function: the coefficient table, with range reduction or symmetry."""
    negates = parameters.odd_function and y < 0
    if parameters.symmetric_function:
        y = abs(y)
    factor = np.float32(1)
    if parameters.function & RANGE_REDUCTION and y > 0 and y < np.float32(np.inf):
        # y = m * 4^k with 1 <= m < 4; the result is table(m) * 2^-k. Powers of 2 are exact.
        while y >= np.float32(4):
            y *= np.float32(0.25)
            factor *= np.float32(0.5)
        while y < np.float32(1):
            y *= np.float32(4)
            factor *= np.float32(2)
    value = np.float32(polynomial(coefficient, lower_bound, y) * factor)
    return -value if negates else value


@part
def scaled_sums(
    core: state.Core, tile: state.Tile, unit: state.Unit, parameters: Parameters, lanes: int
) -> None:
    """float32 of the biased int32 sums, times the scales: into ``unit.scaled``."""
    sums, scaled = unit.accumulator, unit.scaled
    half = scale_half(unit, parameters)
    # Random data say nothing of a sum that has reached a bound: for any input it goes beyond.
    bounded = core.any_input == 0
    if parameters.apply_bias:
        first = chip.LANES * (2 + half)
        _check_scale_bias(core, tile, unit, parameters, first, lanes)
        biases = tile.scale_bias[first : first + chip.LANES].view(np.int32)
        _add_biases(sums, biases, scaled, lanes, bounded)
    else:
        _add_bias(sums, np.int32(parameters.immediate_bias), scaled, lanes, bounded)
    scale = np.float32(parameters.output_scale)
    if parameters.use_scales:
        first = chip.LANES * half
        _check_scale_bias(core, tile, unit, parameters, first, lanes)
        scales = tile.scale_bias[first : first + chip.LANES].view(np.float32)
        _scale_each(scaled, scales, scale, lanes)
    else:
        _scale(scaled, scale, lanes)


@inner
def biased(total: np.int32, bias: np.int32) -> np.int32:
    """A sum with its bias, which saturates (docs/chip-facts.md, "Numerics")."""
    exact = int(total) + int(bias)
    return np.int32(max(_LEAST_SUM, min(_GREATEST_SUM, exact)))


@unchecked
def _add_biases(
    sums: NDArray[np.int32],
    biases: NDArray[np.int32],
    scaled: NDArray[np.float32],
    lanes: int,
    bounded: bool,
) -> None:
    """Of lanes, of which there are ``chip.LANES`` at most, as in what follows."""
    if bounded:
        for lane in range(lanes):
            scaled[lane] = np.float32(biased(sums[lane], biases[lane]))
    else:
        for lane in range(lanes):
            scaled[lane] = np.float32(np.int32(sums[lane] + biases[lane]))


@unchecked
def _add_bias(
    sums: NDArray[np.int32],
    bias: np.int32,
    scaled: NDArray[np.float32],
    lanes: int,
    bounded: bool,
) -> None:
    if bounded:
        for lane in range(lanes):
            scaled[lane] = np.float32(biased(sums[lane], bias))
    else:
        for lane in range(lanes):
            scaled[lane] = np.float32(np.int32(sums[lane] + bias))


@unchecked
def _scale_each(
    scaled: NDArray[np.float32], scales: NDArray[np.float32], scale: np.float32, lanes: int
) -> None:
    for lane in range(lanes):
        scaled[lane] *= np.float32(scales[lane] * scale)


@unchecked
def _scale(scaled: NDArray[np.float32], scale: np.float32, lanes: int) -> None:
    for lane in range(lanes):
        scaled[lane] *= scale


@unchecked
def clip(scaled: NDArray[np.float32], low: np.float32, high: np.float32, count: int) -> None:
    """Of as many values as there are, or fewer."""
    for k in range(count):
        value = scaled[k]
        value = high if value > high else value
        scaled[k] = low if value < low else value


@inner
def _check_scale_bias(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    first: int,
    lanes: int,
) -> None:
    thread = clocks.unit(tile.number, TileUnit.TENSOR)
    order.reads_row(core, thread, clocks.scale_bias(tile.number, first), lanes)
    if core.strict:
        for lane in range(lanes):
            if tile.scale_bias_written[first + lane] != state.WRITTEN:
                at = 4 * (first + lane)
                mark(core, tile, unit, parameters, lane, state.SCALE_BIAS, at)


@part
def round_results(unit: state.Unit, parameters: Parameters, lanes: int) -> None:
    """Round half to even, add the offset and saturate: into ``unit.rounded``."""
    scaled, rounded = unit.scaled, unit.rounded
    if np.isinf(parameters.high_clip) and not parameters.function & OUTPUT_16BIT:
        # The low byte of the sum is the output.
        zero_point = parameters.output_zero_point
        for lane in range(lanes):
            rounded[lane] = np.uint32((np.int64(np.rint(scaled[lane])) + zero_point) & 0xFF)
        return
    highest = np.float32(0xFFFF if parameters.function & OUTPUT_16BIT else 0xFF)
    offset = np.float32(parameters.output_zero_point)
    saturate(scaled, offset, highest, rounded.view(np.int32), lanes)


@unchecked
def saturate(
    scaled: NDArray[np.float32],
    offset: np.float32,
    highest: np.float32,
    rounded: NDArray[np.int32],
    count: int,
) -> None:
    """Of as many values as there are, or fewer. Exact in float32: beyond 2^24 the clamp decides.

    What is no number counts as 0, as in RTL.
    """
    for k in range(count):
        whole = np.rint(scaled[k])
        value = offset if np.isnan(whole) else whole + offset
        value = np.float32(0) if value < np.float32(0) else value
        value = highest if value > highest else value
        rounded[k] = np.int32(value)


@part
def pack_results(unit: state.Unit, lanes: int, size: int) -> None:
    """The results, of so many bytes each, as words for narrow memory: into ``unit.row``."""
    data, written = unit.row.data, unit.row.written
    # Bytes beyond the last lane are zeros of the unit's own.
    last = (lanes * size - 1) // chip.WORD_BYTES
    data[last], written[last] = 0, state.WRITTEN
    if size == 1:
        _pack(unit.rounded, data.view(np.uint8), lanes)
        _mark(unit.lane_written, written.view(np.uint8), 0x01, lanes)
    else:
        _pack(unit.rounded, data.view(np.uint16), lanes)
        _mark(unit.lane_written, written.view(np.uint16), 0x0101, lanes)


@unchecked
def _pack(rounded: NDArray[np.uint32], results: NDArray[Any], lanes: int) -> None:
    for lane in range(lanes):
        results[lane] = rounded[lane]


@unchecked
def _mark(lane_written: NDArray[np.uint32], marks: NDArray[Any], written: int, lanes: int) -> None:
    for lane in range(lanes):
        marks[lane] = written if lane_written[lane] else 0
