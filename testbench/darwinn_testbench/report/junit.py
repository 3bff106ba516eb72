"""Reports as JUnit XML, for continuous integration servers: one test case per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from darwinn_formats.errors import printable
from darwinn_formats.names import readable

from darwinn_testbench.report.result import Report, Row, telling_rows
from darwinn_testbench.report.verdict import EXIT_CODES, Verdict

if TYPE_CHECKING:
    from junitparser import TestCase

_RESULTS = {1: "Failure", 2: "Error", 3: "Skipped"}
"""By exit code; classes of ``junitparser``, which is loaded only where a document is made."""


def to_junit(reports: Sequence[Report[Row]]) -> bytes:
    """``reports`` as a JUnit XML document: a suite per report, a case per row.

    Verdicts of exit code 1 are failures, but FAULT is an error, as BAD_INPUT is; REFUSED is
    skipped. RAN passes, and the case says in its output that nothing was compared. A report whose
    verdict no row carries gets a case of its own, so that it cannot look green.
    Characters that XML cannot hold are written as escape sequences.
    """
    from junitparser import JUnitXml, TestSuite

    document = JUnitXml("darwinn")
    for report in reports:
        suite = TestSuite(printable(report.file))
        for name, value in report.figures.items():
            if isinstance(value, str | int | float):
                suite.add_property(name, readable(str(value)))
        for number, assumption in enumerate(report.assumptions):
            suite.add_property(f"assumption {number}", readable(assumption.text))
        suite.add_testcases(_cases(report))
        document.add_testsuite(suite)
    document.update_statistics()
    text: bytes = document.tostring()
    return text


def _cases(report: Report[Row]) -> list[TestCase]:
    return [_case(report.command, row) for row in telling_rows(report)]


def _case(command: str, row: Row) -> TestCase:
    import junitparser

    why = readable(row.why)
    case = junitparser.TestCase(
        readable(row.case), classname=f"darwinn.{command}", time=row.duration
    )
    kind = "Error" if row.verdict is Verdict.FAULT else _RESULTS.get(EXIT_CODES[row.verdict])
    if kind is not None:
        case.result = [getattr(junitparser, kind)(why, str(row.verdict))]
    elif why:
        case.system_out = f"{row.verdict}: {why}" if row.verdict is Verdict.RAN else why
    return case
