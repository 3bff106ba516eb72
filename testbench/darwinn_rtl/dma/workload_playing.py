"""The cocotb tests that perform a folder of workloads, results beside them, or nothing at all."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import Timer

from darwinn_rtl.bench import PERIOD_NS
from darwinn_rtl.dma.runs import FOLDER_VARIABLE, result_path, workload_path
from darwinn_rtl.dma.workload import Workload
from darwinn_rtl.dma.workload_bench import WorkloadBench

IDLE_VARIABLE = "DARWINN_IDLE_CYCLES"
"""Environment variable of the simulation: idle cycles to pass."""


@cocotb.test()
async def play(dut: Any) -> None:
    """Every workload of the folder ends."""
    simulation = WorkloadBench(dut)
    await simulation.start()
    folder, number = Path(os.environ[FOLDER_VARIABLE]), 0
    while (path := workload_path(folder, number)).exists():
        result = await simulation.perform(Workload.load(path))
        result.save(result_path(folder, number))
        number += 1


@cocotb.test()
async def idle(dut: Any) -> None:
    """The clock runs, and nothing happens; processor seconds are written to a file."""
    simulation = WorkloadBench(dut)
    await simulation.start()
    cycles = int(os.environ[IDLE_VARIABLE])
    begun = time.process_time()
    await Timer(cycles * PERIOD_NS, "ns")
    Path(os.environ[FOLDER_VARIABLE], "idle").write_text(str(time.process_time() - begun))
