"""The register table and the register file."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from darwinn_sim.chips.register_map import Access, Register
from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.registers import (
    REGISTERS,
    SOC_REGISTERS,
    USB_REGISTERS,
    RegisterFault,
    documentation,
    register,
)

EVERY = (*REGISTERS, *USB_REGISTERS, *SOC_REGISTERS)
DOCUMENT = Path(__file__).parents[3] / "docs" / "registers.md"


def test_documentation_is_up_to_date() -> None:
    assert DOCUMENT.read_text() == documentation()


def test_registers_do_not_overlap_and_are_aligned() -> None:
    ordered = sorted(EVERY, key=lambda entry: entry.offset)
    for before, after in pairwise(ordered):
        assert before.end <= after.offset, (before.name, after.name)
    assert all(entry.offset % (entry.width // 8) == 0 for entry in EVERY)
    assert len({entry.name for entry in EVERY}) == len(EVERY)


def test_fields_fit_their_register_and_do_not_overlap() -> None:
    for entry in EVERY:
        used = 0
        for field in entry.fields:
            assert not used & field.mask, (entry.name, field.name)
            used |= field.mask
        assert used >> entry.width == 0, entry.name


def test_every_register_says_what_it_means_and_where_it_is_known_from() -> None:
    assert all(entry.meaning and entry.source for entry in EVERY)
    assert all(field.meaning for entry in EVERY for field in entry.fields)


def test_reset_values_are_what_the_host_reads_first() -> None:
    registers = RegisterFile()
    for entry in REGISTERS:
        assert registers.read(entry.offset) == entry.reset, entry.name


@pytest.mark.parametrize("entry", REGISTERS, ids=lambda entry: entry.name)
def test_access(entry: Register) -> None:
    registers = RegisterFile()
    if entry.access is Access.READ_ONLY:
        with pytest.raises(RegisterFault, match="cannot be written"):
            registers.write(entry.offset, 1)
        return
    registers.set(entry.name, 0b1100)
    registers.write(entry.offset, 0b1010)
    expected = 0b1000 if entry.access is Access.WRITE_ZERO_TO_CLEAR else 0b1010
    assert registers.read(entry.offset) == expected == registers.get(entry.name)
    registers.reset()
    assert registers.read(entry.offset) == entry.reset


@pytest.mark.parametrize("offset", [0, 0x44017, 0x44019, 0x4FFFF, 0x50001, 0x60000])
def test_unknown_offset_is_refused(offset: int) -> None:
    with pytest.raises(RegisterFault, match="no such register"):
        RegisterFile().read(offset)


def test_width_and_value_are_checked() -> None:
    registers = RegisterFile()
    offset = register("tileconfig0").offset
    with pytest.raises(RegisterFault, match="64 bits wide"):
        registers.write(offset, 0, width=32)
    with pytest.raises(RegisterFault, match="does not fit"):
        registers.write(offset, 1 << 64)


def test_every_entry_of_a_repeated_register_is_addressable() -> None:
    registers = RegisterFile()
    table = register("page_table")
    registers.write(table.offset + 8 * 8191, 0xFFFF_FFFF_FFFF_F001)
    assert registers.array("page_table")[8191] == 0xFFFF_FFFF_FFFF_F001
    assert not registers.array("page_table")[:8191].any()


def test_write_hook_sees_the_stored_value() -> None:
    registers = RegisterFile()
    seen: list[int] = []
    registers.on_write("sc_host_int_status", seen.append)
    registers.set("sc_host_int_status", 0b0011)
    registers.write(register("sc_host_int_status").offset, 0b1110)
    assert seen == [0b0010]


def test_hook_of_an_unknown_register_is_refused() -> None:
    with pytest.raises(KeyError):
        RegisterFile().on_write("no_such_register", print)


def test_an_offset_is_of_the_register_that_begins_there() -> None:
    """Each byte about each register: its repetitions begin there, and nothing else."""
    registers = RegisterFile(EVERY)
    beginning = {
        entry.offset + k * entry.width // 8: entry for entry in EVERY for k in range(entry.count)
    }
    for entry in EVERY:
        ends = (entry.offset, entry.end)
        for offset in {end + k for end in ends for k in range(-9, 10)}:
            found = beginning.get(offset)
            assert (offset in registers) is (found is not None)
            for width in (32, 64):
                if found is None or found.width != width:
                    with pytest.raises(RegisterFault):
                        registers.read(offset, width)
                else:
                    assert registers.read(offset, width) == found.reset


@pytest.mark.parametrize("entry", USB_REGISTERS[:1] + SOC_REGISTERS[:1], ids=lambda each: each.name)
def test_a_value_has_as_many_bits_as_its_register(entry: Register) -> None:
    registers = RegisterFile((replace(entry, access=Access.READ_WRITE),))
    most = (1 << entry.width) - 1
    registers.write(entry.offset, most, entry.width)
    assert registers.read(entry.offset, entry.width) == most
    with pytest.raises(RegisterFault, match="does not fit"):
        registers.write(entry.offset, most + 1, entry.width)


@pytest.mark.parametrize("entry", REGISTERS, ids=lambda entry: entry.name)
def test_a_field_is_found_by_its_name(entry: Register) -> None:
    for field in entry.fields:
        assert entry.field(field.name) is field
    with pytest.raises(KeyError, match=f"{entry.name} has no field nothing"):
        entry.field("nothing")
