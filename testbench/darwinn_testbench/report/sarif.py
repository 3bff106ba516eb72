"""Reports as SARIF 2.1.0, the form in which code hosts show findings beside the files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from darwinn_testbench.report.result import Report, Row, failing_rows
from darwinn_testbench.report.verdict import MEANINGS, Verdict
from darwinn_testbench.version import __version__

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_LEVELS = {
    Verdict.RAN: "note",
    Verdict.REFUSED: "note",
    Verdict.NOT_COMPARED: "error",
    Verdict.MISMATCH: "error",
    Verdict.REGRESSION: "error",
    Verdict.FAULT: "error",
    Verdict.BAD_INPUT: "error",
}


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
                    for verdict, text in (*MEANINGS.items(), (ASSUMED, _ASSUMED_MEANING))
                ],
            }
        },
        "results": [result for report in reports for result in _results(report)],
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return (json.dumps(document, indent=2) + "\n").encode()


def _results(report: Report[Row]) -> Iterator[dict[str, Any]]:
    for row in failing_rows(report):
        yield {
            "ruleId": row.verdict.value,
            "level": _LEVELS[row.verdict],
            "message": {"text": f"{row.case}: {row.why}"},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": report.file}}}],
            # Servers tell a finding that they know already by this.
            "partialFingerprints": {"case/v1": f"{report.command}/{report.file}/{row.case}"},
        }
    for each in report.assumptions:
        name = f"{each.instruction}.{each.field} {each.value}"
        yield {
            "ruleId": ASSUMED,
            "level": "note",
            "message": {"text": f"assumed: {each.text}"},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": report.file}}}],
            "partialFingerprints": {"case/v1": f"{report.command}/{report.file}/{name}"},
        }
