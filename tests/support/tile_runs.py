"""Runs instructions on the engine's tile and on the RTL's, from the same memories and flags."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from darwinn_sim import chip
from darwinn_sim.isa.builder import build
from darwinn_testbench.rtl import toolchain
from unit_bench import MEMORIES, Bench, Operations

LIMIT = 4000
"""Cycles within which the instructions of a random test end, if they end at all."""


def require_toolchain() -> None:
    """Skip the test, with the way to get it, where something is missing."""
    missing = toolchain.missing()
    if missing:
        pytest.skip("no RTL toolchain: " + "; ".join(missing))


@cache
def rtl_tile() -> Any:
    """The tile of this process; building it takes a minute or two if it is not there yet."""
    require_toolchain()
    from darwinn_testbench.rtl.tile_bench import TileBench

    return TileBench(seed=2026)


class TilePair:
    """A tile of the engine and one of the RTL that are to do the same.

    Flags, and memory of ``bench``'s tile, may be changed before ``run``.
    """

    def __init__(self, operations: Operations, *, number: int = 0) -> None:
        chosen = [(name, {**values, "tiles": 1 << number}) for name, values in operations]
        self.bench = Bench(chosen)
        self.record = self.bench.tiles[number]
        self.instructions = [build([operation]) for operation in chosen]
        self.rtl = rtl_tile()
        self.rtl.reset()

    def run(self, limit: int = LIMIT) -> int:
        """Run both; return the cycles that the RTL took. What they hold then must be equal."""
        self.rtl.narrow[:] = self.record["narrow"].view(np.uint8)[: chip.NARROW_BYTES]
        self.rtl.wide[:] = self.record["wide"]
        self.rtl.scale_bias[:] = self.record["scale_bias"]
        self.rtl.flags[:] = self.record["flags"] & 0xFFFF
        for instruction in self.instructions:
            self.rtl.give(instruction)
        cycles: int = self.rtl.run(limit)
        self.bench.run()
        assert self.bench.fault is None
        self.compare()
        return cycles

    def compare(self) -> None:
        """Memories, flags, and whether all instructions have ended."""
        for memory in MEMORIES:
            expected = self.record[memory].view(np.uint8)
            actual = getattr(self.rtl, memory).view(np.uint8)
            wrong = np.flatnonzero(actual != expected[: len(actual)])
            shown = [(hex(i), int(actual[i]), int(expected[i])) for i in wrong[:6].tolist()]
            assert not len(wrong), (
                f"{memory}: {len(wrong)} bytes differ, (address, RTL, model): {shown}"
            )
        flags = [int(flag) for flag in self.rtl.flags]
        assert flags == [int(flag) % 65536 for flag in self.record["flags"]], "flags"
        assert self.rtl.idle == (self.bench.waiting == ()), self.bench.waiting
