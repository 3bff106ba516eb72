"""Text of a module: its tables, and every function to its exact length."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from darwinn_formats.iree.bytecode import Instruction
from darwinn_formats.iree.loader import VmfbFile
from darwinn_formats.iree.module import Function, Module
from darwinn_formats.iree.opcodes import (
    IMPORT_BIT,
    MOVE_BIT,
    PLAIN_ARGUMENT,
    REFERENCE_BIT,
    Field,
)
from darwinn_formats.iree.schema import Feature

_TEXT_BYTES = 48
"""Bytes of a text that a line shows."""
_FLOATS = {
    "f": (struct.Struct("<I"), struct.Struct("<f")),
    "d": (struct.Struct("<Q"), struct.Struct("<d")),
}


def disassemble(file: VmfbFile) -> Iterator[str]:
    """Lines of the text of a loaded file."""
    for path, module in file.modules:
        yield from _module(path, module)


def _module(path: str, module: Module) -> Iterator[str]:
    major, minor = module.bytecode_version
    features = " ".join(feature_names(module.definition.requirements))
    place = f" in {path.rstrip('/')}" if path else ""
    yield f'module "{module.name}"{place}: bytecode {major}.{minor}, {features or "core set"}'
    for ordinal, entry in enumerate(module.definition.imported_functions):
        convention = entry.signature.calling_convention if entry.signature else ""
        optional = " optional" if entry.optional else ""
        yield f"  import {ordinal}: {entry.full_name} {convention}{optional}"
    for ordinal, named in enumerate(module.definition.types):
        yield f"  type {ordinal}: {named.full_name}"
    for ordinal, segment in enumerate(module.rodata):
        yield f"  rodata {ordinal}: {len(segment)} bytes, {_contents(segment.data)}"
    for function in module.functions:
        yield from _function(module, function)


def _function(module: Module, function: Function) -> Iterator[str]:
    convention = "" if function.convention is None else f" {function.convention.text}"
    aliases = f" (also {', '.join(function.exports[1:])})" if len(function.exports) > 1 else ""
    descriptor = function.descriptor
    yield (
        f"function {function.ordinal} {function.name}{aliases}{convention}: "
        f"{len(function.body)} bytes at {function.body.offset}, {descriptor.block_count} blocks, "
        f"{descriptor.i32_register_count} cells, {descriptor.ref_register_count} references"
    )
    locations = module.locations(function)
    shown = None
    for instruction in function.instructions():
        text = f"  {instruction.pc:6d}  {instruction_text(module, instruction)}"
        index = locations.get(instruction.pc)
        if index is not None and index != shown:
            text = f"{text:<70}  ; {module.location_text(index)}"
            shown = index
        yield text


def instruction_text(module: Module, instruction: Instruction) -> str:
    """An instruction in one line: what is written stands before ``=``."""
    written: list[str] = []
    read: list[str] = []
    for field, operand in instruction.fields():
        if text := _operand(module, field, operand):
            (written if field.written else read).append(text)
    head = f"{', '.join(written)} = " if written else ""
    return f"{head}{instruction.mnemonic} {', '.join(read)}".rstrip()


def _operand(module: Module, field: Field, operand: Any) -> str:
    if field.kind in "ilfdr*":
        return register_text(field.kind, operand)
    if field.kind == "#":
        return _immediate(field.type, operand)
    if field.kind == "V":
        if field.type == "n":
            sizes = ("-" if size == PLAIN_ARGUMENT else str(size) for size in operand)
            return f"[{' '.join(sizes)}]"
        registers = ", ".join(register_text(field.type, entry) for entry in operand)
        return registers if field.written else f"({registers})"
    if field.kind == "M":
        return _copies(operand)
    if field.kind == "C":
        cases = (f"^{block} {_copies(copies)}".rstrip() for block, copies in operand)
        return f"[{', '.join(cases)}]"
    if field.kind == "S":
        return quoted(operand)
    return _ordinal(module, field.kind, operand)


def _ordinal(module: Module, kind: str, operand: int) -> str:
    if kind == "F":
        return function_name(module, operand)
    if kind == "T":
        return module.definition.types[operand].full_name
    return {"B": f"^{operand}", "O": f"rodata[{operand}]", "G": f"global[{operand}]"}[kind]


def function_name(module: Module, target: int) -> str:
    """Name of the function that a call goes to."""
    if target & IMPORT_BIT:
        return f"@{module.definition.imported_functions[target & ~IMPORT_BIT].full_name}"
    return f"@{module.functions[target].name}"


def register_text(kind: str, register: int) -> str:
    """A register: its type and ordinal, ``!`` for a reference that moves; ``c`` is any cell."""
    if register & REFERENCE_BIT:
        move = "!" if register & MOVE_BIT else ""
        return f"r{register & ~(REFERENCE_BIT | MOVE_BIT)}{move}"
    return f"{'c' if kind == '*' else kind}{register}"


def _immediate(kind: str, value: int) -> str:
    if kind not in _FLOATS:
        return str(value)
    bits, number = _FLOATS[kind]
    return repr(number.unpack(bits.pack(value))[0])


def _copies(copies: Sequence[tuple[int, int]]) -> str:
    moves = (
        f"{register_text('*', target)}={register_text('*', source)}" for source, target in copies
    )
    return f"({', '.join(moves)})" if copies else ""


def quoted(data: bytes) -> str:
    """A text in quotes, cut where it is long."""
    text = data[:_TEXT_BYTES].decode("utf-8", "replace")
    printable = "".join(letter if letter.isprintable() else "?" for letter in text)
    return f'"{printable}"{"..." if len(data) > _TEXT_BYTES else ""}'


def _contents(data: memoryview) -> str:
    start = bytes(data[: _TEXT_BYTES + 1])
    if start and start.isascii() and start.decode().isprintable():
        return quoted(start)
    return f"{start[:16].hex(' ')}{' ...' if len(data) > 16 else ''}"


def feature_names(bits: int) -> list[str]:
    """Names of the features of which the bits are set; bits without a name as numbers."""
    known = [entry.name.lower() for entry in Feature if bits & entry and entry.name]
    rest = bits & ~sum(entry.value for entry in Feature)
    return [*known, hex(rest)] if rest else known
