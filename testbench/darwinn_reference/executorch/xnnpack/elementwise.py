"""Nodes that compute element by element, and softmax.

Floats are computed by NumPy, where XNNPACK has approximations of a few units in the last place.
Quantised numbers go by what they stand for, except in sums, differences, products, ReLUs with a
slope and conversions from one quantisation to another: these are computed with integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from darwinn_formats.executorch.xnnpack import schema
from darwinn_formats.executorch.xnnpack.schema import Datatype

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.values import refuse_more
from darwinn_reference.executorch.xnnpack.operands import Float, Operand, Target

_SUM_BITS = 20
"""Bits of the multipliers of a sum, before its shift."""
_FACTOR_BITS = 8
"""Bits behind the point of the factors of leaky ReLU and of conversions between quantisations."""
_LEAST_FACTOR, _GREATEST_FACTOR = 2.0**-8, 2.0**7
"""Factors for which XNNPACK has kernels of integers."""


_ERF_END = 5.0
"""From here on the error function is 1 within 2e-12."""
_ERF_BLOCK = 1 << 13
"""Elements that are computed at once, which stay in a cache."""


def _erf_polynomial() -> list[float]:
    """Coefficients of ``erf(x) / x`` by powers of ``2 * (x / end) ** 2 - 1``, the lowest last."""

    def ratio(place: float) -> float:
        x = math.sqrt((place + 1) / 2) * _ERF_END
        return math.erf(x) / x

    points = np.polynomial.chebyshev.chebinterpolate(np.vectorize(ratio), 40)
    found: list[float] = np.polynomial.chebyshev.cheb2poly(points).tolist()
    return found[::-1]


def _gelu(x: Float) -> Float:
    """x times the share of the normal distribution below it, which is off by 2e-12 at most."""
    flat = np.ascontiguousarray(x).reshape(-1)
    result = np.empty_like(flat)
    for start in range(0, flat.size, _ERF_BLOCK):
        block = flat[start : start + _ERF_BLOCK].astype(np.float64)
        scaled = np.clip(block * math.sqrt(0.5), -_ERF_END, _ERF_END)
        place = scaled * scaled * (2 / _ERF_END**2) - 1
        ratio = np.full_like(place, _ERF[0])
        for coefficient in _ERF[1:]:
            ratio *= place
            ratio += coefficient
        erf = np.where(np.abs(scaled) < _ERF_END, ratio * scaled, np.sign(scaled))
        result[start : start + _ERF_BLOCK] = (erf + 1) * block * 0.5
    return result.reshape(x.shape)


_ERF = _erf_polynomial()


def _sigmoid(x: Float) -> Any:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x.astype(np.float64)))


def _elu(x: Float, node: schema.ELU) -> Any:
    return np.where(x < 0, np.float32(node.alpha) * np.expm1(np.minimum(x, 0)), x)


def _leaky_relu(x: Float, node: schema.LeakyReLU) -> Any:
    return np.where(x < 0, x * np.float32(node.negative_slope), x)


_Function = Callable[[Float, Any], Any]

UNARY: Mapping[type[Any], _Function] = {
    schema.Abs: lambda x, node: np.abs(x),
    schema.Ceiling: lambda x, node: np.ceil(x),
    schema.Clamp: lambda x, node: x,
    schema.Cos: lambda x, node: np.cos(x),
    schema.ELU: _elu,
    schema.Exp: lambda x, node: np.exp(x),
    schema.Floor: lambda x, node: np.floor(x),
    schema.Gelu: lambda x, node: _gelu(x),
    schema.Hardswish: lambda x, node: x / np.float32(6) * np.clip(x + 3, 0, 6),
    schema.LeakyReLU: _leaky_relu,
    schema.Log: lambda x, node: np.log(x),
    schema.Negate: lambda x, node: -x,
    schema.ReciprocalSquareRoot: lambda x, node: 1 / np.sqrt(x),
    schema.Sigmoid: lambda x, node: _sigmoid(x),
    schema.Sin: lambda x, node: np.sin(x),
    schema.Square: lambda x, node: x * x,
    schema.SquareRoot: lambda x, node: np.sqrt(x),
    schema.Tanh: lambda x, node: np.tanh(x),
}
"""What nodes with one operand compute, of real numbers."""

BINARY: Mapping[type[Any], Callable[[Float, Float], Any]] = {
    schema.Add: np.add,
    schema.Subtract: np.subtract,
    schema.Multiply: np.multiply,
    schema.Div: np.divide,
    schema.Maximum: np.maximum,
    schema.Minimum: np.minimum,
    schema.PReLU: lambda x, slope: np.where(x < 0, x * slope, x),
}
"""What nodes with two operands compute, of real numbers."""


def unary(node: Any, operands: Sequence[Operand], target: Target) -> AnyArray:
    """A node with one operand."""
    (operand,) = operands
    if isinstance(node, schema.LeakyReLU) and not operand.is_float:
        above = operand.scale / target.scale
        below = above * np.float32(node.negative_slope)
        if _LEAST_FACTOR <= above <= _GREATEST_FACTOR and abs(below) <= _GREATEST_FACTOR:
            return _times(operand, (above, below), target)
    return target.of_real(np.asarray(UNARY[type(node)](operand.real(), node)))


def binary(node: Any, operands: Sequence[Operand], target: Target) -> AnyArray:
    """A node with two operands, the smaller repeated to the sizes of the greater."""
    left, right = operands
    sizes = np.broadcast_shapes(left.array.shape, right.array.shape)
    # Sums of stored numbers are integers of 8 bytes.
    refuse_more(math.prod(sizes) * 8, "a result")
    if not left.is_float:
        match node:
            case schema.Add():
                return _sum(left, right, target, 1)
            case schema.Subtract():
                return _sum(left, right, target, -1)
            case schema.Multiply():
                return target.stored(_product(left, right, target))
            case schema.PReLU():
                centred = left.array.astype(np.int32) - left.zero_point
                above = centred.astype(np.float32) * (left.scale / target.scale)
                return target.stored(np.where(centred < 0, _product(left, right, target), above))
    return target.of_real(np.asarray(BINARY[type(node)](left.real(), right.real())))


def _sum(left: Operand, right: Operand, target: Target, sign: int) -> AnyArray:
    """A sum of integers: multipliers of 21 bits, and a shift that rounds halves up."""
    scales = [entry.scale / target.scale for entry in (left, right)]
    exponent = int(np.frexp(max(scales))[1]) - 1
    shift = _SUM_BITS - exponent
    first, second = (int(np.rint(np.ldexp(scale, shift))) for scale in scales)
    second *= sign
    total = (left.array.astype(np.int64) - left.zero_point) * first
    total = total + (right.array.astype(np.int64) - right.zero_point) * second
    rounded = (total + (1 << (shift - 1))) >> shift
    return _within(rounded, target)


def _product(left: Operand, right: Operand, target: Target) -> Float:
    """Products in units of what is written."""
    product = (left.array.astype(np.int32) - left.zero_point) * (
        right.array.astype(np.int32) - right.zero_point
    )
    scaled: Float = product.astype(np.float32) * (left.scale * right.scale / target.scale)
    return scaled


def _times(operand: Operand, factors: Sequence[np.float32], target: Target) -> AnyArray:
    """Stored numbers times a factor, with another for those below 0; halves are rounded up."""
    above, below = (int(np.rint(np.ldexp(entry, _FACTOR_BITS))) for entry in factors)
    centred = operand.array.astype(np.int64) - operand.zero_point
    product = centred * np.where(centred < 0, below, above)
    return _within((product + (1 << (_FACTOR_BITS - 1))) >> _FACTOR_BITS, target)


def _within(centred: Any, target: Target) -> AnyArray:
    low, high = target.bounds
    kept: AnyArray = np.clip(centred + target.zero_point, low, high)
    return kept.astype(np.int8 if target.datatype is Datatype.QINT8 else np.uint8)


def softmax(node: Any, operands: Sequence[Operand], target: Target) -> AnyArray:
    """Exponentials over the last dimension, divided by their sum."""
    x = operands[0].real()
    powers = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return target.of_real(powers / powers.sum(-1, keepdims=True))


def convert(node: Any, operands: Sequence[Operand], target: Target) -> AnyArray:
    """Real numbers quantised or in another precision, or quantised ones in another way."""
    (operand,) = operands
    if not operand.is_float and not target.is_float:
        factor = operand.scale / target.scale
        if _LEAST_FACTOR <= factor <= _GREATEST_FACTOR:
            return _times(operand, (factor, factor), target)
    if operand.is_float and not target.is_float:
        return target.stored(operand.array * (np.float32(1) / target.scale))
    return target.of_real(operand.real())


def by_row(operand: Operand, dimensions: int) -> Operand:
    """Floats quantised at run time, each row of so many dimensions by its own least and greatest.

    The scale makes room for 0; the zero point is taken from the end that loses less.
    """
    axes = tuple(range(operand.array.ndim - dimensions, operand.array.ndim))
    x = operand.array.astype(np.float32, copy=False)
    low = np.fmin(x.min(axes, keepdims=True), np.float32(0))
    high = np.fmax(x.max(axes, keepdims=True), np.float32(0))
    one, least, greatest = np.float32(1), np.float32(-128), np.float32(127)
    factor = np.where(low == high, one, (greatest - least) / (high - low)).astype(np.float32)
    lower, upper = low * factor, high * factor
    from_low = (least + lower) + (greatest + upper) > 0
    zero_point = np.where(from_low, least - lower, greatest - upper)
    zero_point = np.rint(np.clip(zero_point, least, greatest))
    inverse = one / factor
    scaled = x * (one / inverse)
    stored = np.clip(np.rint(np.clip(scaled, -1e6, 1e6)) + zero_point, least, greatest)
    return Operand(Datatype.QDINT8, stored.astype(np.int8), inverse, zero_point.astype(np.int32))
