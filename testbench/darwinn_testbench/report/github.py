"""Reports for GitHub Actions: annotations on the log, and the step's summary."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from darwinn_formats.names import readable

from darwinn_testbench.report.markdown import to_markdown
from darwinn_testbench.report.result import Report, Row, failing_rows
from darwinn_testbench.report.verdict import Verdict

_LEVELS = {Verdict.RAN: "notice", Verdict.REFUSED: "notice"}
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"


def workflow_commands(reports: Sequence[Report[Row]]) -> list[str]:
    """A workflow command for each row that did not pass; printed, the server shows it."""
    return [
        f"::{_LEVELS.get(row.verdict, 'error')} "
        f"file={_property(report.file)},title={_property(f'darwinn {row.verdict.value}')}"
        f"::{_data(f'{row.case}: {row.why}')}"
        for report in reports
        for row in failing_rows(report)
    ]


def append_summary(reports: Sequence[Report[Row]]) -> bool:
    """Append the table to the step's summary; False where no step asks for one.

    Raises:
        OSError: the file cannot be written.
    """
    target = os.environ.get(SUMMARY_VARIABLE)
    if not target:
        return False
    with Path(target).open("ab") as stream:
        stream.write(to_markdown(reports) + b"\n")
    return True


def _data(text: str) -> str:
    return readable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
