"""Reports as SARIF 2.1.0, the form in which code hosts show findings beside the files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from darwinn_testbench.report.result import Report, Row, failing_rows
from darwinn_testbench.report.verdict import MEANINGS, Verdict
from darwinn_testbench.version import __version__

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_NOTES = frozenset((Verdict.RAN, Verdict.REFUSED))
"""Verdicts that are no errors."""

_RULES = {verdict: text for verdict, text in MEANINGS.items() if not verdict.passed}

ASSUMED = "assumed"
"""Rule of a note for each assumption that the results rest on."""

_ASSUMED_MEANING = "a value of an instruction's field that is executed by an assumed rule"


def to_sarif(reports: Sequence[Report[Row]]) -> bytes:
    """``reports`` as one SARIF run: a result for each row that did not pass."""
    run = {
        "tool": {
            "driver": {
                "name": "darwinn",
                "version": __version__,
                "rules": [
                    {"id": str(verdict), "shortDescription": {"text": text}}
                    for verdict, text in (*_RULES.items(), (ASSUMED, _ASSUMED_MEANING))
                ],
            }
        },
        "results": [result for report in reports for result in _results(report)],
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return (json.dumps(document, indent=2) + "\n").encode()


def _results(report: Report[Row]) -> Iterator[dict[str, Any]]:
    for row in failing_rows(report):
        level = "note" if row.verdict in _NOTES else "error"
        yield _result(report, row.verdict.value, level, f"{row.case}: {row.why}", row.case)
    for each in report.assumptions:
        name = f"{each.instruction}.{each.field} {each.value}"
        yield _result(report, ASSUMED, "note", f"assumed: {each.text}", name)


def _result(report: Report[Row], rule: str, level: str, text: str, case: str) -> dict[str, Any]:
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": text},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": report.file}}}],
        # Servers tell a finding that they know already by this.
        "partialFingerprints": {"case/v1": f"{report.command}/{report.file}/{case}"},
    }
