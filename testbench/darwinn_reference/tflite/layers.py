"""Layers with weights, and pools, in the chip's arithmetic.

Sums are BLAS products in the float type that :func:`summing_dtype` proves exact for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.call import (
    Call,
    Operand,
    require_image,
    require_same_quantisation,
    usable,
)
from darwinn_reference.tflite.factors import (
    Factors,
    conversion_factor,
    staged_factors,
)
from darwinn_reference.tflite.graph import MAXIMUM_ELEMENTS
from darwinn_reference.tflite.output_stage import (
    INT16_MAXIMUM,
    NotComputableError,
)
from darwinn_reference.tflite.reductions import axes_of
from darwinn_reference.tflite.roundings import MEAN, POOL, Quantities

_BYTE_SPAN = 255
"""Greatest magnitude of a centred byte: value - zero_point of an 8-bit tensor."""
_AXES_IN_STAGES = 2
"""Axes of a mean that programs add up one after the other."""
_BLOCK_ELEMENTS = 2**19
"""Elements of a block of convolution patches that are gathered at a time."""


# --- convolutions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axis:
    """A spatial axis of a sliding window: kernel size, stride, dilation, padding, output size."""

    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    outputs: int

    @property
    def reach(self) -> int:
        """Elements from the first to the last that a window meets."""
        return (self.kernel - 1) * self.dilation + 1

    def used(self, size: int) -> NDArray[np.bool_]:
        """For each place of the kernel, whether it meets the input at any output."""
        places = np.arange(self.kernel)[:, None] * self.dilation - self.before
        places = places + np.arange(self.outputs) * self.stride
        inside: NDArray[np.bool_] = (places >= 0) & (places < size)
        used: NDArray[np.bool_] = np.any(inside, axis=1)
        return used


def _axis(size: int, kernel: int, stride: int, dilation: int, padding: str) -> Axis:
    if min(kernel, stride, dilation) < 1:
        raise NotComputableError("kernel, stride and dilation are at least 1")
    reach = (kernel - 1) * dilation + 1
    if padding == "VALID":
        if reach > size:
            raise NotComputableError(f"a kernel that reaches over {reach} of {size} elements")
        return Axis(kernel, stride, dilation, 0, 0, (size - reach) // stride + 1)
    if padding != "SAME":
        raise NotComputableError(f"padding {padding}")
    outputs = -(-size // stride)
    total = max((outputs - 1) * stride + reach - size, 0)
    return Axis(kernel, stride, dilation, total // 2, total - total // 2, outputs)


def window_axes(
    options: Mapping[str, Any], size: tuple[int, ...], kernel: tuple[int, ...]
) -> tuple[Axis, Axis]:
    """Rows and columns of a window over an image of ``size``, by an operator's options.

    Raises:
        NotComputableError: sizes that make no window.
    """
    height, width = (
        _axis(
            size[k],
            kernel[k],
            int(options.get(f"stride_{name}", 1)),
            int(options.get(f"dilation_{name}_factor", 1)),
            str(options.get("padding", "SAME")),
        )
        for k, name in enumerate("hw")
    )
    return height, width


def _padded(x: AnyArray, height: Axis, width: Axis, value: int = 0) -> AnyArray:
    amounts = ((0, 0), (height.before, height.after), (width.before, width.after), (0, 0))
    if not any(map(any, amounts)):
        return x
    extents = (extent + sum(both) for extent, both in zip(x.shape, amounts, strict=True))
    if math.prod(extents) > MAXIMUM_ELEMENTS:
        raise NotComputableError(f"padding by {amounts} makes more than {MAXIMUM_ELEMENTS}")
    return np.pad(x, amounts, constant_values=value)


def _windows(x: AnyArray, height: Axis, width: Axis) -> AnyArray:
    """View of shape (n, output rows, output columns, channels, kernel rows, kernel columns)."""
    view = sliding_window_view(x, (height.reach, width.reach), axis=(1, 2))
    view = view[:, :: height.stride, :: width.stride, :, :: height.dilation, :: width.dilation]
    windows: AnyArray = view[:, : height.outputs, : width.outputs]
    return windows


def _weights(call: Call, position: int, channel_axis: int) -> NDArray[np.float64]:
    """Centred weights of one scale and zero point, or of one each for a channel."""
    operand = call.operand(position)
    tensor = operand.tensor
    if tensor.dtype not in (np.uint8, np.int8) or not usable(tensor.scale):
        raise NotComputableError(f"weights {tensor.name} are not quantised to 8 bits")
    zero_point = tensor.zero_point
    if len(tensor.scale) > 1:
        if tensor.channel_axis != channel_axis or len(tensor.scale) != tensor.shape[channel_axis]:
            raise NotComputableError(f"scales of {tensor.name} are not one for an output channel")
        shape = [1] * operand.value.ndim
        shape[channel_axis] = -1 if len(zero_point) > 1 else 1
        zero_point = zero_point.reshape(shape)
    return operand.value.astype(np.float64) - zero_point.astype(np.float64)


def _bias(call: Call, position: int, channels: int) -> NDArray[np.float64]:
    operand = call.optional(position)
    if operand is None:
        return np.zeros(channels)
    if operand.value.dtype != np.int32 or operand.value.size != channels:
        raise NotComputableError(f"bias {operand.tensor.name} is not one int32 for a channel")
    return operand.value.reshape(-1).astype(np.float64)


def _weighted(
    call: Call,
    total: Callable[[type[Any]], AnyArray],
    magnitudes: AnyArray,
    bias: AnyArray,
    source: Operand | None = None,
) -> AnyArray:
    """Sum, bias and output stage of a layer whose weights' magnitudes add up to ``magnitudes``.

    ``total`` computes the sums of products in the float type that it is given; by
    :func:`summing_dtype` every partial sum, the bias included, is then an exact integer.
    ``source`` is the operand that is multiplied, if not the first.
    """
    products = _BYTE_SPAN * magnitudes
    bound = float((products + np.abs(bias)).max(initial=0))
    dtype = call.summing_dtype(bound)
    scale = call.operand(1).tensor.scale
    factor = conversion_factor((source or call.operand(0)).scale, call.output, scale)
    sums, wraps = call.accumulated(total(dtype), factor, float(products.max(initial=0)))
    sums += call.fixed(bias).astype(dtype)
    sums, saturates = call.biased(sums, factor, bound)
    if wraps:
        call.assume("a sum of products beyond 32 bits wraps")
    if saturates:
        call.assume("a sum with its bias beyond 32 bits saturates")
    return call.finish(sums, factor)


def conv_2d(call: Call) -> AnyArray:
    """CONV_2D: input (n, h, w, c), weights (out, kernel h, kernel w, c), bias int32 (out)."""
    image = call.operand(0)
    require_image(image)
    weights = _weights(call, 1, channel_axis=0)
    channels, kernel_height, kernel_width, depth = weights.shape
    groups = _groups(call, image.value.shape[3], depth, channels)
    height, width = window_axes(
        call.operator.options, image.value.shape[1:3], (kernel_height, kernel_width)
    )
    shape = (len(image.value), height.outputs, width.outputs, channels)
    call.expect(shape, math.prod(shape) * math.prod(weights.shape[1:]))
    rows = np.abs(weights).sum(axis=(2, 3))
    # A row of the kernel is summed on its own, where it can be in the faster type.
    row_dtype = call.summing_dtype(float(_BYTE_SPAN * rows.max(initial=0)))
    taps = weights.transpose(1, 2, 3, 0).reshape(kernel_height, -1, channels).astype(row_dtype)

    def total(dtype: type[Any]) -> AnyArray:
        padded = _padded(image.centred(row_dtype), height, width)
        parts = [
            _convolved(part, columns, height, width, dtype)
            for part, columns in zip(
                np.split(padded, groups, axis=3), np.split(taps, groups, axis=2), strict=True
            )
        ]
        return parts[0] if groups == 1 else np.concatenate(parts, axis=3)

    return _weighted(call, total, rows.sum(axis=1), _bias(call, 2, channels))


def _groups(call: Call, inputs: int, depth: int, outputs: int) -> int:
    """Groups of a convolution of ``inputs`` channels whose weights take ``depth`` of them."""
    if not depth or inputs % depth or outputs % (inputs // depth):
        raise NotComputableError(f"{outputs} outputs, each of {depth} of {inputs} channels")
    if inputs != depth:
        call.assume("groups are layers of their own")
    return inputs // depth


def _convolved(
    padded: AnyArray, taps: AnyArray, height: Axis, width: Axis, dtype: type[Any]
) -> AnyArray:
    """Sums of a padded image (n, h, w, c) with weights (kernel h, kernel w * c, out) in ``dtype``.

    Patches of a row of the kernel are gathered; once for all of its rows, if they meet the same.
    """
    if height.kernel == width.kernel == height.stride == width.stride == 1:
        product: AnyArray = (padded @ taps[0]).astype(dtype, copy=False)
        return product
    row = replace(height, kernel=1, stride=1, dilation=1, outputs=padded.shape[1])
    patches = _windows(padded, row, width)[..., 0, :].swapaxes(3, 4)
    sums = np.zeros((len(padded), height.outputs, width.outputs, taps.shape[2]), dtype)
    shared = height.stride == height.dilation == 1
    step = _block_rows(patches, height)
    for first in range(0, height.outputs, step):
        block = sums[:, first : first + step]
        rows = patches[:, first * height.stride :]
        if shared:
            rows = rows[:, : block.shape[1] + height.kernel - 1]
            rows = rows.reshape(*rows.shape[:3], -1)
        for place, weights in enumerate(taps):
            lines = rows[:, place * height.dilation :: height.stride][:, : block.shape[1]]
            block += (lines.reshape(-1, len(weights)) @ weights).reshape(block.shape)
    return sums


def _block_rows(patches: AnyArray, height: Axis) -> int:
    """Output rows whose gathered patches stay small."""
    of_a_row = max(patches[:, :1].size, 1)
    return max(1, _BLOCK_ELEMENTS // of_a_row - height.kernel + 1)


def transpose_conv(call: Call) -> AnyArray:
    """TRANSPOSE_CONV: inputs are the output's shape, weights (out, h, w, c), the image, the bias.

    Each pixel adds its product with the kernel to the pixels of the output that it meets.
    """
    image = call.operand(2)
    require_image(image)
    weights = _weights(call, 1, channel_axis=0)
    channels, *kernel, depth = weights.shape
    n, rows, columns, inputs = image.value.shape
    if depth != inputs or len(call.output.shape) != 4:
        raise NotComputableError(f"weights of {depth} channels for {inputs}")
    strides = [int(call.option(f"stride_{name}", 1)) for name in "hw"]
    sizes = call.output.shape[1:3]
    call.expect((n, *sizes, channels), n * rows * columns * weights.size)
    spans = [
        (count - 1) * step + size
        for count, step, size in zip((rows, columns), strides, kernel, strict=True)
    ]
    if call.option("padding", "SAME") == "VALID":
        before = [0, 0]
    else:
        before = [max(span - size, 0) // 2 for span, size in zip(spans, sizes, strict=True)]
    # Room for what an output beyond the last kernel leaves empty.
    room = [max(span, size + skip) for span, size, skip in zip(spans, sizes, before, strict=True)]

    def total(dtype: type[Any]) -> AnyArray:
        pixels = image.centred(dtype)
        sums = np.zeros((n, *room, channels), dtype)
        for row, column in np.ndindex(*kernel):
            part = pixels @ weights[:, row, column].T.astype(dtype)
            sums[
                :,
                row : row + rows * strides[0] : strides[0],
                column : column + columns * strides[1] : strides[1],
            ][:, :rows, :columns] += part
        top, left = before
        return np.ascontiguousarray(sums[:, top : top + sizes[0], left : left + sizes[1]])

    matrix = weights.reshape(channels, -1)
    return _weighted(call, total, np.abs(matrix).sum(axis=1), _bias(call, 3, channels), image)


def depthwise_conv_2d(call: Call) -> AnyArray:
    """DEPTHWISE_CONV_2D: weights (1, kernel h, kernel w, out), out = channels * multiplier."""
    image = call.operand(0)
    require_image(image)
    weights = _weights(call, 1, channel_axis=3)
    _, kernel_height, kernel_width, channels = weights.shape
    depth = image.value.shape[3]
    if depth == 0 or channels % depth:
        raise NotComputableError(f"{channels} output channels of {depth} input channels")
    height, width = window_axes(
        call.operator.options, image.value.shape[1:3], (kernel_height, kernel_width)
    )
    shape = (len(image.value), height.outputs, width.outputs, channels)
    call.expect(shape, math.prod(shape) * kernel_height * kernel_width)

    def total(dtype: type[Any]) -> AnyArray:
        padded = _padded(image.centred(dtype), height, width)
        if channels != depth:
            padded = np.repeat(padded, channels // depth, axis=3)
        windows = _windows(padded, height, width)
        taps = weights[0].astype(dtype)
        sums = np.zeros(windows.shape[:4], dtype)
        product = np.empty_like(sums)
        for row in range(kernel_height):
            for column in range(kernel_width):
                np.multiply(windows[..., row, column], taps[row, column], out=product)
                sums += product
        return sums

    bias = _bias(call, 2, channels)
    return _weighted(call, total, np.abs(weights[0]).sum(axis=(0, 1)), bias)


def fully_connected(call: Call) -> AnyArray:
    """FULLY_CONNECTED: weights (out, in), the input flattened to rows of ``in``."""
    if call.option("weights_format", "DEFAULT") != "DEFAULT":
        raise NotComputableError(f"weights format {call.option('weights_format', '')}")
    weights = _weights(call, 1, channel_axis=0)
    channels, depth = weights.shape
    vector = call.operand(0)

    def total(dtype: type[Any]) -> AnyArray:
        rows = vector.centred(dtype).reshape(-1, depth)
        product: AnyArray = rows @ weights.T.astype(dtype)
        return product

    bias = _bias(call, 2, channels)
    sums = _weighted(call, total, np.abs(weights).sum(axis=1), bias)
    return sums.reshape(call.output.shape)


# --- pooling ------------------------------------------------------------------------------------


def _pool_axes(call: Call) -> tuple[Axis, Axis]:
    image = call.operand(0)
    require_image(image)
    require_same_quantisation(image.tensor, call.output)
    kernel = (int(call.option("filter_height", 1)), int(call.option("filter_width", 1)))
    height, width = window_axes(call.operator.options, image.value.shape[1:3], kernel)
    shape = (image.value.shape[0], height.outputs, width.outputs, image.value.shape[3])
    call.expect(shape, math.prod(shape) * math.prod(kernel))
    return height, width


def average_pool_2d(call: Call) -> AnyArray:
    """AVERAGE_POOL_2D: the sum of the centred bytes as of a layer whose weights are 1 / n.

    A window over the border has fewer elements within the image, so that weights differ. They are
    then integers, in steps of one over the least common multiple of all n.
    """
    height, width = _pool_axes(call)
    image = call.operand(0)
    padded = _padded(image.centred(np.int32), height, width)
    total = _windows(padded, height, width).sum(axis=(-2, -1), dtype=np.int64)
    counts = np.full((1, 1), height.kernel * width.kernel)
    if padded.shape != image.value.shape:
        inside = _padded(np.ones((1, *image.value.shape[1:3], 1), np.int32), height, width)
        counts = _windows(inside, height, width).sum(axis=(-2, -1))
    common = math.lcm(*np.unique(counts).tolist())
    shares = common // counts
    if shares.max() > _BYTE_SPAN:
        call.assume("a window over the border is divided by its elements within the image")
        factor = np.float32(1) / counts.astype(np.float32)
        return _averaged(call, total, conversion_factor(image.scale, call.output, factor))
    staged = _staged_factor(call, (height.kernel, width.kernel)) if counts.size == 1 else None
    if staged is not None:
        return _averaged(call, total * shares, staged)
    quantities = Quantities(image.scale, call.output, extents=(common,))
    return _averaged(call, total * shares, call.rounded(POOL, quantities))


def _averaged(call: Call, total: AnyArray, factor: NDArray[np.float32]) -> AnyArray:
    """The output stage of a pool or mean, in which early compilers bound nothing."""
    if factor.size == 1 and float(factor.item()) in call.choices.unclipped:
        return call.finish(total, factor, bounded=False)
    return call.finish(total, factor)


def max_pool_2d(call: Call) -> AnyArray:
    """MAX_POOL_2D: a maximum of bytes; padding never wins."""
    greatest = max_pool_windows(call).max(axis=(-2, -1)).astype(np.int64)
    return call.finish(greatest - call.operand(0).zero_point, np.float32(1))


def max_pool_windows(call: Call) -> AnyArray:
    """The bytes that each output of MAX_POOL_2D is the greatest of, along the last two axes."""
    height, width = _pool_axes(call)
    image = call.operand(0)
    lowest = int(np.iinfo(image.tensor.dtype).min)
    return _windows(_padded(image.value, height, width, lowest), height, width)


def mean(call: Call) -> AnyArray:
    """MEAN over constant axes: the sum of the centred bytes, see ``factors.averaging_factor``."""
    operand = call.operand(0)
    axes = axes_of(call)
    extents = [operand.value.shape[axis] for axis in axes]
    total = operand.centred().sum(axis=axes).reshape(call.output.shape)
    return _averaged(call, total, _mean_factor(call, extents))


def _mean_factor(call: Call, extents: Sequence[int]) -> Factors:
    """The factor of the whole sum, also if the program adds up one axis after the other."""
    staged = _staged_factor(call, extents)
    if staged is not None:
        return staged
    quantities = Quantities(call.operand(0).scale, call.output, extents=tuple(extents))
    return call.rounded(MEAN, quantities)


def _staged_factor(call: Call, extents: Sequence[int]) -> Factors | None:
    """The factor of the second sum, if the program adds up one axis after the other.

    Sums of the first axis stay as they are, if 16 bits hold them.
    """
    scale, output_scale = call.operand(0).scale, np.float32(call.output.scale[0])
    for first, second in permutations(extents) if len(extents) == _AXES_IN_STAGES else ():
        factors = staged_factors(scale, output_scale, (first, second))
        stages = (float(factors[0]), float(factors[1]))
        if _BYTE_SPAN * first <= INT16_MAXIMUM and stages in call.choices.stages:
            return np.atleast_1d(factors[1])
    return None
