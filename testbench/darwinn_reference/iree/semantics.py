"""What each operation without side effects computes: one function of the operands' values.

Values are Python numbers: i32 and i64 signed, f32 and f64 as float. Results of float operations
are rounded by the register they go to; where more than one rounding is due (``fma``), NumPy
computes in the operation's own precision. Where the original deviates from what the name of an
operation promises, so does this (docs/formats-iree.md names the cases): tests compare the two.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError

Function = Callable[..., Any]

_UNREPRESENTABLE = -(1 << 63)
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
    half, shift = 1 << (bits - 1), bits - 1
    return {
        # The most frequent ones wrap in place: a call takes as long as they do.
        f"add.{name}": lambda a, b: ((a + b + half) & mask) - half,
        f"sub.{name}": lambda a, b: ((a - b + half) & mask) - half,
        f"mul.{name}": lambda a, b: ((a * b + half) & mask) - half,
        f"div.{name}.s": lambda a, b: wrap(_truncated_quotient(a, b)),
        f"div.{name}.u": lambda a, b: wrap(_truncated_quotient(a & mask, b & mask)),
        f"rem.{name}.s": _truncated_remainder,
        f"rem.{name}.u": lambda a, b: wrap(_truncated_remainder(a & mask, b & mask)),
        f"fma.{name}": lambda a, b, c: ((a * b + c + half) & mask) - half,
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
    """Round half to even; the sign of zero is lost, as in the original."""
    return float(round(a)) if math.isfinite(a) and a else a


def _whole(function: Callable[[float], int]) -> Function:
    return lambda a: math.copysign(function(a), a) if math.isfinite(a) else a


def _nearest_integer(a: float) -> int:
    """C's ``llround``: half away from zero, and -2**63 for what does not fit 64 bits."""
    if not math.isfinite(a):
        return _UNREPRESENTABLE
    nearest = int(_round_away(a))
    return nearest if -(1 << 63) <= nearest < 1 << 63 else _UNREPRESENTABLE


def _to_integer(bits: int, dtype: type[np.floating[Any]]) -> Function:
    """Round to 64 bits and keep the low ones, signed or not.

    The original rounds in the precision of f32 when it converts to 32 bits.
    """
    wrap = wrap32 if bits == 32 else wrap64
    return lambda a: wrap(_nearest_integer(float(dtype(a))))


def _from_integer(bits: int, source: Any, target: type[np.floating[Any]]) -> Function:
    """Convert with one rounding; an unsigned source takes the bits of the signed value."""
    mask = _MASKS[bits] if np.issubdtype(source, np.unsignedinteger) else -1
    return lambda a: float(source(a & mask).astype(target))


def _ordered(function: Callable[[float, float], bool]) -> Function:
    """C's comparison: false with a NaN, except that NaN is not equal to anything."""
    return lambda a, b: int(function(a, b))


def _unordered(function: Callable[[float, float], bool]) -> Function:
    return lambda a, b: int(function(a, b) or a != a or b != b)


_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "lte": lambda a, b: a <= b,
}
_LIBRARY: Mapping[str, tuple[Callable[..., float], Any]] = {
    "atan": (math.atan, np.arctan),
    "atan2": (math.atan2, np.arctan2),
    "cos": (math.cos, np.cos),
    "sin": (math.sin, np.sin),
    "exp": (math.exp, np.exp),
    "exp2": (math.exp2, np.exp2),
    "expm1": (math.expm1, np.expm1),
    "log": (math.log, np.log),
    "log10": (math.log10, np.log10),
    "log1p": (math.log1p, np.log1p),
    "log2": (math.log2, np.log2),
    "pow": (math.pow, np.power),
    "sqrt": (math.sqrt, np.sqrt),
    "tanh": (math.tanh, np.tanh),
}
"""Functions of the C library, and what gives infinity or NaN where Python raises an error."""


def _library(function: Callable[..., float], special: Any) -> Function:
    def compute(*values: float) -> float:
        try:
            return function(*values)
        except (ValueError, OverflowError):
            return float(special(*(np.float64(value) for value in values)))

    return compute


def _float(name: str, dtype: type[np.floating[Any]]) -> dict[str, Function]:
    """Operations on floats of 32 or 64 bits."""

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
    operations |= {key: _library(*functions) for key, functions in _LIBRARY.items()}
    named = {f"{key}.{name}": function for key, function in operations.items()}
    named[f"round.{name}.even"] = _round_even
    for key, function in _COMPARISONS.items():
        named[f"cmp.{key}.{name}.o"] = _ordered(function)
        named[f"cmp.{key}.{name}.u"] = _unordered(function)
    for bits, signed, unsigned in ((32, np.int32, np.uint32), (64, np.int64, np.uint64)):
        named[f"cast.si{bits}.{name}"] = _from_integer(bits, signed, dtype)
        named[f"cast.ui{bits}.{name}"] = _from_integer(bits, unsigned, dtype)
        precision = np.float32 if bits == 32 else dtype
        named[f"cast.{name}.si{bits}"] = _to_integer(bits, precision)
        named[f"cast.{name}.ui{bits}"] = _to_integer(bits, precision)
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
