"""What `darwinn verify` shows of a verification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from darwinn_testbench.chip.cycles import harness_name
from darwinn_testbench.chip.execution import lifted_line, states_line
from darwinn_testbench.chip.hazards import hazard_lines
from darwinn_testbench.chip.schedules import schedule_lines
from darwinn_testbench.chip.whole import cpu_line
from darwinn_testbench.cli.console import after_failure
from darwinn_testbench.comparison.check import OutputRow
from darwinn_testbench.comparison.compare import Comparison
from darwinn_testbench.layers.check import LEFT_TO_THE_HOST, TensorRow
from darwinn_testbench.layers.localise import Divergence
from darwinn_testbench.proof.verdict import Proof
from darwinn_testbench.report import Column, Report, Verdict, counted, seconds, table
from darwinn_testbench.report.shell import quote

_MORE_RUNS = 20
"""Inferences that are advised where there were fewer."""

_Columns = tuple[Column[OutputRow], ...]

_FIRST: _Columns = (
    Column("run", lambda row: row.run, "right"),
    Column("inputs", lambda row: row.origin),
    Column("output", lambda row: row.name, may_shrink=True),
)
_LAST: _Columns = (
    Column("s", lambda row: seconds(row.seconds), "right"),
    Column("verdict", lambda row: row.verdict),
)
_PROGRAM_COLUMNS: _Columns = (
    *_FIRST,
    Column("counterpart", lambda row: row.counterpart, may_shrink=True),
    Column("difference", lambda row: _difference(row.comparison)),
    Column("policy", lambda row: row.policy, may_shrink=True),
    *_LAST,
)
_CHIP_COLUMNS: _Columns = (
    *_FIRST,
    Column("vs chip", lambda row: _difference(row.chip_arithmetic or row.cpu_operators)),
    Column("vs LiteRT", lambda row: _difference(row.litert)),
    Column("top-1/5", lambda row: _agreement(row.litert), "right"),
    *_LAST,
)
_RTL_COLUMNS: _Columns = (
    *_CHIP_COLUMNS[:-1],
    Column("RTL", lambda row: _difference(row.rtl)),
    Column("cycles", lambda row: row.rtl_cycles, "right"),
    _CHIP_COLUMNS[-1],
)
_TENSOR_COLUMNS: tuple[Column[TensorRow], ...] = (
    Column("run", lambda row: row.run, "right"),
    Column("tensor", lambda row: row.tensor, "right"),
    Column("operator", lambda row: row.operator),
    Column("shape", lambda row: "x".join(map(str, row.shape)), "right"),
    Column("layers", lambda row: _holders(row)),
    Column("finding", lambda row: row.finding),
    Column("name", lambda row: row.name, may_shrink=True),
)


def body(report: Report[OutputRow]) -> Sequence[RenderableType]:
    """The table of outputs, after that of tensors, with what there is to say of them."""
    figures, rows = report.figures, report.rows
    tensors: Sequence[TensorRow] = figures.get("tensors", ())
    lines = [*_conversions(rows), *_notes(rows)]
    lines += [f"{row.name}: {row.message}" for row in figures.get("dma", ()) if row.message]
    lines += [str(each) for each in figures["divergences"]]
    lines += [f"values of {each}" for each in figures.get("pairings", ())]
    lines += [
        f"run {row.run} tensor {row.tensor}: {row.message}"
        for row in tensors
        if row.message and row.message != LEFT_TO_THE_HOST
    ]
    lines += [f"warning: {each}" for each in figures.get("warnings", ())]
    lines += states_line(figures)
    lines += lifted_line(figures)
    lines += cpu_line(figures)
    lines += schedule_lines(figures.get("schedules"))
    lines += hazard_lines(figures.get("hazards"))
    if not rows:
        return lines
    lines += [str(figures["excitation"])]
    lines += [f"warning: {each}" for each in figures["excitation"].warnings]
    operators = figures.get("operators")
    if operators is not None:
        lines += [f"not byte for byte: {reason}" for reason in operators.reasons]
        lines += [f"operators: {operators}"] if operators.records else []
    functions = figures.get("functions")
    if functions is not None and functions.tables:
        lines += [*functions.remarks, f"function tables: {functions}"]
    within: list[RenderableType] = [table(_TENSOR_COLUMNS, tensors), ""] if tensors else []
    return [*within, table(_columns(rows), rows), *lines, _head(figures)]


def _columns(rows: Sequence[OutputRow]) -> _Columns:
    if rows[0].counterpart is not None:
        return _PROGRAM_COLUMNS
    return _RTL_COLUMNS if any(row.rtl for row in rows) else _CHIP_COLUMNS


def _conversions(rows: Sequence[OutputRow]) -> list[str]:
    done = {row.name: row.conversion for row in rows if row.conversion}
    return [f"{name}: compared with its counterpart, {text}" for name, text in done.items()]


def _notes(rows: Sequence[OutputRow]) -> list[str]:
    """What there is to say of outputs, a line each; the same of several runs once."""
    said: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        if row.message:
            said.setdefault((row.name, row.message), []).append(row.run)
    return [f"run {_numbers(runs)} {name}: {text}" for (name, text), runs in said.items()]


def _numbers(runs: Sequence[int]) -> str:
    consecutive = len(runs) > 2 and list(runs) == list(range(runs[0], runs[-1] + 1))
    return f"{runs[0]} to {runs[-1]}" if consecutive else ", ".join(map(str, runs))


def _head(figures: Mapping[str, Any]) -> str:
    """How many inferences or calls there were, on which inputs, and how long it took."""
    source = f"drawn from seed {figures['seed']}" if figures["random_inputs"] else "given"
    count = counted(figures["inferences"], "call" if _of_programs(figures) else "inference")
    if figures["further_inferences"]:
        count += f" and {figures['further_inferences']} further"
    return f"{count}, inputs {source}; {figures['seconds']:.1f} s in all"


def _of_programs(figures: Mapping[str, Any]) -> bool:
    return "expected" in figures


def _difference(comparison: Comparison | None) -> str:
    """Share of the elements that differ, and the greatest difference."""
    if comparison is None:
        return "-"
    if comparison.elements == 0:
        return comparison.reason
    if comparison.differing == 0:
        return "equal"
    share = 100 * comparison.differing / comparison.elements
    return f"{share:.3g} %, by {comparison.max_difference:g}"


def _holders(row: TensorRow) -> str:
    """The layers that hold a tensor, one for each pass, and the host if it is sent there."""
    names = ["+".join(map(str, row.layers))] if row.layers else []
    return ", ".join([*names, "host"] if row.output else names)


def _agreement(comparison: Comparison | None) -> str:
    """Shares of rows whose greatest, and of the five greatest elements that are the same."""
    shares = () if comparison is None else (comparison.top1, comparison.top5)
    told = [f"{100 * share:.0f}" for share in shares if share is not None]
    return f"{'/'.join(told)} %" if told else "-"


def next_step(report: Report[OutputRow], file: str, waves: Path | None) -> str:
    """What to try after this verdict."""
    if _of_programs(report.figures):
        return _next_with_programs(report, file)
    return _next_with_chip(report, file, waves)


def _more_inputs(report: Report[OutputRow]) -> str:
    """What draws inputs that have not been tried."""
    if report.figures["inferences"] < _MORE_RUNS:
        return f"--runs {_MORE_RUNS} tries more inputs"
    return f"--seed {report.figures['seed'] + 1} tries other inputs"


def _next_with_programs(report: Report[OutputRow], file: str) -> str:
    match report.verdict:
        case Verdict.PASS if report.figures["random_inputs"] and report.figures["reference"]:
            return f"{_more_inputs(report)}; --junit result.xml keeps the result"
        case Verdict.PASS:
            return "--junit result.xml keeps the result"
        case Verdict.RAN | Verdict.NOT_COMPARED:
            return f"darwinn verify {quote(file)} --reference MODEL compares the outputs"
        case Verdict.MISMATCH if report.figures["expected"] and report.figures["random_inputs"]:
            return "--seed N or --inputs names the inputs that the stored outputs are of"
        case Verdict.MISMATCH if report.figures["reference"] and not report.figures["divergences"]:
            return "the same with --localise names the first value that differs"
        case Verdict.MISMATCH if report.figures["divergences"]:
            return f"darwinn run {quote(file)} --tap NAME --output values.npz copies a value out"
        case _:
            return "the same with --json says where and by how much it differs"


def _next_with_chip(report: Report[OutputRow], file: str, waves: Path | None) -> str:
    reference = report.figures["reference"]
    on_rtl = any(row.rtl for row in report.rows) and "stall_seed" not in report.figures
    match report.verdict:
        case Verdict.PASS | Verdict.RAN if waves is not None:
            return (
                f"gtkwave {quote(str(waves))} "
                f"{quote(str(waves.with_suffix('.gtkw')))} shows the waves in groups"
            )
        case Verdict.PASS if on_rtl and reference is not None:
            chip = f"--chip {quote(harness_name())}"
            return f"darwinn cycles {quote(file)} {chip} predicts the cycles of the RTL"
        case Verdict.RAN | Verdict.NOT_COMPARED | Verdict.NOT_PROVED | Verdict.PASS if (
            reference is None
        ):
            return f"darwinn verify {quote(file)} --reference MODEL.tflite compares the outputs"
        case Verdict.PROVED:
            return f"darwinn cycles {quote(file)} says how long it takes"
        case Verdict.PASS | Verdict.NOT_PROVED:
            return _next_of_sampled(report)
        case Verdict.MISMATCH if report.figures["policy"] is not None:
            return "the same with --json says where and by how much it differs"
        case Verdict.MISMATCH if _is_proved_wrong_alone(report):
            return _next_of_proof(report)
        case Verdict.MISMATCH if reference is not None and not report.figures["divergences"]:
            return "the same with --localise says in which layer it begins; --json where it differs"
        case Verdict.MISMATCH:
            return _next_of_layers(report.figures["divergences"], file)
        case _:
            return after_failure(report.verdict, file)


def _next_of_layers(divergences: Sequence[Divergence], file: str) -> str:
    """How to look at the first layer that differs; a value may be in none."""
    first = next((each.layers[0] for each in divergences if each.layers), None)
    layer, named = ("N", "a layer") if first is None else (str(first), "this layer")
    return f"darwinn run {quote(file)} --tap layer:{layer} copies out what {named} computes"


def _next_of_sampled(report: Report[OutputRow]) -> str:
    if left_out := _left_out(report):
        return f"the same without {left_out} says what holds for every input"
    if report.verdict is Verdict.NOT_PROVED:
        return "what is sampled was right in each run: without --require-proof it passes"
    more = f"{_more_inputs(report)}; " if report.figures["random_inputs"] else ""
    return f"{more}--junit result.xml keeps the result"


def _left_out(report: Report[OutputRow]) -> str:
    """The options that have left judgements out."""
    judged = (report.figures.get(name) for name in ("proof", "hazards"))
    reasons = (each.reason for each in judged if each is not None)
    return " and ".join(each for each in reasons if each.startswith("--no-"))


def _is_proved_wrong_alone(report: Report[OutputRow]) -> bool:
    """A proof is all that says that something is wrong."""
    proof: Proof | None = report.figures.get("proof")
    seen = any(row.verdict.failed for row in (*report.rows, *report.figures.get("tensors", ())))
    return bool(proof and proof.refuted) and not seen and not report.figures["divergences"]


def _next_of_proof(report: Report[OutputRow]) -> str:
    shown = report.figures["proof"].shown
    if shown is None:
        return f"{_more_inputs(report)}; --json has the constant and both values"
    if shown.run is None:
        return "the same with --json has the input that shows it, under proof.shown.made"
    return "the same with --localise says in which layer it begins"
