"""The environment of the DMA harness: agents, monitors and scoreboard around the design, and the
life of one descriptor program in it.
"""

from __future__ import annotations

from pyuvm import ConfigDB, uvm_env, uvm_sequence

from darwinn_rtl.bench import Bench
from darwinn_rtl.dma.descriptor_agent import DescriptorAgent, DescriptorItem
from darwinn_rtl.dma.descriptor_model import Descriptor
from darwinn_rtl.dma.memory_agent import MemoryAgent
from darwinn_rtl.dma.monitors import DmaMonitor, InterruptMonitor
from darwinn_rtl.dma.programs import (
    CYCLES_PER_DESCRIPTOR,
    STATUS_REGISTERS,
    DescriptorProgram,
)
from darwinn_rtl.dma.register_agent import RegisterAgent, RegisterModel
from darwinn_rtl.dma.scoreboard import Scoreboard
from darwinn_rtl.dma.stream_agent import OutputSource, StreamSinks
from darwinn_rtl.environment import EnvironmentTest
from darwinn_rtl.harness import HarnessDescription

MAX_BURST = HarnessDescription().burst_words
"""Words of the longest burst."""


class IssueDescriptors(uvm_sequence):
    """Issues descriptors in order, with random gaps in a ``share`` of the places."""

    def __init__(self, bench: Bench, descriptors: list[Descriptor], share: float = 0.0) -> None:
        super().__init__("issue_descriptors")
        self._bench = bench
        self._descriptors = descriptors
        self._share = share

    async def body(self) -> None:
        """Issue them; stop when reset comes."""
        random = self._bench.random
        for descriptor in self._descriptors:
            if self._bench.in_reset:
                return
            gap = random.randint(1, 40) if random.random() < self._share else 0
            item = DescriptorItem(descriptor, gap)
            await self.start_item(item)
            await self.finish_item(item)


class DmaEnvironment(uvm_env):
    """Everything around the harness; ``run_program`` does one program from reset to comparison."""

    def build_phase(self) -> None:
        """Create the parts."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.registers_agent: RegisterAgent = RegisterAgent.create("registers_agent", self)
        self.memory: MemoryAgent = MemoryAgent.create("memory", self)
        self.descriptors: DescriptorAgent = DescriptorAgent.create("descriptors", self)
        self.sinks: StreamSinks = StreamSinks.create("sinks", self)
        self.source: OutputSource = OutputSource.create("source", self)
        self.monitor: DmaMonitor = DmaMonitor.create("monitor", self)
        self.interrupts: InterruptMonitor = InterruptMonitor.create("interrupts", self)
        self.scoreboard: Scoreboard = Scoreboard.create("scoreboard", self)

    def connect_phase(self) -> None:
        """Connect the monitors to the scoreboard."""
        self.monitor.events.connect(self.scoreboard.events.analysis_export)
        self.sinks.beats.connect(self.scoreboard.beats.analysis_export)

    @property
    def registers(self) -> RegisterModel:
        """The register model."""
        return self.registers_agent.model

    async def reset(self) -> None:
        """Reset the design and the parts that keep its history."""
        self.scoreboard.forget()
        self.source.pending.clear()
        await self.bench.reset()
        self.registers.reset()

    async def prepare(self, program: DescriptorProgram) -> None:
        """Reset, and prepare everything for ``program`` except its descriptors."""
        await self.reset()
        self.memory.data[:] = program.memory
        self.memory.bad_words = program.bad_words
        self.memory.decode_errors = program.decode_errors
        self.memory.set_pressure(program.pressure.bus)
        self.sinks.set_pressure(program.pressure.sinks)
        self.source.set_pressure(program.pressure.source)
        await self.registers.write("harness_window_base", program.window.base)
        await self.registers.write("harness_window_size", program.window.size)
        if program.burst_limit:
            await self.registers.write("dma_burst_limiter", program.burst_limit)
        self.source.pending += program.output
        self.scoreboard.expect(program, self.memory.word_bytes, MAX_BURST)

    async def issue(self, program: DescriptorProgram) -> None:
        """Issue the program's descriptors; returns when the last has been taken."""
        sequence = IssueDescriptors(
            self.bench, program.descriptors, share=program.pressure.descriptors
        )
        await sequence.start(self.descriptors.sequencer)

    async def run_program(self, program: DescriptorProgram) -> None:
        """Run ``program`` on the design after a reset and compare everything.

        Raises ``Mismatch`` or ``WaitTimeout``.
        """
        await self.prepare(program)
        await self.issue(program)
        await self.finish(program)

    async def finish(self, program: DescriptorProgram) -> None:
        """Wait until ``program`` is done and compare everything."""
        await self.wait(program)
        await self.bench.cycles(2)
        found = {name: await self.registers.read(name) for name in STATUS_REGISTERS}
        self.scoreboard.check(bytes(self.memory.data), found)

    async def wait(self, program: DescriptorProgram) -> None:
        """Wait until ``program`` is done."""
        limit = CYCLES_PER_DESCRIPTOR * (1 + len(program.descriptors))
        try:
            await self.bench.until(self.scoreboard.complete, "the program's end", limit)
        except AssertionError as timeout:
            raise type(timeout)(f"{timeout}\n{self.scoreboard.missing()}") from None


class DmaTest(EnvironmentTest):
    """A test of the DMA engine."""

    environment_class = DmaEnvironment
