"""The profile of a program of another format as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from darwinn_testbench.layers.graph import COLOURS
from darwinn_testbench.pages import (
    Chart,
    Columns,
    Graph,
    Page,
    Section,
    Table,
    render,
    sentence,
    table_of,
)
from darwinn_testbench.pages.charts import bars
from darwinn_testbench.profile.network import KINDS, laid_out
from darwinn_testbench.profile.operator_graph import drawn_kind, key_of, operator_nodes
from darwinn_testbench.profile.operator_tables import KIND_COLUMNS, TIME_COLUMNS, TIME_NOTE
from darwinn_testbench.profile.operators import OperatorTimeRow
from darwinn_testbench.report import Report, counted

MOST_BOXES = 600
"""Operators of a graph that is drawn on a page: more take minutes to be laid out."""
_MOST_BARS = 80

Times = Report[OperatorTimeRow]


def operator_page(report: Times, library: str = "") -> bytes:
    """The page, as HTML; ``library`` as of ``pages.render``."""
    return render(
        Page(
            title=Path(report.file).name,
            verdict=report.verdict,
            summary=sentence(report.headline),
            sections=(operator_summary(report), *operator_sections(report)),
        ),
        library,
    )


def operator_summary(report: Times) -> Section:
    """The figures of a call as a whole."""
    figures = report.figures
    rows: list[tuple[str, Any]] = [
        ("format", figures["format"]),
        ("function", figures["function"]),
        ("milliseconds of a call", 1000 * figures["seconds"]),
        ("milliseconds of the first call", 1000 * figures["first_seconds"]),
        ("calls measured", figures["calls"]),
        ("inputs", inputs_of(figures)),
    ]
    text = f"Measured by {figures['measured_by']}."
    shown = [row for row in rows if row[1] is not None]
    return Section(
        "Summary",
        " ".join((text, *map(sentence, figures["warnings"]))),
        [Table(("figure", "value"), shown, (False, True))],
    )


def inputs_of(figures: Mapping[str, Any]) -> str | None:
    """Where the inputs of the calls are from; None if that is not known."""
    if "seed" not in figures:
        return None
    return f"drawn from seed {figures['seed']}" if figures["random_inputs"] else "given"


def operator_sections(report: Times) -> Iterator[Section]:
    """The network, where the time goes, and all operators."""
    yield from _network(report)
    if report.rows:
        text = (
            f"{TIME_NOTE} The slowest {_MOST_BARS} operators at most are drawn; the table has all."
        )
        yield Section("Time by operator", text, [_time_by_operator(report)])
        yield Section("Time by operation", parts=[table_of(KIND_COLUMNS, report.figures["kinds"])])
    yield Section("Operators", parts=[table_of(TIME_COLUMNS, report.rows, key=key_of)])
    ports = [(each.direction, each.name, ", ".join(each.tensors)) for each in _ports(report)]
    yield Section("Inputs and outputs", parts=[Table(("", "name", "tensor"), ports)])


def _ports(report: Times) -> Any:
    return report.figures["ports"]


def _network(report: Times) -> Iterator[Section]:
    nodes = operator_nodes(report)
    if len(nodes) > MOST_BOXES:
        text = f"{len(nodes):,} boxes are too many to be drawn here."
        yield Section("Network", text)
        return
    graph: Graph | None = laid_out(nodes, KINDS) if nodes else None
    if graph is not None:
        text = "An operator that is chosen here is marked in all charts and tables."
        yield Section("Network", text, [graph])


def _time_by_operator(report: Times) -> Chart:
    by_time = sorted(report.rows, key=lambda row: -row.seconds)
    slowest = {row.number for row in by_time[:_MOST_BARS]}
    rows = [row for row in report.rows if row.number in slowest]
    drawn = [drawn_kind(row.kind) or "other" for row in rows]
    columns: Columns = {
        "name": [f"{row.number} {row.kind}" for row in rows],
        "part": drawn,
        "value": [1000 * row.seconds for row in rows],
        "key": [key_of(row) for row in rows],
        "note": [f"{row.name}, {counted(row.executions, 'run')}" for row in rows],
    }
    parts = [kind for kind in (*COLOURS, "other") if kind in drawn]
    return bars(columns, unit="ms", label="time of each operator", parts=parts)
