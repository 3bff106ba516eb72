"""Tables of a program's operators, for the terminal and for the page, and as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from darwinn_testbench.profile.operators import KindTime, OperatorTimeRow
from darwinn_testbench.programs.operators import OperatorRow
from darwinn_testbench.report import Column

RowType = TypeVar("RowType", bound=OperatorRow)

_MOST_TENSORS = 3


def listed(texts: Sequence[str]) -> str:
    """The first of several texts, and how many more there are."""
    more = len(texts) - _MOST_TENSORS
    return ", ".join([*texts[:_MOST_TENSORS], *([f"and {more}"] if more > 0 else [])])


def _indented(row: OperatorRow) -> str:
    return f"{'  ' * row.depth}{row.kind}"


def milliseconds(seconds: float) -> str:
    """A time of an operator, which may be less than a thousandth of a millisecond."""
    return f"{1000 * seconds:.4f}"


OPERATOR_COLUMNS: tuple[Column[OperatorRow], ...] = (
    Column("#", lambda row: row.number, "right"),
    Column("name", lambda row: row.name, may_shrink=True),
    Column("operation", _indented, may_shrink=True),
    Column("runs", lambda row: row.executions, "right"),
    Column("reads", lambda row: listed(row.inputs), may_shrink=True),
    Column("result", lambda row: listed(row.output_tensors), "right"),
    Column("constants, B", lambda row: row.constant_bytes or None, "right"),
    Column("source", lambda row: row.location, may_shrink=True),
)

TIME_COLUMNS: tuple[Column[OperatorTimeRow], ...] = (
    Column("#", lambda row: row.number, "right"),
    Column("name", lambda row: row.name, may_shrink=True),
    Column("operation", _indented, may_shrink=True),
    Column("runs", lambda row: row.executions, "right"),
    Column("ms", lambda row: milliseconds(row.seconds), "right"),
    Column("%", lambda row: f"{100 * row.share:.1f}", "right"),
    Column(
        "with parts, ms",
        lambda row: milliseconds(row.total_seconds) if row.has_parts else "",
        "right",
    ),
    Column("result", lambda row: listed(row.output_tensors), "right"),
    Column("source", lambda row: row.location, may_shrink=True),
)

KIND_COLUMNS: tuple[Column[KindTime], ...] = (
    Column("operation", lambda each: each.kind, may_shrink=True),
    Column("operators", lambda each: each.operators, "right"),
    Column("runs", lambda each: each.executions, "right"),
    Column("ms", lambda each: milliseconds(each.seconds), "right"),
    Column("%", lambda each: f"{100 * each.share:.1f}", "right"),
)

TIME_NOTE = (
    "ms: own time of the operator in one call, all its runs together and without the operators "
    "within it; a call in which operators are timed takes longer than one as it is."
)


def filled(columns: Sequence[Column[RowType]], rows: Sequence[RowType]) -> list[Column[RowType]]:
    """The columns without those that are empty in every row."""
    return [column for column in columns if any(column.cell(row) not in (None, "") for row in rows)]
