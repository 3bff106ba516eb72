"""The results of a command: verdicts and rows, as tables, JSON, JUnit XML, SARIF and Markdown."""

from darwinn_testbench.errors import InputError
from darwinn_testbench.report.junit import to_junit
from darwinn_testbench.report.markdown import to_markdown
from darwinn_testbench.report.result import Report, Row
from darwinn_testbench.report.sarif import to_sarif
from darwinn_testbench.report.tables import Column, counted, seconds, significant, styled, table
from darwinn_testbench.report.verdict import (
    EXIT_CODES,
    Verdict,
    is_of_the_machine,
    judged,
    one_line,
    passed_limit,
    verdict_of,
    worst,
)

__all__ = [
    "EXIT_CODES",
    "Column",
    "InputError",
    "Report",
    "Row",
    "Verdict",
    "counted",
    "is_of_the_machine",
    "judged",
    "one_line",
    "passed_limit",
    "seconds",
    "significant",
    "styled",
    "table",
    "to_junit",
    "to_markdown",
    "to_sarif",
    "verdict_of",
    "worst",
]
