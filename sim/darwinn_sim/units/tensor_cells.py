"""Cells of the tensor unit: products and sums, maxima and interpolations, lane by lane.

Facts: docs/chip-facts.md, "Numerics".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import TileUnit
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.kernel import clocks, order, state
from darwinn_sim.kernel.compiled import copy, inner, part
from darwinn_sim.units import memories, tensor_products
from darwinn_sim.units.memories import NARROW_MASK
from darwinn_sim.units.tensor_products import add_products, plain_iterations
from darwinn_sim.units.tensor_records import Parameters, Segment

MAC, MAXIMUM, SUM, INTERPOLATE = (
    BY_NAME[name].opcode for name in ("TensorMac", "TensorMax", "TensorSum", "TensorInterpolate")
)
"""Operations: the opcodes."""

_LEAST = np.int32(-(1 << 30))


@part
def start_sum(
    core: state.Core, tile: state.Tile, unit: state.Unit, parameters: Parameters, segment: Segment
) -> None:
    """Start a run: from the least value, from zero, or from the row in wide memory."""
    lanes = segment.lanes
    if segment.continues:
        base = row_base(core, tile, parameters, segment.sum_row)
        thread = clocks.unit(tile.number, TileUnit.TENSOR)
        first = clocks.wide(tile.number, 0) + base
        order.reads_row(core, thread, first, lanes)
        copy(unit.accumulator.view(np.uint32), 0, tile.wide, base, lanes)
        copy(unit.lane_written, 0, tile.wide_written, base, lanes)
        return
    unit.accumulator[:lanes] = _LEAST if parameters.opcode == MAXIMUM else np.int32(0)
    unit.lane_written[:lanes] = np.uint32(0) if core.any_input else state.WRITTEN


@part
def store_sum(
    core: state.Core, tile: state.Tile, unit: state.Unit, parameters: Parameters, segment: Segment
) -> None:
    """Put the sums aside in the row in wide memory."""
    base = row_base(core, tile, parameters, segment.sum_row)
    thread = clocks.unit(tile.number, TileUnit.TENSOR)
    first = clocks.wide(tile.number, 0) + base
    sums = unit.accumulator.view(np.uint32)
    order.writes_row(core, thread, first, segment.lanes, tile.wide, base, sums)
    copy(tile.wide, base, sums, 0, segment.lanes)
    copy(tile.wide_written, base, unit.lane_written, 0, segment.lanes)


@inner
def row_base(core: state.Core, tile: state.Tile, parameters: Parameters, row: int) -> int:
    """Word index of a wide-memory row; outside the memory: a fault, and row 0."""
    if memories.lacks_row(row):
        state.fail(core, state.FAULT_WIDE_ADDRESS, parameters.pc, tile.number, row)
        return 0
    return row * chip.ROW_WORDS


@inner
def plane_base(core: state.Core, tile: state.Tile, parameters: Parameters, plane: int) -> int:
    """Index of the byte of lane 0 in a byte plane of wide memory; each lane's is a word on."""
    return 4 * row_base(core, tile, parameters, plane >> 2) + (plane & 3)


@part
def multiply_accumulate(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    segment: Segment,
    operands: NDArray[np.int32],
    granules: NDArray[np.int16],
) -> None:
    """Add activations times parameters to the sums, modulo 2^32 as the chip's accumulators do."""
    if parameters.plain == tensor_products.ALL:
        _add_plain(tile, unit, parameters, segment, operands, granules, len(operands))
        return
    i = 0
    while i < len(operands):
        if parameters.plain == tensor_products.SOME:
            count = plain_iterations(operands[i:], granules[i:])
            _add_plain(tile, unit, parameters, segment, operands[i:], granules[i:], count)
            i += count
        if i < len(operands):
            for k in range(parameters.products):
                if works(parameters, k):
                    _multiply_plane(
                        core, tile, unit, parameters, segment, operands[i], granules[i], k
                    )
            i += 1


@part
def _add_plain(
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    segment: Segment,
    operands: NDArray[np.int32],
    granules: NDArray[np.int16],
    count: int,
) -> None:
    add_products(
        unit.accumulator,
        segment.lanes,
        tile.narrow,
        operands,
        tile.wide,
        granules,
        count,
        np.int32(parameters.activation_zero_point),
        np.int32(parameters.parameter_zero_point),
    )


@inner
def activation_of(tile: state.Tile, parameters: Parameters, address: int, k: int) -> np.int32:
    """Activation ``k`` of the group at byte ``address``, minus the zero point."""
    octets = tile.narrow.view(np.uint8)
    if parameters.activation_16bit:
        low = np.int32(octets[(address + 2 * k) & NARROW_MASK])
        high = np.int32(octets[(address + 2 * k + 1) & NARROW_MASK])
        return np.int32((low | high << 8) - parameters.activation_zero_point)
    return np.int32(octets[(address + k) & NARROW_MASK] - parameters.activation_zero_point)


@inner
def _multiply_plane(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    segment: Segment,
    operand: int,
    granule: int,
    k: int,
) -> None:
    """One activation times one 8-bit or 16-bit parameter of each lane."""
    activation = activation_of(tile, parameters, operand, k)
    octets, sums = tile.wide.view(np.uint8), unit.accumulator
    zero = np.int32(parameters.parameter_zero_point)
    is_wide = parameters.parameter_16bit != 0
    plane = granule + (2 * k if is_wide else k)
    low = octets[plane_base(core, tile, parameters, plane) :]
    # The plane after the last of a row is the first of the next one.
    high = octets[plane_base(core, tile, parameters, plane + 1) :] if is_wide else low
    if parameters.load_parameter_zero_point:
        row = row_base(core, tile, parameters, segment.zero_point_row)
        zeros = tile.wide[row : row + chip.LANES].view(np.int32)
        for lane in range(segment.lanes):
            weight = np.int32(low[4 * lane])
            if is_wide:
                weight |= np.int32(high[4 * lane]) << 8
            sums[lane] += np.int32(activation * (weight - zeros[lane]))
    elif is_wide:
        for lane in range(segment.lanes):
            weight = np.int32(low[4 * lane]) | np.int32(high[4 * lane]) << 8
            sums[lane] += np.int32(activation * (weight - zero))
    else:
        for lane in range(segment.lanes):
            sums[lane] += np.int32(activation * (np.int32(low[4 * lane]) - zero))


@inner
def works(parameters: Parameters, k: int) -> bool:
    """True if product ``k`` of an iteration is made: its multipliers do not stand still."""
    return bool((parameters.working >> k) & 1)


@inner
def values_of(parameters: Parameters, granule: int) -> int:
    """Values of a lane that an iteration of a maximum or sum can take: as many as multipliers make,
    where the granule begins a row, and one elsewhere. Those whose multipliers :func:`works` count.
    """
    return 1 if granule & 3 else parameters.products


@inner
def reduce(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    lanes: int,
    granules: NDArray[np.int16],
) -> None:
    """Maximum over the values that an iteration takes (:func:`values_of`), or sum over these minus
    their zero point."""
    zero = np.int32(parameters.parameter_zero_point)
    octets, sums = tile.wide.view(np.uint8), unit.accumulator
    is_wide = parameters.parameter_16bit != 0
    for i in range(len(granules)):
        for k in range(values_of(parameters, granules[i])):
            if not works(parameters, k):
                continue
            plane = granules[i] + (2 * k if is_wide else k)
            low = octets[plane_base(core, tile, parameters, plane) :]
            high = octets[plane_base(core, tile, parameters, plane + 1) :] if is_wide else low
            for lane in range(lanes):
                value = np.int32(low[4 * lane])
                if is_wide:
                    value |= np.int32(high[4 * lane]) << 8
                if parameters.opcode == MAXIMUM:
                    sums[lane] = max(sums[lane], value)
                else:
                    sums[lane] += value - zero


@inner
def interpolate(
    tile: state.Tile,
    unit: state.Unit,
    lanes: int,
    operands: NDArray[np.int32],
    weights: NDArray[np.int16],
) -> None:
    """Add taps: lane j takes activation byte j times the tap's weight."""
    octets = tile.narrow.view(np.uint8)
    for i in range(len(operands)):
        for lane in range(lanes):
            value = np.int32(octets[(operands[i] + lane) & NARROW_MASK])
            unit.accumulator[lane] += np.int32(value * weights[i])
