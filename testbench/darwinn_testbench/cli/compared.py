"""Outputs compared across programs, as `darwinn verify` shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from darwinn_testbench.chip.execution import TensorOutputRow
from darwinn_testbench.comparison.compare import Comparison
from darwinn_testbench.comparison.excitation import ExcitationFigures
from darwinn_testbench.comparison.program_verify import ComparedRow
from darwinn_testbench.report import Column, Report, Verdict, counted, seconds, table


def difference(comparison: Comparison | None) -> str:
    """Share of the elements that differ, and the greatest difference."""
    if comparison is None:
        return "-"
    if comparison.elements == 0:
        return comparison.reason
    if comparison.differing == 0:
        return "equal"
    share = 100 * comparison.differing / comparison.elements
    return f"{share:.3g} %, by {comparison.max_difference:g}"


_COLUMNS: tuple[Column[ComparedRow], ...] = (
    Column("run", lambda row: row.run, "right"),
    Column("inputs", lambda row: row.origin),
    Column("output", lambda row: row.name, may_shrink=True),
    Column("counterpart", lambda row: row.counterpart, may_shrink=True),
    Column("difference", lambda row: difference(row.comparison)),
    Column("policy", lambda row: row.policy, may_shrink=True),
    Column("s", lambda row: seconds(row.seconds), "right"),
    Column("verdict", lambda row: row.verdict),
)


def notes(rows: Sequence[TensorOutputRow]) -> list[str]:
    """What there is to say of outputs, a line each; the same of several runs once."""
    said: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        if row.message:
            said.setdefault((row.name, row.message), []).append(row.run)
    return [f"run {_numbers(runs)} {name}: {text}" for (name, text), runs in said.items()]


def _numbers(runs: Sequence[int]) -> str:
    consecutive = len(runs) > 2 and list(runs) == list(range(runs[0], runs[-1] + 1))
    return f"{runs[0]} to {runs[-1]}" if consecutive else ", ".join(map(str, runs))


def moved(found: ExcitationFigures) -> list[str]:
    """How much of the network the inputs moved, and what makes that too little."""
    return [str(found), *(f"warning: {each}" for each in found.warnings)]


def head(figures: Mapping[str, Any], noun: str) -> str:
    """How many inferences there were, on which inputs, and how long it took."""
    source = f"drawn from seed {figures['seed']}" if figures["random_inputs"] else "given"
    count = counted(figures["inferences"], noun)
    return f"{count}, inputs {source}; {figures['seconds']:.1f} s in all"


def body(report: Report[ComparedRow]) -> Sequence[RenderableType]:
    """The table of outputs, with what there is to say of them."""
    figures = report.figures
    done = {row.name: row.conversion for row in report.rows if row.conversion}
    how = [f"{name}: its counterpart was {text} to be compared" for name, text in done.items()]
    found = [str(each) for each in figures["divergences"]]
    lines = [*how, *notes(report.rows), *found]
    if not report.rows:
        return lines
    lines += moved(figures["excitation"])
    return [table(_COLUMNS, report.rows), *lines, head(figures, "call")]


def next_step(report: Report[ComparedRow], file: str) -> str:
    """What to try after this verdict."""
    match report.verdict:
        case Verdict.PASS if report.figures["random_inputs"] and report.figures["reference"]:
            return "--runs 20 tries more inputs; --junit result.xml keeps the result"
        case Verdict.PASS:
            return "--junit result.xml keeps the result"
        case Verdict.RAN | Verdict.NOT_COMPARED:
            return f"darwinn verify {file} --reference MODEL compares the outputs"
        case Verdict.MISMATCH if report.figures["expected"] and report.figures["random_inputs"]:
            return "--seed N or --inputs names the inputs that the stored outputs are of"
        case Verdict.MISMATCH if report.figures["reference"] and not report.figures["divergences"]:
            return "the same with --localise names the first value that differs"
        case _:
            return "the same with --json says where and by how much it differs"
