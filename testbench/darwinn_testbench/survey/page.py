"""A survey on one HTML page: pictures first, then every row, every field, every file left out."""

from __future__ import annotations

from collections.abc import Iterator

from darwinn_testbench.pages import Page, Section, render, sentence, table_of
from darwinn_testbench.report import Column, Report, counted, seconds
from darwinn_testbench.survey import figures
from darwinn_testbench.survey.columns import (
    FIELD_COLUMNS,
    exact_percent,
    excited_percent,
    found_text,
    grade_of,
)
from darwinn_testbench.survey.field_values import GRADES
from darwinn_testbench.survey.plan import LeftOut
from darwinn_testbench.survey.task import SurveyRow
from darwinn_testbench.version import __version__

_COLUMNS: tuple[Column[SurveyRow], ...] = (
    Column("model", lambda row: row.name),
    Column("verdict", lambda row: row.verdict),
    Column("compiler", lambda row: row.compiler),
    Column("runtime", lambda row: row.runtime),
    Column("executables", lambda row: len(row.executables)),
    Column("values", grade_of),
    Column("exact %", exact_percent),
    Column("excited %", excited_percent),
    Column("cycles", lambda row: row.cycles),
    Column("ms", lambda row: row.milliseconds),
    Column("s here", lambda row: seconds(row.seconds)),
)
_REASON_COLUMNS: tuple[Column[SurveyRow], ...] = (
    Column("model", lambda row: row.name),
    Column("verdict", lambda row: row.verdict),
    Column("what was found", found_text),
    Column("to do it alone", lambda row: row.command),
)
_LEFT_OUT_COLUMNS: tuple[Column[LeftOut], ...] = (
    Column("file", lambda each: each.file),
    Column("reason", lambda each: each.reason),
)
_MEANING = {
    "known": "Real programs hold them, and their results are right.",
    "assumed": "Executed by the rule that their neighbours follow, without evidence.",
    "refused": "No rule can be given.",
}


def page_of(report: Report[SurveyRow]) -> bytes:
    """The page of a survey."""
    return render(
        Page(
            title=f"Survey of {report.file}",
            verdict=report.verdict,
            summary=sentence(report.message),
            sections=tuple(_sections(report)),
        )
    )


def _sections(report: Report[SurveyRow]) -> Iterator[Section]:
    rows, found = report.rows, report.figures
    if rows:
        yield Section("Verdicts", parts=[figures.verdicts(rows)])
        yield Section("Models", figures.MODELS_NOTE, figures.models(rows))
    yield Section("Rows", _note(report), [table_of(_COLUMNS, rows, key=figures.key_of)])
    found_in_rows = table_of(_REASON_COLUMNS, rows, key=figures.key_of)
    yield Section("What was found", parts=[found_in_rows])
    depends = figures.dependence(rows)
    if depends is not None:
        text = "Values that are executed by an assumption, and values that are refused."
        yield Section("Rows that hold values which are not known", text, [depends])
    for grade in reversed(GRADES):
        fields = [each for each in found["fields"] if each.grade == grade]
        if fields:
            # Hundreds of known ones: what is to be read stands open.
            table = table_of(FIELD_COLUMNS, fields, folded=grade == GRADES[0])
            yield Section(f"Values: {grade}", _MEANING[grade], [table])
    if found["left_out"]:
        yield Section("Files left out", parts=[table_of(_LEFT_OUT_COLUMNS, found["left_out"])])


def _note(report: Report[SurveyRow]) -> str:
    found = report.figures
    runs = found["runs"]
    inputs = "one inference of each kind" if runs is None else counted(runs, "inference")
    return (
        f"Inputs are drawn from seed {found['seed']}, {inputs}; darwinn-testbench {__version__}. "
        "values: the least understood that the program holds. exact: operators of the reference "
        "that were compared byte for byte. excited: channels that took more than one value. "
        f"cycles: of an inference on {found['chip']}, approximate; ms: with the host's fixed cost."
    )
