"""Every register that the kernel driver writes, and the page table that it leaves in the chip."""

from __future__ import annotations

import errno

import numpy as np
import pytest
from apex_queue import PAGE
from darwinn_sim.errors import SimulationError
from darwinn_sim.host.mmu import EXTENDED_BIT
from darwinn_sim.host.registers import register
from darwinn_sim.pcie.function import HostFault, PcieFunction, Watcher
from darwinn_sim.pcie.kernel_driver import KernelDriver
from darwinn_sim.pcie.kernel_memory import KernelMemory
from hypothesis import given, settings
from hypothesis import strategies as st
from pcie_machine import Machine, Program

SCU_2, SCU_3 = 0x1A314, 0x1A318
ENTRIES, TABLE = 8192, 512
KERNEL = 1 << 56
Write = tuple[str, int] | tuple[str, str, int]

ENTERED: list[Write] = [
    ("idle_register", 1 << 31),
    ("dma_pause", 1),
    ("scu_ctrl_2", "3:2", 1),
    ("scu_ctrl_2", "19:18", 1),
    ("scu_ctrl_3", "15:14", 3),
]
LEFT: list[Write] = [
    ("scu_ctrl_3", "15:14", 0),
    ("scu_ctrl_2", "19:18", 0),
    ("scu_ctrl_2", "3:2", 2),
    ("scu_ctrl_3", "27:26", 2),
    ("extended_table", 8192),
    ("instruction_queue_int_vector", 0),
    ("input_actv_queue_int_vector", 1),
    ("param_queue_int_vector", 2),
    ("output_actv_queue_int_vector", 3),
    ("sc_host_int_vector", 4 | 5 << 7 | 6 << 14 | 7 << 21),
    ("top_level_int_vector", 8 | 9 << 7 | 10 << 14 | 11 << 21),
    ("fatal_err_int_vector", 12),
]
"""docs/host-interface.md, "Kernel driver": bits of the two registers of 32 bits that change."""


class Writes(Watcher):
    """What is written, of the two registers around the core with what was read before."""

    def __init__(self) -> None:
        self.read: dict[int, int] = {}
        self.seen: list[tuple[int, int, int, int]] = []

    def register_read(self, offset: int, size: int, value: int) -> None:
        self.read[offset] = value

    def register_written(self, offset: int, size: int, value: int) -> None:
        self.seen.append((offset, size, self.read.get(offset, 0), value))

    def check(self, expected: list[Write]) -> None:
        """Nothing else was written, and of a register of 32 bits nothing else was changed."""
        seen, self.seen = self.seen, []
        assert len(seen) == len(expected)
        for (offset, size, before, value), each in zip(seen, expected, strict=True):
            assert offset == register(each[0]).offset
            if len(each) == 2:
                assert (size, value) == (8, each[1])
                continue
            high, low = map(int, each[1].split(":"))
            mask = (1 << high + 1) - (1 << low)
            assert (size, value) == (4, before & ~mask | each[2] << low), each


def test_opening_closing_and_resetting_write_what_the_document_says() -> None:
    writes = Writes()
    machine = Machine()
    function = PcieFunction(machine._make_chip, watchers=(writes,))
    driver = KernelDriver(function)
    writes.check([])
    driver.open(Program())
    writes.check([*ENTERED, *LEFT])
    driver.reset()
    writes.check([*ENTERED, *LEFT])
    driver.close()
    writes.check(ENTERED)
    driver.open(Program())
    writes.check(LEFT)
    for level in range(4):
        driver.expect_performance(level)
        writes.check([("scu_ctrl_3", "31:28", 8 | 3 - level)])
    for level in (-1, 4):
        with pytest.raises(OSError, match=f"there is no level {level}") as caught:
            driver.expect_performance(level)
        assert caught.value.errno == errno.EINVAL
    driver.partition(100)
    writes.check([("extended_table", 100)])


def test_a_device_that_is_not_ready_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    reads = 0

    def read(offset: int, size: int) -> int:
        nonlocal reads
        reads += 1
        return 0

    monkeypatch.setattr(machine.function, "read", read)
    with pytest.raises(OSError, match="page_table_init does not become") as caught:
        KernelDriver(machine.function)
    assert (caught.value.errno, reads) == (errno.ETIMEDOUT, 100)


@pytest.mark.parametrize(
    ("act", "name", "field", "wrong"),
    [
        ("close", "dma_paused", "", 0),
        ("close", "scu_ctrl_3", "cur_ram_sd", 0),
        ("reset", "dma_paused", "", 0),
        ("reset", "scu_ctrl_3", "cur_ram_sd", 1),
        ("reset", "scu_ctrl_3", "cur_rst_gcb", 1),
    ],
)
def test_what_does_not_follow_while_it_is_reset_is_named(
    act: str, name: str, field: str, wrong: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    entry, read = register(name), machine.function.read
    mask, low = (entry.field(field).mask, entry.field(field).low) if field else (~0, 0)

    def stays(offset: int, size: int) -> int:
        found = read(offset, size)
        return found & ~mask | wrong << low if offset == entry.offset else found

    monkeypatch.setattr(machine.function, "read", stays)
    with pytest.raises(OSError, match=f"{name} does not become what it should") as caught:
        getattr(machine.driver, act)()
    assert caught.value.errno == errno.ETIMEDOUT


def test_nothing_is_mapped_of_a_device_that_is_closed() -> None:
    machine = Machine()
    machine.driver.close()
    machine.driver.partition(100)
    for call in (
        lambda: machine.driver.map(PAGE, EXTENDED_BIT, PAGE),
        lambda: machine.driver.give_coherent(np.zeros(PAGE, np.uint8)),
    ):
        with pytest.raises(OSError, match="the device is not open") as caught:
            call()
        assert caught.value.errno == errno.EBADF


class SlowTable:
    """Pages by number, of both kinds, and what may be mapped."""

    def __init__(self, simple: int, coherent: tuple[int, int]) -> None:
        self.simple = simple
        self.coherent = coherent
        self.pages: dict[tuple[bool, int], int] = {}

    def of(self, device: int, size: int) -> list[tuple[bool, int]] | None:
        """The pages of some bytes; None where no table is indexed by one of them."""
        extended = device >= EXTENDED_BIT
        at = device - EXTENDED_BIT if extended else device
        limit = (ENTRIES - self.simple) * TABLE if extended else self.simple
        if size <= 0 or (at + size - 1) // PAGE >= limit:
            return None
        return [(extended, page) for page in range(at // PAGE, (at + size - 1) // PAGE + 1)]

    def map(self, host: int, device: int, size: int) -> int:
        """The error number, 0 if all is well."""
        if host % PAGE != device % PAGE:
            return errno.EINVAL
        pages = self.of(device, size)
        if pages is None:
            return errno.EINVAL
        bus = host // PAGE * PAGE
        end = bus + len(pages) * PAGE
        first, bytes_given = self.coherent
        if end > KERNEL and not (first <= bus and end <= first + bytes_given):
            return errno.EFAULT
        if any(page in self.pages for page in pages):
            return errno.EBUSY
        for k, page in enumerate(pages):
            self.pages[page] = bus + k * PAGE
        return 0

    def unmap(self, device: int, size: int) -> int:
        pages = self.of(device, size)
        for page in pages or ():
            self.pages.pop(page, None)
        return 0 if pages else errno.EINVAL

    def partition(self, simple: int) -> int:
        if any(True for _ in self.pages):
            return errno.EBUSY
        if not 0 <= simple <= ENTRIES:
            return errno.EINVAL
        self.simple = simple
        return 0


def entry_of(machine: Machine, extended: bool, page: int) -> int:
    """What the chip finds for a page, by its registers and memory."""
    base = machine.read("extended_table")
    number = base + page // TABLE if extended else page
    entry = machine.function.read(register("page_table").offset + 8 * number, 8)
    if not extended or not entry & 1:
        return entry
    word = machine.function.memory.read(entry - 1 + 8 * (page % TABLE), 8)
    return int(word.view("<u8")[0])


EDGES = st.sampled_from([0, 1, 2, 3, 99, 100, 101, 510, 511, 512, 1023, 1024])
SIZES = st.sampled_from([0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE, 2 * TABLE * PAGE])
WITHIN = st.sampled_from([0, 0, 8, PAGE - 1])
HOSTS = st.sampled_from([0, 5 * PAGE, KERNEL - PAGE, KERNEL, KERNEL + 2 * PAGE, KERNEL + 4 * PAGE])
TOP = (ENTRIES - 100) * TABLE


@st.composite
def devices(draw: st.DrawFn) -> int:
    if draw(st.booleans()):
        return PAGE * draw(EDGES) + draw(WITHIN)
    page = draw(st.one_of(EDGES, st.integers(TOP - 3, TOP + 1)))
    return (EXTENDED_BIT | PAGE * page) + draw(WITHIN)


OPERATIONS = st.one_of(
    st.tuples(st.just("map"), st.tuples(HOSTS, devices(), SIZES, WITHIN)),
    st.tuples(st.just("unmap"), st.tuples(devices(), SIZES)),
    st.tuples(st.just("partition"), st.tuples(st.sampled_from([-1, 100, ENTRIES, ENTRIES + 1]))),
)


@settings(max_examples=60)
@given(st.lists(OPERATIONS, max_size=10))
def test_what_is_mapped_is_what_the_chip_finds(
    operations: list[tuple[str, tuple[int, ...]]],
) -> None:
    machine = Machine()
    driver = machine.driver
    driver.close()
    driver.open(machine.program)
    driver.partition(100)
    coherent = np.zeros(4 * PAGE, np.uint8)
    slow = SlowTable(100, (driver.give_coherent(coherent), coherent.size))
    touched: set[tuple[bool, int]] = set()
    tables = False
    for name, values in operations:
        if name == "map":
            host, device, size, within = values
            host += device % PAGE if within else 0
            arguments: tuple[int, ...] = (host, device, size)
        else:
            arguments = values
        expected = getattr(slow, name)(*arguments)
        if name == "partition" and tables and not expected:
            continue  # a table that was made stays, without entries
        try:
            getattr(driver, name)(*arguments)
            found = 0
        except OSError as error:
            found = error.errno or 0
        assert found == expected, (name, arguments)
        touched |= slow.pages.keys()
        tables = tables or any(extended for extended, _ in slow.pages)
        for each in touched:
            entry = entry_of(machine, *each)
            assert entry == slow.pages[each] | 1 if each in slow.pages else not entry & 1


PLACES = st.integers(0, 6 * PAGE)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(PLACES, st.binary(max_size=20), st.integers(0, 2 * PAGE)), max_size=8),
    st.sets(st.integers(0, 2), max_size=2),
)
def test_memory_of_the_kernel_is_where_it_was_given(
    accesses: list[tuple[int, bytes, int]], taken: set[int]
) -> None:
    program = Program()
    program.memory[0] = bytearray(PAGE)
    memory = KernelMemory(program)
    slow: dict[int, int] = {}
    given = []
    for pages in (1, 2, 1):
        storage = np.full(pages * PAGE, pages, np.uint8)
        address = memory.give(storage)
        given.append((address, storage))
        slow |= dict.fromkeys(range(address, address + storage.size), pages)
    assert [address for address, _ in given] == [KERNEL, KERNEL + PAGE, KERNEL + 3 * PAGE]
    for number in taken:
        address, storage = given[number]
        memory.take_back(address, storage.size)
        for octet in range(address, address + storage.size):
            del slow[octet]
    for place, data, size in accesses:
        first = KERNEL + place
        there = [octet in slow for octet in range(first, first + len(data))]
        if all(there):
            memory.write(first, data)
            slow |= dict(enumerate(data, first))
        else:
            missing = (first + there.index(False)) // PAGE
            with pytest.raises(HostFault) as caught:
                memory.write(first, data)
            assert int(str(caught.value).split()[-1], 16) // PAGE == missing
        if all(octet in slow for octet in range(first, first + size)):
            wanted = bytes(slow[octet] for octet in range(first, first + size))
            assert memory.read(first, size) == wanted
        else:
            with pytest.raises(HostFault, match="there is no memory at bus address"):
                memory.read(first, size)
    memory.write(8, b"own")
    assert memory.read(8, 3) == program.read(8, 3) == b"own"
    memory.interrupt(3)
    assert program.vectors == [3]
    memory.clear()
    for address, _ in given:
        with pytest.raises(HostFault):
            memory.read(address, 1)


@pytest.mark.parametrize("size", [4, 8])
def test_a_value_fits_its_register(size: int) -> None:
    function = Machine().function
    offset = SCU_2 if size == 4 else register("dma_pause").offset
    with pytest.raises(ValueError, match=f"has more than {size} bytes"):
        function.write(offset, 1 << 8 * size, size)
    function.write(offset, (1 << 8 * size) - 1, size)


@pytest.mark.parametrize("offset", [0, (1 << 20) - 8])
def test_registers_end_with_their_memory(offset: int) -> None:
    """There may be none, but it is not the bus that says so."""
    function = Machine().function
    try:
        function.read(offset, 8)
    except (SimulationError, KeyError, ValueError) as error:
        assert "base address register" not in str(error)
    for wrong, size in ((1 << 20, 4), (-4, 4), (2, 4), (4, 8), (0, 1), (0, 16)):
        with pytest.raises(ValueError, match="are no register of base address register 2"):
            function.read(wrong, size)


def test_coherent_memory_is_given_once_at_a_time() -> None:
    driver = Machine().driver
    with pytest.raises(OSError, match="there is a coherent buffer") as caught:
        driver.give_coherent(np.zeros(PAGE, np.uint8))
    assert caught.value.errno == errno.EBUSY
    driver.release_coherent()
    driver.release_coherent()
    assert driver.give_coherent(np.zeros(1 << 20, np.uint8)) == KERNEL + 4 * PAGE
