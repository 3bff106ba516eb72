"""Profiles of several files on one page: their figures, and the page of each beside the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeGuard

from darwinn_testbench.pages import Beside, Columns, Page, Part, Section, render, table_of
from darwinn_testbench.profile.colours import by_cause
from darwinn_testbench.profile.operators import OperatorTimeRow
from darwinn_testbench.profile.profile import ProfileFigures, ProfileRow
from darwinn_testbench.report import Column, Report, Row, worst

Profile = Report[ProfileRow]
OfOperators = Report[OperatorTimeRow]


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


PROGRAM_COLUMNS: tuple[Column[OfOperators], ...] = (
    Column("file", lambda report: report.file, may_shrink=True),
    Column("format", lambda report: report.figures["format"]),
    Column("ms a call", lambda report: 1000 * report.figures["seconds"], "right"),
    Column("operators", lambda report: len(report.rows), "right"),
)


def beside(
    reports: Sequence[Profile | OfOperators],
    addresses: Sequence[str],
    unread: Sequence[Row] = (),
    library: str = "",
) -> bytes:
    """A page with the figures of each profile and, side by side, the pages at ``addresses``.

    ``unread`` are the files without a profile, and why; ``library`` as of ``render``.
    """
    names = [Path(report.file).name for report in reports]
    verdicts = [*(each.verdict for each in reports), *(each.verdict for each in unread)]
    return render(
        Page(
            title=" | ".join(names),
            verdict=worst(verdicts),
            summary=_summary(reports),
            sections=(
                Section("Files", parts=_files(reports)),
                *([Section("Not shown", parts=[table_of(UNREAD_COLUMNS, unread)])] * bool(unread)),
                Section("Side by side", parts=[Beside(names, addresses)]),
            ),
        ),
        library,
    )


def is_of_chip(report: Profile | OfOperators) -> TypeGuard[Profile]:
    """Whether it is the profile of a compiled model, and not of a program of another format."""
    return "profile" in report.figures


def is_of_operators(report: Profile | OfOperators) -> TypeGuard[OfOperators]:
    """Whether it is the profile of a program of another format."""
    return not is_of_chip(report)


def _summary(reports: Sequence[Profile | OfOperators]) -> str:
    cycles = "Cycles are those of the tensor units, mean of all tiles, by what they did."
    measured = "Milliseconds of programs of other formats are those of this computer's CPU."
    said = ((cycles, is_of_chip), (measured, is_of_operators))
    return " ".join(text for text, fits in said if any(map(fits, reports)))


def _files(reports: Sequence[Profile | OfOperators]) -> list[Part]:
    """Figures of compiled models, with a chart, and of programs of other formats."""
    compiled = [(number, each) for number, each in enumerate(reports, 1) if is_of_chip(each)]
    programs = [each for each in reports if is_of_operators(each)]
    parts = [
        (f"{number} {Path(report.file).name}", cause, round(share * found.cycles))
        for number, report in compiled
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
    found: list[Part] = []
    if compiled:
        found += [table_of(FILE_COLUMNS, [report for _, report in compiled]), chart]
    if programs:
        found.append(table_of(PROGRAM_COLUMNS, programs))
    return found
