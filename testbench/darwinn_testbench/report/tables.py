"""Rows as a table for people: columns are declared as (heading, how to read the cell)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from darwinn_formats.errors import printable
from rich.table import Table
from rich.text import Text

from darwinn_testbench.report.verdict import STYLES, Verdict

Item = TypeVar("Item")

_LEAST_WIDTH = 8
"""Characters that a column that may shrink keeps: few, or the last column is off the screen."""


@dataclass(frozen=True)
class Column(Generic[Item]):
    """A column: its heading and the function that takes the cell out of a row.

    Where the screen is narrow, cells of columns that ``may_shrink`` lose their end.
    """

    heading: str
    cell: Callable[[Item], Any]
    justify: Literal["left", "right"] = "left"
    may_shrink: bool = False


def table(
    columns: Sequence[Column[Item]], rows: Iterable[Item], *, title: str | None = None
) -> Table:
    """A table of ``rows``; verdicts are coloured, None is an empty cell."""
    result = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    cells = [[_cell(column.cell(row)) for column in columns] for row in rows]
    for index, column in enumerate(columns):
        widest = max([len(column.heading), *(line[index].cell_len for line in cells)])
        result.add_column(
            column.heading,
            justify=column.justify,
            no_wrap=not column.may_shrink,
            min_width=min(widest, _LEAST_WIDTH) if column.may_shrink else None,
            overflow="ellipsis",
        )
    for line in cells:
        result.add_row(*line)
    return result


def column_width(column: Column[Item], rows: Iterable[Item]) -> int:
    """Characters that a column takes where nothing is cut."""
    return max([len(column.heading), *(_cell(column.cell(row)).cell_len for row in rows)])


def shortened(text: str, most: int) -> str:
    """``text`` in at most ``most`` characters: what is left out is left out in the middle.

    Names of tensors and files begin with what they share and end with what tells them apart.
    """
    if len(text) <= most:
        return text
    if most < 2:
        return "…"[:most]
    end = most // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def seconds(value: float) -> str:
    """A measured time: nothing below a millisecond is worth a wider column."""
    return f"{value:.3f}"


def counted(count: int, noun: str) -> str:
    """A number of things, which are called by ``noun`` if it is one: ``1 layer``, ``2 layers``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def styled(verdict: Verdict) -> Text:
    """The verdict's word in its colour."""
    return Text(verdict.value, style=STYLES[verdict])


def cell_text(value: Any) -> str:
    """What a table shows of a value, in one line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3f}" if 0.001 <= abs(value) < 1000 else f"{value:.3g}"
    return "" if value is None else printable(str(value))


def _cell(value: Any) -> Text:
    return styled(value) if isinstance(value, Verdict) else Text(cell_text(value))
