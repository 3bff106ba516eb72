"""Operations of PRELU, MAXIMUM and MINIMUM: the chip has no instruction for them.

Each becomes bounded parts and a sum of them. The parts are rounded as the reference rounds them
(``darwinn_reference.tflite.operators``), and ``verify`` has their numbers in the same steps
(``proof.terms``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from darwinn_reference.tflite.factors import MIDDLE, conversion_factor, halved_difference
from darwinn_reference.tflite.graph import NetworkTensor, Operator
from darwinn_reference.tflite.output_stage import output_stage
from numpy.typing import NDArray

from darwinn_testbench.compiler.stages.import_elements import (
    element_operand,
    real_values,
    sides_of,
)
from darwinn_testbench.compiler.stages.operands import (
    BYTE_SPAN,
    Operands,
    StaysError,
    requantising,
    stage_of,
)
from darwinn_testbench.compiler.stages.operations import (
    UNIT,
    AnyOperation,
    Channelwise,
    Image,
    OutputStage,
    WeightedSum,
)


def _like(importer: Operands, like: Image) -> Image:
    """An image between operations with the sides and the quantisation of another one."""
    return importer.between(like, (like.height, like.width, like.channels))


def _scaled(operator: Operator, image: Image, source: Image, stage: OutputStage) -> Channelwise:
    """Each element times a factor, which may be that of its channel."""
    weights = None if stage.is_uniform else np.ones((1, 1, image.channels), np.uint8)
    return Channelwise(operator.index, operator.name, image, source, UNIT, UNIT, weights, 0, stage)


def prelu(importer: Operands, operator: Operator) -> AnyOperation:
    """PRELU: what is above 0, and what is below it times the slope of its channel, added up.

    Both parts are bytes of the result's quantisation. The negative values are bytes of their own
    before they are multiplied.
    """
    source = importer.source(operator)
    tensor, image = importer.result(operator)
    sides = sides_of(importer, operator)
    if sides is None or sides[0] != 0:
        raise StaysError("slopes of each element")
    above = stage_of(tensor, image, conversion_factor(source.scale, tensor))
    positive = importer.first(
        _scaled(operator, _like(importer, image), source, replace(above, low=np.float32(0)))
    )
    # Bytes above 0 are 0 here, in the quantisation of the input.
    same = importer.network.tensors[operator.inputs[0]]
    least = stage_of(same, source, conversion_factor(source.scale, same))
    capped = importer.first(
        _scaled(operator, _like(importer, source), source, replace(least, high=np.float32(0)))
    )
    slopes = conversion_factor(source.scale, tensor, real_values(sides[1]))
    below = stage_of(tensor, image, slopes)
    negative = importer.first(_scaled(operator, _like(importer, image), capped, below))
    return _weighted(operator, image, (positive, negative), (1, 1), _own_factor(tensor), tensor)


def _own_factor(tensor: NetworkTensor) -> NDArray[np.float32]:
    """The factor from a scale to itself, which may be off 1 by the last bit."""
    return conversion_factor(np.float32(tensor.scale[0]), tensor)


def _weighted(
    operator: Operator,
    image: Image,
    sources: tuple[Image, Image],
    weights: tuple[int, int],
    factor: NDArray[np.float32],
    tensor: NetworkTensor,
) -> WeightedSum:
    """A sum of two images in the quantisation of a tensor."""
    term = -sum(each.zero_point * weight for each, weight in zip(sources, weights, strict=True))
    stage = stage_of(tensor, image, factor, term)
    return WeightedSum(operator.index, operator.name, image, sources, weights, stage)


def extreme(*, greatest: bool) -> Callable[[Operands, Operator], AnyOperation]:
    """MAXIMUM, or MINIMUM."""

    def make(importer: Operands, operator: Operator) -> AnyOperation:
        constants = [importer.tensor(operator, place).constant is not None for place in (0, 1)]
        single = [importer.tensor(operator, place).size == 1 for place in (0, 1)]
        for place in (0, 1):
            if constants[place] and single[place]:
                return _bounded(importer, operator, place, greatest=greatest)
        return _of_two(importer, operator, greatest=greatest, computed=not any(constants))

    return make


def _bounded(importer: Operands, operator: Operator, place: int, *, greatest: bool) -> AnyOperation:
    """One number is a bound of the other operand."""
    source = importer.source(operator, 1 - place)
    tensor, image = importer.result(operator)
    if source.sides != image.sides:
        raise StaysError("an operand that is repeated")
    stage = requantising(source, tensor, image, "NONE")
    bound = np.float32(_level(importer.tensor(operator, place), tensor))
    stage = replace(stage, low=bound) if greatest else replace(stage, high=bound)
    return _scaled(operator, image, source, stage)


def _level(constant: NetworkTensor, tensor: NetworkTensor) -> int:
    """A constant of one element in steps of a tensor from its zero point, as its bytes hold it."""
    if constant.constant is None or not constant.quantised:
        raise StaysError("a constant without a scale")
    centred = np.asarray(constant.constant).astype(np.int64).reshape(-1) - constant.zero_point[0]
    factor = np.ones(1, np.float32)
    if constant.scale[0] != tensor.scale[0]:
        factor = conversion_factor(constant.scale[0], tensor)
    return int(output_stage(centred, factor, tensor)[0]) - int(tensor.zero_point[0])


def _of_two(
    importer: Operands, operator: Operator, *, greatest: bool, computed: bool
) -> AnyOperation:
    """One operand, and what the other one has more or less of it.

    The vendor's compiler makes a maximum of two tensors in steps of two, and so does the reference.
    """
    tensor, image = importer.result(operator)
    left, right = (element_operand(importer, operator, place, image) for place in (0, 1))
    if left is right:
        raise StaysError("an extreme of a tensor and itself")
    alike = all(_quantisation(each) == _quantisation(image) for each in (left, right))
    halved = greatest and computed and alike
    first, second = (_in_units_of(importer, operator, each, image) for each in (left, right))
    one = np.ones(1, np.float32)
    if halved:
        factor, most = halved_difference(left.scale)
        less = replace(_like(importer, image), zero_point=MIDDLE)
        stage = OutputStage(
            np.atleast_1d(factor), np.zeros(1, np.int32), -most, np.float32(0), MIDDLE
        )
        _difference(importer, operator, less, (second, first), stage)
        return _weighted(operator, image, (second, less), (1, -2), one, tensor)
    more = replace(_like(importer, image), zero_point=0)
    stage = OutputStage(one, np.zeros(1, np.int32), np.float32(0), np.float32(BYTE_SPAN), 0)
    _difference(importer, operator, more, (first, second), stage)
    if greatest:
        return _weighted(operator, image, (second, more), (1, 1), one, tensor)
    return _weighted(operator, image, (first, more), (1, -1), one, tensor)


def _difference(
    importer: Operands,
    operator: Operator,
    image: Image,
    sources: tuple[Image, Image],
    stage: OutputStage,
) -> None:
    """What the first of two images of the same quantisation has more than the second one."""
    importer.first(WeightedSum(operator.index, operator.name, image, sources, (1, -1), stage))


def _quantisation(image: Image) -> tuple[float, int]:
    return float(image.scale), image.zero_point


def _in_units_of(importer: Operands, operator: Operator, source: Image, result: Image) -> Image:
    """An operand as bytes of the result's quantisation."""
    if _quantisation(source) == _quantisation(result):
        return source
    tensor = importer.network.tensors[operator.outputs[0]]
    stage = requantising(source, tensor, result, "NONE")
    return importer.first(_scaled(operator, _like(importer, result), source, stage))
