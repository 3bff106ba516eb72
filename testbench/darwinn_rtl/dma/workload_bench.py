"""The workload top in a running simulation: a register driver of a few lines, one workload after
another, and Python asleep while the clock runs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from cocotb.triggers import RisingEdge, SimTimeoutError, with_timeout
from cocotb.utils import get_sim_time

from darwinn_rtl.bench import PERIOD_NS, Bench, WaitTimeout
from darwinn_rtl.dma.workload import DEFAULT_WINDOW, Workload, WorkloadResult
from darwinn_rtl.dma.workload_player import WorkloadPlayer
from darwinn_rtl.registers_rdl import HARNESS_MAP

LONGEST_CYCLES = 200_000_000
"""Default bound of the wait for a workload."""

NO_SETTINGS: Mapping[str, int] = {}

_OFFSETS = {entry.name: entry.offset for entry in HARNESS_MAP}


class WorkloadBench:
    """Performs workloads on ``workload.sv``; create it, then ``start``."""

    def __init__(self, dut: Any) -> None:
        self.bench = Bench(dut)
        self._dut = dut
        dut.go.value = 0
        for name in ("awvalid", "wvalid", "arvalid", "awprot", "arprot"):
            getattr(dut, f"s_axil_{name}").value = 0

    async def start(self) -> None:
        """Start the clock and leave reset."""
        self.bench.start(counting=False)
        await self.bench.reset()

    async def write(self, name: str, value: int) -> None:
        """Write register ``name``."""
        dut = self._dut
        dut.s_axil_awaddr.value = _OFFSETS[name]
        dut.s_axil_wdata.value = value
        dut.s_axil_wstrb.value = 0xFF
        await self._answered(("aw", "w"), "b")

    async def read(self, name: str) -> int:
        """The value of register ``name``."""
        self._dut.s_axil_araddr.value = _OFFSETS[name]
        await self._answered(("ar",), "r")
        return int(self._dut.s_axil_rdata.value)

    async def _answered(self, requests: tuple[str, ...], answer: str) -> None:
        """Hold the requests until they are taken, and wait for the answer."""
        dut, edge = self._dut, RisingEdge(self._dut.clk)
        waiting = list(requests)
        for name in waiting:
            getattr(dut, f"s_axil_{name}valid").value = 1
        while True:
            await edge
            for name in tuple(waiting):
                if getattr(dut, f"s_axil_{name}ready").value:
                    getattr(dut, f"s_axil_{name}valid").value = 0
                    waiting.remove(name)
            if getattr(dut, f"s_axil_{answer}valid").value:
                return

    async def perform(
        self,
        workload: Workload,
        limit: int = LONGEST_CYCLES,
        status: tuple[str, ...] = (),
        settings: Mapping[str, int] = NO_SETTINGS,
    ) -> WorkloadResult:
        """Reset, perform ``workload``, and return its result with the ``status`` registers.

        ``settings`` are further registers to write before, in this order.

        Raises ``WaitTimeout`` if it is not done after ``limit`` cycles.
        """
        dut = self._dut
        dut.go.value = 0
        await self.bench.reset()
        player = WorkloadPlayer(workload)
        if workload.window != DEFAULT_WINDOW:
            await self.write("harness_window_base", workload.window.base)
            await self.write("harness_window_size", workload.window.size)
        if workload.burst_limit:
            await self.write("dma_burst_limiter", workload.burst_limit)
        for name, value in settings.items():
            await self.write(name, value)
        begun_ns = round(get_sim_time("ns")) + PERIOD_NS
        begun = time.process_time()
        dut.go.value = 1
        if workload.descriptors:
            await self._finished(limit, len(workload.descriptors))
        seconds = time.process_time() - begun
        await self.bench.cycles(2)
        result = player.result()
        result.seconds, result.begun_ns = seconds, begun_ns
        result.registers = {name: await self.read(name) for name in status}
        return result

    async def _finished(self, limit: int, descriptors: int) -> None:
        try:
            await with_timeout(RisingEdge(self._dut.finished), limit * PERIOD_NS, "ns")
        except SimTimeoutError:
            seed = self.bench.seed
            raise WaitTimeout(
                f"waited {limit} cycles for the end of {descriptors} descriptors (seed {seed})"
            ) from None
