"""Who still has work in the event model, and what for it waits, in words."""

from __future__ import annotations

from collections.abc import Iterator

from darwinn_sim import chip
from darwinn_sim.isa.table import INSTRUCTIONS
from darwinn_sim.machine.diagnosis import SCALAR_FLAG_NAMES, TILE_FLAG_NAMES, tokens_text
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.timing import lanes
from darwinn_sim.timing.state import Machine

_TILE_COUNTERS = (
    (lanes.FENCES, "tile fences passed"),
    (lanes.PUSHED, "instructions for the tile"),
    (lanes.TAKEN, "instructions taken from the tile's queue"),
    (lanes.QUEUED, "instructions for the unit"),
    (lanes.BEGUN, "instructions begun by the unit"),
    (lanes.COMPLETED, "instructions completed by a unit"),
    (lanes.MESH_PUSHED, "words from the mesh"),
    (lanes.MESH_POPPED, "words taken from the neighbour's mesh FIFO"),
    (lanes.ROWS_ARRIVED, "rows from the ring"),
    (lanes.ROWS_POPPED, "rows taken from a ring FIFO"),
)
_CHIP_COUNTERS = (
    (lanes.UNIT_QUEUED, "instructions for the unit"),
    (lanes.UNIT_BEGUN, "instructions begun by the unit"),
    (lanes.UNIT_COMPLETED, "instructions completed by a unit"),
    (lanes.BYTES_ARRIVED, "bytes from the host"),
    (lanes.BYTES_TAKEN, "bytes taken from the input FIFO"),
    (lanes.BYTES_PUSHED, "bytes for the host"),
    (lanes.BYTES_DELIVERED, "bytes delivered to the host"),
    (lanes.INPUTS_ISSUED, "input descriptors"),
    (lanes.OUTPUTS_ISSUED, "output descriptors"),
    (lanes.CHUNKS_LOADED, "chunks loaded"),
    (lanes.CHUNKS_HALTED, "chunks halted"),
    (lanes.OUTFEED_ARRIVED, "rows from the ring"),
    (lanes.OUTFEED_POPPED, "rows taken by the outfeed"),
)


def describe(machine: Machine, program: LoweredProgram) -> tuple[str, ...]:
    """One line for each lane that has work left; empty if the run has ended."""
    return (
        *_core(machine, program),
        *_streams(machine),
        *(line for index in range(lanes.LANES) for line in _lane(machine, program, index)),
    )


def _core(machine: Machine, program: LoweredProgram) -> Iterator[str]:
    lane = machine.lanes[lanes.CORE]
    if lane["position"] < len(machine.steps):
        step = machine.steps[int(lane["position"])]
        place = _place(program, int(step["instruction"])) if step["length"] else "chunk"
        yield f"scalar core at {place}: {_wait(machine, lanes.CORE)}"


def _streams(machine: Machine) -> Iterator[str]:
    inward = (lanes.LINK_IN, *range(lanes.LINK_IN_APART, lanes.CHIP_LANES))
    streams = (*((index, machine.inbound) for index in inward), (lanes.LINK_OUT, machine.outbound))
    for index, transfers in streams:
        left = len(transfers) - int(machine.lanes[index]["position"])
        if left:
            name = lanes.CHIP_LANE_NAMES[min(index, lanes.LINK_OUT)]
            yield f"{name}, {left} transfers left: {_wait(machine, index)}"


def _lane(machine: Machine, program: LoweredProgram, index: int) -> Iterator[str]:
    """A unit with an instruction, or a tile with instructions that were not dispatched."""
    group, number = divmod(index, lanes.GROUP_LANES)
    lane = machine.lanes[index]
    tile = group - lanes.FIRST_TILE_GROUP
    in_tile = 0 <= tile < chip.TILES
    if in_tile and number == lanes.DISPATCH:
        queued = int(lane["queued"] - lane["taken"])
        if queued:
            first = int(machine.tile_queue[tile, int(lane["taken"]) % lanes.TILE_PLACES])
            yield (
                f"tile {tile}: {queued} instructions queued, the first is "
                f"{_place(program, first)}: {_wait(machine, index)}"
            )
        return
    instruction = int(lane["instruction"])
    if instruction < 0:
        return
    name = lanes.TILE_LANE_NAMES[number] if in_tile else lanes.CHIP_LANE_NAMES[number]
    place = f"tile {tile} {name}" if in_tile else name
    yield f"{place}, {_place(program, instruction)}: {_wait(machine, index)}"


def _place(program: LoweredProgram, instruction: int) -> str:
    tables = program.tables
    name = INSTRUCTIONS[int(tables.opcode[instruction])].name
    chunk, pc = program.locate(int(tables.pc[instruction]))
    return f"{name} at chunk {chunk}, pc {pc}"


def _wait(machine: Machine, index: int) -> str:
    lane = machine.lanes[index]
    counter, need = int(lane["waits_on"]), int(lane["need"])
    if counter < 0:
        return "its other side waits"
    value = int(machine.counters[counter])
    if counter >= lanes.CHIP_COUNTERS:
        name = _name(counter - lanes.CHIP_COUNTERS, SCALAR_FLAG_NAMES, _CHIP_COUNTERS)
    else:
        tile, offset = divmod(counter, lanes.TILE_COUNTERS)
        if index % lanes.GROUP_LANES == lanes.DISPATCH and offset < len(TILE_FLAG_NAMES):
            # Of the flags, a tile's dispatch waits for those alone that its fences count.
            return tokens_text(offset, value, need)
        name = f"tile {tile} {_name(offset, TILE_FLAG_NAMES, _TILE_COUNTERS)}"
    return f"{name} is {value}, watched for {need}"


def _name(offset: int, flags: tuple[str, ...], others: tuple[tuple[int, str], ...]) -> str:
    if offset < len(flags):
        return f"{flags[offset]} (flag {offset})"
    return next(text for first, text in reversed(others) if first <= offset)
