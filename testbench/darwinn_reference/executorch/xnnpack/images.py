"""Nodes that look at images by window or as a whole: pooling, averages, resizing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.executorch.xnnpack import schema
from numpy.lib.stride_tricks import sliding_window_view

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.values import refuse_more
from darwinn_reference.executorch.xnnpack.operands import (
    LIMITS,
    Operand,
    Target,
    padded_by,
)

_WEIGHT_BITS = 11
"""Bits of the weights by which quantised pixels are blended."""


def average_pooling(
    node: schema.AvgPooling2d, operands: Sequence[Operand], target: Target
) -> AnyArray:
    """Averages of what a window has of the image: the margin does not count."""
    image = operands[0].real()
    sums = _windows(node, image, 0).sum((-2, -1), dtype=np.float32)
    ones = np.ones((1, *image.shape[1:3], 1), np.float32)
    count = _windows(node, ones, 0).sum((-2, -1))
    return target.of_real(sums / count)


def max_pooling(node: schema.MaxPooling2d, operands: Sequence[Operand], target: Target) -> AnyArray:
    """Maxima in windows, of the stored numbers."""
    (image,) = operands
    least = -np.inf if image.is_float else LIMITS[image.datatype][0]
    greatest: AnyArray = _windows(node, image.array, least).max((-2, -1))
    if image.is_float:
        return target.clamped(greatest)
    low, high = target.bounds
    return np.clip(greatest, low, high).astype(image.array.dtype)


def argmax_pooling(
    node: schema.ArgMaxPooling2d, operands: Sequence[Operand], target: Target
) -> tuple[AnyArray, AnyArray]:
    """Maxima in windows that do not overlap, and the place of the first in its window."""
    windows = _windows(node, operands[0].array, -np.inf)
    # Places count down the columns of a window.
    flat = windows.swapaxes(-1, -2).reshape(*windows.shape[:-2], -1)
    return flat.max(-1), flat.argmax(-1).astype(np.int32)


def global_average(
    node: schema.GlobalAvgPooling2d, operands: Sequence[Operand], target: Target
) -> AnyArray:
    """Averages of whole images; of quantised ones the sum of integers is scaled."""
    (image,) = operands
    count = int(np.prod(image.array.shape[1:3]))
    if image.is_float:
        mean = target.clamped(image.array.mean((1, 2), np.float32, keepdims=True))
    else:
        total = image.array.sum((1, 2), np.int64, keepdims=True) - count * image.zero_point
        scale = image.scale / target.scale / np.float32(count)
        mean = target.whole(total.astype(np.float32) * scale)
    return mean if node.flags & schema.KEEP_DIMS else mean[:, 0, 0]


def resize(
    node: schema.StaticResizeBilinear2D, operands: Sequence[Operand], target: Target
) -> AnyArray:
    """Images of another size, each pixel from four; of stored numbers with weights of 11 bits."""
    image = operands[0].real() if operands[0].is_float else operands[0].array
    if image.ndim != 4 or 0 in image.shape:
        raise ExecutionError(f"an image of sizes {image.shape}")
    batch, height, _, channels = image.shape
    across = max(node.new_height, height) * node.new_width
    # Stored numbers are blended as integers of 8 bytes.
    refuse_more(batch * across * channels * 8, "an image")
    rows = _samples(node, image.shape[1], node.new_height)
    columns = _samples(node, image.shape[2], node.new_width)
    if operands[0].is_float:
        return target.of_real(_blend(_blend(image, 2, *columns), 1, *rows))
    first = _blend(image.astype(np.int64), 2, *columns[:2], _whole(columns[2]), _WEIGHT_BITS)
    both = _blend(first, 1, *rows[:2], _whole(rows[2]), _WEIGHT_BITS)
    half = 1 << (2 * _WEIGHT_BITS - 1)
    return ((both + half) >> (2 * _WEIGHT_BITS)).astype(image.dtype)


def _windows(node: Any, image: AnyArray, margin: float) -> AnyArray:
    """Windows of images: batch, rows, columns, channels, then rows and columns of the window."""
    if image.ndim != 4:
        raise ExecutionError(f"windows of a tensor of sizes {image.shape}")
    height, width = node.pooling_height, node.pooling_width
    steps = (
        (height, width)
        if isinstance(node, schema.ArgMaxPooling2d)
        else (node.stride_height, node.stride_width)
    )
    dilated = isinstance(node, schema.MaxPooling2d)
    gaps = (node.dilation_height, node.dilation_width) if dilated else (1, 1)
    margins = (node.padding_top, node.padding_bottom), (node.padding_left, node.padding_right)
    padded = padded_by(image, margins, margin)
    spans = [(size - 1) * gap + 1 for size, gap in zip((height, width), gaps, strict=True)]
    if min(*steps, *gaps, height, width) < 1 or any(
        span > size for span, size in zip(spans, padded.shape[1:3], strict=True)
    ):
        raise ExecutionError(f"windows of {height} by {width} in images of sizes {image.shape}")
    found = sliding_window_view(padded, spans, (1, 2))
    kept: AnyArray = found[:, :: steps[0], :: steps[1], :, :: gaps[0], :: gaps[1]]
    return kept


def _samples(
    node: schema.StaticResizeBilinear2D, size: int, new: int
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Pixel before, pixel behind and weight of the one behind, of each new pixel."""
    places = np.arange(new, dtype=np.float32)
    if node.flags & schema.ALIGN_CORNERS and new > 1:
        places = places * np.float32((size - 1) / (new - 1))
    elif node.flags & schema.LEGACY_RESIZE:
        places = places * np.float32(size / new)
    else:
        places = (places + np.float32(0.5)) * np.float32(size / new) - np.float32(0.5)
    places = np.clip(places, 0, size - 1)
    first = np.floor(places).astype(np.int64)
    return first, np.minimum(first + 1, size - 1), places - first.astype(np.float32)


def _whole(weight: AnyArray) -> AnyArray:
    return np.rint(np.ldexp(weight, _WEIGHT_BITS)).astype(np.int64)


def _blend(
    image: AnyArray, axis: int, first: AnyArray, second: AnyArray, weight: AnyArray, bits: int = 0
) -> AnyArray:
    """Two pixels of a dimension by the weight of the second, whose unit is ``2**-bits``."""
    before, behind = image.take(first, axis), image.take(second, axis)
    shape = [1] * image.ndim
    shape[axis] = -1
    blended: AnyArray = before * (1 << bits) + (behind - before) * weight.reshape(shape)
    return blended
