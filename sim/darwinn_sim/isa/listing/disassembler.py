"""Disassembler: a decoded chunk as lines that a person can read, or as JSON.

Everything printed comes from the instruction table and its codes. Traversals appear as loop nests
with real steps, outermost loop first: ``narrow_read from 64: L1 4 x +16 > L0 8 x +1`` visits 64,
65 ... 71, 80 ... A line is rendered from lists of column values, because a chunk has thousands of
instructions of few kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darwinn_formats.darwinn import Description, FieldOffset, Meta, Position

from darwinn_sim.isa.codec import Columns, DecodedChunk
from darwinn_sim.isa.fields import BUNDLE_BYTES, Instruction
from darwinn_sim.isa.listing.scalar_side import SPECIAL
from darwinn_sim.isa.listing.units import UnitRenderer
from darwinn_sim.isa.listing.values import Cells, Render, Rendered
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction of a listing.

    ``depth`` is how many hardware loops it is in; ``label`` is its name if a branch leads to it.
    """

    pc: int
    bundles: int
    mnemonic: str
    operands: str
    details: tuple[str, ...]
    depth: int
    label: str


def disassemble(
    program: DecodedChunk, relocations: Mapping[int, str] | None = None
) -> Iterator[Line]:
    """Yield a line for each instruction of ``program``, in program order.

    Args:
        program: a decoded chunk.
        relocations: what the linker patches, by bit offset in the chunk (see
            :func:`relocation_names`); shown at the scalar moves that hold them.
    """
    patched = _relocations_by_pc(relocations or {})
    renderers = {
        code: _renderer(INSTRUCTIONS[code], columns, patched)
        for code, columns in program.columns.items()
    }
    labels = _branch_targets(program)
    ends: list[int] = []
    loop_opcode = BY_NAME["Loop"].opcode
    pcs, opcodes, rows = program.pc.tolist(), program.opcode.tolist(), program.row.tolist()
    for pc, opcode, row in zip(pcs, opcodes, rows, strict=True):
        ends = [end for end in ends if pc < end]
        instruction = INSTRUCTIONS[opcode]
        operands, details = renderers[opcode](row, pc)
        label = f"label_{pc}" if pc in labels else ""
        yield Line(pc, instruction.bundles, instruction.name, operands, details, len(ends), label)
        if opcode == loop_opcode:
            ends.append(pc + 1 + int(program.columns[opcode]["body"][row]))


def to_text(
    lines: Iterable[Line],
    remarks: Mapping[int, str] | None = None,
    marks: Mapping[int, Sequence[str]] | None = None,
) -> Iterator[str]:
    """Yield the lines of text of a listing: details are indented below their instruction.

    ``remarks`` stand above instructions, ``marks`` with an exclamation mark below them, by the
    bundle at which these begin.
    """
    remarks, marks = remarks or {}, marks or {}
    for line in lines:
        if line.pc in remarks:
            yield f"; {remarks[line.pc]}"
        if line.label:
            yield f"{line.label}:"
        indent = "  " * line.depth
        yield f"{line.pc:6}  {indent}{line.mnemonic:<16} {line.operands}".rstrip()
        for detail in line.details:
            yield f"{'':8}{indent}    {detail}"
        for mark in marks.get(line.pc, ()):
            yield f"{'':6}! {indent}    {mark}"


def to_json(
    program: DecodedChunk, relocations: Mapping[int, str] | None = None
) -> list[dict[str, Any]]:
    """Return the instructions of ``program`` as JSON-able objects, in program order.

    Each has ``pc``, ``opcode``, ``name``, ``fields`` (without those that are 0; a repeated field
    is a list) and, where the linker patches it, ``relocation``.
    """
    patched = _relocations_by_pc(relocations or {})
    cells = {code: _cells(columns) for code, columns in program.columns.items()}
    result = []
    for pc, opcode, row in zip(
        program.pc.tolist(), program.opcode.tolist(), program.row.tolist(), strict=True
    ):
        values = {name: column[row] for name, column in cells[opcode].items() if name != "opcode"}
        entry: dict[str, Any] = {
            "pc": pc,
            "opcode": opcode,
            "name": INSTRUCTIONS[opcode].name,
            "fields": {
                name: value
                for name, value in values.items()
                if (any(value) if isinstance(value, list) else value)
            },
        }
        if pc in patched:
            entry["relocation"] = patched[pc]
        result.append(entry)
    return result


def relocation_names(field_offsets: Iterable[FieldOffset]) -> dict[int, str]:
    """Return a name for each field that the linker patches, by its bit offset in the chunk."""
    return {field.offset_bit: _relocation_name(field.meta) for field in field_offsets}


_DESCRIPTIONS: Mapping[Description, str] = {
    Description.BASE_ADDRESS_OUTPUT_ACTIVATION: "output",
    Description.BASE_ADDRESS_INPUT_ACTIVATION: "input",
    Description.BASE_ADDRESS_PARAMETER: "parameters",
    Description.BASE_ADDRESS_SCRATCH: "scratch",
}


def _relocation_name(meta: Meta) -> str:
    words = [_DESCRIPTIONS[meta.desc]]
    if meta.name:
        words.append(f'"{meta.name}"')
    if meta.batch:
        words.append(f"batch {meta.batch}")
    words.append("low" if meta.position == Position.LOWER_32BIT else "high")
    return " ".join(words)


def _cells(columns: Columns) -> Cells:
    return {name: column.tolist() for name, column in columns.items()}


def _relocations_by_pc(relocations: Mapping[int, str]) -> dict[int, str]:
    return {offset // (8 * BUNDLE_BYTES): name for offset, name in relocations.items()}


def _branch_targets(program: DecodedChunk) -> frozenset[int]:
    opcode = BY_NAME["Branch"].opcode
    columns = program.columns.get(opcode)
    if columns is None:
        return frozenset()
    origin = program.pc[program.opcode == opcode] * columns["relative"]
    absolute = 1 - columns["relative"]
    # Address 0 of program memory is the bundle after LoadProgram.
    return frozenset((origin + absolute + columns["offset"]).tolist())


def _renderer(instruction: Instruction, columns: Columns, patched: Mapping[int, str]) -> Render:
    """Return what renders (row, pc) of one opcode."""
    cells = _cells(columns)
    special = SPECIAL.get(instruction.name)
    render: Render = (
        special(cells, patched)
        if special is not None
        else UnitRenderer(instruction, columns, cells).render
    )
    return _gated(render, cells) if any(cells["gate"]) else render


def _gated(render: Render, cells: Cells) -> Render:
    def render_gated(row: int, pc: int) -> Rendered:
        operands, details = render(row, pc)
        if cells["gate"][row]:
            predicate, value = cells["predicate"][row], cells["polarity"][row]
            operands = f"if p{predicate} == {value}: {operands}"
        return operands, details

    return render_gated
