"""The HTML page of an explanation: the network, reasons, transfers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from darwinn_formats.names import short_name

from darwinn_testbench.explain.advice import Advice
from darwinn_testbench.explain.crossing import Crossing, Piece
from darwinn_testbench.explain.explain import ExplainRow
from darwinn_testbench.explain.placement import Place
from darwinn_testbench.layers.graph import Node
from darwinn_testbench.pages import Chart, Page, Section, Table, render, sentence, table_of
from darwinn_testbench.pages.charts import COLOURS, bars
from darwinn_testbench.profile.network import Kind, laid_out
from darwinn_testbench.report import Column, Report
from darwinn_testbench.report.shortened import shortened

_MOST_LETTERS = 32
"""Of a line in a box."""
_MOST_BOXES = 1500
"""Operators of a network that is drawn: of larger ones a page is slow, and nobody sees them."""

_OPERATORS: tuple[Column[ExplainRow], ...] = (
    Column("#", lambda row: row.number, "right"),
    Column("operator", lambda row: row.operator),
    Column("result", lambda row: row.result),
    Column("runs on", lambda row: row.place.value),
    Column("predicted", lambda row: "" if row.predicted is row.place else row.predicted.value),
    Column("why", lambda row: ", ".join(filter(None, (row.reason, *row.doubts)))),
    Column("shown by", lambda row: row.evidence),
    Column("what to change", lambda row: row.advice),
    Column("the compiler's log", lambda row: "" if row.place is Place.CHIP else row.log),
    Column("parameter bytes", lambda row: row.parameter_bytes, "right"),
    Column("tensor", lambda row: row.tensor),
)
_ADVICE: tuple[Column[Advice], ...] = (
    Column("what", lambda each: each.what),
    Column("change", lambda each: each.change),
    Column("operators", lambda each: len(each.operators), "right"),
    Column("behind them", lambda each: each.held, "right"),
    Column("saves at most, ms", lambda each: each.saves, "right"),
    Column("the rule is from", lambda each: each.source),
)
_CROSSINGS: tuple[Column[Crossing], ...] = (
    Column("piece", lambda each: each.piece, "right"),
    Column("what", lambda each: each.what),
    Column("direction", lambda each: each.direction),
    Column("bytes", lambda each: each.bytes, "right"),
    Column("ms", lambda each: each.milliseconds, "right"),
    Column("tensor", lambda each: short_name(each.tensor)),
)
_PIECES: tuple[Column[Piece], ...] = (
    Column("piece", lambda each: each.number, "right"),
    Column("cached, bytes", lambda each: each.cached, "right"),
    Column("streamed, bytes", lambda each: each.streamed, "right"),
    Column("inference, ms", lambda each: each.milliseconds, "right"),
    Column("of it fixed, ms", lambda each: each.fixed_milliseconds, "right"),
    Column("", lambda each: each.message),
)


def page_of(report: Report[ExplainRow]) -> bytes:
    """The page of an explanation."""
    return render(
        Page(
            title=Path(report.file).name,
            verdict=report.verdict,
            summary=sentence(report.headline),
            sections=tuple(_sections(report)),
        )
    )


def _sections(report: Report[ExplainRow]) -> Iterator[Section]:
    figures = report.figures
    yield _summary(report)
    changes = figures["advice"]
    text = "" if changes else "Nothing to change: all of it runs on the chip."
    yield Section("What to change", text, [table_of(_ADVICE, changes)] if changes else [])
    nodes = [_node(row) for row in report.rows]
    graph = laid_out(nodes, _KINDS) if 0 < len(nodes) <= _MOST_BOXES else None
    if graph is not None:
        text = "An operator that is chosen here is marked in the tables, and the other way."
        yield Section("Network", text, [graph])
    yield Section("Operators", _OPERATORS_NOTE, list(_operators(report)))
    pieces: tuple[Piece, ...] = figures["pieces"]
    if pieces:
        yield Section(
            "Parameters",
            f"The chip caches up to {figures['cache_bytes']:,} bytes, loaded once; what is "
            "streamed is sent again at each inference.",
            [_memory(pieces, figures["cache_bytes"]), table_of(_PIECES, pieces)],
        )
        yield _transfers(report, pieces)


def _operators(report: Report[ExplainRow]) -> Iterator[Table]:
    """List operators that are not on the chip first, because readers look for these."""
    for on_chip in (False, True):
        rows = [row for row in report.rows if (row.place is Place.CHIP) is on_chip]
        if rows:
            yield table_of(_OPERATORS, rows, key=_key)


_OPERATORS_NOTE = (
    "Operators that are not on the chip come first. "
    "behind N: could perhaps run on the chip, but depends on operator N of the CPU, which depends "
    "on the chip. A question mark is a doubt: a size between what was seen on the chip and what "
    "was seen on the CPU, or a rule that is not confirmed. predicted: where the conditions place "
    "it, if that is not where it runs."
)


def _summary(report: Report[ExplainRow]) -> Section:
    figures = report.figures
    counts = figures["operators"]
    rows: list[tuple[str, object]] = [
        ("places are those of", Path(figures["compiled"] or figures["basis"]).name),
        *((f"operators on {name}", count) for name, count in counts.items() if count),
        ("pieces on the chip", len(figures["pieces"])),
        *_inference(figures["pieces"]),
        ("chip", figures["chip"]),
        ("host link", figures["host"]),
    ]
    agreement = figures.get("agreement")
    if agreement is not None:
        said = f"{agreement['same']:,} of {agreement['of']:,}"
        rows.append(("operators where the conditions place them", said))
    text = "Times are those of a cycle-approximate model, without the operators on the CPU."
    return Section("Summary", text, [Table(("figure", "value"), rows, (False, True))])


def _inference(pieces: Sequence[Piece]) -> Iterator[tuple[str, object]]:
    """How long the chip takes, where all of its pieces are timed."""
    times = [each.milliseconds for each in pieces if each.milliseconds is not None]
    if times and len(times) == len(pieces):
        yield "inference on the chip, ms", sum(times)
        yield "of it the host's fixed cost, ms", sum(each.fixed_milliseconds for each in pieces)


def _transfers(report: Report[ExplainRow], pieces: tuple[Piece, ...]) -> Section:
    crossings = [each for piece in pieces for each in piece.crossings]
    makers = {row.name: _key(row) for row in report.rows}

    def key(each: Crossing) -> str:
        return makers.get(each.tensor, "")

    drawn = bars(
        {
            "name": [_name(each, len(pieces)) for each in crossings],
            "value": [each.milliseconds for each in crossings],
            "key": [key(each) for each in crossings],
            "note": [f"{each.bytes:,} bytes {each.direction}" for each in crossings],
        },
        unit="ms",
        label="time of each transfer at an inference",
    )
    text = (
        "Bytes by the rate of the host's description, each transfer by itself: transfers and "
        "computation may overlap."
    )
    return Section(
        f"Over the host link {report.figures['host']}",
        text,
        [drawn, table_of(_CROSSINGS, crossings, key=key)],
    )


def _name(each: Crossing, pieces: int) -> str:
    piece = f"piece {each.piece} " if pieces > 1 else ""
    return f"{piece}{each.what} {short_name(each.tensor)}".strip()


def _memory(pieces: tuple[Piece, ...], room: int) -> Chart:
    """Cached and streamed bytes of each piece, beside the size of the cache."""
    bytes_of = {
        (f"piece {each.number}", part): size
        for each in pieces
        for part, size in (
            ("cached", each.cached),
            ("streamed", each.streamed),
            ("room left", max(room - each.cached, 0)),
        )
    }
    return bars(
        {
            "name": [name for name, _ in bytes_of],
            "part": [part for _, part in bytes_of],
            "value": [size / 1000 for size in bytes_of.values()],
        },
        unit="kB",
        label="parameters of each piece",
        parts=["cached", "streamed", "room left"],
        colours={"room left": "#8a8f9855"},
    )


_KINDS = {
    Place.CHIP.value: Kind("chip", COLOURS[0]),
    Place.CPU.value: Kind("CPU", COLOURS[1]),
    Place.UNKNOWN.value: Kind("not known", COLOURS[7]),
}
"""The boxes of the graph by place."""


def _node(row: ExplainRow) -> Node:
    told = row.place.value + (f": {row.reason}" if row.reason else "")
    lines = (f"{row.number}  {row.operator}", row.result, told)
    return Node(
        _key(row),
        tuple(shortened(line, _MOST_LETTERS) for line in lines),
        row.place.value,
        tuple(f"operator:{number}" for number in row.reads),
    )


def _key(row: ExplainRow) -> str:
    return f"operator:{row.number}"
