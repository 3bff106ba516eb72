"""Small IREE modules for tests, from functions written as instructions with labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from darwinn_formats.flatbuffer import Span
from darwinn_formats.iree import dump_definition, encode, schema
from darwinn_formats.iree.opcodes import BY_MNEMONIC

VERSION_17 = 17 << 16
IMPORT = 0x8000_0000
MOVE = 0x4000
EXPORTED = 1
CODE_ALIGNMENT = 8

Source = tuple[str, Sequence[Any]] | str
"""An instruction, or a label: the block that starts there."""


def ref(ordinal: int, *, move: bool = False) -> int:
    """Encoding of a reference register."""
    return 0x8000 | ordinal | (MOVE if move else 0)


@dataclass(frozen=True)
class FunctionSource:
    """A function; branch operands are labels, and a label also writes the block's marker."""

    name: str
    convention: str
    source: Sequence[Source]
    cells: int = 16
    references: int = 8
    exported: bool = True
    attributes: dict[str, str] = field(default_factory=dict)


def assemble(source: Sequence[Source]) -> tuple[bytes, int]:
    """Bytes of a function, and the number of its blocks."""
    labels: dict[str, int] = {}
    for _ in range(2):
        instructions: list[tuple[str, Sequence[Any]]] = []
        for entry in source:
            if isinstance(entry, str):
                labels[entry] = len(encode(instructions))
                instructions.append(("block", ()))
            else:
                instructions.append((entry[0], resolved(entry, labels)))
    return encode(instructions), sum(isinstance(entry, str) for entry in source)


def resolved(entry: tuple[str, Sequence[Any]], labels: dict[str, int]) -> list[Any]:
    """Operands with block offsets for labels; 0 for a label that is not placed yet."""
    mnemonic, operands = entry
    found = []
    for declared, operand in zip(BY_MNEMONIC[mnemonic].fields, operands, strict=True):
        if declared.kind == "B":
            operand = labels.get(operand, 0)
        elif declared.kind == "C":
            operand = [(labels.get(label, 0), copies) for label, copies in operand]
        found.append(operand)
    return found


def definition(functions: Sequence[FunctionSource], **tables: Any) -> schema.BytecodeModule:
    """Tables of a module; ``tables`` replace those that are made here."""
    code, descriptors = b"", []
    for function in functions:
        body, blocks = assemble(function.source)
        descriptors.append(
            schema.FunctionDescriptor(
                len(code), len(body), 3, 0, blocks, function.cells, function.references
            )
        )
        code += body + bytes(-len(body) % CODE_ALIGNMENT)
    made: dict[str, Any] = {
        "name": "module",
        "requirements": int(schema.Feature.EXT_F32 | schema.Feature.EXT_F64),
        "types": (schema.TypeDefinition("!vm.buffer"), schema.TypeDefinition("i32")),
        "exported_functions": tuple(
            schema.ExportFunction(function.name, ordinal)
            for ordinal, function in enumerate(functions)
            if function.exported
        ),
        "function_signatures": tuple(
            schema.FunctionSignature(
                function.convention,
                tuple(schema.Attribute(*item) for item in function.attributes.items()),
            )
            for function in functions
        ),
        "function_descriptors": tuple(descriptors),
        "bytecode_version": VERSION_17,
        "bytecode_data": Span(memoryview(code)),
        "module_state": schema.ModuleState(64, 4),
    }
    return schema.BytecodeModule(**(made | tables))


def module(functions: Sequence[FunctionSource], **tables: Any) -> bytes:
    """A module as a bare flatbuffer with its size before it."""
    return dump_definition(definition(functions, **tables))


def rodata(*segments: bytes) -> tuple[schema.RodataSegment, ...]:
    """Embedded read-only data."""
    return tuple(
        schema.RodataSegment(embedded_data=Span(memoryview(segment))) for segment in segments
    )


def imports(*entries: tuple[str, str]) -> tuple[schema.ImportFunction, ...]:
    """Imports from names and conventions."""
    return tuple(
        schema.ImportFunction(name, schema.FunctionSignature(convention))
        for name, convention in entries
    )


LETTERS = {"i": "i", "l": "I", "f": "f", "d": "F"}
WIDTHS = {"i": 1, "l": 2, "f": 1, "d": 2}


def one_operation(mnemonic: str) -> FunctionSource:
    """A function that takes what an operation reads, and returns what it writes."""
    taken, registers, cell = "", [], 0
    target, letter = 0, ""
    for declared in BY_MNEMONIC[mnemonic].fields:
        cell += cell % WIDTHS[declared.kind]
        if declared.written:
            target, letter = cell + cell % 2, LETTERS[declared.kind]
            registers.append(target)
        else:
            taken += LETTERS[declared.kind]
            registers.append(cell)
            cell += WIDTHS[declared.kind]
    source: list[Source] = ["start", (mnemonic, registers), ("return", [[target]])]
    return FunctionSource(mnemonic, f"0{taken}_{letter}", source)
