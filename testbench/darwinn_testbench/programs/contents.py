"""What is in a program file of another format, and its program as text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darwinn_formats.files import Source, content_of, name_of

from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.formats import Format
from darwinn_testbench.programs.handler import MlirForm
from darwinn_testbench.report import Report, Row, Verdict
from darwinn_testbench.report.remarked import remarked

_PARTS = ("method ", "module ", "function ")
"""How the first line of a part of a listing begins; what stands before is a part too."""


@dataclass(frozen=True, kw_only=True)
class FunctionRow(Row):
    """A function of the file. ``inputs`` and ``outputs`` are names with types; ``instructions``
    counts instructions, operations or kernels."""

    index: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    instructions: int


@dataclass(frozen=True, kw_only=True)
class PartRow(Row):
    """A part of the listing: a method, a module, a function. ``lines`` are its text."""

    index: int
    lines: tuple[str, ...]


@remarked
def inspect_program(
    source: Source, found: Format, data: Sequence[Source] = ()
) -> Report[FunctionRow]:
    """Load and check a program file of the format ``found``, and tell everything that is in it.

    ``data`` are files of external data.

    Raises:
        FormatError, TextError: a file is not valid.
        InputError: programs of the format have no such data.
        OSError: the file cannot be read.
    """
    content = content_of(source)
    handler = found.handler_with(data)
    file = handler.load(source)
    rows = tuple(
        FunctionRow(
            name=each.name,
            verdict=Verdict.PASS,
            index=index,
            inputs=each.inputs,
            outputs=each.outputs,
            instructions=each.instructions,
        )
        for index, each in enumerate(handler.functions(file))
    )
    return Report(
        command="inspect",
        file=name_of(source),
        rows=rows,
        figures={
            "kind": found.name,
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "description": handler.describe(file),
        },
    )


@remarked
def list_program(
    source: Source,
    found: Format,
    data: Sequence[Source] = (),
    *,
    function: str | None = None,
    mlir: MlirForm | None = None,
) -> Report[PartRow]:
    """The program of a file of the format ``found`` as text, or one function of it.

    ``data`` are files of external data. As MLIR, which BEF files are printed as, it is one part.

    Raises:
        FormatError, TextError: the file is not valid.
        InputError: there is no such function, nothing to list, or no such data in the format.
        OSError: the file cannot be read.
    """
    handler = found.handler_with(data)
    if mlir is not None:
        if handler.mlir is None or function is not None:
            asked = "a single function" if handler.mlir else f"{found.name} programs"
            raise InputError(f"{name_of(source)}: --mlir prints modules of BEF files, not {asked}")
        lines = handler.mlir(handler.load(source), mlir).splitlines()
        part = PartRow(name="module", verdict=Verdict.PASS, index=0, lines=tuple(lines))
        return Report(command="disasm", file=name_of(source), rows=(part,))
    parts = list(_parts(handler.listing(handler.load(source))))
    rows = [
        PartRow(name=name, verdict=Verdict.PASS, index=index, lines=lines)
        for index, (name, lines) in enumerate(parts)
        if function is None or name.removeprefix("@") == function
    ]
    if function is not None and not rows:
        known = ", ".join(name for name, _ in parts)
        raise InputError(f"{name_of(source)}: there is no {function}, only {known}")
    return Report(command="disasm", file=name_of(source), rows=tuple(rows))


def _parts(lines: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names and lines of the parts of a listing."""
    name, held = "tables", list[str]()
    for line in lines:
        if line.startswith(_PARTS):
            if held:
                yield name, tuple(held)
            name, held = _part_name(line), []
        held.append(line)
    if held:
        yield name, tuple(held)


def _part_name(line: str) -> str:
    """The name in the first line of a part, which may be empty; functions have a number before."""
    kind, *words = line.split()
    named = words[1:] if kind == "function" and len(words) > 1 else words
    return named[0].strip('":') if named else ""


def summary_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """A summary (JSON values) as lines: one for each value, and for each entry of a list."""
    for key, value in summary.items():
        if isinstance(value, Mapping) and any(_is_list_of_tables(each) for each in value.values()):
            yield f"{key}:"
            yield from (f"  {line}" for line in summary_lines(value))
        elif _is_list_of_tables(value):
            yield f"{key}: {len(value)}"
            yield from (f"  {_text(entry)}" for entry in value)
        elif text := _text(value):
            yield f"{key}: {text}"


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _text(value: Any) -> str:
    """A value in one line; empty for what says nothing."""
    if isinstance(value, Mapping):
        texts = ((key, _text(entry)) for key, entry in value.items())
        return ", ".join(f"{key} {text}" for key, text in texts if text)
    if isinstance(value, list | tuple):
        return "; ".join(filter(None, map(_text, value)))
    return "" if value is None or value is False else str(value)
