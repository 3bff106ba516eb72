"""Tests of the DMA engine in `rtl/`, on the harness of darwinn-testbench.

`darwinn harness test .` runs every test of every `test_*.py` here. The environment has the AXI
memory, the register agent, the stream agents, monitors and the scoreboard, which compares each
program with an independent model. AXI rules are checked in every cycle.
"""

from __future__ import annotations

import pyuvm
from darwinn_rtl.dma.descriptor_model import Descriptor
from darwinn_rtl.dma.environment import MAX_BURST, DmaEnvironment, DmaTest
from darwinn_rtl.dma.programs import DescriptorProgram, ProgramGenerator
from darwinn_rtl.dma.scoreboard import Scoreboard
from darwinn_sim.isa.codes import DescriptorTag
from pyuvm import uvm_factory

PROGRAMS = 20


@pyuvm.test()
class OneRead(DmaTest):
    """A directed test: 50 bytes of activations from an address within a word."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        generator = ProgramGenerator(self.bench.random, environment.memory.word_bytes, MAX_BURST)
        program = generator.program()
        read = Descriptor(DescriptorTag.INPUT, program.window.base + 0x1003, size=50)
        await environment.run_program(
            DescriptorProgram([read], program.window, program.memory, b"")
        )


@pyuvm.test()
class RandomPrograms(DmaTest):
    """Random descriptors, good and bad, with back-pressure on every channel."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        generator = ProgramGenerator(self.bench.random, environment.memory.word_bytes, MAX_BURST)
        for number in range(PROGRAMS):
            self.bench.note(f"program {number}")
            await environment.run_program(generator.program())


class CountingScoreboard(Scoreboard):
    """The factory puts this one in the place of the environment's."""

    checked = 0

    def check(self, memory: bytes, registers: dict[str, int]) -> None:
        super().check(memory, registers)
        type(self).checked += 1


@pyuvm.test()
class OwnScoreboard(DmaTest):
    """Any component can be replaced through pyuvm's factory."""

    def build_phase(self) -> None:
        uvm_factory().set_type_override_by_type(Scoreboard, CountingScoreboard)
        super().build_phase()

    async def scenario(self, environment: DmaEnvironment) -> None:
        generator = ProgramGenerator(self.bench.random, environment.memory.word_bytes, MAX_BURST)
        await environment.run_program(generator.program())
        assert CountingScoreboard.checked == 1
