"""Charts of a profile: bars of time, a timeline, a roofline, memories."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.timing import CHIP_STATION_NAMES, TILE_STATION_NAMES, Cause, Timing
from numpy.typing import NDArray

from darwinn_testbench.pages import Chart, Columns
from darwinn_testbench.pages.charts import COLOURS, Spec, names_down, over_time
from darwinn_testbench.profile.colours import by_cause
from darwinn_testbench.profile.memory import Region
from darwinn_testbench.profile.memory_in_use import narrow_bytes_in_use
from darwinn_testbench.profile.profile import SHORT, UNIT_NAMES, WAITS, ProfileRow, queue_name
from darwinn_testbench.profile.uncovered import BETWEEN

_BUSY = Cause.BUSY.label
_MOST_RUNS = 5000
"""Marks of the timeline: with more of them a browser takes its time."""
_SHADES = 10
MOST_BARS = 150
"""Bars of the time by layer: more are not told apart, and the table has all."""
_MOST_TOLD = 3
"""Times without a layer that a sentence names."""
_MOST_POINTS = 600
_MOST_LABELS = 12
_LAYERS = "layers"
"""The row of a timeline that has the layers."""
Stations = tuple[list[str], NDArray[np.float64]]


@dataclass(frozen=True)
class Point:
    """A dot in the roofline: multiply-accumulates, their bytes, and the cycles that they take."""

    name: str
    products: int
    size: int
    cycles: int
    key: str = ""


def key_of(row: ProfileRow) -> str:
    """What all parts of a page that are about the row's layer, or time without one, have."""
    return f"layer:{row.number}" if row.number is not None else f"{row.name} {row.start}"


def name_of(row: ProfileRow) -> str:
    """The row's number and what it computes, by the network's operator if that is known."""
    if row.number is None:
        return row.name if row.name != BETWEEN else f"{row.name}, from {row.start:,}"
    return f"{row.number} {row.network or row.operation}".strip()


def time_by_layer(rows: Sequence[ProfileRow]) -> Chart:
    """A bar for each layer: its cycles, by what the tensor units did.

    The busy part is that of the table: the mean of all tiles. The rest of a layer's time is split
    by its waits. Time without a layer is drawn where there is nothing else: beside the loading of
    parameters before the first layer no other bar can be read.
    """
    layers = [row for row in rows if row.number is not None]
    shown = layers or [row for row in rows if row.share >= SHORT]
    # Of many rows the longest, in the order of time.
    longest = sorted(shown, key=lambda row: -row.cycles)[:MOST_BARS]
    shown = [row for row in shown if row in longest]
    parts = [
        (row, cause, cycles) for row in shown for cause, cycles in row.parts.items() if cycles > 0
    ]
    columns: Columns = {
        "name": [name_of(row) for row, _, _ in parts],
        "part": [cause for _, cause, _ in parts],
        "value": [round(cycles) for _, _, cycles in parts],
        "key": [key_of(row) for row, _, _ in parts],
        "note": [f"{100 * row.share:.1f} % of the inference" for row, _, _ in parts],
    }
    return by_cause(columns, unit="cycles", label="time by layer")


def time_without_a_layer(rows: Sequence[ProfileRow]) -> str:
    """A sentence on the time that ``time_by_layer`` leaves out; empty if it leaves out none."""
    without = [row for row in rows if row.number is None and row.cycles]
    if not without or len(without) == len(rows):
        return ""
    longest = sorted(without, key=lambda row: -row.cycles)[:_MOST_TOLD]
    told = ", ".join(
        f"{row.cycles:,} {name_of(row)} ({100 * row.share:.1f} %)"
        for row in longest
        if row.share >= SHORT
    )
    cycles, share = sum(row.cycles for row in without), sum(row.share for row in without)
    text = f"Not drawn: {cycles:,} cycles without a layer, {100 * share:.1f} % of the inference"
    return f"{text}: {told}." if told else f"{text}."


def time_by_unit(timing: Timing) -> Chart:
    """A bar for each unit: the share of the inference that it works and waits, and for what."""
    usage = np.concatenate([timing.chip_usage.astype(float), timing.tile_usage.mean(axis=0)])
    usage *= 100 / max(timing.cycles, 1)
    parts = [
        (name, cause.label, float(row[cause]))
        for name, row in zip(UNIT_NAMES, usage, strict=True)
        if row[Cause.BUSY] > 0
        for cause in (Cause.BUSY, *WAITS)
        if row[cause] > 0
    ]
    names, causes, shares = zip(*parts, strict=True) if parts else ((), (), ())
    columns: Columns = {"name": names, "part": causes, "value": [round(each, 3) for each in shares]}
    label = "time by unit, the mean of all tiles"
    return by_cause(columns, unit="% of the inference", label=label)


def timeline(timing: Timing, rows: Sequence[ProfileRow] = ()) -> Chart:
    """How busy each unit is over time, the tiles together; and the transfers of the host link.

    Above them is a mark for each layer of ``rows``, lighter and darker in turn.
    """
    names, runs = _runs(timing)
    layers = [row for row in rows if row.number is not None and row.end > row.start]
    columns: Columns = {
        "unit": [_LAYERS for _ in layers] + [names[unit] for unit, _, _, _ in runs],
        "a": [_rounded(timing, row.start) for row in layers] + [start for _, start, _, _ in runs],
        "b": [_rounded(timing, row.end) for row in layers] + [end for _, _, end, _ in runs],
        "busy": [100 if number % 2 else 45 for number, _ in enumerate(layers)]
        + [round(100 * share) for _, _, _, share in runs],
        "layer": [name_of(row) for row in layers] + [""] * len(runs),
        "key": [key_of(row) for row in layers] + [""] * len(runs),
    }
    marks = [_shaded("datum.layer === ''", COLOURS[0], "unit", "busy")]
    if layers:
        marks.append(_shaded("datum.layer !== ''", COLOURS[1], "layer"))
    scale = {"domain": [*([_LAYERS] if layers else []), *names]}
    for each in marks:
        each["encoding"]["y"] = {**names_down("unit"), "scale": scale}
    return over_time(marks, columns, label="busy units over time", height={"step": 15})


def _shaded(which: str, colour: str, *told: str) -> Spec:
    """Marks as strong as they are busy, of the rows for which ``which`` holds."""
    titles = {"unit": "", "layer": "", "busy": "busy %"}
    return {
        "transform": [{"filter": which}],
        "mark": {"type": "rect", "clip": True, "color": colour},
        "encoding": {
            "opacity": {
                "field": "busy",
                "type": "quantitative",
                "scale": {"domain": [0, 100], "range": [0.1, 1]},
                "legend": None,
            },
            "tooltip": [
                *({"field": name, "title": titles[name]} for name in told),
                {"field": "a", "title": "from, ms", "format": ".5~g"},
                {"field": "b", "title": "to, ms", "format": ".5~g"},
            ],
        },
    }


def memory_in_use(timing: Timing) -> Chart:
    """The bytes of narrow memory that hold values which are still needed, in the fullest tile."""
    series = narrow_bytes_in_use(timing)
    cycles, sizes = np.zeros(1, np.int64), np.zeros(1, np.int64)
    if series:
        cycles, sizes = max(series.values(), key=lambda each: int(each[1].max(initial=0)))
    starts, most = _thinned(cycles, sizes, timing.cycles)
    columns: Columns = {
        "a": [round(each, 6) for each in _milliseconds(timing, starts)],
        "bytes": most.tolist(),
    }
    y = {"field": "bytes", "type": "quantitative", "title": "bytes in use"}
    tips = [{"field": "a", "title": "ms", "format": ".5~g"}, {"field": "bytes", "format": ","}]
    area = {"type": "area", "interpolate": "step-after", "clip": True, "opacity": 0.6}
    rule: dict[str, Any] = {
        "mark": {"type": "rule", "color": "#888"},
        "encoding": {"x": None, "y": {"datum": chip.NARROW_BYTES, "type": "quantitative"}},
    }
    marks = {"mark": {**area, "color": COLOURS[0]}, "encoding": {"y": y, "tooltip": tips}}
    return over_time([marks, rule], columns, label="narrow memory in use", height=170)


def roofline(timing: Timing, layers: Sequence[Point], whole: Point) -> Chart:
    """Layers by what they compute with each byte, and the inference by those of the host link.

    The roofs are the multipliers, the memories of the tiles (a row of wide memory and a word of
    narrow memory in each cycle) for the layers, and the host link for the inference.
    """
    clock = timing.chip.clock.value
    peak = chip.TILES * chip.LANES * WORD_BYTES * clock
    memories = chip.TILES * (chip.ROW_BYTES + WORD_BYTES) * clock
    points = [each for each in (*layers, whole) if each.products and each.size and each.cycles]
    reach = [point.products / point.size for point in points] or [1.0]
    edges = (min(reach) / 2, max(*reach, 10) * 2)
    roofs = {"multipliers, memories": memories}
    if timing.host is not None:
        roofs["host link"] = timing.host.bytes_per_second_in.value
    rows: list[dict[str, Any]] = [
        {"name": name, "x": x, "y": min(peak, slope * x), "part": name}
        for name, slope in roofs.items()
        for x in sorted({edges[0], min(max(peak / slope, edges[0]), edges[1]), edges[1]})
    ]
    dots = [
        {
            "name": point.name,
            "x": point.products / point.size,
            "y": point.products / point.cycles * clock,
            "part": "whole inference" if point is whole else "layers",
            "key": point.key,
            "cycles": point.cycles,
        }
        for point in points
    ]
    for dot in dots:
        dot["word"] = dot["name"] if dot in _apart(dots) else ""
    names = ("name", "x", "y", "part", "key", "cycles", "word")
    columns: Columns = {name: [row.get(name) for row in (*rows, *dots)] for name in names}
    return Chart(_ROOFLINE, columns, label="roofline")


def _apart(dots: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The dots that have room for a word: the longest first, none near another."""
    chosen: list[dict[str, Any]] = []
    for dot in sorted(dots, key=lambda each: -int(each["cycles"])):
        near = any(
            abs(math.log10(dot["x"] / each["x"])) < 1.2
            and abs(math.log10(dot["y"] / each["y"])) < 0.2
            for each in chosen
        )
        if not near and len(chosen) < _MOST_LABELS:
            chosen.append(dot)
    return chosen


_AXES: dict[str, Any] = {
    "x": {
        "field": "x",
        "type": "quantitative",
        "title": "multiply-accumulates for each byte",
        "scale": {"type": "log"},
        "axis": {"format": ",~r", "labelOverlap": "greedy", "labelSeparation": 4},
    },
    "y": {
        "field": "y",
        "type": "quantitative",
        "title": "multiply-accumulates / s",
        "scale": {"type": "log"},
        "axis": {"format": "~s"},
    },
}
_PARTS = ["layers", "whole inference", "multipliers, memories", "host link"]
_COLOUR = {
    "field": "part",
    "type": "nominal",
    "scale": {"domain": _PARTS, "range": [COLOURS[0], COLOURS[3], COLOURS[7], COLOURS[1]]},
}
_IS_DOT = {"filter": "isValid(datum.cycles)"}
_TIPS = [
    {"field": "name", "title": ""},
    {"field": "cycles", "format": ","},
    {"field": "x", "title": "for each byte", "format": ",.3~r"},
    {"field": "y", "title": "each second", "format": ".3~s"},
]
_ROOFLINE: dict[str, Any] = {
    "height": 330,
    "layer": [
        {
            "transform": [{"filter": "!isValid(datum.cycles)"}],
            "mark": {"type": "line", "strokeDash": [5, 3]},
            "encoding": {**_AXES, "color": _COLOUR},
        },
        {
            "transform": [_IS_DOT],
            "mark": {"type": "point", "filled": True},
            "encoding": {
                **_AXES,
                "color": _COLOUR,
                "tooltip": _TIPS,
                "size": {
                    "condition": {"test": "chosen && datum.key === chosen", "value": 220},
                    "value": 45,
                },
            },
        },
        {
            "transform": [_IS_DOT],
            "mark": {
                "type": "text",
                "align": "left",
                "dx": 6,
                "fontSize": 10,
                "limit": 130,
                "opacity": {"expr": "width < 480 ? 0 : 1"},
            },
            "encoding": {**_AXES, "text": {"field": "word"}},
        },
    ],
}


def memory_map(regions: Sequence[Region]) -> Chart:
    """Every memory as a bar, to its own scale, with what lies in it."""
    sizes: dict[str, int] = {}
    for region in regions:
        sizes[region.memory] = max(sizes.get(region.memory, 1), region.start + region.size)
    columns: Columns = {
        "memory": [f"{each.memory}, {sizes[each.memory]:,} B" for each in regions],
        "name": [each.name for each in regions],
        "bytes": [each.size for each in regions],
        "a": [100 * each.start / sizes[each.memory] for each in regions],
        "b": [100 * (each.start + each.size) / sizes[each.memory] for each in regions],
        "shade": [number % 10 for number in range(len(regions))],
    }
    spec = {
        "height": {"step": 34},
        "mark": {"type": "bar", "stroke": "#8888"},
        "encoding": {
            "y": names_down("memory"),
            "x": {"field": "a", "type": "quantitative", "title": "% of the memory"},
            "x2": {"field": "b"},
            "color": {
                "field": "shade",
                "type": "nominal",
                "legend": None,
                "scale": {"domain": list(range(10)), "range": list(COLOURS)},
            },
            "tooltip": [{"field": "name", "title": ""}, {"field": "bytes", "format": ","}],
        },
    }
    return Chart(spec, columns, label="what lies where in each memory")


def _milliseconds(timing: Timing, cycles: NDArray[Any]) -> list[float]:
    found: list[float] = (1000 * cycles / timing.chip.clock.value).tolist()
    return found


def _rounded(timing: Timing, cycle: int) -> float:
    return round(1000 * cycle / timing.chip.clock.value, 6)


def _thinned(
    cycles: NDArray[np.int64], sizes: NDArray[np.int64], end: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Steps of a series, few enough to draw: of many the most in each part of the time."""
    if len(cycles) > _MOST_POINTS:
        part = np.minimum(cycles * _MOST_POINTS // max(end, 1), _MOST_POINTS - 1)
        first = np.flatnonzero(np.diff(part, prepend=-1))
        cycles, sizes = cycles[first], np.maximum.reduceat(sizes, first)
    return np.append(cycles, end), np.append(sizes, sizes[-1:])


Run = tuple[int, float, float, float]


def _runs(timing: Timing) -> tuple[list[str], list[Run]]:
    """Names of units; and unit, start and end in milliseconds and busy share where that is not 0.

    Neighbours of one shade are one run; the time is divided less finely where these are too many.
    """
    for bins in (1000, 500, 250, 125):
        names, shares = _occupancy(timing, bins)
        runs = list(_same_shade(shares))
        if len(runs) <= _MOST_RUNS:
            break
    length = 1000 * timing.cycles / timing.chip.clock.value / bins
    found = [
        (unit, round(first * length, 6), round(last * length, 6), share)
        for unit, first, last, share in runs
    ]
    return names, found


def _same_shade(shares: NDArray[np.float64]) -> Iterator[Run]:
    shades = np.ceil(shares * _SHADES).astype(np.int64)
    for unit, row in enumerate(shades):
        edges = [0, *(np.flatnonzero(np.diff(row)) + 1).tolist(), len(row)]
        for first, last in pairwise(edges):
            if last > first and row[first]:
                yield unit, first, last, float(shares[unit, first:last].mean())


def _occupancy(timing: Timing, bins: int) -> Stations:
    """Names of the stations that do anything, and their busy share in each of ``bins`` times."""
    names: list[str] = []
    rows: list[NDArray[np.float64]] = []
    spans = timing.spans
    for tile_side, stations in ((False, CHIP_STATION_NAMES), (True, TILE_STATION_NAMES)):
        for station, name in enumerate(stations):
            chosen = spans[((spans["tile"] >= 0) == tile_side) & (spans["station"] == station)]
            if len(chosen):
                names.append(f"tiles: {name}" if tile_side else name)
                row = _binned(chosen["start"], chosen["end"], timing.cycles, bins)
                rows.append(row / (chip.TILES if tile_side else 1))
    for queue in dict.fromkeys(map(queue_name, timing.transfers)):
        moved = [each for each in timing.transfers if queue_name(each) == queue]
        begins = np.array([each.start for each in moved])
        ends = np.array([each.end for each in moved])
        names.append(f"DMA {queue}")
        rows.append(_binned(begins, ends, timing.cycles, bins))
    return names, np.array(rows).reshape(len(names), bins)


def _binned(
    starts: NDArray[np.int64], ends: NDArray[np.int64], cycles: int, bins: int
) -> NDArray[np.float64]:
    """How many of the intervals hold each of ``bins`` parts of the time, on average."""
    edges = np.linspace(0, max(cycles, 1), bins + 1)
    # Of the intervals' total length up to each edge, the differences.
    before = np.zeros(bins + 1)
    for times, sign in ((np.sort(starts), 1), (np.sort(ends), -1)):
        count = np.searchsorted(times, edges)
        sums = np.concatenate([[0], np.cumsum(times)])
        before += sign * (count * edges - sums[count])
    parts: NDArray[np.float64] = np.clip(np.diff(before) / (edges[1] - edges[0]), 0, None)
    return parts
