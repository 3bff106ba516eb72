"""Operators that compute each element by itself, with broadcasting and type promotion."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.promotion import (
    Operand,
    cast,
    common,
    floating,
    result_type,
)

Kernel = Callable[..., Any]

# --- one operand ----------------------------------------------------------------------------------


def erf(x: AnyArray) -> AnyArray:
    """Error function, computed in double precision."""
    values = np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size)
    return values.reshape(x.shape).astype(x.dtype)


def sigmoid(x: AnyArray) -> AnyArray:
    """1 / (1 + exp(-x))."""
    one = x.dtype.type(1)
    return np.asarray(one / (one + np.exp(-x)))


def gelu(x: AnyArray, approximate: str = "none") -> AnyArray:
    """Gaussian error linear unit, by the error function or by its tanh approximation."""
    wide = x.astype(np.float64)
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
        return np.asarray(0.5 * wide * (1 + np.tanh(inner)))
    return np.asarray(0.5 * wide * (1 + erf(wide / math.sqrt(2))))


def relu(x: AnyArray) -> AnyArray:
    """max(x, 0); NaN stays NaN."""
    return np.asarray(np.maximum(x, x.dtype.type(0)))


def leaky_relu(x: AnyArray, slope: float = 0.01) -> AnyArray:
    """x where positive, else slope * x."""
    return np.where(x > 0, x, x * x.dtype.type(slope))


def elu(x: AnyArray, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> AnyArray:
    """scale * x where positive, else scale * alpha * (exp(input_scale * x) - 1)."""
    return np.where(x > 0, scale * x, scale * alpha * np.expm1(input_scale * x))


def clamp(x: AnyArray, low: Operand | None = None, high: Operand | None = None) -> AnyArray:
    """x held between bounds of which either may be absent; the upper one wins."""
    bounds = [bound for bound in (low, high) if bound is not None]
    dtype = result_type(x, *bounds)
    result = cast(x, dtype)
    if low is not None:
        result = np.maximum(result, cast(low, dtype))
    if high is not None:
        result = np.minimum(result, cast(high, dtype))
    return result


def hardtanh(x: AnyArray, low: float = -1, high: float = 1) -> AnyArray:
    """x held between bounds, in its own type."""
    return np.clip(x, x.dtype.type(low), x.dtype.type(high))


def logit(x: AnyArray, epsilon: float | None = None) -> AnyArray:
    """log(x / (1 - x)); with a bound, x is held between it and 1 less it."""
    values = floating(x)
    one = values.dtype.type(1)
    if epsilon is not None:
        low = values.dtype.type(epsilon)
        # As the original runtime: a number below both bounds takes the first.
        values = np.where(values < low, low, np.where(values > one - low, one - low, values))
    return np.asarray(np.log(values / (one - values)))


def glu(x: AnyArray, dimension: int = -1) -> AnyArray:
    """First half of x along a dimension times the sigmoid of its second half."""
    first, second = np.split(floating(x), 2, dimension)
    return first * sigmoid(second)


def _on_floats(function: Callable[[AnyArray], Any]) -> Kernel:
    def kernel(x: AnyArray) -> Any:
        return function(floating(x))

    return kernel


_FLOAT_FUNCTIONS: Mapping[str, Callable[[AnyArray], Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": erf,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "reciprocal": np.reciprocal,
    "rsqrt": lambda x: np.reciprocal(np.sqrt(x)),
    "sigmoid": sigmoid,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}
"""Functions whose result is a float whatever the operand is."""

_SAME_TYPE_FUNCTIONS: Mapping[str, Callable[[AnyArray], Any]] = {
    "abs": np.abs,
    "bitwise_not": np.invert,
    "ceil": np.ceil,
    "floor": np.floor,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "logical_not": np.logical_not,
    "neg": np.negative,
    "relu": relu,
    "round": np.round,
    "sign": lambda x: x if x.dtype == np.bool_ else np.sign(x),
    "trunc": np.trunc,
}
"""Functions that compute in the type of the operand."""

# --- two operands ---------------------------------------------------------------------------------


def add(a: Operand, b: Operand, alpha: float = 1) -> AnyArray:
    """a + alpha * b."""
    left, right = common(a, b)
    return left + (right if alpha == 1 else cast(alpha, right.dtype) * right)


def add_tensors(a: AnyArray, b: AnyArray, alpha: float = 1) -> AnyArray:
    """a + alpha * b; a tensor of one element is what is multiplied, as in the original runtime."""
    return add(b, a, alpha) if a.size == 1 and b.size != 1 else add(a, b, alpha)


def subtract(a: Operand, b: Operand, alpha: float = 1) -> AnyArray:
    """a - alpha * b."""
    left, right = common(a, b)
    return left - (right if alpha == 1 else cast(alpha, right.dtype) * right)


def reverse_subtract(a: Operand, b: Operand, alpha: float = 1) -> AnyArray:
    """b - alpha * a."""
    return subtract(b, a, alpha)


def divide(a: Operand, b: Operand, rounding: str | None = None) -> AnyArray:
    """a / b as a float, or rounded towards zero (trunc) or down (floor)."""
    left, right = common(a, b)
    if rounding == "floor":
        return floor_divide(left, right)
    if rounding == "trunc" and left.dtype.kind != "f":
        _refuse_zero(right)
        quotient = np.abs(left) // np.abs(right)
        return np.asarray(np.sign(left) * np.sign(right) * quotient)
    if rounding == "trunc":
        return np.asarray(np.trunc(left / right))
    if left.dtype.kind == "f":
        return np.asarray(left / right)
    # A number that goes with integers need not be one of their type.
    return floating(a) / floating(b)


def floor_divide(left: AnyArray, right: AnyArray) -> AnyArray:
    """a / b rounded down; by 0.0 always infinite, as in the original runtime."""
    if left.dtype.kind != "f":
        _refuse_zero(right)
        return np.asarray(np.floor_divide(left, right))
    infinite = np.copysign(left.dtype.type(np.inf), left)
    return np.where(right == 0, infinite, np.floor_divide(left, right))


def remainder(left: AnyArray, right: AnyArray) -> AnyArray:
    """Remainder with the sign of the divisor.

    That of integers has the sign of the dividend, as in the original runtime.
    """
    if left.dtype.kind == "f":
        return np.asarray(np.remainder(left, right))
    _refuse_zero(right)
    return np.asarray(np.fmod(left, right))


def remainder_by_number(a: AnyArray, b: Operand) -> AnyArray:
    """Remainder with the sign of the dividend, of integers in float64."""
    dtype = result_type(a, b)
    if dtype.kind != "f":
        _refuse_zero(np.asarray(b))
    return np.asarray(np.fmod(*_in_floats(a, b))).astype(dtype)


def remainder_by_tensor(a: AnyArray, b: AnyArray) -> AnyArray:
    """As ``remainder_by_number``, but that of integers by 0 is NaN."""
    return np.asarray(np.fmod(*_in_floats(a, b)))


def power(a: Operand, b: Operand) -> AnyArray:
    """a to the power of b, of integers in float64."""
    return np.asarray(np.power(*_in_floats(a, b)))


def _in_floats(a: Operand, b: Operand) -> tuple[AnyArray, AnyArray]:
    """Operands in their common type, or integers, whatever their types, in float64."""
    dtype = result_type(a, b)
    wide = dtype if dtype.kind == "f" else np.dtype(np.float64)
    return cast(a, wide), cast(b, wide)


def _refuse_zero(divisor: AnyArray) -> None:
    if not divisor.all():
        raise ZeroDivisionError("a division of whole numbers by 0")


def _shift(function: Callable[[AnyArray, AnyArray], Any]) -> Callable[[AnyArray, AnyArray], Any]:
    """A shift, of at least 32 bits; what the original does beyond is up to the processor."""

    def shift(left: AnyArray, right: AnyArray) -> Any:
        bits = max(left.dtype.itemsize * 8, 32)
        if right.size and not 0 <= right.min() <= right.max() < bits:
            raise ValueError(f"a shift by {right.min()} or {right.max()} of {bits} bits")
        # Truth values are shifted as integers, and are truth values again.
        return np.asarray(function(left, right)).astype(left.dtype)

    return shift


def _in_common_type(function: Callable[[AnyArray, AnyArray], Any]) -> Kernel:
    def kernel(a: Operand, b: Operand) -> Any:
        return function(*common(a, b))

    return kernel


def _compared(function: Callable[[AnyArray, AnyArray], Any]) -> Kernel:
    """A comparison of tensors: of two types, one of them float64, in float32."""

    def kernel(a: AnyArray, b: AnyArray) -> Any:
        dtype = result_type(a, b)
        if dtype == np.float64 and a.dtype != b.dtype:
            dtype = np.dtype(np.float32)
        return function(cast(a, dtype), cast(b, dtype))

    return kernel


_COMPARISONS: Mapping[str, Callable[[AnyArray, AnyArray], Any]] = {
    "eq": np.equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "ne": np.not_equal,
}
"""Comparisons of two tensors, or of a tensor and a number."""

_BINARY_FUNCTIONS: Mapping[str, Callable[[AnyArray, AnyArray], Any]] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "remainder": remainder,
}
"""Functions of two tensors, or of a tensor and a number, in their common type."""

_TENSOR_FUNCTIONS: Mapping[str, Callable[[AnyArray, AnyArray], Any]] = {
    "bitwise_left_shift.Tensor_out": _shift(np.left_shift),
    "bitwise_left_shift.Tensor_Scalar_out": _shift(np.left_shift),
    "bitwise_right_shift.Tensor_out": _shift(np.right_shift),
    "bitwise_right_shift.Tensor_Scalar_out": _shift(np.right_shift),
    "floor_divide.out": floor_divide,
    "logical_and.out": np.logical_and,
    "logical_or.out": np.logical_or,
    "logical_xor.out": np.logical_xor,
    "maximum.out": np.maximum,
    "minimum.out": np.minimum,
    "mul.out": np.multiply,
    "mul.Scalar_out": np.multiply,
}
"""Functions in the common type of their operands, by name with overload."""


def arctangent(a: Operand, b: Operand) -> AnyArray:
    """Angle of the point (b, a)."""
    left, right = common(a, b)
    return np.arctan2(floating(left), floating(right))


def select(condition: AnyArray, a: Operand, b: Operand) -> AnyArray:
    """a where the condition holds, else b."""
    left, right = common(a, b)
    return np.where(condition.astype(bool), left, right)


def masked_fill(x: AnyArray, mask: AnyArray, value: Operand) -> AnyArray:
    """x with a number where the mask holds."""
    return np.where(mask, cast(value, x.dtype), x)


KERNELS: Mapping[str, Kernel] = {
    **{f"aten::{name}.out": _on_floats(entry) for name, entry in _FLOAT_FUNCTIONS.items()},
    **{f"aten::{name}.out": entry for name, entry in _SAME_TYPE_FUNCTIONS.items()},
    **{
        f"aten::{name}.{operand}_out": _in_common_type(entry)
        for name, entry in _BINARY_FUNCTIONS.items()
        for operand in ("Tensor", "Scalar")
    },
    **{f"aten::{name}.Tensor_out": _compared(entry) for name, entry in _COMPARISONS.items()},
    **{f"aten::{name}.Scalar_out": _in_common_type(entry) for name, entry in _COMPARISONS.items()},
    **{f"aten::{name}": _in_common_type(entry) for name, entry in _TENSOR_FUNCTIONS.items()},
    "aten::add.out": add_tensors,
    "aten::add.Scalar_out": add,
    "aten::atan2.out": arctangent,
    "aten::clamp.out": clamp,
    "aten::clamp.Tensor_out": clamp,
    "aten::div.out": divide,
    "aten::div.out_mode": divide,
    "aten::div.Scalar_out": divide,
    "aten::div.Scalar_mode_out": divide,
    "aten::elu.out": elu,
    "aten::fmod.Scalar_out": remainder_by_number,
    "aten::fmod.Tensor_out": remainder_by_tensor,
    "aten::gelu.out": gelu,
    "aten::glu.out": glu,
    "aten::hardtanh.out": hardtanh,
    "aten::leaky_relu.out": leaky_relu,
    "aten::logit.out": logit,
    "aten::masked_fill.Scalar_out": masked_fill,
    **{
        f"aten::pow.{operands}_out": power
        for operands in ("Scalar", "Tensor_Scalar", "Tensor_Tensor")
    },
    "aten::rsub.Scalar_out": reverse_subtract,
    "aten::sub.out": subtract,
    "aten::sub.Scalar_out": subtract,
    "aten::where.self_out": select,
}

IN_FLOAT64 = ("aten::fmod.Tensor_out", *tuple(name for name in KERNELS if "::pow." in name))
"""Operators whose results for integers are floats, which may go into integers again."""
