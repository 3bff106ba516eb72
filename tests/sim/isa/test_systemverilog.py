"""The generated SystemVerilog package states the same bits as the table."""

from __future__ import annotations

import re

import pytest
from darwinn_sim.isa import systemverilog
from darwinn_sim.isa.fields import Instruction
from darwinn_sim.isa.table import INSTRUCTIONS

_STRUCT = re.compile(r"typedef struct packed \{\n(.*?)\n  \} (\w+);", re.S)
_GROUP = re.compile(r"struct packed \{ (.*) \} \[(\d+):0\] (\w+);")
_MEMBER = re.compile(r"(?:logic|(opcode_e)) (signed )?((?:\[\d+:0\])*)\s*(\w+);")


def _width(bounds: str) -> int:
    width = 1
    for high in re.findall(r"\[(\d+):0\]", bounds):
        width *= int(high) + 1
    return width


def _layout(body: str) -> dict[str, tuple[int, int]]:
    """Offset and width of every member, least significant last in the text."""
    layout = {}
    offset = 0
    for line in reversed(body.splitlines()):
        if group := _GROUP.search(line):
            members = _MEMBER.findall(group[1])
            pitch = sum(_width(bounds) for _, _, bounds, _ in members)
            inner = offset
            for _, _, bounds, name in reversed(members):
                layout[f"{group[3]}.{name}"] = (inner, _width(bounds))
                inner += _width(bounds)
            offset += pitch * (int(group[2]) + 1)
        elif member := _MEMBER.search(line):
            width = 6 if member[1] else _width(member[3])
            layout[member[4]] = (offset, width)
            offset += width
    layout[""] = (0, offset)
    return layout


_STRUCTS = {name: _layout(body) for body, name in _STRUCT.findall(systemverilog.package())}


@pytest.mark.parametrize("instruction", INSTRUCTIONS.values(), ids=lambda entry: entry.name)
def test_struct_has_every_field_where_the_table_has_it(instruction: Instruction) -> None:
    layout = _STRUCTS[systemverilog.type_name(instruction)]
    assert layout[""] == (0, instruction.bits)
    by_offset = {offset: width for name, (offset, width) in layout.items() if name}
    for field in instruction.fields:
        expected = field.width if field.count == 1 or field.pitch != field.width else None
        assert field.offset in by_offset, field.name
        assert by_offset[field.offset] == (expected or field.width * field.count), field.name


def test_package_declares_every_opcode() -> None:
    declared = dict(re.findall(r"OPCODE_(\w+) = 6'd(\d+)", systemverilog.package()))
    assert sorted(int(value) for value in declared.values()) == sorted(INSTRUCTIONS)
