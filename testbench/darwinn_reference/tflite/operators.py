"""Operators without weights in the chip's arithmetic: one small function each.

uint8 and int8 networks alike: the chip holds int8 as byte XOR 0x80 with the zero point raised by
128, which changes no difference ``value - zero_point`` and so no result. Sources of each rule
and how sure it is: docs/comparison.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite import constant_operands
from darwinn_reference.tflite.call import Call, Operand, same_quantisation
from darwinn_reference.tflite.factors import (
    ROOT_STEPS,
    addition_weights,
    conversion_factor,
    difference_weights,
    elder_addition_weights,
    halved_difference,
    root_unit,
)
from darwinn_reference.tflite.graph import NetworkTensor
from darwinn_reference.tflite.output_stage import NotComputableError, reciprocal
from darwinn_reference.tflite.softmax import DifferenceUnit
from darwinn_reference.tflite.softmax import shares as softmax_shares

_UNIT_SCALE = np.float32(1 / 128)
"""Scale of a vector of length 1."""

# --- element by element -------------------------------------------------------------------------


def weighted_sum(call: Call, sign: int = 1) -> AnyArray:
    """ADD: operands times 16-bit weights, see :func:`addition_weights`; of SUB ``sign`` is -1."""
    left, right = call.operand(0), call.operand(1)
    found = constant_operands.sides(call)
    if found is not None:
        signs = (1, sign) if found[0] is left else (sign, 1)
        return constant_operands.weighted_sum(call, *found, signs)
    if sign < 0:
        call.assume("a difference is a sum whose second weight is negative")
    if right.tensor.constant is not None:
        # A constant comes first, wherever the network has it.
        second, first, factor = _addition(call, right, left)
    else:
        first, second, factor = _addition(call, left, right)
    call.expect(np.broadcast_shapes(left.value.shape, right.value.shape))
    total = first * left.centred() + sign * second * right.centred()
    return call.finish(total, factor)


def _addition(call: Call, one: Operand, other: Operand) -> tuple[int, int, np.float32]:
    """The weights of two operands and the factor of their sum: by the rule, if the program does not
    hold those of an elder compiler."""
    by_rule = addition_weights(one.scale, other.scale, call.output)
    if call.holds(by_rule[2]):
        return by_rule
    held = call.choices.factors
    return elder_addition_weights(one.scale, other.scale, call.output, held) or by_rule


def multiply(call: Call) -> AnyArray:
    """MUL: the product of the centred bytes."""
    found = constant_operands.sides(call)
    if found is not None:
        return constant_operands.product(call, *found)
    left, right = call.operand(0), call.operand(1)
    call.expect(np.broadcast_shapes(left.value.shape, right.value.shape))
    return call.finish(left.centred() * right.centred(), product_factor(call, left, right))


def product_factor(call: Call, left: Operand, right: Operand) -> NDArray[np.float32]:
    """Factor of the product of two operands that are computed."""
    return conversion_factor(left.scale, call.output, np.atleast_1d(right.scale))


def requantised(call: Call, operand: Operand, activation: str = "NONE") -> AnyArray:
    """Real values of ``operand`` in the quantisation of the call's output."""
    factor = np.ones(1, np.float32)
    if operand.scale != call.output.scale[0]:
        factor = call.requantisation(operand)
    # A number without axes gets one: factors have one.
    return call.finish(np.atleast_1d(operand.centred()), factor, activation=activation)


def bounded(call: Call, activation: str = "NONE") -> AnyArray:
    """QUANTIZE from 8 bits to 8 bits, or an activation: bounds in the output stage."""
    return requantised(call, call.operand(0), activation)


def prelu(call: Call) -> AnyArray:
    """PRELU: negative values times the second input, each side of 0 rounded once.

    The negative values are bytes of their own, multiplied as by a constant of each channel.
    """
    factors = prelu_factors(call)
    if factors is None:
        call.assume("slopes of each element are multiplied as another tensor")
        alpha = call.operand(1)
        return _leaky(call, alpha.centred(), np.atleast_1d(alpha.scale))
    return _leaky(call, np.ones(1, np.int64), np.ones(1, np.float32), factors)


def prelu_factors(call: Call) -> NDArray[np.float32] | None:
    """Factors of the negative values of a PRELU: one, or one of each channel; None of elements."""
    found = constant_operands.sides(call)
    if found is None:
        return None
    operand, alpha = found
    return conversion_factor(operand.scale, call.output, constant_operands.real(alpha))


def leaky_relu(call: Call) -> AnyArray:
    """LEAKY_RELU: negative values times a number."""
    slope = np.array([call.option("alpha", 0.0)], np.float32)
    return _leaky(call, np.ones(1, np.int64), slope)


def _leaky(
    call: Call,
    slopes: AnyArray,
    scale: NDArray[np.float32],
    factor: NDArray[np.float32] | None = None,
) -> AnyArray:
    """``scale`` is that of the slopes; ``factor`` has both, if it is given."""
    operand, output = call.operand(0), call.output
    call.expect(np.broadcast_shapes(operand.value.shape, slopes.shape))
    values = operand.centred()
    positive = call.finish(values, call.requantisation(operand), activation="NONE")
    factor = conversion_factor(operand.scale, output, scale) if factor is None else factor
    negative = call.finish(values * slopes, factor, activation="NONE")
    return np.where(values >= 0, positive, negative)


def maximum(call: Call) -> AnyArray:
    """MAXIMUM of two computed tensors: the second one and what the first has more.

    The chip has no instruction for it. The compiler makes a difference, whose unit is two steps of
    the operands and which 0 bounds, and an addition: y + 2 * rint(max(x - y, 0) / 2). That is up to
    one step, in rare cases two steps, off the greater byte. Seen in the 23 maxima of a public
    executable.
    """
    if not is_halved(call):
        return extreme(call, np.maximum)
    left, right = call.operand(0), call.operand(1)
    call.expect(np.broadcast_shapes(left.value.shape, right.value.shape))
    first, second = (each.value.astype(np.int64) for each in (left, right))
    factor, most = halved_difference(left.scale)
    more = (first - second).astype(np.float32) * factor
    found = second + 2 * np.rint(np.clip(more, 0, most)).astype(np.int64)
    limits = np.iinfo(call.output.dtype)
    bounded: AnyArray = np.clip(found, limits.min, limits.max).astype(call.output.dtype)
    return bounded


def is_halved(call: Call) -> bool:
    """Whether a MAXIMUM is made of a difference in steps of two."""
    sides = call.operand(0), call.operand(1)
    computed = all(each.tensor.constant is None for each in sides)
    return computed and all(same_quantisation(each.tensor, call.output) for each in sides)


def extreme(call: Call, choose: np.ufunc) -> AnyArray:
    """MAXIMUM, MINIMUM: the greater or lesser byte of two."""
    left, right = call.operand(0), call.operand(1)
    call.expect(np.broadcast_shapes(left.value.shape, right.value.shape))
    if not all(same_quantisation(each.tensor, call.output) for each in (left, right)):
        call.assume("each operand is brought to the output's scale before they are compared")
    chosen: AnyArray = choose(requantised(call, left), requantised(call, right))
    return chosen


def squared_difference(call: Call) -> AnyArray:
    """SQUARED_DIFFERENCE: the exact difference of SUB, and a table that is a parabola.

    The chip squares in float32, as the polynomial of the table does: y * (y / s_out), where y is
    the difference as a real number. Seen in a public transformer, whose instruction bounds nothing:
    it keeps the low byte of a larger square.
    """
    left, right = call.operand(0), call.operand(1)
    call.expect(np.broadcast_shapes(left.value.shape, right.value.shape))
    first, second, unit = difference_terms(call)
    difference = first * left.centred() - second * right.centred()
    real = difference.astype(np.float32) * unit
    squared = np.rint(reciprocal(call.output.scale[0]) * real * real)
    whole = squared + call.output.zero_point[0]
    limits = np.iinfo(call.output.dtype)
    bounded: AnyArray = np.clip(whole, limits.min, limits.max)
    if squares_keep_low_bytes(call) and (bounded != whole).any():
        call.assume("without a bound the low byte of a square is kept")
        bounded = whole.astype(np.int64)
    return bounded.astype(call.output.dtype)


def squares_keep_low_bytes(call: Call) -> bool:
    """Whether the program's instruction has no bound for a SQUARED_DIFFERENCE."""
    _, _, unit = difference_terms(call)
    return float(unit) in call.choices.unclipped


def difference_terms(call: Call) -> tuple[int, int, np.float32]:
    """The weights of both sides of a SQUARED_DIFFERENCE, and the unit of the difference."""
    left, right = call.operand(0), call.operand(1)
    return difference_weights(left.scale, right.scale, call.output)


def l2_normalization(call: Call) -> AnyArray:
    """L2_NORMALIZATION along the last axis, in the two steps of programs.

    The reciprocal root of the sum of squares comes in 16 bits of :func:`root_unit`, and is
    multiplied as another tensor. Of no length, 0.
    """
    operand, output = call.operand(0), call.output
    values = operand.centred()
    squares = np.maximum((values * values).sum(axis=-1, keepdims=True), 1)
    real = squares.astype(np.float32) * (operand.scale * operand.scale)
    roots = np.minimum(call.choices.levels("rsqrt", real, root_steps(call)), int(ROOT_STEPS))
    if output.scale[0] != _UNIT_SCALE:
        call.assume("other scales than 1/128 follow the rule of products")
    return call.finish(values * roots, unit_vector_factor(call))


def root_steps(call: Call) -> NetworkTensor:
    """A tensor in whose steps an L2_NORMALIZATION has the reciprocal root."""
    return replace(call.output, scale=np.atleast_1d(root_unit(call.operand(0).scale)))


def unit_vector_factor(call: Call) -> NDArray[np.float32]:
    """Factor of the product of a value and the reciprocal root."""
    return conversion_factor(call.operand(0).scale, call.output, root_steps(call).scale)


def by_value(call: Call, function: str) -> AnyArray:
    """RSQRT, LOGISTIC, TANH: round(function / scale), looked up for all 256 bytes.

    Of RSQRT the greatest value where the argument is not positive, unless a program's table gives
    another.
    """
    operand, output = call.operand(0), call.output
    limits, bounds = np.iinfo(operand.value.dtype), np.iinfo(output.dtype)
    every = np.arange(limits.min, limits.max + 1) - operand.zero_point
    levels = call.choices.levels(function, every * operand.scale, output)
    table = np.clip(levels + output.zero_point[0], bounds.min, bounds.max).astype(output.dtype)
    if function == "rsqrt" and (operand.centred() <= 0).any():
        call.assume("of 0 and below the table's value is taken, without a table the greatest byte")
    looked_up: AnyArray = table[operand.value.astype(np.int64) - limits.min]
    return looked_up


def softmax(call: Call) -> AnyArray:
    """SOFTMAX along the last axis: round(256 * softmax) of the chip's own bytes.

    Programs that do it on the tiles go through 16-bit steps (``darwinn_reference.tflite.softmax``).
    """
    operand, output = call.operand(0), call.output
    require_shares(call)
    beta = float(call.option("beta", 1.0))
    if call.choices.softmax is not None:
        values = operand.value.astype(np.int64)
        differences = values - values.max(axis=-1, keepdims=True)
        levels = softmax_shares(differences, difference_unit(call), call.choices.softmax)
        result: AnyArray = (levels + output.zero_point[0]).astype(output.dtype)
        return result
    real = beta * float(operand.scale) * operand.centred(np.float64)
    powers = np.exp(real - real.max(axis=-1, keepdims=True))
    share = powers / powers.sum(axis=-1, keepdims=True)
    ideal: AnyArray = np.minimum(np.rint(256 * share), 255) + np.float64(output.zero_point[0])
    return ideal.astype(output.dtype)


def difference_unit(call: Call) -> DifferenceUnit:
    """How a program on the tiles holds the differences of a softmax."""
    operand = call.operand(0)
    zero_point = operand.zero_point - int(np.iinfo(operand.tensor.dtype).min)
    return DifferenceUnit.of(operand.scale, zero_point, call.option("beta", 1.0))


def require_shares(call: Call) -> None:
    """Refuse a softmax whose output is in another unit than 1/256."""
    output = call.output
    if output.scale[0] != np.float32(1 / 256) or output.zero_point[0] != np.iinfo(output.dtype).min:
        raise NotComputableError("softmax whose output is not 0 to 255/256")


def concatenation(call: Call) -> AnyArray:
    """CONCATENATION: operands of another scale are requantised."""
    operands = [call.operand(position) for position in range(len(call.inputs))]
    if any(each.scale != call.output.scale[0] for each in operands):
        call.assume("operands of another scale are requantised")
    parts = [requantised(call, each, call.activation) for each in operands]
    return np.concatenate(parts, axis=int(call.option("axis", 0)))
