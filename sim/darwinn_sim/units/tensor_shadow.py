"""Strict mode of the tensor unit: which lanes follow from memory that nothing has written."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.units.memories import NARROW_MASK
from darwinn_sim.units.tensor_cells import (
    INTERPOLATE,
    MAC,
    activation_of,
    plane_base,
    values_of,
    works,
)
from darwinn_sim.units.tensor_records import Parameters


@inner
def check_operands(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    lanes: int,
    operands: NDArray[np.int32],
    granules: NDArray[np.int16],
) -> None:
    """Strict mode: mark the lanes whose results follow from memory that nothing has written.

    An operand does not matter if the other one equals its zero point: programs pad channels that
    way. Programs also compute lanes that they never use, so a marked result is no fault by itself.
    """
    planes = 2 if parameters.parameter_16bit else 1
    for i in range(len(operands)):
        if parameters.opcode == INTERPOLATE:
            for lane in range(lanes if granules[i] else 0):
                address = (operands[i] + lane) & NARROW_MASK
                if not tile.narrow_written.view(np.uint8)[address]:
                    mark(core, tile, unit, parameters, lane, state.NARROW, address)
            continue
        if parameters.opcode != MAC:
            for k in range(values_of(parameters, granules[i])):
                for plane in range(planes * k, planes * (k + 1) if works(parameters, k) else 0):
                    for lane in range(lanes):
                        _check_wide(core, tile, unit, parameters, granules[i] + plane, lane)
            continue
        for k in range(parameters.products):
            if works(parameters, k):
                granule = granules[i] + planes * k
                _check_product(core, tile, unit, parameters, lanes, operands[i], granule, k)


@inner
def _check_product(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    lanes: int,
    operand: int,
    granule: int,
    k: int,
) -> None:
    narrow = tile.narrow_written.view(np.uint8)
    values = tile.wide.view(np.uint8)
    planes = 2 if parameters.parameter_16bit else 1
    size = 2 if parameters.activation_16bit else 1
    written = True
    for byte in range(size):
        written &= narrow[(operand + size * k + byte) & NARROW_MASK] != 0
    if not written or activation_of(tile, parameters, operand, k) != 0:
        for plane in range(granule, granule + planes):
            for lane in range(lanes):
                _check_wide(core, tile, unit, parameters, plane, lane)
    if written:
        return
    for plane in range(granule, granule + planes):
        zero_point = parameters.parameter_zero_point >> (8 * (plane - granule)) & 0xFF
        base = plane_base(core, tile, parameters, plane)
        for lane in range(lanes):
            if parameters.load_parameter_zero_point or values[base + 4 * lane] != zero_point:
                mark(core, tile, unit, parameters, lane, state.NARROW, operand + size * k)


@inner
def _check_wide(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    plane: int,
    lane: int,
) -> None:
    where = plane_base(core, tile, parameters, plane) + 4 * lane
    if not tile.wide_written.view(np.uint8)[where]:
        mark(core, tile, unit, parameters, lane, state.WIDE, where)


@inner
def mark(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    lane: int,
    memory: int,
    address: int,
) -> None:
    """Mark a lane's result as unwritten, and remember the first operand that led to one."""
    unit.lane_written[lane] = 0
    state.originates(core, parameters.pc, tile.number, memory, address)
