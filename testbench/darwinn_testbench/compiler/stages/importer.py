"""From a quantised TensorFlow Lite network to operations in integers.

What an operator has to be for the chip is checked here, operator by operator: each function of the
table makes the operation of one operator, or says why it cannot (``StaysError``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
    Filled,
    Greatest,
    Image,
    Interpolated,
    Joined,
    OutputStage,
    Product,
    Reach,
    Repeated,
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
from darwinn_testbench.compiler.stages.rows import AS_IS
from darwinn_testbench.compiler.stages.tables import FUNCTIONS, table_of, two_slopes

_IMAGE_RANK = 4
_SIDES = 3
"""Axes of an image: rows, columns, channels."""
_CHANNELS = 2
"""The axis of channels among them."""
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
        self._ahead: list[AnyOperation] = []
        self._between = 0

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
        reshaped = dict(self._reshaped)
        self._ahead = []
        try:
            made = make(self, operator)
        except (NotComputableError, StaysError) as reason:
            self._reshaped = reshaped
            raise StaysError(str(reason)) from None
        if made is None:
            return []
        return [*self._ahead, *(made if isinstance(made, list) else [made])]

    def alias(self, operator: Operator, place: int = 0) -> None:
        """Let the result of an operator be the image that is input ``place``.

        Raises:
            StaysError: the result is other bytes, or another image that is more than a vector.
        """
        source = self.image(operator.inputs[place])
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
            like = _image(tensor)
            made = self.between(like, (like.height, like.width, like.channels))
            self._reshaped[tensor.index] = made
            self._ahead.append(Reshaped(operator.index, operator.name, made, image))
        return self._reshaped[tensor.index]

    def between(self, like: Image, sides: tuple[int, int, int]) -> Image:
        """An image that no tensor is, with the quantisation of another one."""
        self._between -= 1
        height, width, channels = sides
        return replace(
            like,
            index=self._between,
            name=f"{like.name} ({self._between})",
            shape=(1, *sides),
            height=height,
            width=width,
            channels=channels,
        )

    def seen_as(self, index: int, sides: tuple[int, int, int]) -> Image:
        """The image of a tensor with other sides than its shape says."""
        height, width, channels = sides
        image = replace(self.image(index), height=height, width=width, channels=channels)
        self._images[index] = image
        return image

    def first(self, operation: AnyOperation) -> Image:
        """The result of an operation that is needed before that of the operator."""
        self._ahead.append(operation)
        return operation.result


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
        return _several_vectors(importer, operator, weights, zero_point)
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


def _several_vectors(
    importer: Importer, operator: Operator, weights: NDArray[np.uint8], zero_point: int
) -> AnyOperation:
    """A dense layer of each vector: a convolution of single pixels."""
    source = importer.source(operator)
    channels, depth = weights.shape
    image = importer.result(operator)[1]
    sides = source.height, source.width, channels
    if source.channels != depth or image.pixels * image.channels != math.prod(sides):
        raise StaysError("vectors of another length")
    if (image.height, image.width, image.channels) != sides:
        image = importer.seen_as(image.index, sides)
    return Convolution(
        operator.index,
        operator.name,
        image,
        source,
        UNIT,
        UNIT,
        weights.reshape(channels, 1, 1, depth),
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


def _reduction(
    importer: Importer, operator: Operator
) -> tuple[Image, NetworkTensor, Image, set[int]]:
    """Source, result as tensor and as image, and the axes that go: rows 0 to channels 2."""
    source = importer.source(operator)
    tensor, image = importer.result(operator)
    axes = importer.tensor(operator, 1).constant
    rank = len(importer.tensor(operator, 0).shape)
    if axes is None:
        raise StaysError("axes are not constant")
    reduced = {int(axis) % rank - rank + _SIDES for axis in np.asarray(axes).reshape(-1)}
    if min(reduced, default=-1) < 0:
        raise StaysError("a reduction of images")
    height, width, channels = (
        1 if axis in reduced else size
        for axis, size in enumerate((source.height, source.width, source.channels))
    )
    if (image.height, image.width, image.channels) != (height, width, channels):
        image = importer.seen_as(image.index, (height, width, channels))
    return source, tensor, image, reduced


def _over(source: Image, reduced: set[int]) -> tuple[Reach, Reach]:
    """Windows that are whole axes, of those that go."""
    rows = Reach(source.height, 1, 1, 0) if 0 in reduced else UNIT
    columns = Reach(source.width, 1, 1, 0) if 1 in reduced else UNIT
    return rows, columns


def _added(mean: bool) -> Callable[[Importer, Operator], AnyOperation]:
    """MEAN, or SUM."""

    def make(importer: Importer, operator: Operator) -> AnyOperation:
        source, tensor, image, reduced = _reduction(importer, operator)
        sizes = source.height, source.width, source.channels
        count = math.prod(sizes[axis] for axis in reduced)
        if mean:
            factor = np.atleast_1d(averaging_factor(source.scale, image.scale, count))
        else:
            factor = conversion_factor(source.scale, tensor)
        stage = _stage(tensor, image, factor)
        rows, columns = _over(source, reduced)
        common = operator.index, operator.name, image, source, rows, columns
        if _CHANNELS not in reduced:
            return Channelwise(*common, None, 0, stage)
        weights = np.ones((1, rows.kernel, columns.kernel, source.channels), np.uint8)
        return Convolution(*common, weights, 0, stage)

    return make


def _reduce_max(importer: Importer, operator: Operator) -> AnyOperation:
    source, _, image, reduced = _reduction(importer, operator)
    if _CHANNELS in reduced:
        raise StaysError("the greatest of channels")
    if (source.scale, source.zero_point) != (image.scale, image.zero_point):
        raise StaysError("a maximum in another quantisation")
    rows, columns = _over(source, reduced)
    return Greatest(operator.index, operator.name, image, source, rows, columns, AS_IS)


def _sides_of(importer: Importer, operator: Operator) -> tuple[int, NetworkTensor] | None:
    """Place of the computed operand and the constant one, if that is one value, or one for each
    channel; None if it is another constant, or both are computed."""
    tensors = [importer.tensor(operator, place) for place in range(2)]
    constants = [tensor for tensor in tensors if tensor.constant is not None]
    if not constants:
        return None
    constant = constants[0]
    channels = importer.result(operator)[1].channels
    by_channel = constant.shape[-1:] == (channels,) and constant.size == channels
    if not (by_channel or constant.size == 1):
        return None
    if not constant.quantised:
        raise StaysError("a constant without a scale")
    return tensors.index(constant) ^ 1, constant


def _element_operand(importer: Importer, operator: Operator, place: int, result: Image) -> Image:
    """An operand as an image of the result's shape: repeated or constant where it has to be."""
    tensor = importer.tensor(operator, place)
    if tensor.constant is not None:
        found = _constant_image(importer, operator, tensor)
    else:
        found = importer.source(operator, place)
    sides = result.height, result.width, result.channels
    own = found.height, found.width, found.channels
    if own == sides:
        return found
    if any(mine not in (1, its) for mine, its in zip(own, sides, strict=True)):
        raise StaysError("operands of different shapes")
    if found.channels != result.channels and own[:2] != (1, 1) and found.channels > 1:
        raise StaysError("operands of different shapes")
    image = importer.between(found, sides)
    return importer.first(Repeated(operator.index, operator.name, image, found))


def _constant_image(importer: Importer, operator: Operator, tensor: NetworkTensor) -> Image:
    """A constant operand as an image of its own."""
    assert tensor.constant is not None
    like = _image(tensor)
    values = np.asarray(tensor.constant)
    octets = values.view(np.uint8) ^ np.uint8(SIGN_OFFSET) if like.signed else values
    sides = like.height, like.width, like.channels
    image = importer.between(like, sides)
    filled = Filled(operator.index, operator.name, image, octets.reshape(sides))
    return importer.first(filled)


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
        left, right = (_element_operand(importer, operator, place, image) for place in (0, 1))
        if sign < 0 and left is right:
            raise StaysError("a difference of a tensor and itself")
        if importer.tensor(operator, 1).constant is None:
            first, second, factor = addition_weights(left.scale, right.scale, tensor)
        else:
            # A constant comes first.
            second, first, factor = addition_weights(right.scale, left.scale, tensor)
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
    left, right = _factors(importer, operator, image)
    factor = conversion_factor(left.scale, tensor, np.atleast_1d(right.scale))
    stage = _stage(tensor, image, factor, activation=_activation(operator))
    return Product(operator.index, operator.name, image, (left, right), stage)


def _factors(importer: Importer, operator: Operator, result: Image) -> tuple[Image, Image]:
    """The operands of a product: one pixel may be the second one for all of the first."""
    tensors = [importer.tensor(operator, place) for place in (0, 1)]
    for place, tensor in enumerate(tensors):
        if tensor.constant is not None or result.is_vector:
            continue
        single = importer.source(operator, place)
        if single.is_vector and single.channels == result.channels:
            return _element_operand(importer, operator, 1 - place, result), single
    left, right = (_element_operand(importer, operator, place, result) for place in (0, 1))
    return left, right


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


def _leaky_relu(importer: Importer, operator: Operator) -> AnyOperation:
    """A slope for each sign: a table of two lines, of which the argument is the sum itself."""
    source = importer.source(operator)
    tensor, image = importer.result(operator)
    slope = np.array([float(operator.options.get("alpha", 0.0))], np.float32)
    slopes = (
        conversion_factor(source.scale, tensor, slope)[0],
        _requantising(source, tensor, image, "NONE").factors[0],
    )
    stage = OutputStage(
        np.ones(1, np.float32),
        np.zeros(1, np.int32),
        np.float32(-_BYTE_SPAN),
        np.float32(_BYTE_SPAN),
        image.zero_point,
        two_slopes(*slopes),
    )
    return Channelwise(operator.index, operator.name, image, source, UNIT, UNIT, None, 0, stage)


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
    if len(operator.outputs) == 1:
        importer.alias(operator, data)
        return None
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
    if sides[0].any() or (sides < 0).any():
        raise StaysError("padding of images")
    rows, columns = (Reach(1, 1, 1, int(before)) for before, _ in sides[1:3])
    stage = _stage(importer.result(operator)[0], image, np.float32(1))
    number, name = operator.index, operator.name
    if not sides[3].any():
        return Channelwise(number, name, image, source, rows, columns, None, 0, stage)
    if sides[1:3].any():
        pixels = importer.between(source, (image.height, image.width, source.channels))
        padded = Channelwise(number, name, pixels, source, rows, columns, None, 0, stage)
        source = importer.first(padded)
    return Slice(number, name, image, source, -int(sides[3][0]), stage)


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
    "LEAKY_RELU": _leaky_relu,
    "LOGISTIC": _function("sigmoid"),
    "MAX_POOL_2D": _max_pool_2d,
    "MEAN": _added(mean=True),
    "MUL": _mul,
    "PAD": _pad,
    "QUANTIZE": _requantise("NONE"),
    "REDUCE_MAX": _reduce_max,
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
    "SUM": _added(mean=False),
    "TANH": _function("tanh"),
    "SQUEEZE": _view,
    "TRANSPOSE": _transpose,
    "TRANSPOSE_CONV": _transpose_conv,
}
