"""The columns of a survey, as its table and its page have them."""

from __future__ import annotations

from collections.abc import Sequence

from darwinn_testbench.report import Column, seconds
from darwinn_testbench.report.tables import column_width
from darwinn_testbench.survey.field_values import ASSUMED, KNOWN, REFUSED, FieldValues
from darwinn_testbench.survey.task import SurveyRow


def grade_of(row: SurveyRow) -> str:
    """The least understood value that the row's program holds; empty if it was not looked at."""
    if row.refused:
        return REFUSED
    if row.assumptions:
        return ASSUMED
    return KNOWN if row.values else ""


def exact_percent(row: SurveyRow) -> int | None:
    """Share of the operators that were compared byte for byte, cut: 100 means all."""
    return _percent(row.exact_share)


def excited_percent(row: SurveyRow) -> int | None:
    """Share of the channels that took more than one value, cut."""
    return _percent(row.excited)


def found_text(row: SurveyRow) -> str:
    """The message, and what makes it doubtful."""
    executed = [f"assumed: {each.text}" for each in row.assumptions]
    assumed = [f"the reference assumes {each}" for each in row.reference_assumes]
    return "; ".join(filter(None, [row.message, *executed, *assumed, *row.warnings]))


def _percent(share: float | None) -> int | None:
    return None if share is None else int(100 * share)


def row_columns(rows: Sequence[SurveyRow], width: int) -> tuple[Column[SurveyRow], ...]:
    """The columns of ``rows`` on a screen of ``width`` characters, which names give way to."""
    taken = sum(2 + column_width(column, rows) for column in _FIGURES)
    return (Column("model", lambda row: shortened(row.name, max(width - taken, 16))), *_FIGURES)


def shortened(name: str, width: int) -> str:
    """``name`` in ``width`` characters: names of models differ at their ends, too."""
    if len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{name[: width - 1 - end]}…{name[-end:]}"


_FIGURES: tuple[Column[SurveyRow], ...] = (
    Column("runtime", lambda row: row.runtime, "right"),
    Column("values", grade_of),
    Column("exact %", exact_percent, "right"),
    Column("cycles", lambda row: row.cycles, "right"),
    Column("s", lambda row: seconds(row.seconds), "right"),
    Column("verdict", lambda row: row.verdict),
)
FIELD_COLUMNS: tuple[Column[FieldValues], ...] = (
    Column("grade", lambda each: each.grade),
    Column("field", lambda each: f"{each.instruction}.{each.field}"),
    Column("values", lambda each: each.values_text, may_shrink=True),
    Column("instructions", lambda each: each.instructions, "right"),
    Column("files", lambda each: each.files, "right"),
)
