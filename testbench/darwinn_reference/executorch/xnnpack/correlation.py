"""Sums of products over the windows of images, in blocks of rows that stay in a cache.

Images are batch, height, width, channels; filters are outputs, height, width, inputs of a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import as_strided

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.halves import round_halves
from darwinn_reference.executorch.values import refuse_more

_BLOCK = 1 << 17
"""Elements of what is gathered for a block of rows, about: as much as the second cache holds."""
_HALVES = 1 << 15
"""Results of half precision that are summed at once, about: all that is read and written beside
them stays in the cache, too."""
_WIDE = 96
"""Channels from which on all taps of a channel are summed at once."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Where the windows of a convolution are in padded images.

    Attributes:
        sizes: rows and columns of the results.
        kernel: rows and columns of the filter.
        steps: rows and columns between two windows.
        dilation: rows and columns between two taps.
    """

    sizes: tuple[int, int]
    kernel: tuple[int, int]
    steps: tuple[int, int]
    dilation: tuple[int, int]

    def patches(self, image: AnyArray, first: int, last: int) -> Iterator[AnyArray]:
        """For each tap what it sees of one image, in the rows ``first`` to ``last`` of results."""
        (down, right), width = self.steps, self.sizes[1]
        for row in range(self.kernel[0]):
            top = row * self.dilation[0] + first * down
            rows = slice(top, top + (last - first - 1) * down + 1, down)
            for column in range(self.kernel[1]):
                left = column * self.dilation[1]
                yield image[rows, left : left + (width - 1) * right + 1 : right]

    def seen(self, image: AnyArray) -> AnyArray:
        """A view of one image: rows, columns, rows and columns of taps, channels."""
        down, right, channel = image.strides
        return as_strided(
            image,
            (*self.sizes, *self.kernel, image.shape[-1]),
            (
                down * self.steps[0],
                right * self.steps[1],
                down * self.dilation[0],
                right * self.dilation[1],
                channel,
            ),
            writeable=False,
        )

    @property
    def sees_pixels(self) -> bool:
        """Whether each window is one pixel, and all are seen in their order."""
        return self.kernel == (1, 1) and self.steps == (1, 1)


def correlate(images: AnyArray, filters: AnyArray, groups: int, windows: Windows) -> AnyArray:
    """Results of a convolution of padded images, as batch, rows, columns, outputs."""
    if groups == 1 and windows.sees_pixels:
        return rows_times(images, filters.reshape(len(filters), -1))
    height, width = windows.sizes
    total = np.empty((len(images), height, width, len(filters)), images.dtype)
    if _WIDE <= len(filters) == groups:
        weights = filters[..., 0].transpose(1, 2, 0)
        for image, result in zip(images, total, strict=True):
            np.einsum("hwrkc,rkc->hwc", windows.seen(image), weights, out=result)
        return total
    taps = windows.kernel[0] * windows.kernel[1]
    gathered = taps * filters.shape[-1] if groups == 1 else len(filters)
    step = max(1, _BLOCK // max(1, width * gathered))
    refuse_more(min(step, height) * width * gathered * total.itemsize, "a convolution")
    for image, result in zip(images, total, strict=True):
        for first in range(0, height, step):
            last = min(first + step, height)
            patches = windows.patches(image, first, last)
            if groups == 1:
                _dense(patches, filters, result[first:last])
            else:
                _grouped(patches, filters, groups, result[first:last])
    return total


def correlate_halves(
    start: AnyArray, images: AnyArray, filters: AnyArray, groups: int, windows: Windows
) -> AnyArray:
    """A depthwise convolution as XNNPACK sums half precision.

    Sums begin with ``start``, the bias, and go down the columns of the filter; each is rounded to
    half precision. Images and filters are float32 that hold such numbers.
    """
    outputs, height, width, _ = filters.shape
    rows, columns = windows.sizes
    total = np.empty((len(images), rows, columns, outputs), np.float32)
    step = max(1, _HALVES // max(1, columns * outputs))
    part, spare = (np.empty((min(step, rows), columns, outputs), np.float32) for _ in range(2))
    for image, first in product(range(len(images)), range(0, rows, step)):
        last = min(first + step, rows)
        result, made = total[image, first:last], part[: last - first]
        result[:] = start
        patches = list(windows.patches(images[image], first, last))
        for column, row in product(range(width), range(height)):
            patch = patches[row * width + column]
            pixels = patch if outputs == groups else np.repeat(patch, outputs // groups, -1)
            np.multiply(pixels, filters[:, row, column, 0], out=made)
            np.add(result, made, out=result)
            round_halves(result, spare[: last - first])
    return total


def rows_times(rows: AnyArray, matrix: AnyArray) -> AnyArray:
    """Rows, in whatever dimensions, times a matrix of outputs by inputs: one product."""
    flat = rows.reshape(-1, rows.shape[-1]) @ matrix.T
    return flat.reshape(*rows.shape[:-1], len(matrix))


def _dense(patches: Iterator[AnyArray], filters: AnyArray, result: AnyArray) -> None:
    """All taps of a block side by side, times all filters."""
    outputs, *kernel, inputs = filters.shape
    taps = kernel[0] * kernel[1]
    gathered = np.empty((*result.shape[:2], taps, inputs), result.dtype)
    for tap, patch in enumerate(patches):
        gathered[:, :, tap] = patch
    rows = gathered.reshape(-1, taps * inputs)
    np.matmul(rows, filters.reshape(outputs, -1).T, out=result.reshape(-1, outputs))


def _grouped(patches: Iterator[AnyArray], filters: AnyArray, groups: int, result: AnyArray) -> None:
    """A tap after the other, each group with its own filters."""
    outputs, _, width, inputs = filters.shape
    part = np.empty_like(result)
    for tap, patch in enumerate(patches):
        matrix = filters[:, tap // width, tap % width]
        written = part if tap else result
        if inputs == 1:
            pixels = patch if outputs == groups else np.repeat(patch, outputs // groups, -1)
            # A whole row of weights: NumPy then multiplies rows, and not pixel by pixel.
            row = np.ascontiguousarray(np.broadcast_to(matrix[:, 0], result.shape[1:]))
            np.multiply(pixels, row, out=written)
        else:
            written[:] = _by_group(groups, patch, matrix)
        if tap:
            result += part


def _by_group(groups: int, pixels: AnyArray, matrix: AnyArray) -> AnyArray:
    """Pixels times a matrix of outputs by inputs of a group."""
    outputs, inputs = matrix.shape[0] // groups, matrix.shape[1]
    parts = pixels.reshape(*pixels.shape[:-1], groups, 1, inputs)
    product = parts @ matrix.reshape(groups, outputs, inputs).swapaxes(-1, -2)
    return product.reshape(*pixels.shape[:-1], groups * outputs)


def times(groups: int, pixels: AnyArray, matrix: AnyArray) -> AnyArray:
    """Pixels times a matrix of outputs by inputs of a group, for one tap."""
    if groups == 1:
        return rows_times(pixels, matrix)
    outputs, inputs = matrix.shape[0] // groups, matrix.shape[1]
    if inputs == 1:
        return np.repeat(pixels, outputs, -1) * matrix[:, 0]
    return _by_group(groups, pixels, matrix)
