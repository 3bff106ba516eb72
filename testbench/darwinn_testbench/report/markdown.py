"""Reports as a Markdown table, for merge requests and step summaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from darwinn_formats.names import readable

from darwinn_testbench.report.result import Report, Row, failing_rows
from darwinn_testbench.report.verdict import Verdict, worst

_PASSED, _FAILED = "✅", "❌"
_MARKS = {Verdict.RAN: "☑️", Verdict.REFUSED: "⏭️"}
"""Marks of verdicts that neither passed nor failed."""
_MAX_DETAILS = 50
"""Rows that a table lists one by one; the rest is counted."""


def to_markdown(reports: Sequence[Report[Row]]) -> bytes:
    """``reports`` as tables: of files, of rows with figures, of the rows that did not pass."""
    verdict = worst(report.verdict for report in reports)
    lines = [
        f"### darwinn: {_mark(verdict)} {verdict.value}",
        "",
        *_table(
            ("file", "verdict", "rows", "what"),
            (
                (report.file, _marked(report.verdict), str(len(report.rows)), report.headline)
                for report in reports
            ),
        ),
    ]
    assumed = [(report.file, each.text) for report in reports for each in report.assumptions]
    lines += _section(("file", "assumed"), assumed[:_MAX_DETAILS])
    rows = [row for report in reports for row in report.rows if row.cells]
    if rows:
        cells = [(row.case, *row.cells.values()) for row in rows]
        lines += _section(("case", *rows[0].cells), cells)
    failed = [
        (report.file, row.case, _marked(row.verdict), row.why)
        for report in reports
        for row in failing_rows(report)
    ]
    lines += _section(("file", "case", "verdict", "message"), failed)
    return ("\n".join(lines) + "\n").encode()


def _section(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table behind an empty line, with what it leaves out; nothing without rows."""
    if not rows:
        return []
    more = len(rows) - _MAX_DETAILS
    rest = ["", f"and {more} more"] if more > 0 else []
    return ["", *_table(headings, rows[:_MAX_DETAILS]), *rest]


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        _line(headings),
        _line(["---"] * len(headings)),
        *(_line([_escaped(cell) for cell in row]) for row in rows),
    ]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _escaped(cell: str) -> str:
    """Text that ends no cell and no line of the table."""
    return readable(" ".join(cell.split())).replace("\\", "\\\\").replace("|", "\\|")


def _mark(verdict: Verdict) -> str:
    return _PASSED if verdict.passed else _MARKS.get(verdict, _FAILED)


def _marked(verdict: Verdict) -> str:
    return f"{_mark(verdict)} {verdict.value}"
