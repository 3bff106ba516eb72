"""The host's instruction queue: ring, doorbell, status block, and everything that can be wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product

import cocotb
import pyuvm
from cocotb.task import Task
from cocotb.triggers import Combine, RisingEdge
from darwinn_rtl.dma.descriptor_model import Descriptor
from darwinn_rtl.dma.environment import DmaEnvironment, DmaTest, IssueDescriptors
from darwinn_rtl.dma.programs import MEMORY_BYTES
from darwinn_sim.host.memory import PAGE_BYTES
from darwinn_sim.host.registers import register
from darwinn_sim.isa.codes import DescriptorTag
from instruction_queue import (
    CHUNKS,
    ENABLE,
    ENTRY_BYTES,
    GOOD,
    LIMIT,
    RING,
    RING_PLACE,
    STATUS,
    STATUS_BLOCK,
    STATUS_PLACE,
    WINDOW,
    Queue,
)

INBOUND, EXTENDED, BAD_CONFIGURATION, INVALID, LENGTH_0 = 1, 2, 1 << 5, 1 << 9, 1 << 13
READ_RESPONSE, WRITE_RESPONSE = 2, 4
ADDRESS_BITS = 40
LAST_PAGE = MEMORY_BYTES - PAGE_BYTES
LONGEST = 1 << 28
"""Bytes of the longest chunk."""


@pyuvm.test()
class RingOfChunks(DmaTest):
    """Chunks come in order and whole, however the host queues them and however slow memory is; and
    heads, status block and interrupt follow."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, random = Queue(environment), self.bench.random
        for pressure, block in ((0.0, STATUS), (0.5, WINDOW + STATUS_PLACE)):
            await queue.open({**GOOD, "instruction_queue_status_block_base": block})
            queue.memory.set_pressure(pressure)
            size, tail, taken = GOOD["instruction_queue_size"], 0, 0
            posted: list[bytes] = []
            for _ in range(12):
                for _ in range(random.randint(1, size - 1 - (len(posted) - taken))):
                    at, length = CHUNKS + random.randrange(0x4000), random.randint(1, 300)
                    queue.post(tail, WINDOW + at, length)
                    posted.append(bytes(queue.memory.data[at : at + length]))
                    tail = (tail + 1) % size
                    if random.random() < 0.5:
                        await queue.write("instruction_queue_tail", tail)
                await queue.write("instruction_queue_tail", tail)
                for _ in range(random.randint(1, len(posted) - taken)):
                    await queue.write("instruction_queue_int_status", 0)
                    assert await queue.take() == posted[taken], f"chunk {taken}"
                    taken += 1
                    await queue.told(taken % size)
                    found = await queue.heads()
                    assert found == (taken % size, taken % size), f"heads are {found} of {taken}"
            assert await queue.read("hib_error_status") == 0
            await self.works_after_off(queue)

    async def works_after_off(self, queue: Queue) -> None:
        """Off and on, the queue begins at its first entry."""
        for on in (False, True):
            await queue.write("instruction_queue_tail", 0)
            await queue.turn(on=on)
        queue.post(0, WINDOW + CHUNKS, 24)
        await queue.write("instruction_queue_tail", 1)
        assert await queue.take() == queue.memory.data[CHUNKS : CHUNKS + 24]


@dataclass(frozen=True)
class Wrong:
    """Something wrong: other ``settings``, the tail that is written, the chunk's size, words of
    memory that are bad; and what is reported, in which register."""

    reported: int
    settings: Mapping[str, int] = field(default_factory=dict)
    tail: int = 1
    size: int = 40
    bad_place: int = -1
    pages: bool = True
    register: str = "hib_error_status"
    fault_address: int = 0
    gives: bool = False
    """The chunk comes nevertheless."""


BEYOND = WINDOW + MEMORY_BYTES * 65536 * 4
NOWHERE = STATUS + PAGE_BYTES
"""An address without a page."""
BLOCK = "instruction_queue_status_block_base"
WRONG = (
    Wrong(BAD_CONFIGURATION, {"instruction_queue_size": 0}, tail=0),
    *(
        Wrong(BAD_CONFIGURATION, {name: address | 1 << bit}, tail=0)
        for name, address in (("instruction_queue_base", RING), (BLOCK, STATUS))
        for bit in range(4)  # of a multiple of 16
    ),
    Wrong(INVALID, tail=5),
    Wrong(INVALID, {"instruction_queue_control": 0}),
    Wrong(LENGTH_0, size=0),
    Wrong(INVALID, size=(1 << 28) + 1),
    Wrong(INBOUND, pages=False, fault_address=RING),
    Wrong(INBOUND, {"extended_table": RING >> 12}, fault_address=RING),
    Wrong(INBOUND, {"instruction_queue_base": 1 << 40}, fault_address=1 << 40),
    Wrong(EXTENDED, {"instruction_queue_base": BEYOND}, fault_address=BEYOND),
    Wrong(INBOUND, {BLOCK: NOWHERE}, fault_address=NOWHERE, gives=True),
    Wrong(EXTENDED, {BLOCK: BEYOND}, fault_address=BEYOND, gives=True),
    *(
        Wrong(READ_RESPONSE, bad_place=RING_PLACE + inner, register="harness_dma_error")
        for inner in (0, 4, 8, 12)  # each word of an entry on the narrowest bus
    ),
    Wrong(WRITE_RESPONSE, bad_place=STATUS_PLACE, register="harness_dma_error", gives=True),
)


@pyuvm.test()
class QueueErrors(DmaTest):
    """Each error is reported by its bit and no other, and the fatal interrupt, and nothing comes of
    it; of errors of the bus either kind."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue = Queue(environment)
        for wrong, decode_errors in product(WRONG, (False, True)):
            if decode_errors and wrong.bad_place < 0:
                continue
            await queue.open({**GOOD, **wrong.settings}, pages=wrong.pages)
            await queue.map(NOWHERE, 0, valid=False)
            queue.memory.decode_errors = decode_errors
            if wrong.bad_place >= 0:
                queue.memory.bad_words = frozenset((wrong.bad_place // queue.memory.word_bytes,))
            for place in range(GOOD["instruction_queue_size"]):
                queue.post(place, WINDOW + CHUNKS, 40 if place else wrong.size)
            await queue.write("instruction_queue_tail", wrong.tail)
            if wrong.gives:
                await queue.take()
            await self.bench.cycles(60)
            for name in ("hib_error_status", "harness_dma_error"):
                found = await queue.read(name)
                assert found == wrong.reported * (name == wrong.register), f"{wrong}: {found:#x}"
            assert environment.interrupts.lines & 0x20, f"{wrong}: no fatal interrupt"
            told = bool(environment.interrupts.lines & 0x10)
            assert told == (wrong.bad_place == STATUS_PLACE), f"{wrong}: told of the chunk: {told}"
            assert await queue.read("page_fault_address") == wrong.fault_address, wrong
            if not wrong.gives:
                assert not int(self.bench.dut.queue2core_chunk_waits.value), wrong
            if wrong.register == "hib_error_status":
                await self.reports_another_behind(queue, wrong)
            off = (
                wrong.reported == BAD_CONFIGURATION or "instruction_queue_control" in wrong.settings
            )
            assert await queue.read("instruction_queue_status") == int(not off), wrong

    async def reports_another_behind(self, queue: Queue, wrong: Wrong) -> None:
        """The first error stays the first; and what is cleared comes only with another error."""
        assert await queue.read("hib_first_error_status") == wrong.reported, wrong
        await queue.write("instruction_queue_tail", 7)
        await self.bench.cycles(4)
        assert await queue.read("hib_error_status") == wrong.reported | INVALID, wrong
        assert await queue.read("hib_first_error_status") == wrong.reported, wrong
        await queue.write("hib_error_status", 0)
        await self.bench.cycles(20)
        assert await queue.read("hib_error_status") == 0, wrong


@pyuvm.test()
class EmptyOnBothSides(DmaTest):
    """A descriptor of no bytes and a chunk of no bytes, each in any cycle around the other, are
    reported: by the bit that both have."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue = Queue(environment)
        for delay in range(40):
            await queue.open({**GOOD, "harness_window_base": WINDOW})
            queue.post(0, WINDOW + CHUNKS, 0)
            ringing = cocotb.start_soon(queue.write("instruction_queue_tail", 1))
            await self.bench.cycles(delay)
            empty = [Descriptor(DescriptorTag.INPUT, WINDOW, 0)]
            await IssueDescriptors(self.bench, empty).start(environment.descriptors.sequencer)
            await ringing
            await self.bench.cycles(40)
            for name in ("hib_error_status", "hib_first_error_status"):
                assert await queue.read(name) == LENGTH_0, f"{delay}: {name}"


@pyuvm.test()
class ClearedMeanwhile(DmaTest):
    """A status bit that the host clears in the very cycle of another event stays set, as assertions
    of the RTL say."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, longest = Queue(environment), 40
        await queue.open({**GOOD, "instruction_queue_size": longest + 1})
        for number in range(longest):
            queue.post(number, WINDOW + CHUNKS, 8)
            await queue.write("instruction_queue_tail", number + 1)
            await queue.take()
            await self.bench.cycles(number)
            await queue.write("instruction_queue_int_status", 0)
            await queue.reached(number + 1)
        for number in range(longest):
            await queue.open({**GOOD, "instruction_queue_tail": 7})
            assert await queue.read("fatal_err_int_status") == 1
            queue.post(0, WINDOW + CHUNKS, 0)
            await queue.write("instruction_queue_tail", 1)
            await self.bench.cycles(number)
            await queue.write("fatal_err_int_status", 0)
            await self.bench.cycles(longest)


@pyuvm.test()
class RingOverPages(DmaTest):
    """A ring that is longer than a page, whose pages lie anywhere; heads and tail have more than
    eight bits, and begin anew behind its last entry."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, size, before = Queue(environment), 300, 10
        first = RING + PAGE_BYTES - ENTRY_BYTES * before
        await queue.open({**GOOD, "instruction_queue_base": first, "instruction_queue_size": size})
        places = (RING_PLACE, 0x2000, 0x6000)
        for number, place in enumerate(places):
            await queue.map(RING + PAGE_BYTES * number, place)
        for entry in range(size):
            page, offset = divmod(first - RING + ENTRY_BYTES * entry, PAGE_BYTES)
            queue.post_at(places[page] + offset, WINDOW + CHUNKS + 8 * entry, 8)
        for taken in range(size + 5):
            if taken in (0, before, size - 1):
                ahead = {0: 256, before: size - 1, size - 1: 5}[taken]
                await queue.write("instruction_queue_tail", ahead)
            at = CHUNKS + 8 * (taken % size)
            assert await queue.take() == queue.memory.data[at : at + 8], f"chunk {taken}"
        await queue.told(5)
        assert await queue.heads() == (5, 5)
        assert await queue.read("hib_error_status") == 0


@pyuvm.test()
class AnyAddress(DmaTest):
    """Every bit of a page's address reaches the bus, and so does every bit of an offset in the
    window."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, first = Queue(environment), MEMORY_BYTES.bit_length() - 1
        for bit in range(first, ADDRESS_BITS):
            place = RING_PLACE | 1 << bit
            for base in (RING, WINDOW + place):
                await self.reads(queue, base, place)

    async def reads(self, queue: Queue, base: int, place: int) -> None:
        """A queue at ``base``, which pages may map to ``place``, reads there."""
        dut = self.bench.dut
        window = {"harness_window_size": 1 << ADDRESS_BITS}
        await queue.open({**window, **GOOD, "instruction_queue_base": base})
        queue.memory.set_pressure(1.0)
        await queue.map(RING, place)
        await queue.write("instruction_queue_tail", 1)
        await self.bench.until(lambda: bool(dut.m_axi_arvalid.value), "a read", LIMIT)
        assert int(dut.m_axi_araddr.value) == place, f"{base:#x} is at {place:#x}"


@pyuvm.test()
class OutOfReach(DmaTest):
    """Nothing is read where the ring is out of reach, by any bit: of a simple address those that no
    page has, of a page and in a window those that the bus has not."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, place = Queue(environment), RING_PLACE
        for bit in range(25, 63):
            await self.faults(queue, INBOUND, RING | 1 << bit, place)
        for bit in range(ADDRESS_BITS, 64):
            await self.faults(queue, INBOUND, RING, place | 1 << bit)
        for bit in range(ADDRESS_BITS, 63):
            await self.faults(queue, EXTENDED, WINDOW | 1 << bit | place, place)

    async def faults(self, queue: Queue, error: int, base: int, page: int) -> None:
        """A queue at ``base``, while the page that it might have is ``page``; the window has all
        addresses."""
        window = {"harness_window_size": (1 << 64) - 1}
        await queue.open({**window, **GOOD, "instruction_queue_base": base})
        await queue.map(RING, page)
        queue.post(0, WINDOW + CHUNKS, 40)
        await queue.write("instruction_queue_tail", 1)
        await nothing_offered(queue, f"{base:#x} at {page:#x}")
        assert await queue.read("hib_error_status") == error, f"{base:#x} at {page:#x}"
        assert await queue.read("page_fault_address") == base


@pyuvm.test()
class AnyChunk(DmaTest):
    """Each bit of a chunk's address reaches the bus, or puts it out of reach; a chunk that cannot
    be reached moves no head."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, dut = Queue(environment), self.bench.dut
        word = queue.memory.word_bytes
        for bit in range(3, 64):
            address = WINDOW + CHUNKS ^ 1 << bit
            await queue.open({"harness_window_size": 1 << ADDRESS_BITS, **GOOD})
            queue.post(0, address, 8)
            await queue.write("instruction_queue_tail", 1)
            await self.bench.until(lambda: bool(dut.queue2core_chunk_waits.value), "it", LIMIT)
            queue.memory.set_pressure(1.0)
            await queue.ask()
            if bit < ADDRESS_BITS:
                await self.bench.until(lambda: bool(dut.m_axi_arvalid.value), "a read", LIMIT)
                assert int(dut.m_axi_araddr.value) == (address - WINDOW) // word * word, bit
            else:
                await nothing_offered(queue, f"bit {bit}")
                error = EXTENDED if address >= WINDOW else INBOUND
                assert await queue.read("hib_error_status") == error, bit
                assert await queue.read("page_fault_address") == address
                assert await queue.heads() == (0, 0)


@pyuvm.test()
class AnyWindow(DmaTest):
    """The window begins at any device address: each of its bits counts, those too that put all
    that is aligned out of reach."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, dut = Queue(environment), self.bench.dut
        for bit in range(63):
            window = WINDOW | 1 << bit
            base = window - window % ENTRY_BYTES + RING_PLACE
            settings = {"harness_window_base": window, "instruction_queue_base": base}
            await queue.open({**GOOD, **settings})
            queue.memory.set_pressure(1.0)
            await queue.write("instruction_queue_tail", 1)
            if window % ENTRY_BYTES:
                await self.bench.cycles(20)
                assert not dut.m_axi_arvalid.value, f"{window:#x}: a read"
                assert await queue.read("hib_error_status") == EXTENDED, f"{window:#x}"
            else:
                await self.bench.until(lambda: bool(dut.m_axi_arvalid.value), "a read", LIMIT)
                assert int(dut.m_axi_araddr.value) == RING_PLACE, f"{window:#x}"
        await self.ends_behind_the_entry(queue)

    async def ends_behind_the_entry(self, queue: Queue) -> None:
        """The whole of an entry must be in the window, which may end anywhere."""
        for missing in range(ENTRY_BYTES + 1):
            end = RING_PLACE + ENTRY_BYTES - missing
            settings = {"instruction_queue_base": WINDOW + RING_PLACE, "harness_window_size": end}
            await queue.open({**GOOD, **settings})
            queue.post(0, WINDOW, 8)
            await queue.write("instruction_queue_tail", 1)
            await self.bench.cycles(30)
            found = await queue.read("hib_error_status")
            assert found == EXTENDED * (missing > 0), f"{missing} bytes are out of reach"


@pyuvm.test()
class OnTheBus(DmaTest):
    """What is on the bus stays as it is, whatever the host writes meanwhile."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, dut = Queue(environment), self.bench.dut
        await queue.open(GOOD)
        queue.post(0, WINDOW + CHUNKS, 40)
        queue.memory.set_pressure(1.0)
        await queue.write("instruction_queue_tail", 1)
        await self.bench.until(lambda: bool(dut.m_axi_arvalid.value), "a read", LIMIT)
        await queue.map(RING, STATUS_PLACE)
        await self.bench.cycles(4)
        assert dut.m_axi_arvalid.value and int(dut.m_axi_araddr.value) == RING_PLACE
        queue.memory.set_pressure(0.0)
        assert await queue.take() == queue.memory.data[CHUNKS : CHUNKS + 40]


@pyuvm.test()
class QueueStandsStill(DmaTest):
    """Nothing is read before the scalar core runs, nor while it is halted or DMA is paused."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, dut = Queue(environment), self.bench.dut
        core = "scalar_core_run_control"
        for name, still, goes in ((core, 0, 1), (core, 2, 1), (core, 3, 1), ("dma_pause", 1, 0)):
            await queue.open({**GOOD, name: still})
            queue.post(0, WINDOW + CHUNKS, 40)
            await queue.write("instruction_queue_tail", 1)
            for _ in range(50):
                await self.bench.cycles(1)
                assert not int(dut.m_axi_arvalid.value), f"{name} = {still}: a read"
            await queue.write(name, goes)
            assert await queue.take() == queue.memory.data[CHUNKS : CHUNKS + 40]
            await queue.told(1)


@pyuvm.test()
class OffersNothing(DmaTest):
    """A chunk that has been read is not offered while the core is halted or DMA is paused."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, dut = Queue(environment), self.bench.dut
        for name, still, goes in (("scalar_core_run_control", 2, 1), ("dma_pause", 1, 0)):
            await queue.open(GOOD)
            queue.post(0, WINDOW + CHUNKS, 40)
            await queue.write("instruction_queue_tail", 1)
            await self.bench.until(lambda: bool(dut.queue2core_chunk_waits.value), "it", LIMIT)
            await queue.write(name, still)
            taking = cocotb.start_soon(queue.take())
            await nothing_offered(queue, f"{name} = {still}")
            await queue.write(name, goes)
            assert await taking == queue.memory.data[CHUNKS : CHUNKS + 40]


async def nothing_offered(queue: Queue, when: str) -> None:
    """No chunk is offered, and nothing of the ring is read."""
    dut = queue.bench.dut
    for _ in range(40):
        await queue.bench.cycles(1)
        assert not dut.queue2core_chunk_waits.value, f"{when}: a chunk is offered"
        assert not dut.m_axi_arvalid.value, f"{when}: a read"


async def hold_no_more(queue: Queue, hold: Callable[[bool], None], delay: int) -> None:
    """Hold nothing back any more, after so many cycles."""
    await queue.bench.cycles(delay)
    hold(False)


@pyuvm.test()
class ToldBehindTheBlock(DmaTest):
    """The host hears of a chunk when the status block is written; of a chunk that was done
    meanwhile it hears by another one."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue = Queue(environment)
        await queue.open(GOOD)
        for place in range(2):
            queue.post(place, WINDOW + CHUNKS + 64 * place, 40)
        await queue.write("instruction_queue_tail", 2)
        queue.memory.hold_answers(True)
        for _ in range(2):
            await queue.take()
        await self.bench.cycles(40)
        assert not environment.interrupts.lines & 0x10, "told, and the block is not answered"
        queue.memory.hold_answers(False)
        await queue.told(2)


@pyuvm.test()
class ToldOfAll(DmaTest):
    """The host hears of each chunk, whatever is on its way meanwhile: a block whose words are not
    taken, or that has no answer. The last chunk is done in any cycle around the end of that."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue = Queue(environment)
        for hold in (queue.memory.hold_answers, queue.memory.hold_words):
            for before, delay in product((1, 2, 4), range(-14, 14)):
                await self.hears_of_all(queue, hold, before, delay)
        for before, another in product((1, 2, 3, 4, 8, 16, 30), (False, True)):
            await self.hears_of_the_last(queue, before, another=another)

    async def hears_of_all(
        self, queue: Queue, hold: Callable[[bool], None], before: int, delay: int
    ) -> None:
        await queue.open({**GOOD, "instruction_queue_size": before + 2})
        for place in range(before + 1):
            queue.post(place, WINDOW + CHUNKS, 8)
        hold(True)
        await queue.write("instruction_queue_tail", before + 1)
        for _ in range(before):
            await queue.take()
        await self.bench.cycles(20)
        let_go = cocotb.start_soon(hold_no_more(queue, hold, max(0, delay)))
        await self.bench.cycles(max(0, -delay))
        await queue.take()
        await let_go
        await queue.told(before + 1)

    async def hears_of_the_last(self, queue: Queue, before: int, *, another: bool) -> None:
        """So many chunks are done while the queue reads, and maybe ``another`` while it tells of
        them."""
        dut, memory = self.bench.dut, queue.memory
        await queue.open({**GOOD, "instruction_queue_size": before + 3})
        for place in range(before + 2):
            queue.post(place, WINDOW + CHUNKS, 8)
        dut.dma2core_instruction_ready.value = 0
        await queue.write("instruction_queue_tail", before + 1)
        for _ in range(before):
            await queue.ask()
        await self.bench.cycles(20)
        memory.hold_reads(True)
        await queue.write("instruction_queue_tail", before + 2)
        dut.dma2core_instruction_ready.value = 1
        await self.bench.cycles(20 + before)
        memory.hold_answers(True)
        memory.hold_reads(False)
        await self.bench.cycles(20)
        if another:
            await queue.ask()
            await self.bench.cycles(20)
        memory.hold_answers(False)
        await queue.told(before + another)


async def pauses_behind(queue: Queue, hold: Callable[[bool], None], early: str) -> None:
    """DMA is paused when what is held back has come, and not before."""
    await queue.write("dma_pause", 1)
    for _ in range(20):
        assert not await queue.read("dma_paused"), early
    hold(False)
    await queue.bench.cycles(20)
    assert await queue.read("dma_paused") == 1


@pyuvm.test()
class PausedBehindTheBlock(DmaTest):
    """DMA is not paused before the status block has been answered."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue = Queue(environment)
        await queue.open(GOOD)
        queue.post(0, WINDOW + CHUNKS, 8)
        queue.memory.hold_answers(True)
        await queue.write("instruction_queue_tail", 1)
        await queue.take()
        await self.bench.cycles(20)
        await pauses_behind(queue, queue.memory.hold_answers, "paused, and the block has no answer")


@pyuvm.test()
class PausedBehindTheRead(DmaTest):
    """DMA is not paused before the words of an entry of the ring have come."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue = Queue(environment)
        await queue.open(GOOD)
        queue.post(0, WINDOW + CHUNKS, 8)
        queue.memory.hold_reads(True)
        await queue.write("instruction_queue_tail", 1)
        await self.bench.cycles(20)
        await pauses_behind(queue, queue.memory.hold_reads, "paused, and an entry has not come")


@pyuvm.test()
class WithoutBlock(DmaTest):
    """Without a status block the host hears of each chunk as it is done, whatever the queue reads
    meanwhile."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue = Queue(environment)
        for delay in range(40):
            await queue.open({**GOOD, "instruction_queue_control": ENABLE})
            for place in range(2):
                queue.post(place, WINDOW + CHUNKS, 8)
            await queue.write("instruction_queue_tail", 1)
            moved = cocotb.start_soon(self.moves_the_tail(queue, delay))
            for taken in (1, 2):
                await queue.take()
                await self.bench.cycles(3)
                assert environment.interrupts.lines & 0x10, f"{taken}, {delay}: not told"
                await moved
                await queue.write("instruction_queue_int_status", 0)
            assert await queue.heads() == (2, 2)

    async def moves_the_tail(self, queue: Queue, delay: int) -> None:
        await self.bench.cycles(delay)
        await queue.write("instruction_queue_tail", 2)


@pyuvm.test()
class NothingWhilePaused(DmaTest):
    """A chunk that is done while DMA is paused is told of behind the pause, whether or not another
    one waits."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, dut = Queue(environment), self.bench.dut
        for chunks in (1, 2):
            await queue.open(GOOD)
            for place in range(chunks):
                queue.post(place, WINDOW + CHUNKS, 8)
            dut.dma2core_instruction_ready.value = 0
            await queue.write("instruction_queue_tail", chunks)
            taking = cocotb.start_soon(queue.take())
            await self.bench.cycles(60)
            await queue.write("dma_pause", 1)
            dut.dma2core_instruction_ready.value = 1
            await taking
            for _ in range(60):
                await self.bench.cycles(1)
                assert not dut.m_axi_awvalid.value, "a write while DMA is paused"
            await queue.write("dma_pause", 0)
            await queue.reached(1)


@pyuvm.test()
class AnyTail(DmaTest):
    """Each bit of a tail counts: one that is not in the ring is an error."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue = Queue(environment)
        for bit in range(3, 64):
            await queue.open({**GOOD, "instruction_queue_tail": 1 << bit | 1})
            assert await queue.read("hib_error_status") == INVALID, f"bit {bit}"


@pyuvm.test()
class AnySize(DmaTest):
    """Each bit of a chunk's size reaches the core, up to the longest; and each bit makes a longer
    one an error."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, dut = Queue(environment), self.bench.dut
        for size in (*(1 << bit | 1 for bit in range(28)), LONGEST):
            await self.post(queue, size)
            await self.bench.until(lambda: bool(dut.queue2core_chunk_waits.value), "it", LIMIT)
            assert int(dut.queue2core_chunk_size.value) == size
        for size in (LONGEST + 1, *(1 << bit for bit in range(29, 32))):
            await self.post(queue, size)
            await self.bench.cycles(30)
            assert not dut.queue2core_chunk_waits.value, f"{size:#x} bytes are offered"
            assert await queue.read("hib_error_status") == INVALID, f"{size:#x} bytes"

    async def post(self, queue: Queue, size: int) -> None:
        await queue.open(GOOD)
        queue.post(0, WINDOW + CHUNKS, size)
        await queue.write("instruction_queue_tail", 1)


@pyuvm.test()
class AskedMeanwhile(DmaTest):
    """A chunk that the core asks for while the one before comes, in any cycle: that one may be done
    in the cycle in which this one is begun."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue = Queue(environment)
        for delay in range(40):
            await queue.open(GOOD)
            for place in range(2):
                queue.post(place, WINDOW + CHUNKS, 40)
            await queue.write("instruction_queue_tail", 2)
            await queue.ask()
            await self.bench.cycles(delay)
            await queue.ask()
            await queue.reached(2)
            assert await queue.heads() == (2, 2), f"after {delay} cycles"


@pyuvm.test()
class AnyMoment(DmaTest):
    """DMA is paused, the core halted, the tail moved or the queue turned off in any cycle of two
    chunks: what is to come comes once, in its order and whole, also while the queue is off."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue = Queue(environment)
        for delay in range(70):
            for name, still, goes in (("dma_pause", 1, 0), ("scalar_core_run_control", 2, 1)):
                await self.comes_behind(queue, delay, ((name, still), (name, goes)), 2)
            await self.comes_behind(queue, delay, (("instruction_queue_tail", 4),), 4)
            await self.works_after_off(queue, delay)

    async def comes_behind(
        self, queue: Queue, delay: int, writes: tuple[tuple[str, int], ...], chunks: int
    ) -> None:
        taking = await self.begin(queue, chunks)
        await self.bench.cycles(delay)
        for name, value in writes:
            await queue.write(name, value)
        for number, data in enumerate(await taking):
            assert data == self.chunk(queue, number), f"{writes} after {delay} cycles: {number}"
        await queue.told(chunks)

    async def works_after_off(self, queue: Queue, delay: int) -> None:
        taking = await self.begin(queue, 2)
        counts = {"asked": 0, "come": 0}
        counting = cocotb.start_soon(self.count(counts))
        await self.bench.cycles(delay)
        await queue.turn(on=False)
        taking.cancel()
        self.bench.dut.core2queue_chunk_valid.value = 0
        await self.bench.cycles(60)
        counting.cancel()
        assert counts["come"] == counts["asked"], f"turned off after {delay} cycles: {counts}"
        await queue.write("instruction_queue_tail", 0)
        await queue.turn(on=True)
        await queue.write("instruction_queue_tail", 1)
        assert await queue.take() == self.chunk(queue, 0), f"turned off after {delay} cycles"
        await queue.reached(1)

    async def begin(self, queue: Queue, chunks: int) -> Task[list[bytes]]:
        """Two of four chunks are there, and so many are asked for."""
        await queue.open({**GOOD, "instruction_queue_size": 6})
        for place in range(4):
            queue.post(place, WINDOW + CHUNKS + 64 * place, 24)
        await queue.write("instruction_queue_tail", 2)
        return cocotb.start_soon(self.take(queue, chunks))

    async def count(self, counts: dict[str, int]) -> None:
        """Count the bytes of chunks that the core has been given, and those that have come."""
        dut, edge = self.bench.dut, RisingEdge(self.bench.clk)
        while True:
            await edge
            if dut.core2queue_chunk_valid.value and dut.core2queue_chunk_ready.value:
                counts["asked"] += int(dut.queue2core_chunk_size.value)
            if dut.dma2core_instruction_valid.value and dut.dma2core_instruction_ready.value:
                counts["come"] += int(dut.dma2core_instruction_count.value)

    async def take(self, queue: Queue, chunks: int) -> list[bytes]:
        return [await queue.take() for _ in range(chunks)]

    def chunk(self, queue: Queue, number: int) -> bytes:
        return bytes(queue.memory.data[CHUNKS + 64 * number :][:24])


@pyuvm.test()
class AnyReset(DmaTest):
    """A reset of one cycle, in any cycle of two chunks, leaves nothing on the bus, and the queue
    works as ever."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, dut = Queue(environment), self.bench.dut
        for delay in range(70):
            await queue.open(GOOD)
            for place in range(2):
                queue.post(place, WINDOW + CHUNKS + 64 * place, 24)
            await queue.write("instruction_queue_tail", 2)
            taking = cocotb.start_soon(self.take(queue))
            await self.bench.cycles(delay)
            await self.bench.reset(1)
            taking.cancel()
            dut.core2queue_chunk_valid.value = 0
            for _ in range(20):
                await self.bench.cycles(1)
                for name in ("arvalid", "awvalid", "wvalid"):
                    assert not getattr(dut, f"m_axi_{name}").value, f"{delay}: {name}"
            await queue.open(GOOD)
            queue.post(0, WINDOW + CHUNKS, 24)
            await queue.write("instruction_queue_tail", 1)
            assert await queue.take() == queue.memory.data[CHUNKS : CHUNKS + 24], delay
            await queue.told(1)

    async def take(self, queue: Queue) -> None:
        for _ in range(2):
            await queue.take()


@pyuvm.test()
class ReadsAhead(DmaTest):
    """As many entries as are there, but no more than four, are read before one is asked for; then
    another one for each."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, dut, size = Queue(environment), self.bench.dut, 12
        for tail in range(1, size):
            await queue.open({**GOOD, "instruction_queue_size": size})
            for place in range(tail):
                queue.post(place, WINDOW + CHUNKS, 8)
            await queue.write("instruction_queue_tail", tail)
            reads, taken = 0, 0
            for wanted in (4, 5, 6):
                for _ in range(80):
                    await self.bench.cycles(1)
                    asked = bool(dut.m_axi_arvalid.value and dut.m_axi_arready.value)
                    reads += asked and int(dut.m_axi_araddr.value) < CHUNKS
                assert reads == min(tail, wanted), f"{tail} entries, {taken} taken"
                if taken < tail:
                    await queue.ask()
                    taken += 1


@pyuvm.test()
class LastFault(DmaTest):
    """The address of the last fault, not of the first."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue = Queue(environment)
        await queue.open(GOOD, pages=False)
        for base in (RING, RING + PAGE_BYTES, RING - PAGE_BYTES):
            await queue.map(base, 0, valid=False)
            await queue.write("instruction_queue_tail", 0)
            await queue.turn(on=False)
            await queue.write("instruction_queue_base", base)
            await queue.turn(on=True)
            await queue.write("instruction_queue_tail", 1)
            await self.bench.cycles(20)
            assert await queue.read("page_fault_address") == base


@pyuvm.test()
class StoppedUntilOff(DmaTest):
    """After a descriptor that cannot be reached nothing more is read, even when it could be, until
    the host has turned the queue off and on."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, dut = Queue(environment), self.bench.dut
        # Of the second, what is moved is a queue that is on.
        for name, wrong in (("extended_table", RING >> 12), ("instruction_queue_base", RING + 4)):
            await queue.open(GOOD)
            await queue.write(name, wrong)
            queue.post(0, WINDOW + CHUNKS, 40)
            await queue.write("instruction_queue_tail", 1)
            await self.bench.cycles(60)
            assert await queue.read("hib_error_status") == INBOUND
            place = wrong if name == "instruction_queue_base" else RING
            assert await queue.read("page_fault_address") == place
            for status in ("hib_error_status", "hib_first_error_status", "fatal_err_int_status"):
                await queue.write(status, 0)
            await queue.write(name, GOOD[name])
            for _ in range(60):
                await self.bench.cycles(1)
                assert not int(dut.m_axi_arvalid.value), "a read before the queue was off"
            assert await queue.read("hib_error_status") == 0, "another error"
            await queue.turn(on=False)
            await queue.turn(on=True)
            assert await queue.take() == queue.memory.data[CHUNKS : CHUNKS + 40]


@dataclass(frozen=True)
class Stops:
    """What stops the queue: an entry of this ``size``, a word of memory that is bad, or a status
    block at this address; and whether a chunk comes before."""

    size: int = 40
    bad_place: int = -1
    block: int = STATUS
    gives: bool = False


@pyuvm.test()
class StoppedByEachError(DmaTest):
    """Behind each error nothing more is read or offered, of the entries before it neither, until
    the host has turned the queue off and on."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue = Queue(environment)
        for place in range(3):
            at = RING_PLACE + ENTRY_BYTES * place
            for stops in (Stops(0), Stops(LONGEST + 1), Stops(bad_place=at + 8)):
                await self.stops(queue, place, stops)
        await self.stops(queue, 0, Stops(bad_place=STATUS_PLACE, gives=True))
        for block in (NOWHERE, BEYOND):
            await self.stops(queue, 0, Stops(block=block, gives=True))

    async def stops(self, queue: Queue, place: int, stops: Stops) -> None:
        memory = queue.memory
        await queue.open({**GOOD, BLOCK: stops.block})
        await queue.map(NOWHERE, 0, valid=False)
        if stops.bad_place >= 0:
            memory.bad_words = frozenset((stops.bad_place // memory.word_bytes,))
        for entry in range(4):
            queue.post(entry, WINDOW + CHUNKS + 64 * entry, stops.size if entry == place else 40)
        await queue.write("instruction_queue_tail", place + 1 + stops.gives)
        if stops.gives:
            await queue.take()
        await self.bench.cycles(60)
        assert await queue.read("fatal_err_int_status") == 1, f"{stops} at {place}"
        await queue.write("instruction_queue_tail", 4)
        await nothing_offered(queue, f"{stops} at {place}")
        memory.bad_words = frozenset()
        await queue.write(BLOCK, STATUS)
        queue.post(place, WINDOW + CHUNKS + 64 * place, 40)
        await queue.turn(on=False)
        await queue.turn(on=True)
        for entry in range(4):
            at = CHUNKS + 64 * entry
            assert await queue.take() == memory.data[at : at + 40], f"{stops} at {place}: {entry}"
        await queue.told(4)


@pyuvm.test()
class OffAndOn(DmaTest):
    """A queue that is turned off and on at once begins anew, whatever is on the bus meanwhile:
    what comes of that is nothing to it any more."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue = Queue(environment)
        for delay, (size, fails) in product(range(20), ((24, False), (0, False), (24, True))):
            await self.reads_nothing_old(queue, delay, size, fails=fails)
        for hold in (queue.memory.hold_words, queue.memory.hold_answers):
            for delay in range(24):
                await self.tells_nothing_old(queue, hold, delay)
            for left, delay in product((0, STATUS_BLOCK), range(0, 24, 4)):
                await self.tells_nothing_old(queue, hold, delay, chunks=2, left=left)
                await self.tells_nothing_old(queue, hold, delay, left=left, fails=True)
        for delay in range(60):
            await self.faults_of_nothing_old(queue, delay)

    async def reads_nothing_old(self, queue: Queue, delay: int, size: int, *, fails: bool) -> None:
        """Off in any cycle of the reading of an entry, which may be a bad one, or fail."""
        await self.open(queue, RING_PLACE, fails=fails)
        queue.post(0, WINDOW + CHUNKS, size)
        await queue.write("instruction_queue_tail", 1)
        await self.bench.cycles(delay)
        queue.memory.hold_reads(True)
        await self.turn_off_and_on(queue)
        await self.works(queue, f"off after {delay} cycles")

    async def tells_nothing_old(
        self,
        queue: Queue,
        hold: Callable[[bool], None],
        delay: int,
        *,
        chunks: int = 1,
        left: int = 0,
        fails: bool = False,
    ) -> None:
        """Off while a status block is on its way, which ends in any cycle around that; of further
        chunks the host has not been told. What is ``left`` of the control register stays."""
        await self.open(queue, STATUS_PLACE, fails=fails)
        for place in range(chunks):
            queue.post(place, WINDOW + CHUNKS, 24)
        hold(True)
        await queue.write("instruction_queue_tail", chunks)
        for _ in range(chunks):
            await queue.take()
        await self.bench.cycles(20)
        let_go = cocotb.start_soon(hold_no_more(queue, hold, delay))
        await self.turn_off_and_on(queue, left)
        await let_go
        for _ in range(30):
            await self.bench.cycles(1)
            assert not self.bench.dut.m_axi_awvalid.value, f"{delay}: a block of nothing"
        await self.works(queue, f"a block ends after {delay} cycles")

    async def faults_of_nothing_old(self, queue: Queue, delay: int) -> None:
        """Off and on in two cycles, any around that in which a status block is out of reach: that
        does not stop the new queue."""
        await queue.open({**GOOD, BLOCK: BEYOND})
        for place in range(2):
            queue.post(place, WINDOW + CHUNKS + 64 * place, 24)
        taking = cocotb.start_soon(queue.take())
        await queue.write("instruction_queue_tail", 1)
        await self.bench.cycles(delay)
        host = queue.environment.registers_agent.driver.master
        control = "instruction_queue_control"
        settings = ((control, 0), (control, ENABLE | STATUS_BLOCK), (BLOCK, STATUS))
        writes = [
            cocotb.start_soon(host.write(register(name).offset, value.to_bytes(8, "little")))
            for name, value in settings
        ]
        await Combine(*writes)
        if await queue.read("instruction_queue_completed_head"):
            return  # a chunk of the old queue was still to come, which is the host's to wait for
        await taking
        # The first chunk comes once more if the old queue has given it.
        await queue.write("instruction_queue_tail", 2)
        place = CHUNKS + 64
        wanted, found = queue.memory.data[place : place + 24], b""
        while found != wanted:
            found = await queue.take()

    async def open(self, queue: Queue, place: int, *, fails: bool) -> None:
        """Accesses of ``place`` may fail until the new queue works."""
        await queue.open(GOOD)
        if fails:
            queue.memory.bad_words = frozenset((place // queue.memory.word_bytes,))

    async def turn_off_and_on(self, queue: Queue, left: int = 0) -> None:
        await queue.write("instruction_queue_control", left)
        await queue.write("instruction_queue_int_status", 0)
        await queue.write("instruction_queue_tail", 0)
        queue.post(0, WINDOW + CHUNKS + 64, 24)
        await queue.turn(on=True)

    async def works(self, queue: Queue, when: str) -> None:
        """Nothing has been told, and the first chunk is that of the new ring."""
        queue.memory.bad_words = frozenset()
        await queue.write("instruction_queue_tail", 1)
        queue.memory.hold_reads(False)
        assert not queue.environment.interrupts.lines & 0x10, f"{when}: told of nothing"
        assert await queue.take() == queue.memory.data[CHUNKS + 64 : CHUNKS + 88], when
        await queue.told(1)
        assert await queue.heads() == (1, 1), when


@pyuvm.test()
class AnyPage(DmaTest):
    """Pages whose numbers differ in any one bit are different pages, and any number of them may be
    simple."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue = Queue(environment)
        numbers = (0, *(1 << bit for bit in range(13)))
        await queue.open({"extended_table": 1 << 13, "scalar_core_run_control": 1})
        await queue.write("instruction_queue_size", 2)
        for place, number in enumerate(numbers, 1):
            await queue.map(PAGE_BYTES * number, PAGE_BYTES * place)
            queue.post_at(PAGE_BYTES * place, WINDOW + LAST_PAGE + 8 * place, 8)
        for place, number in enumerate(numbers, 1):
            await queue.write("instruction_queue_base", PAGE_BYTES * number)
            at = LAST_PAGE + 8 * place
            await self.gives(queue, queue.memory.data[at : at + 8], f"page {number}")
        for bit in range(13, 64):
            await queue.write("extended_table", 1 << bit)
            await self.gives(queue, queue.memory.data[at : at + 8], f"{1 << bit} simple entries")

    async def gives(self, queue: Queue, chunk: bytearray, what: str) -> None:
        await queue.write("instruction_queue_control", ENABLE)
        await queue.write("instruction_queue_tail", 1)
        assert await queue.take() == chunk, what
        await queue.write("instruction_queue_tail", 0)
        await queue.write("instruction_queue_control", 0)


@pyuvm.test()
class MappedMeanwhile(DmaTest):
    """The host maps another page in any cycle of two chunks and their status blocks."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue = Queue(environment)
        for delay in range(50):
            await queue.open(GOOD)
            for place in range(2):
                queue.post(place, WINDOW + CHUNKS + 64 * place, 8)
            await queue.write("instruction_queue_tail", 2)
            mapping = cocotb.start_soon(self.maps(queue, delay))
            for place in range(2):
                at = CHUNKS + 64 * place
                assert await queue.take() == queue.memory.data[at : at + 8], f"after {delay} cycles"
            await mapping
            await queue.told(2)

    async def maps(self, queue: Queue, delay: int) -> None:
        await self.bench.cycles(delay)
        await queue.map(RING + PAGE_BYTES, LAST_PAGE)


@pyuvm.test()
class LongRing(DmaTest):
    """Sizes have 64 bits: the heads of a ring that is longer than memory do not wrap."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, chunks = Queue(environment), 3
        for bit in (32, 63):
            await queue.open({**GOOD, "instruction_queue_size": 1 << bit | 2})
            for place in range(chunks):
                queue.post(place, WINDOW + CHUNKS + 64 * place, 40)
            await queue.write("instruction_queue_tail", chunks)
            for taken in range(chunks):
                at = CHUNKS + 64 * taken
                assert await queue.take() == queue.memory.data[at : at + 40]
                await queue.told(taken + 1)
                assert await queue.heads() == (taken + 1, taken + 1)


@pyuvm.test()
class BadlyTurnedOn(DmaTest):
    """A queue that was turned on badly stays off, also when what was wrong has been put right,
    until the host turns it off and on; that no status block is asked for makes none of it good."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue = Queue(environment)
        bad = [wrong.settings for wrong in WRONG if wrong.reported == BAD_CONFIGURATION]
        for settings, block in product(bad, (0, STATUS_BLOCK)):
            control = {"instruction_queue_control": ENABLE | block}
            await queue.open({**GOOD, **settings, **control})
            assert await queue.read("hib_error_status") == BAD_CONFIGURATION, (settings, block)
            for name in settings:
                await queue.write(name, GOOD[name])
            await self.bench.cycles(20)
            assert await queue.read("instruction_queue_status") == 0, (settings, block)
            await queue.turn(on=False)
            await queue.turn(on=True)
            assert await queue.read("instruction_queue_status") == 1
            queue.post(0, WINDOW + CHUNKS, 24)
            await queue.write("instruction_queue_tail", 1)
            assert await queue.take() == queue.memory.data[CHUNKS : CHUNKS + 24]


@pyuvm.test()
class BehindABadTail(DmaTest):
    """A tail out of the ring is an error each time, and stops nothing for good: with a good one
    the queue goes on where it was."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, size = Queue(environment), GOOD["instruction_queue_size"]
        for bad in (size, size + 2, 1 << 40):
            await queue.open(GOOD)
            for place in range(3):
                queue.post(place, WINDOW + CHUNKS + 64 * place, 24)
                await queue.write("instruction_queue_tail", bad)
                assert await queue.read("hib_error_status") == INVALID, (bad, place)
                await queue.write("hib_error_status", 0)
                await queue.write("instruction_queue_tail", place + 1)
                at = CHUNKS + 64 * place
                assert await queue.take() == queue.memory.data[at : at + 24], (bad, place)
                await queue.told(place + 1)


@pyuvm.test()
class AskedWhileFull(DmaTest):
    """A chunk that the core asks for while the engine can take no more descriptors comes when it
    can; and no descriptor is lost."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, dut, chunks = Queue(environment), self.bench.dut, 3
        await queue.open(GOOD)
        for place in range(chunks):
            queue.post(place, WINDOW + CHUNKS + 64 * place, 24)
        dut.dma2input_activation_ready.value = 0
        reads = [Descriptor(DescriptorTag.INPUT, WINDOW + 8 * place, 8) for place in range(120)]
        issue = IssueDescriptors(self.bench, reads)
        issuing = cocotb.start_soon(issue.start(environment.descriptors.sequencer))
        await self.bench.cycles(400)
        assert not issuing.done() and not dut.core2dma_descriptor_ready.value
        await queue.write("instruction_queue_tail", chunks)
        taking = cocotb.start_soon(self.take(queue, chunks))
        await self.bench.cycles(60)
        assert await queue.heads() == (0, 0)
        dut.dma2input_activation_ready.value = 1
        for place, data in enumerate(await taking):
            at = CHUNKS + 64 * place
            assert data == queue.memory.data[at : at + 24], place
        await issuing
        await queue.told(chunks)
        await self.bench.cycles(400)
        assert await queue.read("harness_dma_completed") == len(reads) + chunks

    async def take(self, queue: Queue, chunks: int) -> list[bytes]:
        return [await queue.take() for _ in range(chunks)]


@pyuvm.test()
class WordsBesideAddresses(DmaTest):
    """Words of outputs and of the status block do not wait until their address has been taken:
    memory may wait for both (AMBA AXI, A3.3.1)."""

    async def scenario(self, environment: DmaEnvironment) -> None:
        queue, size, outputs = Queue(environment), 200, WINDOW + LAST_PAGE
        await queue.open(GOOD)
        waiting = cocotb.start_soon(self.waits_for_words(queue))
        for number in range(3):
            data = self.bench.random.randbytes(size)
            environment.source.pending += data
            place = size * number
            write = Descriptor(DescriptorTag.OUTPUT, outputs + place, size)
            await IssueDescriptors(self.bench, [write]).start(environment.descriptors.sequencer)
            queue.post(number, WINDOW + CHUNKS, 24)
            await queue.write("instruction_queue_tail", number + 1)
            await queue.take()
            await queue.told(number + 1)
            await self.bench.cycles(200)
            assert queue.memory.data[LAST_PAGE + place :][:size] == data
        waiting.cancel()

    async def waits_for_words(self, queue: Queue) -> None:
        """Memory takes an address when a word of its burst has been offered."""
        dut, edge = self.bench.dut, RisingEdge(self.bench.clk)
        queue.memory.hold_addresses(True)
        ahead = 0  # addresses that have been taken, less bursts that have all their words
        while True:
            await edge
            offered = ahead < 0 or (ahead == 0 and bool(dut.m_axi_wvalid.value))
            taken = bool(dut.m_axi_awvalid.value and dut.m_axi_awready.value)
            word = dut.m_axi_wvalid.value and dut.m_axi_wready.value
            ahead += taken - bool(word and dut.m_axi_wlast.value)
            if taken or offered:
                queue.memory.hold_addresses(taken)
