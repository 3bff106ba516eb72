"""From a quantised TensorFlow Lite network to operations in integers.

What an operator has to be for the chip is checked here, operator by operator: each function of the
table makes the operation of one operator, or says why it cannot (``StaysError``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from darwinn_reference.tflite.factors import (
    addition_weights,
    averaging_factor,
    constant_term,
    conversion_factor,
)
from darwinn_reference.tflite.graph import ABSENT, Network, NetworkTensor, Operator
from darwinn_reference.tflite.layers import Axis, window_axes
from darwinn_reference.tflite.output_stage import NotComputableError, clip_bounds
from darwinn_reference.tflite.softmax import DifferenceUnit
from numpy.typing import NDArray

from darwinn_testbench.compiler.parameters import SIGN_OFFSET
from darwinn_testbench.compiler.stages.operations import (
    UNIT,
    AnyOperation,
    BorderAverage,
    Channelwise,
    Convolution,
    Enlarged,
    Greatest,
    Image,
    Interpolated,
    Joined,
    OutputStage,
    Product,
    Reach,
    Reshaped,
    Slice,
    Softmax,
    Spacing,
    Stacked,
    Taps,
    Transposed,
    TransposedConvolution,
    WeightedSum,
)
from darwinn_testbench.compiler.stages.tables import FUNCTIONS, table_of

_IMAGE_RANK = 4
_SIDES = 3
"""Axes of an image: rows, columns, channels."""
_COLUMNS = -2
"""The axis of columns, from the last one."""


_Made = AnyOperation | list[AnyOperation] | None


class StaysError(Exception):
    """Why an operator stays on the CPU, in a few words."""


class Importer:
    """Makes operations of the operators of a network, in their order.

    An operator that only gives its bytes another shape makes none: its result is the same image.
    Where another operator needs the pixels of the new shape, an operation of that one makes them.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self._images: dict[int, Image] = {}
        self._reshaped: dict[int, Image] = {}

    def image(self, index: int) -> Image:
        """The image of a tensor.

        Raises:
            StaysError: it is no image of bytes with one scale.
        """
        if index not in self._images:
            self._images[index] = _image(self.network.tensors[index])
        return self._images[index]

    def take(self, operator: Operator) -> list[AnyOperation]:
        """The operations of an operator; none if it only changes a shape.

        Raises:
            StaysError: it has none, and why.
        """
        make = _OPERATORS.get(operator.name)
        if make is None or operator.custom:
            raise StaysError("not supported")
        if operator.unread_options:
            raise StaysError(f"options {operator.unread_options} are not read")
        before = set(self._reshaped)
        try:
            made = make(self, operator)
        except (NotComputableError, StaysError) as reason:
            for index in self._reshaped.keys() - before:
                del self._reshaped[index]
            raise StaysError(str(reason)) from None
        if made is None:
            return []
        shapes = [
            Reshaped(operator.index, operator.name, image, self._images[index])
            for index, image in self._reshaped.items()
            if index not in before
        ]
        return [*shapes, *(made if isinstance(made, list) else [made])]

    def alias(self, operator: Operator) -> None:
        """Let the result of an operator be the image that it reads.

        Raises:
            StaysError: the result is other bytes, or another image that is more than a vector.
        """
        source = self.image(operator.inputs[0])
        target = self.network.tensors[operator.outputs[0]]
        result = _image(target)
        if (source.scale, source.zero_point) != (result.scale, result.zero_point):
            raise StaysError("another quantisation of the same bytes")
        self._images[target.index] = source

    def tensor(self, operator: Operator, place: int) -> NetworkTensor:
        """An input of an operator."""
        return self.network.tensors[operator.inputs[place]]

    def result(self, operator: Operator) -> tuple[NetworkTensor, Image]:
        """The output of an operator, as tensor and as image."""
        index = operator.outputs[0]
        return self.network.tensors[index], self.image(index)

    def source(self, operator: Operator, place: int = 0) -> Image:
        """An input that is computed, as the image that its shape says."""
        tensor = self.tensor(operator, place)
        if tensor.constant is not None:
            raise StaysError("a constant operand")
        image = self.image(tensor.index)
        if _sides(tensor.shape) == (image.height, image.width, image.channels):
            return image
        if tensor.index not in self._reshaped:
            self._reshaped[tensor.index] = _image(tensor)
        return self._reshaped[tensor.index]


def _sides(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Height, width and channels of a shape."""
    if len(shape) > _IMAGE_RANK or (len(shape) == _IMAGE_RANK and shape[0] != 1):
        raise StaysError("more than one image")
    height, width, channels = ((1,) * _IMAGE_RANK + shape)[-3:]
    return height, width, channels


def _image(tensor: NetworkTensor) -> Image:
    if tensor.dtype not in (np.dtype(np.uint8), np.dtype(np.int8)):
        raise StaysError(f"{tensor.dtype} data")
    if not tensor.quantised or not tensor.scale[0] > 0:
        raise StaysError("not quantised")
    if tensor.variable:
        raise StaysError("a variable")
    height, width, channels = _sides(tensor.shape)
    if not height * width * channels:
        raise StaysError("no elements")
    signed = tensor.dtype == np.int8
    return Image(
        tensor.index,
        tensor.name,
        tensor.shape,
        height,
        width,
        channels,
        tensor.scale[0],
        int(tensor.zero_point[0]) + (SIGN_OFFSET if signed else 0),
        signed,
    )


def _activation(operator: Operator) -> str:
    return str(operator.options.get("fused_activation_function", "NONE"))


def _stage(
    tensor: NetworkTensor,
    image: Image,
    factors: NDArray[np.float32] | np.float32,
    bias: NDArray[np.int32] | int = 0,
    activation: str = "NONE",
) -> OutputStage:
    low, high = clip_bounds(tensor, activation)
    return OutputStage(
        np.atleast_1d(factors).astype(np.float32),
        np.atleast_1d(np.asarray(bias, np.int32)),
        low,
        high,
        image.zero_point,
    )


def _weights(importer: Importer, operator: Operator, axis: int) -> tuple[NDArray[np.uint8], int]:
    """Weights as unsigned bytes, and their zero point."""
    tensor = importer.tensor(operator, 1)
    values = tensor.constant
    if values is None:
        raise StaysError("weights are not constant")
    if values.dtype not in (np.uint8, np.int8) or not len(tensor.scale):
        raise StaysError("weights are not quantised to 8 bits")
    if len(tensor.scale) > 1 and tensor.channel_axis != axis:
        raise StaysError("scales of the weights are not one for an output channel")
    zero_points = set(tensor.zero_point.tolist())
    if len(zero_points) != 1:
        raise StaysError("several zero points of weights")
    (zero_point,) = zero_points
    if values.dtype == np.int8:
        return np.asarray(values).view(np.uint8) ^ np.uint8(SIGN_OFFSET), zero_point + SIGN_OFFSET
    return np.asarray(values), zero_point


def _bias(
    importer: Importer, operator: Operator, channels: int, place: int = 2
) -> NDArray[np.int32]:
    if len(operator.inputs) <= place or operator.inputs[place] == ABSENT:
        return np.zeros(channels, np.int32)
    values = importer.tensor(operator, place).constant
    if values is None or values.dtype != np.int32 or values.size != channels:
        raise StaysError("the bias is not one constant int32 for a channel")
    return np.asarray(values).reshape(-1)


def _reach(axis: Axis) -> Reach:
    return Reach(axis.kernel, axis.stride, axis.dilation, axis.before)


def _layer_stage(
    importer: Importer, operator: Operator, source: Image, channels: int
) -> OutputStage:
    """Output stage of a layer with weights."""
    tensor, image = importer.result(operator)
    factors = conversion_factor(source.scale, tensor, importer.tensor(operator, 1).scale)
    bias = _bias(importer, operator, channels)
    return _stage(tensor, image, factors, bias, _activation(operator))


def _conv_2d(importer: Importer, operator: Operator) -> AnyOperation:
    source = importer.source(operator)
    weights, zero_point = _weights(importer, operator, 0)
    channels, height, width, depth = weights.shape
    if depth != source.channels:
        raise StaysError("groups of channels")
    rows, columns = window_axes(operator.options, (source.height, source.width), (height, width))
    return Convolution(
        operator.index,
        operator.name,
        importer.result(operator)[1],
        source,
        _reach(rows),
        _reach(columns),
        weights,
        zero_point,
        _layer_stage(importer, operator, source, channels),
    )


def _depthwise_conv_2d(importer: Importer, operator: Operator) -> AnyOperation:
    source = importer.source(operator)
    weights, zero_point = _weights(importer, operator, 3)
    _, height, width, channels = weights.shape
    if channels % source.channels:
        raise StaysError("output channels are no multiple of input channels")
    rows, columns = window_axes(operator.options, (source.height, source.width), (height, width))
    common = (
        operator.index,
        operator.name,
        importer.result(operator)[1],
        source,
        _reach(rows),
        _reach(columns),
    )
    stage = _layer_stage(importer, operator, source, channels)
    multiplier = channels // source.channels
    if multiplier == 1:
        return Channelwise(*common, weights[0], zero_point, stage)
    # Each channel has several results: a convolution whose other weights are their zero point.
    full = np.full((channels, height, width, source.channels), zero_point, np.uint8)
    outputs = np.arange(channels)
    full[outputs, :, :, outputs // multiplier] = weights[0].transpose(2, 0, 1)
    return Convolution(*common, full, zero_point, stage)


def _transpose_conv(importer: Importer, operator: Operator) -> AnyOperation:
    source = importer.source(operator, 2)
    tensor, image = importer.result(operator)
    weights, zero_point = _weights(importer, operator, 0)
    channels, height, width, depth = weights.shape
    if depth != source.channels:
        raise StaysError("groups of channels")
    axes = []
    for name, size, count, kernel in (
        ("h", image.height, source.height, height),
        ("w", image.width, source.width, width),
    ):
        stride = int(operator.options.get(f"stride_{name}", 1))
        span = (count - 1) * stride + kernel
        same = operator.options.get("padding", "SAME") != "VALID"
        axes.append(Spacing(kernel, stride, max(span - size, 0) // 2 if same else 0))
    factors = conversion_factor(source.scale, tensor, importer.tensor(operator, 1).scale)
    bias = _bias(importer, operator, channels, place=3)
    return TransposedConvolution(
        operator.index,
        operator.name,
        image,
        source,
        axes[0],
        axes[1],
        weights,
        zero_point,
        _stage(tensor, image, factors, bias, _activation(operator)),
    )


def _transpose(importer: Importer, operator: Operator) -> AnyOperation:
    source = importer.source(operator)
    _, image = importer.result(operator)
    order = importer.tensor(operator, 1).constant
    rank = len(importer.tensor(operator, 0).shape)
    if order is None:
        raise StaysError("the order of axes is not constant")
    if (source.scale, source.zero_point) != (image.scale, image.zero_point):
        raise StaysError("a transposition in another quantisation")
    missing = _IMAGE_RANK - rank
    axes = [*range(missing), *(missing + int(axis) for axis in np.asarray(order).reshape(-1))]
    if axes[0]:
        raise StaysError("a transposition of images")
    places = axes[1] - 1, axes[2] - 1, axes[3] - 1
    return Transposed(operator.index, operator.name, image, source, places)


def _fully_connected(importer: Importer, operator: Operator) -> AnyOperation:
    if operator.options.get("weights_format", "DEFAULT") != "DEFAULT":
        raise StaysError("another format of weights")
    tensor = importer.tensor(operator, 0)
    if tensor.constant is not None:
        raise StaysError("a constant operand")
    source = importer.image(tensor.index)
    weights, zero_point = _weights(importer, operator, 0)
    channels, depth = weights.shape
    if depth != source.pixels * source.channels:
        raise StaysError("several vectors")
    shape = (channels, source.height, source.width, source.channels)
    return Convolution(
        operator.index,
        operator.name,
        importer.result(operator)[1],
        source,
        Reach(source.height, 1, 1, 0),
        Reach(source.width, 1, 1, 0),
        weights.reshape(shape),
        zero_point,
        _layer_stage(importer, operator, source, channels),
    )


def _average_pool_2d(importer: Importer, operator: Operator) -> AnyOperation:
    source = importer.source(operator)
    tensor, image = importer.result(operator)
    kernel = tuple(int(operator.options.get(f"filter_{name}", 1)) for name in ("height", "width"))
    axes = window_axes(operator.options, (source.height, source.width), kernel)
    if (source.scale, source.zero_point) != (image.scale, image.zero_point):
        raise StaysError("an average in another quantisation")
    counts = tuple(
        _inside(axis, size) for axis, size in zip(axes, (source.height, source.width), strict=True)
    )
    sizes = {down * across for down in counts[0] for across in counts[1]}
    common = math.lcm(*sizes)
    # Weights are shares of a common unit: where they exceed a byte, the factor differs instead.
    weighted = all(common // size <= _BYTE_SPAN for size in sizes)
    shares = {}
    for size in sizes:
        unit = np.atleast_1d(np.float32(1) / np.float32(common if weighted else size))
        factor = conversion_factor(source.scale, tensor, unit)
        stage = _stage(tensor, image, factor, activation=_activation(operator))
        shares[size] = common // size if weighted else 1, stage
    rows, columns = _reach(axes[0]), _reach(axes[1])
    number, name = operator.index, operator.name
    if image.is_vector or sizes == {math.prod(kernel)}:
        rows, columns = (
            _clipped(reach, each) for reach, each in zip((rows, columns), counts, strict=True)
        )
        ((_, stage),) = shares.values()
        return Channelwise(number, name, image, source, rows, columns, None, 0, stage)
    common_fields = number, name, image, source, rows, columns, None, 0, stage
    return BorderAverage(*common_fields, counts[0], counts[1], shares)


_BYTE_SPAN = 255


def _inside(axis: Axis, size: int) -> tuple[int, ...]:
    """How many elements of each window along an axis are within the image."""
    reach = _reach(axis)
    return tuple(
        min(reach.first(index) + axis.kernel, size) - max(reach.first(index), 0)
        for index in range(axis.outputs)
    )


def _clipped(reach: Reach, counts: tuple[int, ...]) -> Reach:
    """A window that may be over the border in its only place: the part of it within the image."""
    if counts[0] == reach.kernel:
        return reach
    return Reach(counts[0], reach.stride, 1, min(reach.before, 0))


def _mean(importer: Importer, operator: Operator) -> AnyOperation:
    source = importer.source(operator)
    tensor, image = importer.result(operator)
    axes = importer.tensor(operator, 1).constant
    rank = len(importer.tensor(operator, 0).shape)
    if axes is None:
        raise StaysError("axes are not constant")
    reduced = {int(axis) % rank for axis in np.asarray(axes).reshape(-1)}
    if reduced != {rank - 3, rank - 2}:
        raise StaysError("a mean of other axes than rows and columns")
    factor = averaging_factor(source.scale, image.scale, source.pixels)
    rows, columns = Reach(source.height, 1, 1, 0), Reach(source.width, 1, 1, 0)
    stage = _stage(tensor, image, factor)
    return Channelwise(operator.index, operator.name, image, source, rows, columns, None, 0, stage)


def _sides_of(importer: Importer, operator: Operator) -> tuple[int, NetworkTensor] | None:
    """Place of the computed operand and the constant one; None if both are computed.

    Raises:
        StaysError: the constant is more than one value for each channel.
    """
    tensors = [importer.tensor(operator, place) for place in range(2)]
    constants = [tensor for tensor in tensors if tensor.constant is not None]
    if not constants:
        return None
    (constant,) = constants
    channels = importer.result(operator)[1].channels
    by_channel = constant.shape[-1:] == (channels,) and constant.size == channels
    if not (by_channel or constant.size == 1) or not constant.quantised:
        raise StaysError("a constant operand that is not one value, or one for each channel")
    return tensors.index(constant) ^ 1, constant


def _by_channel(
    importer: Importer,
    operator: Operator,
    place: int,
    factors: NDArray[np.float32],
    bias: NDArray[np.int32],
    *,
    sign: int = 1,
) -> AnyOperation:
    """A layer of weights 1 (or -1), with a factor and a bias for each channel."""
    tensor, image = importer.result(operator)
    source = importer.source(operator, place)
    if source.shape[-3:] != image.shape[-3:]:
        raise StaysError("an operand that is repeated")
    stage = _stage(tensor, image, factors, bias, _activation(operator))
    zero = 1
    weights = np.full((1, 1, image.channels), zero + sign, np.uint8)
    return Channelwise(
        operator.index, operator.name, image, source, UNIT, UNIT, weights, zero, stage
    )


def _sum(sign: int) -> Callable[[Importer, Operator], AnyOperation]:
    """ADD, and SUB with a ``sign`` of -1."""

    def make(importer: Importer, operator: Operator) -> AnyOperation:
        tensor, image = importer.result(operator)
        sides = _sides_of(importer, operator)
        if sides is not None:
            place, constant = sides
            signs = (1, sign) if place == 0 else (sign, 1)
            source = importer.source(operator, place)
            levels = np.asarray(constant.constant).astype(np.int64) - constant.zero_point[0]
            steps = constant_term(levels.reshape(-1), constant.scale[0], source.scale)
            factors = conversion_factor(source.scale, tensor)
            bias = (signs[1] * steps).astype(np.int32)
            return _by_channel(importer, operator, place, factors, bias, sign=signs[0])
        left, right = importer.source(operator, 0), importer.source(operator, 1)
        if left.shape != right.shape or left.shape != image.shape:
            raise StaysError("operands of different shapes")
        if sign < 0 and left is right:
            raise StaysError("a difference of a tensor and itself")
        first, second, factor = addition_weights(left.scale, right.scale, tensor)
        weights = first, sign * second
        term = -(left.zero_point * weights[0] + right.zero_point * weights[1])
        stage = _stage(tensor, image, factor, term, _activation(operator))
        return WeightedSum(operator.index, operator.name, image, (left, right), weights, stage)

    return make


def _mul(importer: Importer, operator: Operator) -> AnyOperation:
    tensor, image = importer.result(operator)
    sides = _sides_of(importer, operator)
    if sides is not None:
        place, constant = sides
        source = importer.source(operator, place)
        levels = np.asarray(constant.constant).astype(np.int64) - constant.zero_point[0]
        real = levels.astype(np.float32).reshape(-1) * constant.scale[0]
        factors = conversion_factor(source.scale, tensor, real)
        return _by_channel(importer, operator, place, factors, np.zeros(1, np.int32))
    left, right = importer.source(operator, 0), importer.source(operator, 1)
    if left.is_vector and not right.is_vector:
        left, right = right, left
    if left.channels != right.channels or left.shape != image.shape:
        raise StaysError("operands of different shapes")
    if right.shape != left.shape and not right.is_vector:
        raise StaysError("operands of different shapes")
    factor = conversion_factor(left.scale, tensor, np.atleast_1d(right.scale))
    stage = _stage(tensor, image, factor, activation=_activation(operator))
    return Product(operator.index, operator.name, image, (left, right), stage)


def _function(name: str) -> Callable[[Importer, Operator], AnyOperation]:
    """A function of each element, by its table; beyond its ends it does not change."""
    function = FUNCTIONS[name]
    first = -function.last if function.odd else function.first

    def make(importer: Importer, operator: Operator) -> AnyOperation:
        source = importer.source(operator)
        _, image = importer.result(operator)
        stage = OutputStage(
            np.atleast_1d(source.scale),
            np.zeros(1, np.int32),
            np.float32(first),
            np.float32(function.last),
            image.zero_point,
            table_of(name, float(np.float32(1) / image.scale)),
        )
        return Channelwise(operator.index, operator.name, image, source, UNIT, UNIT, None, 0, stage)

    return make


def _softmax(importer: Importer, operator: Operator) -> AnyOperation:
    source = importer.source(operator)
    _, image = importer.result(operator)
    if not source.is_vector:
        raise StaysError("a softmax of several vectors")
    if source.channels == 1:
        raise StaysError("a softmax of one element")
    if image.scale != np.float32(1 / 256) or image.zero_point:
        raise StaysError("a softmax whose result is not 0 to 255/256")
    beta = float(operator.options.get("beta", 1.0))
    unit = DifferenceUnit.of(source.scale, source.zero_point, beta)
    return Softmax(operator.index, operator.name, image, source, unit.factor, unit.scale)


def _max_pool_2d(importer: Importer, operator: Operator) -> AnyOperation:
    source = importer.source(operator)
    tensor, image = importer.result(operator)
    kernel = tuple(int(operator.options.get(f"filter_{name}", 1)) for name in ("height", "width"))
    rows, columns = window_axes(operator.options, (source.height, source.width), kernel)
    if (source.scale, source.zero_point) != (image.scale, image.zero_point):
        raise StaysError("a maximum in another quantisation")
    low, high = clip_bounds(tensor, _activation(operator))
    zero = np.float32(image.zero_point)
    stage = OutputStage(np.ones(1, np.float32), np.zeros(1, np.int32), low + zero, high + zero, 0)
    return Greatest(
        operator.index, operator.name, image, source, _reach(rows), _reach(columns), stage
    )


def _resize_nearest(importer: Importer, operator: Operator) -> AnyOperation:
    source = importer.source(operator)
    tensor, image = importer.result(operator)
    times = image.height // source.height
    whole = (source.height * times, source.width * times) == (image.height, image.width)
    if operator.options.get("align_corners") or not whole:
        raise StaysError("an enlargement that is no whole number of times")
    if (source.scale, source.zero_point) != (image.scale, image.zero_point):
        raise StaysError("an enlargement in another quantisation")
    stage = _stage(tensor, image, np.float32(1))
    return Enlarged(operator.index, operator.name, image, source, times, stage)


_PIXEL = 128
"""Positions of an interpolation are in 1/128 pixel."""


def _resize_bilinear(importer: Importer, operator: Operator) -> AnyOperation:
    source = importer.source(operator)
    _, image = importer.result(operator)
    if (source.scale, source.zero_point) != (image.scale, image.zero_point):
        raise StaysError("an interpolation in another quantisation")
    if source.is_vector or image.is_vector:
        raise StaysError("an interpolation of a single pixel")
    aligned = bool(operator.options.get("align_corners"))
    half = bool(operator.options.get("half_pixel_centers"))
    rows = _taps(source.height, image.height, aligned=aligned, half=half)
    columns = _taps(source.width, image.width, aligned=aligned, half=half)
    # Bytes are interpolated as they are: the weights add up to 2^14, and no zero point matters.
    stage = OutputStage(
        np.array([2.0**-14], np.float32),
        np.zeros(1, np.int32),
        np.float32(0),
        np.float32(255),
        0,
    )
    return Interpolated(operator.index, operator.name, image, source, rows, columns, stage)


def _taps(size: int, outputs: int, *, aligned: bool, half: bool) -> Taps:
    """The taps of an axis.

    Raises:
        StaysError: positions that are no multiples of 1/128 pixel.
    """
    corners = aligned and outputs > 1
    step = Fraction(size - 1, outputs - 1) if corners else Fraction(size, outputs)
    start = step / 2 - Fraction(1, 2) if half else Fraction(0)
    if (_PIXEL * step).denominator != 1 or (_PIXEL * start).denominator != 1:
        raise StaysError("an interpolation at positions that are no multiples of 1/128 pixel")
    positions = [int(_PIXEL * (start + step * k)) for k in range(outputs)]
    last = size - 1
    return Taps(
        tuple(min(max(each >> 7, 0), last) for each in positions),
        tuple(min(max((each >> 7) + 1, 0), last) for each in positions),
        tuple(each & (_PIXEL - 1) for each in positions),
    )


def _cut(
    importer: Importer,
    operator: Operator,
    source: Image,
    index: int,
    firsts: Sequence[int],
    strides: Sequence[int] = (1, 1, 1),
) -> AnyOperation:
    """A tensor that has some elements of an image: those of rows, columns and channels from
    ``firsts`` on."""
    image, tensor = importer.image(index), importer.network.tensors[index]
    if (source.scale, source.zero_point) != (image.scale, image.zero_point):
        raise StaysError("a slice in another quantisation")
    stage = _stage(tensor, image, np.float32(1))
    if (image.height, image.width) == (source.height, source.width) and strides[2] == 1:
        return Slice(operator.index, operator.name, image, source, firsts[2], stage)
    if image.channels != source.channels or strides[2] != 1:
        raise StaysError("a slice of pixels and of channels at once")
    rows, columns = (Reach(1, strides[k], 1, -firsts[k]) for k in (0, 1))
    return Channelwise(operator.index, operator.name, image, source, rows, columns, None, 0, stage)


def _split(importer: Importer, operator: Operator, axes: int = 0, data: int = 1) -> _Made:
    """Parts one behind the other along an axis; inputs ``axes`` and ``data``."""
    axis = importer.tensor(operator, axes).constant
    rank = len(importer.tensor(operator, data).shape)
    if axis is None:
        raise StaysError("the axis is not constant")
    place = int(np.asarray(axis).reshape(-1)[0]) % rank - rank + _SIDES
    if place < 0:
        raise StaysError("a split of images")
    source = importer.source(operator, data)
    parts: list[AnyOperation] = []
    firsts = [0, 0, 0]
    for index in operator.outputs:
        parts.append(_cut(importer, operator, source, index, firsts))
        image = importer.image(index)
        firsts[place] += (image.height, image.width, image.channels)[place]
    return parts


def _split_v(importer: Importer, operator: Operator) -> _Made:
    return _split(importer, operator, 2, 0)


def _strided_slice(importer: Importer, operator: Operator) -> AnyOperation:
    shape = importer.tensor(operator, 0).shape
    begin, _, strides = (importer.tensor(operator, place).constant for place in (1, 2, 3))
    masks = ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    if begin is None or strides is None or any(operator.options.get(name) for name in masks):
        raise StaysError("a slice of another form")
    steps = np.asarray(strides).reshape(-1)
    if (steps < 1).any():
        raise StaysError("a slice backwards")
    mask = int(operator.options.get("begin_mask", 0))
    firsts = [
        0 if mask >> axis & 1 else min(max(int(first) % size if first < 0 else int(first), 0), size)
        for axis, (first, size) in enumerate(zip(np.asarray(begin).reshape(-1), shape, strict=True))
    ]
    return _cut_of(importer, operator, firsts, steps.tolist())


def _slice(importer: Importer, operator: Operator) -> AnyOperation:
    begin = importer.tensor(operator, 1).constant
    if begin is None:
        raise StaysError("a slice of another form")
    firsts = np.asarray(begin).reshape(-1).tolist()
    return _cut_of(importer, operator, firsts, [1] * len(firsts))


def _cut_of(
    importer: Importer, operator: Operator, firsts: list[int], strides: list[int]
) -> AnyOperation:
    """The same with a number for each axis of the tensor."""
    source = importer.source(operator)
    index = operator.outputs[0]
    ahead, behind = ([fill] * _SIDES for fill in (0, 1))
    return _cut(
        importer,
        operator,
        source,
        index,
        [*ahead, *firsts][-_SIDES:],
        [*behind, *strides][-_SIDES:],
    )


def _requantising(
    source: Image, tensor: NetworkTensor, image: Image, activation: str
) -> OutputStage:
    factor = np.ones(1, np.float32)
    if source.scale != image.scale:
        factor = conversion_factor(source.scale, tensor)
    return _stage(tensor, image, factor, activation=activation)


def _requantise(activation: str) -> Callable[[Importer, Operator], AnyOperation]:
    """An operator that works on each element: bounds, or another quantisation."""

    def make(importer: Importer, operator: Operator) -> AnyOperation:
        source = importer.source(operator)
        tensor, image = importer.result(operator)
        stage = _requantising(source, tensor, image, activation)
        return Channelwise(operator.index, operator.name, image, source, UNIT, UNIT, None, 0, stage)

    return make


def _concatenation(importer: Importer, operator: Operator) -> AnyOperation:
    tensor, image = importer.result(operator)
    sources = tuple(importer.source(operator, place) for place in range(len(operator.inputs)))
    axis = int(operator.options.get("axis", 0)) % len(tensor.shape) - len(tensor.shape)
    stages = tuple(_requantising(each, tensor, image, _activation(operator)) for each in sources)
    common = operator.index, operator.name, image, sources, stages
    if axis != -1:
        return Stacked(*common, beside=axis == _COLUMNS)
    return Joined(*common)


def _pad(importer: Importer, operator: Operator) -> AnyOperation:
    """Zero points around an image: a copy of each pixel, where the source has one."""
    source = importer.source(operator)
    _, image = importer.result(operator)
    amounts = importer.tensor(operator, 1).constant
    if amounts is None:
        raise StaysError("amounts are not constant")
    if len(operator.inputs) > 2:
        raise StaysError("a value of its own to pad with")
    if (source.scale, source.zero_point) != (image.scale, image.zero_point):
        raise StaysError("padding in another quantisation")
    sides = np.zeros((_IMAGE_RANK, 2), np.int64)
    pairs = np.asarray(amounts).reshape(-1, 2)
    sides[_IMAGE_RANK - len(pairs) :] = pairs
    if sides[0].any() or sides[3].any() or (sides < 0).any():
        raise StaysError("padding of other axes than rows and columns")
    rows, columns = (Reach(1, 1, 1, int(before)) for before, _ in sides[1:3])
    tensor = importer.result(operator)[0]
    stage = _stage(tensor, image, np.float32(1))
    return Channelwise(operator.index, operator.name, image, source, rows, columns, None, 0, stage)


def _view(importer: Importer, operator: Operator) -> None:
    importer.alias(operator)


_OPERATORS: Mapping[str, Callable[[Importer, Operator], _Made]] = {
    "ADD": _sum(1),
    "AVERAGE_POOL_2D": _average_pool_2d,
    "CONCATENATION": _concatenation,
    "CONV_2D": _conv_2d,
    "DEPTHWISE_CONV_2D": _depthwise_conv_2d,
    "EXPAND_DIMS": _view,
    "FULLY_CONNECTED": _fully_connected,
    "LOGISTIC": _function("sigmoid"),
    "MAX_POOL_2D": _max_pool_2d,
    "MEAN": _mean,
    "MUL": _mul,
    "PAD": _pad,
    "QUANTIZE": _requantise("NONE"),
    "RELU": _requantise("RELU"),
    "RELU6": _requantise("RELU6"),
    "RELU_N1_TO_1": _requantise("RELU_N1_TO_1"),
    "RESHAPE": _view,
    "RESIZE_BILINEAR": _resize_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": _resize_nearest,
    "SLICE": _slice,
    "SOFTMAX": _softmax,
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "STRIDED_SLICE": _strided_slice,
    "SUB": _sum(-1),
    "TANH": _function("tanh"),
    "SQUEEZE": _view,
    "TRANSPOSE": _transpose,
    "TRANSPOSE_CONV": _transpose_conv,
}
