"""The whole chip in RTL for tests: one for the whole process, and its scalar side in small."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from darwinn_sim import chip
from darwinn_sim.isa.builder import Values, build
from darwinn_sim.isa.codes import DescriptorTag
from harness_runs import require_toolchain
from slow_model.memory import Core
from unit_bench import Bench

TAGS = (DescriptorTag.PARAMETERS, DescriptorTag.INPUT)
"""Tag of the stream that PopInput takes, by its field ``fifo``."""

GUARD = 64
"""Bytes around a destination that nothing may change."""


@cache
def rtl_chip() -> Any:
    """The chip of this process; building it takes a minute if it is not there yet."""
    require_toolchain()
    from darwinn_rtl.chip.player import ChipPlayer

    return ChipPlayer(seed=2026)


_FIRST = 13
"""Places at which streams begin: not all of them are multiples of a power of two."""


class ScalarSide:
    """The RTL's scalar side and a slow core, with the same random memories and flags."""

    def __init__(self, flags: Mapping[int, int]) -> None:
        record = Bench([]).core
        for flag, value in flags.items():
            record["flags"][flag] = value
        self.slow = Core(record)
        self.rtl = rtl_chip()
        self.rtl.reset()
        self.rtl.unmap_all()
        self.rtl.scalar_memory[:] = record["memory"]
        self.rtl.activations[:] = record["activations"]
        self.rtl.parameters[:] = record["parameters"]
        self.rtl.scalar_flags[:] = record["flags"] & 0xFFFF
        self._host = np.zeros(0, np.uint8)

    def give(self, name: str, fields: Values) -> None:
        """Put an instruction into the queue of its unit."""
        self.rtl.hand_over(name, build([(name, fields)]))

    def give_tiles(self, name: str, fields: Values) -> None:
        """Put an instruction into the queues of its tiles."""
        self.rtl.hand_over(name, build([(name, fields)]), fields["tiles"])

    def stream(self, fifo: int, data: bytes) -> None:
        """Send ``data`` as the input stream of a PopInput, from any place in a bus word on."""
        first = len(data) % _FIRST
        self._host = np.frombuffer(bytes(first) + data, np.uint8).copy()
        self.rtl.map(0, self._host.ctypes.data, self._host.size)
        self.rtl.descriptor(TAGS[fifo], (1 << 63) + first, len(data))

    def collect(self, size: int) -> None:
        """Take ``size`` output bytes, between guards."""
        self._host = np.full(size + 2 * GUARD, 0xA5, np.uint8)
        self.rtl.map(0, self._host.ctypes.data, self._host.size)
        if size:
            self.rtl.descriptor(DescriptorTag.OUTPUT, (1 << 63) + GUARD, size)

    def compare(self, cycles: int) -> None:
        """Let the RTL run, and compare memories, buffers and flags with the slow core's."""
        self.rtl.run(cycles)
        for name, memory in (
            ("scalar_memory", "memory"),
            ("activations", "activations"),
            ("parameters", "parameters"),
        ):
            wanted = np.frombuffer(bytes(getattr(self.slow, memory)), np.uint8)
            different = np.flatnonzero(getattr(self.rtl, name).view(np.uint8) != wanted)
            assert not len(different), f"{name}: {len(different)} bytes differ: {different[:8]}"
        wanted_flags = [flag % 65536 for flag in self.slow.flags]
        assert self.rtl.scalar_flags.tolist() == wanted_flags, "scalar flags"

    def compare_output(self) -> None:
        """Compare what has arrived at the host, and what lies around it."""
        expected = b"\xa5" * GUARD + self.slow.output + b"\xa5" * GUARD
        assert self._host.tobytes() == expected, "output bytes"

    def compare_tokens(self, channel: int, count: int) -> None:
        """Every tile has seen so many turns on the ring."""
        turns = self.rtl.tile_flags[:, 17:]
        assert turns[:, channel].tolist() == [count % 65536] * chip.TILES, "turns on the ring"
        assert not turns[:, 1 - channel].any(), "turns on the other channel"
