"""Operators that sample images elsewhere than at their elements.

Images are (batch, channel, height, width). Places are computed in float32, as in the original
runtime.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.promotion import accumulating, floating
from darwinn_reference.executorch.values import refuse_more, zeros

Kernel = Callable[..., Any]
Sizes = tuple[int, ...]
Places = NDArray[np.int64]

# --- to other sizes -------------------------------------------------------------------------------


def _output_sizes(
    x: AnyArray, output: Sequence[int] | None, factors: Sequence[float] | None
) -> Sizes:
    """Sizes of the result, if there is memory for it: ExecutionError."""
    sizes = tuple(output or ()) or tuple(
        int(size * factor) for size, factor in zip(x.shape[-2:], factors or (), strict=True)
    )
    refuse_more(math.prod(sizes) * max(x[..., :1, :1].nbytes, 8), "a result")
    return sizes


def _ratio(size: int, output: int, factor: float | None) -> np.float32:
    """Distance of neighbours of the output in elements of the input."""
    return np.float32(1 / factor) if factor else np.float32(size) / np.float32(output)


def nearest_vector(
    x: AnyArray, output: Sequence[int] | None, factors: Sequence[float] | None
) -> AnyArray:
    """Nearest neighbours by sizes or by factors."""
    return nearest(x, _output_sizes(x, output, factors), *(factors or ()))


def nearest(
    x: AnyArray,
    output: Sequence[int],
    down: float | None = None,
    right: float | None = None,
) -> AnyArray:
    """Each element of the output is the element of the input before its place."""
    result = x
    for axis, count, factor in zip((-2, -1), output, (down, right), strict=True):
        size = x.shape[axis]
        places = np.arange(count, dtype=np.float32) * _ratio(size, count, factor)
        result = np.take(result, np.minimum(places.astype(np.int64), size - 1), axis)
    return result


def bilinear_vector(
    x: AnyArray,
    output: Sequence[int] | None,
    align_corners: bool,
    factors: Sequence[float] | None,
) -> AnyArray:
    """Linear interpolation by sizes or by factors."""
    return bilinear(x, _output_sizes(x, output, factors), align_corners, *(factors or ()))


def bilinear(
    x: AnyArray,
    output: Sequence[int],
    align_corners: bool,
    down: float | None = None,
    right: float | None = None,
) -> AnyArray:
    """Linear interpolation between the neighbours in both dimensions."""
    result = floating(x)
    for axis, count, factor in zip((-2, -1), output, (down, right), strict=True):
        size = x.shape[axis]
        targets = np.arange(count, dtype=np.float32)
        if align_corners:
            places = targets * np.float32((size - 1) / (count - 1) if count > 1 else 0)
        else:
            places = (targets + np.float32(0.5)) * _ratio(size, count, factor) - np.float32(0.5)
        places = np.maximum(places, np.float32(0))
        first = np.minimum(places.astype(np.int64), size - 1)
        shape = [1] * x.ndim
        shape[axis] = count
        share = (places - first).astype(np.float32).reshape(shape)
        second = np.minimum(first + 1, size - 1)
        lower, upper = np.take(result, first, axis), np.take(result, second, axis)
        result = lower * (1 - share) + upper * share
    return result


def antialiased(
    x: AnyArray,
    output: Sequence[int],
    align_corners: bool,
    down: float | None = None,
    right: float | None = None,
) -> AnyArray:
    """Mean of the elements around each place, their weights falling linearly with the distance.

    They fall to nothing at the neighbours of the place in the output, or in the image if these are
    nearer. A factor counts only beside another, as in the original runtime.
    """
    if x.ndim != 4 or x.dtype.kind != "f" or len(output) != 2 or min(output) < 1:
        raise ValueError(f"{list(output)} of a tensor of sizes {x.shape} and type {x.dtype}")
    factors = (None, None) if down is None or right is None else (down, right)
    result = accumulating(x)
    for axis, count, factor in zip((2, 3), output, factors, strict=True):
        size = x.shape[axis]
        scale = _distance(size, count, align_corners, factor)
        sizes = list(result.shape)
        sizes[axis] = count
        source, result = result, zeros(sizes, result.dtype)
        for elements, weights in _tent(size, count, scale):
            shape = [1] * x.ndim
            shape[axis] = count
            weight = weights.reshape(shape)
            # Without a weight there is no element, which may be infinite.
            product = np.take(source, elements, axis) * weight
            np.add(result, product, out=result, where=weight > 0)
    return result


def _distance(size: int, output: int, align_corners: bool, factor: float | None) -> np.float32:
    """Distance of neighbours of the output in elements of the image."""
    if align_corners:
        return np.float32((size - 1) / (output - 1) if output > 1 else 0)
    return np.float32(1 / factor if factor and factor > 0 else size / output)


def _tent(
    size: int, output: int, scale: np.float32
) -> Iterator[tuple[Places, NDArray[np.float32]]]:
    """Elements that the places of the output are made of, and their weights, one after another."""
    one, half = np.float32(1), np.float32(0.5)
    spread = max(scale, one)
    centres = scale * (np.arange(output, dtype=np.float32) + half)
    first = np.maximum((centres - spread + half).astype(np.int64), 0)
    last = np.minimum((centres + spread + half).astype(np.int64), size)
    # Places beside the image, which a factor can lead to, are made of its nearest element.
    first = np.where(first < last, first, np.clip(centres.astype(np.int64), 0, size - 1))
    count = np.maximum(last - first, 1)

    def shares() -> Iterator[NDArray[np.float32]]:
        for step in range(int(count.max(initial=0))):
            distances = np.float32(step) + first.astype(np.float32) - centres + half
            share = np.maximum(one - np.abs(distances * (one / spread)), np.float32(0))
            yield np.where(step < count, share, np.float32(0))

    totals = np.zeros(output, np.float32)
    for share in shares():
        totals += share
    for step, share in enumerate(shares()):
        equal = np.where(step < count, one / count.astype(np.float32), np.float32(0))
        np.divide(share, totals, out=equal, where=totals > 0)
        yield np.minimum(first + step, size - 1), equal


# --- to any places --------------------------------------------------------------------------------

_ZEROS, _BORDER, _REFLECTION = range(3)
"""What lies beside the image: zeros, its last elements, or the image mirrored."""
_BILINEAR, _NEAREST, _BICUBIC = range(3)
_SLOPE = -0.75
"""Of the cubic interpolation, at distance 1."""


class _Image:
    """Elements (batch, channel, height, width), and what lies beside them."""

    def __init__(self, elements: AnyArray, padding: int, align_corners: bool) -> None:
        self.elements = elements
        self.padding = padding
        self.align_corners = align_corners

    def places(self, coordinates: AnyArray, axis: int) -> AnyArray:
        """Places along an axis, in elements, of coordinates from -1 to 1."""
        size = self.elements.shape[axis]
        if self.align_corners:
            return np.asarray((coordinates + 1) / 2 * (size - 1))
        return np.asarray(((coordinates + 1) * size - 1) / 2)

    def within(self, places: AnyArray, axis: int) -> AnyArray:
        """Places brought into the image, unless zeros lie beside it."""
        if self.padding == _ZEROS:
            return places
        mirrored = self._mirrored(places, axis) if self.padding == _REFLECTION else places
        return self._held(mirrored, axis)

    def at(self, rows: AnyArray, columns: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Elements (batch, channel, ...) at whole places (batch, ...), and which are in the image.

        Those that are not are 0 if zeros lie beside the image, else the nearest.
        """
        height, width = self.elements.shape[2:]
        inside = np.ones(rows.shape, np.bool_)
        if self.padding == _ZEROS:
            inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        down, right = (
            self._held(np.where(inside, places, 0), axis).astype(np.int64)
            for axis, places in ((-2, rows), (-1, columns))
        )
        batch = np.arange(len(self.elements))[:, np.newaxis, np.newaxis]
        taken = np.moveaxis(self.elements[batch, :, down, right], -1, 1)
        return np.where(inside[:, np.newaxis], taken, taken.dtype.type(0)), inside

    def _held(self, places: AnyArray, axis: int) -> AnyArray:
        # NaN becomes the last element, as in the original runtime.
        last = places.dtype.type(self.elements.shape[axis] - 1)
        return np.asarray(np.fmin(last, np.maximum(places, 0)))

    def _mirrored(self, places: AnyArray, axis: int) -> AnyArray:
        """Places mirrored at the centres, or the edges, of the first and the last element."""
        size = self.elements.shape[axis]
        low, span = (0.0, size - 1) if self.align_corners else (-0.5, size)
        if span == 0:
            return np.zeros_like(places)
        distances = np.abs(places - places.dtype.type(low))
        rest = np.fmod(distances, places.dtype.type(span))
        is_even = np.floor(distances / places.dtype.type(span)) % 2 == 0
        return np.asarray(np.where(is_even, rest, span - rest) + places.dtype.type(low))


def _linear(share: AnyArray) -> list[tuple[int, AnyArray]]:
    """Distances of the neighbours of a place, and their weights."""
    return [(0, 1 - share), (1, share)]


def _cubic(share: AnyArray) -> list[tuple[int, AnyArray]]:
    """As ``_linear``, for the interpolation by cubic polynomials of four neighbours."""

    def near(t: AnyArray) -> AnyArray:
        return np.asarray(((_SLOPE + 2) * t - (_SLOPE + 3)) * t * t + 1)

    def far(t: AnyArray) -> AnyArray:
        return np.asarray(((_SLOPE * t - 5 * _SLOPE) * t + 8 * _SLOPE) * t - 4 * _SLOPE)

    return [(-1, far(share + 1)), (0, near(share)), (1, near(1 - share)), (2, far(2 - share))]


def grid_sample(
    x: AnyArray, grid: AnyArray, interpolation: int, padding: int, align_corners: bool
) -> AnyArray:
    """The image at places (batch, rows, columns, 2), given as (x, y) from -1 to 1.

    ``interpolation`` is 0 for bilinear, 1 for nearest (ties to even), 2 for bicubic; ``padding`` 0
    for zeros, 1 for the border, 2 for reflection.
    """
    if interpolation not in range(3) or padding not in range(3):
        raise ValueError(f"interpolation {interpolation} with padding {padding}")
    if x.ndim != 4 or grid.ndim != 4 or grid.shape[3] != 2 or len(x) != len(grid):
        raise ValueError(f"places of sizes {grid.shape} in a tensor of sizes {x.shape}")
    if 0 in x.shape[2:] or x.dtype.kind != "f":
        raise ValueError(f"an image of sizes {x.shape} and type {x.dtype}")
    result = zeros((*x.shape[:2], *grid.shape[1:3]), accumulating(x).dtype)
    image = _Image(accumulating(x), padding, bool(align_corners))
    coordinates = accumulating(grid)
    down, right = image.places(coordinates[..., 1], -2), image.places(coordinates[..., 0], -1)
    if interpolation != _BICUBIC:
        down, right = image.within(down, -2), image.within(right, -1)
    if interpolation == _NEAREST:
        return image.at(np.rint(down), np.rint(right))[0]
    weights = _linear if interpolation == _BILINEAR else _cubic
    top, left = np.floor(down), np.floor(right)
    for (below, height), (beside, width) in itertools.product(
        weights(down - top), weights(right - left)
    ):
        rows, columns = top + below, left + beside
        if interpolation == _BICUBIC:
            rows, columns = image.within(rows, -2), image.within(columns, -1)
        elements, inside = image.at(rows, columns)
        share = height * width
        if interpolation == _BILINEAR:
            # What lies beside the image has no part, not even where the weight is NaN.
            share = np.where(inside, share, share.dtype.type(0))
        result += elements * share[:, np.newaxis]
    return result


KERNELS: Mapping[str, Kernel] = {
    "aten::_upsample_bilinear2d_aa.out": antialiased,
    "aten::grid_sampler_2d.out": grid_sample,
    "aten::upsample_bilinear2d.vec_out": bilinear_vector,
    "aten::upsample_nearest2d.vec_out": nearest_vector,
}
