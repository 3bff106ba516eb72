"""A profile as a page, and the sections of it that other pages have too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from darwinn_testbench.pages import Chart, Page, Section, Table, Times, render, sentence, table_of
from darwinn_testbench.profile import figures
from darwinn_testbench.profile.environment import environment
from darwinn_testbench.profile.figures import Point, key_of, name_of
from darwinn_testbench.profile.memory import regions
from darwinn_testbench.profile.network import network_graph
from darwinn_testbench.profile.profile import ProfileFigures, ProfileRow
from darwinn_testbench.profile.tables import (
    LAYER_NOTE,
    MEMORY_COLUMNS,
    REGION_COLUMNS,
    UNIT_COLUMNS,
    layer_columns,
)
from darwinn_testbench.report import Report


def profile_page(report: Report[ProfileRow], library: str = "") -> bytes:
    """The page of a profile, as HTML; ``library`` as of ``render``."""
    found: ProfileFigures = report.figures["profile"]
    return render(
        Page(
            title=Path(report.file).name,
            verdict=report.verdict,
            summary=sentence(report.headline),
            sections=(
                summary(found),
                *time_sections(report),
                *memory_sections(report),
                environment(found),
            ),
            times=times(report),
        ),
        library,
    )


def times(report: Report[ProfileRow]) -> Times:
    """When each row of the profile begins and ends, in milliseconds."""
    found: ProfileFigures = report.figures["profile"]
    period = 1000 / found.clock_hz
    spans = {key_of(row): (row.start * period, row.end * period) for row in report.rows}
    return Times(found.cycles * period, spans)


def summary(found: ProfileFigures) -> Section:
    """The figures of the whole inference."""
    rows = (
        ("cycles (approximate)", found.cycles),
        ("clock, MHz", found.clock_hz / 1e6),
        ("chip", found.chip),
        ("host link", found.host),
        ("milliseconds of an inference", found.milliseconds),
        ("of them the host's fixed cost", found.fixed_milliseconds),
        ("inferences a second, one after another", found.inferences_per_second),
        ("multipliers used, %", 100 * found.utilisation),
        ("narrow memory of a tile that is used, bytes", found.narrow_bytes),
        ("wide memory of a tile that is used, bytes", found.wide_bytes),
        ("parameters streamed at each inference, bytes", found.streamed_parameter_bytes),
        ("parameters cached on the chip, bytes", found.cached_parameter_bytes),
    )
    text = "The times are those of a cycle-approximate model, not measured on a chip."
    return Section("Summary", text, [Table(("figure", "value"), rows, (False, True))])


def time_sections(report: Report[ProfileRow]) -> Iterator[Section]:
    """Where the time goes: by layer and unit, over time, in the network and in tables."""
    found: ProfileFigures = report.figures["profile"]
    timing = found.profiled.timing
    graph = None
    if found.profiled.network is not None:
        graph = network_graph(found.profiled.network)
    if graph is not None:
        text = "A layer that is chosen here is marked in all charts and tables, and the other way."
        yield Section("Network", text, [graph])
    text = (
        "busy: the tensor units, mean of all tiles, as in the table of layers. The rest of a "
        "layer's time is split by its waits. "
        f"The longest {figures.MOST_BARS} layers at most are drawn; the table has all."
    )
    text = " ".join(filter(None, (figures.time_without_a_layer(report.rows), text)))
    yield Section("Time by layer", text, [figures.time_by_layer(report.rows)])
    yield Section("Time by unit", parts=[figures.time_by_unit(timing)])
    text = "The stronger the colour, the busier. Layers are lighter and darker in turn."
    yield Section("Timeline", text, [figures.timeline(timing, report.rows)])
    if found.profiled.network is not None:
        text = "Products of all multipliers, those that meet zeros of padding included."
        yield Section("Roofline", text, [_roofline(report)])
    yield from _tables_of_time(report)


def _tables_of_time(report: Report[ProfileRow]) -> Iterator[Section]:
    found: ProfileFigures = report.figures["profile"]
    columns = layer_columns(report.rows)
    yield Section("Layers", LAYER_NOTE, [table_of(columns, report.rows, key=key_of)])
    yield Section("Units", parts=[table_of(UNIT_COLUMNS, found.units)])


def tables(report: Report[ProfileRow]) -> Iterator[Section]:
    """The sections that are tables alone, for a notebook."""
    found: ProfileFigures = report.figures["profile"]
    yield summary(found)
    yield from _tables_of_time(report)
    yield _bytes_moved(found)


def _bytes_moved(found: ProfileFigures) -> Section:
    return Section(
        "Bytes moved", parts=[table_of(MEMORY_COLUMNS, list(found.memory_bytes.items()))]
    )


def _roofline(report: Report[ProfileRow]) -> Chart:
    found: ProfileFigures = report.figures["profile"]
    points = [
        Point(name_of(row), row.products, row.bytes or 0, row.cycles, key_of(row))
        for row in report.rows
    ]
    link = found.memory_bytes["host link, in"] + found.memory_bytes["host link, out"]
    whole = Point("inference", sum(point.products for point in points), link, found.cycles)
    return figures.roofline(found.profiled.timing, points, whole)


def memory_sections(report: Report[ProfileRow]) -> Iterator[Section]:
    """What lies where, how much of narrow memory is needed when, and what was moved."""
    found: ProfileFigures = report.figures["profile"]
    profiled = found.profiled
    places = regions(profiled.executable, profiled.timing.program, profiled.caching)
    table = table_of(REGION_COLUMNS, places, folded=True)
    yield Section("Memory", parts=[figures.memory_map(places), table])
    text = "Of the tile that needs the most; the line is all there is."
    yield Section("Narrow memory in use", text, [figures.memory_in_use(profiled.timing)])
    yield _bytes_moved(found)
