"""What is in a BEF file, for people and for programs that read JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from darwinn_formats.tfrt.encoding import PSEUDO_KERNEL_CODE
from darwinn_formats.tfrt.model import (
    Attribute,
    BefFile,
    Body,
    Function,
    Location,
    Untyped,
)
from darwinn_formats.tfrt.text.attribute_text import print_attribute
from darwinn_formats.tfrt.text.location_text import location_text

_WIDEST_ATTRIBUTE = 60


def describe(file: BefFile) -> dict[str, Any]:
    """A JSON-able summary: functions with their types and sizes, kernels, types, attributes."""
    return {
        "file": file.file,
        "kind": "bef",
        "functions": [_function(function) for function in file.functions],
        "kernels": list(file.kernel_names),
        "types": list(file.types),
        "attributes": [attribute_text(attribute) for attribute in file.attributes],
        "optional_sections": {
            "attribute_types": file.attribute_data is None,
            "attribute_names": file.has_attribute_names,
            "register_types": file.has_register_types,
        },
        "unknown_sections": [
            {"id": section.id, "alignment": section.alignment, "bytes": len(section.data)}
            for section in file.unknown_sections
        ],
    }


def _function(function: Function) -> dict[str, Any]:
    body = function.body
    streams = () if body is None else {kernel.stream for kernel in body.kernels}
    return {
        "name": function.name,
        "kind": function.kind.name.lower(),
        "arguments": list(function.argument_types),
        "results": list(function.result_types),
        "kernels": 0 if body is None else len(body.kernels),
        "registers": 0 if body is None else len(body.registers),
        "streams": len(streams),
        "location": "" if body is None else _location(body.location),
    }


def disassemble(file: BefFile) -> Iterator[str]:
    """Lines that show registers, kernels, users and streams of every function."""
    for number, attribute in enumerate(file.attributes):
        yield f"attribute {number}: {attribute_text(attribute)}"
    for number, function in enumerate(file.functions):
        name = f"@{function.name}" if function.name else "(region)"
        types = f"({', '.join(function.argument_types)}) -> ({', '.join(function.result_types)})"
        yield f"function {number} {name} {function.kind.name.lower()} {types}"
        if function.body is not None:
            yield from _body(file, function.body)


def _body(file: BefFile, body: Body) -> Iterator[str]:
    registers = " ".join(
        f"r{number}:{register.type or '?'}*{register.uses}"
        for number, register in enumerate(body.registers)
    )
    yield f"  location {_location(body.location) or body.location_offset}"
    yield f"  registers {registers}".rstrip()
    starts = " ".join(f"k{kernel}" for kernel in body.entry_used_by[0])
    yield f"  k0 entry, code {PSEUDO_KERNEL_CODE:#x} stream {body.entry_stream} starts [{starts}]"
    for register, users in enumerate(body.entry_used_by[1:]):
        yield f"     argument r{register} used by [{_kernels(users)}]"
    for number, kernel in enumerate(body.kernels, 1):
        results = " ".join(f"r{register}" for register in kernel.results)
        text = f"{results + ' = ' if results else ''}{kernel.name}"
        text += "".join(f" r{register}" for register in kernel.arguments)
        names = kernel.attribute_names or ("",) * len(kernel.attributes)
        for name, index in zip(names, kernel.attributes, strict=True):
            value = attribute_text(file.attributes[index])
            text += f" {name or 'attribute'}={value}"
        for index in kernel.functions:
            text += f" function {index}"
            text += f" @{file.functions[index].name}" if file.functions[index].name else ""
        yield f"  k{number} {text}"
        place = _location(kernel.location) or str(kernel.location_offset)
        used = ", ".join(
            f"r{register} by [{_kernels(by)}]"
            for register, by in zip(kernel.results, kernel.used_by, strict=True)
        )
        yield f"     ready {kernel.ready_count} stream {kernel.stream} at {place}" + (
            f"; {used}" if used else ""
        )
    yield f"  returns [{' '.join(f'r{register}' for register in body.results)}]"


def _kernels(numbers: tuple[int, ...]) -> str:
    return " ".join(f"k{number}" for number in numbers)


def attribute_text(attribute: Attribute) -> str:
    """An attribute in one short line."""
    if isinstance(attribute, Untyped):
        return f"offset {attribute.offset}, type not in the file"
    text = print_attribute(attribute)
    return text if len(text) <= _WIDEST_ATTRIBUTE else f"{text[: _WIDEST_ATTRIBUTE - 3]}..."


def _location(location: Location | None) -> str:
    return "" if location is None else location_text(location)
