"""What `layers` and `profile` print of programs of other formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from rich.console import RenderableType

from darwinn_testbench.cli.console import after_failure, finish, wrapped
from darwinn_testbench.layers.graph import draw_nodes
from darwinn_testbench.profile.operator_graph import operator_nodes
from darwinn_testbench.profile.operator_page import inputs_of
from darwinn_testbench.profile.operator_tables import (
    KIND_COLUMNS,
    OPERATOR_COLUMNS,
    TIME_COLUMNS,
    TIME_NOTE,
    filled,
)
from darwinn_testbench.profile.operators import OperatorTimeRow
from darwinn_testbench.programs.operators import NOT_EXECUTED, OperatorRow
from darwinn_testbench.report import Column, Report, significant, table
from darwinn_testbench.report.files import write_result
from darwinn_testbench.report.shell import quote

Item = TypeVar("Item")

_MOST_ROWS = 60
"""Operators that the table of times shows, the slowest; --json, --csv and --html have all."""


def finish_layers(
    report: Report[OperatorRow], file: str, graph: Path | None, *, as_json: bool
) -> NoReturn:
    """Write the graph, print the operators, and end with the exit code."""
    if graph is not None:
        write_result(graph, draw_nodes(operator_nodes(report), graph.suffix[1:].lower()))
    finish(
        report,
        file=file,
        as_json=as_json,
        body=_layers_body,
        next_step=_next(
            report,
            file,
            _after_a_sketch(file) if _is_sketch(report) else _after_a_call(file),
        ),
    )


def _is_sketch(report: Report[OperatorRow]) -> bool:
    """Whether parts of the program were not executed."""
    return any(each.startswith(NOT_EXECUTED) for each in report.figures["warnings"])


def _after_a_call(file: str) -> str:
    return (
        f"darwinn profile {quote(file)} times them; darwinn run {quote(file)} --tap '*' "
        "shows what they compute"
    )


def _after_a_sketch(file: str) -> str:
    return f"darwinn inspect {quote(file)} tells what else is in the file"


def finish_profile(
    report: Report[OperatorTimeRow],
    file: str,
    html: Path | None,
    top: int | None = None,
    *,
    as_json: bool,
    next_step: str,
) -> NoReturn:
    """Write the files, print the times, and end with the exit code."""
    if html is not None:
        # Imported here: no other call should wait for it.
        from darwinn_testbench.profile.operator_page import operator_page

        write_result(html, operator_page(report))
    on_stdout = str(html) == "-"
    finish(
        report,
        file=file,
        as_json=as_json,
        body=(lambda _: []) if on_stdout else partial(_profile_body, top=top),
        next_step=_next(report, file, next_step if html is None else _opens(html)),
        summary_on_stderr=on_stdout,
    )


def _opens(html: Path) -> str:
    return f"open {quote(str(html))} in a browser"


def _next(report: Report[OperatorRow], file: str, otherwise: str) -> str:
    if not report.verdict.failed:
        return otherwise
    return after_failure(report.verdict, file, drawn=report.figures.get("random_inputs", False))


def _layers_body(report: Report[OperatorRow]) -> Sequence[RenderableType]:
    ports = [str(each) for each in report.figures["ports"]]
    columns = filled(OPERATOR_COLUMNS, report.rows)
    return [*_tables(columns, report.rows), *ports, *_warnings(report)]


def _profile_body(report: Report[OperatorTimeRow], top: int | None) -> Sequence[RenderableType]:
    slowest = sorted(report.rows, key=lambda row: -row.seconds)[: top or _MOST_ROWS]
    shown = slowest if top else [row for row in report.rows if row in slowest]
    kinds = report.figures["kinds"]
    left = len(report.rows) - len(shown)
    more = [f"and {left:,} operators more, each faster; --json and --csv have all"] if left else []
    return [
        *_tables(filled(TIME_COLUMNS, shown), shown),
        *more,
        "",
        *(_tables(KIND_COLUMNS, kinds) if len(kinds) < len(report.rows) else []),
        *([wrapped(TIME_NOTE), wrapped(_whole(report.figures))] if report.rows else []),
        *_warnings(report),
    ]


def _whole(figures: Mapping[str, Any]) -> str:
    """What a call takes as a whole, and by what that was measured."""
    drawn = inputs_of(figures)
    return (
        f"{significant(1000 * figures['seconds'])} ms a call, the first "
        f"{significant(1000 * figures['first_seconds'])} ms, measured by {figures['measured_by']}"
        + (f"; inputs {drawn}" if drawn else "")
    )


def _tables(columns: Sequence[Column[Item]], rows: Sequence[Item]) -> list[RenderableType]:
    return [table(columns, rows)] if rows else []


def _warnings(report: Report[OperatorRow]) -> list[RenderableType]:
    return [wrapped(f"warning: {each}") for each in report.figures["warnings"]]
