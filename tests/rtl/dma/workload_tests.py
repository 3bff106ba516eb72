"""Workloads on the harness, at full speed: C++ memory and units, Python only waits."""

from __future__ import annotations

import json
import os
from typing import Any

import cocotb
from darwinn_testbench.rtl.dma.environment import CYCLES_PER_DESCRIPTOR, MAX_BURST, STATUS_REGISTERS
from darwinn_testbench.rtl.dma.programs import ProgramGenerator
from darwinn_testbench.rtl.dma.workload import performed_by_model, workload_of
from darwinn_testbench.rtl.dma.workload_bench import WorkloadBench
from darwinn_testbench.rtl.dma.workload_check import check_bytes, check_timing
from darwinn_testbench.rtl.harness import HarnessDescription


@cocotb.test()
async def random_programs(dut: Any) -> None:
    """Bytes, order, status and every cycle of random programs are those of the models."""
    simulation = WorkloadBench(dut)
    bench = simulation.bench
    await simulation.start()
    harness = HarnessDescription(**json.loads(os.environ["DARWINN_HARNESS"]))
    generator = ProgramGenerator(bench.random, harness.data_bytes, MAX_BURST)
    count, cycles = int(os.environ["DARWINN_PROGRAMS"]), 0
    for number in range(count):
        program = generator.program()
        workload = workload_of(program, harness.data_bytes, bench.random.getrandbits(32))
        _, expected = performed_by_model(program, harness.data_bytes)
        limit = CYCLES_PER_DESCRIPTOR * (1 + len(program.descriptors))
        try:
            found = await simulation.perform(workload, limit, STATUS_REGISTERS)
            check_bytes(found, expected)
            cycles += check_timing(workload, found, harness).cycles_rtl
        except AssertionError as error:
            raise AssertionError(f"program {number} of seed {bench.seed}: {error}") from error
    bench.log.info("%d programs, %d cycles", count, cycles)
