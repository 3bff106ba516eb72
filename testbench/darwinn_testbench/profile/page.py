"""A report as one HTML file that needs nothing else: no network, no scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from darwinn_formats.errors import printable
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from darwinn_testbench.report import Column, Verdict
from darwinn_testbench.report.tables import cell_text

Item = TypeVar("Item")


@dataclass(frozen=True)
class Section:
    """A part of a page: a text, a picture (SVG), a table, or several of them."""

    title: str
    text: str = ""
    picture: str = ""
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True)
class Page:
    """A report: its verdict, a sentence that sums it up, and its sections in order."""

    title: str
    verdict: Verdict
    summary: str
    sections: tuple[Section, ...]


def table_section(
    title: str, columns: Sequence[Column[Item]], rows: Sequence[Item], text: str = ""
) -> Section:
    """A section with the table that a command prints of ``rows``."""
    return Section(
        title,
        text,
        headings=tuple(column.heading for column in columns),
        rows=tuple(tuple(column.cell(row) for column in columns) for row in rows),
    )


def render(page: Page) -> bytes:
    """The page as HTML; names from files are escaped."""
    environment = Environment(
        loader=PackageLoader("darwinn_testbench.profile", ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = cell_text
    environment.tests["verdict"] = lambda cell: isinstance(cell, Verdict)
    return environment.get_template("page.html.j2").render(page=page).encode()


def _printable(value: Any) -> Any:
    """Any text but the pictures, which are markup already."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
