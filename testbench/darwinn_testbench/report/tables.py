"""Rows as a table for people: columns are declared as (heading, how to read the cell)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from darwinn_formats.names import readable
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from darwinn_testbench.report.shortened import shortened
from darwinn_testbench.report.verdict import STYLES, Verdict

Item = TypeVar("Item")

_LEAST_WIDTH = 8
"""Characters that a column of texts keeps."""
_BEYOND_COUNTING = 1e15
_GAP = 2
"""Characters between two columns."""


@dataclass(frozen=True)
class Column(Generic[Item]):
    """A column: its heading and the function that takes the cell out of a row.

    Where the screen is narrow, cells of columns that ``may_shrink`` are the first to lose their
    middle.
    """

    heading: str
    cell: Callable[[Item], Any]
    justify: Literal["left", "right"] = "left"
    may_shrink: bool = False


class FittedTable:
    """A table that fits the width of its terminal or file.

    First the columns that may shrink give way, then all other texts; names lose their middle. If
    this is not enough, columns are left out from the right, and a line says which. Numbers and
    verdicts are never cut, and the column of verdicts is never left out.
    """

    def __init__(self, headings: Sequence[str], columns: Sequence[Fit], title: str | None) -> None:
        self.headings = headings
        self.columns = columns
        self.title = title

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, and which columns have found no room."""
        shown, widths = fitted(self.columns, options.max_width)
        result = Table(
            title=self.title, title_justify="left", header_style="bold", box=None, pad_edge=False
        )
        for place, width in zip(shown, widths, strict=True):
            justify = self.columns[place].justify
            result.add_column(shortened(self.headings[place], width), justify=justify, no_wrap=True)
        for line in zip(*(self.columns[place].cells for place in shown), strict=True):
            result.add_row(*map(_within, line, widths))
        yield result
        left_out = [name for k, name in enumerate(self.headings) if k not in shown and name]
        if left_out:
            yield Text(f"no room for: {', '.join(left_out)} (--wide shows them)", style="dim")


@dataclass(frozen=True)
class Fit:
    """A column to be fitted: its cells, its ``width`` where nothing is cut, and how it gives way.

    ``rank`` 0 gives way first, 1 after that, None never; ``kept`` is not left out either.
    """

    cells: Sequence[Text]
    width: int
    justify: Literal["left", "right"]
    rank: int | None
    kept: bool


def fitted(columns: Sequence[Fit], room: int) -> tuple[list[int], list[int]]:
    """Which columns are shown in ``room`` characters, and how wide each of them is."""
    shown = list(range(len(columns)))
    while True:
        widths = {place: columns[place].width for place in shown}
        gaps = _GAP * (len(shown) - 1)
        for rank in (0, 1):
            group = [place for place in shown if columns[place].rank == rank]
            rest = sum(widths[place] for place in shown if place not in group)
            cap = _cap([widths[place] for place in group], room - gaps - rest)
            widths |= {place: min(widths[place], cap) for place in group}
        spare = [place for place in shown[1:] if not columns[place].kept]
        if sum(widths.values()) + gaps <= room or not spare:
            return shown, [widths[place] for place in shown]
        shown.remove(spare[-1])


def _cap(widths: Sequence[int], room: int) -> int:
    """The greatest width that no column may exceed, so that all have room; few if there is none."""
    for cap in range(max(widths, default=0), _LEAST_WIDTH, -1):
        if sum(min(width, cap) for width in widths) <= room:
            return cap
    return _LEAST_WIDTH


def _within(cell: Text, width: int) -> Text:
    if cell.cell_len <= width or cell.style:
        return cell
    # Characters that take two places are rare in names: room for them is made by cutting more.
    text = shortened(cell.plain, width)
    while cell_len(text) > width:
        text = shortened(text, len(text) - 1)
    return Text(text)


def table(
    columns: Sequence[Column[Item]], rows: Iterable[Item], *, title: str | None = None
) -> FittedTable:
    """A table of ``rows``; verdicts are coloured, None is an empty cell."""
    values = [[column.cell(row) for column in columns] for row in rows]
    fits = []
    for place, column in enumerate(columns):
        given = [line[place] for line in values]
        cells = [_cell(value) for value in given]
        kept = any(isinstance(value, Verdict) for value in given)
        numbers = column.justify == "right"
        rank = 0 if column.may_shrink else None if kept or numbers else 1
        width = max([len(column.heading), *(cell.cell_len for cell in cells)])
        fits.append(Fit(cells, width, column.justify, rank, kept))
    return FittedTable([column.heading for column in columns], fits, title)


def column_width(column: Column[Item], rows: Iterable[Item]) -> int:
    """Characters that a column takes where nothing is cut."""
    return max([len(column.heading), *(_cell(column.cell(row)).cell_len for row in rows)])


def seconds(value: float) -> str:
    """A measured time: nothing below a millisecond is worth a wider column."""
    return f"{value:.3f}"


def significant(value: float, digits: int = 3) -> str:
    """``value`` with so many significant digits, but every digit before the point: 0.949, 1,054.

    An exponent is only for what is tiny or beyond counting.
    """
    whole = 10 ** (digits - 1) <= abs(value) < _BEYOND_COUNTING
    return f"{value:,.0f}" if whole else f"{value:.{digits}g}"


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
        return f"{value:.3f}" if 0.001 <= abs(value) < 1000 else significant(value)
    return "" if value is None else readable(str(value))


def _cell(value: Any) -> Text:
    return styled(value) if isinstance(value, Verdict) else Text(cell_text(value))
