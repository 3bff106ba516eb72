"""The tables at the end of docs/formats-iree.md, which their sources here yield (``make docs``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from darwinn_formats.iree import OPERATIONS, Field, Operation

from darwinn_reference.iree.blocks import COVERED
from darwinn_reference.iree.reference import IMPORTS

_HEADING = "## Operations"
_NAMES = {0x00: "Core set", 0xE0: "Set of f32, after the byte E0", 0xE1: "Set of f64, after E1"}


def updated(page: str) -> str:
    """The page with its tables as they are now; what is before them is written by hand."""
    prose = page.partition(f"\n{_HEADING}\n")[0]
    return "\n".join([prose, *_operations(), *_imports()]) + "\n"


def _operations() -> Iterator[str]:
    yield _HEADING
    yield ""
    yield "The rest of this page is generated from the tables (`make docs`)."
    yield "Fields are in the order of their bytes. Their notation is that of"
    yield "`darwinn_formats.iree.opcodes`."
    yield "Operations in brackets are listed but not executed."
    for prefix, operations in OPERATIONS.items():
        yield ""
        yield f"### {_NAMES[prefix]}"
        yield ""
        yield "| opcode | operation | fields |"
        yield "|---|---|---|"
        for opcode, operation in operations.items():
            fields = " ".join(_field(field) for field in operation.fields)
            yield f"| {opcode:02X} | {_name(operation)} | {f'`{fields}`' if fields else ''} |"


def _name(operation: Operation) -> str:
    name = f"`{operation.mnemonic}`"
    return name if operation.mnemonic in COVERED else f"({name})"


def _field(field: Field) -> str:
    mark = "!" if field.movable else ""
    if field.kind == "V":
        return ">V" if field.written else f"V({field.type}{mark})"
    text = f"#{field.type}" if field.kind == "#" else field.kind
    return f"{'>' if field.written else ''}{text}{mark}"


def _imports() -> Iterator[str]:
    yield ""
    yield "## Imports"
    yield ""
    yield "If an import has two conventions, each belongs to one version."
    by_name: Mapping[str, list[str]] = _conventions()
    yield ""
    yield "| import | calling convention |"
    yield "|---|---|"
    for name, conventions in sorted(by_name.items()):
        yield f"| `{name}` | {', '.join(f'`{entry}`' for entry in conventions)} |"


def _conventions() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, convention in IMPORTS:
        found.setdefault(name, []).append(convention)
    return found
