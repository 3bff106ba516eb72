"""Which tile holds which part of an image, and where in its narrow memory.

A tile holds a window of the image: its *own* pixels, which it computes, and those around them that
it needs. All tiles of a row of the grid have the same rows, all of a column the same columns. An
image that *all* tiles hold as a whole is the same thing with other numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES

from darwinn_testbench.compiler.stages.operations import Image

Interval = tuple[int, int]
"""First index and end, which is not in it."""

TILES = range(chip.TILES)


def row_of(tile: int) -> int:
    """Row of a tile in the grid."""
    return tile // chip.GRID_COLUMNS


def column_of(tile: int) -> int:
    """Column of a tile in the grid."""
    return tile % chip.GRID_COLUMNS


def length(interval: Interval) -> int:
    """Elements of an interval."""
    return max(0, interval[1] - interval[0])


def hull(*intervals: Interval) -> Interval:
    """The least interval that has all of those that are not empty; an empty one if all are."""
    filled = [each for each in intervals if length(each)]
    if not filled:
        return intervals[0]
    return min(low for low, _ in filled), max(high for _, high in filled)


def common(first: Interval, second: Interval) -> Interval:
    """What two intervals have in common."""
    return max(first[0], second[0]), min(first[1], second[1])


def behind(before: Interval, interval: Interval) -> Interval:
    """What an interval has behind another one, which does not begin behind it."""
    return max(interval[0], before[1]) if length(before) else interval[0], interval[1]


@dataclass(frozen=True)
class Spread:
    """An axis of an image of ``size`` elements over the places of the grid.

    Where it ``is_local`` each place computes all that it needs itself, so that some elements have
    several owners. Where it ``is_exact`` each place computes nothing but its own.
    """

    size: int
    own: tuple[Interval, ...]
    window: tuple[Interval, ...]
    is_local: bool = False
    is_exact: bool = False

    @cached_property
    def extent(self) -> int:
        """Elements of the longest window."""
        return max(length(each) for each in self.window)

    def widened(self, needs: Iterable[tuple[Interval, ...]]) -> Spread:
        """With windows that hold all of ``needs``, and what has to pass through them.

        Neighbours hand elements on, so all places between an element's owner and who needs it
        have it in their windows, too.
        """
        window = list(self.window)
        for need in needs:
            window = [hull(a, b) for a, b in zip(window, need, strict=True)]
        for place, wanted in enumerate(tuple(window)):
            for owner, own in enumerate(self.own):
                between = range(min(place, owner) + 1, max(place, owner))
                part = common(wanted, own) if between else (0, 0)
                for other in between if length(part) else ():
                    window[other] = hull(window[other], part)
        return replace(self, window=tuple(window))


def pieces_of(interval: Interval, count: int) -> list[Interval]:
    """An interval in ``count`` pieces one after another, of which the last ones may be empty."""
    first, end = interval
    step = -(-length(interval) // count)
    return [(min(first + k * step, end), min(first + (k + 1) * step, end)) for k in range(count)]


def banded(size: int, places: int) -> Spread:
    """An axis in equal parts, of which the last ones may be shorter or empty."""
    own = tuple(pieces_of((0, size), places))
    return Spread(size, own, own)


def everywhere(size: int, interval: Interval, places: int) -> Spread:
    """An axis of which every place has the same interval."""
    own = (interval,) * places
    return Spread(size, own, own)


def _computed(spread: Spread, place: int) -> int:
    own, most = spread.own[place], max(map(length, spread.own))
    if not length(own) or spread.is_exact:
        return length(own)
    room = spread.extent - (own[0] - spread.window[place][0])
    return most if most <= room else length(own)


@dataclass(frozen=True)
class Storage:
    """An image in narrow memory: from byte ``base``, the same on all tiles.

    ``padding`` is the byte that stands outside of it, -1 for its zero point.
    """

    image: Image
    rows: Spread
    columns: Spread
    base: int = 0
    padding: int = -1

    @property
    def outside(self) -> int:
        """The byte that stands outside of the image."""
        return self.image.zero_point if self.padding < 0 else self.padding

    @property
    def row_pitch(self) -> int:
        """Bytes from row to row."""
        return self.columns.extent * self.image.pitch

    @property
    def bytes(self) -> int:
        """Bytes that it takes on each tile."""
        return self.rows.extent * self.row_pitch

    @property
    def is_whole(self) -> bool:
        """Whether every tile has all of it."""
        return all(own == (0, self.rows.size) for own in self.rows.own) and all(
            own == (0, self.columns.size) for own in self.columns.own
        )

    def own(self, tile: int) -> tuple[Interval, Interval]:
        """Rows and columns that a tile computes."""
        return self.rows.own[row_of(tile)], self.columns.own[column_of(tile)]

    def own_pixels(self, tile: int) -> int:
        """Pixels that a tile computes."""
        rows, columns = self.own(tile)
        return length(rows) * length(columns)

    def computed(self, tile: int) -> tuple[int, int]:
        """How many rows and columns a tile computes, from its own first ones on.

        As many as the tile with the most, where there is room: what is behind the image is
        overwritten or never read, and all tiles can share an instruction.
        """
        return (
            _computed(self.rows, row_of(tile)),
            _computed(self.columns, column_of(tile)),
        )

    def address(self, tile: int, row: int, column: int) -> int:
        """Byte of the first channel of a pixel on a tile, which may be one of padding."""
        top = self.rows.window[row_of(tile)][0]
        left = self.columns.window[column_of(tile)][0]
        return self.base + (row - top) * self.row_pitch + (column - left) * self.image.pitch

    def span(self, tile: int, rows: Interval, columns: Interval) -> Interval:
        """First byte of some rows and columns, and the one behind them, from the image's on."""
        first = self.address(tile, rows[0], columns[0])
        last = self.address(tile, rows[1] - 1, columns[1] - 1)
        return first - self.base, last + self.image.pitch - self.base

    def word(self, tile: int, row: int, column: int) -> int:
        """The same as a word."""
        return self.address(tile, row, column) // WORD_BYTES
