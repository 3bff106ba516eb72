"""Status, count and mask of every interrupt."""

from __future__ import annotations

import pytest
from darwinn_sim.host.interrupts import InterruptController, InterruptMessage, InterruptSource
from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.registers import register


@pytest.fixture
def registers() -> RegisterFile:
    return RegisterFile()


@pytest.fixture
def interrupts(registers: RegisterFile) -> InterruptController:
    return InterruptController(registers)


def write(registers: RegisterFile, name: str, value: int) -> None:
    registers.write(register(name).offset, value)


def test_host_interrupts_count_separately(
    registers: RegisterFile, interrupts: InterruptController
) -> None:
    for number, times in enumerate((3, 0, 1, 2)):
        for _ in range(times):
            interrupts.raise_host_interrupt(number)
    assert registers.get("sc_host_int_count") == 0x0002_0001_0000_0003
    assert registers.get("sc_host_int_status") == 0b1101
    assert interrupts.raised == [0, 0, 0, 2, 3, 3]


@pytest.mark.parametrize("number", range(4))
def test_counter_wraps_without_disturbing_its_neighbours(
    registers: RegisterFile, interrupts: InterruptController, number: int
) -> None:
    registers.set("sc_host_int_count", 0xFFFF_FFFF_FFFF_FFFF)
    interrupts.raise_host_interrupt(number)
    assert registers.get("sc_host_int_count") == 0xFFFF_FFFF_FFFF_FFFF ^ 0xFFFF << 16 * number


def test_status_clears_where_zero_is_written(
    registers: RegisterFile, interrupts: InterruptController
) -> None:
    interrupts.raise_host_interrupt(0)
    interrupts.raise_host_interrupt(1)
    write(registers, "sc_host_int_status", 0b1110)
    assert registers.get("sc_host_int_status") == 0b0010


def test_masked_interrupt_counts_but_sends_no_message(
    registers: RegisterFile, interrupts: InterruptController
) -> None:
    write(registers, "sc_host_int_control", 0b0010)
    write(registers, "sc_host_int_vector", 4 | 5 << 7 | 6 << 14 | 7 << 21)
    interrupts.raise_host_interrupt(0)
    interrupts.raise_host_interrupt(1)
    assert interrupts.messages == [InterruptMessage(InterruptSource.SCALAR_CORE, 1, 5)]
    assert registers.get("sc_host_int_count") == 0x0001_0001


@pytest.mark.parametrize("number", [-1, 4])
def test_unknown_host_interrupt(interrupts: InterruptController, number: int) -> None:
    with pytest.raises(ValueError, match="does not exist"):
        interrupts.raise_host_interrupt(number)


def test_instruction_queue_interrupt(
    registers: RegisterFile, interrupts: InterruptController
) -> None:
    interrupts.raise_instruction_queue()
    assert not interrupts.messages
    write(registers, "instruction_queue_int_control", 1)
    write(registers, "instruction_queue_int_vector", 3)
    interrupts.raise_instruction_queue()
    assert interrupts.messages == [InterruptMessage(InterruptSource.INSTRUCTION_QUEUE, 0, 3)]
    assert registers.get("instruction_queue_int_status") == 1
    write(registers, "instruction_queue_int_status", 0)
    assert registers.get("instruction_queue_int_status") == 0


def test_errors_accumulate_and_the_first_is_kept(
    registers: RegisterFile, interrupts: InterruptController
) -> None:
    write(registers, "fatal_err_int_control", 1)
    write(registers, "fatal_err_int_vector", 12)
    interrupts.report_error("length_0_dma")
    interrupts.report_error("inbound_page_fault")
    assert registers.get("hib_error_status") == 1 << 13 | 1
    assert registers.get("hib_first_error_status") == 1 << 13
    assert registers.get("fatal_err_int_status") == 1
    assert interrupts.messages == [InterruptMessage(InterruptSource.FATAL_ERROR, 0, 12)] * 2
