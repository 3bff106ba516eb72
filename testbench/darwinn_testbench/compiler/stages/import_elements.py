"""Operations of operators that work on each element, and of reductions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from darwinn_reference.tflite.factors import (
    addition_weights,
    averaging_factor,
    constant_term,
    conversion_factor,
    difference_weights,
    root_unit,
)
from darwinn_reference.tflite.graph import NetworkTensor, Operator
from darwinn_reference.tflite.output_stage import reciprocal
from darwinn_reference.tflite.softmax import DifferenceUnit
from numpy.typing import NDArray

from darwinn_testbench.compiler.parameters import SIGN_OFFSET
from darwinn_testbench.compiler.stages.operands import (
    BYTE_SPAN,
    CHANNELS,
    SIDES,
    Operands,
    StaysError,
    activation_of,
    image_of,
    requantising,
    stage_of,
)
from darwinn_testbench.compiler.stages.operations import (
    UNIT,
    AnyOperation,
    Channelwise,
    Convolution,
    Filled,
    Greatest,
    Image,
    OutputStage,
    Product,
    Reach,
    Repeated,
    Softmax,
    UnitVector,
    WeightedSum,
)
from darwinn_testbench.compiler.stages.rows import AS_IS
from darwinn_testbench.compiler.stages.tables import FUNCTIONS, parabola, table_of, two_slopes

_PART_OF_A_STEP = 0.25
"""So much above a byte is rounded to it, by far."""


def _reduction(
    importer: Operands, operator: Operator
) -> tuple[Image, NetworkTensor, Image, set[int]]:
    """Source, result as tensor and as image, and the axes that go: rows 0 to channels 2."""
    source = importer.source(operator)
    tensor, image = importer.result(operator)
    axes = importer.tensor(operator, 1).constant
    rank = len(importer.tensor(operator, 0).shape)
    if axes is None:
        raise StaysError("axes are not constant")
    reduced = {int(axis) % rank - rank + SIDES for axis in np.asarray(axes).reshape(-1)}
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


def added(mean: bool) -> Callable[[Operands, Operator], AnyOperation]:
    """MEAN, or SUM."""

    def make(importer: Operands, operator: Operator) -> AnyOperation:
        source, tensor, image, reduced = _reduction(importer, operator)
        sizes = source.height, source.width, source.channels
        count = math.prod(sizes[axis] for axis in reduced)
        if mean:
            factor = np.atleast_1d(averaging_factor(source.scale, image.scale, count))
        else:
            factor = conversion_factor(source.scale, tensor)
        stage = stage_of(tensor, image, factor)
        rows, columns = _over(source, reduced)
        common = operator.index, operator.name, image, source, rows, columns
        if CHANNELS not in reduced:
            return Channelwise(*common, None, 0, stage)
        weights = np.ones((1, rows.kernel, columns.kernel, source.channels), np.uint8)
        return Convolution(*common, weights, 0, stage)

    return make


def reduce_max(importer: Operands, operator: Operator) -> AnyOperation:
    """REDUCE_MAX over rows and columns."""
    source, _, image, reduced = _reduction(importer, operator)
    if CHANNELS in reduced:
        raise StaysError("the greatest of channels")
    if (source.scale, source.zero_point) != (image.scale, image.zero_point):
        raise StaysError("a maximum in another quantisation")
    rows, columns = _over(source, reduced)
    return Greatest(operator.index, operator.name, image, source, rows, columns, AS_IS)


def sides_of(importer: Operands, operator: Operator) -> tuple[int, NetworkTensor] | None:
    """Place of the computed operand and the constant one, if that is one value, or one for each
    channel; None if it is another constant, or both are computed."""
    tensors = [importer.tensor(operator, place) for place in range(2)]
    constants = [tensor for tensor in tensors if tensor.constant is not None]
    if not constants:
        return None
    constant = constants[0]
    channels = importer.result(operator)[1].channels
    computed = tensors[tensors.index(constant) ^ 1]
    by_channel = constant.shape[-1:] == (channels,) and constant.size == channels
    by_channel = by_channel and computed.shape[-1:] == (channels,)
    if not (by_channel or constant.size == 1):
        return None
    if not constant.quantised:
        raise StaysError("a constant without a scale")
    return tensors.index(constant) ^ 1, constant


def real_values(constant: NetworkTensor) -> NDArray[np.float32]:
    """Real values of a constant, one after another."""
    levels = np.asarray(constant.constant).astype(np.int64) - constant.zero_point[0]
    real: NDArray[np.float32] = levels.astype(np.float32).reshape(-1) * constant.scale[0]
    return real


def element_operand(importer: Operands, operator: Operator, place: int, result: Image) -> Image:
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


def _constant_image(importer: Operands, operator: Operator, tensor: NetworkTensor) -> Image:
    """A constant operand as an image of its own."""
    assert tensor.constant is not None
    like = image_of(tensor)
    values = np.asarray(tensor.constant)
    signed = tensor.dtype == np.int8
    octets = values.view(np.uint8) ^ np.uint8(SIGN_OFFSET) if signed else values
    sides = like.height, like.width, like.channels
    image = importer.between(like, sides)
    filled = Filled(operator.index, operator.name, image, octets.reshape(sides))
    return importer.first(filled)


def _by_channel(
    importer: Operands,
    operator: Operator,
    place: int,
    factors: NDArray[np.float32],
    bias: NDArray[np.int32],
) -> AnyOperation:
    """A layer of weights 1, with a factor and a bias for each channel."""
    tensor, image = importer.result(operator)
    source = importer.source(operator, place)
    if source.sides != image.sides:
        raise StaysError("an operand that is repeated")
    stage = stage_of(tensor, image, factors, bias, activation_of(operator))
    zero = 0
    weights = np.ones((1, 1, image.channels), np.uint8)
    return Channelwise(
        operator.index, operator.name, image, source, UNIT, UNIT, weights, zero, stage
    )


def addition(sign: int) -> Callable[[Operands, Operator], AnyOperation]:
    """ADD, and SUB with a ``sign`` of -1."""

    def make(importer: Operands, operator: Operator) -> AnyOperation:
        tensor, image = importer.result(operator)
        sides = sides_of(importer, operator)
        if sides is not None:
            place, constant = sides
            signs = (1, sign) if place == 0 else (sign, 1)
            source = importer.source(operator, place)
            levels = np.asarray(constant.constant).astype(np.int64) - constant.zero_point[0]
            steps = constant_term(levels.reshape(-1), constant.scale[0], source.scale)
            factors = conversion_factor(source.scale, tensor)
            # What is subtracted has a factor less than 0, and weights of 1, as in public programs.
            bias = (signs[0] * signs[1] * steps).astype(np.int32)
            return _by_channel(importer, operator, place, np.float32(signs[0]) * factors, bias)
        left, right = (element_operand(importer, operator, place, image) for place in (0, 1))
        if sign < 0 and left is right:
            raise StaysError("a difference of a tensor and itself")
        if importer.tensor(operator, 1).constant is None:
            first, second, factor = addition_weights(left.scale, right.scale, tensor)
        else:
            # A constant comes first.
            second, first, factor = addition_weights(right.scale, left.scale, tensor)
        weights = first, sign * second
        term = -(left.zero_point * weights[0] + right.zero_point * weights[1])
        stage = stage_of(tensor, image, factor, term, activation_of(operator))
        return WeightedSum(operator.index, operator.name, image, (left, right), weights, stage)

    return make


def squared_difference(importer: Operands, operator: Operator) -> AnyOperation:
    """SQUARED_DIFFERENCE: the sum of a difference, with a table that is a parabola."""
    tensor, image = importer.result(operator)
    if any(importer.tensor(operator, place).constant is not None for place in (0, 1)):
        raise StaysError("a constant operand")
    left, right = (element_operand(importer, operator, place, image) for place in (0, 1))
    if left is right:
        raise StaysError("a difference of a tensor and itself")
    if image.zero_point:
        raise StaysError("a square whose least value is not 0")
    first, second, unit = difference_weights(left.scale, right.scale, tensor)
    factor = reciprocal(image.scale)
    # Beyond the greatest byte the table would go on: the difference ends where it is reached.
    greatest = np.sqrt(np.float32(BYTE_SPAN + _PART_OF_A_STEP) / factor)
    stage = OutputStage(
        np.atleast_1d(unit),
        np.atleast_1d(np.int32(second * right.zero_point - first * left.zero_point)),
        -greatest,
        greatest,
        image.zero_point,
        parabola(factor),
    )
    weights = first, -second
    return WeightedSum(operator.index, operator.name, image, (left, right), weights, stage)


def multiplication(importer: Operands, operator: Operator) -> AnyOperation:
    """MUL."""
    tensor, image = importer.result(operator)
    sides = sides_of(importer, operator)
    if sides is not None:
        place, constant = sides
        source = importer.source(operator, place)
        factors = conversion_factor(source.scale, tensor, real_values(constant))
        return _by_channel(importer, operator, place, factors, np.zeros(1, np.int32))
    left, right = _factors(importer, operator, image)
    factor = conversion_factor(left.scale, tensor, np.atleast_1d(right.scale))
    stage = stage_of(tensor, image, factor, activation=activation_of(operator))
    return Product(operator.index, operator.name, image, (left, right), stage)


def _factors(importer: Operands, operator: Operator, result: Image) -> tuple[Image, Image]:
    """The operands of a product: one pixel may be the second one for all of the first."""
    tensors = [importer.tensor(operator, place) for place in (0, 1)]
    for place, tensor in enumerate(tensors):
        if tensor.constant is not None or result.is_vector:
            continue
        single = importer.source(operator, place)
        if single.is_vector and single.channels == result.channels:
            return element_operand(importer, operator, 1 - place, result), single
    left, right = (element_operand(importer, operator, place, result) for place in (0, 1))
    return left, right


def function_of(name: str) -> Callable[[Operands, Operator], AnyOperation]:
    """A function of each element, by its table; beyond its ends it does not change."""
    function = FUNCTIONS[name]
    first = -function.last if function.odd else function.first

    def make(importer: Operands, operator: Operator) -> AnyOperation:
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


_FAR = np.float32(2.0**60)
"""Beyond every argument of a root, and one by it below every one above 0."""


def inverse_root(importer: Operands, operator: Operator) -> AnyOperation:
    """RSQRT, by the table of its function from 1 to 4; of 0 and below the greatest byte.

    Its result has bytes, as in the vendor's transformers.
    """
    source = importer.source(operator)
    _, image = importer.result(operator)
    stage = OutputStage(
        np.atleast_1d(source.scale),
        np.zeros(1, np.int32),
        1 / _FAR,
        _FAR,
        image.zero_point,
        table_of("inverse root", float(np.float32(1) / image.scale)),
    )
    return Channelwise(operator.index, operator.name, image, source, UNIT, UNIT, None, 0, stage)


def leaky_relu(importer: Operands, operator: Operator) -> AnyOperation:
    """A slope for each sign: a table of two lines, of which the argument is the sum itself."""
    source = importer.source(operator)
    tensor, image = importer.result(operator)
    slope = np.array([float(operator.options.get("alpha", 0.0))], np.float32)
    slopes = (
        conversion_factor(source.scale, tensor, slope)[0],
        requantising(source, tensor, image, "NONE").factors[0],
    )
    stage = OutputStage(
        np.ones(1, np.float32),
        np.zeros(1, np.int32),
        np.float32(-BYTE_SPAN),
        np.float32(BYTE_SPAN),
        image.zero_point,
        two_slopes(*slopes),
    )
    return Channelwise(operator.index, operator.name, image, source, UNIT, UNIT, None, 0, stage)


def softmax(importer: Operands, operator: Operator) -> AnyOperation:
    """SOFTMAX of a vector, or of each pixel."""
    source = importer.source(operator)
    _, image = importer.result(operator)
    if not source.is_vector and source.sides != image.sides:
        raise StaysError("a result of another shape")
    if source.channels == 1:
        raise StaysError("a softmax of one element")
    if image.scale != np.float32(1 / 256) or image.zero_point:
        raise StaysError("a softmax whose result is not 0 to 255/256")
    beta = float(operator.options.get("beta", 1.0))
    unit = DifferenceUnit.of(source.scale, source.zero_point, beta)
    return Softmax(operator.index, operator.name, image, source, unit.factor, unit.scale)


def l2_normalization(importer: Operands, operator: Operator) -> AnyOperation:
    """L2_NORMALIZATION of a vector."""
    source = importer.source(operator)
    tensor, image = importer.result(operator)
    if not source.is_vector:
        raise StaysError("a normalisation of several vectors")
    if source.channels != source.pitch:
        raise StaysError("a vector of another length than a multiple of four")
    unit = root_unit(source.scale)
    square = source.scale * source.scale
    # A vector of no length has the root of the least length.
    root = OutputStage(
        np.atleast_1d(square),
        np.zeros(1, np.int32),
        square,
        np.float32(np.inf),
        0,
        table_of("inverse root", float(np.float32(1) / unit)),
        wide=True,
    )
    factor = conversion_factor(source.scale, tensor, np.atleast_1d(unit))
    stage = stage_of(tensor, image, factor, activation=activation_of(operator))
    return UnitVector(operator.index, operator.name, image, source, root, stage)


def requantise(activation: str) -> Callable[[Operands, Operator], AnyOperation | None]:
    """An operator that works on each element: bounds, or another quantisation.

    It may change no byte: int8 and uint8 are the same bytes on the chip, and bounds may hold all.
    """

    def make(importer: Operands, operator: Operator) -> AnyOperation | None:
        given = importer.image(operator.inputs[0])
        tensor, image = importer.result(operator)
        stage = requantising(given, tensor, image, activation)
        if stage.keeps_bytes(given.zero_point):
            importer.alias(operator)
            return None
        source = importer.source(operator)
        return Channelwise(operator.index, operator.name, image, source, UNIT, UNIT, None, 0, stage)

    return make
