"""Operators of damaged models: operands and results whose shapes do not fit each other.

The stages take the shapes of a file for granted. What follows from options and operands is found
here first, and an operator whose result has another shape stays on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.graph import ABSENT, Network, NetworkTensor, Operator
from darwinn_reference.tflite.layers import window_axes
from darwinn_reference.tflite.output_stage import NotComputableError
from darwinn_reference.tflite.reductions import from_the_front
from darwinn_reference.tflite.rules import Terms, rule_of

Shape = tuple[int, ...]

_CONTRADICTION = "operands whose shapes or values do not fit each other"


def malformed(network: Network) -> dict[int, str]:
    """Why operators are malformed, by number."""
    found = {}
    for operator in network.operators:
        try:
            _check(network, operator)
        except NotComputableError as reason:
            found[operator.index] = str(reason)
        except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError):
            found[operator.index] = _CONTRADICTION
    return found


def _check(network: Network, operator: Operator) -> None:
    """Compare the shape of a result with what the operator gives.

    Raises:
        NotComputableError: it is another one.
    """
    rule = rule_of(network, operator)
    if rule is None or operator.custom or operator.unread_options:
        return
    operands = [network.tensors[index] for index in operator.inputs if index != ABSENT]
    shape_of = _SHAPES.get(operator.name)
    if shape_of is None:
        if rule.terms is Terms.MOVES or operator.name == "CONCATENATION":
            _try(network, operator, operands)
        return
    result = network.tensors[operator.outputs[0]]
    expected = shape_of(operator, operands)
    # Dense layers and reductions may say how many numbers they make by any axes.
    free = shape_of in (_dense, _reduced) and math.prod(result.shape) == math.prod(expected)
    if result.shape != expected and not free:
        text = f"is {result.shape}, the operator gives {expected}"
        raise NotComputableError(f"tensor {result.index} ({result.name}) {text}")


def _try(network: Network, operator: Operator, operands: list[NetworkTensor]) -> None:
    """Let the operator move zeros.

    Numbers that say where to may not be constant, and bytes may move to another quantisation: that
    is no contradiction, and the importer decides.
    """
    moved = [each for each in operands if each.constant is None]
    found = {each.quantisation for each in moved}
    found.update(network.tensors[index].quantisation for index in operator.outputs)
    requantised = len(found) > 1 and operator.name != "CONCATENATION"
    if requantised or not all(each.quantised for each in moved):
        return
    zeros = {each.index: np.zeros(each.shape, each.dtype) for each in moved}
    ChipArithmetic(network).run_operator(operator, zeros)


def _same(_: Operator, operands: list[NetworkTensor]) -> Shape:
    return operands[0].shape


def _window(operator: Operator, source: Shape, kernel: Shape, channels: int) -> Shape:
    images, height, width, _ = source
    axes = window_axes(operator.options, (height, width), kernel)
    return (images, *(axis.outputs for axis in axes), channels)


def _convolution(operator: Operator, operands: list[NetworkTensor]) -> Shape:
    channels, height, width, _ = operands[1].shape
    return _window(operator, operands[0].shape, (height, width), channels)


def _depthwise(operator: Operator, operands: list[NetworkTensor]) -> Shape:
    _, height, width, channels = operands[1].shape
    return _window(operator, operands[0].shape, (height, width), channels)


def _pool(operator: Operator, operands: list[NetworkTensor]) -> Shape:
    height, width = (int(operator.options[f"filter_{name}"]) for name in ("height", "width"))
    source = operands[0].shape
    return _window(operator, source, (height, width), source[-1])


def _dense(_: Operator, operands: list[NetworkTensor]) -> Shape:
    units, depth = operands[1].shape
    return operands[0].size // depth, units


def _reduced(_: Operator, operands: list[NetworkTensor]) -> Shape:
    shape = operands[0].shape
    gone = from_the_front(_numbers(operands[1]), len(shape))
    return tuple(1 if axis in gone else extent for axis, extent in enumerate(shape))


def _resized(_: Operator, operands: list[NetworkTensor]) -> Shape:
    shape = operands[0].shape
    return (shape[0], *_numbers(operands[1]), shape[-1])


def _transposed_convolution(_: Operator, operands: list[NetworkTensor]) -> Shape:
    return _numbers(operands[0])


def _numbers(tensor: NetworkTensor) -> Shape:
    if tensor.constant is None:
        raise NotComputableError(f"tensor {tensor.index} ({tensor.name}) is not constant")
    return tuple(np.asarray(tensor.constant).reshape(-1).tolist())


_SHAPES: Mapping[str, Callable[[Operator, list[NetworkTensor]], Shape]] = {
    "AVERAGE_POOL_2D": _pool,
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _dense,
    "LEAKY_RELU": _same,
    "LOGISTIC": _same,
    "MAX_POOL_2D": _pool,
    "MEAN": _reduced,
    "REDUCE_MAX": _reduced,
    "REDUCE_MIN": _reduced,
    "RESIZE_BILINEAR": _resized,
    "RESIZE_NEAREST_NEIGHBOR": _resized,
    "RSQRT": _same,
    "SOFTMAX": _same,
    "SUM": _reduced,
    "TANH": _same,
    "TRANSPOSE_CONV": _transposed_convolution,
}
