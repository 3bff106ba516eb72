"""Chains of operations that run band by band, where their images exceed the memory of the tiles.

Within a chain only a band of rows of each image exists at a time. Each tile computes what its part
of the band needs of every image between, also what neighbours compute too: nothing has to be
exchanged there. Rows and columns are independent: a band is one stripe of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from darwinn_testbench.compiler.stages.needs import Axis, needs_along
from darwinn_testbench.compiler.stages.operations import (
    AnyOperation,
    Channelwise,
    Convolution,
    Enlarged,
    Image,
    Interpolated,
    Joined,
    Product,
    Slice,
    TransposedConvolution,
    WeightedSum,
    sources_of,
)
from darwinn_testbench.compiler.stages.storage import (
    TILES,
    Interval,
    Spread,
    Storage,
    common,
    hull,
    length,
    pieces_of,
)

Axes = tuple[Spread, Spread]
"""Rows and columns of an image."""
Places = tuple[Interval, ...]
"""Of an axis of an image, what each place of the grid has or needs."""
_Bytes = NDArray[np.int64]
"""By tile and band."""
Needs = tuple[Places, Places]
"""What each place of the grid needs of an image, by rows and columns."""

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


FLAT_BYTES = 1 << 15
"""Bytes of an input that a tile takes at a time, about."""


@dataclass(frozen=True)
class Chain:
    """Operations ``first`` to ``last`` of a graph, in so many bands.

    A band is some rows of what each tile has of the result, or one of ``across`` parts of them.
    The result may lie ``over`` a source, by index: each band takes the place of what no band needs
    any more (:func:`distances`). A source can be ``fed``, by index: an input of the network, of
    which the host sends what all bands across need before the first of them, or what each of them
    needs ``again``, about ``flat`` bytes to a tile at a time. A chain of one operation is of use
    only so.
    """

    first: int
    last: int
    bands: int
    over: int | None = None
    fed: int | None = None
    across: int = 1
    again: bool = False
    flat: int = FLAT_BYTES

    def __contains__(self, step: int) -> bool:
        return self.first <= step <= self.last

    @property
    def steps(self) -> range:
        """The operations of the chain, by number."""
        return range(self.first, self.last + 1)

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


@dataclass(frozen=True)
class Stripe:
    """An axis of a band of a chain.

    Attributes:
        own: what each place computes of the result of the chain.
        made: the images between, by index.
        needs: what each place needs of the sources of the chain, by index.
    """

    own: Places
    made: Mapping[int, Spread]
    needs: Mapping[int, Places]

    def places_of(self, image: Image) -> Places:
        """The interval that each place computes of an image of the chain."""
        made = self.made.get(image.index)
        return self.own if made is None else made.own


def stripes(
    members: Sequence[AnyOperation], axis: Axis, own: Places, count: int, *, exact: bool
) -> tuple[Stripe, ...]:
    """Cut a chain into ``count`` stripes, where places have ``own`` of its result.

    With ``exact`` each place computes nothing but what is its own.
    """
    cut = [pieces_of(each, count) for each in own]
    return tuple(_stripe(members, axis, each, exact) for each in zip(*cut, strict=True))


def _stripe(members: Sequence[AnyOperation], axis: Axis, own: Places, exact: bool) -> Stripe:
    made: dict[int, Spread] = {}
    needs: dict[int, Places] = {members[-1].result.index: own}
    for operation in reversed(members):
        image = operation.result
        places = needs.pop(image.index)
        if operation is not members[-1]:
            size = image.height if axis == "rows" else image.width
            made[image.index] = local(size, places, exact=exact)
            places = made[image.index].own
        wanted = needs_along(operation, axis, places)
        for source in sources_of(operation):
            if not source.is_vector:
                before = needs.get(source.index)
                needs[source.index] = wanted if before is None else _hulls([before, wanted])
    return Stripe(own, made, needs)


def _hulls(several: Sequence[Places]) -> Places:
    return tuple(hull(*each) for each in zip(*several, strict=True))


def local(size: int, window: Places, *, exact: bool = False) -> Spread:
    """An axis of which each place has all that it needs itself."""
    own = []
    for each in window:
        inside = common(each, (0, size))
        own.append(inside if length(inside) else (0, 0))
    return Spread(size, tuple(own), window, is_local=True, is_exact=exact)


@dataclass(frozen=True)
class Bands:
    """The bands of a chain: each stripe of its rows with each of its columns."""

    rows: tuple[Stripe, ...]
    columns: tuple[Stripe, ...]

    def __iter__(self) -> Iterator[tuple[Stripe, Stripe]]:
        return product(self.rows, self.columns)

    @cached_property
    def needs(self) -> dict[int, Needs]:
        """What all bands together need of the sources of the chain, by index."""
        return {
            index: (
                _hulls([each.needs[index] for each in self.rows]),
                _hulls([each.needs[index] for each in self.columns]),
            )
            for index in self.rows[0].needs
        }

    def most_bytes(self, image: Image) -> int:
        """Bytes of an image between in the band that has most of it."""
        rows, columns = (
            max(each.made[image.index].extent for each in stripes)
            for stripes in (self.rows, self.columns)
        )
        return rows * columns * image.pitch


def distances(source: Storage, result: Storage, bands: Bands) -> tuple[int, int]:
    """How far a result has to lie from the source whose place it takes, band by band.

    Their first bytes are not looked at.

    Returns:
        Bytes by which the result has to lie below the source, if bands are computed from the first
        to the last one, and above it, if from the last to the first one. A band writes nothing that
        it reads itself, since it may read all of that several times.
    """
    index = source.image.index
    axes = bands.rows, bands.columns
    first, last = _spans(source, [[each.needs[index] for each in axis] for axis in axes])
    low, high = _spans(result, [[each.own for each in axis] for axis in axes])
    filled = _filled(bands)
    lowest = np.minimum.accumulate(np.where(filled, first, _FAR)[:, ::-1], axis=1)[:, ::-1]
    highest = np.maximum.accumulate(np.where(filled, last, -_FAR), axis=1)
    below, above = (high - lowest)[filled], (highest - low)[filled]
    return int(below.max(initial=0)), int(above.max(initial=0))


_FAR = 1 << 40
"""More bytes than any distance in narrow memory."""


def _spans(storage: Storage, axes: Sequence[Sequence[Places]]) -> tuple[_Bytes, _Bytes]:
    """First byte of what each tile has of each band, and the one behind it, from the image's on."""
    found = []
    steps = (storage.row_pitch, storage.image.pitch)
    for places, spread, step in zip(axes, (storage.rows, storage.columns), steps, strict=True):
        begins = np.array([begin for begin, _ in spread.window])
        ends = np.array(places, np.int64).transpose(2, 1, 0) - begins[:, None]
        found.append((ends - [[[0]], [[1]]]) * step)
    rows, columns = found
    first, last = rows[:, :, None, :, None] + columns[:, None, :, None, :]
    tiles = len(TILES)
    return first.reshape(tiles, -1), last.reshape(tiles, -1) + storage.image.pitch


def _filled(bands: Bands) -> NDArray[np.bool_]:
    """Whether each tile computes something of each band."""
    rows, columns = (
        np.array([list(map(length, each.own)) for each in axis]).T > 0
        for axis in (bands.rows, bands.columns)
    )
    return (rows[:, None, :, None] & columns[None, :, None, :]).reshape(len(TILES), -1)
