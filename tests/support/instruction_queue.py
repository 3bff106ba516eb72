"""The host's instruction queue on the harness, as host and scalar core have it."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from cocotb.triggers import RisingEdge
from darwinn_rtl.dma.environment import DmaEnvironment
from darwinn_rtl.dma.programs import MEMORY_BYTES
from darwinn_sim.host.registers import register

RING, STATUS = 0x0100_0000, 0x0007_3000
"""Device addresses, one of each half of the page table; RING_PLACE and STATUS_PLACE are the bus
addresses of their pages."""
RING_PLACE, STATUS_PLACE = 0x3000, 0x5000
ENTRY_BYTES, STATUS_BYTES = 16, 16
CHUNKS = 0x8000
"""Where chunks are, on the bus and from the window's base on."""
WINDOW = 1 << 63
VALID = 1
ENABLE, STATUS_BLOCK = 1, 4
LIMIT = 4000
"""Cycles of a wait."""

GOOD = {
    "extended_table": 6144,
    "fatal_err_int_control": 1,
    "instruction_queue_int_control": 1,
    "instruction_queue_base": RING,
    "instruction_queue_status_block_base": STATUS,
    "instruction_queue_size": 5,
    "scalar_core_run_control": 1,
    "instruction_queue_control": ENABLE | STATUS_BLOCK,
}
"""Registers of a queue that is on, in the order in which they are written."""


class Queue:
    """The queue as host and scalar core have it."""

    def __init__(self, environment: DmaEnvironment) -> None:
        self.environment = environment
        self.bench = environment.bench
        self.read, self.write = environment.registers.read, environment.registers.write
        self.memory = environment.memory
        self.guards = self.around_the_status()

    async def open(self, settings: Mapping[str, int], *, pages: bool = True) -> None:
        """Reset, map the pages of ring and status block, and write ``settings``."""
        await self.environment.reset()
        self.memory.data[:] = self.bench.random.randbytes(MEMORY_BYTES)
        self.memory.bad_words = frozenset()
        self.memory.set_pressure(0.0)
        self.guards = self.around_the_status()
        for address, place in ((RING, RING_PLACE), (STATUS, STATUS_PLACE)):
            await self.map(address, place, valid=pages)
        for name, value in settings.items():
            await self.write(name, value)

    async def turn(self, *, on: bool) -> None:
        """Turn the queue on or off."""
        await self.write("instruction_queue_control", GOOD["instruction_queue_control"] * on)

    async def heads(self) -> tuple[int, int]:
        """The fetched and the completed head."""
        return (
            await self.read("instruction_queue_fetched_head"),
            await self.read("instruction_queue_completed_head"),
        )

    async def map(self, address: int, place: int, *, valid: bool = True) -> None:
        """Have the page of a device address at ``place`` on the bus."""
        entry = register("page_table").offset + 8 * (address >> 12)
        await self.environment.registers_agent.write_offset(entry, place | VALID * valid)

    def post(self, place: int, address: int, size: int) -> None:
        """Fill descriptor ``place`` of the ring."""
        self.post_at(RING_PLACE + ENTRY_BYTES * place, address, size)

    def post_at(self, at: int, address: int, size: int) -> None:
        """Fill the descriptor at a bus address."""
        self.memory.data[at : at + ENTRY_BYTES] = struct.pack("<QII", address, size, 0xDEAD)

    async def ask(self, limit: int = LIMIT) -> None:
        """Ask for a chunk, and leave its bytes to whoever takes them."""
        dut, edge = self.bench.dut, RisingEdge(self.bench.clk)
        dut.core2queue_chunk_valid.value = 1
        for _ in range(limit):
            await edge
            if dut.core2queue_chunk_ready.value:
                dut.core2queue_chunk_valid.value = 0
                return
        raise AssertionError("no chunk")

    async def take(self, limit: int = LIMIT) -> bytes:
        """Ask for a chunk, and take its bytes."""
        dut, edge = self.bench.dut, RisingEdge(self.bench.clk)
        data, size = b"", -1
        dut.core2queue_chunk_valid.value = 1
        for _ in range(limit):
            await edge
            if size < 0 and dut.core2queue_chunk_ready.value:
                size = int(dut.queue2core_chunk_size.value)
                dut.core2queue_chunk_valid.value = 0
            if dut.dma2core_instruction_valid.value and dut.dma2core_instruction_ready.value:
                data_word = int(dut.dma2core_instruction_data.value)
                word = data_word.to_bytes(self.memory.word_bytes, "little")
                data += word[: int(dut.dma2core_instruction_count.value)]
            if len(data) == size:
                return data
        raise AssertionError(f"a chunk of {size} bytes, and {len(data)} have come")

    def status(self) -> tuple[int, ...]:
        """The words of the status block."""
        found: tuple[int, ...] = struct.unpack_from("<IIQ", self.memory.data, STATUS_PLACE)
        return found

    def around_the_status(self) -> tuple[bytes, bytes]:
        """Guard bytes before and behind the status block: more than a word of the widest bus."""
        end = STATUS_PLACE + STATUS_BYTES
        data = self.memory.data
        return bytes(data[STATUS_PLACE - 64 : STATUS_PLACE]), bytes(data[end : end + 64])

    async def reached(self, head: int, limit: int = LIMIT) -> None:
        """Wait until the status block says that ``head`` is reached."""
        await self.bench.until(lambda: self.status() == (head, 0, 0), "the status block", limit)

    async def told(self, head: int, limit: int = LIMIT) -> None:
        """Wait until the host has been told that ``head`` is reached, by block and by interrupt."""
        await self.reached(head, limit)
        await self.bench.until(
            lambda: bool(self.environment.interrupts.lines & 0x10), "the queue's line", limit
        )
        assert self.around_the_status() == self.guards, "written beside the status block"
