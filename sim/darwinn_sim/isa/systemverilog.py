"""The instruction table as a SystemVerilog package: one packed struct for each instruction.

``python -m darwinn_sim.isa.systemverilog`` writes it to standard output; the harness build does so
before it compiles, so that RTL and model cannot disagree on where a field stands.

The fields of a traversal are one member, of a struct whose name says how many loops and bits it has
and whether a prologue (``traversal_6x16_prologue_t``); watchers are an array of structs whose name
gives the bits of flag and depth (``watcher_5x3_side_t``). Other repeated fields are packed arrays.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from darwinn_sim.isa.codes import Code, DescriptorTag, ScalarFlag, TileFlag, TileUnit
from darwinn_sim.isa.fields import BUNDLE_BYTES, Field, Instruction, Traversal
from darwinn_sim.isa.table import INSTRUCTIONS

PACKAGE = "isa_pkg"

_RESERVED = frozenset(
    {"event", "function", "input", "interrupt", "output", "repeat", "table", "type", "wait"}
)
"""Words of SystemVerilog that a field may be called by; they get an underscore behind them."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of a packed struct: bits ``offset`` to ``offset + width - 1``."""

    offset: int
    width: int
    declaration: str


def package() -> str:
    """Return the package's source text."""
    lines = [
        "// Generated from the instruction table; do not edit.",
        f"package {PACKAGE};",
        "",
        f"  localparam int BundleBits = {8 * BUNDLE_BYTES};",
        f"  localparam int LongestBits = {max(i.bits for i in INSTRUCTIONS.values())};",
        "",
        *_enumeration("opcode", {_constant(i.name): i.opcode for i in INSTRUCTIONS.values()}, 6),
        *_codes("tile_flag", TileFlag, 5),
        *_codes("scalar_flag", ScalarFlag, 4),
        *_codes("tile_unit", TileUnit, 4),
        *_codes("descriptor_tag", DescriptorTag, 4),
    ]
    records: dict[str, list[str]] = {}
    structs: list[str] = []
    for instruction in INSTRUCTIONS.values():
        members = list(_members(instruction, records))
        comment = f"{instruction.name}: {instruction.summary}"
        structs += _struct(type_name(instruction), members, instruction.bits, comment)
    for record in records.values():
        lines += record
    lines += structs
    lines.append(f"endpackage : {PACKAGE}")
    return "\n".join(lines) + "\n"


def type_name(instruction: Instruction) -> str:
    """Return the name of the struct type of an instruction, such as ``wide_to_narrow_t``."""
    return _snake(instruction.name) + "_t"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _constant(name: str) -> str:
    return _snake(name).upper()


def _codes(name: str, codes: type[Code], width: int) -> list[str]:
    return _enumeration(name, {code.name: int(code) for code in codes}, width)


def _enumeration(name: str, values: dict[str, int], width: int) -> list[str]:
    prefix = name.upper()
    members = [f"    {prefix}_{key} = {width}'d{value}" for key, value in values.items()]
    return [
        f"  typedef enum logic [{width - 1}:0] {{",
        ",\n".join(members),
        f"  }} {name}_e;",
        "",
    ]


def _struct(name: str, unordered: Iterable[_Member], bits: int, comment: str) -> list[str]:
    members = sorted(unordered, key=lambda member: member.offset)
    filled: list[_Member] = []
    end = 0
    for member in members:
        if member.offset > end:
            filled.append(_gap(end, member.offset))
        filled.append(member)
        end = member.offset + member.width
    if end < bits:
        filled.append(_gap(end, bits))
    body = [f"    {member.declaration}" for member in reversed(filled)]
    return [f"  // {comment}", "  typedef struct packed {", *body, f"  }} {name};", ""]


def _gap(first: int, end: int) -> _Member:
    width = end - first
    return _Member(first, width, f"{_vector(width)} unused_{first};")


def _members(instruction: Instruction, records: dict[str, list[str]]) -> Iterator[_Member]:
    """The members of an instruction's struct; what they need of other structs goes to ``records``,
    by name."""
    inside = {name for traversal in instruction.traversals for name in traversal.fields}
    for traversal in instruction.traversals:
        yield _traversal(instruction, traversal, records)
    if instruction.watchers:
        yield _watchers(instruction, records)
    for field in instruction.fields:
        if field.name not in inside and not field.name.startswith("watcher_"):
            yield _plain(field)


def _plain(field: Field) -> _Member:
    if field.count == 1:
        return _Member(field.offset, field.width, f"{_type(field)}{_identifier(field.name)};")
    bounds = f"[{field.count - 1}:0][{field.width - 1}:0]"
    return _Member(field.offset, field.count * field.pitch, f"logic {bounds} {field.name};")


def _traversal(
    instruction: Instruction, traversal: Traversal, records: dict[str, list[str]]
) -> _Member:
    prefix = f"{traversal.name}_"
    base = instruction.field(f"{prefix}base")
    fields = {
        field.name.removeprefix(prefix): replace(
            field, name=field.name.removeprefix(prefix), offset=field.offset - base.offset
        )
        for field in instruction.fields
        if field.name in traversal.fields
    }
    stride, limit = fields.pop("stride"), fields.pop("limit")
    parts = f"{_type(limit)}limit; {_type(stride)}stride;"
    loop = f"struct packed {{ {parts} }} [{traversal.loops - 1}:0] loop;"
    members = [*map(_plain, fields.values())]
    members.append(_Member(stride.offset, traversal.loops * stride.pitch, loop))
    bits = sum(member.width for member in members)
    name = f"traversal_{traversal.loops}x{base.width}{'_prologue' * traversal.prologue}_t"
    records.setdefault(name, _struct(name, members, bits, _traversal_comment(traversal, base)))
    return _Member(base.offset, bits, f"{name} {traversal.name};")


def _traversal_comment(traversal: Traversal, base: Field) -> str:
    prologue = " and a prologue" * traversal.prologue
    return f"A traversal of {traversal.loops} loops{prologue}, with {base.width} bits."


def _watchers(instruction: Instruction, records: dict[str, list[str]]) -> _Member:
    fields = [field for field in instruction.fields if field.name.startswith("watcher_")]
    first = fields[0]
    parts = {
        field.name.removeprefix("watcher_"): replace(
            field,
            name=field.name.removeprefix("watcher_"),
            offset=field.offset - first.offset,
            count=1,
        )
        for field in fields
    }
    flag, depth, side = parts["flag"].width, parts["depth"].width, "side" in parts
    name = f"watcher_{flag}x{depth}{'_side' * side}_t"
    comment = f"A watcher with {flag} bits of flag and {depth} of depth" + (
        ", of one of two traversals." if side else "."
    )
    records.setdefault(name, _struct(name, map(_plain, parts.values()), first.pitch, comment))
    bounds = f"[{instruction.watchers - 1}:0]"
    return _Member(first.offset, instruction.watchers * first.pitch, f"{name} {bounds} watcher;")


def _type(field: Field) -> str:
    if field.name == "opcode":
        return "opcode_e "
    bounds = f"[{field.width - 1}:0] " if field.width > 1 or field.signed else ""
    return ("logic signed " if field.signed else "logic ") + bounds


def _identifier(name: str) -> str:
    return name + "_" if name in _RESERVED else name


def _vector(width: int) -> str:
    return f"logic [{width - 1}:0]"


if __name__ == "__main__":
    sys.stdout.write(package())
