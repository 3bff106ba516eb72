"""`darwinn explain`: where the operators of a network run, why, and what to change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated

from rich.console import RenderableType

from darwinn_testbench.cli import options
from darwinn_testbench.cli.console import finish, wrapped
from darwinn_testbench.cli.declared import argument, option
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.explain.crossing import Crossing, Piece
from darwinn_testbench.explain.evidence import FILES, Basis
from darwinn_testbench.explain.explain import Explaining, ExplainRow, explained
from darwinn_testbench.explain.placement import Place
from darwinn_testbench.report import Column, Report, counted, table
from darwinn_testbench.report.files import write_result
from darwinn_testbench.report.shell import quote
from darwinn_testbench.request import settings
from darwinn_testbench.request.record import Wanted, refuse_no_file

EXAMPLES = """**Examples**

`darwinn explain model.tflite`

`darwinn explain model.tflite model_edgetpu.tflite`

`darwinn explain model_edgetpu.tflite --host usb2`

`darwinn explain model.tflite model_edgetpu.tflite --html explained.html`

`darwinn explain model.tflite --chips 2`

`darwinn explain model.tflite --json | jq '.rows[] | select(.place == "CPU") | {operator, reason}'`
"""

Model = Annotated[
    str,
    argument("MODEL", "A .tflite: before compilation, or compiled; - is standard input."),
]
Compiled = Annotated[
    str | None,
    argument("COMPILED", "The same model, compiled: it shows the place of each operator."),
]
All = Annotated[
    bool,
    option(
        "--all", "Show one line for each operator, even if several operators have the same answer."
    ),
]
Html = Annotated[
    Path | None,
    option(
        "--html PATH", "Also write the results and the network as a page; - is standard output."
    ),
]

Chips = Annotated[
    int | None,
    option(
        "--chips N",
        "Also say where to cut the model for N chips, one after another, and how long each stage "
        "takes. MODEL is the one before compilation.",
        min=2,
        max=64,
    ),
]

_MOST_ADVICE = 12
_MOST_KINDS = 2
"""Kinds of operators that a line names."""


_SHORT = {
    Basis.FILES: "files",
    Basis.VENDOR: "vendor",
    Basis.REPORT: "a report",
    Basis.NOT_CONFIRMED: "not confirmed",
}
"""What the table calls how a place is known."""
_LEAST = tuple(Basis)
"""How places are known, the best first."""


@dataclass(frozen=True)
class _Line:
    """Operators that follow one another and of which there is the same to say."""

    rows: tuple[ExplainRow, ...]

    @property
    def number(self) -> str:
        first, last = self.rows[0].number, self.rows[-1].number
        return str(first) if first == last else f"{first}-{last}"

    @property
    def operators(self) -> str:
        kinds = Counter(row.operator for row in self.rows).most_common()
        shown = kinds if len(kinds) <= _MOST_KINDS + 1 else kinds[:_MOST_KINDS]
        names = ", ".join(name if count == 1 else f"{count} {name}" for name, count in shown)
        rest = len(self.rows) - sum(count for _, count in shown)
        return f"{names} and {rest} others" if rest else names

    @property
    def why(self) -> str:
        row = self.rows[0]
        if row.place is not Place.UNKNOWN and row.predicted is not row.place:
            return f"{row.reason or 'on the chip'} (predicted: {row.predicted.value})"
        return row.reason or ", ".join(row.doubts)

    @property
    def evidence(self) -> str:
        """That of the operator of which least is known."""
        known = [row for row in self.rows if row.basis is not None]
        if not known:
            return ""
        row = max(known, key=lambda row: _LEAST.index(row.basis or _LEAST[0]))
        if row.basis is Basis.FILES and row.operator in FILES:
            return counted(FILES[row.operator], "file")
        return _SHORT[row.basis or Basis.NOT_CONFIRMED]


_COLUMNS: tuple[Column[_Line], ...] = (
    Column("#", lambda line: line.number, "right"),
    Column("operator", lambda line: line.operators, may_shrink=True),
    Column("result", lambda line: line.rows[-1].result),
    Column("on", lambda line: line.rows[0].place.value),
    Column("why", lambda line: line.why),
)

_EVIDENCE = Column[_Line]("shown by", lambda line: line.evidence, may_shrink=True)
"""Of a prediction."""

_TENSOR = Column[_Line]("tensor", lambda line: line.rows[-1].name, may_shrink=True)
"""What the last operator of a line gives: numbers are of one file, names of all."""

_WITHOUT_INSTRUCTIONS = "and the compiler's instructions: how many, only a compiled file shows"

_CROSSINGS: tuple[Column[Crossing], ...] = (
    Column("what", lambda each: each.what),
    Column("", lambda each: each.direction),
    Column("bytes", lambda each: each.bytes, "right"),
    Column("ms", lambda each: f"{each.milliseconds:.3f}", "right"),
    Column("tensor", lambda each: each.tensor, may_shrink=True),
)


def command(
    model: Model,
    asked: Wanted[Explaining],
    compiled: Compiled = None,
    every: All = False,
    html: Html = None,
    chips: Chips = None,
    json: settings.Json = False,
) -> None:
    """Say for each operator whether it runs on the chip or the CPU, why, and how to change that.

    Without COMPILED, everything is predicted from the conditions that the vendor documents.
    `darwinn docs explain` lists these conditions, and says how often they are right. With COMPILED,
    the places are those of the compiled file, and the conditions give the reasons.

    The output also lists the transfers between CPU and chip at each inference, with their time on
    the host link, and the parameters that stay on the chip.

    With --chips, it says where `darwinn compile -n` would cut the model for several chips. The cut
    is predicted from the times of the operators in one program; no segment is compiled.
    """
    options.only_one_on_stdout(json=json, html=html)
    refuse_no_file(html)
    with progress_bar() as progress:
        source = options.source_of(model)
        other = None if compiled is None else options.compiled_source_of(compiled)
        report = explained(asked(source, compiled=other, progress=progress))
        if chips is not None:
            # Imported here: no other call should wait for the compiler.
            from darwinn_testbench.compilation.segments import best_cut

            progress("cutting", 0, None)
            figures = {**report.figures, "cut": best_cut(source, chips)}
            report = replace(report, figures=figures)
        if html is not None:
            # Imported here: no other call should wait for it.
            from darwinn_testbench.explain.page import page_of

            progress("drawing", 0, None)
            write_result(html, page_of(report))
    finish(
        report,
        file=model,
        as_json=json,
        body=lambda found: _body(found, every) if str(html) != "-" else [],
        next_step=_next_step(report, model, compiled, html, chips),
        summary_on_stderr=str(html) == "-",
    )


def _body(report: Report[ExplainRow], every: bool) -> Sequence[RenderableType]:
    figures = report.figures
    columns = _COLUMNS if "certainty" not in figures else (*_COLUMNS, _EVIDENCE)
    return [
        table((*columns, _TENSOR) if every else columns, _lines(report.rows, every)),
        "",
        *(part for piece in figures["pieces"] for part in _piece(piece, report)),
        *_prediction(report),
        *_changes(report),
        *_certainty(report),
        *_cut(report),
    ]


def _lines(rows: Sequence[ExplainRow], every: bool) -> Iterator[_Line]:
    """The rows, those that say the same in one line unless each is wanted."""
    for _, group in groupby(rows, lambda row: row.number if every else _said(row)):
        yield _Line(tuple(group))


def _said(row: ExplainRow) -> tuple[object, ...]:
    doubts = row.doubts if row.place is Place.CHIP else ()
    return (row.place, row.predicted, row.reason, doubts)


def _piece(piece: Piece, report: Report[ExplainRow]) -> list[RenderableType]:
    figures = report.figures
    name = f"piece {piece.number}: " if len(figures["pieces"]) > 1 else ""
    share = 100 * piece.cached / figures["cache_bytes"]
    said = "predicted: " if piece.milliseconds is None and not piece.message else ""
    lines = [
        f"{name}{said}parameters: {piece.cached:,} bytes cached on the chip ({share:.1f} % of its "
        f"memory for them), {piece.streamed:,} streamed at each inference",
    ]
    if piece.milliseconds is not None:
        lines.append(
            f"{name}an inference takes about {piece.milliseconds:.3f} ms (event model, "
            f"{figures['chip']}, {figures['host']}), {piece.fixed_milliseconds:.2f} of it the "
            "host's fixed cost"
        )
    heading = f"{name}over the host link {figures['host']} at each inference"
    crossings: list[RenderableType] = [heading, table(_CROSSINGS, piece.crossings)]
    if said:
        crossings.append(wrapped(_WITHOUT_INSTRUCTIONS))
    return [*map(wrapped, lines), "", *crossings, ""]


def _prediction(report: Report[ExplainRow]) -> list[RenderableType]:
    agreement = report.figures.get("agreement")
    if agreement is None:
        return []
    same, of = agreement["same"], agreement["of"]
    said = f"{same} of {counted(of, 'operator')} are where the conditions place them"
    return [wrapped(f"{said} (darwinn docs explain)"), ""]


def _changes(report: Report[ExplainRow]) -> list[RenderableType]:
    found = report.figures["advice"]
    if not found:
        return ["nothing to change: all of it runs on the chip"]
    shown = [wrapped(f"- {each}") for each in found[:_MOST_ADVICE]]
    if len(found) > len(shown):
        shown.append(wrapped(f"and {len(found) - len(shown)} more; --json has them all"))
    return ["what to change:", *shown]


def _certainty(report: Report[ExplainRow]) -> list[RenderableType]:
    """How sure a prediction is, and what it leaves out."""
    counts = report.figures.get("certainty")
    if counts is None:
        return []
    told = [f"{count:,} by {name}" for name, count in counts.items() if name in _KNOWN_BY]
    left = counts.get(Basis.NOT_CONFIRMED.value, 0)
    told += [f"{left:,} not confirmed"] if left else []
    held = sum(row.basis is None for row in report.rows)
    told += [f"{held:,} by the operator that ended the piece"] if held else []
    lines = [f"how sure: of {counted(len(report.rows), 'operator')} {', '.join(told)}"]
    lines += ["not covered:", *(f"- {each}" for each in report.figures["not_covered"])]
    return ["", *map(wrapped, lines)] if told else []


def _cut(report: Report[ExplainRow]) -> Sequence[RenderableType]:
    """Where to cut for several chips, if that was asked for."""
    if "cut" not in report.figures:
        return []
    from darwinn_testbench.cli.cuts import shown

    return ["", *shown(report.figures["cut"])]


_KNOWN_BY = {each.value for each in Basis if each is not Basis.NOT_CONFIRMED}


def _next_step(
    report: Report[ExplainRow],
    model: str,
    compiled: str | None,
    html: Path | None,
    chips: int | None,
) -> str:
    if chips is not None:
        return f"darwinn compile {quote(model)} -n {chips} makes the segments"
    if html is not None and str(html) != "-":
        return f"open {html} in a browser"
    if report.figures["basis"] == "prediction":
        return f"darwinn explain {quote(model)} COMPILED shows what a compiler made of it"
    if compiled is None:
        return (
            f"darwinn explain MODEL {quote(model)} names the operators inside, with "
            "the model before"
        )
    return f"darwinn verify {quote(compiled)} --reference {quote(model)} says whether it is right"
