"""What the tensor unit reads and writes, for the checker of hazards."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.isa.codes import TileUnit
from darwinn_sim.kernel import clocks, order, shadow, state
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.units import memories
from darwinn_sim.units.memories import NARROW_MASK
from darwinn_sim.units.tensor_cells import INTERPOLATE, MAC, values_of, works
from darwinn_sim.units.tensor_records import Parameters, Segment


@order.hook
@inner
def reads_operands(
    core: order.CheckedCore,
    tile: int,
    parameters: Parameters,
    segment: Segment,
    operands: NDArray[np.int32],
    granules: NDArray[np.int16],
) -> None:
    """The iterations of a segment read activations, and rows of parameters."""
    known = core.clocks
    thread = clocks.unit(tile, TileUnit.TENSOR)
    lanes = int(segment.lanes)
    is_mac = parameters.opcode == MAC
    if is_mac and parameters.load_parameter_zero_point:
        _read_row(known, thread, tile, int(segment.zero_point_row), lanes)
    octets = parameters.products * (2 if parameters.activation_16bit else 1)
    planes = 2 if parameters.parameter_16bit else 1
    for i in range(len(operands)):
        operand, granule = int(operands[i]), int(granules[i])
        if parameters.opcode == INTERPOLATE:
            _read_octets(known, thread, tile, operand, lanes if granule else 0)
            continue
        if is_mac:
            _read_octets(known, thread, tile, operand, octets)
        row = -1
        for k in range(parameters.products if is_mac else values_of(parameters, granule)):
            first = granule + planes * k
            for plane in range(first, first + planes if works(parameters, k) else first):
                if plane >> 2 != row:
                    row = plane >> 2
                    _read_row(known, thread, tile, row, lanes)


@inner
def _read_octets(known: clocks.Clocks, thread: int, tile: int, first: int, count: int) -> None:
    """Read the words of narrow memory, whose addresses wrap, that some bytes are in."""
    if count <= 0:
        return
    for address in range(first >> 2, (first + count + 3) >> 2):
        word = address & (NARROW_MASK >> 2)
        if word < clocks.NARROW_WORDS:
            shadow.read(known, thread, clocks.narrow(tile, word))


@inner
def _read_row(known: clocks.Clocks, thread: int, tile: int, row: int, lanes: int) -> None:
    if not memories.lacks_row(row):
        shadow.read_row(known, thread, clocks.wide(tile, row), lanes)


@order.hook
@inner
def writes_result(
    core: order.CheckedCore, tile: state.Tile, address: int, value: np.uint32
) -> None:
    """Four bytes of results go to narrow memory, which has a place for them."""
    known = core.clocks
    thread = clocks.unit(tile.number, TileUnit.TENSOR)
    word = address >> 2
    if address & 3 == 0:
        same = tile.narrow[word] == value
        shadow.write(known, thread, clocks.narrow(tile.number, word), same)
        return
    for k in range(2):
        shadow.write(known, thread, clocks.narrow(tile.number, word + k), False)
