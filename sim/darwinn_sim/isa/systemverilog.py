"""The instruction table as a SystemVerilog package: one packed struct for each instruction.

``python -m darwinn_sim.isa.systemverilog`` writes it to standard output; the harness build does so
before it compiles, so that RTL and model cannot disagree on where a field stands.

A repeated field becomes a packed array; repeated fields that alternate (stride and limit of the
loops, the parts of the watchers) become a packed array of structs named after their common prefix.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from darwinn_sim.isa.codes import Code, ScalarFlag, TileFlag, TileUnit
from darwinn_sim.isa.fields import BUNDLE_BYTES, Field, Instruction
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
    ]
    for instruction in INSTRUCTIONS.values():
        lines += _struct(instruction)
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


def _struct(instruction: Instruction) -> list[str]:
    members = sorted(_members(instruction), key=lambda member: member.offset)
    filled: list[_Member] = []
    end = 0
    for member in members:
        if member.offset > end:
            filled.append(_gap(end, member.offset))
        filled.append(member)
        end = member.offset + member.width
    if end < instruction.bits:
        filled.append(_gap(end, instruction.bits))
    body = [f"    {member.declaration}" for member in reversed(filled)]
    return [
        f"  // {instruction.name}: {instruction.summary}",
        "  typedef struct packed {",
        *body,
        f"  }} {type_name(instruction)};",
        "",
    ]


def _gap(first: int, end: int) -> _Member:
    width = end - first
    return _Member(first, width, f"{_vector(width)} unused_{first};")


def _members(instruction: Instruction) -> Iterator[_Member]:
    pending = list(instruction.fields)
    while pending:
        field = pending.pop(0)
        if field.count == 1:
            yield _Member(field.offset, field.width, f"{_type(field)}{_identifier(field.name)};")
            continue
        group = [field, *(other for other in pending if _alternates(field, other))]
        pending = [other for other in pending if other not in group]
        yield _array(group)


def _alternates(first: Field, other: Field) -> bool:
    """True if two repeated fields are parts of the same repeated record."""
    return (other.count, other.pitch) == (
        first.count,
        first.pitch,
    ) and 0 < other.offset - first.offset < first.pitch


def _array(group: list[Field]) -> _Member:
    first = group[0]
    bounds = f"[{first.count - 1}:0]"
    width = first.count * first.pitch
    if len(group) == 1:
        return _Member(first.offset, width, f"logic {bounds}[{first.width - 1}:0] {first.name};")
    prefix = _common_prefix([field.name for field in group])
    parts = " ".join(
        f"{_type(field)}{_identifier(field.name.removeprefix(prefix))};"
        for field in reversed(group)
    )
    name = prefix.rstrip("_") + ("_loop" if group[0].name.endswith("_stride") else "")
    return _Member(first.offset, width, f"struct packed {{ {parts} }} {bounds} {name};")


def _common_prefix(names: list[str]) -> str:
    words = [name.split("_") for name in names]
    shared = []
    for column in zip(*words, strict=False):
        if len(set(column)) > 1:
            break
        shared.append(column[0])
    return "_".join(shared) + "_"


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
