"""TFLite operators in the chip's arithmetic: one small function each, and the table of them.

uint8 and int8 networks alike: the chip holds int8 as byte XOR 0x80 with the zero point raised by
128, which changes no difference ``value - zero_point`` and so no result. Sources of each rule
and how sure it is: docs/comparison.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from darwinn_testbench.policy import AnyArray
from darwinn_testbench.reference.graph import MAXIMUM_ELEMENTS, Operator, Tensor
from darwinn_testbench.reference.output_stage import (
    NotComputableError,
    clip_bounds,
    conversion_factor,
    output_stage,
    reciprocal,
    summing_dtype,
)

RealFunction = Callable[[NDArray[np.float64]], NDArray[np.float64]]

MAXIMUM_WEIGHT = 2**15 - 1
"""Greatest 16-bit weight that the compiler gives an operand of an addition."""

MAXIMUM_PRODUCTS = 2**37
"""Products of one operator, at most: bounds the time that a damaged model can take."""

_BYTE_SPAN = 255
"""Greatest magnitude of a centred byte: value - zero_point of an 8-bit tensor."""
_BLOCK_ELEMENTS = 2**23
"""Elements of a block of convolution patches that are gathered at a time."""


def sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logistic function, without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


@dataclass(frozen=True, slots=True)
class CompilerChoices:
    """What the uncompiled network leaves to the compiler.

    ``addition_steps`` maps the index of an ADD or SUB operator to K, the reciprocal of its
    instruction's scale field: the weights are then ``round(s_in / s_out * K)``. Without an entry
    they follow the rule of :func:`addition_weights`, which gives the weights and the scale field of
    all additions of the public executables to the bit. ``sigmoid`` and ``tanh`` are the ideal
    functions unless the coefficient tables that a program loads are given instead.
    """

    addition_steps: Mapping[int, float] = field(default_factory=dict)
    sigmoid: RealFunction = sigmoid
    tanh: RealFunction = np.tanh


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """An input of an operator: the tensor and its value."""

    tensor: Tensor
    value: AnyArray

    @property
    def scale(self) -> np.float32:
        """The one scale of the tensor."""
        return np.float32(_quantised(self.tensor).scale[0])

    @property
    def zero_point(self) -> int:
        """The one zero point of the tensor."""
        return int(_quantised(self.tensor).zero_point[0])

    def centred(self, dtype: type[np.generic] = np.int64) -> AnyArray:
        """``value - zero_point``; exact in every dtype that holds 17-bit integers."""
        centred: AnyArray = self.value.astype(dtype)
        centred -= np.dtype(dtype).type(self.zero_point)
        return centred


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One operator with the values of its inputs (None: absent)."""

    operator: Operator
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Tensor, ...]
    choices: CompilerChoices

    def operand(self, position: int) -> Operand:
        """Input at ``position``; refused if it is absent."""
        found = self.optional(position)
        if found is None:
            raise NotComputableError(f"input {position} is absent")
        return found

    def optional(self, position: int) -> Operand | None:
        """Input at ``position``, or None."""
        return self.inputs[position] if position < len(self.inputs) else None

    def constant(self, position: int) -> AnyArray:
        """Value of the parameter at ``position``; refused if it is computed at run time."""
        found = self.operand(position)
        if found.tensor.constant is None:
            raise NotComputableError(f"input {position} is not a constant")
        return found.tensor.constant

    def option(self, name: str, default: Any) -> Any:
        """Attribute ``name`` of the operator."""
        return self.operator.options.get(name, default)

    @property
    def output(self) -> Tensor:
        """The only output, quantised to 8 bits."""
        return _quantised(self.outputs[0])

    def expect(self, shape: tuple[int, ...], products: int = 0) -> None:
        """Refuse, before anything is computed, another output shape or excessive work."""
        if shape != self.outputs[0].shape:
            raise NotComputableError(f"gives shape {shape}, the output {self.outputs[0].shape}")
        if products > MAXIMUM_PRODUCTS:
            raise NotComputableError(f"{products} products, more than {MAXIMUM_PRODUCTS}")

    @property
    def activation(self) -> str:
        """Name of the fused activation."""
        return str(self.option("fused_activation_function", "NONE"))


OperatorFunction = Callable[[Call], AnyArray | tuple[AnyArray, ...]]


def _quantised(tensor: Tensor) -> Tensor:
    if tensor.dtype not in (np.uint8, np.int8):
        raise NotComputableError(f"tensor {tensor.index} ({tensor.name}) is {tensor.dtype}")
    if not tensor.quantised or not _usable(tensor.scale):
        raise NotComputableError(f"tensor {tensor.index} ({tensor.name}) has no single scale")
    return tensor


def _usable(scale: NDArray[np.float32]) -> bool:
    return len(scale) > 0 and bool((np.isfinite(scale) & (scale > 0)).all())


# --- convolutions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Axis:
    """A spatial axis of a sliding window: kernel size, stride, dilation, padding, output size."""

    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    outputs: int

    @property
    def reach(self) -> int:
        return (self.kernel - 1) * self.dilation + 1


def _axis(size: int, kernel: int, stride: int, dilation: int, padding: str) -> _Axis:
    if min(kernel, stride, dilation) < 1:
        raise NotComputableError("kernel, stride and dilation are at least 1")
    reach = (kernel - 1) * dilation + 1
    if padding == "VALID":
        return _Axis(kernel, stride, dilation, 0, 0, max((size - reach) // stride + 1, 0))
    if padding != "SAME":
        raise NotComputableError(f"padding {padding}")
    outputs = -(-size // stride)
    total = max((outputs - 1) * stride + reach - size, 0)
    return _Axis(kernel, stride, dilation, total // 2, total - total // 2, outputs)


def _axes(call: Call, size: tuple[int, ...], kernel: tuple[int, int]) -> tuple[_Axis, _Axis]:
    padding = str(call.option("padding", "SAME"))
    height, width = (
        _axis(
            size[k],
            kernel[k],
            int(call.option(f"stride_{name}", 1)),
            int(call.option(f"dilation_{name}_factor", 1)),
            padding,
        )
        for k, name in enumerate("hw")
    )
    return height, width


def _padded(x: AnyArray, height: _Axis, width: _Axis, value: int = 0) -> AnyArray:
    amounts = ((0, 0), (height.before, height.after), (width.before, width.after), (0, 0))
    if not any(map(any, amounts)):
        return x
    extents = (extent + sum(both) for extent, both in zip(x.shape, amounts, strict=True))
    if math.prod(extents) > MAXIMUM_ELEMENTS:
        raise NotComputableError(f"padding by {amounts} makes more than {MAXIMUM_ELEMENTS}")
    return np.pad(x, amounts, constant_values=value)


def _windows(x: AnyArray, height: _Axis, width: _Axis) -> AnyArray:
    """View of shape (n, output rows, output columns, channels, kernel rows, kernel columns)."""
    view = sliding_window_view(x, (height.reach, width.reach), axis=(1, 2))
    view = view[:, :: height.stride, :: width.stride, :, :: height.dilation, :: width.dilation]
    windows: AnyArray = view[:, : height.outputs, : width.outputs]
    return windows


def _four_dimensional(operand: Operand) -> None:
    if operand.value.ndim != 4:
        raise NotComputableError(f"input of {operand.value.ndim} dimensions")


def _weights(call: Call, position: int, channel_axis: int) -> NDArray[np.float64]:
    """Centred weights of one scale and zero point, or of one each for a channel."""
    operand = call.operand(position)
    tensor = operand.tensor
    if tensor.dtype not in (np.uint8, np.int8) or not _usable(tensor.scale):
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
    call: Call, total: Callable[[type[Any]], AnyArray], magnitudes: AnyArray, bias: AnyArray
) -> AnyArray:
    """Sum, bias and output stage of a layer whose weights' magnitudes add up to ``magnitudes``.

    ``total`` computes the sums of products in the float type that it is given; by
    :func:`summing_dtype` every partial sum, the bias included, is then an exact integer.
    """
    bound = float((_BYTE_SPAN * magnitudes + np.abs(bias)).max(initial=0))
    dtype = summing_dtype(bound)
    sums = total(dtype)
    sums += bias.astype(dtype)
    scale = call.operand(1).tensor.scale
    factor = conversion_factor(call.operand(0).scale, call.output, scale)
    return output_stage(sums, factor, call.output, call.activation)


def conv_2d(call: Call) -> AnyArray:
    """CONV_2D: input (n, h, w, c), weights (out, kernel h, kernel w, c), bias int32 (out)."""
    image = call.operand(0)
    _four_dimensional(image)
    weights = _weights(call, 1, channel_axis=0)
    channels, kernel_height, kernel_width, depth = weights.shape
    if depth != image.value.shape[3]:
        raise NotComputableError("grouped convolution")
    height, width = _axes(call, image.value.shape[1:3], (kernel_height, kernel_width))
    shape = (len(image.value), height.outputs, width.outputs, channels)
    call.expect(shape, math.prod(shape) * math.prod(weights.shape[1:]))
    matrix = weights.reshape(channels, -1)

    def total(dtype: type[Any]) -> AnyArray:
        columns = np.ascontiguousarray(matrix.T, dtype)
        padded = _padded(image.centred(dtype), height, width)
        if height.kernel == width.kernel == height.stride == width.stride == 1:
            product: AnyArray = padded @ columns
            return product
        windows = _windows(padded, height, width).transpose(0, 1, 2, 4, 5, 3)
        sums = np.empty((*windows.shape[:3], channels), dtype)
        for rows in _row_blocks(windows):
            block = windows[:, rows]
            sums[:, rows] = block.reshape(*block.shape[:3], -1) @ columns
        return sums

    bias = _bias(call, 2, channels)
    return _weighted(call, total, np.abs(matrix).sum(axis=1), bias)


def _row_blocks(windows: AnyArray) -> Iterator[slice]:
    """Blocks of output rows whose gathered patches stay small."""
    rows = windows.shape[1]
    step = max(1, _BLOCK_ELEMENTS * rows // max(windows.size, 1))
    return (slice(first, first + step) for first in range(0, rows, step))


def depthwise_conv_2d(call: Call) -> AnyArray:
    """DEPTHWISE_CONV_2D: weights (1, kernel h, kernel w, out), out = channels * multiplier."""
    image = call.operand(0)
    _four_dimensional(image)
    weights = _weights(call, 1, channel_axis=3)
    _, kernel_height, kernel_width, channels = weights.shape
    depth = image.value.shape[3]
    if depth == 0 or channels % depth:
        raise NotComputableError(f"{channels} output channels of {depth} input channels")
    height, width = _axes(call, image.value.shape[1:3], (kernel_height, kernel_width))
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


def _pool_axes(call: Call) -> tuple[_Axis, _Axis]:
    image = call.operand(0)
    _four_dimensional(image)
    _same_quantisation(image.tensor, call.output)
    kernel = (int(call.option("filter_height", 1)), int(call.option("filter_width", 1)))
    height, width = _axes(call, image.value.shape[1:3], kernel)
    shape = (image.value.shape[0], height.outputs, width.outputs, image.value.shape[3])
    call.expect(shape, math.prod(shape) * math.prod(kernel))
    return height, width


def average_pool_2d(call: Call) -> AnyArray:
    """AVERAGE_POOL_2D: sum of the centred bytes times float32(1 / n)."""
    height, width = _pool_axes(call)
    if any((height.before, height.after, width.before, width.after)):
        raise NotComputableError("average pooling over a padded border: one divisor is encoded")
    windows = _windows(call.operand(0).centred(np.int32), height, width)
    total = windows.sum(axis=(-2, -1), dtype=np.int64)
    divisor = np.float32(height.kernel * width.kernel)
    return output_stage(total, reciprocal(divisor), call.output, call.activation)


def max_pool_2d(call: Call) -> AnyArray:
    """MAX_POOL_2D: a maximum of bytes; padding never wins."""
    height, width = _pool_axes(call)
    image = call.operand(0)
    lowest = int(np.iinfo(image.value.dtype).min)
    windows = _windows(_padded(image.value, height, width, lowest), height, width)
    greatest = windows.max(axis=(-2, -1)).astype(np.int64) - image.zero_point
    return output_stage(greatest, np.float32(1), call.output, call.activation)


def mean(call: Call) -> AnyArray:
    """MEAN over constant axes: as an average pool, the change of scale in the same factor."""
    operand = call.operand(0)
    rank = operand.value.ndim
    axes = sorted({int(axis) % rank for axis in call.constant(1).reshape(-1)})
    elements = int(np.prod([operand.value.shape[axis] for axis in axes], dtype=np.int64))
    if not axes or not elements:
        raise NotComputableError("a mean of nothing")
    total = operand.centred().sum(axis=tuple(axes)).reshape(call.output.shape)
    factor = reciprocal(np.float32(elements))
    if operand.scale != call.output.scale[0]:
        factor = conversion_factor(operand.scale, call.output)[0] * factor
    return output_stage(total, factor, call.output)


# --- element by element -------------------------------------------------------------------------


def addition_weights(
    first_scale: np.float32, second_scale: np.float32, output: Tensor
) -> tuple[int, int, np.float32]:
    """Weights of the two operands of an addition and the factor of their sum.

    The weights are the best approximation of the ratio of the scales by a fraction of integers of
    at most 15 bits, and the factor is float32(float32(s_a / w_a) * float32(1 / s_out)): bit for
    bit the immediate bias and the scale field of all 36 additions of the four public networks
    that have any.
    """
    ratio = Fraction(float(first_scale)) / Fraction(float(second_scale))
    if ratio <= 1:
        limited = ratio.limit_denominator(MAXIMUM_WEIGHT)
        first, second = limited.numerator, limited.denominator
    else:
        limited = (1 / ratio).limit_denominator(MAXIMUM_WEIGHT)
        first, second = limited.denominator, limited.numerator
    if not first or not second:
        raise NotComputableError(f"operands of scales {first_scale} and {second_scale}")
    return first, second, first_scale / np.float32(first) * reciprocal(output.scale[0])


def _weighted_sum(call: Call, sign: int) -> AnyArray:
    left, right = call.operand(0), call.operand(1)
    step = call.choices.addition_steps.get(call.operator.index)
    if step is None:
        first, second, factor = addition_weights(left.scale, right.scale, call.output)
    else:
        scale = float(call.output.scale[0])
        first, second = (round(float(each.scale) / scale * step) for each in (left, right))
        factor = np.float32(1 / step)
    call.expect(np.broadcast_shapes(left.value.shape, right.value.shape))
    total = first * left.centred() + sign * second * right.centred()
    return output_stage(total, factor, call.output, call.activation)


def add(call: Call) -> AnyArray:
    """ADD: operands times 16-bit weights, see :func:`addition_weights`."""
    return _weighted_sum(call, 1)


def subtract(call: Call) -> AnyArray:
    """SUB: as ADD, the second weight negative."""
    return _weighted_sum(call, -1)


def multiply(call: Call) -> AnyArray:
    """MUL: the product of the centred bytes."""
    left, right = call.operand(0), call.operand(1)
    call.expect(np.broadcast_shapes(left.value.shape, right.value.shape))
    factor = conversion_factor(left.scale, call.output, np.atleast_1d(right.scale))
    return output_stage(left.centred() * right.centred(), factor, call.output, call.activation)


def _requantised(operand: Operand, output: Tensor, activation: str = "NONE") -> AnyArray:
    """The operand's real values in the quantisation of ``output``."""
    factor: NDArray[np.float32] | np.float32 = np.float32(1)
    if operand.scale != output.scale[0]:
        factor = conversion_factor(operand.scale, output)
    return output_stage(operand.centred(), factor, output, activation)


def quantize(call: Call) -> AnyArray:
    """QUANTIZE from 8 bits to 8 bits: a change of zero point, scale or sign."""
    return _requantised(call.operand(0), call.output)


def dequantize(call: Call) -> AnyArray:
    """DEQUANTIZE to float32, done by the host: (value - zero_point) * scale."""
    operand = call.operand(0)
    if call.outputs[0].dtype != np.float32:
        raise NotComputableError(f"output of {call.outputs[0].dtype}")
    return operand.centred(np.float32) * operand.scale


def relu(call: Call) -> AnyArray:
    """RELU: a lower bound in the output stage."""
    return _requantised(call.operand(0), call.output, "RELU")


def relu6(call: Call) -> AnyArray:
    """RELU6: two bounds in the output stage."""
    return _requantised(call.operand(0), call.output, "RELU6")


def relu_n1_to_1(call: Call) -> AnyArray:
    """RELU_N1_TO_1: two bounds in the output stage."""
    return _requantised(call.operand(0), call.output, "RELU_N1_TO_1")


def logistic(call: Call) -> AnyArray:
    """LOGISTIC: round(sigmoid / scale)."""
    return _by_value(call, call.choices.sigmoid)


def tanh(call: Call) -> AnyArray:
    """TANH: round(tanh / scale)."""
    return _by_value(call, call.choices.tanh)


def _by_value(call: Call, function: RealFunction) -> AnyArray:
    """A real function of each byte: the results of all 256 bytes are looked up."""
    operand, output = call.operand(0), call.output
    limits = np.iinfo(operand.value.dtype)
    every = np.arange(limits.min, limits.max + 1) - operand.zero_point
    real = function(every.astype(np.float64) * float(operand.scale))
    low, high = clip_bounds(output)
    levels = np.rint(np.clip(real / float(output.scale[0]), low, high))
    table = (levels + output.zero_point[0]).astype(output.dtype)
    looked_up: AnyArray = table[operand.value.astype(np.int64) - limits.min]
    return looked_up


def softmax(call: Call) -> AnyArray:
    """SOFTMAX along the last axis: round(256 * softmax) of the chip's own bytes."""
    operand, output = call.operand(0), call.output
    if output.scale[0] != np.float32(1 / 256) or output.zero_point[0] != np.iinfo(output.dtype).min:
        raise NotComputableError("softmax whose output is not 0 to 255/256")
    beta = float(call.option("beta", 1.0))
    real = beta * float(operand.scale) * operand.centred(np.float64)
    powers = np.exp(real - real.max(axis=-1, keepdims=True))
    share = powers / powers.sum(axis=-1, keepdims=True)
    levels = np.minimum(np.rint(256 * share), 255)
    values: AnyArray = (levels + np.float64(output.zero_point[0])).astype(output.dtype)
    return values


# --- moves --------------------------------------------------------------------------------------


def _same_quantisation(source: Tensor, output: Tensor) -> None:
    same = (
        source.dtype == output.dtype
        and np.array_equal(source.scale, output.scale)
        and np.array_equal(source.zero_point, output.zero_point)
    )
    if not same:
        raise NotComputableError("input and output differ in their quantisation")


def reshape(call: Call) -> AnyArray:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: the same bytes."""
    operand = call.operand(0)
    _same_quantisation(operand.tensor, call.outputs[0])
    return operand.value.reshape(call.outputs[0].shape)


def pad(call: Call) -> AnyArray:
    """PAD with the zero point."""
    operand = call.operand(0)
    _same_quantisation(operand.tensor, call.output)
    amounts = [(int(before), int(after)) for before, after in call.constant(1)]
    extents = zip(operand.value.shape, amounts, strict=True)
    call.expect(tuple(extent + sum(both) for extent, both in extents))
    return np.pad(operand.value, amounts, constant_values=operand.zero_point)


def tile(call: Call) -> AnyArray:
    """TILE: repeated copies."""
    operand = call.operand(0)
    _same_quantisation(operand.tensor, call.outputs[0])
    repeats = [int(times) for times in call.constant(1)]
    extents = zip(operand.value.shape, repeats, strict=True)
    call.expect(tuple(extent * times for extent, times in extents))
    return np.tile(operand.value, repeats)


def concatenation(call: Call) -> AnyArray:
    """CONCATENATION: operands of another scale are requantised."""
    operands = [call.operand(position) for position in range(len(call.inputs))]
    parts = [_requantised(each, call.output, call.activation) for each in operands]
    return np.concatenate(parts, axis=int(call.option("axis", 0)))


def split(call: Call) -> tuple[AnyArray, ...]:
    """SPLIT: inputs are the axis and the value."""
    axis = int(call.constant(0).reshape(-1)[0])
    operand = call.operand(1)
    for output in call.outputs:
        _same_quantisation(operand.tensor, output)
    if operand.value.shape[axis] % len(call.outputs):
        raise NotComputableError(f"axis {axis} does not split into {len(call.outputs)} parts")
    return tuple(np.split(operand.value, len(call.outputs), axis=axis))


def arg_max(call: Call) -> AnyArray:
    """ARG_MAX, done by the host: the first index of the greatest value."""
    axis = int(call.constant(1).reshape(-1)[0])
    indices: AnyArray = np.argmax(call.operand(0).value, axis=axis)
    return indices.astype(call.outputs[0].dtype)


# --- interpolation ------------------------------------------------------------------------------

_PIXEL = 128
"""Positions of the interpolating instruction are in 1/128 pixel."""


def resize_bilinear(call: Call) -> AnyArray:
    """RESIZE_BILINEAR: four taps with weights of 7 bits for each axis, scale 2^-14, no offset."""
    operand = call.operand(0)
    _four_dimensional(operand)
    _same_quantisation(operand.tensor, call.output)
    rows, columns = call.output.shape[1:3]
    call.expect((operand.value.shape[0], rows, columns, operand.value.shape[3]))
    modes = (
        bool(call.option("align_corners", False)),
        bool(call.option("half_pixel_centers", False)),
    )
    top, bottom, row_weight = _taps(operand.value.shape[1], rows, *modes)
    left, right, column_weight = _taps(operand.value.shape[2], columns, *modes)
    image = operand.value.astype(np.int32)
    across = image[:, :, left] * (_PIXEL - column_weight)[:, None]
    across += image[:, :, right] * column_weight[:, None]
    total = across[:, top] * (_PIXEL - row_weight)[:, None, None]
    total += across[:, bottom] * row_weight[:, None, None]
    # At most 255 * 2^14 < 2^24, and the scale is a power of two: exact in float32.
    rounded: AnyArray = np.rint(total.astype(np.float32) * np.float32(2.0**-14))
    return rounded.astype(call.output.dtype)


def _taps(
    size: int, outputs: int, align_corners: bool, half_pixel: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """First and second tap of each output, and the second's weight in 1/128."""
    aligned = align_corners and outputs > 1
    step = Fraction(size - 1, outputs - 1) if aligned else Fraction(size, outputs)
    start = step / 2 - Fraction(1, 2) if half_pixel else Fraction(0)
    if size == 1:
        step = start = Fraction(0)
    units = [_PIXEL * step, _PIXEL * start]
    if any(unit.denominator != 1 for unit in units):
        raise NotComputableError(
            f"resize from {size} to {outputs}: the compiler's rounding of the step to 1/128 pixel "
            "is not known"
        )
    positions = int(units[1]) + int(units[0]) * np.arange(outputs)
    first = positions >> 7
    taps = (np.clip(first, 0, size - 1), np.clip(first + 1, 0, size - 1))
    return *taps, (positions & (_PIXEL - 1)).astype(np.int32)
