"""Convolutions and matrix products.

Quantised: products and sums are those of integers, of which float64 holds every one exactly; the
sum is scaled in float32. Floats are summed in another order than XNNPACK does; those of half
precision in float32, and what comes out is rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.executorch.xnnpack import schema
from darwinn_formats.executorch.xnnpack.schema import Datatype

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.values import refuse_more
from darwinn_reference.executorch.xnnpack.correlation import (
    Windows,
    correlate,
    correlate_halves,
    rows_times,
    times,
)
from darwinn_reference.executorch.xnnpack.operands import DTYPES, Operand, Target, padded_by


def convolution(node: schema.Convolution, operands: Sequence[Operand], target: Target) -> AnyArray:
    """A convolution of images; filters are outputs, height, width, inputs of a group."""
    image, weights, *rest = operands
    filters = _centred(_like(weights, image))
    if isinstance(node, schema.DepthwiseConv2d):
        # Outputs last, one input each.
        filters = filters.reshape(*filters.shape[1:], 1).transpose(2, 0, 1, 3)
    bias = rest[0] if rest else None
    if isinstance(node, schema.DepthwiseConv2d) and image.datatype is Datatype.FP16:
        start = np.zeros(1, np.float32) if bias is None else _like(bias, image).array
        halves = partial(correlate_halves, start)
        return target.clamped(_correlate(node, _centred(image), filters, halves))
    total = _correlate(node, _centred(image), filters)
    return _scaled(total, image, weights, bias, target)


def transposed_convolution(
    node: schema.ConvTranspose2d, operands: Sequence[Operand], target: Target
) -> AnyArray:
    """A transposed convolution of images."""
    image, weights, *rest = operands
    total = _spread(node, _centred(image), _centred(_like(weights, image)))
    return _scaled(total, image, weights, rest[0] if rest else None, target)


def fully_connected(
    node: schema.FullyConnected, operands: Sequence[Operand], target: Target
) -> AnyArray:
    """A product of rows with a matrix of weights: outputs by inputs, unless transposed."""
    rows, weights, *rest = operands
    bias = rest[0] if rest else None
    if weights.datatype is Datatype.QBINT4:
        return _grouped(rows, weights, bias, target)
    matrix = _centred(_like(weights, rows))
    if node.flags & schema.TRANSPOSE_WEIGHTS:
        matrix = matrix.T
    given = _centred(rows)
    if given.shape[-1] != matrix.shape[1]:
        raise ExecutionError(f"rows of {given.shape[-1]} elements, weights of {matrix.shape[1]}")
    refuse_more(given.size // given.shape[-1] * len(matrix) * given.itemsize, "a product")
    return _scaled(rows_times(given, matrix), rows, weights, bias, target)


def batch_product(
    node: schema.BatchMatrixMultiply, operands: Sequence[Operand], target: Target
) -> AnyArray:
    """Products of matrices, batches repeated to the greater number."""
    left, right = operands
    second = _centred(right)
    if node.flags & schema.TRANSPOSE_WEIGHTS:
        second = second.swapaxes(-1, -2)
    first = _centred(left)
    batch = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    size = math.prod((*batch, first.shape[-2], second.shape[-1]))
    refuse_more(size * first.itemsize, "a product")
    return _scaled(first @ second, left, right, None, target)


def _centred(operand: Operand) -> AnyArray:
    """Floats, or stored numbers without their zero point in float64."""
    if operand.is_float:
        return operand.real()
    centred: AnyArray = operand.array.astype(np.float64) - operand.zero_point
    return centred


def _like(constant: Operand, given: Operand) -> Operand:
    """A constant of floats as XNNPACK stores it for the numbers that it meets: half precision."""
    if given.datatype is not Datatype.FP16 or constant.datatype is not Datatype.FP32:
        return constant
    with np.errstate(over="ignore"):
        halves = constant.array.astype(np.float16)
    return replace(constant, datatype=Datatype.FP16, array=halves)


def _scaled(
    total: AnyArray, left: Operand, right: Operand, bias: Operand | None, target: Target
) -> AnyArray:
    """Sums of products as what the node writes, by the types of its operands."""
    if not target.is_float:
        if bias is not None:
            total = total + bias.array
        scale = left.scale * right.scale / target.scale
        return target.stored(total.astype(np.float32) * scale)
    if left.is_float and right.is_float:
        added = None if bias is None else _like(bias, left).array
        return _finished(total, added, target)
    # The scale of the row, then that of the channel together with the bias: one rounding each.
    rows = total.astype(np.float32) * np.asarray(left.scale, np.float32)
    exact = rows.astype(np.float64) * np.asarray(right.scale, np.float64)
    if bias is not None:
        exact = exact + bias.array
    return target.clamped(exact.astype(np.float32))


def _finished(total: AnyArray, bias: AnyArray | None, target: Target) -> AnyArray:
    """Sums, which are written to, with a bias and within the limits."""
    if bias is not None:
        total += bias
    target.clamp(total)
    return total.astype(DTYPES[target.datatype], copy=False)


def _grouped(rows: Operand, weights: Operand, bias: Operand | None, target: Target) -> AnyArray:
    """Weights with a scale for each group of inputs: the sums of the groups are scaled."""
    outputs, groups = weights.scale.shape
    matrix = _centred(weights).reshape(outputs, groups, -1)
    given = _centred(rows).reshape(*rows.array.shape[:-1], groups, -1)
    refuse_more(given.size // given.shape[-1] * outputs * given.itemsize, "a product")
    parts = np.einsum("...gk,ogk->...og", given, matrix)
    total = (parts * weights.scale).sum(-1) * rows.scale
    if bias is not None:
        total = total + bias.array
    return target.clamped(total.astype(np.float32))


def _taps(node: schema.Convolution) -> Iterator[tuple[int, int]]:
    for row in range(node.kernel_height):
        for column in range(node.kernel_width):
            yield row, column


def _spans(node: schema.Convolution) -> tuple[int, int]:
    return (
        (node.kernel_height - 1) * node.dilation_height + 1,
        (node.kernel_width - 1) * node.dilation_width + 1,
    )


def _margins(node: Any, sizes: Sequence[int], spans: Sequence[int]) -> list[tuple[int, int]]:
    """Rows and columns that are added before and behind."""
    if not node.flags & schema.SAME_PADDING:
        return [
            (node.padding_top, node.padding_bottom),
            (node.padding_left, node.padding_right),
        ]
    margins = []
    strides = (node.subsampling_height, node.subsampling_width)
    for size, span, stride in zip(sizes, spans, strides, strict=True):
        needed = max((-(-size // stride) - 1) * stride + span - size, 0)
        margins.append((needed // 2, needed - needed // 2))
    return margins


def _check_channels(node: schema.Convolution, image: AnyArray, filters: AnyArray) -> None:
    inputs = node.groups * node.group_input_channels
    outputs = node.groups * node.group_output_channels
    wanted = (outputs, node.kernel_height, node.kernel_width, node.group_input_channels)
    if image.ndim != 4 or image.shape[-1] != inputs or filters.shape != wanted:
        raise ExecutionError(
            f"an image of sizes {image.shape} and filters of {filters.shape}, where the node has "
            f"{inputs} channels and filters of {wanted}"
        )
    if not (node.subsampling_height and node.subsampling_width and all(_spans(node))):
        raise ExecutionError("a convolution without step or without filter")


def _correlate(
    node: schema.Convolution,
    image: AnyArray,
    filters: AnyArray,
    into: Callable[[AnyArray, AnyArray, int, Windows], AnyArray] = correlate,
) -> AnyArray:
    _check_channels(node, image, filters)
    spans = _spans(node)
    margins = _margins(node, image.shape[1:3], spans)
    padded = padded_by(image, margins, 0)
    steps = (node.subsampling_height, node.subsampling_width)
    sizes = [
        (size - span) // step + 1
        for size, span, step in zip(padded.shape[1:3], spans, steps, strict=True)
    ]
    if min(sizes) < 1:
        raise ExecutionError(f"an image of sizes {image.shape} is smaller than the filter")
    shape = (len(image), *sizes, filters.shape[0])
    refuse_more(math.prod(shape) * image.itemsize, "a convolution")
    kernel = (node.kernel_height, node.kernel_width)
    dilation = (node.dilation_height, node.dilation_width)
    windows = Windows((sizes[0], sizes[1]), kernel, steps, dilation)
    return into(padded, filters, node.groups, windows)


def _spread(node: schema.ConvTranspose2d, image: AnyArray, filters: AnyArray) -> AnyArray:
    _check_channels(node, image, filters)
    spans = _spans(node)
    steps = (node.subsampling_height, node.subsampling_width)
    extra = (node.adjustment_height, node.adjustment_width)
    full = [
        (size - 1) * step + span + more
        for size, step, span, more in zip(image.shape[1:3], steps, spans, extra, strict=True)
    ]
    shape = (len(image), *full, filters.shape[0])
    refuse_more(math.prod(shape) * image.itemsize, "a convolution")
    total = np.zeros(shape, image.dtype)
    height, width = image.shape[1:3]
    for row, column in _taps(node):
        top, left = row * node.dilation_height, column * node.dilation_width
        total[
            :,
            top : top + (height - 1) * steps[0] + 1 : steps[0],
            left : left + (width - 1) * steps[1] + 1 : steps[1],
        ] += times(node.groups, image, filters[:, row, column])
    bottom, right = full[0] - node.padding_bottom, full[1] - node.padding_right
    if bottom <= node.padding_top or right <= node.padding_left:
        raise ExecutionError("a transposed convolution whose margins leave nothing")
    return total[:, node.padding_top : bottom, node.padding_left : right]
