"""What a command found: verdicts and rows, and their forms as JSON, JUnit XML and tables."""

from darwinn_testbench.report.junit import to_junit
from darwinn_testbench.report.result import Report, Row
from darwinn_testbench.report.tables import Column, styled, table
from darwinn_testbench.report.verdict import EXIT_CODES, InputError, Verdict, verdict_of, worst

__all__ = [
    "EXIT_CODES",
    "Column",
    "InputError",
    "Report",
    "Row",
    "Verdict",
    "styled",
    "table",
    "to_junit",
    "verdict_of",
    "worst",
]
