"""`darwinn accuracy`: predicted latencies against published ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from darwinn_testbench.accuracy import AccuracyRow, check_accuracy, load, page, published
from darwinn_testbench.cli import options, results, timing_options
from darwinn_testbench.cli.console import finish
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.cycles import DEFAULT_CHIP
from darwinn_testbench.report import Column, InputError, Report, table
from darwinn_testbench.report.files import write_result

EXAMPLES = """**Examples**

`darwinn accuracy --models FOLDER`

`darwinn accuracy --points mine.toml --json`
"""

Models = Annotated[
    str | None,
    typer.Option(
        "--models",
        metavar="FOLDER",
        help="Compiled models, NAME_edgetpu.tflite.  [default: DARWINN_CORPUS/darwinn]",
        show_default=False,
    ),
]
PointsFile = Annotated[
    str | None,
    typer.Option(
        "--points",
        metavar="FILE",
        help="Points of your own, TOML (docs/timing.md), instead of the published ones.",
        show_default=False,
    ),
]
Document = Annotated[
    str | None,
    typer.Option(
        "--document", metavar="FILE", help="Write docs/accuracy.md anew.", show_default=False
    ),
]

_COLUMNS: tuple[Column[AccuracyRow], ...] = (
    Column("model", lambda row: row.model, may_shrink=True),
    Column("host", lambda row: row.host, may_shrink=True),
    Column("published ms", lambda row: row.published, "right"),
    Column("predicted ms", lambda row: _number(row.predicted, ".3f"), "right"),
    Column("error", lambda row: _number(row.error, "+.1%"), "right"),
    Column("peak", lambda row: _number(row.mac_error, "+.0%"), "right"),
    Column("roofline", lambda row: _number(row.roofline_error, "+.1%"), "right"),
)


def command(
    models: Models = None,
    points: PointsFile = None,
    chip: timing_options.Chip = DEFAULT_CHIP,
    document: Document = None,
    markdown: results.Markdown = None,
    json: options.Json = False,
) -> None:
    """Predict published latencies, each without the figures of its own model.

    Beside each prediction stand those of two baselines: the multiplications at the chip's peak, and
    a roofline with the host's bandwidth and fixed cost. Points without prediction say why.
    """
    corpus = os.environ.get("DARWINN_CORPUS")
    if not models and not corpus:
        raise InputError("no compiled models: give --models FOLDER or set DARWINN_CORPUS")
    folder = Path(models) if models else Path(str(corpus)) / "darwinn"
    chosen = published() if points is None else load(Path(points))
    with progress_bar() as progress:
        report = check_accuracy(chosen, folder, chip_name=chip, progress=progress)
    if document:
        write_result(document, page(report).encode())
    results.Results(json, None, None, markdown, False).write([report])
    finish(
        report,
        file=str(folder),
        as_json=json,
        body=_body,
        next_step="docs/timing.md says what the model holds and what it lacks",
    )


def _body(report: Report[AccuracyRow]) -> Sequence[RenderableType]:
    predicted = [row for row in report.rows if row.predicted is not None]
    left = [f"left out: {row.model}: {row.message}" for row in report.rows if row.message]
    return [table(_COLUMNS, predicted), *left]


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
