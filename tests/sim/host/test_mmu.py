"""The page table against a walk of every byte."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from darwinn_sim.errors import PageFault
from darwinn_sim.host.interrupts import InterruptController
from darwinn_sim.host.memory import PAGE_BYTES, HostMemory
from darwinn_sim.host.mmu import EXTENDED_BIT, Mmu
from darwinn_sim.host.register_file import RegisterFile
from hypothesis import given
from hypothesis import strategies as st

SPLIT = 8000


class Walker:
    """Translates one byte after another, straight from the rules: nothing shared with the Mmu."""

    def __init__(self, registers: RegisterFile, memory: HostMemory) -> None:
        self.entries = registers.array("page_table")
        self.split = registers.get("extended_table")
        self.memory = memory

    def byte(self, address: int) -> int | str:
        """Bus address of the byte, or the name of the error."""
        if address >> 63 == 0:
            index = address >> 12
            if index >= self.split or not int(self.entries[index]) & 1:
                return "inbound_page_fault"
            return (int(self.entries[index]) & ~0xFFF) + (address & 0xFFF)
        low = address & ~EXTENDED_BIT
        index = self.split + (low >> 21)
        if low >> 34 or index >= 8192 or not int(self.entries[index]) & 1:
            return "inbound_page_fault"
        table = int(self.entries[index]) & ~0xFFF
        entry = int(self.memory.read(table + 8 * (low >> 12 & 0x1FF), 8).view("<u8")[0])
        if not entry & 1:
            return "extended_page_fault"
        return (entry & ~0xFFF) + (address & 0xFFF)


class Machine:
    """An MMU with some pages mapped: on both sides of tables' ends, with and without holes."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.memory = HostMemory()
        self.registers = RegisterFile()
        self.interrupts = InterruptController(self.registers)
        self.mmu = Mmu(self.memory, self.registers, self.interrupts)
        self.registers.set("extended_table", SPLIT)
        entries = self.registers.array("page_table")
        frames = 0x7_0000_0000 + PAGE_BYTES * np.arange(64, dtype=np.uint64)
        entries[10:20] = random.choice(frames, 10) | np.uint64(1)
        entries[12:15] = frames[:3] | np.uint64(1)
        entries[17] = 0
        entries[SPLIT - 2 : SPLIT] = frames[4:6] | np.uint64(1)
        for index in (0, 1, 191):
            table = self.memory.allocate(f"table {index}", PAGE_BYTES)
            words = table.payload.view("<u8")
            words[:6] = random.choice(frames, 6) | np.uint64(1)
            words[-6:] = frames[20:26] | np.uint64(1)
            words[3] &= ~np.uint64(random.integers(2))
            entries[SPLIT + index] = table.page_addresses[0] | np.uint64(1)

    @property
    def walker(self) -> Walker:
        return Walker(self.registers, self.memory)


STARTS = (
    *(PAGE_BYTES * page for page in (10, 13, 16, 19, SPLIT - 1)),
    *(EXTENDED_BIT + PAGE_BYTES * page for page in (0, 2, 510, 512, 1020, 191 * 512 + 510)),
    EXTENDED_BIT + (1 << 34) - PAGE_BYTES,
)


@given(
    start=st.sampled_from(STARTS),
    delta=st.integers(-40, 40),
    size=st.integers(1, 64) | st.integers(1, 4 * PAGE_BYTES),
    seed=st.integers(0, 3),
)
def test_agrees_with_the_walk_of_every_byte(start: int, delta: int, size: int, seed: int) -> None:
    machine = Machine(seed)
    address = start + delta
    expected = [machine.walker.byte(address + position) for position in range(size)]
    faults = [(position, byte) for position, byte in enumerate(expected) if isinstance(byte, str)]
    if faults:
        first, fault = faults[0]
        with pytest.raises(PageFault) as caught:
            machine.mmu.translate(address, size)
        assert caught.value.address == address + first
        assert caught.value.size == size - first
        assert machine.registers.get("page_fault_address") == address + first
        bit = {"inbound_page_fault": 1, "extended_page_fault": 2}[fault]
        assert machine.registers.get("hib_error_status") == bit
        assert machine.registers.get("hib_first_error_status") == bit
        assert machine.registers.get("fatal_err_int_status") == 1
        return
    pieces = machine.mmu.translate(address, size)
    found = [piece.address + position for piece in pieces for position in range(piece.size)]
    assert found == expected
    for before, after in pairwise(pieces):
        assert before.address + before.size != after.address, "pieces are not merged"


def test_simple_addresses_stop_at_the_split() -> None:
    machine = Machine(0)
    assert machine.mmu.translate((SPLIT - 1) * PAGE_BYTES, PAGE_BYTES)
    with pytest.raises(PageFault):
        machine.mmu.translate(SPLIT * PAGE_BYTES, 1)
    machine.registers.set("extended_table", 8192)
    assert machine.mmu.translate(SPLIT * PAGE_BYTES, 1)
    with pytest.raises(PageFault):
        machine.mmu.translate(EXTENDED_BIT, 1)


@pytest.mark.parametrize("address", [1 << 25, 1 << 62, EXTENDED_BIT | 1 << 34, (1 << 64) - 1])
def test_address_bits_that_index_nothing_are_a_fault(address: int) -> None:
    machine = Machine(0)
    machine.registers.array("page_table")[:] |= np.uint64(1)
    with pytest.raises(PageFault):
        machine.mmu.translate(address, 1)


def test_read_and_write_reach_the_pages() -> None:
    machine = Machine(0)
    region = machine.memory.allocate("buffer", 9000, page_order=np.array([2, 0, 1]))
    entries = machine.registers.array("page_table")
    entries[100:103] = region.page_addresses | np.uint64(1)
    data = np.random.default_rng(1).integers(0, 256, 9000, np.uint8)
    machine.mmu.write(100 * PAGE_BYTES, data)
    assert np.array_equal(region.payload, data)
    assert np.array_equal(machine.mmu.read(100 * PAGE_BYTES + 4090, 100), data[4090:4190])
    region.check_guards()


def test_nothing_is_written_when_a_page_is_missing() -> None:
    machine = Machine(0)
    region = machine.memory.allocate("buffer", PAGE_BYTES)
    machine.registers.array("page_table")[100] = region.page_addresses[0] | np.uint64(1)
    with pytest.raises(PageFault):
        machine.mmu.write(100 * PAGE_BYTES, np.ones(PAGE_BYTES + 1, np.uint8))
    assert not region.payload.any()


def test_a_transfer_of_megabytes_is_translated_at_once() -> None:
    machine = Machine(0)
    pages = 3 * 512
    for index in range(3):
        table = machine.memory.allocate("table", PAGE_BYTES)
        frames = 0x10_0000_0000 + PAGE_BYTES * (512 * index + np.arange(512, dtype=np.uint64))
        table.payload.view("<u8")[:] = frames | np.uint64(1)
        machine.registers.array("page_table")[SPLIT + 20 + index] = table.page_addresses[
            0
        ] | np.uint64(1)
    start = time.perf_counter()
    pieces = machine.mmu.translate(EXTENDED_BIT | 20 << 21, pages * PAGE_BYTES)
    assert pieces == [(0x10_0000_0000, pages * PAGE_BYTES)]
    assert time.perf_counter() - start < 0.5
