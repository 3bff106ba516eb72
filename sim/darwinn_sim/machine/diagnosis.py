"""What a chip that can go no further waits for, in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import InputFifo, ScalarFlag, ScalarUnit, TileFlag
from darwinn_sim.isa.table import INSTRUCTIONS
from darwinn_sim.kernel import state, sync
from darwinn_sim.kernel.instructions import ScalarFence, TileFence
from darwinn_sim.kernel.structure import Records
from darwinn_sim.machine.lowering import TABLE_OF, LoweredProgram
from darwinn_sim.units import scalar_fence, tile_fence

SCALAR_FLAG_NAMES = tuple(flag.label for flag in ScalarFlag)
TILE_FLAG_NAMES = tuple(flag.label for flag in TileFlag)

_SCALAR_TABLES = {
    ScalarUnit.PARAMETER_POP: "pop",
    ScalarUnit.AV_POP: "pop",
    ScalarUnit.RING_INFEED: "infeed",
    ScalarUnit.RING_OUTFEED: "outfeed",
}
_FENCE = "ScalarFence"
_TILE_FENCE = "TileFence"


def waiting(
    core: state.Core, tiles: Records[state.Tile], program: LoweredProgram
) -> tuple[str, ...]:
    """One line for each unit that has work left; empty if the chip is idle."""
    # Each inference ends with this question, and mostly with no such tile.
    works = (tiles["units"]["current"] != state.IDLE).any(axis=1) | (tiles["queue_length"] != 0)
    return (
        *_scalar_core(core, tiles, program),
        *_scalar_units(core, program),
        *(line for number in np.flatnonzero(works) for line in _tile(tiles[number], program)),
    )


def left_behind(core: state.Core, tiles: Records[state.Tile]) -> tuple[str, ...]:
    """What a program that has ended leaves in FIFOs, where the next one would find it."""
    return left_texts(
        core["input"]["length"],
        int(core["ring"]["length"]),
        tiles["ring"]["length"],
        tiles["mesh"]["length"],
    )


def left_texts(
    octets: NDArray[np.int64], outfeed: int, rows: NDArray[np.int64], words: NDArray[np.int64]
) -> tuple[str, ...]:
    """A line for each FIFO that is not empty: bytes of both input streams, rows for the outfeed,
    rows by tile and channel, words of the mesh by tile and link.
    """
    if not (outfeed or octets.any() or rows.any() or words.any()):
        return ()
    found = [
        (int(count), f"bytes of input stream {InputFifo(k).label}")
        for k, count in enumerate(octets)
    ]
    found += [(outfeed, "rows of the ring for the outfeed")]
    for tile in range(chip.TILES):
        for channel, count in enumerate(rows[tile].tolist()):
            found.append((count, f"rows of the ring for tile {tile}, channel {'AB'[channel]}"))
        for link, count in enumerate(words[tile].tolist()):
            found.append((count, f"words of the mesh for tile {tile}, link {link}"))
    left = [f"{count} {what}" for count, what in found if count]
    return tuple(f"{each} are left: no instruction takes them" for each in left)


def _scalar_core(
    core: state.Core, tiles: Records[state.Tile], program: LoweredProgram
) -> Iterator[str]:
    if core["halted"]:
        return
    tables = program.tables
    pc = int(core["pc"])
    chunk, bundle = program.locate(pc)
    text = f"scalar core at chunk {chunk}, pc {bundle}"
    if not 0 <= pc < len(tables.at) or tables.at[pc] < 0:
        # Its share of work was used up before it saw that no instruction begins there.
        yield text
        return
    instruction = int(tables.at[pc])
    name = INSTRUCTIONS[int(tables.opcode[instruction])].name
    text += f" ({name})"
    if name == _FENCE:
        text += ": " + ", ".join(_fence(core, tiles, tables.scalar_fence[tables.row[instruction]]))
    yield text


def _fence(core: state.Core, tiles: Records[state.Tile], fence: ScalarFence) -> Iterator[str]:
    count = int(fence["tile_fence_count"])
    late = [
        number
        for number in range(chip.TILES)
        if fence["tile_fence_valid"] >> number & 1 and tiles[number]["fence_count"] < count
    ]
    if late:
        yield f"tile fence {count} of tiles {late}"
    for flag, name in enumerate(SCALAR_FLAG_NAMES):
        if fence["expected_valid"] >> flag & 1:
            expected, value = int(fence["expected"][flag]), int(core["flags"][flag])
            yield f"{name} is {value}, expected {expected}"
    busy = int(fence["wait_idle"]) & ~scalar_fence.idle_units(core)
    for bit, name in enumerate(state.SCALAR_UNIT_NAMES):
        if busy >> bit & 1:
            yield f"{name} is not idle"


def _tile_fence(tile: state.Tile, fence: TileFence) -> Iterator[str]:
    for which, name in enumerate(state.UNIT_NAMES):
        unit = tile["units"][which]
        has_work = unit["current"] != state.IDLE or unit["queue_length"]
        if fence["wait_idle"] >> which & 1 and has_work:
            yield f"{name} is not idle"
    for channel in range(tile_fence.RING_CHANNELS):
        flag = TileFlag.RING_PRODUCER_A + channel
        tokens, awaited = int(tile["flags"][flag]), int(fence["producer_count"])
        if fence["producer_count_valid"] >> channel & 1:
            yield tokens_text(flag, tokens, awaited)


def tokens_text(flag: int, tokens: int, awaited: int) -> str:
    """How a tile fence that counts tokens sees flag 17 or 18: more than it awaits are too many."""
    value = tokens & sync.FLAG_MASK
    passed = ", which has been passed" if value > awaited else ""
    return f"{TILE_FLAG_NAMES[flag]} (flag {flag}) is {value}, awaited at {awaited}{passed}"


def _watchers(
    flags: NDArray[np.int64],
    names: tuple[str, ...],
    watchers: sync.Watchers,
    waited: NDArray[np.int64],
) -> str:
    parts = []
    for k in range(int(watchers["count"])):
        flag = int(watchers["flag"][k])
        expected = int(watchers["expected"][k]) + int(waited[k]) * int(watchers["stride"][k])
        parts.append(f"{names[flag]} (flag {flag}) is {int(flags[flag])}, watched for {expected}")
    return "; ".join(parts) or "no flag is watched"


def _scalar_units(core: state.Core, program: LoweredProgram) -> Iterator[str]:
    for which, table in _SCALAR_TABLES.items():
        unit = core["units"][which]
        if unit["current"] == state.IDLE and unit["queue_length"] == 0:
            continue
        text = f"{which.meaning}, {int(unit['queue_length'])} queued"
        if unit["current"] != state.IDLE:
            row = getattr(program.tables, table)[int(unit["current"])]
            chunk, pc = program.locate(int(row["pc"]))
            watchers = _watchers(core["flags"], SCALAR_FLAG_NAMES, row["watchers"], unit["waited"])
            text += f" at chunk {chunk}, pc {pc}: {watchers}"
        yield text


def _tile(tile: state.Tile, program: LoweredProgram) -> Iterator[str]:
    number = int(tile["number"])
    tables = program.tables
    if tile["queue_length"]:
        instruction = int(tile["queue"][int(tile["queue_head"])]["instruction"])
        name = INSTRUCTIONS[int(tables.opcode[instruction])].name
        chunk, pc = program.locate(int(tables.pc[instruction]))
        text = (
            f"tile {number}: {int(tile['queue_length'])} instructions queued, the first is {name} "
            f"of chunk {chunk}, pc {pc}"
        )
        if name == _TILE_FENCE:
            text += ": " + ", ".join(_tile_fence(tile, tables.tile_fence[tables.row[instruction]]))
        yield text
    for which, unit_name in enumerate(state.UNIT_NAMES):
        unit = tile["units"][which]
        if unit["current"] == state.IDLE:
            continue
        instruction = int(unit["current"])
        chunk, pc = program.locate(int(tables.pc[instruction]))
        name = INSTRUCTIONS[int(tables.opcode[instruction])].name
        row = getattr(tables, TABLE_OF[name])[int(tables.row[instruction])]
        watchers = _watchers(tile["flags"], TILE_FLAG_NAMES, row["watchers"], unit["waited"])
        yield f"tile {number} {unit_name}, {name} at chunk {chunk}, pc {pc}: {watchers}"
