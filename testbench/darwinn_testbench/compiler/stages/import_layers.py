"""Operations of layers with windows: convolutions, dense layers, pools."""

from __future__ import annotations

import math

import numpy as np
from darwinn_reference.tflite.factors import (
    conversion_factor,
)
from darwinn_reference.tflite.graph import ABSENT, Operator
from darwinn_reference.tflite.layers import Axis, window_axes
from darwinn_reference.tflite.output_stage import clip_bounds
from darwinn_sim import chip
from numpy.typing import NDArray

from darwinn_testbench.compiler.parameters import SIGN_OFFSET
from darwinn_testbench.compiler.stages.operands import (
    BYTE_SPAN,
    Operands,
    StaysError,
    activation_of,
    reach_of,
    stage_of,
    unchanged,
)
from darwinn_testbench.compiler.stages.operations import (
    UNIT,
    AnyOperation,
    BorderAverage,
    Channelwise,
    Convolution,
    Greatest,
    Image,
    MatrixProduct,
    OutputStage,
    Reach,
    Slice,
    Spacing,
    TransposedConvolution,
)


def _weights(importer: Operands, operator: Operator, axis: int) -> tuple[NDArray[np.uint8], int]:
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
    importer: Operands, operator: Operator, channels: int, place: int = 2
) -> NDArray[np.int32]:
    if len(operator.inputs) <= place or operator.inputs[place] == ABSENT:
        return np.zeros(channels, np.int32)
    values = importer.tensor(operator, place).constant
    if values is None or values.dtype != np.int32 or values.size != channels:
        raise StaysError("the bias is not one constant int32 for a channel")
    return np.asarray(values).reshape(-1)


def _layer_stage(
    importer: Operands, operator: Operator, source: Image, image: Image, channels: int
) -> OutputStage:
    """Output stage of a layer with weights."""
    tensor = importer.network.tensors[operator.outputs[0]]
    factors = conversion_factor(source.scale, tensor, importer.tensor(operator, 1).scale)
    bias = _bias(importer, operator, channels)
    return stage_of(tensor, image, factors, bias, activation_of(operator))


def conv_2d(importer: Operands, operator: Operator) -> AnyOperation:
    """CONV_2D."""
    framed = importer.window_source(operator)
    source = framed.image
    _, height, width, _ = importer.tensor(operator, 1).shape
    reaches = framed.reaches(window_axes(operator.options, framed.sides, (height, width)))
    return convolved(importer, operator, source, importer.result(operator)[1], reaches)


Reaches = tuple[Reach, Reach]
"""Windows along rows and columns."""


def convolved(
    importer: Operands, operator: Operator, source: Image, image: Image, reaches: Reaches
) -> AnyOperation:
    """CONV_2D of an image, with windows of any reach."""
    weights, zero_point = _weights(importer, operator, 0)
    channels, *_, depth = weights.shape
    if depth != source.channels:
        raise StaysError("groups of channels")
    stage = _layer_stage(importer, operator, source, image, channels)
    if image.is_vector and source.pixels * source.pitch > _MOST_WHOLE:
        source, reaches = _thinned(importer, operator, source, reaches)
    return Convolution(
        operator.index, operator.name, image, source, *reaches, weights, zero_point, stage
    )


_MOST_WHOLE = chip.NARROW_BYTES // 4
"""Bytes of an image that all tiles get as a whole without a look at how much of it is needed."""


def _thinned(
    importer: Operands, operator: Operator, source: Image, reaches: tuple[Reach, Reach]
) -> tuple[Image, tuple[Reach, Reach]]:
    """A large image without most of the rows and columns that a single result does not meet.

    Where it meets one alone, each part of the grid keeps one, so that none has to travel.
    """
    kept, left = [], []
    for reach, size, parts in zip(
        reaches, (source.height, source.width), (chip.GRID_ROWS, chip.GRID_COLUMNS), strict=True
    ):
        step = -(-size // parts)
        if reach.span > 1 or not 0 <= reach.first(0) < size or step == 1:
            kept.append((size, UNIT))
            left.append(reach)
            continue
        place, first = divmod(reach.first(0), step)
        kept.append((-(-(size - first) // step), Reach(1, step, 1, -first)))
        left.append(Reach(1, 1, 1, -place))
    (height, rows), (width, columns) = kept
    if (height, width) == (source.height, source.width):
        return source, reaches
    image = importer.between(source, (height, width, source.channels))
    number, name, stage = operator.index, operator.name, unchanged(source)
    cut = Channelwise(number, name, image, source, rows, columns, None, 0, stage)
    return importer.first(cut), (left[0], left[1])


def depthwise_conv_2d(importer: Operands, operator: Operator) -> AnyOperation:
    """DEPTHWISE_CONV_2D."""
    framed = importer.window_source(operator)
    _, height, width, _ = importer.tensor(operator, 1).shape
    reaches = framed.reaches(window_axes(operator.options, framed.sides, (height, width)))
    image = importer.result(operator)[1]
    return convolved_depthwise(importer, operator, framed.image, image, reaches)


def convolved_depthwise(
    importer: Operands, operator: Operator, source: Image, image: Image, reaches: Reaches
) -> AnyOperation:
    """DEPTHWISE_CONV_2D of an image, with several results of a channel as a convolution."""
    weights, zero_point = _weights(importer, operator, 3)
    _, height, width, channels = weights.shape
    if channels % source.channels:
        raise StaysError("output channels are no multiple of input channels")
    common = operator.index, operator.name, image, source, *reaches
    stage = _layer_stage(importer, operator, source, image, channels)
    multiplier = channels // source.channels
    if multiplier == 1:
        return Channelwise(*common, weights[0], zero_point, stage)
    # Each channel has several results: a convolution whose other weights are their zero point.
    full = np.full((channels, height, width, source.channels), zero_point, np.uint8)
    outputs = np.arange(channels)
    full[outputs, :, :, outputs // multiplier] = weights[0].transpose(2, 0, 1)
    return Convolution(*common, full, zero_point, stage)


def transpose_conv(importer: Operands, operator: Operator) -> AnyOperation:
    """TRANSPOSE_CONV."""
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
        stage_of(tensor, image, factors, bias, activation_of(operator)),
    )


def fully_connected(importer: Operands, operator: Operator) -> AnyOperation:
    """FULLY_CONNECTED, of all elements or of each vector."""
    if operator.options.get("weights_format", "DEFAULT") != "DEFAULT":
        raise StaysError("another format of weights")
    tensor = importer.tensor(operator, 0)
    if tensor.constant is not None:
        raise StaysError("a constant operand")
    source = importer.image(tensor.index)
    if importer.tensor(operator, 1).constant is None:
        return _matrix_product(importer, operator)
    weights, zero_point = _weights(importer, operator, 0)
    channels, depth = weights.shape
    if depth != source.pixels * source.channels:
        return _several_vectors(importer, operator, weights, zero_point)
    shape = (channels, source.height, source.width, source.channels)
    image = importer.result(operator)[1]
    return Convolution(
        operator.index,
        operator.name,
        image,
        source,
        Reach(source.height, 1, 1, 0),
        Reach(source.width, 1, 1, 0),
        weights.reshape(shape),
        zero_point,
        _layer_stage(importer, operator, source, image, channels),
    )


def _matrix_product(importer: Operands, operator: Operator) -> AnyOperation:
    """A dense layer of which the weights are computed, too."""
    left, right = (importer.source(operator, place) for place in (0, 1))
    image = importer.result(operator)[1]
    if left.channels != right.channels:
        raise StaysError("vectors of two lengths")
    if left.is_vector or right.is_vector:
        raise StaysError("a single vector times what is computed")
    sides = left.height, left.width, right.pixels
    if image.pixels * image.channels != math.prod(sides):
        raise StaysError("vectors of another length")
    if (image.height, image.width, image.channels) != sides:
        image = importer.seen_as(image.index, sides)
    stage = _layer_stage(importer, operator, left, image, right.pixels)
    sources = _in_words(importer, operator, left), _in_words(importer, operator, right)
    return MatrixProduct(operator.index, operator.name, image, sources, stage)


def _in_words(importer: Operands, operator: Operator, source: Image) -> Image:
    """An image with zero points behind its channels, up to a whole word."""
    if source.channels == source.pitch:
        return source
    image = importer.between(source, (source.height, source.width, source.pitch))
    return importer.first(Slice(operator.index, operator.name, image, source, 0, unchanged(source)))


def _several_vectors(
    importer: Operands, operator: Operator, weights: NDArray[np.uint8], zero_point: int
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
        _layer_stage(importer, operator, source, image, channels),
    )


def average_pool_2d(importer: Operands, operator: Operator) -> AnyOperation:
    """AVERAGE_POOL_2D."""
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
    weighted = all(common // size <= BYTE_SPAN for size in sizes)
    shares = {}
    for size in sizes:
        unit = np.atleast_1d(np.float32(1) / np.float32(common if weighted else size))
        factor = conversion_factor(source.scale, tensor, unit)
        stage = stage_of(tensor, image, factor, activation=activation_of(operator))
        shares[size] = common // size if weighted else 1, stage
    rows, columns = reach_of(axes[0]), reach_of(axes[1])
    number, name = operator.index, operator.name
    if image.is_vector or sizes == {math.prod(kernel)}:
        rows, columns = (
            _clipped(reach, each) for reach, each in zip((rows, columns), counts, strict=True)
        )
        ((_, stage),) = shares.values()
        return Channelwise(number, name, image, source, rows, columns, None, 0, stage)
    common_fields = number, name, image, source, rows, columns, None, 0, stage
    return BorderAverage(*common_fields, counts[0], counts[1], shares)


def _inside(axis: Axis, size: int) -> tuple[int, ...]:
    """How many elements of each window along an axis are within the image."""
    reach = reach_of(axis)
    return tuple(
        min(reach.first(index) + axis.kernel, size) - max(reach.first(index), 0)
        for index in range(axis.outputs)
    )


def _clipped(reach: Reach, counts: tuple[int, ...]) -> Reach:
    """A window that may be over the border in its only place: the part of it within the image."""
    if counts[0] == reach.kernel:
        return reach
    return Reach(counts[0], reach.stride, 1, min(reach.before, 0))


def max_pool_2d(importer: Operands, operator: Operator) -> AnyOperation:
    """MAX_POOL_2D."""
    source = importer.source(operator)
    tensor, image = importer.result(operator)
    kernel = tuple(int(operator.options.get(f"filter_{name}", 1)) for name in ("height", "width"))
    rows, columns = window_axes(operator.options, (source.height, source.width), kernel)
    if (source.scale, source.zero_point) != (image.scale, image.zero_point):
        raise StaysError("a maximum in another quantisation")
    low, high = clip_bounds(tensor, activation_of(operator))
    zero = np.float32(image.zero_point)
    stage = OutputStage(np.ones(1, np.float32), np.zeros(1, np.int32), low + zero, high + zero, 0)
    return Greatest(
        operator.index, operator.name, image, source, reach_of(rows), reach_of(columns), stage
    )
