"""Coverage-directed programs of the host's side: drawn towards conditions and handshakes that have
not come together yet.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import cocotb
import pyuvm
from cocotb.triggers import RisingEdge
from coincidences import Seen
from darwinn_rtl.bench import WaitTimeout
from darwinn_rtl.coverage_report import keep_bins
from darwinn_rtl.dma.descriptor_model import Descriptor, DescriptorModel, Outcome, Performed, Window
from darwinn_rtl.dma.environment import DmaEnvironment, DmaTest
from darwinn_rtl.dma.monitors import Raised
from darwinn_rtl.dma.programs import BOUNDARY, MEMORY_BYTES, DescriptorProgram, Pressure
from darwinn_rtl.dma.stream_agent import Beat
from darwinn_rtl.environment import Subscriber
from darwinn_sim.isa.codes import DescriptorTag
from descriptor_programs import becomes_paused
from host_coincidences import HOST, Knobs
from instruction_queue import (
    CHUNKS,
    ENABLE,
    GOOD,
    RING_PLACE,
    STATUS_BLOCK,
    WINDOW,
    Queue,
)

READS = range(RING_PLACE)
CHUNK_BYTES = 0x4000
WRITES = range(CHUNKS + CHUNK_BYTES, MEMORY_BYTES)
"""What transfers read, and where they write: apart from each other and from what is the queue's."""
LIMIT = 30_000
"""Cycles of the longest wait for one thing."""
PROGRAM_LIMIT = 10 * LIMIT
"""The same for a program and what is done beside it."""
SILENCE = 250
"""Cycles without a beat or an event after which nothing more can come."""
OF_THE_QUEUE = ("instruction_queue_int_status", "harness_dma_completed")
"""Registers that chunks change too."""
CHANNELS = ("arvalid", "rvalid", "awvalid", "wvalid", "bvalid")
REFUSED = (
    Descriptor(DescriptorTag.INPUT, WINDOW, 0),
    Descriptor(9),
    Descriptor(DescriptorTag.OUTPUT, WINDOW + MEMORY_BYTES, 8),
    Descriptor(DescriptorTag.PARAMETERS, WINDOW - 1, 8),
    Descriptor(fence=True, tag=1),
)
RUNS, HALTED = 1, 2
"""Commands of a unit's run control."""


def descriptors(random: Random, knobs: Knobs) -> list[Descriptor]:
    """Descriptors by these knobs, and writes that never meet."""
    found, free = [], WRITES.start + random.randrange(64)
    bounds = (knobs.fences, knobs.interrupts, knobs.refused, knobs.outputs)
    for _ in range(knobs.count):
        kind, size = random.random(), random.randint(1, knobs.longest)
        ends = [sum(bounds[: place + 1]) for place in range(len(bounds))]
        at_edge = random.random() < knobs.edges
        if kind < ends[0]:
            found.append(Descriptor(fence=True))
        elif kind < ends[1]:
            found.append(Descriptor(DescriptorTag.INTERRUPT_0 + random.randrange(4)))
        elif kind < ends[2]:
            found.append(random.choice(REFUSED))
        elif kind < ends[3]:
            if at_edge:
                free = max(free, -(-free // BOUNDARY) * BOUNDARY - random.randint(0, size))
            if free + size < WRITES.stop:
                found.append(Descriptor(DescriptorTag.OUTPUT, WINDOW + free, size))
                free += size + random.randrange(20)
        else:
            tag = random.choice(
                (DescriptorTag.INPUT, DescriptorTag.INPUT, DescriptorTag.PARAMETERS)
            )
            place = random.randrange(READS.start, READS.stop - size)
            if at_edge:
                edge = random.choice((BOUNDARY, 2 * BOUNDARY))
                place = edge - random.randint(1, size)
            found.append(Descriptor(tag, WINDOW + place, size))
    return found


@pyuvm.test()
class Coincidences(DmaTest):
    """Transfers do what the model says, whatever comes together: pauses, halts, resets, a queue
    that is turned off, full queues, errors, accesses of the host. An interrupt is raised when all
    outputs before it are in memory; what is said of outputs on the bus is said of these alone."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        self.queue = queue = Queue(environment)
        queue.read, queue.write = self.apart(queue.read), self.apart(queue.write)
        environment.sinks.beats.connect(Subscriber("bytes", self, self.take_beat).analysis_export)
        events = Subscriber("raised", self, self.take_event)
        environment.monitor.events.connect(events.analysis_export)
        self.model: DescriptorModel[bytearray] | None = None
        self.broken = False
        self.accesses: list[Any] = []
        seen = Seen(HOST, set())
        for number in range(int(os.environ["DARWINN_PROGRAMS"])):
            knobs = HOST.drawn(self.bench.random, seen.missing)
            self.bench.note(f"program {number}: {knobs}")
            for _ in range(knobs.resets):
                await self.round(environment, knobs, broken=True)
            await self.round(environment, knobs)
            seen.take(HOST.told())
            if number % 50 == 49:
                left = sorted(seen.missing)
                self.bench.log.info("%d left after program %d: %s", len(left), number, left)
        keep_bins("coincidences on the host's side", {"pair": seen.bins})
        found = seen.come(float(os.environ["DARWINN_LEAST"]))
        self.bench.log.info("%s in %d cycles", found, self.bench.cycle)

    def apart(self, access: Callable[..., Coroutine[Any, Any, Any]]) -> Any:
        """``access`` of a register in a task of its own, which a reset may answer with an error.

        Who waits for it may be cancelled: the sequencer waits for ever for whoever has asked.
        """

        async def whole(*given: Any) -> Any:
            try:
                return await access(*given)
            except AssertionError:
                if not self.broken:
                    raise

        def begun(*given: Any) -> Any:
            self.accesses = [each for each in self.accesses if not each.done()]
            self.accesses.append(cocotb.start_soon(whole(*given)))
            return self.accesses[-1]

        return begun

    async def round(
        self, environment: DmaEnvironment, knobs: Knobs, *, broken: bool = False
    ) -> None:
        """A program of the engine beside some chunks; a reset breaks it off."""
        random, queue = self.bench.random, self.queue
        self.model = None
        self.broken = False
        self.control = ENABLE | STATUS_BLOCK * knobs.block
        await queue.open({**GOOD, "instruction_queue_control": self.control})
        program, model = self.drawn(random, knobs, bytes(queue.memory.data))
        await queue.write("harness_window_size", MEMORY_BYTES)
        await queue.write("dma_burst_limiter", program.burst_limit)
        queue.memory.bad_words = program.bad_words
        queue.memory.decode_errors = program.decode_errors
        queue.memory.set_pressure(program.pressure.bus)
        environment.sinks.set_pressure(program.pressure.sinks)
        environment.source.set_pressure(program.pressure.source)
        environment.source.pending += program.output
        self.received = {tag: bytearray() for tag in model.streams}
        self.raised, self.chunks, self.latest = 0, 0, self.bench.cycle
        for done, output in zip(program.descriptors, program.output_of(), strict=True):
            model.perform(done, output)
        self.model = model
        asks = self.ask if knobs.switches or broken else self.fetch
        together = [
            cocotb.start_soon(environment.issue(program)),
            cocotb.start_soon(asks(knobs)),
            cocotb.start_soon(self.disturb(knobs)),
        ]
        if broken:
            await self.bench.cycles(random.randint(1, 400))
            self.broken = True
            for task in together[1:]:
                task.cancel()
            self.model = None
            self.bench.dut.core2queue_chunk_valid.value = 0
            await environment.reset()
            # Descriptors that are still to come are issued to the end. Outputs need their bytes,
            # also those behind the program's window: a reset makes it larger.
            outputs = (each for each in program.descriptors if each.tag == DescriptorTag.OUTPUT)
            environment.source.pending += bytes(sum(each.size for each in outputs))
            await self.ended([together[0], *self.accesses], "what a reset has broken off")
            return
        await self.ended(together, "a program and what is done beside it")
        await (self.settle if knobs.switches else self.finish)()
        self.compare(program)

    async def ended(self, tasks: list[Any], what: str) -> None:
        """Wait until these tasks are done, and raise what one of them has raised."""
        try:
            await self.bench.until(lambda: all(task.done() for task in tasks), what, PROGRAM_LIMIT)
        except WaitTimeout as timeout:
            waiting = "\n".join(repr(task) for task in tasks if not task.done())
            raise WaitTimeout(f"{timeout}\nthese have not ended:\n{waiting}") from None
        for task in tasks:
            await task

    def drawn(
        self, random: Random, knobs: Knobs, memory: bytes
    ) -> tuple[DescriptorProgram, DescriptorModel[bytearray]]:
        """Descriptors, what is around them, and a model of memory before them."""
        chosen, word = descriptors(random, knobs), self.queue.memory.word_bytes
        good = [each for each in chosen if each.is_data and each not in REFUSED]
        size = sum(each.size for each in good if each.tag == DescriptorTag.OUTPUT)
        program = DescriptorProgram(
            chosen,
            Window(WINDOW, MEMORY_BYTES),
            memory,
            random.randbytes(size),
            bad_words=frozenset(
                (each.address - WINDOW + random.randrange(each.size)) // word
                for each in good
                if random.random() < knobs.errors
            ),
            pressure=Pressure(knobs.bus, knobs.sinks, knobs.source, knobs.gaps),
            burst_limit=knobs.limit,
            decode_errors=random.random() < 0.5,
        )
        window = program.window
        return program, DescriptorModel(bytearray(memory), window, word, program.bad_words)

    async def fetch(self, knobs: Knobs) -> None:
        """Take chunks that the host posts: some ahead, and some while the one before comes."""
        queue, random, size = self.queue, self.bench.random, GOOD["instruction_queue_size"]
        posted: list[bytes] = []

        async def post(until: int, after: int = 0) -> None:
            await self.bench.cycles(after)
            while len(posted) < min(knobs.chunks, until):
                at, length = CHUNKS + random.randrange(CHUNK_BYTES - 300), random.randint(1, 120)
                queue.post(len(posted) % size, WINDOW + at, length)
                posted.append(bytes(queue.memory.data[at : at + length]))
                await queue.write("instruction_queue_tail", len(posted) % size)

        for number in range(knobs.chunks):
            await post(number + knobs.ahead)
            await self.bench.cycles(random.choice((0, 1, 5, 60)))
            # Of the ring one place stays free.
            until = number + min(random.randint(0, knobs.ahead + 1), size - 1)
            posting = cocotb.start_soon(post(until, random.randint(1, 60)))
            assert await queue.take(LIMIT) == posted[number], f"chunk {number}"
            await posting
            self.chunks += 1
            if random.random() < 0.3 and len(posted) == self.chunks and knobs.block:
                await queue.told(self.chunks % size, LIMIT)

    async def ask(self, knobs: Knobs) -> None:
        """Ask for chunks of a queue that may be turned off; whether they come is not said."""
        queue, random, edge = self.queue, self.bench.random, RisingEdge(self.bench.clk)
        size = GOOD["instruction_queue_size"]
        for place in range(size):
            at, length = CHUNKS + random.randrange(CHUNK_BYTES - 300), random.randint(1, 60)
            queue.post(place, WINDOW + at, length)
        await queue.write("instruction_queue_tail", size - 1)
        for _ in range(knobs.chunks + knobs.switches):
            await self.bench.cycles(random.randint(1, 60))
            self.bench.dut.core2queue_chunk_valid.value = 1
            for _ in range(60):
                await edge
                if self.bench.dut.core2queue_chunk_ready.value:
                    break
            self.bench.dut.core2queue_chunk_valid.value = 0

    async def disturb(self, knobs: Knobs) -> None:
        """Pauses, halts, switches of the queue and accesses of the host, in any order."""
        random = self.bench.random
        acts = [
            *[self.pause] * knobs.pauses,
            *[self.halt] * knobs.halts,
            *[self.switch] * knobs.switches,
            *[self.access] * round(40 * knobs.accesses),
        ]
        random.shuffle(acts)
        for act in acts:
            await self.bench.cycles(random.randint(1, 4 if act == self.access else knobs.pause_gap))
            await act()

    async def pause(self) -> None:
        """DMA is paused for a while: then the bus is silent."""
        queue = self.queue
        await queue.write("dma_pause", 1)
        if self.bench.random.random() < 0.5:  # the pause may end as DMA is paused, or before
            await self.bench.cycles(self.bench.random.randint(0, 25))
            await queue.write("dma_pause", 0)
            return
        await becomes_paused(queue.read, LIMIT)
        for _ in range(self.bench.random.randint(1, 40)):
            await self.bench.cycles(1)
            ports = [getattr(self.bench.dut, f"m_axi_{name}") for name in CHANNELS]
            assert not any(int(port.value) for port in ports), "paused, and the bus is busy"
        await queue.write("dma_pause", 0)

    async def halt(self) -> None:
        """The scalar core is halted for a while."""
        await self.queue.write("scalar_core_run_control", HALTED)
        await self.bench.cycles(self.bench.random.randint(1, 20))
        if self.bench.random.random() < 0.3:
            await self.access()
        await self.queue.write("scalar_core_run_control", RUNS)

    async def switch(self) -> None:
        """The queue is off for a while."""
        await self.queue.turn(on=False)
        await self.bench.cycles(self.bench.random.choice((0, 0, 1, 30)))
        await self.queue.write("instruction_queue_control", self.control)

    async def access(self) -> None:
        """The host reads or writes a register that changes nothing of this."""
        if self.bench.random.random() < 0.5:
            await self.queue.read("dma_paused")
        else:
            await self.queue.write("sc_host_int_control", self.bench.random.randrange(16))

    async def finish(self) -> None:
        """Wait for the end of all, also of the chunks, and compare the registers with the model."""
        queue = self.queue
        assert self.model
        size, wanted = GOOD["instruction_queue_size"], self.model.status()
        wanted["harness_dma_completed"] += self.chunks
        wanted["instruction_queue_int_status"] = int(self.chunks > 0)
        if self.control & STATUS_BLOCK:
            await queue.told(self.chunks % size, LIMIT)
        for _ in range(LIMIT):
            if await queue.read("harness_dma_completed") >= wanted["harness_dma_completed"]:
                break
        await self.silence()
        await self.registers(wanted)

    async def settle(self) -> None:
        """Wait until nothing more can come, and compare the registers that chunks leave alone."""
        await self.queue.turn(on=False)
        model = self.model
        assert model
        await self.bench.until(lambda: self.has_come(model), "the end of a program", LIMIT)
        await self.silence()
        wanted = model.status()
        for name in OF_THE_QUEUE:
            wanted.pop(name)
        await self.registers(wanted)

    def has_come(self, model: DescriptorModel[bytearray]) -> bool:
        """Whether the streams have their bytes, interrupts are raised, outputs are in memory."""
        counts = self.bench.dut.host_coincidences
        return (
            self.raised == len(self.interrupts(model))
            and counts.output_bursts.value == counts.output_answers.value
            and all(
                len(self.received[tag]) == len(stream)
                for tag, stream in model.streams.items()
                if tag != DescriptorTag.INSTRUCTIONS
            )
            and self.queue.memory.data[WRITES.start :] == model.memory[WRITES.start :]
        )

    def interrupts(self, model: DescriptorModel[bytearray]) -> list[Performed]:
        """The interrupts that are raised, in order."""
        return [
            each
            for each in model.performed
            if each.descriptor.is_interrupt and each.outcome is Outcome.STARTED
        ]

    async def registers(self, wanted: dict[str, int]) -> None:
        """These registers have these values."""
        for name, value in wanted.items():
            found = await self.queue.read(name)
            assert found == value, f"{name} is {found:#x}, not {value:#x}"

    async def silence(self) -> None:
        """Wait until there has been no event for a while: nobody waits for refused descriptors."""
        await self.bench.until(
            lambda: self.bench.cycle - self.latest > SILENCE, "the end of a program", LIMIT
        )

    def compare(self, program: DescriptorProgram) -> None:
        """Streams, memory, interrupts, and what was said of outputs on the bus."""
        model, counts = self.model, self.bench.dut.host_coincidences
        assert model
        for tag, stream in model.streams.items():
            if tag != DescriptorTag.INSTRUCTIONS:
                assert self.received[tag] == stream, f"{tag.name} stream"
        for area in (READS, WRITES):
            place = slice(area.start, area.stop)
            assert self.queue.memory.data[place] == model.memory[place], "memory"
        assert self.raised == len(self.interrupts(model))
        assert int(counts.output_bytes.value) == len(program.output), "bytes of outputs on the bus"
        assert int(counts.output_bursts.value) == int(counts.output_answers.value)

    def take_beat(self, beat: Beat) -> None:
        """Keep what streams deliver."""
        if self.model:
            self.received[beat.tag] += beat.data
            self.latest = self.bench.cycle

    def take_event(self, event: object) -> None:
        """Look at memory when an interrupt is raised."""
        self.latest = self.bench.cycle
        if not self.model:
            return
        if not isinstance(event, Raised):
            return
        interrupts = self.interrupts(self.model)
        assert self.raised < len(interrupts), "an interrupt that nobody has asked for"
        own = interrupts[self.raised]
        assert event.number == own.descriptor.tag - DescriptorTag.INTERRUPT_0
        self.raised += 1
        for done in self.model.performed[: own.index]:
            if done.outcome is Outcome.STARTED and done.descriptor.tag == DescriptorTag.OUTPUT:
                at = done.descriptor.address - WINDOW
                place = slice(at, at + done.descriptor.size)
                assert self.queue.memory.data[place] == self.model.memory[place], "not written yet"
