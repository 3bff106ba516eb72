"""Chains of operations that run band by band, where their images exceed the memory of the tiles.

Within a chain only a band of rows of each image exists at a time. Each tile computes what its part
of the band needs of every image between, also what neighbours compute too: nothing has to be
exchanged there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

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
    TILES,
    Interval,
    Spread,
    Storage,
    column_of,
    common,
    hull,
    length,
    pieces_of,
    row_of,
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
    """Operations ``first`` to ``last`` of a graph, in so many bands.

    A band is some rows of what each tile has of the result, or one of ``across`` parts of them.
    The result may lie ``over`` a source, by index: each band takes the place of what no band needs
    any more (:func:`distances`). A source can be ``fed``, by index: an input of the network, of
    which the host sends to each band what it needs. A chain of one operation is of use only so.
    """

    first: int
    last: int
    bands: int
    over: int | None = None
    fed: int | None = None
    across: int = 1

    def __contains__(self, step: int) -> bool:
        return self.first <= step <= self.last

    def members(self, operations: Sequence[AnyOperation]) -> tuple[AnyOperation, ...]:
        """The operations of the chain."""
        return tuple(operations[self.first : self.last + 1])

    def axes(self, operations: Sequence[AnyOperation], result: Axes) -> tuple[Band, ...]:
        """Each band, with the axes of the result of the chain."""
        members, numbers = self.members(operations), (self.bands // self.across, self.across)
        return band_axes(members, result, numbers, self.over is not None)

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


def distances(source: Storage, bands: Sequence[tuple[Storage, Needs]]) -> tuple[int, int]:
    """How far a result has to lie from the source whose place it takes, band by band.

    Args:
        source: the source; its first byte is not looked at.
        bands: by band the result of which it computes some rows, and what it needs of the source.

    Returns:
        Bytes by which the result has to lie below the source, if bands are computed from the first
        to the last one, and above it, if from the last to the first one. A band writes nothing that
        it reads itself, since it may read all of that several times.
    """
    below, above = [0], [0]
    for tile in TILES:
        read: list[Interval] = []
        written: list[Interval] = []
        for result, needs in bands:
            if not result.own_pixels(tile):
                continue
            rows, columns = (needs[0][row_of(tile)], needs[1][column_of(tile)])
            read.append(_bytes(source, tile, rows, columns))
            written.append(_bytes(result, tile, *result.own(tile)))
        for number, (low, high) in enumerate(written):
            below.append(high - min(first for first, _ in read[number:]))
            above.append(max(end for _, end in read[: number + 1]) - low)
    return max(below), max(above)


def _bytes(storage: Storage, tile: int, rows: Interval, columns: Interval) -> Interval:
    """First byte of some rows and columns, and the one behind them, from that of the image on."""
    first = storage.address(tile, rows[0], columns[0])
    last = storage.address(tile, rows[1] - 1, columns[1] - 1)
    return first - storage.base, last + storage.image.pitch - storage.base


@lru_cache(maxsize=64)
def band_axes(
    members: tuple[AnyOperation, ...], result: Axes, numbers: tuple[int, int], exact: bool = False
) -> tuple[Band, ...]:
    """Each band of a chain whose last result has the axes ``result``.

    ``numbers`` of bands are those of rows, and of parts of each. With ``exact`` each place computes
    nothing but what is its own.
    """
    return tuple(_bands(members, result, numbers, exact))


def _bands(
    members: Sequence[AnyOperation], result: Axes, numbers: tuple[int, int], exact: bool
) -> Iterator[Band]:
    rows, columns = (replace(each, is_exact=exact) for each in result)
    for band in np.ndindex(numbers):
        own = [
            replace(axis, own=tuple(pieces_of(each, number)[place] for each in axis.own))
            for axis, number, place in zip((rows, columns), numbers, band, strict=True)
        ]
        last = members[-1].result.index
        made: dict[int, Axes] = {last: (own[0], own[1])}
        needs: dict[int, Needs] = {}
        for operation in reversed(members):
            image = operation.result
            if image.index != last:
                window = needs.pop(image.index)
                axes = local(image.height, window[0]), local(image.width, window[1])
                made[image.index] = (
                    replace(axes[0], is_exact=exact),
                    replace(axes[1], is_exact=exact),
                )
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


def local(size: int, window: tuple[Interval, ...]) -> Spread:
    """An axis of which each place has all that it needs itself."""
    own = []
    for each in window:
        inside = common(each, (0, size))
        own.append(inside if length(inside) else (0, 0))
    return Spread(size, tuple(own), window, is_local=True)
