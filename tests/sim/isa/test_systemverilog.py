"""The generated SystemVerilog package states the same bits as the table."""

from __future__ import annotations

import re
from math import prod

import pytest
from darwinn_sim.isa import systemverilog
from darwinn_sim.isa.codes import Code, DescriptorTag, ScalarFlag, TileFlag, TileUnit
from darwinn_sim.isa.fields import Instruction
from darwinn_sim.isa.table import INSTRUCTIONS

_STRUCT = re.compile(r"typedef struct packed \{\n(.*?)\n  \} (\w+);", re.S)
_GROUP = re.compile(r"struct packed \{ (.*) \} \[(\d+):0\] (\w+);")
_MEMBER = re.compile(r"(\w+) (?:signed )?((?:\[\d+:0\])*)\s*(\w+);")

Layout = dict[str, tuple[int, int]]
"""Offset and width of every member, and under the empty name those of the whole."""

_LAYOUTS: dict[str, Layout] = {"logic": {"": (0, 1)}, "opcode_e": {"": (0, 6)}}


def _count(bounds: str) -> int:
    return prod(int(high) + 1 for high in re.findall(r"\[(\d+):0\]", bounds))


def _layout(lines: list[str]) -> Layout:
    """The least significant member stands last in the text; of arrays, the first one counts."""
    layout: Layout = {}
    offset = 0
    for line in reversed(lines):
        group = _GROUP.search(line)
        if group:
            parts = _layout([f"{part};" for part in group[1].split(";") if part])
            name, count = group[3], int(group[2]) + 1
        else:
            member = _MEMBER.search(line)
            assert member, line
            parts, name, count = _LAYOUTS[member[1]], member[3], _count(member[2])
        width = parts[""][1]
        for inner, (place, bits) in parts.items():
            layout[f"{name}.{inner}"] = (offset + place, bits)
        layout[name] = (offset, count * width)
        offset += count * width
    layout[""] = (0, offset)
    return layout


for _body, _name in _STRUCT.findall(systemverilog.package()):
    _LAYOUTS[_name] = _layout(_body.splitlines())


@pytest.mark.parametrize("instruction", INSTRUCTIONS.values(), ids=lambda entry: entry.name)
def test_struct_has_every_field_where_the_table_has_it(instruction: Instruction) -> None:
    layout = _LAYOUTS[systemverilog.type_name(instruction)]
    assert layout[""] == (0, instruction.bits)
    for field in instruction.fields:
        width = field.width if field.pitch != field.width else field.width * field.count
        assert (field.offset, width) in layout.values(), field.name


@pytest.mark.parametrize("instruction", INSTRUCTIONS.values(), ids=lambda entry: entry.name)
def test_numbers_have_a_sign_where_the_table_has_one(instruction: Instruction) -> None:
    """Of a single bit, too, which is a vector then. A list of numbers is one vector without."""
    (own,) = (
        body
        for body, name in _STRUCT.findall(systemverilog.package())
        if name == systemverilog.type_name(instruction)
    )
    declared = {
        name.rstrip("_"): (bool(signed), bounds)
        for signed, bounds, name in re.findall(r"logic (signed )?(\[\d+:0\] )?(\w+);", own)
    }
    inside = {name for each in instruction.traversals for name in each.fields}
    for field in instruction.fields:
        own_member = field.name not in inside and not field.name.startswith("watcher_")
        if own_member and field.count == 1 and field.name != "opcode":
            vector = f"[{field.width - 1}:0] " if field.width > 1 or field.signed else ""
            assert declared[field.name] == (field.signed, vector), field.name


def test_members_of_traversals_and_watchers_have_the_sign_of_the_table() -> None:
    parts = [
        (body, {"alternate_reset", "expected", "stride"} if "watcher" not in name else {"expected"})
        for body, name in _STRUCT.findall(systemverilog.package())
        if name.startswith(("traversal_", "watcher_"))
    ]
    assert len(parts) > 4
    for body, signed in parts:
        for sign, name in re.findall(r"logic (signed )?(?:\[\d+:0\] )?(\w+);", body):
            assert bool(sign) is (name in signed), name


@pytest.mark.parametrize("instruction", INSTRUCTIONS.values(), ids=lambda entry: entry.name)
def test_traversals_and_watchers_have_their_fields_by_name(instruction: Instruction) -> None:
    layout = _LAYOUTS[systemverilog.type_name(instruction)]
    for traversal in instruction.traversals:
        for name in traversal.fields:
            part = name.removeprefix(f"{traversal.name}_")
            inner = f"loop.{part}" if part in ("stride", "limit") else part
            field = instruction.field(name)
            assert layout[f"{traversal.name}.{inner}"] == (field.offset, field.width), name
    for field in instruction.fields:
        if field.name.startswith("watcher_"):
            inner = field.name.removeprefix("watcher_")
            assert layout[f"watcher.{inner}"] == (field.offset, field.width), field.name


def test_package_declares_every_opcode() -> None:
    declared = dict(re.findall(r"OPCODE_(\w+) = 6'd(\d+)", systemverilog.package()))
    assert sorted(int(value) for value in declared.values()) == sorted(INSTRUCTIONS)


@pytest.mark.parametrize(
    ("prefix", "codes"),
    [
        ("TILE_FLAG", TileFlag),
        ("SCALAR_FLAG", ScalarFlag),
        ("TILE_UNIT", TileUnit),
        ("DESCRIPTOR_TAG", DescriptorTag),
    ],
)
def test_package_numbers_flags_units_and_tags_as_the_model_does(
    prefix: str, codes: type[Code]
) -> None:
    declared = re.findall(rf" {prefix}_(\w+) = \d+'d(\d+)", systemverilog.package())
    assert {name: int(value) for name, value in declared} == {c.name: int(c) for c in codes}
