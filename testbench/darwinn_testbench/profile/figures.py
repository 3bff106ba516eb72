"""Pictures of a profile, as SVG text: bars of time, a timeline, a roofline, a memory map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from darwinn_formats.errors import printable
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.timing import CHIP_STATION_NAMES, TILE_STATION_NAMES, Cause, Timing
from numpy.typing import NDArray

from darwinn_testbench.profile.memory_in_use import narrow_bytes_in_use
from darwinn_testbench.profile.picture import picture_of
from darwinn_testbench.profile.profile import UNIT_NAMES, queue_name

_CAUSES = [cause for cause in Cause if cause is not Cause.FINISHED]
_COLOURS = {cause: matplotlib.colormaps["tab10"](place) for place, cause in enumerate(_CAUSES)}
_BINS = 1000
_PLOT_ROWS = 20
Stations = tuple[list[str], NDArray[np.float64]]


@dataclass(frozen=True)
class Region:
    """A part of a memory: ``start`` and ``size`` in bytes."""

    memory: str
    name: str
    start: int
    size: int


@dataclass(frozen=True)
class Point:
    """A dot in the roofline: multiply-accumulates, their bytes, and the cycles that they take."""

    name: str
    products: int
    size: int
    cycles: int


def time_by_layer(timing: Timing) -> str:
    """A bar for each layer: its cycles, from begin to end, split by what the tensor units did."""
    names = [f"layer {layer.number}" for layer in timing.layers]
    lengths = np.array([layer.end - layer.start for layer in timing.layers], np.float64)
    causes = np.array([layer.cycles for layer in timing.layers], np.float64).reshape(len(names), -1)
    whole = np.maximum(causes.sum(axis=1, keepdims=True), 1)
    return _bars(names, causes / whole * lengths[:, None], "cycles of the chip's clock")


def time_by_unit(timing: Timing) -> str:
    """A bar for each unit: the share of the inference that it works and waits, and for what."""
    tiles = timing.tile_usage.mean(axis=0) / max(timing.cycles, 1)
    around = timing.chip_usage / max(timing.cycles, 1)
    usage = np.concatenate([around, tiles])
    used = usage[:, Cause.BUSY] > 0
    shown = [name for name, each in zip(UNIT_NAMES, used, strict=True) if each]
    return _bars(shown, 100 * usage[used], "% of the inference; the mean of all tiles")


def timeline(timing: Timing) -> str:
    """How busy each unit is over time, the tiles together; and the transfers of the host link."""
    names, shares = _occupancy(timing)
    with picture_of(len(names)) as (axes, picture):
        milliseconds = 1000 * timing.cycles / timing.chip.clock.value
        axes.imshow(
            shares,
            aspect="auto",
            cmap="Blues",
            vmin=0,
            vmax=1,
            extent=(0, milliseconds, len(names) - 0.5, -0.5),
            interpolation="nearest",
        )
        axes.set_yticks(range(len(names)), names)
        axes.set_xlabel("ms from the host's request; the darker, the busier")
    return picture.getvalue()


def roofline(timing: Timing, layers: Sequence[Point], whole: Point) -> str:
    """Layers by what they compute with each byte, and the inference by those of the host link.

    The roofs are the multipliers, the memories of the tiles (a row of wide memory and a word of
    narrow memory in each cycle) for the layers, and the host link for the inference.
    """
    clock = timing.chip.clock.value
    peak = chip.TILES * chip.LANES * WORD_BYTES * clock
    memories = chip.TILES * (chip.ROW_BYTES + WORD_BYTES) * clock
    points = [each for each in layers if each.products and each.size and each.cycles]
    with picture_of(_PLOT_ROWS) as (axes, picture):
        intensity = [point.products / point.size for point in [*points, whole]]
        speed = [point.products / max(point.cycles, 1) * clock for point in [*points, whole]]
        axes.loglog(intensity[:-1], speed[:-1], "o", markersize=4, alpha=0.6, label="layers")
        axes.loglog(intensity[-1:], speed[-1:], "rs", markersize=6, label="whole inference")
        for point, x, y in zip(points, intensity, speed, strict=False):
            axes.annotate(point.name, (x, y), (3, 2), textcoords="offset points", fontsize=6)
        reach = np.geomspace(min(intensity) / 2, max(*intensity, 10) * 2, 100)
        axes.plot(reach, np.minimum(peak, memories * reach), "k-", label="multipliers, memories")
        if timing.host is not None:
            link = timing.host.bytes_per_second_in.value
            axes.plot(reach, np.minimum(peak, link * reach), "r--", label="host link")
        axes.set_xlabel("multiply-accumulates for each byte")
        axes.set_ylabel("multiply-accumulates / s")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    return picture.getvalue()


def memory_in_use(timing: Timing) -> str:
    """The bytes of narrow memory that hold values which are still needed, in the fullest tile."""
    series = narrow_bytes_in_use(timing)
    with picture_of(_PLOT_ROWS // 2) as (axes, picture):
        if series:
            cycles, sizes = max(series.values(), key=lambda each: int(each[1].max(initial=0)))
            milliseconds = 1000 * cycles / timing.chip.clock.value
            axes.fill_between(milliseconds, sizes, step="post", alpha=0.5)
        axes.axhline(chip.NARROW_BYTES, color="black", linewidth=1)
        axes.set_xlabel("ms from the host's request")
        axes.set_ylabel("bytes; the line is all there is")
    return picture.getvalue()


def memory_map(regions: Sequence[Region]) -> str:
    """Every memory as a bar, to its own scale, with what lies in it."""
    memories = list(dict.fromkeys(region.memory for region in regions))
    sizes = {m: max(r.start + r.size for r in regions if r.memory == m) for m in memories}
    with picture_of(3 * len(memories)) as (axes, picture):
        for number, region in enumerate(regions):
            whole = max(sizes[region.memory], 1)
            row = memories.index(region.memory)
            left, width = 100 * region.start / whole, 100 * region.size / whole
            colour = matplotlib.colormaps["tab20"](number % 20)
            axes.barh(row, width, left=left, color=colour, edgecolor="white")
            if width > 6:
                text = f"{printable(region.name)}\n{region.size:,} B"
                middle = left + width / 2
                axes.text(middle, row, text, ha="center", va="center", fontsize=6, parse_math=False)
        names = [f"{memory}\n{sizes[memory]:,} B" for memory in memories]
        axes.set_yticks(range(len(memories)), names)
        axes.invert_yaxis()
        axes.set_xlabel("% of the memory")
    return picture.getvalue()


def _bars(names: Sequence[str], parts: NDArray[np.float64], label: str) -> str:
    """Horizontal bars, split by cause; ``parts`` is (bars, causes)."""
    with picture_of(len(names)) as (axes, picture):
        left = np.zeros(len(names))
        for cause in _CAUSES:
            width = parts[:, cause]
            if width.any():
                axes.barh(names, width, left=left, color=_COLOURS[cause], label=cause.label)
                left += width
        axes.invert_yaxis()
        axes.margins(y=0.01)
        axes.set_xlabel(label)
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    return picture.getvalue()


def _occupancy(timing: Timing) -> Stations:
    """Names of the stations that do anything, and their busy share in each of ``_BINS`` times."""
    names: list[str] = []
    rows: list[NDArray[np.float64]] = []
    spans = timing.spans
    for tile_side, stations in ((False, CHIP_STATION_NAMES), (True, TILE_STATION_NAMES)):
        for station, name in enumerate(stations):
            chosen = spans[((spans["tile"] >= 0) == tile_side) & (spans["station"] == station)]
            if len(chosen):
                names.append(f"tiles: {name}" if tile_side else name)
                row = _binned(chosen["start"], chosen["end"], timing.cycles)
                rows.append(row / (chip.TILES if tile_side else 1))
    for queue in dict.fromkeys(map(queue_name, timing.transfers)):
        moved = [each for each in timing.transfers if queue_name(each) == queue]
        begins = np.array([each.start for each in moved])
        ends = np.array([each.end for each in moved])
        names.append(f"DMA {queue}")
        rows.append(_binned(begins, ends, timing.cycles))
    return names, np.array(rows).reshape(len(names), _BINS)


def _binned(starts: NDArray[np.int64], ends: NDArray[np.int64], cycles: int) -> NDArray[np.float64]:
    """How many of the intervals hold each of ``_BINS`` parts of the time, on average."""
    edges = np.linspace(0, max(cycles, 1), _BINS + 1)
    # Of the intervals' total length up to each edge, the differences.
    before = np.zeros(_BINS + 1)
    for times, sign in ((np.sort(starts), 1), (np.sort(ends), -1)):
        count = np.searchsorted(times, edges)
        sums = np.concatenate([[0], np.cumsum(times)])
        before += sign * (count * edges - sums[count])
    parts: NDArray[np.float64] = np.diff(before) / (edges[1] - edges[0])
    return parts
