"""`darwinn cycles`: how long an executable takes on the chip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from darwinn_sim.timing import built_in
from rich.console import RenderableType

from darwinn_testbench.cli import options, results
from darwinn_testbench.cli.console import finish
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.cycles import DEFAULT_CHIP, DEFAULT_HOST, NO_HOST, CyclesRow, measure
from darwinn_testbench.report import Column, Report, table

NAME = "cycles"
EXAMPLES = """**Examples**

`darwinn cycles model_edgetpu.tflite`

`darwinn cycles model_edgetpu.tflite --chip beagle-std --host usb2`

`darwinn cycles model_edgetpu.tflite --chip mine.toml --host none --json | jq '.rows[].cycles'`
"""

Chip = Annotated[
    str,
    typer.Option(
        "--chip",
        metavar="NAME",
        help=f"Chip description: {', '.join(built_in('chips'))}, or a TOML file (docs/timing.md).",
    ),
]
Host = Annotated[
    str,
    typer.Option(
        "--host",
        metavar="NAME",
        help=(
            f"Host link: {', '.join(built_in('hosts'))}, a TOML file, or {NO_HOST} for one of "
            "endless speed."
        ),
    ),
]

_COLUMNS: tuple[Column[CyclesRow], ...] = (
    Column("executable", lambda row: row.name),
    Column("type", lambda row: row.type, may_shrink=True),
    Column("cycles", lambda row: f"{row.cycles:,}", "right"),
    Column("ms", lambda row: f"{row.milliseconds:.3f}", "right"),
    Column("fixed", lambda row: f"{row.fixed_share:.0%}", "right"),
    Column("compiler", lambda row: _estimate(row), "right"),
    Column("verdict", lambda row: row.verdict),
)


def command(
    file: options.File,
    chip: Chip = DEFAULT_CHIP,
    host: Host = DEFAULT_HOST,
    executable: options.Executable = None,
    junit: results.JUnit = None,
    sarif: results.Sarif = None,
    markdown: results.Markdown = None,
    github: results.GitHub = False,
    json: options.Json = False,
) -> None:
    """Time each executable by an event model of the chip: cycle-approximate, the same every time.

    No data is needed. A model's inference is its EXECUTION_ONLY or STAND_ALONE executable;
    PARAMETER_CACHING runs once before. Milliseconds include the host's fixed cost of a request,
    whose share is shown; `compiler` is the compiler's own estimate of the cycles.
    """
    written = results.Results(json, junit, sarif, markdown, github)
    with progress_bar() as progress:
        report = measure(
            options.source_of(file), chip=chip, host=host, executable=executable, progress=progress
        )
    written.write([report])
    finish(
        report,
        file=file,
        as_json=json,
        body=_body,
        next_step=f"darwinn profile {file} shows where the cycles go",
    )


def _body(report: Report[CyclesRow]) -> Sequence[RenderableType]:
    return [table(_COLUMNS, report.rows)]


def _estimate(row: CyclesRow) -> str:
    return "" if row.estimated_cycles is None else f"{row.estimated_cycles:,}"
