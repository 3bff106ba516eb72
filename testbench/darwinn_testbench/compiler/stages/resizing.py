"""Enlargements and interpolations as phases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from darwinn_sim.chip import WORD_BYTES

from darwinn_testbench.compiler.parameters import UNIT_BYTES
from darwinn_testbench.compiler.program import ALL_TILES
from darwinn_testbench.compiler.stages.compute import Part
from darwinn_testbench.compiler.stages.operations import (
    Enlarged,
    Interpolated,
    Taps,
)
from darwinn_testbench.compiler.stages.parts import copying, emitting_all
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.products import with_wide_weights
from darwinn_testbench.compiler.stages.rows import (
    GROUP,
    Rows,
    identity,
    one_hot,
)
from darwinn_testbench.compiler.stages.storage import TILES, Interval, length


def enlarged_phases(operation: Enlarged, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """A copy for each place that a pixel has among those that come of it."""
    source, result = placement.of(operation.source), placement.of(operation.result)
    times = operation.times
    words = {place: list(_words(operation, place)) for place in np.ndindex(times, times)}
    shifts = sorted({shift for several in words.values() for shift, _ in several})
    row, _ = areas.take(len(shifts))
    computations = []
    for (down, across), several in words.items():
        parts = {}
        for tile in TILES:
            rows, columns = (
                at_stride(own, offset, times)
                for own, offset in zip(result.own(tile), (down, across), strict=True)
            )
            if not (length(rows) and length(columns)):
                continue
            parts[tile] = Part(
                source.address(tile, rows[0], columns[0]),
                result.address(tile, rows[0] * times + down, columns[0] * times + across),
                length(rows),
                length(columns),
                [],
                (source.image.pitch, source.row_pitch),
                (times * result.image.pitch, times * result.row_pitch),
            )
        for shift, (first, read, count) in several:
            sums = copying(operation.stage, operation.source, count, row + shifts.index(shift))
            moved = {
                tile: replace(each, source=each.source + read, result=each.result + first)
                for tile, each in parts.items()
            }
            computations.append((sums, moved))
    yield Phase(
        operation.number,
        "enlargement" if not operation.apart else "channels to pixels",
        emitting_all(computations),
        [Piece(ALL_TILES, row, np.concatenate([_shifted(*shift) for shift in shifts]))],
    )


_Shift = tuple[int, int]
"""By how many lanes channels of a word move down, and how many there are."""
_Words = tuple[int, int, int]
"""The first byte of some words in the result, that in the source, and how many words there are."""


def _words(operation: Enlarged, place: tuple[int, int]) -> Iterator[tuple[_Shift, _Words]]:
    """The words of a pixel at some place of those that come of one, each with its shift."""
    pitch, channels = operation.source.pitch, operation.result.channels
    if not operation.apart:
        yield (0, GROUP), (0, 0, operation.result.pitch // GROUP)
        return
    begin = (place[0] * operation.times + place[1]) * operation.apart
    whole, rest = divmod(channels, GROUP)
    if whole:
        yield (0, GROUP), (0, begin, whole)
    if rest:
        # Of the last word nothing behind the pixel is read.
        first = begin + whole * GROUP
        read = min(first, pitch - GROUP)
        yield (first - read, rest), (whole * GROUP, read, 1)


def _shifted(shift: int, count: int) -> Rows:
    """A row of weights that brings some channels of a word to the first lanes."""
    if (shift, count) == (0, GROUP):
        return identity()
    row = np.zeros((1, UNIT_BYTES), np.uint8)
    lanes = np.arange(count)
    row.reshape(-1, WORD_BYTES)[lanes, lanes + shift] = 1
    return row


def at_stride(own: Interval, offset: int, times: int) -> Interval:
    """The pixels of the source of which results ``times * pixel + offset`` are within ``own``."""
    return -(-(own[0] - offset) // times), -(-(own[1] - offset) // times)


@dataclass(frozen=True)
class _Run:
    """Results at equal distances whose taps have the same weights, at equal distances, too.

    ``taps`` are one or two, ``weights`` of 128.
    """

    first: int
    count: int
    step: int
    source: int
    source_step: int
    weights: tuple[int, ...]


def _runs(taps: Taps, own: Interval) -> list[_Run]:
    """The results of an interval as runs: of those with the same weights each is a distance on."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for index in range(*own):
        single = taps.first[index] == taps.second[index] or not taps.weights[index]
        weight = taps.weights[index]
        weights: tuple[int, ...] = (_PIXEL,) if single else (_PIXEL - weight, weight)
        groups.setdefault(weights, []).append(index)
    runs = []
    for weights, members in groups.items():
        start = 0
        while start < len(members):
            end = _end_of_run(taps, members, start)
            chosen = members[start:end]
            first, second = chosen[0], chosen[1] if len(chosen) > 1 else chosen[0] + 1
            step = taps.first[second] - taps.first[first] if len(chosen) > 1 else 0
            runs.append(_Run(first, len(chosen), second - first, taps.first[first], step, weights))
            start = end
    return runs


def _end_of_run(taps: Taps, members: Sequence[int], start: int) -> int:
    """How far results are at equal distances, and their taps as well."""
    end = start + 1
    while end < len(members):
        distances = {
            (after - before, taps.first[after] - taps.first[before])
            for before, after in zip(members[start:end], members[start + 1 : end + 1], strict=True)
        }
        if len(distances) > 1:
            break
        end += 1
    return end


_PIXEL = 128


def interpolated_phases(
    operation: Interpolated, placement: Placement, areas: Areas
) -> Iterator[Phase]:
    """Up to four taps with 16-bit weights: a computation for each set of weights."""
    source, result = placement.of(operation.source), placement.of(operation.result)
    computations: dict[tuple[tuple[int, ...], tuple[int, ...]], list[dict[int, Part]]] = {}
    for tile in TILES:
        own_rows, own_columns = result.own(tile)
        seen: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
        for down, across in product(
            _runs(operation.rows, own_rows), _runs(operation.columns, own_columns)
        ):
            key = down.weights, across.weights
            several = computations.setdefault(key, [])
            if seen[key] == len(several):
                several.append({})
            several[seen[key]][tile] = Part(
                source.address(tile, down.source, across.source),
                result.address(tile, down.first, across.first),
                down.count,
                across.count,
                [
                    (2, 2),
                    (len(across.weights), source.image.pitch),
                    (len(down.weights), source.row_pitch),
                ],
                (across.source_step * source.image.pitch, down.source_step * source.row_pitch),
                (across.step * result.image.pitch, down.step * result.row_pitch),
            )
            seen[key] += 1
    for (down_weights, across_weights), several in computations.items():
        weights = tuple(a * b for a in down_weights for b in across_weights)
        rows = one_hot(weights)
        row, _ = areas.take(len(rows))
        sums = with_wide_weights(operation.stage, result, row, len(rows))
        yield Phase(
            operation.number,
            "interpolation",
            emitting_all([(sums, parts) for parts in several]),
            [Piece(ALL_TILES, row, rows)],
        )
