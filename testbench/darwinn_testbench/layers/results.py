"""What the layers of a program leave in the tiles, as parts of tensors.

A tap copies the words that a layer's tensor instructions write. How they are spread over the tiles
follows from the words alone (docs/chip-facts.md, "Tensors in the tiles"):

- An image lies on the 4 x 4 grid of tiles in bands: tile (r, c) holds ``height[r]`` rows and
  ``width[c]`` columns, all channels of a position together, in whole words. So the number of words
  of each tile gives heights and widths.
- A single position is spread over the tiles by channels, in the order of the tiles.
- An operation done in several passes gives its result in bands of rows, of columns or of channels,
  one for each pass, in program order. Where two bands overlap, both have computed what they share.
- A program that executes a layer again and again gives one position of its result each time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.machine.layers import ComputedLayer
from darwinn_sim.machine.lowering import LoweredProgram
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Shape = tuple[int, int, int]
"""Rows, columns and channels."""

_GRID = (chip.GRID_ROWS, chip.GRID_COLUMNS)


def image_shape(shape: Sequence[int]) -> Shape:
    """Rows, columns and channels of a tensor of any rank: the last dimensions, rows of all others.

    A scalar is one position of one channel.
    """
    extents = (1, 1, 1, *shape)
    return math.prod(extents[:-2]), extents[-2], extents[-1]


@dataclass(frozen=True, eq=False)
class Pass:
    """The words that one pass of a layer has left in the tiles.

    ``words`` has shape (words, 4): the tiles one after another, each in the order of addresses;
    ``valid`` says how many bytes of each word are results; ``count`` has shape (16,), words by
    tile.
    """

    layer: ComputedLayer
    words: Bytes
    valid: NDArray[np.int64]
    count: NDArray[np.int64]

    @cached_property
    def channels(self) -> Bytes:
        """The results as channels of one position."""
        return self.words[np.arange(WORD_BYTES) < self.valid[:, None]]

    def positions(self, channels: int) -> NDArray[np.int64] | None:
        """Positions that each tile of the grid holds, shape (4, 4), if they have ``channels``."""
        width = _words(channels)
        if (self.count % width).any():
            return None
        return (self.count // width).reshape(_GRID)

    def image(self, shape: Shape) -> Bytes | None:
        """The results as an image of ``shape``, or None if they cannot be one."""
        if shape not in self._images:
            self._images[shape] = self._image(shape)
        return self._images[shape]

    @cached_property
    def _images(self) -> dict[Shape, Bytes | None]:
        """What has been put together: tensors of one shape are asked for again and again."""
        return {}

    def _image(self, shape: Shape) -> Bytes | None:
        height, width, channels = shape
        positions = self.positions(channels)
        if positions is None or positions.sum() != height * width:
            return None
        heights, uneven_rows = np.divmod(positions.sum(axis=1), width)
        widths, uneven_columns = np.divmod(positions.sum(axis=0), height)
        even = not uneven_rows.any() and not uneven_columns.any()
        if not even or (positions != np.outer(heights, widths)).any():
            return None
        return self._assemble(shape, heights, widths)

    def _assemble(
        self, shape: Shape, heights: NDArray[np.int64], widths: NDArray[np.int64]
    ) -> Bytes:
        height, width, channels = shape
        depth = WORD_BYTES * _words(channels)
        image = np.empty((height, width, depth), np.uint8)
        ends = np.cumsum(self.count)
        bottoms, rights = np.cumsum(heights), np.cumsum(widths)
        for tile in np.flatnonzero(self.count).tolist():
            row, column = divmod(tile, chip.GRID_COLUMNS)
            part = self.words[ends[tile] - self.count[tile] : ends[tile]]
            image[
                bottoms[row] - heights[row] : bottoms[row],
                rights[column] - widths[column] : rights[column],
            ] = part.reshape(heights[row], widths[column], depth)
        return image[..., :channels]


@dataclass(frozen=True, eq=False)
class Piece:
    """Part of a tensor: ``data`` are the elements from ``start`` (row, column, channel) on."""

    start: Shape
    data: Bytes

    def cut(self, tensor: Bytes) -> Bytes:
        """The same elements of ``tensor``, shape (rows, columns, channels)."""
        row, column, channel = self.start
        height, width, depth = self.data.shape
        return tensor[row : row + height, column : column + width, channel : channel + depth]


def results(
    program: LoweredProgram, layer: ComputedLayer, tapped: NDArray[np.void]
) -> tuple[Pass, tuple[Pass, ...]]:
    """What ``layer`` has left at the end, and after each of its executions.

    ``tapped`` holds the words of its tap (``observation.TappedWord``) in the order in which they
    were written.
    """
    tables = program.tables
    writes = tables.tensor_plan.place["writes"][tables.row[tapped["instruction"]]]
    # Each tile executes one instruction of the layer, so that its words come in whole executions.
    execution = _rank_within(tapped["tile"]) // writes
    whole = _pass(layer, tapped)
    numbers = np.unique(execution).tolist()
    if len(numbers) == 1:
        return whole, (whole,)
    return whole, tuple(_pass(layer, tapped[execution == number]) for number in numbers)


def _rank_within(tiles: NDArray[np.int32]) -> NDArray[np.int64]:
    """How many earlier words belong to the same tile, for each word."""
    order = np.argsort(tiles, kind="stable")
    firsts = np.searchsorted(tiles[order], tiles[order], side="left")
    rank = np.empty(len(tiles), np.int64)
    rank[order] = np.arange(len(tiles)) - firsts
    return rank


def _pass(layer: ComputedLayer, tapped: NDArray[np.void]) -> Pass:
    """Keep the last word of each address."""
    place = tapped["tile"].astype(np.int64) * chip.NARROW_ADDRESS_BYTES + tapped["address"]
    _, last = np.unique(place[::-1], return_index=True)
    kept = tapped[::-1][last]
    return Pass(
        layer,
        kept["word"].astype("<u4").view(np.uint8).reshape(-1, WORD_BYTES),
        kept["count"].astype(np.int64),
        np.bincount(kept["tile"], minlength=chip.TILES),
    )


def readings(parts: Sequence[Pass], shape: Shape) -> Iterator[tuple[Piece, ...]]:
    """Every way in which ``parts``, in order, can make up the tensor of ``shape``.

    One part is the whole; several are bands. Two bands may overlap, since the first begins and the
    second ends with the tensor; more of them must fit exactly, or where they lie is not known.
    The words of few tiles may be bands of rows as well as bands of columns.
    """
    if shape[0] * shape[1] == 1:
        found = [_bands_of_channels(parts, shape)]
    else:
        found = [_bands(parts, shape, axis) for axis in ((0,) if len(parts) == 1 else (0, 1))]
    yield from (each for each in found if each is not None)


def _bands_of_channels(parts: Sequence[Pass], shape: Shape) -> tuple[Piece, ...] | None:
    total = sum(len(part.channels) for part in parts)
    if not shape[2] <= total < shape[2] + WORD_BYTES:
        return None
    found: list[Piece] = []
    start = 0
    for part in parts:
        if start >= shape[2]:
            return None
        data = part.channels[: shape[2] - start]
        found.append(Piece((0, 0, start), data.reshape(1, 1, -1)))
        start += len(data)
    return tuple(found)


def _bands(parts: Sequence[Pass], shape: Shape, axis: int) -> tuple[Piece, ...] | None:
    """Bands of rows (axis 0) or of columns (axis 1)."""
    extents = [_extent(part, shape, axis) for part in parts]
    starts = _starts(extents, shape[axis])
    if starts is None:
        return None
    found: list[Piece] = []
    for part, extent, start in zip(parts, extents, starts, strict=True):
        band = (extent, shape[1], shape[2]) if axis == 0 else (shape[0], extent, shape[2])
        data = part.image(band)
        if data is None:
            return None
        found.append(Piece((start, 0, 0) if axis == 0 else (0, start, 0), data))
    return tuple(found)


def _extent(part: Pass, shape: Shape, axis: int) -> int:
    """Rows or columns of the band that ``part`` is; 0 if it is none."""
    across = shape[1 - axis] * _words(shape[2])
    extent, rest = divmod(len(part.words), across)
    return 0 if rest else extent


def _starts(extents: Sequence[int], size: int) -> list[int] | None:
    """Where each band begins; None if that is not known."""
    total = sum(extents)
    exact = total == size
    overlapping = len(extents) == 2 and size < total and max(extents) < size
    if min(extents) <= 0 or not (exact or overlapping):
        return None
    starts = [0, *accumulate(extents[:-1])]
    return [*starts[:-1], size - extents[-1]]


def _words(channels: int) -> int:
    return -(-channels // WORD_BYTES)
