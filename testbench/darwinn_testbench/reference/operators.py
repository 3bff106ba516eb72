"""Operators without weights in the chip's arithmetic: one small function each.

uint8 and int8 networks alike: the chip holds int8 as byte XOR 0x80 with the zero point raised by
128, which changes no difference ``value - zero_point`` and so no result. Sources of each rule
and how sure it is: docs/comparison.md.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from darwinn_testbench.policy import AnyArray
from darwinn_testbench.reference import constant_operands
from darwinn_testbench.reference.call import (
    Call,
    Operand,
    require_image,
    require_same_quantisation,
)
from darwinn_testbench.reference.graph import Tensor
from darwinn_testbench.reference.output_stage import (
    NotComputableError,
    conversion_factor,
    output_stage,
    reciprocal,
)
from darwinn_testbench.reference.softmax import shares as softmax_shares

MAXIMUM_WEIGHT = 2**15 - 1
"""Greatest 16-bit weight that the compiler gives an operand of an addition."""

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
    found = constant_operands.sides(call)
    if found is not None:
        signs = (1, sign) if found[0] is left else (sign, 1)
        return constant_operands.weighted_sum(call, *found, signs)
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
    found = constant_operands.sides(call)
    if found is not None:
        return constant_operands.product(call, *found)
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
    return _by_value(call, "sigmoid")


def tanh(call: Call) -> AnyArray:
    """TANH: round(tanh / scale)."""
    return _by_value(call, "tanh")


def _by_value(call: Call, function: str) -> AnyArray:
    """A real function of each byte: the results of all 256 bytes are looked up."""
    operand, output = call.operand(0), call.output
    limits, bounds = np.iinfo(operand.value.dtype), np.iinfo(output.dtype)
    every = np.arange(limits.min, limits.max + 1) - operand.zero_point
    levels = call.choices.levels(function, every * operand.scale, output)
    table = np.clip(levels + output.zero_point[0], bounds.min, bounds.max).astype(output.dtype)
    looked_up: AnyArray = table[operand.value.astype(np.int64) - limits.min]
    return looked_up


def softmax(call: Call) -> AnyArray:
    """SOFTMAX along the last axis: round(256 * softmax) of the chip's own bytes.

    Programs that do it on the tiles go through 16-bit steps, see ``reference.softmax``.
    """
    operand, output = call.operand(0), call.output
    if output.scale[0] != np.float32(1 / 256) or output.zero_point[0] != np.iinfo(output.dtype).min:
        raise NotComputableError("softmax whose output is not 0 to 255/256")
    beta = float(call.option("beta", 1.0))
    if call.choices.softmax is not None:
        values = operand.value.astype(np.int64)
        differences = values - values.max(axis=-1, keepdims=True)
        scale = np.float32(beta) * operand.scale
        levels = softmax_shares(differences, scale, call.choices.softmax)
        result: AnyArray = (levels + output.zero_point[0]).astype(output.dtype)
        return result
    real = beta * float(operand.scale) * operand.centred(np.float64)
    powers = np.exp(real - real.max(axis=-1, keepdims=True))
    share = powers / powers.sum(axis=-1, keepdims=True)
    ideal: AnyArray = np.minimum(np.rint(256 * share), 255) + np.float64(output.zero_point[0])
    return ideal.astype(output.dtype)


# --- moves --------------------------------------------------------------------------------------


def reshape(call: Call) -> AnyArray:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: the same bytes."""
    operand = call.operand(0)
    require_same_quantisation(operand.tensor, call.outputs[0])
    return operand.value.reshape(call.outputs[0].shape)


def pad(call: Call) -> AnyArray:
    """PAD with the zero point."""
    operand = call.operand(0)
    require_same_quantisation(operand.tensor, call.output)
    amounts = [(int(before), int(after)) for before, after in call.constant(1)]
    extents = zip(operand.value.shape, amounts, strict=True)
    call.expect(tuple(extent + sum(both) for extent, both in extents))
    return np.pad(operand.value, amounts, constant_values=operand.zero_point)


def tile(call: Call) -> AnyArray:
    """TILE: repeated copies."""
    operand = call.operand(0)
    require_same_quantisation(operand.tensor, call.outputs[0])
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
        require_same_quantisation(operand.tensor, output)
    if operand.value.shape[axis] % len(call.outputs):
        raise NotComputableError(f"axis {axis} does not split into {len(call.outputs)} parts")
    return tuple(np.split(operand.value, len(call.outputs), axis=axis))


# --- interpolation ------------------------------------------------------------------------------

_PIXEL = 128
"""Positions of the interpolating instruction are in 1/128 pixel."""


def resize_bilinear(call: Call) -> AnyArray:
    """RESIZE_BILINEAR: four taps with weights of 7 bits for each axis, scale 2^-14, no offset."""
    operand = call.operand(0)
    require_image(operand)
    require_same_quantisation(operand.tensor, call.output)
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
