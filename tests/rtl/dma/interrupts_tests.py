"""Lines, masks, counts and errors as the host sees them, each on its own."""

from __future__ import annotations

from itertools import permutations, product

import cocotb
import pyuvm
from cocotb.triggers import RisingEdge
from darwinn_rtl.dma.descriptor_model import Descriptor
from darwinn_rtl.dma.environment import DmaEnvironment, DmaTest, IssueDescriptors
from darwinn_sim.host.registers import register
from darwinn_sim.isa.codes import DescriptorTag
from descriptor_programs import WINDOW, program

QUEUE_LINE = 0x10
FATAL = "fatal_err_int_status"
INVALID = 1 << 9


def interrupt(number: int) -> Descriptor:
    """Host interrupt ``number``."""
    return Descriptor(DescriptorTag.INTERRUPT_0 + number)


@pyuvm.test()
class HostLines(DmaTest):
    """Each host interrupt has its own status bit, its own mask and its own line."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        model = environment.registers
        for number in range(4):
            for mask in (1 << number, 0xF, 0xF & ~(1 << number), 0):
                chosen = program(self.bench.random, [interrupt(number)])
                await environment.prepare(chosen)
                await model.write("sc_host_int_control", mask)
                await environment.issue(chosen)
                await environment.finish(chosen)
                assert await model.read("sc_host_int_status") == 1 << number
                lines = environment.interrupts.lines
                assert lines == mask & 1 << number, f"{number}, mask {mask:04b}: {lines:06b}"
                await model.write("sc_host_int_control", 1 << number)
                assert environment.interrupts.lines == 1 << number, "enabled behind its interrupt"
                await model.write("sc_host_int_status", 0xF & ~(1 << number))
                assert not environment.interrupts.lines


@pyuvm.test()
class ClearedMeanwhile(DmaTest):
    """A status bit that the host clears in the very cycle in which its interrupt, or another error,
    comes again stays set, as assertions of the RTL say; both count."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        model = environment.registers
        between = [Descriptor(DescriptorTag.OUTPUT, WINDOW.base, 100), Descriptor(fence=True)]
        for again, status in ((interrupt(1), "sc_host_int_status"), (Descriptor(9), FATAL)):
            for delay in range(50):
                chosen = program(self.bench.random, [again, *between, again])
                await environment.prepare(chosen)
                issuing = cocotb.start_soon(environment.issue(chosen))
                await self.bench.cycles(delay)
                await model.write(status, 0)
                await issuing
                await environment.wait(chosen)
                if status != FATAL:
                    assert await model.read("sc_host_int_count") == 2 << 16


@pyuvm.test()
class QueueMask(DmaTest):
    """The line of the instruction queue is up only while status and mask are."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        model = environment.registers
        chunk = Descriptor(DescriptorTag.INSTRUCTIONS, WINDOW.base, 64)
        for enabled in (0, 1):
            chosen = program(self.bench.random, [chunk])
            await environment.prepare(chosen)
            await model.write("instruction_queue_int_control", enabled)
            await environment.issue(chosen)
            await environment.finish(chosen)
            assert environment.interrupts.lines == QUEUE_LINE * enabled
            await model.write("instruction_queue_int_control", 1 - enabled)
            assert environment.interrupts.lines == QUEUE_LINE * (1 - enabled)
            await model.write("instruction_queue_int_control", 1)
            await model.write("instruction_queue_int_status", 0)
            assert not environment.interrupts.lines


@pyuvm.test()
class CountsBeyondAByte(DmaTest):
    """Counts have 16 bits, and do not carry into each other."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        numbers = [self.bench.random.choice((0, 2)) for _ in range(620)]
        chosen = program(self.bench.random, [interrupt(number) for number in numbers])
        await environment.run_program(chosen)
        counts = await environment.registers.read("sc_host_int_count")
        found = [counts >> 16 * number & 0xFFFF for number in range(4)]
        assert found == [numbers.count(number) for number in range(4)]
        assert min(found[0], found[2]) > 256


@pyuvm.test()
class ErrorDescriptor(DmaTest):
    """The number of the last bad descriptor, whatever is wrong with it, and wherever it stands."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        random = self.bench.random
        good = Descriptor(DescriptorTag.INPUT, WINDOW.base + 1024, 200)
        for bad in (
            Descriptor(DescriptorTag.OUTPUT, WINDOW.base, 0),
            Descriptor(9),
            Descriptor(DescriptorTag.INPUT, WINDOW.base + WINDOW.size, 1),
            Descriptor(DescriptorTag.INPUT, WINDOW.base, 8),
            Descriptor(DescriptorTag.OUTPUT, WINDOW.base, 8),
        ):
            before = random.randint(1, 9)
            chosen = program(
                random, [*[good] * before, bad, *[good] * 3], bad_words=frozenset((0,))
            )
            await environment.prepare(chosen)
            await environment.issue(chosen)
            await environment.finish(chosen)
            found = await environment.registers.read("harness_dma_error_descriptor")
            assert found == before, f"{bad}: number {found}, not {before}"


@pyuvm.test()
class LastErrorDescriptor(DmaTest):
    """Of several that are bad the last one has the register."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        good, bad = Descriptor(DescriptorTag.INPUT, WINDOW.base + 1024, 200), Descriptor(9)
        chosen = program(self.bench.random, [good, bad, good, bad, good])
        await environment.run_program(chosen)
        assert await environment.registers.read("harness_dma_error_descriptor") == 3


@pyuvm.test()
class ErrorsAtOnce(DmaTest):
    """A bad descriptor and a tail out of the ring, each in any cycle around the other, are both
    reported."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        model = environment.registers
        for before, delay in product(range(12), (0, 1)):
            chosen = program(self.bench.random, [*[interrupt(0)] * before, Descriptor(9)])
            await environment.prepare(chosen)
            writing = cocotb.start_soon(model.write("instruction_queue_tail", 1))
            await self.bench.cycles(delay)
            await environment.issue(chosen)
            await environment.wait(chosen)
            await writing
            await self.bench.cycles(2)
            for name, value in (
                ("hib_error_status", INVALID),
                ("harness_dma_error", 1),
                ("harness_dma_error_descriptor", before),
                (FATAL, 1),
            ):
                assert await model.read(name) == value, f"{before}, {delay}: {name}"


BEYOND = 1 << 40
BAD_CONFIGURATION = 1 << 5
REFUSED = {
    1: Descriptor(DescriptorTag.INPUT, WINDOW.base - 1, 8),
    1 << 1: Descriptor(DescriptorTag.OUTPUT, WINDOW.base + BEYOND, 8),
    1 << 13: Descriptor(DescriptorTag.PARAMETERS, WINDOW.base, 0),
}
"""A descriptor for each error that one can have, by its bit."""


@pyuvm.test()
class FirstError(DmaTest):
    """Of two errors of any kinds the first one alone has the register of the first, until the host
    clears that; then the next one has it."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        model = environment.registers
        for first, second in permutations((*REFUSED, INVALID, BAD_CONFIGURATION), 2):
            await environment.reset()
            self.tail = 0
            await self.cause(environment, first)
            await self.cause(environment, second)
            both = f"{first:#x} before {second:#x}"
            assert await model.read("hib_error_status") == first | second, both
            assert await model.read("hib_first_error_status") == first, both
            await model.write("hib_first_error_status", 0)
            await self.cause(environment, second)
            await self.cause(environment, first)
            assert await model.read("hib_first_error_status") == second, both

    async def cause(self, environment: DmaEnvironment, error: int) -> None:
        """An error of this kind."""
        model = environment.registers
        if error == INVALID:
            self.tail += 1
            await model.write("instruction_queue_tail", self.tail)
        elif error == BAD_CONFIGURATION:
            await model.write("instruction_queue_control", 0)
            await model.write("instruction_queue_control", 1)
        else:
            issue = IssueDescriptors(self.bench, [REFUSED[error]])
            await issue.start(environment.descriptors.sequencer)
        await self.bench.cycles(4)


@pyuvm.test()
class DecodeErrors(DmaTest):
    """An answer that nobody is at the address is an error as much as one of a slave."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        for tag, bit in ((DescriptorTag.INPUT, 2), (DescriptorTag.OUTPUT, 4)):
            for decode_errors in (False, True):
                chosen = program(
                    self.bench.random,
                    [Descriptor(tag, WINDOW.base, 40)],
                    bad_words=frozenset((2,)),
                    decode_errors=decode_errors,
                )
                await environment.run_program(chosen)
                assert await environment.registers.read("harness_dma_error") == bit


@pyuvm.test()
class Heads(DmaTest):
    """The fetched head moves when a chunk is begun, the completed one when it is there; neither
    moves for a chunk that is refused, and both are 0 once the queue is off."""

    HEADS = ("instruction_queue_fetched_head", "instruction_queue_completed_head")

    async def heads(self, environment: DmaEnvironment) -> tuple[int, ...]:
        return tuple([await environment.registers.read(name) for name in self.HEADS])

    async def scenario(self, environment: DmaEnvironment) -> None:
        model, dut = environment.registers, self.bench.dut
        sizes = (64, 4000, 64)
        chunks = [
            Descriptor(DescriptorTag.INSTRUCTIONS, WINDOW.base + 4096 * k, size)
            for k, size in enumerate(sizes)
        ]
        beyond = Descriptor(DescriptorTag.INSTRUCTIONS, WINDOW.base + WINDOW.size, 64)
        chosen = program(self.bench.random, [chunks[0], beyond, *chunks[1:]])
        await environment.prepare(chosen)
        await model.write("instruction_queue_size", 8)
        await model.write("instruction_queue_control", 1)
        dut.dma2core_instruction_ready.value = 0
        await environment.issue(chosen)
        await self.bench.cycles(300)
        # The stream gives nothing away, but its buffer has the first chunk.
        assert await self.heads(environment) == (3, 0)
        dut.dma2core_instruction_ready.value = 1
        await environment.finish(chosen)
        assert await self.heads(environment) == (3, 3)
        await model.write("instruction_queue_control", 0)
        assert await self.heads(environment) == (0, 0)


@pyuvm.test()
class ByteStrobes(DmaTest):
    """A write changes the bytes whose strobes are set, in a register and in the page table."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        await environment.reset()
        agent, random = environment.registers_agent, self.bench.random
        for offset in (
            register("instruction_queue_base").offset,
            register("page_table").offset + 8 * 4097,
        ):
            value = random.getrandbits(64)
            await agent.access(write=True, address=offset, data=value)
            for first in range(8):
                for count in range(1, 9 - first):
                    part = random.randbytes(count)
                    await agent.driver.master.write(offset + first, part)
                    octets = bytearray(value.to_bytes(8, "little"))
                    octets[first : first + count] = part
                    value = int.from_bytes(octets, "little")
                    found = await agent.access(write=False, address=offset)
                    assert found.data == value, f"{offset:#x}, bytes {first} to {first + count - 1}"


@pyuvm.test()
class PausedBehindTheLastAnswer(DmaTest):
    """DMA is not paused before the last write has been answered; the interrupt behind that write
    comes when the pause is over."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        model, dut = environment.registers, self.bench.dut
        output = Descriptor(DescriptorTag.OUTPUT, WINDOW.base, 64)
        chosen = program(self.bench.random, [output, interrupt(2)])
        await environment.prepare(chosen)
        environment.memory.hold_answers(True)
        await environment.issue(chosen)
        edge = RisingEdge(dut.clk)
        for _ in range(200):
            await edge
            if dut.m_axi_wvalid.value and dut.m_axi_wready.value and dut.m_axi_wlast.value:
                break
        else:
            raise AssertionError("the output is not written")
        await model.write("dma_pause", 1)
        for _ in range(20):
            assert not await model.read("dma_paused"), "paused, and a write has no answer"
        environment.memory.hold_answers(False)
        await self.bench.cycles(20)
        assert await model.read("dma_paused") == 1
        assert await model.read("sc_host_int_status") == 0, "an interrupt while DMA is paused"
        await model.write("dma_pause", 0)
        await environment.finish(chosen)
