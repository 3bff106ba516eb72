"""Random descriptor programs on the harness, each compared with the descriptor model."""

from __future__ import annotations

import os
from pathlib import Path

import cocotb
import pyuvm
from darwinn_testbench.rtl import coverage
from darwinn_testbench.rtl.bench import Bench
from darwinn_testbench.rtl.environment import MAX_BURST, DmaEnvironment
from darwinn_testbench.rtl.programs import ProgramGenerator
from pyuvm import ConfigDB, uvm_test


class DmaTest(uvm_test):
    """Builds the environment; a subclass says what happens in it."""

    def build_phase(self):
        self.bench = Bench(cocotb.top)
        ConfigDB().set(None, "*", "BENCH", self.bench)
        self.environment = DmaEnvironment("environment", self)

    async def run_phase(self):
        self.raise_objection()
        self.bench.start()
        await self.scenario(self.environment)
        self.drop_objection()

    async def scenario(self, environment):
        raise NotImplementedError


@pyuvm.test()
class RandomPrograms(DmaTest):
    """Bytes, order, completion and status of any program are those of the model."""

    async def scenario(self, environment):
        generator = ProgramGenerator(self.bench.random, environment_word(self.bench), MAX_BURST)
        count = int(os.environ["DARWINN_PROGRAMS"])
        for number in range(count):
            self.bench.note(f"program {number}")
            await environment.run_program(generator.program())
        self.bench.log.info("%d programs in %d cycles", count, self.bench.cycle)
        coverage.save(Path("coverage.yml"))
        if os.environ.get("DARWINN_COMPLETE_COVERAGE"):
            missing = coverage.missing_bins(("dma.transfer", "dma.outcome", "dma.tag", "dma.fence"))
            assert not missing, f"bins never hit: {missing}"


def environment_word(bench):
    """Bytes of a bus word of the design."""
    return len(bench.dut.m_axi_wstrb)
