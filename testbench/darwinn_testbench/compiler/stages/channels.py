"""Channels in another order: concatenations and slices of them, wherever they begin.

Most words of a result are four channels of one source, which are read from any byte on. A word in
which parts meet is made in two steps: each part gives its channels to a word of its own, and the
sum of these words is the result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES

from darwinn_testbench.compiler.parameters import UNIT_BYTES
from darwinn_testbench.compiler.program import ALL_TILES
from darwinn_testbench.compiler.stages.compute import Part, Sums
from darwinn_testbench.compiler.stages.operations import (
    UNIT,
    Image,
    Joined,
    OutputStage,
    Slice,
)
from darwinn_testbench.compiler.stages.parts import Computation, copying, emitting_all, parts_of
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.rows import AS_IS, GROUP, Rows, identity
from darwinn_testbench.compiler.stages.storage import Storage

_SCRATCH_PIXELS = 1 << 10
"""Pixels whose words of several parts are made at a time, at most."""


@dataclass(frozen=True)
class _Span:
    """Channels of an image: ``count`` of them, from ``first`` on."""

    image: Image
    stage: OutputStage
    first: int
    count: int


@dataclass(frozen=True)
class _Share:
    """What a span has of a word of the result: ``lanes`` channels, from ``lane`` on."""

    span: _Span
    channel: int
    lane: int
    lanes: int

    @property
    def source(self) -> int:
        """The channel from which on a word of the source is read that has them."""
        return min(self.channel, self.span.image.pitch - GROUP)

    @property
    def weights(self) -> Rows:
        """A row that brings them to their lanes."""
        row = np.zeros((1, UNIT_BYTES), np.uint8)
        lanes = np.arange(self.lanes)
        row.reshape(-1, WORD_BYTES)[self.lane + lanes, self.channel - self.source + lanes] = 1
        return row


def joined_phases(operation: Joined, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """Parts one behind the other, each with its own output stage."""
    return _phases(operation, "concatenation", placement, areas)


def slice_phases(operation: Slice, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """Some channels, copied."""
    return _phases(operation, "slice", placement, areas)


def joined_bytes(operation: Joined | Slice) -> int:
    """Bytes of narrow memory that words of several parts need."""
    mixed = [len(shares) for shares in _words(operation)[1].values() if len(shares) > 1]
    image = operation.result
    pixels = -(-image.height // chip.GRID_ROWS) * -(-image.width // chip.GRID_COLUMNS)
    longest = max(image.width, 1)
    return sum(mixed) * WORD_BYTES * min(max(pixels, longest), max(_SCRATCH_PIXELS, longest))


def _spans(operation: Joined | Slice) -> list[_Span]:
    if isinstance(operation, Slice):
        first, behind = operation.first, operation.first + operation.result.channels
        inside = max(first, 0), min(behind, operation.source.channels)
        return [_Span(operation.source, operation.stage, inside[0], inside[1] - inside[0])]
    return [
        _Span(image, stage, 0, image.channels)
        for image, stage in zip(operation.sources, operation.stages, strict=True)
    ]


_Whole = tuple[_Span, int, int, int]
"""A span, the first of its words in the result, how many there are, and the first one's channel."""


def _words(operation: Joined | Slice) -> tuple[list[_Whole], dict[int, list[_Share]]]:
    """Words that are four channels of one span, and the shares of each other word: those without
    shares have zero points."""
    whole: list[_Whole] = []
    shares: dict[int, list[_Share]] = defaultdict(list)
    begin = max(0, -operation.first) if isinstance(operation, Slice) else 0
    for word in range(begin // GROUP):
        shares[word] = []
    for span in _spans(operation):
        end = begin + span.count
        first, behind = -(-begin // GROUP), end // GROUP
        if behind > first:
            whole.append((span, first, behind - first, span.first + first * GROUP - begin))
        for word in sorted({begin // GROUP, end // GROUP} - set(range(first, behind))):
            low, high = max(begin, word * GROUP), min(end, (word + 1) * GROUP)
            if high > low:
                share = _Share(span, span.first + low - begin, low % GROUP, high - low)
                shares[word].append(share)
        begin = end
    for word in range(-(-begin // GROUP), operation.result.pitch // GROUP):
        shares[word] = []
    return whole, shares


def _phases(
    operation: Joined | Slice, what: str, placement: Placement, areas: Areas
) -> Iterator[Phase]:
    whole, shares = _words(operation)
    result = placement.of(operation.result)
    blank = _Share(_spans(operation)[0], 0, 0, 0)
    mixed = {word: each for word, each in shares.items() if len(each) > 1}
    single = {word: each[0] if each else blank for word, each in shares.items() if len(each) < 2}
    rows = [
        identity(),
        *(each.weights for each in single.values()),
        *(each.weights for each in chain.from_iterable(mixed.values())),
        *map(_taken, mixed.values()),
    ]
    row, _ = areas.take(sum(map(len, rows)))
    load = [Piece(ALL_TILES, row, np.concatenate(rows))]
    found: list[Computation] = []
    for span, word, count, channel in whole:
        sums = copying(span.stage, span.image, count, row)
        found.append((sums, _of_channels(placement, span, channel, result, word)))
    for at, (word, share) in enumerate(single.items(), row + 1):
        # Lanes without a channel get the zero point.
        found.append(_staged(placement, share, result, word, at))
    if found:
        yield Phase(operation.number, what, emitting_all(found), load)
        load = []
    if mixed:
        first = row + 1 + len(single)
        for name, step in _mixed(operation, mixed, placement, result, first):
            yield Phase(operation.number, f"{what}: {name}", emitting_all(step), load)
            load = []


def _mixed(
    operation: Joined | Slice,
    mixed: Mapping[int, list[_Share]],
    placement: Placement,
    result: Storage,
    row: int,
) -> Iterator[tuple[str, list[Computation]]]:
    """Words of several parts, some rows at a time: each part for itself, then their sums.

    The weights of the parts begin at ``row``, and behind them are those of the sums.
    """
    all_shares = [(word, share) for word, shares in mixed.items() for share in shares]
    staged = [
        _staged(placement, share, result, word, at)
        for at, (word, share) in enumerate(all_shares, row)
    ]
    room = placement.scratch_sizes[operation.result.index] // (len(staged) * WORD_BYTES)
    lines = max(part.rows for _, parts in staged for part in parts.values())
    columns = max(part.columns for _, parts in staged for part in parts.values())
    if columns > room:
        raise ValueError("a row of an image is too long for a concatenation")
    at_once = min(lines, room // columns)
    scratch, distance = placement.scratch[operation.result.index], room * WORD_BYTES
    for top in range(0, lines, at_once):
        band = top, at_once
        yield (
            "parts of words",
            [
                (sums, _to_scratch(parts, scratch + k * distance, band))
                for k, (sums, parts) in enumerate(staged)
            ],
        )
        sums_of_words: list[Computation] = []
        number = 0
        for shares in mixed.values():
            taps, lanes = len(shares), shares[-1].lane + shares[-1].lanes
            at = row + len(staged) + number
            sums = Sums(AS_IS, 0, 0, taps, 1, GROUP, lanes, GROUP, at, 0, [(taps, 1)])
            place = scratch + number * distance
            parts = _from_scratch(staged[number][1], place, (taps, distance), band)
            sums_of_words.append((sums, parts))
            number += taps
        yield "whole words", sums_of_words


def _staged(
    placement: Placement, share: _Share, result: Storage, word: int, row: int
) -> Computation:
    """A share in its lanes, at the place of the word; the other lanes do not matter."""
    sums = copying(share.span.stage, share.span.image, 1, row)
    return sums, _of_channels(placement, share.span, share.source, result, word)


def _of_channels(
    placement: Placement, span: _Span, channel: int, result: Storage, word: int
) -> dict[int, Part]:
    source = placement.of(span.image)
    return parts_of(UNIT, UNIT, source, result, [], channel=word * GROUP, source_channel=channel)


def _taken(word: Sequence[_Share]) -> Rows:
    """Rows that take of each share's word the lanes that are its own."""
    rows = np.zeros((len(word), UNIT_BYTES // WORD_BYTES, WORD_BYTES), np.uint8)
    for row, share in zip(rows, word, strict=True):
        lanes = share.lane + np.arange(share.lanes)
        row[lanes, lanes] = 1
    return rows.reshape(len(word), -1)


def _to_scratch(parts: dict[int, Part], place: int, band: tuple[int, int]) -> dict[int, Part]:
    """The same computations for some rows, whose results go to words one after another."""
    top, count = band
    return {
        tile: replace(
            part,
            source=part.source + top * part.next_read[1],
            result=place,
            rows=min(count, part.rows - top),
            next_write=(WORD_BYTES, part.columns * WORD_BYTES),
        )
        for tile, part in parts.items()
        if part.rows > top
    }


def _from_scratch(
    parts: dict[int, Part], place: int, taps: tuple[int, int], band: tuple[int, int]
) -> dict[int, Part]:
    """The sums of words one after another, for the places of the results of ``parts``."""
    top, count = band
    return {
        tile: replace(
            part,
            source=place,
            result=part.result + top * part.next_write[1],
            rows=min(count, part.rows - top),
            read=[taps],
            next_read=(WORD_BYTES, part.columns * WORD_BYTES),
        )
        for tile, part in parts.items()
        if part.rows > top
    }
