"""What random transfers do not reach: interrupts in a storm, reset, pause, the queue."""

from __future__ import annotations

import cocotb
import pyuvm
from darwinn_rtl.dma.descriptor_model import Descriptor, DescriptorModel, Outcome
from darwinn_rtl.dma.environment import MAX_BURST, DmaEnvironment, DmaTest
from darwinn_rtl.dma.programs import (
    DescriptorProgram,
    Pressure,
    ProgramGenerator,
)
from darwinn_sim.isa.codes import DescriptorTag
from descriptor_programs import WINDOW, becomes_paused, program

HEAVY = Pressure(0.6, 0.6, 0.6, 0.2)


@pyuvm.test()
class InterruptStorm(DmaTest):
    """No interrupt is lost or counted twice while the host clears status bits all the time."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        random, model = self.bench.random, environment.registers
        numbers = [random.randrange(4) for _ in range(200)]
        storm = program(
            random, [Descriptor(DescriptorTag.INTERRUPT_0 + number) for number in numbers]
        )
        await environment.prepare(storm)
        mask = 0b0101
        await model.write("sc_host_int_control", mask)
        issuing = cocotb.start_soon(environment.issue(storm))
        seen = 0
        while not issuing.done():
            status = await model.read("sc_host_int_status")
            seen |= status
            await model.write("sc_host_int_status", ~status & 0xF)
            assert not environment.interrupts.lines & ~mask & 0xF, "a masked interrupt line is up"
        await self.bench.until(environment.scoreboard.complete, "200 interrupts", 5000)
        counts = await model.read("sc_host_int_count")
        for number in range(4):
            count = counts >> 16 * number & 0xFFFF
            assert count == numbers.count(number), f"interrupt {number} counted {count} times"
        seen |= await model.read("sc_host_int_status")
        assert seen == 0xF, f"status bits seen: {seen:04b}"
        await model.write("sc_host_int_status", 0)
        await self.bench.cycles(2)
        assert not environment.interrupts.lines & 0xF, "a line stays up though its status is clear"


@pyuvm.test()
class FatalErrorInterrupt(DmaTest):
    """Every kind of error raises the line if it is enabled, until the host clears the status."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        model = environment.registers
        bad = (
            Descriptor(DescriptorTag.INPUT, WINDOW.base, 0),
            Descriptor(9),
            Descriptor(DescriptorTag.INPUT, WINDOW.base + WINDOW.size, 1),
            Descriptor(DescriptorTag.INPUT, WINDOW.base, 8),
            Descriptor(DescriptorTag.OUTPUT, WINDOW.base, 8),
        )
        for descriptor in bad:
            for enabled in (True, False):
                chosen = program(self.bench.random, [descriptor], bad_words=frozenset((0,)))
                await environment.prepare(chosen)
                await model.write("fatal_err_int_control", int(enabled))
                await environment.issue(chosen)
                await environment.finish(chosen)
                up = bool(environment.interrupts.lines & 0x20)
                assert up is enabled, f"{descriptor}: line {up}, enabled {enabled}"
                assert await model.read("harness_dma_error_descriptor") == 0
                await model.write("fatal_err_int_status", 0)
                await self.bench.cycles(2)
                assert not environment.interrupts.lines & 0x20, f"{descriptor}: line stays up"


@pyuvm.test()
class ResetInTransfer(DmaTest):
    """A reset at any moment leaves nothing behind: bytes outside the outputs are untouched, and
    the next program runs as if it were the first."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        random = self.bench.random
        generator = ProgramGenerator(random, environment.memory.word_bytes, MAX_BURST)
        for _ in range(40):
            broken = generator.program(pressure=HEAVY)
            await environment.prepare(broken)
            issuing = cocotb.start_soon(environment.issue(broken))
            await self.bench.cycles(random.randint(1, 400))
            await environment.reset()
            await self.bench.until(issuing.done, "the end of the broken program", 100)
            self.check_guards(environment, broken)
            await environment.run_program(generator.program(longest=4, pressure=Pressure()))

    def check_guards(self, environment: DmaEnvironment, broken: DescriptorProgram) -> None:
        """Every byte that changed lies in an output descriptor."""
        model = DescriptorModel(bytearray(broken.memory), broken.window, 8)
        untouched = bytearray(broken.memory)
        found = bytearray(environment.memory.data)
        for descriptor in broken.descriptors:
            done = model.perform(descriptor, bytes(descriptor.size))
            if done.outcome is Outcome.STARTED and descriptor.tag == DescriptorTag.OUTPUT:
                start = descriptor.address - broken.window.base
                found[start : start + descriptor.size] = bytes(descriptor.size)
                untouched[start : start + descriptor.size] = bytes(descriptor.size)
        assert found == untouched, "a byte outside the outputs was written"


@pyuvm.test()
class Pause(DmaTest):
    """While DMA is paused no descriptor begins, refused ones neither, no interrupt is raised, and
    the bus is silent.

    Afterwards the program goes on as if nothing was.
    """

    async def scenario(self, environment: DmaEnvironment) -> None:
        random, model = self.bench.random, environment.registers
        generator = ProgramGenerator(random, environment.memory.word_bytes, MAX_BURST)
        programs = [generator.program(longest=16) for _ in range(15)]
        for chosen in (*programs, generator.refused(300)):
            await environment.prepare(chosen)
            issuing = cocotb.start_soon(environment.issue(chosen))
            await self.bench.cycles(random.randint(1, 200))
            await model.write("dma_pause", 1)
            await becomes_paused(model.read)
            for _ in range(100):
                await self.bench.cycles(1)
                dut = self.bench.dut
                busy = [
                    name
                    for name in ("arvalid", "rvalid", "awvalid", "wvalid", "bvalid")
                    if int(getattr(dut, f"m_axi_{name}").value)
                ]
                assert not busy, f"paused, and yet: {busy}"
                assert not int(dut.dma2monitor_start_valid.value), "paused, and one begins"
                assert not int(dut.dma2interrupts_raise_valid.value), "paused, and an interrupt"
            await model.write("dma_pause", 0)
            await issuing
            await environment.finish(chosen)


SILENT = 12
"""Cycles of a pause in which nothing may begin: a fence that is at the head passes in one."""


@pyuvm.test()
class PausedInEveryCycle(DmaTest):
    """A pause that begins in any cycle of a program with fences, interrupts and refused descriptors
    holds each of them, and is over when the host ends it."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        model, fence = environment.registers, Descriptor(fence=True)
        descriptors = [
            Descriptor(DescriptorTag.INPUT, WINDOW.base + 3, 21),
            fence,
            Descriptor(DescriptorTag.OUTPUT, WINDOW.base + 4096, 9),
            Descriptor(DescriptorTag.INTERRUPT_0),
            fence,
            Descriptor(DescriptorTag.PARAMETERS, WINDOW.base + 64, 0),
            Descriptor(9),
            fence,
            Descriptor(DescriptorTag.INSTRUCTIONS, WINDOW.base + 128, 5),
        ]
        for delay in range(1, 60):
            chosen = program(self.bench.random, descriptors)
            await environment.prepare(chosen)
            issuing = cocotb.start_soon(environment.issue(chosen))
            await self.bench.cycles(delay)
            await model.write("dma_pause", 1)
            begun: list[int] = []
            watching = cocotb.start_soon(self.watch(begun))
            await becomes_paused(model.read)
            await self.bench.cycles(SILENT)
            watching.cancel()
            assert not begun, f"{delay}: in a pause something begins, or an interrupt is raised"
            await model.write("dma_pause", 0)
            assert not await model.read("dma_paused"), f"{delay}: paused, and the pause is over"
            await issuing
            await environment.finish(chosen)

    async def watch(self, begun: list[int]) -> None:
        """Note each cycle in which a descriptor leaves the queue, or an interrupt is raised."""
        dut = self.bench.dut
        while True:
            await self.bench.cycles(1)
            if int(dut.dma2monitor_start_valid.value) or int(dut.dma2interrupts_raise_valid.value):
                begun.append(self.bench.cycle)


@pyuvm.test()
class InstructionQueue(DmaTest):
    """Descriptors of tag 0 move the heads of the instruction queue, which wrap at its size."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        model = environment.registers
        chunks = program(
            self.bench.random,
            [Descriptor(DescriptorTag.INSTRUCTIONS, WINDOW.base + 64 * n, 64) for n in range(7)],
        )
        await environment.prepare(chunks)
        await model.write("instruction_queue_size", 4)
        await model.write("instruction_queue_int_control", 1)
        await model.write("instruction_queue_control", 1)
        assert await model.read("instruction_queue_status") == 1
        await environment.issue(chunks)
        await environment.finish(chunks)
        for head in ("instruction_queue_fetched_head", "instruction_queue_completed_head"):
            assert await model.read(head) == 7 % 4, head
        assert environment.interrupts.lines & 0x10, "the queue's interrupt line is down"
        await model.write("instruction_queue_control", 0)
        assert await model.read("instruction_queue_completed_head") == 0


@pyuvm.test()
class StreamsAreIndependent(DmaTest):
    """A stream that nobody takes does not hold up the others."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        dut = self.bench.dut
        transfers = [Descriptor(DescriptorTag.INPUT, WINDOW.base, 4000)] * 3
        transfers += [
            Descriptor(DescriptorTag.PARAMETERS, WINDOW.base + 4096, 999),
            Descriptor(DescriptorTag.OUTPUT, WINDOW.base + 8191, 1025),
            Descriptor(DescriptorTag.INTERRUPT_0),
        ]
        blocked = program(self.bench.random, transfers)
        await environment.prepare(blocked)
        dut.dma2input_activation_ready.value = 0
        await environment.issue(blocked)
        await self.bench.until(
            lambda: len(environment.scoreboard.done) == 3, "the other streams' transfers", 3000
        )
        dut.dma2input_activation_ready.value = 1
        await environment.finish(blocked)
