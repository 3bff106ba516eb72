"""The DMA engine and the instruction queue at work together, on one bus to host memory."""

from __future__ import annotations

import os
from random import Random

import cocotb
import pyuvm
from darwinn_rtl.dma.descriptor_model import Descriptor, DescriptorModel, Outcome, Window
from darwinn_rtl.dma.environment import DmaEnvironment, DmaTest
from darwinn_rtl.dma.monitors import DmaEvent, Raised
from darwinn_rtl.dma.programs import MEMORY_BYTES, DescriptorProgram, Pressure
from darwinn_rtl.dma.stream_agent import Beat
from darwinn_rtl.environment import Subscriber
from darwinn_sim.isa.codes import DescriptorTag
from descriptor_programs import becomes_paused
from instruction_queue import CHUNKS, GOOD, RING_PLACE, WINDOW, Queue

READS = range(RING_PLACE)
CHUNK_BYTES = 0x4000
WRITES = range(CHUNKS + CHUNK_BYTES, MEMORY_BYTES)
"""What transfers read, and where they write: apart from each other and from what is the queue's."""

LIMIT = 20_000
"""Cycles of the longest wait: a transfer under the heaviest pressure, and pauses."""

LEVELS = (0.0, 0.1, 0.5, 0.8)
CHANNELS = ("arvalid", "rvalid", "awvalid", "wvalid", "bvalid")


def descriptors(random: Random, count: int) -> list[Descriptor]:
    """Transfers, interrupts and fences that are all good, and writes that never meet."""
    found, free = [], WRITES.start + random.randrange(64)
    for _ in range(count):
        kind, size = random.random(), random.choice((1, 7, 8, 64, 200, random.randint(1, 1500)))
        if kind < 0.1:
            found.append(Descriptor(fence=True))
        elif kind < 0.25:
            found.append(Descriptor(DescriptorTag.INTERRUPT_0 + random.randrange(4)))
        elif kind < 0.6 and free + size < WRITES.stop:
            found.append(Descriptor(DescriptorTag.OUTPUT, WINDOW + free, size))
            free += size + random.randrange(200)
        else:
            tag = random.choice((DescriptorTag.INPUT, DescriptorTag.PARAMETERS))
            place = random.randrange(READS.start, READS.stop - size)
            found.append(Descriptor(tag, WINDOW + place, size))
    return found


@pyuvm.test()
class Beside(DmaTest):
    """Whatever the queue does on the bus beside them, transfers do what the model says, and chunks
    come whole and in order: under pressure of each kind, through pauses and errors. An interrupt is
    raised when all outputs before it are in memory."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        self.queue = Queue(environment)
        environment.sinks.beats.connect(Subscriber("bytes", self, self.take_beat).analysis_export)
        events = Subscriber("raised", self, self.take_event)
        environment.monitor.events.connect(events.analysis_export)
        for _ in range(int(os.environ["DARWINN_PROGRAMS"])):
            await self.round(environment)
        assert self.queue.memory.overtaken, "no answer to a write has come before an earlier one"

    async def round(self, environment: DmaEnvironment) -> None:
        """A program of the engine beside some chunks."""
        random, queue = self.bench.random, self.queue
        await queue.open(GOOD)
        program, model = self.drawn(random, bytes(queue.memory.data), queue.memory.word_bytes)
        queue.memory.bad_words = program.bad_words
        queue.memory.decode_errors = program.decode_errors
        queue.memory.set_pressure(program.pressure.bus)
        environment.sinks.set_pressure(program.pressure.sinks)
        environment.source.set_pressure(program.pressure.source)
        environment.source.pending += program.output
        self.received = {tag: bytearray() for tag in model.streams}
        self.model, self.raised, self.chunks = model, 0, 0
        for done, output in zip(program.descriptors, program.output_of(), strict=True):
            model.perform(done, output)
        together = [
            cocotb.start_soon(environment.issue(program)),
            cocotb.start_soon(self.fetch(random.randint(2, 9))),
            cocotb.start_soon(self.pauses(random.randrange(3))),
        ]
        for task in together:
            await task
        await self.finish(environment)

    def drawn(
        self, random: Random, memory: bytes, word: int
    ) -> tuple[DescriptorProgram, DescriptorModel[bytearray]]:
        """Descriptors, what is around them, and a model of memory before them."""
        chosen = descriptors(random, random.randint(1, 16))
        size = sum(each.size for each in chosen if each.tag == DescriptorTag.OUTPUT)
        program = DescriptorProgram(
            chosen,
            Window(WINDOW, MEMORY_BYTES),
            memory,
            random.randbytes(size),
            bad_words=frozenset(
                (each.address - WINDOW + random.randrange(each.size)) // word
                for each in chosen
                if each.is_data and random.random() < 0.1
            ),
            pressure=Pressure(*(random.choice(LEVELS) for _ in range(4))),
            decode_errors=random.random() < 0.5,
        )
        window = program.window
        return program, DescriptorModel(bytearray(memory), window, word, program.bad_words)

    async def fetch(self, count: int) -> None:
        """Post chunks, and take each after a while."""
        queue, random, size = self.queue, self.bench.random, GOOD["instruction_queue_size"]
        for number in range(count):
            at, length = CHUNKS + random.randrange(CHUNK_BYTES - 300), random.randint(1, 300)
            queue.post(number % size, WINDOW + at, length)
            await queue.write("instruction_queue_tail", (number + 1) % size)
            await self.bench.cycles(random.choice((0, 1, 5, 60)))
            found = await queue.take(LIMIT)
            assert found == bytes(queue.memory.data[at : at + length]), f"chunk {number}"
            self.chunks += 1
            if random.random() < 0.3:
                await queue.told(self.chunks % size, LIMIT)

    async def pauses(self, count: int) -> None:
        """Now and then, DMA is paused: then the bus is silent."""
        queue, random = self.queue, self.bench.random
        for _ in range(count):
            await self.bench.cycles(random.randint(1, 300))
            await queue.write("dma_pause", 1)
            await becomes_paused(queue.read, LIMIT)
            for _ in range(random.randint(1, 60)):
                await self.bench.cycles(1)
                ports = [getattr(self.bench.dut, f"m_axi_{name}") for name in CHANNELS]
                assert not any(int(port.value) for port in ports), "paused, and the bus is busy"
            await queue.write("dma_pause", 0)

    async def finish(self, environment: DmaEnvironment) -> None:
        """Wait for the end of all, and compare it with the model."""
        queue, model = self.queue, self.model
        size, wanted = GOOD["instruction_queue_size"], model.status()
        wanted["harness_dma_completed"] += self.chunks
        wanted["instruction_queue_int_status"] = 1
        await queue.told(self.chunks % size, LIMIT)
        for _ in range(LIMIT):
            if await queue.read("harness_dma_completed") >= wanted["harness_dma_completed"]:
                break
        found = {name: await queue.read(name) for name in wanted}
        assert found == wanted
        for tag, stream in model.streams.items():
            if tag != DescriptorTag.INSTRUCTIONS:
                assert self.received[tag] == stream, f"{tag.name} stream"
        for area in (READS, WRITES):
            place = slice(area.start, area.stop)
            assert queue.memory.data[place] == model.memory[place], "memory"

    def take_beat(self, beat: Beat) -> None:
        """Keep what streams deliver."""
        self.received[beat.tag] += beat.data

    def take_event(self, event: DmaEvent) -> None:
        """Look at memory when an interrupt is raised."""
        if not isinstance(event, Raised):
            return
        interrupts = [done for done in self.model.performed if done.descriptor.is_interrupt]
        assert self.raised < len(interrupts), "an interrupt that nobody has asked for"
        own = interrupts[self.raised]
        assert event.number == own.descriptor.tag - DescriptorTag.INTERRUPT_0
        self.raised += 1
        for done in self.model.performed[: own.index]:
            if done.outcome is Outcome.STARTED and done.descriptor.tag == DescriptorTag.OUTPUT:
                at = done.descriptor.address - WINDOW
                place = slice(at, at + done.descriptor.size)
                assert self.queue.memory.data[place] == self.model.memory[place], "not written yet"
