"""Operations of operators that make batches of an image: dilated convolutions of TensorFlow.

SPACE_TO_BATCH_ND makes an image of each place of a block, a convolution reads these images, and
BATCH_TO_SPACE_ND puts its results together. In the integers that is a convolution whose windows
have gaps. What is padded are zero points, which windows find beyond an image anyway.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from darwinn_reference.tflite.graph import NetworkTensor, Operator
from darwinn_reference.tflite.layers import Axis, window_axes
from numpy.typing import NDArray

from darwinn_testbench.compiler.stages.import_layers import convolved, convolved_depthwise
from darwinn_testbench.compiler.stages.operands import IMAGE_RANK, Operands, StaysError
from darwinn_testbench.compiler.stages.operations import AnyOperation, Reach

_CONVOLUTIONS = {"CONV_2D": convolved, "DEPTHWISE_CONV_2D": convolved_depthwise}


def dilated_convolution(importer: Operands, operator: Operator) -> AnyOperation:
    """SPACE_TO_BATCH_ND, a convolution and BATCH_TO_SPACE_ND, which are one operation."""
    layer, back = _behind(importer, operator)
    (blocks, pads), (others, crops) = (_numbers(importer, each) for each in (operator, back))
    if not np.array_equal(blocks, others):
        raise StaysError("batches of other blocks than they are made of")
    tensors = importer.network.tensors
    ends = (importer.tensor(operator, 0), tensors[layer.outputs[0]])
    for before, after in zip(ends, (operator, back), strict=True):
        if not _same(before, tensors[after.outputs[0]]):
            raise StaysError("batches in another quantisation")
    source, image = importer.source(operator), importer.image(back.outputs[0])
    _, height, width, _ = tensors[operator.outputs[0]].shape
    _, *kernel, _ = importer.tensor(layer, 1).shape
    axes = window_axes(layer.options, (height, width), (kernel[0], kernel[1]))
    rows, columns = _reaches(axes, blocks, pads, crops)
    made = _CONVOLUTIONS[layer.name](importer, layer, source, image, (rows, columns))
    importer.merge(layer, back)
    return made


def _behind(importer: Operands, operator: Operator) -> tuple[Operator, Operator]:
    """The convolution that reads the batches, and what makes an image of its results."""
    layer = importer.only_reader(operator.outputs[0])
    if layer is None or layer.name not in _CONVOLUTIONS:
        raise StaysError("batches that no convolution alone reads")
    back = importer.only_reader(layer.outputs[0])
    if back is None or back.name != "BATCH_TO_SPACE_ND" or layer.inputs[0] != operator.outputs[0]:
        raise StaysError("results in batches that stay batches")
    return layer, back


def _numbers(importer: Operands, operator: Operator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sides of a block, and amounts before and behind along both axes."""
    if len(importer.network.tensors[operator.outputs[0]].shape) != IMAGE_RANK:
        raise StaysError("batches of another rank")
    found = [importer.tensor(operator, place).constant for place in (1, 2)]
    sizes = [0 if each is None else each.size for each in found]
    if sizes != [2, 4]:
        raise StaysError("blocks that are not two constants")
    blocks, amounts = (np.asarray(each, np.int64) for each in found)
    return blocks.reshape(2), amounts.reshape(2, 2)


def _same(one: NetworkTensor, other: NetworkTensor) -> bool:
    return one.dtype == other.dtype and one.quantisation == other.quantisation


def _reaches(
    axes: tuple[Axis, Axis],
    blocks: NDArray[np.int64],
    pads: NDArray[np.int64],
    crops: NDArray[np.int64],
) -> Iterator[Reach]:
    """Windows in the image, whose elements are a block apart."""
    for axis, block, (padded, _), (cropped, _) in zip(axes, blocks, pads, crops, strict=True):
        if axis.stride > 1:
            raise StaysError("a stride between batches")
        before = axis.before * int(block) + int(padded) - int(cropped)
        yield Reach(axis.kernel, 1, axis.dilation * int(block), before)
