"""Additions and multiplications by constants of one value, or of one for each channel.

The compiler makes a layer of them whose weights are 1: a constant factor becomes the scale of a
channel, a constant term its bias, which is rounded to the unit of the input. Known from the 128
scales and biases of `classifier_2022` and the normalisation of MoveNet, whose 0.5 becomes 128
steps of 2/255 where LiteRT takes 127.5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.call import Call, Operand
from darwinn_reference.tflite.factors import constant_term, conversion_factor


def sides(call: Call) -> tuple[Operand, Operand] | None:
    """The input that is computed and the constant, in this order.

    None where two are computed, where the constant has values for more than the channels of the
    output, or where it alone has channels: it is then a tensor as any other.
    """
    left, right = call.operand(0), call.operand(1)
    computed = [each for each in (left, right) if each.tensor.constant is None]
    if len(computed) != 1:
        return None
    constant = right if computed[0] is left else left
    shape = constant.value.shape
    channels = call.output.shape[-1:]
    by_channel = shape[-1:] == channels == (constant.value.size,)
    by_channel = by_channel and computed[0].value.shape[-1:] == channels
    return (computed[0], constant) if by_channel or constant.value.size == 1 else None


def weighted_sum(
    call: Call, computed: Operand, constant: Operand, signs: tuple[int, int]
) -> AnyArray:
    """``signs[0] * computed + signs[1] * constant``: bias = round(constant / s_in).

    The weights are 1 in any case: what is subtracted has a factor less than 0. Known from the
    normalisation of a public transformer (efficient_l3), which subtracts from a constant.
    """
    call.expect(np.broadcast_shapes(computed.value.shape, constant.value.shape))
    levels = constant.centred().reshape(-1)
    bias = constant_term(levels, constant.scale, computed.scale)
    sign, others = signs
    total = _spread(call, computed) + call.fixed(sign * others * bias)
    return call.finish(total, np.float32(sign) * call.requantisation(computed))


def product(call: Call, computed: Operand, constant: Operand) -> AnyArray:
    """``computed * constant``: factor = float32(float32(s_in * constant) * float32(1 / s_out))."""
    call.expect(np.broadcast_shapes(computed.value.shape, constant.value.shape))
    factor = conversion_factor(computed.scale, call.output, real(constant))
    return call.finish(_spread(call, computed), factor)


def _spread(call: Call, computed: Operand) -> AnyArray:
    """The centred values in the output's shape: the constant may have more dimensions."""
    return np.broadcast_to(computed.centred(), call.output.shape)


def real(constant: Operand) -> NDArray[np.float32]:
    """Real values of the constant, one or one for each channel."""
    values: NDArray[np.float32] = constant.centred(np.float32).reshape(-1) * constant.scale
    return values
