"""The cocotb test that performs a folder of workloads; results are written beside them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import cocotb

from darwinn_testbench.rtl.dma_runs import FOLDER_VARIABLE, result_path, workload_path
from darwinn_testbench.rtl.workload import Workload
from darwinn_testbench.rtl.workload_bench import WorkloadBench


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
