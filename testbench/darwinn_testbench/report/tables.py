"""Rows as a table for people: columns are declared as (heading, how to read the cell)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal

from rich.table import Table
from rich.text import Text

from darwinn_testbench.report.result import RowType
from darwinn_testbench.report.verdict import Verdict

_STYLES = {
    Verdict.PASS: "green",
    Verdict.REFUSED: "yellow",
    Verdict.MISMATCH: "bold red",
    Verdict.FAULT: "bold red",
    Verdict.BAD_INPUT: "bold red",
}


@dataclass(frozen=True)
class Column(Generic[RowType]):
    """A column: its heading and the function that takes the cell out of a row.

    Numbers are justified ``right`` and never cut; ``left`` columns are folded where the screen is
    narrow.
    """

    heading: str
    cell: Callable[[RowType], Any]
    justify: Literal["left", "right"] = "left"


def table(
    columns: Sequence[Column[RowType]], rows: Iterable[RowType], *, title: str | None = None
) -> Table:
    """A table of ``rows``; verdicts are coloured, None is an empty cell."""
    result = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for column in columns:
        number = column.justify == "right"
        result.add_column(column.heading, justify=column.justify, no_wrap=number, overflow="fold")
    for row in rows:
        result.add_row(*(_cell(column.cell(row)) for column in columns))
    return result


def styled(verdict: Verdict) -> Text:
    """The verdict's word in its colour."""
    return Text(verdict.value, style=_STYLES[verdict])


def _cell(value: Any) -> Text:
    if isinstance(value, Verdict):
        return styled(value)
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, int):
        return Text(f"{value:,}")
    if isinstance(value, float):
        return Text(f"{value:.4g}")
    return Text("" if value is None else str(value))
