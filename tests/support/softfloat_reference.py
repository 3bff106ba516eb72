"""The tensor unit's float32 arithmetic as Berkeley SoftFloat computes it, many operands at once.

The library is the one inside of ``softfloatpy``: its functions take and give the bits of a float
(``float32_t`` is a structure of one ``uint32_t``, which is passed like one). They round to nearest,
ties to even, and keep subnormal numbers. The rules where IEEE 754 leaves a choice, or the RTL has
its own (of none of which anything is known of the chip):

- a result that is no number is 7fc00000;
- an integer of what is no number is 0; beyond int32 it is the nearest end, or without saturation
  the low 32 bits of the integer (0 of an infinity);
- what is no number is neither below nor above a clip, and lies in the last segment of a table.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import softfloatpy._core
from numba import njit
from numpy.typing import NDArray

_LIBRARY = ctypes.CDLL(softfloatpy._core.__file__)
_WORD, _MODE, _EXACT = ctypes.c_uint32, ctypes.c_uint8, ctypes.c_bool


def _function(name: str, result: Any, *arguments: Any) -> Any:
    found = getattr(_LIBRARY, name)
    found.restype, found.argtypes = result, arguments
    return found


multiply = _function("f32_mul", _WORD, _WORD, _WORD)
add = _function("f32_add", _WORD, _WORD, _WORD)
less_than = _function("f32_lt_quiet", _EXACT, _WORD, _WORD)
from_int32 = _function("i32_to_f32", _WORD, ctypes.c_int32)
_to_int64 = _function("f32_to_i64", ctypes.c_int64, _WORD, _MODE, _EXACT)

Words = NDArray[np.uint32]

QUIET = 0x7FC0_0000
RESULTS = np.dtype(
    [(name, "<u4") for name in ("product", "total", "less", "converted", "nearest", "low_bits")]
)
"""What ``rtl/bench/arithmetic.cpp`` gives for two operands."""

CASES = np.dtype(
    [
        *((name, "<u4") for name in ("sum", "bias", "scale", "high_clip", "low_clip")),
        *(("switches", "<u4"), ("zero_point", "<u4")),
    ]
)
"""A case of the output stage, as it takes them."""

CLIPS, FUNCTION, REDUCES, SYMMETRIC, ODD, WIDE, RAW = (1 << bit for bit in range(7))
"""Switches of the output stage."""


@njit
def _is_nan(x: Any) -> Any:
    return (x & 0x7FFFFFFF) > 0x7F800000


@njit
def _quiet(x: Any) -> Any:
    return np.uint32(0x7FC00000) if _is_nan(x) else np.uint32(x)


@njit
def _multiply(a: Any, b: Any) -> Any:
    return _quiet(multiply(a, b))


@njit
def _add(a: Any, b: Any) -> Any:
    return _quiet(add(a, b))


@njit
def _to_int(x: Any, saturates: Any) -> Any:
    """As a signed number of 64 bits: of int32, or its low 32 bits."""
    if _is_nan(x):
        return np.int64(0)
    exponent = (x >> 23) & 0xFF
    if exponent >= 127 + 62:  # a multiple of 2^39
        integer = np.int64(-(1 << 40) if x >> 31 else 1 << 40)
    else:
        integer = np.int64(_to_int64(x, 0, False))
    if saturates:
        return min(max(integer, np.int64(-(1 << 31))), np.int64((1 << 31) - 1))
    return integer & np.int64(0xFFFFFFFF)


@njit
def _functions(a: Any, b: Any, product: Any, total: Any, less: Any, integers: Any) -> None:
    for i in range(a.size):
        product[i] = _multiply(a[i], b[i])
        total[i] = _add(a[i], b[i])
        less[i] = less_than(a[i], b[i])
        integers[0, i] = from_int32(np.int32(a[i]))
        integers[1, i] = _to_int(a[i], True) & 0xFFFFFFFF
        integers[2, i] = _to_int(a[i], False)


def functions(a: Words, b: Words) -> NDArray[np.void]:
    """The :data:`RESULTS` of pairs of operands."""
    results = np.empty(a.size, RESULTS)
    plain = np.empty((3, a.size), np.uint32)
    integers = np.empty((3, a.size), np.uint32)
    _functions(a, b, *plain, integers)
    columns = [*plain, *integers]
    for name, column in zip(RESULTS.names or (), columns, strict=True):
        results[name] = column
    return results


@njit
def _table(x: Any, bounds: Any, coefficients: Any) -> Any:
    segment = 0
    for bound in bounds:
        if less_than(x, bound):
            break
        segment += 1
    found = np.uint32(coefficients[segment, coefficients.shape[1] - 1])
    for power in range(coefficients.shape[1] - 2, -1, -1):
        found = _add(_multiply(found, x), coefficients[segment, power])
    return found


@njit
def _reduced(x: Any, bounds: Any, coefficients: Any) -> Any:
    """table(m) * 2^-k of a positive x = m * 4^k."""
    one, four = np.uint32(0x3F800000), np.uint32(0x40800000)
    half, two, quarter = np.uint32(0x3F000000), np.uint32(0x40000000), np.uint32(0x3E800000)
    scale = one
    while not less_than(x, four):
        x, scale = multiply(x, quarter), multiply(scale, half)
    while less_than(x, one):
        x, scale = multiply(x, four), multiply(scale, two)
    return _multiply(_table(x, bounds, coefficients), scale)


@njit
def _stage(
    total: Any, scale: Any, high: Any, low: Any, switches: Any, zero: Any, bounds: Any, table: Any
) -> Any:
    y = _multiply(from_int32(total), scale)
    if switches & 1:
        if less_than(high, y):
            y = np.uint32(high)
        if less_than(y, low):
            y = np.uint32(low)
    if switches & 2:
        negative = less_than(y, np.uint32(0))
        if switches & 4:
            if less_than(np.uint32(0), y) and y != np.uint32(0x7F800000):
                y = _reduced(y, bounds, table)
            else:
                y = _table(y, bounds, table)
        else:
            x = y & np.uint32(0x7FFFFFFF) if switches & 8 else y
            y = _table(x, bounds, table)
            if negative and switches & 8 and switches & 16:
                y = np.uint32(y ^ np.uint32(0x80000000))
    if switches & 64:
        return (_to_int(y, False) + zero) & 0xFF
    highest = 65535 if switches & 32 else 255
    return min(max(_to_int(y, True) + zero, 0), highest)


@njit
def _stages(cases: Any, results: Any, bounds: Any, table: Any) -> None:
    for i in range(cases.shape[0]):
        total, bias, scale, high, low, switches, zero = cases[i]
        with_bias = int(np.int32(total)) + int(np.int32(bias))
        results[i] = _stage(
            np.int32(min(max(with_bias, -(1 << 31)), (1 << 31) - 1)),
            scale,
            high,
            low,
            switches,
            np.int64(zero),
            bounds,
            table,
        )


def stages(cases: NDArray[np.void], bounds: Words, table: Words) -> NDArray[np.uint16]:
    """Results of the output stage; ``table`` has a row of coefficients for each segment."""
    results = np.empty(cases.size, np.uint16)
    _stages(cases.view(np.uint32).reshape(-1, 7), results, bounds, table)
    return results


@cache
def corners() -> Words:
    """Operands in the manner of TestFloat: both signs, exponents at every corner (subnormal, the
    smallest, one and its neighbours, where integers lose bits, where int32 ends, the largest,
    infinity), and fractions of few ones, few zeros, and runs of them."""
    exponents = [
        *(0, 1, 2, 22, 23, 24, 63, 64, 101, 102, 103, 104, 125, 126, 127, 128, 129),
        *(149, 150, 151, 157, 158, 159, 160, 189, 190, 191, 252, 253, 254, 255),
    ]
    ones = [1 << bit for bit in range(23)]
    runs = [(1 << bit) - 1 for bit in range(24)]
    fractions = {
        *(0, *ones, *runs),
        *(0x7FFFFF ^ each for each in (*ones, *runs)),
        *(0x400000 | each for each in ones),
    }
    words = [
        sign << 31 | exponent << 23 | fraction
        for sign in (0, 1)
        for exponent in exponents
        for fraction in sorted(fractions)
    ]
    return np.array(words, np.uint32)
