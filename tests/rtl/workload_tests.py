"""A recorded workload on the harness, at full speed: C++ memory and units, Python only waits."""

from __future__ import annotations

import os
import time
from pathlib import Path

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge, with_timeout
from darwinn_testbench.rtl.bench import PERIOD_NS, Bench
from darwinn_testbench.rtl.workload_player import WorkloadPlayer

LONGEST_NS = 200_000_000 * PERIOD_NS


@cocotb.test()
async def play(dut):
    """The workload ends, and its result is written for the comparison outside."""
    bench = Bench(dut)
    stalls = None
    if os.environ.get("DARWINN_STALLS"):
        bits = np.random.default_rng(bench.seed).random((4096, 9)) < 0.3
        stalls = (bits << np.arange(9)).sum(axis=1).astype(np.uint32)
    player = WorkloadPlayer(Path(os.environ["DARWINN_WORKLOAD"]), stalls)
    dut.go.value = 0
    for name in ("awvalid", "wvalid", "arvalid", "bready", "rready"):
        getattr(dut, f"s_axil_{name}").value = 0
    bench.start(counting=False)
    await bench.reset()
    begun = time.perf_counter()
    dut.go.value = 1
    if player.descriptors.size:
        await with_timeout(RisingEdge(dut.finished), LONGEST_NS, "ns")
    seconds = time.perf_counter() - begun
    result = player.result()
    result.save(Path(os.environ["DARWINN_RESULT"]))
    cycles = int(result.events["cycle"].max(initial=0))
    bench.log.info("%d cycles, %.0f cycles/s", cycles, cycles / seconds)
