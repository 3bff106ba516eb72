"""Who still has work in the event model, and what for it waits, in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from darwinn_sim import chip
from darwinn_sim.isa.table import INSTRUCTIONS
from darwinn_sim.machine.diagnosis import (
    SCALAR_FLAG_NAMES,
    TILE_FLAG_NAMES,
    left_texts,
    tokens_text,
)
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.timing import stations
from darwinn_sim.timing.state import Machine

_TILE_COUNTERS = (
    (stations.FENCES, "tile fences passed"),
    (stations.PUSHED, "instructions for the tile"),
    (stations.TAKEN, "instructions taken from the tile's queue"),
    (stations.QUEUED, "instructions for the unit"),
    (stations.BEGUN, "instructions begun by the unit"),
    (stations.COMPLETED, "instructions completed by a unit"),
    (stations.MESH_PUSHED, "words from the mesh"),
    (stations.MESH_POPPED, "words taken from the neighbour's mesh FIFO"),
    (stations.ROWS_ARRIVED, "rows from the ring"),
    (stations.ROWS_POPPED, "rows taken from a ring FIFO"),
)
_CHIP_COUNTERS = (
    (stations.UNIT_QUEUED, "instructions for the unit"),
    (stations.UNIT_BEGUN, "instructions begun by the unit"),
    (stations.UNIT_COMPLETED, "instructions completed by a unit"),
    (stations.BYTES_ARRIVED, "bytes from the host"),
    (stations.BYTES_TAKEN, "bytes taken from the input FIFO"),
    (stations.BYTES_PUSHED, "bytes for the host"),
    (stations.BYTES_DELIVERED, "bytes delivered to the host"),
    (stations.INPUTS_ISSUED, "input descriptors"),
    (stations.OUTPUTS_ISSUED, "output descriptors"),
    (stations.CHUNKS_LOADED, "chunks loaded"),
    (stations.CHUNKS_HALTED, "chunks halted"),
    (stations.OUTFEED_ARRIVED, "rows from the ring"),
    (stations.OUTFEED_POPPED, "rows taken by the outfeed"),
)


def describe(machine: Machine, program: LoweredProgram) -> tuple[str, ...]:
    """One line for each station that has work left; empty if the run has ended."""
    table = machine.stations
    may_have_work = (table["instruction"] >= 0) | (table["queued"] > table["taken"])
    indices = np.flatnonzero(may_have_work).tolist()
    return (
        *_core(machine, program),
        *_streams(machine),
        *(line for index in indices for line in _station(machine, program, index)),
    )


def core_has_ended(machine: Machine) -> bool:
    """Whether the scalar core has done all that it was given."""
    return bool(machine.stations[stations.CORE]["position"] >= len(machine.steps))


def left_behind(machine: Machine) -> tuple[str, ...]:
    """What a run that has ended leaves in FIFOs, where the next one would find it."""
    whole = machine.counters[stations.CHIP_COUNTERS :]
    own = machine.counters[: stations.CHIP_COUNTERS].reshape(chip.TILES, stations.TILE_COUNTERS)
    streams, channels, links = np.arange(2), np.arange(2), np.arange(4)
    return left_texts(
        whole[stations.BYTES_ARRIVED + streams] - whole[stations.BYTES_TAKEN + streams],
        int(whole[stations.OUTFEED_ARRIVED] - whole[stations.OUTFEED_POPPED]),
        own[:, stations.ROWS_ARRIVED + channels] - own[:, stations.ROWS_POPPED + channels],
        own[:, stations.MESH_PUSHED + links] - own[:, stations.MESH_POPPED + links],
    )


def _core(machine: Machine, program: LoweredProgram) -> Iterator[str]:
    if not core_has_ended(machine):
        step = machine.steps[int(machine.stations[stations.CORE]["position"])]
        place = _place(program, int(step["instruction"])) if step["length"] else "chunk"
        yield f"scalar core at {place}: {_wait(machine, stations.CORE)}"


def _streams(machine: Machine) -> Iterator[str]:
    inward = (stations.LINK_IN, *range(stations.LINK_IN_APART, stations.CHIP_STATIONS))
    streams = (
        *((index, machine.inbound) for index in inward),
        (stations.LINK_OUT, machine.outbound),
    )
    for index, transfers in streams:
        left = len(transfers) - int(machine.stations[index]["position"])
        if left:
            name = stations.CHIP_STATION_NAMES[min(index, stations.LINK_OUT)]
            yield f"{name}, {left} transfers left: {_wait(machine, index)}"
    out = machine.stations[stations.LINK_OUT]
    unclaimed = int(out["words"] - out["total"])
    if out["position"] == len(machine.outbound) and unclaimed:
        yield f"output stream: {unclaimed} bytes wait for a descriptor"


def _station(machine: Machine, program: LoweredProgram, index: int) -> Iterator[str]:
    """A unit with an instruction, or a tile with instructions that were not dispatched."""
    group, number = divmod(index, stations.GROUP_STATIONS)
    station = machine.stations[index]
    tile = group - stations.FIRST_TILE_GROUP
    in_tile = 0 <= tile < chip.TILES
    if in_tile and number == stations.DISPATCH:
        queued = int(station["queued"] - station["taken"])
        if queued:
            exit_place = int(station["taken"]) % stations.TILE_PLACES
            first = int(machine.tile_queue[tile][exit_place]["instruction"])
            yield (
                f"tile {tile}: {queued} instructions queued, the first is "
                f"{_place(program, first)}: {_wait(machine, index)}"
            )
        return
    instruction = int(station["instruction"])
    if instruction < 0:
        return
    name = stations.TILE_STATION_NAMES[number] if in_tile else stations.CHIP_STATION_NAMES[number]
    place = f"tile {tile} {name}" if in_tile else name
    yield f"{place}, {_place(program, instruction)}: {_wait(machine, index)}"


def _place(program: LoweredProgram, instruction: int) -> str:
    tables = program.tables
    name = INSTRUCTIONS[int(tables.opcode[instruction])].name
    chunk, pc = program.locate(int(tables.pc[instruction]))
    return f"{name} at chunk {chunk}, pc {pc}"


def _wait(machine: Machine, index: int) -> str:
    station = machine.stations[index]
    counter, need = int(station["waits_on"]), int(station["need"])
    if counter < 0:
        return "its other side waits"
    value = int(machine.counters[counter])
    if counter >= stations.CHIP_COUNTERS:
        name = _name(counter - stations.CHIP_COUNTERS, SCALAR_FLAG_NAMES, _CHIP_COUNTERS)
    else:
        tile, offset = divmod(counter, stations.TILE_COUNTERS)
        if index % stations.GROUP_STATIONS == stations.DISPATCH and offset < len(TILE_FLAG_NAMES):
            # Of the flags, a tile's dispatch waits for those alone that its fences count.
            return tokens_text(offset, value, need)
        name = f"tile {tile} {_name(offset, TILE_FLAG_NAMES, _TILE_COUNTERS)}"
    return f"{name} is {value}, watched for {need}"


def _name(offset: int, flags: tuple[str, ...], others: tuple[tuple[int, str], ...]) -> str:
    if offset < len(flags):
        return f"{flags[offset]} (flag {offset})"
    return next(text for first, text in reversed(others) if first <= offset)
