"""Chains of operations that run band by band, where their images exceed the memory of the tiles.

Within a chain only a band of rows of each image exists at a time. Each tile computes what its part
of the band needs of every image between, also what neighbours compute too: nothing has to be
exchanged there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from darwinn_testbench.compiler.stages.operations import (
    AnyOperation,
    Channelwise,
    Convolution,
    Enlarged,
    Greatest,
    Image,
    Interpolated,
    Joined,
    Product,
    Reach,
    Slice,
    Spacing,
    Taps,
    TransposedConvolution,
    WeightedSum,
    sources_of,
)
from darwinn_testbench.compiler.stages.storage import (
    Interval,
    Spread,
    common,
    hull,
    length,
    pieces_of,
)

Axes = tuple[Spread, Spread]
"""Rows and columns of an image."""
Needs = tuple[tuple[Interval, ...], tuple[Interval, ...]]
"""What each place of the grid needs of an image, by rows and columns."""

Windowed = Convolution | Channelwise | Greatest
"""Operations that read a window for each pixel."""
MEMBERS = (
    Convolution,
    Channelwise,
    Product,
    Slice,
    Joined,
    Enlarged,
    Interpolated,
    TransposedConvolution,
    WeightedSum,
)
"""Operations that can be in a chain."""


@dataclass(frozen=True)
class Chain:
    """Operations ``first`` to ``last`` of a graph, in so many bands."""

    first: int
    last: int
    bands: int

    def __contains__(self, step: int) -> bool:
        return self.first <= step <= self.last

    def members(self, operations: Sequence[AnyOperation]) -> tuple[AnyOperation, ...]:
        """The operations of the chain."""
        return tuple(operations[self.first : self.last + 1])

    def sources(self, operations: Sequence[AnyOperation]) -> dict[int, Image]:
        """The images of several pixels that the chain reads and does not make, by index."""
        made = {each.result.index for each in self.members(operations)}
        return {
            image.index: image
            for each in self.members(operations)
            for image in sources_of(each)
            if image.index not in made and not image.is_vector
        }


@lru_cache(maxsize=1 << 13)
def met(reach: Reach, own: tuple[Interval, ...]) -> tuple[Interval, ...]:
    """What the results of each place of the grid meet of their source."""
    return tuple(reach.inputs(*each) if length(each) else (0, 0) for each in own)


def spaced(spacing: Spacing, own: Sequence[Interval]) -> tuple[Interval, ...]:
    """The same of a transposed convolution."""
    return tuple(spacing.inputs(*each) if length(each) else (0, 0) for each in own)


def reduced(own: Sequence[Interval], times: int) -> tuple[Interval, ...]:
    """The pixels of which those of an enlargement come."""
    return tuple(
        (each[0] // times, (each[1] - 1) // times + 1) if length(each) else (0, 0) for each in own
    )


def between(taps: Taps, own: Sequence[Interval]) -> tuple[Interval, ...]:
    """The pixels between which results lie."""
    return tuple(
        (min(taps.first[slice(*each)]), max(taps.second[slice(*each)]) + 1)
        if length(each)
        else (0, 0)
        for each in own
    )


def needs_of(operation: AnyOperation, rows: Spread, columns: Spread) -> Needs:
    """What an operation needs of each source for results of these rows and columns."""
    if isinstance(operation, Windowed):
        return met(operation.rows, rows.own), met(operation.columns, columns.own)
    if isinstance(operation, TransposedConvolution):
        return spaced(operation.rows, rows.own), spaced(operation.columns, columns.own)
    if isinstance(operation, Enlarged):
        return reduced(rows.own, operation.times), reduced(columns.own, operation.times)
    if isinstance(operation, Interpolated):
        return between(operation.rows, rows.own), between(operation.columns, columns.own)
    return rows.own, columns.own


@dataclass(frozen=True)
class Band:
    """A band of a chain: the axes of all images that it makes, and what it needs of others."""

    made: Mapping[int, Axes]
    needs: Mapping[int, Needs]


@lru_cache(maxsize=64)
def band_axes(members: tuple[AnyOperation, ...], result: Axes, bands: int) -> tuple[Band, ...]:
    """Each band of a chain whose last result has the axes ``result``."""
    return tuple(_bands(members, result, bands))


def _bands(members: Sequence[AnyOperation], result: Axes, bands: int) -> Iterator[Band]:
    rows, columns = result
    for band in range(bands):
        own = tuple(pieces_of(each, bands)[band] for each in rows.own)
        last = members[-1].result.index
        made: dict[int, Axes] = {last: (replace(rows, own=own), columns)}
        needs: dict[int, Needs] = {}
        for operation in reversed(members):
            image = operation.result
            if image.index != last:
                window = needs.pop(image.index)
                made[image.index] = _local(image.height, window[0]), _local(image.width, window[1])
            wanted = needs_of(operation, *made[image.index])
            for source in sources_of(operation):
                if not source.is_vector:
                    before = needs.get(source.index, wanted)
                    needs[source.index] = (
                        _both(before[0], wanted[0]),
                        _both(before[1], wanted[1]),
                    )
        yield Band(made, needs)


def _both(first: tuple[Interval, ...], second: tuple[Interval, ...]) -> tuple[Interval, ...]:
    return tuple(hull(a, b) for a, b in zip(first, second, strict=True))


def _local(size: int, window: tuple[Interval, ...]) -> Spread:
    own = []
    for each in window:
        inside = common(each, (0, size))
        own.append(inside if length(inside) else (0, 0))
    return Spread(size, tuple(own), window, is_local=True)
