"""Instructions of the scalar core, and fences, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from darwinn_sim.isa.codes import (
    AluOperation,
    DescriptorWord,
    LoadOperation,
    ScalarFlag,
    ScalarFunction,
    ScalarUnit,
    StoreOperation,
    TileFlag,
    TileUnit,
)
from darwinn_sim.isa.listing.values import (
    Cells,
    Render,
    Rendered,
    bits_text,
    executing_tiles,
    float_text,
    label,
    tile_set,
)

_DECIMAL_BELOW = 1 << 16


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
            name = label(ScalarFunction, function_op[row])
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
        return float_text(value)
    signed = value - (1 << 32) if value >> 31 else value
    if operation in _BITWISE or abs(signed) >= _DECIMAL_BELOW:
        return f"{value:#x}"
    return str(signed)


def _tile_fence(cells: Cells, patched: Mapping[int, str]) -> Render:
    def render(row: int, pc: int) -> Rendered:
        details = []
        if cells["wait_idle"][row]:
            details.append(f"wait idle {bits_text(TileUnit, cells['wait_idle'][row])}")
        counted = cells["producer_count_valid"][row]
        details += [
            f"wait {flag.label} = {cells['producer_count'][row]}"
            for channel, flag in enumerate(_TOKENS)
            if counted >> channel & 1
        ]
        if cells["reset_flags"][row]:
            flags = bits_text(TileFlag, cells["reset_flags"][row])
            details.append(f"set {flags} = {cells['reset_value'][row]}")
        actions = [name for name in _FENCE_ACTIONS if cells[name][row]]
        operands = [executing_tiles(cells, row)]
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
            parts.append(f"wait idle {bits_text(ScalarUnit, cells['wait_idle'][row])}")
        valid = cells["expected_valid"][row]
        for flag, expected in enumerate(cells["expected"][row]):
            if valid >> flag & 1:
                parts.append(f"wait {label(ScalarFlag, flag)} >= {expected}")
        tiles = cells["tile_fence_valid"][row]
        if tiles:
            count = cells["tile_fence_count"][row]
            parts.append(f"wait fence count of {tile_set(tiles)} >= {count}")
        if cells["reset_tile_fences"][row]:
            parts.append(f"clear fence count of {tile_set(cells['reset_tile_fences'][row])}")
        if cells["reset_flags"][row]:
            flags = bits_text(ScalarFlag, cells["reset_flags"][row])
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


SPECIAL: Mapping[str, Callable[[Cells, Mapping[int, str]], Render]] = {
    "Scalar": _scalar,
    "TileFence": _tile_fence,
    "ScalarFence": _scalar_fence,
    "Branch": _branch,
    "Loop": _loop,
}
"""What shows an instruction, by its name; what is not here is shown by the table alone."""
