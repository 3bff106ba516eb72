"""`darwinn compile`: compile models for the Edge TPU."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated

from darwinn_formats.files import name_of
from rich.console import RenderableType

from darwinn_testbench.cli import options
from darwinn_testbench.cli.console import Lines, finish
from darwinn_testbench.cli.declared import argument, option
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.compilation.compile import (
    Compiled,
    CompileOptions,
    compile_models,
    together,
)
from darwinn_testbench.compilation.log import log_of
from darwinn_testbench.compilation.outcome import CompileRow, LayerRow
from darwinn_testbench.report import Column, Report, Verdict, counted, table
from darwinn_testbench.report.files import write_result
from darwinn_testbench.report.shell import quote
from darwinn_testbench.request import settings

EXAMPLES = """**Examples**

`darwinn compile model.tflite`

`darwinn compile model.tflite --out_dir build --show_operations`

`darwinn compile model.tflite --explain-schedule`

`darwinn compile large.tflite --num_segments 2`

`darwinn compile first.tflite second.tflite`

`darwinn compile model.tflite --intermediate_tensors MobilenetV1/Logits/AvgPool_1a/AvgPool --json`
"""

Models = Annotated[
    list[str],
    argument("MODEL", "A .tflite before compilation; several share the parameter memory."),
]
OutDir = Annotated[
    Path | None,
    option("--out_dir -o DIR", "Folder for the results; by default that of the model."),
]
ShowOperations = Annotated[
    bool, option("--show_operations -s", "Print the log's table of operators, too.")
]
MinRuntime = Annotated[
    int,
    option(
        "--min_runtime_version -m N",
        "Lowest runtime version that the result must run on; below 14 is refused.",
    ),
]
Segments = Annotated[
    int,
    option(
        "--num_segments -n N",
        "Cut the model into N segments of about the same predicted time, for N chips one after "
        "another: MODEL_segment_0_of_N_edgetpu.tflite and so on.",
        min=1,
        max=64,
    ),
]
Intermediate = Annotated[
    str | None,
    option(
        "--intermediate_tensors -i NAMES",
        "Names of tensors, separated by commas, at which the chip's part ends.",
    ),
]
Subgraphs = Annotated[
    bool,
    option(
        "--enable_multiple_subgraphs -a",
        "Give the chip every further piece of the network. By default it gets only pieces that are "
        "predicted to take less time than on the CPU.",
    ),
]
Search = Annotated[
    bool,
    option(
        "--search_delegate -d",
        "Accepted; changes nothing: the compiler always looks for the largest part that compiles.",
    ),
]
SearchStep = Annotated[
    int, option("--delegate_search_step -k N", "Accepted with -d; it changes nothing.", min=1)
]
Timeout = Annotated[int, option("--timeout_sec -t S", "Give up after S seconds; 0: never.", min=0)]
NoCheck = Annotated[bool, option("--no-check", "Write the file without verifying it.")]
ExplainSchedule = Annotated[
    bool,
    option(
        "--explain-schedule",
        "Print for each layer on how many tiles it runs, in which memory, whether its parameters "
        "stay on the chip, and its predicted cycles.",
    ),
]

_COLUMNS: tuple[Column[tuple[CompileRow, ...]], ...] = (
    Column("#", lambda rows: _numbers(rows), "right"),
    Column("operator", lambda rows: _operators(rows), may_shrink=True),
    Column("on", lambda rows: _place(rows[0])),
    Column("why", lambda rows: rows[0].reason),
)
_SCHEDULE: tuple[Column[LayerRow], ...] = (
    Column("#", lambda layer: layer.number, "right"),
    Column("operator", lambda layer: layer.operator),
    Column("piece", lambda layer: layer.piece, "right"),
    Column("tiles", lambda layer: layer.tiles, "right"),
    Column("bands", lambda layer: layer.bands, "right"),
    Column("bytes/tile", lambda layer: layer.bytes, "right"),
    Column("cached", lambda layer: layer.kept, "right"),
    Column("streamed", lambda layer: layer.streamed, "right"),
    Column("cycles", lambda layer: layer.cycles, "right"),
    Column("steps", lambda layer: _steps(layer), may_shrink=True),
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
    explain_schedule: ExplainSchedule = False,
    no_check: NoCheck = False,
    json: settings.Json = False,
) -> None:
    """Compile a model for the Edge TPU, verify the result, and write it with a log.

    MODEL.tflite, quantised to 8 bits, becomes MODEL_edgetpu.tflite and MODEL_edgetpu.log. The
    command verifies the result as `verify` does; if that fails, it writes nothing. It names each
    operator that stays on the CPU, with the reason. `darwinn docs compiler` says what is compiled.
    Several models share the memory for parameters on one chip; the first one gets room first.
    """
    del search_delegate, delegate_search_step
    wanted = CompileOptions(
        intermediate_tensors=tuple(filter(None, (intermediate_tensors or "").split(","))),
        min_runtime_version=min_runtime_version,
        num_segments=num_segments,
        multiple_subgraphs=enable_multiple_subgraphs,
        timeout=timeout_sec,
        check=not no_check,
        times=explain_schedule,
    )
    with progress_bar() as progress:
        sources = [options.source_of(model) for model in models]
        compiled = compile_models(sources, wanted, progress=progress)
    folders = _folders([name_of(source) for source in sources], out_dir, len(compiled))
    results = [
        Result(each, folder / f"{each.name}_edgetpu.tflite")
        for each, folder in zip(compiled, folders, strict=True)
    ]
    report = together(compiled, ", ".join(models))
    # What was compiled together is of use together: all of it is written, or nothing.
    written = [result for result in results if result.compiled.data]
    if report.verdict.failed and report.verdict is not Verdict.REFUSED:
        written = []
    for result in written:
        result.write()
    finish(
        report,
        file=", ".join(models),
        as_json=json,
        body=lambda found: _body(found, written, show_operations, explain_schedule),
        next_step=_next_step(models, [os.fspath(each.target) for each in written]),
    )


def _next_step(models: Sequence[str], written: Sequence[str]) -> str:
    if not written:
        return f"darwinn explain {quote(models[0])} says what to change"
    if len(models) == 1 and len(written) > 1:
        segments = " ".join(map(quote, written))
        return f"darwinn cycles --pipeline {segments} says how long its segments take"
    return f"darwinn cycles {quote(written[0])} says how long it takes"


@dataclass(frozen=True)
class Result:
    """A compiled model, and the file that it is written to."""

    compiled: Compiled
    target: Path

    @property
    def log(self) -> Path:
        """The file of the log."""
        return self.target.with_suffix(".log")

    def text(self, *, operations: bool = True) -> str:
        """The log, with its table of operators or without."""
        target, log = os.fspath(self.target), os.fspath(self.log)
        return log_of(self.compiled.report, target, log, operations=operations)

    def write(self) -> None:
        """Write model and log: over links of their names, which may lead to other models."""
        self.target.parent.mkdir(parents=True, exist_ok=True)
        write_result(self.target, self.compiled.data, over_link=True)
        write_result(self.log, self.text().encode(), over_link=True)


def _folders(files: Sequence[str], folder: Path | None, count: int) -> list[Path]:
    """Where each result goes: to ``folder``, or beside its model."""
    if folder is not None:
        return [folder] * count
    beside = [Path(file).parent for file in files]
    return beside if len(beside) == count else beside[:1] * count


def _body(
    report: Report[CompileRow], written: Sequence[Result], operations: bool, schedule: bool
) -> Sequence[RenderableType]:
    lines: list[RenderableType] = []
    for result in written:
        head, _, rest = result.text(operations=operations).partition("\nVerification:")
        # Scripts read these lines: each stays one, however long its path is.
        lines.append(Lines.of(head.splitlines()))
        rest = rest.partition("\n")[2]
        if rest:
            lines.append(Lines.of(rest.splitlines()))
        lines.append("")
    if schedule:
        lines += _schedule(report)
    several = len(report.figures["files"]) > 1
    lines.append(table((_FILE, *_COLUMNS) if several else _COLUMNS, _alike(report.rows)))
    return lines


_FILE: Column[tuple[CompileRow, ...]] = Column("model", lambda rows: rows[0].file)


def _schedule(report: Report[CompileRow]) -> Iterator[RenderableType]:
    """A table of layers for each model."""
    layers: Sequence[LayerRow] = report.figures["layers"]
    for file, group in groupby(layers, lambda layer: layer.file):
        if file:
            yield file
        yield table(_SCHEDULE, list(group))
        yield ""


def _steps(layer: LayerRow) -> str:
    """The steps of a layer, those that repeat with their number."""
    runs = [(name, len(list(group))) for name, group in groupby(layer.phases)]
    return ", ".join(name if count == 1 else f"{count} {name}" for name, count in runs)


def _place(row: CompileRow) -> str:
    return f"{row.place.value} {row.piece}" if row.piece else row.place.value


def _alike(rows: Sequence[CompileRow]) -> list[tuple[CompileRow, ...]]:
    def like(row: CompileRow) -> tuple[object, ...]:
        return row.file, row.place, row.piece, row.reason

    return [tuple(group) for _, group in groupby(rows, like)]


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
