"""Tables of a profile, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from darwinn_sim import chip

from darwinn_testbench.profile.memory import Region
from darwinn_testbench.profile.profile import ProfileRow, UnitFigures
from darwinn_testbench.report import Column

if TYPE_CHECKING:
    from darwinn_testbench.comparison.check import OutputRow
    from darwinn_testbench.comparison.compare import Comparison

LAYER_COLUMNS: tuple[Column[ProfileRow], ...] = (
    Column("layer", lambda row: row.number, "right"),
    Column("operation", lambda row: row.operation if row.number is not None else row.name),
    Column("from", lambda row: row.start, "right"),
    Column("cycles", lambda row: row.cycles, "right"),
    Column("%", lambda row: f"{100 * row.share:.1f}", "right"),
    Column("busy %", lambda row: f"{_busy_percent(row):.1f}", "right"),
    Column("MAC %", lambda row: f"{100 * row.utilisation:.1f}", "right"),
    Column("waits most for", lambda row: _most(row), may_shrink=True),
)
_NETWORK: Column[ProfileRow] = Column("network", lambda row: row.network, may_shrink=True)
LAYER_NOTE = (
    "Rows without a number: no layer is executed; DMA NN % is the share of those cycles in which "
    "the host link moved that. busy %: the tensor units' share of the cycles beside it, mean of "
    "all tiles. waits most for: share of all waits in and before a layer's instructions; those "
    "before the first of them began before the layer."
)
UNIT_COLUMNS: tuple[Column[UnitFigures], ...] = (
    Column("unit", lambda unit: unit.name),
    Column("busy, cycles", lambda unit: round(unit.busy), "right"),
    Column("elements", lambda unit: unit.elements, "right"),
    Column("waits for (cycles)", lambda unit: _causes(unit), may_shrink=True),
)
MEMORY_COLUMNS: tuple[Column[tuple[str, int]], ...] = (
    Column("bytes moved", lambda item: item[0]),
    Column("bytes", lambda item: item[1], "right"),
)
REGION_COLUMNS: tuple[Column[Region], ...] = (
    Column("memory", lambda region: region.memory),
    Column("what", lambda region: region.name),
    Column("from", lambda region: region.start, "right"),
    Column("bytes", lambda region: region.size, "right"),
)
_SHOWN_CAUSES = 3
OUTPUT_COLUMNS: tuple[Column[OutputRow], ...] = (
    Column("run", lambda row: row.run, "right"),
    Column("output", lambda row: row.name),
    Column("inputs", lambda row: row.origin),
    Column("shape", lambda row: " x ".join(map(str, row.shape))),
    Column(
        "against the chip's arithmetic",
        lambda row: _difference(row.chip_arithmetic or row.cpu_operators),
    ),
    Column("against LiteRT", lambda row: _difference(row.litert)),
    Column("SHA-256", lambda row: row.sha256[:16]),
    Column("verdict", lambda row: row.verdict),
)


def layer_columns(rows: Sequence[ProfileRow]) -> tuple[Column[ProfileRow], ...]:
    """The columns of layers, with the network's operators where a reference tells them."""
    named = any(row.tensor for row in rows)
    return (*LAYER_COLUMNS, _NETWORK) if named else LAYER_COLUMNS


def _busy_percent(row: ProfileRow) -> float:
    """Of the row's own cycles: all work of a layer lies between its start and its end."""
    return 100 * row.busy / (chip.TILES * max(row.cycles, 1))


def _most(row: ProfileRow) -> str:
    """The longest wait of a layer as a share of all its waits; elsewhere what the DMA moved."""
    if not row.waiting:
        return row.message
    cause = max(row.waiting, key=row.waiting.__getitem__)
    return f"{cause} {100 * row.waiting[cause] / sum(row.waiting.values()):.0f} %"


def _causes(unit: UnitFigures) -> str:
    """The longest waits; all of them are in --json."""
    order = sorted(unit.waiting.items(), key=lambda item: -item[1])[:_SHOWN_CAUSES]
    return ", ".join(f"{cause} {round(cycles):,}" for cause, cycles in order)


def _difference(comparison: Comparison | None) -> str:
    if comparison is None:
        return "not compared"
    if not comparison.differing:
        return f"all {comparison.elements:,} elements equal"
    return (
        f"{comparison.differing:,} of {comparison.elements:,} elements differ, "
        f"by {comparison.max_difference:g} at most"
    )
