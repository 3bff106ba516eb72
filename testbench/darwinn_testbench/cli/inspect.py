"""`darwinn inspect`: what is in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from darwinn_testbench.cli import options
from darwinn_testbench.cli.console import finish
from darwinn_testbench.inspection import ExecutableRow, inspect
from darwinn_testbench.report import Column, Report, table

NAME = "inspect"
EXAMPLES = """**Examples**

`darwinn inspect model_edgetpu.tflite`

`darwinn inspect --json model_edgetpu.tflite | jq '.rows[].instructions'`
"""

_COLUMNS: tuple[Column[ExecutableRow], ...] = (
    Column("#", lambda row: row.index, "right"),
    Column("type", lambda row: row.type),
    Column("chunks", lambda row: row.chunks, "right"),
    Column("instructions", lambda row: row.instructions, "right"),
    Column("parameters", lambda row: row.parameter_bytes, "right"),
    Column("scratch", lambda row: row.scratch_bytes, "right"),
    Column("verdict", lambda row: row.verdict),
)


def command(file: options.File, json: options.Json = False) -> None:
    """Show the executables of a file, their inputs and outputs, and their instruction statistics.

    The whole file is verified: every offset and length, every instruction, every bit.
    """
    report = inspect(options.source_of(file))
    finish(
        report,
        file=file,
        as_json=json,
        body=_body,
        next_step=f"darwinn disasm {file} shows the program; darwinn verify {file} runs it",
    )


def _body(report: Report[ExecutableRow]) -> Sequence[RenderableType]:
    figures = report.figures
    head = f"{figures['kind']}, {figures['size']:,} bytes, sha256 {figures['sha256'][:16]}…"
    packages = [_package(package) for package in figures["packages"]]
    return [head, *packages, "", table(_COLUMNS, report.rows), "", *map(_details, report.rows)]


def _package(package: Mapping[str, Any]) -> str:
    compiler = package["compiler_version"] or "unknown"
    return (
        f"package of {package['executables']} executables, runtime version "
        f"{package['min_runtime_version']} or later, compiler {compiler}"
    )


def _details(row: ExecutableRow) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in row.operations.items())
    head = f"executable {row.index}: token {row.token}, {row.hints} hints; {counts}"
    note = [f"  {row.message}"] if row.message else []
    return "\n".join([head, *note, *(f"  {layer}" for layer in row.layers)])
