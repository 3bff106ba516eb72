"""The tables at the end of docs/formats-iree.md, which their sources here yield (``make docs``)."""

from __future__ import annotations

from collections.abc import Iterator

from darwinn_formats.iree import OPERATIONS, Field, Operation
from darwinn_formats.iree.versions import VERSIONS

from darwinn_reference.iree.blocks import COVERED
from darwinn_reference.iree.import_history import DECLARED, RELEASES, why_refused
from darwinn_reference.iree.reference import IMPORTS

_HEADING = "## Bytecode versions"
_NAMES = {0x00: "Core set", 0xE0: "Set of f32, after the byte E0", 0xE1: "Set of f64, after E1"}


def updated(page: str) -> str:
    """The page with its tables as they are now; what is before them is written by hand."""
    prose = page.partition(f"\n{_HEADING}\n")[0]
    return "\n".join([prose, *_versions(), *_operations(), *_imports()]) + "\n"


def _versions() -> Iterator[str]:
    yield _HEADING
    yield ""
    yield "The rest of this page is generated from the tables (`make docs`)."
    yield ""
    yield "| version | releases | what it changed | |"
    yield "|---|---|---|---|"
    for entry in VERSIONS:
        read = "read" if entry.minor >= 0 else "refused"
        first, last = entry.first or RELEASES[0], entry.last or RELEASES[-1]
        written = bool(entry.first or entry.last)
        releases = _span(first, last) if written else "none"
        yield f"| {entry.major}.{max(entry.minor, 0)} | {releases} | {entry.changes} | {read} |"


def _span(first: str, last: str) -> str:
    """Releases from one to another."""
    if (first, last) == (RELEASES[0], RELEASES[-1]):
        return "all"
    return first if first == last else f"{first} to {last}"


def _operations() -> Iterator[str]:
    yield ""
    yield "## Operations"
    yield ""
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
    yield f"Releases are those of PyPI from {RELEASES[0]} to {RELEASES[-1]}: iree-compiler, and"
    yield "iree-base-compiler from 2.9.0. Imports in brackets are refused, with the reason."
    yield ""
    yield "| import | calling convention | releases | |"
    yield "|---|---|---|---|"
    for entry in DECLARED:
        implemented = (entry.name, entry.convention) in IMPORTS
        name = f"`{entry.name}`" if implemented else f"({entry.name})"
        reason = "" if implemented else why_refused(entry.name, entry.convention)
        releases = _span(entry.first, entry.last)
        yield f"| {name} | `{entry.convention}` | {releases} | {reason} |"
