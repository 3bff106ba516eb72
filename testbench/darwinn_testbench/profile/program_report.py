"""Everything that is known of a program of another format, on one page: verdict, times, outputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from darwinn_formats.errors import Unavailable

from darwinn_testbench.comparison.asked import Asked
from darwinn_testbench.comparison.check import OutputRow
from darwinn_testbench.comparison.verify import answer
from darwinn_testbench.layers.localise import Divergence
from darwinn_testbench.pages import Page, Section, render, sentence, table_of
from darwinn_testbench.profile.operator_page import operator_sections, operator_summary
from darwinn_testbench.profile.operators import OperatorTimeRow, operator_times
from darwinn_testbench.profile.report import ReportPage
from darwinn_testbench.report import Column, Report, Verdict
from darwinn_testbench.request.record import takes
from darwinn_testbench.request.records import Calls
from darwinn_testbench.request.timing import ProgramPage

_OUTPUT_COLUMNS: tuple[Column[OutputRow], ...] = (
    Column("run", lambda row: row.run, "right"),
    Column("inputs", lambda row: row.origin),
    Column("output", lambda row: row.name),
    Column("counterpart", lambda row: row.counterpart),
    Column("difference", lambda row: _difference(row)),
    Column("policy", lambda row: row.policy),
    Column("SHA-256", lambda row: row.sha256[:16]),
    Column("verdict", lambda row: row.verdict),
)
_DIVERGENCE_COLUMNS: tuple[Column[Divergence], ...] = (
    Column("run", lambda each: each.run, "right"),
    Column("value of the reference", lambda each: each.name),
    Column("by", lambda each: each.operation),
    Column("in", lambda each: each.where),
    Column("differ", lambda each: each.differing, "right"),
    Column("of", lambda each: each.elements, "right"),
    Column("by at most", lambda each: each.max_difference, "right"),
    Column("paired", lambda each: each.paired),
)


def program_page_of(asked: ProgramPage) -> ReportPage:
    """Verify, time and describe a program of another format; raises as ``verify`` and
    ``profile_operators`` do. With a reference the page says where the two begin to differ, if they
    do.
    """
    check = asked.part(Asked, companions=asked.data)
    verified = answer(check)
    if asked.reference is not None and verified.verdict is Verdict.MISMATCH:
        # An original runtime, which only machine code needs, shows no values.
        with suppress(Unavailable):
            verified = answer(check.but(localise=True))
    timed = operator_times(asked.part(Calls))
    asked.progress("drawing", 0, None)
    page = Page(
        title=Path(verified.file).name,
        verdict=verified.verdict,
        summary=f"{sentence(verified.headline)} {sentence(timed.headline)}",
        sections=tuple(_sections(verified, timed)),
    )
    return ReportPage(verified, render(page))


make_program_report = takes(ProgramPage, "make_program_report")(program_page_of)


def _sections(verified: Report[OutputRow], timed: Report[OperatorTimeRow]) -> Iterator[Section]:
    yield operator_summary(timed)
    figures = verified.figures
    drawn = f"drawn from seed {figures['seed']}" if figures["random_inputs"] else "given"
    text = f"Inputs {drawn}. {figures['excitation']}."
    yield Section("Outputs", text, [table_of(_OUTPUT_COLUMNS, verified.rows)])
    if divergences := figures["divergences"]:
        text = sentence("; ".join(map(str, figures.get("pairings", ()))))
        yield Section("Where it differs", text, [table_of(_DIVERGENCE_COLUMNS, divergences)])
    yield from operator_sections(timed)


def _difference(row: OutputRow) -> str:
    found = row.comparison
    if found is None:
        return ""
    if not found.differing:
        return "equal"
    return f"{found.differing:,} of {found.elements:,}, by up to {found.max_difference:g}"
