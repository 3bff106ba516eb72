"""What is on a page, as data: nothing here knows of HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from darwinn_testbench.report.tables import Column
from darwinn_testbench.report.verdict import Verdict

Item = TypeVar("Item")

Cell = Any
"""A cell of a table: int, float, str, bool, a Verdict, or None for an empty one."""

Columns = Mapping[str, Sequence[Any]]
"""The rows that a chart shows, by column: all sequences are equally long."""


@dataclass(frozen=True)
class Table:
    """A table that a reader can sort and search.

    Attributes:
        headings: one for each column.
        rows: cells, as many as headings.
        right: which columns stand at the right, as numbers do.
        keys: what each row is about (``layer:3``), empty for nothing; or no keys at all.
        folded: whether only the heading is seen until a reader opens it.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    right: Sequence[bool] = ()
    keys: Sequence[str] = ()
    folded: bool = False


@dataclass(frozen=True)
class Chart:
    """A chart: a Vega-Lite specification without data, and the columns that it shows.

    The specification names columns as fields; the frame adds data, size and colours of the page.
    A column ``key`` links its marks with what else of the page is about the same thing.

    Attributes:
        spec: the specification: ``mark`` and ``encoding``, or ``layer``, ``transform``, ``params``.
        columns: the rows.
        time: whether x is a time that all such charts of the page share; the specification is
            made by ``charts.over_time``.
        label: what a reader who cannot see it is told.
    """

    spec: Mapping[str, Any]
    columns: Columns
    time: bool = False
    label: str = ""


@dataclass(frozen=True)
class Box:
    """A box of a graph: lines of text, its middle in pixels, what kind of thing it is, its key.

    ``kind`` decides the colour; boxes of one kind have the same.
    """

    key: str
    lines: Sequence[str]
    x: float
    y: float
    kind: str = ""


@dataclass(frozen=True)
class Graph:
    """Boxes with lines between them: ``paths`` are points in pixels, from box to box.

    ``colours`` are those of kinds; a legend names the ones that the graph has, in this order. Kinds
    without one get any.
    """

    boxes: Sequence[Box]
    paths: Sequence[Sequence[tuple[float, float]]] = ()
    box_size: tuple[float, float] = (210, 50)
    colours: Mapping[str, str] = field(default_factory=dict)

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Kinds of the graph's boxes with their colours."""
        used = {box.kind for box in self.boxes}
        return [(kind, colour) for kind, colour in self.colours.items() if kind in used]


@dataclass(frozen=True)
class Picture:
    """An image: its bytes and media type (``image/png``)."""

    data: bytes
    media_type: str
    label: str = ""


@dataclass(frozen=True)
class Beside:
    """Other pages of the same server, side by side: what they are called, and where they are."""

    names: Sequence[str]
    addresses: Sequence[str]


Part = Table | Chart | Graph | Picture | Beside


def sentence(text: str) -> str:
    """A message as a sentence; one that begins with a name (of a file, say) keeps that as it is."""
    first = text.split(" ", 1)[0]
    return f"{text[:1].upper() if first.isalpha() else text[:1]}{text[1:]}."


@dataclass(frozen=True)
class Section:
    """A part of a page under a title: a text, and what it shows, in order."""

    title: str
    text: str = ""
    parts: Sequence[Part] = ()


@dataclass(frozen=True)
class Times:
    """The time of a page's charts of time, all in one unit: its end, and spans of keys in it."""

    duration: float = 0.0
    spans: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """A report: its verdict, a sentence that sums it up, and its sections in order.

    Attributes:
        title: of the page and of the window.
        verdict: the verdict, or None where there is nothing to judge.
        summary: a sentence or two.
        sections: in order.
        times: what its charts of time show, if it has any.
    """

    title: str
    verdict: Verdict | None
    summary: str
    sections: Sequence[Section]
    times: Times = Times()


def table_of(
    columns: Sequence[Column[Item]],
    rows: Sequence[Item],
    *,
    key: Callable[[Item], str] | None = None,
    folded: bool = False,
) -> Table:
    """The table that a command prints of ``rows``; ``key`` says what a row is about.

    Of several columns those without a text in any row are left out.
    """
    filled = [c for c in columns if any(c.cell(row) not in (None, "") for row in rows)]
    columns = filled or columns
    return Table(
        headings=[column.heading for column in columns],
        rows=[[column.cell(row) for column in columns] for row in rows],
        right=[column.justify == "right" for column in columns],
        keys=[key(row) for row in rows] if key else (),
        folded=folded,
    )
