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
    Verdict.REGRESSION: "bold red",
    Verdict.FAULT: "bold red",
    Verdict.BAD_INPUT: "bold red",
}

_LEAST_WIDTH = 12
"""Characters that a column that may shrink keeps."""


@dataclass(frozen=True)
class Column(Generic[RowType]):
    """A column: its heading and the function that takes the cell out of a row.

    Where the screen is narrow, cells of columns that ``may_shrink`` lose their end.
    """

    heading: str
    cell: Callable[[RowType], Any]
    justify: Literal["left", "right"] = "left"
    may_shrink: bool = False


def table(
    columns: Sequence[Column[RowType]], rows: Iterable[RowType], *, title: str | None = None
) -> Table:
    """A table of ``rows``; verdicts are coloured, None is an empty cell."""
    result = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for column in columns:
        result.add_column(
            column.heading,
            justify=column.justify,
            no_wrap=not column.may_shrink,
            min_width=_LEAST_WIDTH if column.may_shrink else None,
            overflow="ellipsis",
        )
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
        return Text(f"{value:.3f}" if 0.001 <= abs(value) < 1000 else f"{value:.3g}")
    return Text("" if value is None else str(value))
