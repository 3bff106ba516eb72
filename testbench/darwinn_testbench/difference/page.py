"""A difference on one HTML page: all figures, and charts of where the cycles go another way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from darwinn_testbench.difference.difference import AspectFigures, FileFigures
from darwinn_testbench.difference.layers import TOTALS
from darwinn_testbench.difference.rows import BY_WEIGHT, NOT_KNOWN, Aspect, DifferenceRow
from darwinn_testbench.pages import Chart, Columns, Page, Section, Table, render, sentence, table_of
from darwinn_testbench.pages.charts import bars
from darwinn_testbench.report import Column, Report, counted

_MOST_BARS = 60
"""Layers in a chart: those of the greatest changes; the table has all."""

_FILES: tuple[Column[tuple[str, FileFigures]], ...] = (
    Column("", lambda each: each[0]),
    Column("file", lambda each: each[1].file),
    Column("kind", lambda each: each[1].kind),
    Column("bytes", lambda each: each[1].size, "right"),
    Column("compiler", lambda each: each[1].compiler),
    Column("runtime", lambda each: each[1].runtime, "right"),
    Column("token", lambda each: each[1].token),
    Column("SHA-256", lambda each: each[1].sha256),
)
_ASPECTS: tuple[Column[AspectFigures], ...] = (
    Column("aspect", lambda each: each.aspect.value),
    Column("compared", lambda each: each.compared, "right"),
    Column("different", lambda each: each.different, "right"),
    Column("", lambda each: each.message),
)
_ROWS: tuple[Column[DifferenceRow], ...] = (
    Column("figure", lambda row: row.name),
    Column("A", lambda row: row.a, "right"),
    Column("B", lambda row: row.b, "right"),
    Column("change", lambda row: row.change),
    Column("part", lambda row: row.part),
)
_TOTALS = (_ROWS[-1], *_ROWS[:-1])
"""What an executable is for stands before its figures."""
_NETWORK: Column[DifferenceRow] = Column("network", lambda row: row.network)


def page_of(report: Report[DifferenceRow]) -> bytes:
    """The page of a difference."""
    names = [Path(each.file).name for each in report.figures["files"]]
    return render(
        Page(
            title=" and ".join(names),
            verdict=report.verdict,
            summary=sentence(report.headline),
            sections=tuple(_sections(report)),
        )
    )


def _totals(rows: Sequence[DifferenceRow]) -> Iterator[Section]:
    """Cycles and time of each executable, and how many outputs are equal."""
    found = [row for row in rows if row.aspect is Aspect.CYCLES and row.name in TOTALS]
    outputs = [row for row in rows if row.aspect is Aspect.OUTPUTS]
    compared = [row for row in outputs if row.part]
    text = "".join(f"Outputs: {row.message or row.change}." for row in outputs[:1])
    if compared:
        equal = sum(row.equal for row in compared)
        text = f"Outputs: {equal:,} of {len(compared):,} equal for the same inputs."
        text += "" if equal == len(compared) else " B computes something else."
    if found or text:
        yield Section("Totals", text, [table_of(_TOTALS, found)] if found else [])


def _sections(report: Report[DifferenceRow]) -> Iterator[Section]:
    figures = report.figures
    yield from _totals(report.rows)
    files = table_of(_FILES, list(zip("AB", figures["files"], strict=True)))
    yield Section("Files", "What is said here does not count as a difference.", (files,))
    yield Section("Aspects", parts=(table_of(_ASPECTS, figures["aspects"]),))
    for each in sorted(figures["aspects"], key=lambda each: BY_WEIGHT.index(each.aspect)):
        rows = [row for row in report.rows if row.aspect is each.aspect]
        charts = tuple(_charts(rows)) if each.aspect is Aspect.CYCLES else ()
        verb = "differs" if each.different == 1 else "differ"
        count = f"{each.different} of {counted(each.compared, 'figure')} {verb}"
        text = _CYCLES if charts else each.message or f"{count}."
        name = each.aspect.value
        title = name.upper() if each.aspect is Aspect.DMA else name.capitalize()
        yield Section(title, text, (*charts, *_tables(rows)))


_CYCLES = (
    "The cycles are those of a cycle-approximate model. Layers can overlap; the cause beside a "
    "layer is the one that changes most in its tensor units, mean of all tiles."
)


def _tables(rows: Sequence[DifferenceRow]) -> Iterator[Table]:
    """What differs, and folded behind it what does not."""
    for folded in (False, True):
        found = [row for row in rows if row.equal is folded and row.name != NOT_KNOWN]
        if found:
            named = any(row.network for row in found)
            columns = (*_ROWS[:1], _NETWORK, *_ROWS[1:]) if named else _ROWS
            yield table_of(columns, found, key=_key, folded=folded)


def _key(row: DifferenceRow) -> str:
    return "" if row.layer is None else f"layer:{row.layer}"


def _more(row: DifferenceRow) -> float:
    """How much more B has; a layer that it lacks takes nothing there."""
    a, b = (each if isinstance(each, int | float) else 0 for each in (row.a, row.b))
    return b - a


def _charts(rows: Sequence[DifferenceRow]) -> Iterator[Chart]:
    """Cycles by cause and by layer: how many more B takes, fewer to the left."""
    causes = [row for row in rows if row.layer is None and row.name.startswith("tensor units")]
    layers = [row for row in rows if row.layer is not None]
    largest = sorted(layers, key=lambda row: -abs(_more(row)))[:_MOST_BARS]
    for label, shown in (
        ("cycles of the tensor units by cause, B less A", causes),
        ("cycles by layer, B less A", [row for row in layers if row in largest]),
    ):
        found = [row for row in shown if _more(row)]
        if found:
            columns: Columns = {
                "name": [row.name for row in found],
                "value": [_more(row) for row in found],
                "key": [_key(row) for row in found],
                "note": [", ".join(filter(None, (row.network, row.change))) for row in found],
            }
            yield bars(columns, unit="cycles more in B", label=label)
