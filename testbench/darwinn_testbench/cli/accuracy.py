"""`darwinn accuracy`: predicted latencies against published ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from rich.console import RenderableType

from darwinn_testbench.accuracy import AccuracyRow, check_accuracy, load, page, published
from darwinn_testbench.cli import options, results
from darwinn_testbench.cli.console import finish
from darwinn_testbench.cli.declared import option
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Column, Report, Verdict, table
from darwinn_testbench.report.files import write_result
from darwinn_testbench.request import settings, timing
from darwinn_testbench.request.timing import DEFAULT_CHIP

EXAMPLES = """**Examples**

`darwinn accuracy --models FOLDER`

`darwinn accuracy --points mine.toml --at-most 10 --json`

`darwinn accuracy --models FOLDER --points mine.toml --points published`
"""

PUBLISHED = "published"
"""Stands for the published points in --points."""

Models = Annotated[
    Path | None,
    option(
        "--models FOLDER",
        "Compiled models, NAME_edgetpu.tflite.  [default: DARWINN_CORPUS/darwinn]",
    ),
]
PointsFiles = Annotated[
    list[str] | None,
    option(
        "--points FILE",
        "TOML file of latencies that you measured (`darwinn docs timing`), instead of the "
        f"published ones. Repeat it for several; {PUBLISHED} stands for the published ones.",
    ),
]
AtMost = Annotated[
    float | None,
    option(
        "--at-most PERCENT",
        "Count a point with a larger error as a mismatch.",
        min=0,
    ),
]
Document = Annotated[
    Path | None, option("--document FILE", "Write the page docs/accuracy.md to FILE.")
]

_FROM = {"other models": "fit", "link": "link", "": ""}
"""What the table calls the ways to a fixed cost."""

_COLUMNS: tuple[Column[AccuracyRow], ...] = (
    Column("model", lambda row: row.model, may_shrink=True),
    Column("host", lambda row: row.host, may_shrink=True),
    Column("ms", lambda row: row.published, "right"),
    Column("chip", lambda row: _number(row.simulated, ".3f"), "right"),
    Column("fixed", lambda row: _number(row.fixed, ".3f"), "right"),
    Column("from", lambda row: _FROM[row.fixed_from]),
    Column("predicted", lambda row: _number(row.predicted, ".3f"), "right"),
    Column("error", lambda row: _number(row.error, "+.1%"), "right"),
    Column("peak", lambda row: _number(row.mac_error, "+.0%"), "right"),
    Column("roof", lambda row: _number(row.roofline_error, "+.1%"), "right"),
)


def command(
    models: Models = None,
    points: PointsFiles = None,
    chip: timing.Chip = DEFAULT_CHIP,
    at_most: AtMost = None,
    document: Document = None,
    markdown: results.Markdown = None,
    json: settings.Json = False,
) -> None:
    """Predict published latencies and show the errors; no model's figures predict itself.

    `ms` is the published time. `predicted` is the sum of two times: the simulated time of chip and
    link (`chip`), and the host's `fixed` cost of a request. The fixed cost is fitted on other
    models of the same host (`fit`), or is that of its `link`. Two more columns show the errors of
    two baselines: the multiplications at the chip's `peak`, and a roofline with the host's
    bandwidth and fixed cost. If a point has no prediction, its row gives the reason.
    """
    options.only_one_on_stdout(json=json, document=document)
    names = points or [PUBLISHED]
    if document is not None and names != [PUBLISHED]:
        raise InputError("--document is the page of the published points: not with --points")
    tables = [published() if name == PUBLISHED else load(Path(name)) for name in names]
    with progress_bar() as progress:
        report = check_accuracy(
            tables, _folder(models, names), chip_name=chip, at_most=at_most, progress=progress
        )
    if document is not None and report.verdict is Verdict.PASS:
        write_result(document, page(report).encode())
    results.Results(json=json, markdown=markdown).write([report])
    finish(
        report,
        file=report.file if names == [PUBLISHED] else ", ".join(names),
        as_json=json,
        body=_body,
        next_step=_next_step(report, document),
    )


def _folder(models: Path | None, names: list[str]) -> Path | None:
    """Where compiled models are that are given by name; None: beside their file of points."""
    corpus = os.environ.get("DARWINN_CORPUS")
    if models is not None or corpus:
        return models or Path(str(corpus)) / "darwinn"
    if PUBLISHED in names:
        raise InputError("no compiled models: give --models FOLDER or set DARWINN_CORPUS")
    return None


def _next_step(report: Report[AccuracyRow], document: Path | None) -> str:
    if document is not None and report.verdict is not Verdict.PASS:
        return f"{document} is not written: it needs every point"
    return "darwinn docs timing says what the model holds and what it lacks"


def _body(report: Report[AccuracyRow]) -> Sequence[RenderableType]:
    predicted = [row for row in report.rows if row.predicted is not None]
    left: dict[str, list[str]] = {}
    for row in report.rows:
        if row.predicted is None:
            left.setdefault(row.message, []).append(row.name)
    notes = [f"left out: {'; '.join(names)}: {reason}" for reason, names in left.items()]
    return [*([table(_COLUMNS, predicted)] if predicted else []), *notes]


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
