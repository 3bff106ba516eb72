"""The result of a command: a verdict, the rows it rests on, and its form as JSON.

A command defines its row as a frozen dataclass that extends :class:`Row`; the names of the fields
are the keys of the JSON object, so they are part of the interface (docs/cli-json.md).
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from html import escape
from importlib import import_module
from operator import attrgetter
from pathlib import PurePath
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from darwinn_formats.brief import brief, brief_value, histograms, table_of
from darwinn_formats.errors import Unavailable
from darwinn_formats.figure import bars
from darwinn_formats.names import readable
from darwinn_sim.isa.grading import Assumption

from darwinn_testbench.report.shortened import shortened
from darwinn_testbench.report.spreadsheet import Line, columns_of, csv_of, flat
from darwinn_testbench.report.tables import cell_text
from darwinn_testbench.report.verdict import MEANINGS, UNJUDGED, Verdict, worst


@dataclass(frozen=True, kw_only=True)
class Row:
    """One thing that was looked at: an executable, an output.

    ``message`` says in one line why the verdict is not PASS, or what limits it; empty if nothing.
    """

    name: str
    verdict: Verdict
    message: str = ""

    def __init_subclass__(cls, **named: Any) -> None:
        """Rows hold programs and outputs: they are all shown briefly."""
        super().__init_subclass__(**named)
        brief(cls)

    @property
    def case(self) -> str:
        """Name that tells the row from all others of its report, for lists of test cases."""
        return self.name

    @property
    def why(self) -> str:
        """The message, or what the verdict means; empty for a PASS without a message."""
        return self.message or MEANINGS.get(self.verdict, "")

    @property
    def cells(self) -> Mapping[str, str]:
        """Figures that a list of rows shows even if all is well: headings and texts."""
        return {}

    listed: ClassVar[tuple[str, ...]] = ()
    """Fields that a notebook shows, in this order; all of them if none is named."""

    @property
    def rank(self) -> int:
        """Rows of the lowest rank stand first in a notebook: what a reader looks for."""
        return 0

    @classmethod
    def tables(cls, figures: Mapping[str, Any]) -> Mapping[str, Sequence[Any]]:
        """Dataclasses among a report's figures that a notebook shows before the rows, by title."""
        return {}

    page: ClassVar[str] = ""
    """What makes the sections of the report's page whose tables a notebook shows, as
    ``module:function``; without one it shows the fields of the rows."""

    spread: ClassVar[str] = ""
    """A field whose items, dataclasses, are what a spreadsheet has lines for."""

    drawn: ClassVar[tuple[str, ...]] = ()
    """Fields whose values are the parts of a bar in a notebook: numbers, or mappings of them."""
    unit: ClassVar[str] = ""
    """What these are."""

    @property
    def parts(self) -> Mapping[str, float]:
        """What is drawn of the row in a notebook, in ``unit``."""
        found: dict[str, float] = {}
        for name in self.drawn:
            value = getattr(self, name)
            found |= value if isinstance(value, Mapping) else {name.replace("_", " "): value or 0}
        return found

    @property
    def csv_lines(self) -> Sequence[Line]:
        """What a spreadsheet has of the row: values by column, in a line for each item of the field
        ``spread`` if there are any, otherwise in one."""
        values = _plain(self)
        items = values.pop(self.spread, ()) if self.spread else ()
        return tuple(flat(values | item) for item in items) or (flat(values),)

    @property
    def array(self) -> Any:
        """An array that a notebook draws as a histogram; None if there is none."""
        return None

    @property
    def duration(self) -> float:
        """Seconds that the row took here, 0 if it was not timed by itself."""
        return 0.0


JSON_VERSION = 1
"""Of the JSON of all reports: one more where a key goes, or means something else. New keys may come
without (``darwinn_testbench.schemas``)."""

PYTHON_ONLY: Mapping[str, Any] = {"json": False}
"""Metadata of a dataclass field that does not appear in JSON (arrays, objects); in place of False
there may be a function of the row that says whether it does."""

_DIGEST = re.compile(r"\b([0-9a-f]{16})[0-9a-f]{48}\b")
"""A SHA-256; its beginning tells it from any other."""
_MOST_NAME, _MOST_SENTENCE = 80, 240
"""Characters of a cell in a notebook."""
_MOST_ROWS = 100
"""Rows of a table in a notebook."""

RowType = TypeVar("RowType", bound=Row)
RowKind = TypeVar("RowKind", bound=Row, covariant=True)


@dataclass(frozen=True, kw_only=True)
class Report(Generic[RowKind]):
    """The results of ``command`` for ``file``.

    ``decided`` overrides the verdict that follows from the rows (the worst of them). ``figures``
    are facts about the file or the run as a whole (seed, seconds, chip).
    """

    command: str
    file: str
    rows: tuple[RowKind, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    decided: Verdict | None = None
    message: str = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict of the whole: the decided one, or the worst of the rows."""
        if self.decided is not None:
            return self.decided
        return worst(row.verdict for row in self.rows)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Assumptions that the verdict rests on: assumed values of the programs."""
        return tuple(self.figures.get("assumptions", ()))

    @property
    def qualification(self) -> str:
        """``under N assumptions``; empty if there are none."""
        count = len(self.assumptions)
        return f"under {count} assumption{'s' * (count > 1)}" if count else ""

    @property
    def headline(self) -> str:
        """``message``, and before it how many assumptions the verdict rests on, and why nothing
        was found out where a row could not be judged.

        Such a row's own message is the reason of the whole; a judgement counts in ``message``, and
        where there is none, what the first of the rows that decide says.
        """
        return "; ".join(filter(None, (self.qualification, self._told())))

    def _told(self) -> str:
        deciding = (row for row in self.rows if row.verdict is self.verdict and row.message)
        first = next(deciding, None)
        if self.decided is not None or first is None or first.message in self.message:
            return self.message
        if self.message and self.verdict not in UNJUDGED:
            return self.message
        why = first.message if first.case == self.file else f"{first.case}: {first.message}"
        return "; ".join(filter(None, (why, self.message)))

    def __repr__(self) -> str:
        return (
            f"Report({self.command} {shortened(self.file, 80)!r}: {self.verdict.value}, "
            f"{len(self.rows):,} rows, {shortened(self.headline, 400)!r}, "
            f"figures: {shortened(', '.join(map(str, self.figures)), 400)})"
        )

    def _repr_html_(self) -> str:
        """For notebooks: the verdict and the rows, of their fields those that a cell can show."""
        title = f"{self.verdict.value}  {self.file}: {shortened(self.headline, 400)}"
        if self.rows and self.rows[0].page:
            return "".join([_heading(title), self._figure(), *_of_page(self, self.rows[0].page)])
        rows = sorted(self.rows, key=attrgetter("rank"))
        before = type(rows[0]).tables(self.figures) if rows else {}
        tables = [
            f"<p>{escape(each)}</p>{_table(items)}" for each, items in before.items() if items
        ]
        tables.append(_table(rows, rows[0].listed if rows else ()))
        return "".join([_heading(title), self._figure(), *tables])

    def _figure(self) -> str:
        """Bars of the rows, and their arrays: SVG."""
        unit = next((row.unit for row in self.rows if row.drawn), "")
        arrays = histograms((row.name, row.array) for row in self.rows)
        return bars([(row.name, row.parts) for row in self.rows], unit) + arrays

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values: verdict, file and rows, then what else there is to say."""
        return {
            "command": self.command,
            "json_version": JSON_VERSION,
            "verdict": self.verdict.value,
            "file": self.file,
            "message": self.headline,
            **{name: _plain(value) for name, value in self.figures.items()},
            "rows": [_plain(row) for row in self.rows],
        }

    def to_json(self) -> str:
        """The report as the text of one JSON object."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    @property
    def csv_lines(self) -> list[Line]:
        """The rows as lines of plain values by column, as ``--csv`` and ``to_pandas`` give them."""
        return [line for row in self.rows for line in row.csv_lines]

    def to_csv(self) -> bytes:
        """The rows as CSV: a header, and the lines of each row."""
        return csv_of(self.csv_lines)

    def to_pandas(self) -> Any:
        """The rows as a ``pandas.DataFrame``: a column for each field.

        Raises:
            Unavailable: pandas is not installed.
        """
        try:
            # Imported here: only this needs it, and nothing else asks for it.
            import pandas
        except ModuleNotFoundError:
            raise Unavailable("data frames need pandas: pip install pandas") from None
        lines = self.csv_lines
        return pandas.DataFrame(lines, columns=columns_of(lines))


def _heading(title: str) -> str:
    return f"<p><strong>{escape(readable(title))}</strong></p>"


def _of_page(report: Report[Any], maker: str) -> Iterator[str]:
    """The tables of a page's sections, each under its title."""
    # By its name: pages stand above reports, and no other report should wait for them.
    module, _, name = maker.partition(":")
    for section in getattr(import_module(module), name)(report):
        for part in section.parts:
            cells = ([_text(cell) for cell in row] for row in part.rows[:_MOST_ROWS])
            yield f"<p>{escape(readable(section.title))}</p>"
            yield table_of(cells, part.headings) + _more(len(part.rows) - _MOST_ROWS)


def _text(cell: Any) -> str:
    return shortened(cell_text(getattr(cell, "value", cell)), _MOST_SENTENCE)


def _more(left_out: int) -> str:
    return f"<p>and {left_out:,} rows more: .rows has all</p>" if left_out > 0 else ""


def _table(rows: Sequence[Any], listed: Sequence[str] = ()) -> str:
    """Rows of a notebook, without fields that are empty in all of them."""
    shown = rows[:_MOST_ROWS]
    fields = listed or _shown_fields(shown)
    names = [name for name in fields if any(_cell(row, name) for row in shown)]
    cells = ([_cell(row, name) for name in names] for row in shown)
    return table_of(cells, names) + _more(len(rows) - len(shown))


def _shown_fields(rows: Sequence[Any]) -> list[str]:
    """Names of the fields of rows, those that are in JSON."""
    found: dict[str, None] = {}
    for row in rows:
        found |= {item.name: None for item in dataclasses.fields(row) if _is_printed(row, item)}
    return list(found)


def _cell(row: Any, name: str) -> str:
    """A field as a cell: what has fields of its own, long lists and digests, in short."""
    value = getattr(row, name, None)
    if isinstance(value, str):
        # A sentence is broken into lines, a name is not.
        most = _MOST_SENTENCE if " " in value else _MOST_NAME
        return shortened(_DIGEST.sub(r"\1…", str(value)), most)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple) and value and all(isinstance(each, str) for each in value):
        return shortened(", ".join(value), _MOST_SENTENCE)
    return "" if value is None or value == () or value == {} else brief_value(value)


def telling_rows(report: Report[RowKind]) -> list[Row]:
    """The rows; if none of them carries the report's verdict, also a row for the whole.

    So a list of test cases made from them cannot look better than the report.
    """
    rows: list[Row] = list(report.rows)
    if report.verdict not in {row.verdict for row in rows}:
        rows.append(Row(name=report.command, verdict=report.verdict, message=report.message))
    return rows


def failing_rows(report: Report[RowKind]) -> list[Row]:
    """Of the telling rows those that did not pass."""
    return [row for row in telling_rows(report) if not row.verdict.passed]


def _is_printed(row: Any, item: dataclasses.Field[Any]) -> bool:
    shown = item.metadata.get("json", True)
    return bool(shown(row) if callable(shown) else shown)


def _plain(value: Any) -> Any:
    """``value`` as JSON values; numbers that JSON cannot write become strings."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            item.name: _plain(getattr(value, item.name))
            for item in dataclasses.fields(value)
            if _is_printed(value, item)
        }
    if isinstance(value, Enum):
        return value.value if isinstance(value, str) else value.name.lower()
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, float) and not np.isfinite(value):
        return repr(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return value
