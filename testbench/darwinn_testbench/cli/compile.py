"""`darwinn compile`: compile models for the Edge TPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from shlex import quote
from typing import Annotated

from darwinn_formats.files import name_of
from darwinn_reference.errors import Unsupported
from rich.console import RenderableType

from darwinn_testbench.cli import options
from darwinn_testbench.cli.console import Lines, finish, wrapped
from darwinn_testbench.cli.declared import argument, option
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.compilation.compile import CompileOptions, CompileRow, compile_model
from darwinn_testbench.compilation.log import log_of
from darwinn_testbench.report import Column, Report, counted, table
from darwinn_testbench.report.files import write_result
from darwinn_testbench.request import settings

EXAMPLES = """**Examples**

`darwinn compile model.tflite`

`darwinn compile model.tflite --out_dir build --show_operations`

`darwinn compile model.tflite --intermediate_tensors MobilenetV1/Logits/AvgPool_1a/AvgPool --json`
"""

Models = Annotated[list[str], argument("MODEL...", "A .tflite before compilation.")]
OutDir = Annotated[
    Path | None,
    option("--out_dir -o DIR", "Folder for the results; by default that of the model."),
]
ShowOperations = Annotated[
    bool, option("--show_operations -s", "Print the log's table of operators, too.")
]
MinRuntime = Annotated[
    int,
    option("--min_runtime_version -m N", "Least runtime version to be needed; below 14 refused."),
]
Segments = Annotated[
    int,
    option("--num_segments -n N", "Segments for several chips; more than 1 is refused.", min=1),
]
Intermediate = Annotated[
    str | None,
    option(
        "--intermediate_tensors -i NAMES", "Tensors, with commas, at which the chip's part ends."
    ),
]
Subgraphs = Annotated[
    bool,
    option(
        "--enable_multiple_subgraphs -a", "Several pieces on the chip: refused, not implemented."
    ),
]
Search = Annotated[
    bool,
    option(
        "--search_delegate -d",
        "Look for the longest part that compiles. That is always done: the option changes nothing.",
    ),
]
SearchStep = Annotated[
    int, option("--delegate_search_step -k N", "Accepted with -d; it changes nothing.", min=1)
]
Timeout = Annotated[int, option("--timeout_sec -t S", "Give up after S seconds; 0: never.", min=0)]
NoCheck = Annotated[bool, option("--no-check", "Write the file without verifying it.")]

_COLUMNS: tuple[Column[tuple[CompileRow, ...]], ...] = (
    Column("#", lambda rows: _numbers(rows), "right"),
    Column("operator", lambda rows: _operators(rows), may_shrink=True),
    Column("on", lambda rows: rows[0].place.value),
    Column("why", lambda rows: rows[0].reason),
)


def command(
    models: Models,
    out_dir: OutDir = None,
    show_operations: ShowOperations = False,
    min_runtime_version: MinRuntime = 14,
    num_segments: Segments = 1,
    intermediate_tensors: Intermediate = None,
    enable_multiple_subgraphs: Subgraphs = False,
    search_delegate: Search = False,
    delegate_search_step: SearchStep = 1,
    timeout_sec: Timeout = 0,
    no_check: NoCheck = False,
    json: settings.Json = False,
) -> None:
    """Compile a model for the Edge TPU, verify the result, and write it with a log.

    MODEL.tflite, quantised to 8 bits, becomes MODEL_edgetpu.tflite and MODEL_edgetpu.log. The
    result is judged by the whole verdict of `verify`; if that fails nothing is written. Operators
    that are not compiled stay on the CPU with the reason. docs/compiler.md says what is compiled.
    """
    del search_delegate, delegate_search_step
    if len(models) > 1:
        raise Unsupported("arguments", [f"{len(models)} models in one compilation"])
    (model,) = models
    wanted = CompileOptions(
        tuple(filter(None, (intermediate_tensors or "").split(","))),
        min_runtime_version,
        num_segments,
        enable_multiple_subgraphs,
        timeout_sec,
        not no_check,
    )
    with progress_bar() as progress:
        source = options.source_of(model)
        compiled = compile_model(source, wanted, progress=progress)
    report = compiled.report
    target = output_of(name_of(source), out_dir)
    log = target.with_suffix(".log")
    if compiled.data:
        if out_dir is not None:
            out_dir.mkdir(parents=True, exist_ok=True)
        write_result(target, compiled.data)
        text = log_of(report, os.fspath(target), os.fspath(log))
        write_result(log, text.encode())
    finish(
        report,
        file=model,
        as_json=json,
        body=lambda found: _body(found, show_operations, target, log, bool(compiled.data)),
        next_step=(
            f"darwinn cycles {quote(os.fspath(target))} says how long it takes"
            if compiled.data
            else f"darwinn explain {quote(model)} says what to change"
        ),
    )


def output_of(model: str, folder: Path | None) -> Path:
    """Where the compiled model goes: MODEL_edgetpu.tflite, beside it or in ``folder``."""
    path = Path(model)
    return (path.parent if folder is None else folder) / f"{path.stem}_edgetpu.tflite"


def _body(
    report: Report[CompileRow], operations: bool, target: Path, log: Path, written: bool
) -> Sequence[RenderableType]:
    lines: list[RenderableType] = []
    if written:
        text = log_of(report, os.fspath(target), os.fspath(log), operations=operations)
        head, _, _ = text.partition("\nVerification:")
        rest = text.partition("\nVerification:")[2].partition("\n")[2] if operations else ""
        lines += (
            [wrapped(*head.splitlines()), Lines.of(rest.splitlines())]
            if rest
            else [wrapped(*head.splitlines())]
        )
        lines.append("")
    lines.append(table(_COLUMNS, _alike(report.rows)))
    return lines


def _alike(rows: Sequence[CompileRow]) -> list[tuple[CompileRow, ...]]:
    return [tuple(group) for _, group in groupby(rows, lambda row: (row.place, row.reason))]


def _numbers(rows: tuple[CompileRow, ...]) -> str:
    first, last = rows[0].number, rows[-1].number
    return str(first) if first == last else f"{first}-{last}"


def _operators(rows: tuple[CompileRow, ...]) -> str:
    names = {row.operator for row in rows}
    return (
        rows[0].operator
        if len(rows) == 1
        else (f"{len(rows)} {names.pop()}" if len(names) == 1 else counted(len(rows), "operator"))
    )
