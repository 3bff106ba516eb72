"""The kernel driver, and the function behind it, with a chip that sends back what it reads."""

from __future__ import annotations

import errno

import numpy as np
import pytest
from apex_queue import PAGE
from bus_chip import program
from darwinn_sim.device.chip import Chip, behind_pcie
from darwinn_sim.errors import PageFault, SimulationError
from darwinn_sim.host.descriptors import DescriptorFault
from darwinn_sim.host.interface import HostInterface
from darwinn_sim.host.mmu import EXTENDED_BIT
from darwinn_sim.host.registers import register
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.pcie.function import HostFault, PcieFunction, Watcher
from pcie_machine import BUFFER, INPUT_AT, OUTPUT_AT, PROGRAM_AT, Machine, Program


class Seen(Watcher):
    """What the chip has read of a buffer of the host, and its interrupts."""

    def __init__(self) -> None:
        self.read = b""
        self.vectors: list[int] = []

    def memory_read(self, address: int, data: bytes) -> None:
        if address >= INPUT_AT:
            self.read += data

    def interrupted(self, vector: int) -> None:
        self.vectors.append(vector)


def test_a_request_moves_bytes_and_interrupts() -> None:
    seen = Seen()
    machine = Machine(seen)
    data = bytes(range(256)) * 40
    output = BUFFER + 0x20_0000
    chunk = program((1, len(data), BUFFER + 0x10_0000), (3, len(data), output), (4, 0, 0))
    machine.give(PROGRAM_AT, chunk, BUFFER)
    machine.give(INPUT_AT, data, BUFFER + 0x10_0000)
    machine.give(OUTPUT_AT, bytes(len(data)), output)
    machine.queue(BUFFER, len(chunk))
    machine.work()
    assert machine.program.read(OUTPUT_AT, len(data)) == data
    assert machine.program.vectors == [0, 4]
    assert machine.completed == 1
    assert machine.read("sc_host_int_count") == 1
    assert seen.vectors == [0, 4]
    assert data in seen.read


def test_opening_resets_and_sets_vectors() -> None:
    machine = Machine()
    assert machine.chip.resets == 1
    machine.driver.close()
    assert machine.chip.resets == 2
    machine.open()
    assert machine.chip.resets == 2, "it stayed in reset"
    assert machine.read("sc_host_int_vector") == 4 | 5 << 7 | 6 << 14 | 7 << 21
    assert machine.read("fatal_err_int_vector") == 12


def test_memories_have_power_while_it_is_open() -> None:
    machine = Machine()
    entry = register("scu_ctrl_3")

    def field(name: str) -> int:
        return entry.field(name).extract(machine.function.read(entry.offset, 4))

    assert (field("rg_force_ram_sd"), field("cur_ram_sd")) == (0, 0)
    machine.driver.close()
    assert (field("rg_force_ram_sd"), field("cur_ram_sd")) == (3, 1)
    machine.open()
    assert (field("rg_force_ram_sd"), field("cur_ram_sd")) == (0, 0)


def test_memory_is_mapped_from_within_a_page() -> None:
    """Host and device address are alike within their pages, which are mapped whole."""
    machine = Machine()
    data = bytes(range(200)) * 30
    within = 0xC40
    machine.program.memory[INPUT_AT] = bytearray(within) + bytearray(data) + bytearray(PAGE)
    machine.driver.map(INPUT_AT + within, BUFFER + 0x10_0000 + within, len(data))
    output = BUFFER + 0x20_0000
    chunk = program((1, len(data), BUFFER + 0x10_0000 + within), (3, len(data), output), (4, 0, 0))
    machine.give(PROGRAM_AT, chunk, BUFFER)
    machine.give(OUTPUT_AT, bytes(len(data)), output)
    machine.queue(BUFFER, len(chunk))
    machine.work()
    assert machine.program.read(OUTPUT_AT, len(data)) == data


@pytest.mark.parametrize("level", range(4))
def test_a_level_divides_the_clock(level: int) -> None:
    machine = Machine()
    machine.driver.expect_performance(level)
    assert machine.function.read(0x1A318, 4) >> 26 == 2 | (8 | 3 - level) << 2


def test_what_was_mapped_is_gone_with_the_program() -> None:
    machine = Machine()
    machine.give(PROGRAM_AT, program((4, 0, 0)), BUFFER)
    machine.driver.close()
    machine.program = Program()
    machine.open()
    machine.queue(BUFFER, 16)
    machine.work()
    assert isinstance(machine.function.chip.fault, PageFault)
    assert machine.read("page_fault_address") == BUFFER
    assert machine.program.vectors == [12]


def test_an_unmapped_page_faults() -> None:
    machine = Machine()
    machine.give(PROGRAM_AT, program((1, 5000, BUFFER + 0x20_0000)), BUFFER)
    machine.give(INPUT_AT, bytes(2 * PAGE), BUFFER + 0x20_0000)
    machine.driver.unmap(BUFFER + 0x20_1000, PAGE)
    machine.queue(BUFFER, 16)
    machine.work()
    fault = machine.function.chip.fault
    assert isinstance(fault, PageFault)
    assert fault.address == BUFFER + 0x20_1000
    assert machine.read("hib_error_status") == 2


def test_a_fault_lasts_until_a_reset() -> None:
    machine = Machine()
    failed: list[SimulationError] = []
    machine.function.failed = failed.append
    bad, good = program((9, 4, 0)), program((4, 0, 0))
    machine.give(PROGRAM_AT, bad, BUFFER)
    machine.give(INPUT_AT, good, BUFFER + PAGE)
    machine.queue(BUFFER, len(bad))
    machine.queue(BUFFER + PAGE, len(good))
    machine.work()
    assert [type(each) for each in failed] == [DescriptorFault]
    assert not machine.function.work()
    assert 4 not in machine.program.vectors
    machine.driver.close()
    machine.program.vectors.clear()
    machine.open()
    machine.driver.map(INPUT_AT, BUFFER + PAGE, PAGE)
    machine.queue(BUFFER + PAGE, len(good))
    machine.work()
    assert machine.program.vectors == [0, 4]


def test_a_defect_of_the_model_is_a_fault_too(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    failed: list[SimulationError] = []
    machine.function.failed = failed.append
    monkeypatch.setattr(machine.chip.host, "fetch_chunk", lambda: [][1])
    machine.work()
    assert "please report it: IndexError: list index out of range" in str(failed[0])
    machine.work()
    assert len(failed) == 1
    monkeypatch.undo()
    machine.driver.close()
    assert machine.function.chip.fault is None


@pytest.mark.parametrize(("name", "value"), [("instruction_queue_tail", 9), ("dma_pause", 0)])
def test_a_register_write_is_a_fault_if_what_it_lets_go_is_not_taken(name: str, value: int) -> None:
    function = PcieFunction(behind_pcie)
    failed: list[SimulationError] = []
    function.failed = failed.append
    function.write(register("fatal_err_int_control").offset, 1, 8)
    function.write(register("dma_pause").offset, 1, 8)
    assert isinstance(function.chip, Chip)
    assert isinstance(function.chip.host, HostInterface)
    function.chip.host.issue(DescriptorTag.OUTPUT, BUFFER, 4)
    function.chip.host.push(np.zeros(4, np.uint8))
    assert not failed
    for _ in range(2):
        function.write(register(name).offset, value, 8)
    (fault,) = failed
    assert isinstance(fault, HostFault)
    assert function.chip.fault is fault
    assert function.read(register("hib_error_status").offset, 8)
    assert not function.work()


def test_a_host_that_is_gone_is_its_own_fault() -> None:
    machine = Machine()
    machine.give(PROGRAM_AT, program((1, 4, BUFFER)), BUFFER)
    machine.function.attach(None)
    machine.queue(BUFFER, 16)
    machine.work()
    assert isinstance(machine.function.chip.fault, HostFault)


@pytest.mark.parametrize(
    ("host", "device", "size", "number"),
    [
        (PROGRAM_AT, BUFFER, 0, errno.EINVAL),
        (PROGRAM_AT, BUFFER + 8, PAGE, errno.EINVAL),
        (PROGRAM_AT, EXTENDED_BIT | 1 << 32, PAGE, errno.EINVAL),
        (PROGRAM_AT, EXTENDED_BIT, (1 << 32) + 1, errno.EINVAL),
        (PROGRAM_AT, EXTENDED_BIT, 1 << 63, errno.EINVAL),
        (PROGRAM_AT, 6144 << 12, PAGE, errno.EINVAL),
        (PROGRAM_AT, 6143 << 12, 2 * PAGE, errno.EINVAL),
        ((1 << 56) + 4 * PAGE, BUFFER, PAGE, errno.EFAULT),
        ((1 << 56) + 3 * PAGE, BUFFER, 2 * PAGE, errno.EFAULT),
        ((1 << 56) - PAGE, BUFFER, 2 * PAGE, errno.EFAULT),
        ((1 << 64) - PAGE, BUFFER, PAGE, errno.EFAULT),
    ],
)
def test_a_mapping_that_cannot_be_is_refused(
    host: int, device: int, size: int, number: int
) -> None:
    machine = Machine()
    with pytest.raises(OSError, match=r"address|no program") as caught:
        machine.driver.map(host, device, size)
    assert caught.value.errno == number


@pytest.mark.parametrize("device", [BUFFER, 0x5000])
def test_a_page_is_mapped_once(device: int) -> None:
    machine = Machine()
    machine.driver.map(PROGRAM_AT, device, 3 * PAGE)
    with pytest.raises(OSError, match="is mapped"):
        machine.driver.map(INPUT_AT, device + 2 * PAGE, PAGE)
    machine.driver.unmap(device, 3 * PAGE)
    machine.driver.map(INPUT_AT, device + 2 * PAGE, PAGE)


def test_the_partition_stays_while_pages_are_mapped() -> None:
    machine = Machine()
    machine.driver.map(PROGRAM_AT, BUFFER, PAGE)
    with pytest.raises(OSError, match="mapped"):
        machine.driver.partition(4096)


@pytest.mark.parametrize("size", [0, 100, 1 << 21])
def test_a_coherent_buffer_has_whole_pages(size: int) -> None:
    machine = Machine()
    machine.driver.release_coherent()
    with pytest.raises(OSError, match="coherent buffer of"):
        machine.driver.give_coherent(np.zeros(size, np.uint8))


@pytest.mark.parametrize(("offset", "size"), [(0x48570, 2), (0x48571, 8), (1 << 20, 8), (-8, 8)])
def test_no_register_is_there(offset: int, size: int) -> None:
    machine = Machine()
    with pytest.raises(ValueError, match="no register"):
        machine.function.read(offset, size)
