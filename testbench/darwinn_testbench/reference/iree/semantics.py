"""What each operation without side effects computes: one function of the operands' values.

Values are Python numbers: i32 and i64 signed, f32 and f64 as float. Results of float operations
are rounded by the register they go to; where more than one rounding is due (``fma``) or the
function is transcendental, NumPy computes in the operation's own precision.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from darwinn_testbench.reference.protocol import ExecutionError

Function = Callable[..., Any]

_MASKS = {32: (1 << 32) - 1, 64: (1 << 64) - 1}


def wrap32(value: int) -> int:
    """A number modulo 2**32 as a signed one."""
    return ((value + 0x8000_0000) & 0xFFFF_FFFF) - 0x8000_0000


def wrap64(value: int) -> int:
    """A number modulo 2**64 as a signed one."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def _truncated_quotient(a: int, b: int) -> int:
    if not b:
        raise ExecutionError("a division of an integer by zero")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _truncated_remainder(a: int, b: int) -> int:
    return a - b * _truncated_quotient(a, b)


def _sign_extended(bits: int) -> Function:
    half, mask = 1 << (bits - 1), (1 << bits) - 1
    return lambda a: ((a + half) & mask) - half


def _integer(bits: int) -> dict[str, Function]:
    """Operations on integers of 32 or 64 bits."""
    wrap, mask, name = (wrap32, wrap64)[bits == 64], _MASKS[bits], f"i{bits}"
    shift = bits - 1
    return {
        f"add.{name}": lambda a, b: wrap(a + b),
        f"sub.{name}": lambda a, b: wrap(a - b),
        f"mul.{name}": lambda a, b: wrap(a * b),
        f"div.{name}.s": lambda a, b: wrap(_truncated_quotient(a, b)),
        f"div.{name}.u": lambda a, b: wrap(_truncated_quotient(a & mask, b & mask)),
        f"rem.{name}.s": _truncated_remainder,
        f"rem.{name}.u": lambda a, b: wrap(_truncated_remainder(a & mask, b & mask)),
        f"fma.{name}": lambda a, b, c: wrap(a * b + c),
        f"not.{name}": lambda a: ~a,
        f"and.{name}": lambda a, b: a & b,
        f"or.{name}": lambda a, b: a | b,
        f"xor.{name}": lambda a, b: a ^ b,
        f"shl.{name}": lambda a, b: wrap(a << (b & shift)),
        f"shr.{name}.s": lambda a, b: a >> (b & shift),
        f"shr.{name}.u": lambda a, b: wrap((a & mask) >> (b & shift)),
        f"cmp.eq.{name}": lambda a, b: int(a == b),
        f"cmp.ne.{name}": lambda a, b: int(a != b),
        f"cmp.lt.{name}.s": lambda a, b: int(a < b),
        f"cmp.lt.{name}.u": lambda a, b: int(a & mask < b & mask),
        f"cmp.nz.{name}": lambda a: int(a != 0),
        f"ctlz.{name}": lambda a: bits - (a & mask).bit_length(),
        f"abs.{name}": lambda a: wrap(abs(a)),
        f"min.{name}.s": min,
        f"max.{name}.s": max,
        f"min.{name}.u": lambda a, b: a if a & mask < b & mask else b,
        f"max.{name}.u": lambda a, b: b if a & mask < b & mask else a,
    }


_CONVERSIONS: dict[str, Function] = {
    "trunc.i32.i8": lambda a: a & 0xFF,
    "trunc.i32.i16": lambda a: a & 0xFFFF,
    "trunc.i64.i32": wrap32,
    "ext.i8.i32.s": _sign_extended(8),
    "ext.i8.i32.u": lambda a: a & 0xFF,
    "ext.i16.i32.s": _sign_extended(16),
    "ext.i16.i32.u": lambda a: a & 0xFFFF,
    "ext.i32.i64.s": lambda a: a,
    "ext.i32.i64.u": lambda a: a & _MASKS[32],
}


def _divide(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if math.isnan(a) or not a else math.copysign(math.inf, a) * math.copysign(1, b)


def _remainder(a: float, b: float) -> float:
    """IEEE remainder: the quotient rounded to the nearest, ties to even."""
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or not b:
        return math.nan
    return math.remainder(a, b)


def _minimum(a: float, b: float) -> float:
    return b if b < a else a


def _maximum(a: float, b: float) -> float:
    return b if b > a else a


def _round_away(a: float) -> float:
    """Round half away from zero."""
    if not math.isfinite(a) or not a:
        return a
    whole = math.floor(abs(a))
    return math.copysign(whole + (abs(a) - whole >= 0.5), a)


def _round_even(a: float) -> float:
    return math.copysign(round(a), a) if math.isfinite(a) else a


def _whole(function: Callable[[float], int]) -> Function:
    return lambda a: math.copysign(function(a), a) if math.isfinite(a) else a


def _to_integer(bits: int, signed: bool) -> Function:
    """Round half away from zero and convert; what does not fit is undefined, here the nearest."""
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << (bits - signed)) - 1
    wrap = wrap32 if bits == 32 else wrap64

    def convert(a: float) -> int:
        if math.isnan(a):
            return 0
        if math.isinf(a):
            return wrap(high if a > 0 else low)
        return wrap(min(max(int(_round_away(a)), low), high))

    return convert


def _from_integer(bits: int, source: Any, target: type[np.floating[Any]]) -> Function:
    """Convert with one rounding; an unsigned source takes the bits of the signed value."""
    mask = _MASKS[bits] if np.issubdtype(source, np.unsignedinteger) else -1
    return lambda a: float(source(a & mask).astype(target))


def _ordered(function: Callable[[float, float], bool]) -> Function:
    return lambda a, b: int(function(a, b) and a == a and b == b)


def _unordered(function: Callable[[float, float], bool]) -> Function:
    return lambda a, b: int(function(a, b) or a != a or b != b)


_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "lte": lambda a, b: a <= b,
}
_UNARY_NUMPY: Mapping[str, Any] = {
    "atan": np.arctan,
    "cos": np.cos,
    "sin": np.sin,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
}
_BINARY_NUMPY: Mapping[str, Any] = {"atan2": np.arctan2, "pow": np.power}


def _float(name: str, dtype: type[np.floating[Any]]) -> dict[str, Function]:
    """Operations on floats of 32 or 64 bits."""

    def unary(function: Any) -> Function:
        return lambda a: float(function(dtype(a)))

    def binary(function: Any) -> Function:
        return lambda a, b: float(function(dtype(a), dtype(b)))

    operations: dict[str, Function] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": _divide,
        "rem": _remainder,
        # The product is rounded before the sum, as in the original's portable build.
        "fma": lambda a, b, c: float(dtype(a) * dtype(b) + dtype(c)),
        "abs": abs,
        "neg": lambda a: -a,
        "ceil": _whole(math.ceil),
        "floor": _whole(math.floor),
        "round": _round_away,
        "min": _minimum,
        "max": _maximum,
        "rsqrt": lambda a: float(dtype(1) / np.sqrt(dtype(a))),
        "erf": math.erf,
        "cmp.nan": lambda a: int(a != a),
    }
    operations |= {key: unary(function) for key, function in _UNARY_NUMPY.items()}
    operations |= {key: binary(function) for key, function in _BINARY_NUMPY.items()}
    named = {f"{key}.{name}": function for key, function in operations.items()}
    named[f"round.{name}.even"] = _round_even
    for key, function in _COMPARISONS.items():
        named[f"cmp.{key}.{name}.o"] = _ordered(function)
        named[f"cmp.{key}.{name}.u"] = _unordered(function)
    for bits, signed, unsigned in ((32, np.int32, np.uint32), (64, np.int64, np.uint64)):
        named[f"cast.si{bits}.{name}"] = _from_integer(bits, signed, dtype)
        named[f"cast.ui{bits}.{name}"] = _from_integer(bits, unsigned, dtype)
        named[f"cast.{name}.si{bits}"] = _to_integer(bits, signed=True)
        named[f"cast.{name}.ui{bits}"] = _to_integer(bits, signed=False)
    return named


def _bits(source: str, target: str) -> Function:
    pack, unpack = struct.Struct(f"<{source}"), struct.Struct(f"<{target}")
    return lambda a: unpack.unpack(pack.pack(a))[0]


PURE: Mapping[str, Function] = {
    **_integer(32),
    **_integer(64),
    **_CONVERSIONS,
    **_float("f32", np.float32),
    **_float("f64", np.float64),
    "trunc.f64.f32": lambda a: a,
    "ext.f32.f64": lambda a: a,
    "bitcast.i32.f32": _bits("i", "f"),
    "bitcast.f32.i32": _bits("f", "i"),
    "bitcast.i64.f64": _bits("q", "d"),
    "bitcast.f64.i64": _bits("d", "q"),
    "cmp.eq.ref": lambda a, b: int(a is b),
    "cmp.ne.ref": lambda a, b: int(a is not b),
    "cmp.nz.ref": lambda a: int(a is not None),
}
"""Operations by mnemonic; each takes the values of the registers that are read, in their order."""
