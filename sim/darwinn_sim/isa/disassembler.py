"""Disassembler: a decoded chunk as lines that a person can read, or as JSON.

Everything printed comes from the instruction table and its codes. Traversals appear as loop nests
with real steps, outermost loop first: ``narrow_read from 64: L1 4 x +16 > L0 8 x +1`` visits 64,
65 ... 71, 80 ... A line is rendered from lists of column values, because a chunk has thousands of
instructions of few kinds.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from darwinn_formats.darwinn import Description, FieldOffset, Meta, Position

from darwinn_sim.isa.codec import Columns, Program
from darwinn_sim.isa.codes import (
    AluOperation,
    Code,
    DescriptorWord,
    LoadOperation,
    ScalarFlag,
    ScalarFunction,
    ScalarUnit,
    StoreOperation,
    TileFlag,
    TileUnit,
)
from darwinn_sim.isa.fields import BUNDLE_BYTES, Field, Instruction, Signal, Traversal
from darwinn_sim.isa.strides import steps
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS, TILE_HEADER

Cells = Mapping[str, list[Any]]
"""Column values by field name, as Python numbers (lists of numbers for a repeated field)."""

Rendered = tuple[str, tuple[str, ...]]
"""Operands and details of one instruction."""

Render = Callable[[int, int], Rendered]
"""Renders the instruction in a row of its opcode's columns; the second number is its pc."""

_DETAIL_WIDTH = 96
_OUTFEED_BIT = 16
_DECIMAL_BELOW = 1 << 16


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


def disassemble(program: Program, relocations: Mapping[int, str] | None = None) -> Iterator[Line]:
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


def to_json(program: Program, relocations: Mapping[int, str] | None = None) -> list[dict[str, Any]]:
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


def tile_set(mask: int) -> str:
    """Return a tile bitmap in words: ``tile 5``, ``tiles 0-15``, ``tiles {0,5,8-11}, outfeed``."""
    return _tile_set(mask)


@cache
def _tile_set(mask: int) -> str:
    numbers = [tile for tile in range(20) if mask >> tile & 1 and tile != _OUTFEED_BIT]
    runs: list[tuple[int, int]] = []
    for tile in numbers:
        if runs and runs[-1][1] == tile - 1:
            runs[-1] = (runs[-1][0], tile)
        else:
            runs.append((tile, tile))
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    if not numbers:
        tiles = "" if mask else "no tile"
    elif len(numbers) == 1:
        tiles = f"tile {texts[0]}"
    else:
        tiles = f"tiles {texts[0]}" if len(texts) == 1 else "tiles {" + ",".join(texts) + "}"
    outfeed = "outfeed" if mask >> _OUTFEED_BIT & 1 else ""
    return ", ".join(text for text in (tiles, outfeed) if text)


def _cells(columns: Columns) -> Cells:
    return {name: column.tolist() for name, column in columns.items()}


def _relocations_by_pc(relocations: Mapping[int, str]) -> dict[int, str]:
    return {offset // (8 * BUNDLE_BYTES): name for offset, name in relocations.items()}


def _branch_targets(program: Program) -> frozenset[int]:
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
    special = _SPECIAL.get(instruction.name)
    render: Render = (
        special(cells, patched)
        if special is not None
        else _UnitRenderer(instruction, columns, cells).render
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


class _UnitRenderer:
    """Renders the instructions of a unit that walks memory: everything follows from the table."""

    def __init__(self, instruction: Instruction, columns: Columns, cells: Cells) -> None:
        self._instruction = instruction
        self._cells = cells
        self._steps = {
            walk.name: steps(
                columns[f"{walk.name}_stride"],
                columns[f"{walk.name}_limit"],
                columns[f"{walk.name}_mask"],
            ).tolist()
            for walk in instruction.traversals
        }
        self._plain = _plain_fields(instruction)
        self._has_tiles = "tiles" in cells

    def render(self, row: int, pc: int) -> Rendered:
        """Return operands and details of the instruction in ``row``."""
        cells = self._cells
        plain = [text for field in self._plain if (text := _field_text(field, cells, row))]
        operands = [_executing_tiles(cells, row)] if self._has_tiles else []
        details: list[str] = []
        if "main_limit" in cells:
            details.append(_main_loops(cells, row))
        details += [
            _traversal_text(walk, cells, self._steps[walk.name][row], row)
            for walk in self._instruction.traversals
            if not self._is_off(walk, row)
        ]
        details += _waits(self._instruction, cells, row)
        details += _signals(self._instruction, cells, row)
        if "coefficient" in cells:
            details += _coefficients(cells, row)
        if "main_limit" in cells:
            details += _wrapped(plain)
        else:
            operands += plain
        return ", ".join(operands), tuple(details)

    def _is_off(self, walk: Traversal, row: int) -> bool:
        """Return whether a side of a mesh instruction does nothing."""
        if not self._instruction.unit.startswith("mesh_"):
            return False
        name, cells = walk.name, self._cells
        writes_immediate = name == "narrow_write" and cells["immediate_valid"][row]
        moves = cells[f"{name}_stride"][row][0] or any(cells[f"{name}_limit"][row])
        return not moves and not writes_immediate


_SHOWN_ELSEWHERE = frozenset(
    {
        "base_override",
        "main_limit",
        "main_alternate_limit",
        "main_alternate_loop",
        "coefficient",
        "lower_bound",
        *(f"watcher_{part}" for part in ("flag", "depth", "expected", "stride", "valid", "side")),
    }
)


def _plain_fields(instruction: Instruction) -> tuple[Field, ...]:
    """Return the fields that are shown by name and value, as part of no group."""
    grouped = {name for walk in instruction.traversals for name in walk.fields}
    for producer in instruction.producers:
        grouped |= {f"{producer}_increment", f"{producer}_depth"}
    return tuple(
        field
        for field in instruction.fields
        if field not in TILE_HEADER and field.name not in grouped | _SHOWN_ELSEWHERE
    )


def _executing_tiles(cells: Cells, row: int) -> str:
    tiles = _tile_set(cells["tiles"][row])
    if _optional(cells, "tiles_override", row):
        tiles = f"tiles of r{cells['tiles_register'][row]}"
    if _optional(cells, "base_override", row):
        tiles += f", base r{cells['base_register'][row]}"
    return f"{tiles}, #{cells['tag'][row]}"


def _optional(cells: Cells, name: str, row: int) -> int:
    """Return the value of a field that not every instruction has; 0 if this one has not."""
    column = cells.get(name)
    return 0 if column is None else int(column[row])


def _main_loops(cells: Cells, row: int) -> str:
    limits = cells["main_limit"][row]
    loops = [f"L{loop} {limits[loop] + 1} x" for loop in reversed(range(8)) if limits[loop]]
    text = "main: " + (" > ".join(loops) or "once")
    loop = cells["main_alternate_loop"][row]
    if loop:
        text += f"; last L{loop}: L0 {cells['main_alternate_limit'][row] + 1} x"
    return text


def _traversal_text(walk: Traversal, cells: Cells, step: list[int], row: int) -> str:
    """One traversal as a loop nest with what modifies it."""
    name = walk.name
    limit = cells[f"{name}_limit"][row]
    loops = [
        f"L{loop} {limit[loop] + 1} x {step[loop]:+d}"
        for loop in reversed(range(walk.loops))
        if limit[loop]
    ]
    parts = [f"{name} from {cells[f'{name}_base'][row]}: {' > '.join(loops) or 'once'}"]
    alternate = cells[f"{name}_alternate_loop"][row]
    if alternate:
        inner = 1 if name == "narrow_read" and _optional(cells, "transpose", row) else 0
        count = cells[f"{name}_alternate_limit"][row] + 1
        parts.append(f"last L{alternate}: L{inner} {count} x")
    distance = cells[f"{name}_double_offset"][row]
    if distance:
        loop = cells[f"{name}_double_loop"][row]
        second = " (second first)" if cells[f"{name}_double_start"][row] else ""
        parts.append(f"two buffers {distance} apart by L{loop}{second}")
    if walk.prologue and cells[f"{name}_prologue_enable"][row]:
        parts.append(_prologue_text(name, cells, row))
    return "; ".join(parts)


def _prologue_text(name: str, cells: Cells, row: int) -> str:
    base, count, last, stride, loop = (
        cells[f"{name}_prologue_{part}"][row]
        for part in ("base", "inner_limit", "outer_limit", "outer_stride", "loop")
    )
    moving = f", then {stride:+d} up to {last}" if stride else ""
    return f"before L{loop}: {count + 1} from {base}{moving}"


def _waits(instruction: Instruction, cells: Cells, row: int) -> Iterator[str]:
    if not instruction.watchers:
        return
    valid = cells["watcher_valid"][row]
    if instruction.watchers == 1:
        valid = [valid]
    if not any(valid):
        return
    flags = instruction.field("watcher_flag").codes
    assert flags is not None, "every watcher names its flags"
    for index, on in enumerate(valid):
        if on:
            flag, depth, expected, stride = (
                _item(cells[f"watcher_{part}"][row], index)
                for part in ("flag", "depth", "expected", "stride")
            )
            text = f"wait {_label(flags, flag)} >= {expected}"
            text += _waiting_text(stride)
            text += f" at L{depth}"
            if len(instruction.traversals) == 2 and "watcher_side" in cells:
                text += f" of {instruction.traversals[cells['watcher_side'][row][index]].name}"
            yield text


@cache
def _waiting_text(stride: int) -> str:
    if stride == 0:
        return ""
    return " + k" if stride == 1 else f" + {stride}*k"


def _item(cell: Any, index: int) -> int:
    return int(cell[index] if isinstance(cell, list) else cell)


def _signals(instruction: Instruction, cells: Cells, row: int) -> Iterator[str]:
    for producer in instruction.producers:
        if not cells[f"{producer}_increment"][row]:
            continue
        given = [
            signal
            for signal in instruction.signals
            if signal.producer == producer
            and (not signal.field or cells[signal.field][row] == signal.value)
        ]
        targets = ", ".join(_signal_text(signal) for signal in given)
        yield f"signal {targets} at L{cells[f'{producer}_depth'][row]}"


@cache
def _signal_text(signal: Signal) -> str:
    owner = {"tile": "", "all tiles": " of all tiles", "scalar core": " of the scalar core"}
    return signal.flag.label + owner[signal.scope]


def _coefficients(cells: Cells, row: int) -> Iterator[str]:
    values = [_float_text(bits) for bits in cells["coefficient"][row]]
    bounds = ["-inf", *(_float_text(bits) for bits in cells["lower_bound"][row])]
    for segment, bound in enumerate(bounds):
        yield f"from {bound}: {' '.join(values[5 * segment : 5 * segment + 5])}"


def _wrapped(texts: Iterable[str]) -> list[str]:
    """Join texts by commas into lines of limited width."""
    lines: list[str] = []
    for text in texts:
        if lines and len(lines[-1]) + len(text) < _DETAIL_WIDTH:
            lines[-1] += f", {text}"
        else:
            lines.append(text)
    return lines


_SHOWN_AS: Mapping[str, str] = {"targets": "to", "consumer_b": "channel", "fifo": "from"}

_MINUS_ONE = frozenset({"row_words", "block_lanes", "last_block_lanes"})
"""Fields that hold one less than what they count."""

_USUALLY_ONE = frozenset({"sync_increment", "load_pc"})
"""Fields that are shown only if they are not 1."""


def _field_text(field: Field, cells: Cells, row: int) -> str:
    """Return one field as text, or nothing if its value is the usual one."""
    value = cells[field.name][row]
    text = _value_text(field, value)
    if not text:
        return ""
    name = field.shown_as or _SHOWN_AS.get(field.name, field.name)
    return name if text == field.name else f"{name} {text}"


@cache
def _value_text(field: Field, value: int) -> str:
    if field.kind == "tiles":
        return _tile_set(value)
    if field.kind == "float32":
        return _float_text(value)
    if field.name in _USUALLY_ONE:
        return "" if value == 1 else str(value)
    if field.name in _MINUS_ONE:
        return str(value + 1)
    if field.codes is not None and field.kind != "mask":
        label = _label(field.codes, value)
        return "" if label == "none" else label
    if not value:
        return ""
    if field.kind == "flag":
        return field.name
    if field.kind == "mask":
        return _bits_text(field.codes, value)
    if field.kind == "register":
        return f"r{value}"
    return f"{value:#x}" if field.name == "immediate" else str(value)


@cache
def _label(codes: type[Code], value: int) -> str:
    try:
        return codes(value).label
    except ValueError:
        return f"?{value}"


@cache
def _bits_text(codes: type[Code] | None, mask: int) -> str:
    """Return the bits of a mask by name; of a mask that is nearly full, those it lacks."""
    bits = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
    if codes is None:
        return "{" + ", ".join(map(str, bits)) + "}"
    lacking = [code.label for code in codes if code not in bits]
    if not lacking and len(bits) == len(codes):
        return "all"
    if len(lacking) < len(bits):
        return "all but {" + ", ".join(lacking) + "}"
    return "{" + ", ".join(_label(codes, bit) for bit in bits) + "}"


@cache
def _float_text(bits: int) -> str:
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    return f"{value:.9g}"


def _scalar(cells: Cells, patched: Mapping[int, str]) -> Render:
    load_op, store_op = cells["load_op"], cells["store_op"]
    alu_op, function_op = cells["alu_op"], cells["function_op"]

    def render(row: int, pc: int) -> Rendered:
        statements = []
        if load_op[row]:
            statements.append(_load_text(cells, row))
        if store_op[row]:
            statements.append(_store_text(cells, row))
        if alu_op[row]:
            statements.append(_alu_text(cells, row, patched.get(pc)))
        if function_op[row]:
            source, destination = cells["function_source"][row], cells["function_destination"][row]
            name = _label(ScalarFunction, function_op[row])
            statements.append(f"r{destination} = {name}(r{source})")
        return "; ".join(statements) or "-", ()

    return render


_REGISTER_MASK = 31
_REGISTER_BITS = 5


def _memory_text(address: int, *, direct: bool, moves: bool) -> str:
    if direct:
        return f"memory[{address}]"
    register = f"r{address & _REGISTER_MASK}"
    increment = address >> _REGISTER_BITS
    if not moves:
        return f"memory[{register}]"
    return f"memory[{register}++]" if increment == 1 else f"memory[{register} then += {increment}]"


def _load_text(cells: Cells, row: int) -> str:
    operation = cells["load_op"][row]
    place = _memory_text(
        cells["load_address"][row],
        direct=operation == LoadOperation.DIRECT,
        moves=operation == LoadOperation.POST_INCREMENT,
    )
    return f"r{cells['load_register'][row]} = {place}"


def _store_text(cells: Cells, row: int) -> str:
    operation, address = cells["store_op"][row], cells["store_address"][row]
    register = f"r{cells['store_register'][row]}"
    if operation == StoreOperation.ISSUE:
        return "issue descriptor"
    if operation == StoreOperation.PUSH:
        return f"push {register} to the host"
    if operation == StoreOperation.DESCRIPTOR:
        return f"descriptor.{DescriptorWord(address & 3).label} = {register}"
    if operation > StoreOperation.ISSUE:
        return f"store operation ?{operation}"
    place = _memory_text(
        address,
        direct=operation == StoreOperation.DIRECT,
        moves=operation == StoreOperation.POST_INCREMENT,
    )
    return f"{place} = {register}"


_ALU_EXPRESSIONS: Mapping[int, str] = {
    AluOperation.ADD: "{a} + {b}",
    AluOperation.SUBTRACT: "{a} - {b}",
    AluOperation.AND: "{a} & {b}",
    AluOperation.OR: "{a} | {b}",
    AluOperation.XOR: "{a} ^ {b}",
    AluOperation.SHIFT_LEFT: "{a} << {b}",
    AluOperation.SHIFT_RIGHT: "{a} >> {b}",
    AluOperation.ARITHMETIC_SHIFT_RIGHT: "arithmetic_shift_right({a}, {b})",
    AluOperation.EQUAL: "{a} == {b}",
    AluOperation.NOT_EQUAL: "{a} != {b}",
    AluOperation.GREATER: "{a} > {b}",
    AluOperation.LESS: "{a} < {b}",
    AluOperation.GREATER_EQUAL: "{a} >= {b}",
    AluOperation.GREATER_EQUAL_UNSIGNED: "unsigned({a} >= {b})",
    AluOperation.MOVE: "{b}",
    AluOperation.TO_FLOAT: "float({b})",
    AluOperation.TO_INTEGER: "integer({b})",
    AluOperation.FLOAT_ADD: "float({a} + {b})",
    AluOperation.FLOAT_SUBTRACT: "float({a} - {b})",
    AluOperation.FLOAT_MULTIPLY: "float({a} * {b})",
    AluOperation.FLOAT_MAXIMUM: "float_maximum({a}, {b})",
    AluOperation.FLOAT_MINIMUM: "float_minimum({a}, {b})",
}


def _alu_text(cells: Cells, row: int, relocation: str | None) -> str:
    operation, destination = cells["alu_op"][row], cells["alu_destination"][row]
    b = cells["alu_b"][row]
    if relocation is not None:
        operand = f"<{relocation}>"
    elif not cells["alu_immediate"][row]:
        operand = f"r{b & _REGISTER_MASK}"
    else:
        operand = _immediate_text(operation, b)
    expression = _ALU_EXPRESSIONS.get(operation)
    if expression is None:
        return f"ALU operation ?{operation}"
    target = f"p{destination & 7}" if AluOperation(operation).sets_predicate else f"r{destination}"
    return f"{target} = " + expression.format(a=f"r{cells['alu_a'][row]}", b=operand)


_BITWISE = {AluOperation.AND, AluOperation.OR, AluOperation.XOR}


@cache
def _immediate_text(operation: int, value: int) -> str:
    if operation >= AluOperation.TO_INTEGER:
        return _float_text(value)
    signed = value - (1 << 32) if value >> 31 else value
    if operation in _BITWISE or abs(signed) >= _DECIMAL_BELOW:
        return f"{value:#x}"
    return str(signed)


def _tile_fence(cells: Cells, patched: Mapping[int, str]) -> Render:
    def render(row: int, pc: int) -> Rendered:
        details = []
        if cells["wait_idle"][row]:
            details.append(f"wait idle {_bits_text(TileUnit, cells['wait_idle'][row])}")
        counted = cells["producer_count_valid"][row]
        details += [
            f"wait {flag.label} = {cells['producer_count'][row]}"
            for channel, flag in enumerate(_TOKENS)
            if counted >> channel & 1
        ]
        if cells["reset_flags"][row]:
            flags = _bits_text(TileFlag, cells["reset_flags"][row])
            details.append(f"set {flags} = {cells['reset_value'][row]}")
        actions = [name for name in _FENCE_ACTIONS if cells[name][row]]
        operands = [_executing_tiles(cells, row)]
        operands += ["count fence" if name == "increment" else name for name in actions]
        return ", ".join(operands), tuple(details)

    return render


_FENCE_ACTIONS = (
    "increment",
    "halt",
    "narrow_sleep",
    "wide_sleep",
)
_TOKENS = (TileFlag.RING_PRODUCER_A, TileFlag.RING_PRODUCER_B)
"""Flags in the order of the bits of ``producer_count_valid``."""


def _scalar_fence(cells: Cells, patched: Mapping[int, str]) -> Render:
    def render(row: int, pc: int) -> Rendered:
        parts = []
        if cells["wait_idle"][row]:
            parts.append(f"wait idle {_bits_text(ScalarUnit, cells['wait_idle'][row])}")
        valid = cells["expected_valid"][row]
        for flag, expected in enumerate(cells["expected"][row]):
            if valid >> flag & 1:
                parts.append(f"wait {_label(ScalarFlag, flag)} >= {expected}")
        tiles = cells["tile_fence_valid"][row]
        if tiles:
            count = cells["tile_fence_count"][row]
            parts.append(f"wait fence count of {_tile_set(tiles)} >= {count}")
        if cells["reset_tile_fences"][row]:
            parts.append(f"clear fence count of {_tile_set(cells['reset_tile_fences'][row])}")
        if cells["reset_flags"][row]:
            flags = _bits_text(ScalarFlag, cells["reset_flags"][row])
            parts.append(f"set {flags} = {cells['reset_value'][row]}")
        return (parts[0] if parts else "-"), tuple(parts[1:])

    return render


def _branch(cells: Cells, patched: Mapping[int, str]) -> Render:
    def render(row: int, pc: int) -> Rendered:
        offset = cells["offset"][row]
        target = pc + offset if cells["relative"][row] else 1 + offset
        condition = ""
        if cells["conditional"][row]:
            predicate, value = cells["branch_predicate"][row], cells["branch_polarity"][row]
            condition = f"if p{predicate} == {value}: "
        return f"{condition}goto label_{target}", ()

    return render


def _loop(cells: Cells, patched: Mapping[int, str]) -> Render:
    def render(row: int, pc: int) -> Rendered:
        return f"repeat {cells['count'][row]} times, bundles to {pc + cells['body'][row]}", ()

    return render


_SPECIAL: Mapping[str, Callable[[Cells, Mapping[int, str]], Render]] = {
    "Scalar": _scalar,
    "TileFence": _tile_fence,
    "ScalarFence": _scalar_fence,
    "Branch": _branch,
    "Loop": _loop,
}
