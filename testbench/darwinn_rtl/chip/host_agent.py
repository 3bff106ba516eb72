"""Agent of the host: the driver of ``darwinn_sim.host.driver``, and sequences of its actions.

A sequence uses ``agent.call``, which runs a method of the driver in a thread while the simulation
continues; every register access goes over the bus. Only one call runs at a time. A call that waits
for the chip waits for its interrupt lines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, TypeVar

from cocotb.task import bridge
from cocotb.triggers import ClockCycles, Event, Lock, RisingEdge
from darwinn_formats.darwinn import Executable
from darwinn_sim.device.chip import Chip
from darwinn_sim.host.buffers import Request
from darwinn_sim.host.driver import Driver
from darwinn_sim.host.memory import HostMemory
from darwinn_sim.machine.lowering import LoweredProgram, lower
from darwinn_sim.machine.observer import Wanted
from pyuvm import ConfigDB, uvm_agent, uvm_analysis_port, uvm_sequence, uvm_sequencer

from darwinn_rtl.bench import Bench, WaitTimeout
from darwinn_rtl.chip.agent_player import AgentPlayer, MemoryAgent
from darwinn_rtl.chip.core_agent import ChipReset, CoreAgent
from darwinn_rtl.chip.engine import RtlRun, check_assumptions
from darwinn_rtl.chip.host import RtlHost
from darwinn_rtl.dma.register_agent import RegisterAgent

_P = ParamSpec("_P")
_R = TypeVar("_R")

Inputs = Mapping[str, bytes]

LONGEST_PROGRAM = 1 << 22
"""Bound of the wait for a program's end, in cycles. The core's waits within a program are shorter,
and end a program that stands still."""


class _SimulatedHost(RtlHost):
    """Registers and lines are compared by the environment, as they change: a driver is at work."""

    def check(self) -> None:
        """Raise ``RtlFailure`` for a transfer that failed."""
        self.take_events()


@dataclass
class Device:
    """The model's half of a chip in RTL since its reset: memory, registers, core and driver."""

    memory: HostMemory
    host: RtlHost
    chip: Chip
    driver: Driver


class HostSequencer(uvm_sequencer):
    """Where sequences of the host start; they find its agent here."""

    agent: HostAgent


class HostAgent(uvm_agent):
    """The host, and the model of the scalar core that runs the host's queue.

    ``done`` announces each program that ends (its statistics), before the next one begins;
    ``submitted`` each that is queued (its executable and its inputs), ``resets`` each reset.
    ``statistics`` has those of all programs that have ended (``ProgramRun.statistics``).
    """

    def build_phase(self) -> None:
        """Create the parts."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.registers = RegisterAgent.create("registers", self)
        self.memory = MemoryAgent.create("memory", self)
        self.core = CoreAgent.create("core", self)
        self.sequencer = HostSequencer.create("sequencer", self)
        self.sequencer.agent = self
        self.done = uvm_analysis_port("done", self)
        self.submitted = uvm_analysis_port("submitted", self)
        self.resets = uvm_analysis_port("resets", self)
        self.statistics: list[Mapping[str, int]] = []
        self.seed = self.bench.seed
        self._lock = Lock()
        self._queued = Event()
        self._programs: deque[LoweredProgram] = deque()
        self._lowered: dict[tuple[bytes, ...], LoweredProgram] = {}

    def connect_phase(self) -> None:
        """Power the model's half up."""
        self.player = AgentPlayer(self.bench, self.registers, self.memory, self.core)
        self.player.on_reset = partial(self.resets.write, None)
        self.power_up()

    def check_memory(self) -> None:
        """Raise ``MemoryFault`` if the chip has written around the buffers of the queued
        programs."""
        for request in self._requests:
            request.check_guards()

    def power_up(self) -> None:
        """Begin as a new host with empty memory."""
        memory = HostMemory()
        host = _SimulatedHost(memory, self.player)
        driver = Driver(host, memory, seed=self.seed)
        self.device = Device(memory, host, Chip(host, seed=self.seed), driver)
        self.player.unmap_all()
        self._programs.clear()
        self._requests: list[Request] = []

    @property
    def queued(self) -> int:
        """Programs that are queued and have not ended."""
        return len(self._programs)

    async def call(self, work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Run a call that accesses the chip, when no other call of the host runs."""
        async with self._lock:
            result: _R = await bridge(work)(*args, **kwargs)
            return result

    async def submit(self, executable: Executable, inputs: Inputs) -> Request:
        """Map, fill and queue a program's buffers, and ring the doorbell."""
        chunks = tuple(bytes(part.bitstream) for part in executable.instruction_bitstreams)
        if chunks not in self._lowered:
            self._lowered[chunks] = lower(chunks)
            check_assumptions(self._lowered[chunks])
        request = await self.call(self.device.driver.prepare, executable, inputs)
        self.submitted.write((executable, inputs))
        await self.call(self.device.driver.submit, request)
        self._requests.append(request)
        self._programs.append(self._lowered[chunks])
        self._queued.set()
        return request

    async def finish(self, request: Request) -> dict[str, bytes]:
        """Wait for a program's interrupt; its outputs.

        Raises ``ChipReset`` and ``WaitTimeout``, and as ``Driver.finish``.
        """
        lines, device = self.bench.dut.dma2host_interrupt, self.device
        for _ in range(LONGEST_PROGRAM // 64):
            if request.done or (int(lines.value) & 1 and await self.call(self._is_done, request)):
                outputs = await self.call(device.driver.finish, request)
                self._requests.remove(request)
                # Its memory is no longer there.
                await self.call(device.host.map_memory)
                return outputs
            await ClockCycles(self.bench.clk, 64)
            if self.device is not device:
                raise ChipReset
        raise WaitTimeout(f"no interrupt 0 for a program (seed {self.bench.seed})")

    def _is_done(self, request: Request) -> bool:
        self.device.driver.poll()
        return bool(request.done)

    async def run_phase(self) -> None:
        """Run the queued programs, for ever."""
        while True:
            self._queued.clear()
            if not self._programs:
                await self._queued.wait()
            try:
                await self._chunk_at_hand()
                ended = await bridge(self._run_program)(self._programs[0])
            except ChipReset:
                continue
            self.statistics.append(ended)
            self.done.write(ended)
            self._programs.popleft()

    async def _chunk_at_hand(self) -> None:
        edge, waits = RisingEdge(self.bench.clk), self.bench.dut.queue2core_chunk_waits
        while True:
            await edge
            if not self._programs:
                raise ChipReset
            if not self.bench.in_reset and int(waits.value):
                return

    def _run_program(self, program: LoweredProgram) -> Mapping[str, int]:
        """Let the scalar core execute a program; raises ``ChipReset``, and as ``Chip.advance``."""
        device = self.device
        run = RtlRun(device.host, device.chip, program, Wanted())
        device.chip.expect(run)
        while not run.over and device.chip.advance():
            pass
        if not run.over:
            raise AssertionError(f"the core waits: {device.chip.waits}")
        return run.statistics()


# Sequences. Each is made by the factory, so that another can take its place.


class HostSequence(uvm_sequence):
    """An action of a host."""

    @property
    def agent(self) -> HostAgent:
        """The host."""
        agent: HostAgent = self.sequencer.agent
        return agent

    async def do(self, kind: type[HostSequence], **settings: Any) -> Any:
        """Run another sequence within this one; return it when it is done."""
        return await perform(self.agent, kind, **settings)


async def perform(agent: HostAgent, kind: type[HostSequence], **settings: Any) -> Any:
    """Make a sequence by the factory, give it its settings, and run it; return it when it is
    done."""
    sequence = kind.create(kind.__name__)
    for name, value in settings.items():
        setattr(sequence, name, value)
    await sequence.start(agent.sequencer)
    return sequence


class OpenDevice(HostSequence):
    """Reset the chip and bring it up, as the driver does."""

    async def body(self) -> None:
        """Do it."""
        await self.agent.call(self.agent.device.driver.open)


class CloseDevice(HostSequence):
    """Stop the chip, and free everything."""

    async def body(self) -> None:
        """Do it."""
        await self.agent.call(self.agent.device.driver.close)


class RunProgram(HostSequence):
    """Queue a program and wait for its end; ``outputs`` by layer."""

    executable: Executable
    inputs: Inputs
    outputs: Mapping[str, bytes]

    async def body(self) -> None:
        """Do it."""
        request = await self.agent.submit(self.executable, self.inputs)
        self.outputs = await self.agent.finish(request)


class LoadParameters(RunProgram):
    """Run the executable that caches parameters."""


class Infer(RunProgram):
    """Run an inference."""


class InferTwo(HostSequence):
    """Queue two inferences before the first has ended; ``outputs`` of both."""

    executable: Executable
    inputs: tuple[Inputs, Inputs]
    outputs: tuple[Mapping[str, bytes], ...]

    async def body(self) -> None:
        """Do it."""
        requests = [await self.agent.submit(self.executable, each) for each in self.inputs]
        self.outputs = tuple([await self.agent.finish(request) for request in requests])


class ResetDevice(HostSequence):
    """Reset the chip in ``cycles`` cycles, whatever it does then; the host begins anew.

    ``queued`` are the programs that had not ended.
    """

    cycles = 1
    queued = 0

    async def body(self) -> None:
        """Do it."""
        await ClockCycles(self.agent.bench.clk, max(1, self.cycles))
        self.queued = self.agent.queued
        await self.agent.call(self.agent.player.reset)
        self.agent.check_memory()
        self.agent.power_up()
