"""Profiles of several files on one page: their figures, and the page of each beside the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from darwinn_testbench.pages import Beside, Columns, Page, Section, render, table_of
from darwinn_testbench.profile.colours import by_cause
from darwinn_testbench.profile.profile import ProfileFigures, ProfileRow
from darwinn_testbench.report import Column, Report, Row, worst

Profile = Report[ProfileRow]


def _figures(report: Profile) -> ProfileFigures:
    found: ProfileFigures = report.figures["profile"]
    return found


FILE_COLUMNS: tuple[Column[Profile], ...] = (
    Column("file", lambda report: report.file, may_shrink=True),
    Column("cycles", lambda report: _figures(report).cycles, "right"),
    Column("ms", lambda report: _figures(report).milliseconds, "right"),
    Column("multipliers used, %", lambda report: 100 * _figures(report).utilisation, "right"),
    Column("layers", lambda report: sum(row.number is not None for row in report.rows), "right"),
    Column("streamed, B", lambda report: _figures(report).streamed_parameter_bytes, "right"),
    Column("cached, B", lambda report: _figures(report).cached_parameter_bytes, "right"),
)


UNREAD_COLUMNS: tuple[Column[Row], ...] = (
    Column("file", lambda row: row.name, may_shrink=True),
    Column("verdict", lambda row: row.verdict),
    Column("why", lambda row: row.message, may_shrink=True),
)


def beside(
    reports: Sequence[Profile],
    addresses: Sequence[str],
    unread: Sequence[Row] = (),
    library: str = "",
) -> bytes:
    """A page with the figures of each profile and, side by side, the pages at ``addresses``.

    ``unread`` are the files without a profile, and why; ``library`` as of ``render``.
    """
    names = [Path(report.file).name for report in reports]
    parts = [
        (f"{number} {name}", cause, round(share * found.cycles))
        for number, (name, report) in enumerate(zip(names, reports, strict=True), 1)
        for found in (_figures(report),)
        for cause, share in found.waiting.items()
        if share
    ]
    columns: Columns = {
        "name": [name for name, _, _ in parts],
        "part": [cause for _, cause, _ in parts],
        "value": [cycles for _, _, cycles in parts],
    }
    chart = by_cause(columns, unit="cycles", label="cycles of each file")
    verdicts = [*(each.verdict for each in reports), *(each.verdict for each in unread)]
    not_shown = [Section("Not shown", parts=[table_of(UNREAD_COLUMNS, unread)])] if unread else []
    return render(
        Page(
            title=" | ".join(names),
            verdict=worst(verdicts),
            summary="Cycles are those of the tensor units, mean of all tiles, by what they did.",
            sections=(
                Section("Files", parts=[table_of(FILE_COLUMNS, reports), chart]),
                *not_shown,
                Section("Side by side", parts=[Beside(names, addresses)]),
            ),
        ),
        library,
    )
