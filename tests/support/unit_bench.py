"""Bench for single units: run a few instructions on the real engine, from random memories.

The engine is driven through ``schedule.run`` alone, which is compiled once for all tests. Memories
are compared whole, so that a write to any other place is seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from darwinn_sim import chip
from darwinn_sim.isa.builder import Values, build, frame
from darwinn_sim.kernel import state
from darwinn_sim.kernel.structure import Records
from darwinn_sim.machine import diagnosis, schedule
from darwinn_sim.machine.lowering import lower
from darwinn_sim.units import scalar_core
from darwinn_sim.units.observation import Seen, new_observation
from slow_model.memory import Core, Tile
from slow_model.sync import Watchers

Operations = Sequence[tuple[str, Values]]

MEMORIES = ("narrow", "wide", "scale_bias")
_STEPS = 100_000


@cache
def _pristine() -> tuple[Records[state.Tile], Records[state.Core], Records[state.Tile]]:
    """Tiles and core with random memories that count as written, and the tiles to work on."""
    random = np.random.default_rng(2026)
    tiles = state.new_tiles()
    for tile in tiles:
        for memory in MEMORIES:
            tile[memory] = random.integers(0, 1 << 32, tile[memory].shape, np.uint32)
            tile[f"{memory}_written"] = state.WRITTEN
    core = state.new_core()
    core["memory"] = random.integers(0, 1 << 32, chip.SCALAR_MEMORY_WORDS, np.uint32)
    core["memory_written"] = state.ALL_BITS
    for buffer in ("activations", "parameters"):
        core[buffer] = random.integers(0, 256, core[buffer].shape, np.uint8)
        core[f"{buffer}_written"] = 1
    return tiles, core, tiles.copy()


class Bench:
    """A chip with random memories that has one program to run."""

    def __init__(self, operations: Operations, *, strict: bool = False) -> None:
        self.program = lower((frame(build(operations)),))
        tiles, core, self.tiles = _pristine()
        self.tiles.view(np.uint8)[:] = tiles.view(np.uint8)
        self._core = core.copy()
        self.core: Any = self._core[0]
        self.core["strict"] = strict
        self.core["pc"] = 1
        self.core["end_pc"] = self.program.chunks[0].bundles
        self.descriptors: list[tuple[int, ...]] = []
        self.fences = 0

    def run(self, seen: Seen | None = None) -> int:
        """Run until the chip can go no further; return the reason of ``scalar_core``."""
        self.core["work_limit"] = self.core["work"] + _STEPS
        # A test may have changed flags.
        self.tiles["held"], self.tiles["awake"] = 0, 1
        seen = seen or new_observation()
        while True:
            reason: int = schedule.run(self.core, self.tiles, self.program.tables, seen)
            if reason == scalar_core.DESCRIPTOR:
                self.descriptors.append(tuple(int(word) for word in self.core["descriptor"]))
            elif reason == scalar_core.FENCED:
                self.fences += 1
            else:
                return reason

    @property
    def waiting(self) -> tuple[str, ...]:
        """What the units that are not done wait for."""
        return diagnosis.waiting(self.core, self.tiles, self.program)

    @property
    def fault(self) -> tuple[str, str] | None:
        """Memory and reason of the fault, if there was one."""
        return state.FAULT_REASONS.get(int(self.core["fault"]))

    def output(self) -> bytes:
        """Bytes in the FIFO to the host."""
        return _contents(self.core["output"])

    def feed(self, fifo: int, data: bytes) -> None:
        """Put bytes into an input FIFO: 0 parameters, 1 activations."""
        stream = self.core["input"][fifo]
        first = (int(stream["head"]) + int(stream["length"])) % chip.HOST_FIFO_BYTES
        places = (first + np.arange(len(data))) % chip.HOST_FIFO_BYTES
        stream["data"][places] = np.frombuffer(data, np.uint8)
        stream["length"] += len(data)

    def tile(self, number: int) -> Tile:
        """A slow copy of a tile as it is now."""
        return Tile(self.tiles[number])

    def assert_tiles(self, expected: Iterable[Tile]) -> None:
        """Compare the tiles with ``expected``, and all others with what they held before."""
        changed = {tile.number: tile for tile in expected}
        pristine = _pristine()[0]
        for number in range(chip.TILES):
            record = self.tiles[number]
            for memory in MEMORIES:
                if number in changed:
                    _assert_bytes(
                        f"tile {number} {memory}",
                        record[memory].tobytes(),
                        bytes(getattr(changed[number], memory)),
                    )
                else:
                    same = np.array_equal(record[memory], pristine[number][memory])
                    assert same, f"tile {number} {memory} has changed"
        for tile in changed.values():
            actual = [int(flag) % 65536 for flag in self.tiles[tile.number]["flags"]]
            wanted = [flag % 65536 for flag in tile.flags]
            assert actual == wanted, f"tile {tile.number}: flags"

    def slow_core(self) -> Core:
        """A slow copy of the core's memories as they are now."""
        return Core(self.core)

    def assert_core(self, expected: Core) -> None:
        """Compare scalar memory, input buffers, output and flags."""
        for memory in ("memory", "activations", "parameters"):
            actual = self.core[memory].tobytes()
            _assert_bytes(f"core {memory}", actual, bytes(getattr(expected, memory)))
        assert self.output() == expected.output
        flags = [int(flag) % 65536 for flag in self.core["flags"]]
        assert flags == [flag % 65536 for flag in expected.flags], "scalar flags"

    def assert_idle(self) -> None:
        """The program has ended and no unit has work left."""
        assert self.core["halted"] and self.waiting == ()


def _contents(fifo: Any) -> bytes:
    places = (int(fifo["head"]) + np.arange(int(fifo["length"]))) % chip.HOST_FIFO_BYTES
    return bytes(fifo["data"][places].tobytes())


def _assert_bytes(what: str, actual: bytes, expected: bytes) -> None:
    if actual == expected:
        return
    first, second = np.frombuffer(actual, np.uint8), np.frombuffer(expected, np.uint8)
    different = np.flatnonzero(first != second)
    shown = [(hex(i), int(first[i]), int(second[i])) for i in different[:6].tolist()]
    raise AssertionError(
        f"{what}: {len(different)} bytes differ, (address, actual, expected): {shown}"
    )


def sufficient(fields: Mapping[str, Any], elements: int, flag_count: int) -> dict[int, int]:
    """Values of the watched flags that let every watcher of an instruction pass.

    Watchers of one flag whose expectations are more than half a turn apart cannot all pass.
    """
    needed: dict[int, int] = {}
    for watcher in Watchers(fields).watchers:
        flag = watcher["flag"]
        most = watcher["expected"] + watcher["stride"] * elements
        needed[flag] = max(most, needed.get(flag, most))
    assert all(flag < flag_count for flag in needed)
    return needed
