"""The cocotb test that :mod:`benchmarks.rtl` measures: the clock runs, and nothing happens."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import Timer
from darwinn_rtl.bench import PERIOD_NS, Bench

CYCLES_VARIABLE, SECONDS_VARIABLE = "DARWINN_IDLE_CYCLES", "DARWINN_IDLE_SECONDS"
"""Environment variables of the simulation: cycles to pass, and the file for processor seconds."""


@cocotb.test()
async def idle(dut: Any) -> None:
    """Only the clock takes time."""
    bench = Bench(dut)
    for name in ("s_axil_aw", "s_axil_w", "s_axil_ar", "core2dma_descriptor_"):
        getattr(dut, f"{name}valid").value = 0
    dut.core2queue_chunk_valid.value = dut.outfeed2dma_output_valid.value = 0
    bench.start(counting=False)
    await bench.reset()
    begun = time.process_time()
    await Timer(int(os.environ[CYCLES_VARIABLE]) * PERIOD_NS, "ns")
    Path(os.environ[SECONDS_VARIABLE]).write_text(str(time.process_time() - begun))
