"""Tests that never end by themselves (see test_endless.py)."""

from __future__ import annotations

import time
from typing import Any

import cocotb
import pyuvm
from cocotb.triggers import Event
from darwinn_rtl.dma.environment import DmaTest


@pyuvm.test()
class Waits(DmaTest):
    """For what never comes, while the clock runs."""

    async def scenario(self, environment: Any) -> None:
        await self.bench.reset()
        self.bench.note("it begins to wait")
        await Event().wait()


@cocotb.test()
async def loops(dut: Any) -> None:
    """Without a cycle."""
    while True:
        pass


@cocotb.test()
async def sleeps(dut: Any) -> None:
    """Without processor time."""
    time.sleep(1e6)
