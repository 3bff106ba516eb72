"""Half precision in float32 arithmetic, which is faster than NumPy's conversions; all bits are
theirs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_EXPONENT = np.int32(0x7F80_0000)
_SIGN = np.int32(-0x8000_0000)
_LEAST = np.float32(2.0**-14)
"""The least normal number: below it the steps stay."""
_TO_STEP = np.float32(1.5 * 2**13)
"""Added to a number times this of its power of two, float32 leaves the bits that a half has."""
_INFINITE = np.float32(32768)
"""From this power of two on a number may become infinite."""
_SHIFT = 13
"""Bits of a float32 that a half lacks."""
_BIAS = np.float32(2.0**112)
"""The exponents of both types are so many powers apart."""
_SIGN_SHIFT = 16
_MAGNITUDE, _NOT_FINITE = 0x7FFF, 0x7C00
_BLOCK = 1 << 15
"""Elements that are converted at once: they stay in the second cache."""


def round_halves(values: NDArray[np.float32], spare: NDArray[np.float32]) -> None:
    """Round numbers in place as a conversion to half precision does: to nearest, ties to even.

    ``spare`` is memory of the same sizes.
    """
    np.bitwise_and(values.view(np.int32), _EXPONENT, out=spare.view(np.int32))
    np.maximum(spare, _LEAST, out=spare)
    if spare.size and spare.max() >= _INFINITE:
        with np.errstate(over="ignore"):
            values[:] = values.astype(np.float16)
        return
    np.multiply(spare, _TO_STEP, out=spare)
    bits = values.view(np.int32)
    # What is rounded to zero would lose it.
    signs = bits & _SIGN
    np.add(values, spare, out=values)
    np.subtract(values, spare, out=values)
    np.bitwise_or(bits, signs, out=bits)


def from_halves(values: NDArray[np.float16]) -> NDArray[np.float32]:
    """Half precision as float32."""
    given = np.ascontiguousarray(values)
    found = np.empty(given.shape, np.float32)
    rows, target = given.reshape(-1), found.reshape(-1)
    for part in _blocks(rows.size):
        bits = rows[part].view(np.int16).astype(np.int32)
        magnitudes = bits & _MAGNITUDE
        if magnitudes.max() >= _NOT_FINITE:
            target[part] = rows[part]
            continue
        np.left_shift(magnitudes, _SHIFT, out=magnitudes)
        np.multiply(magnitudes.view(np.float32), _BIAS, out=target[part])
        target[part].view(np.int32)[:] |= bits << _SIGN_SHIFT & _SIGN
    return found


def _blocks(size: int) -> Iterator[slice]:
    for first in range(0, size, _BLOCK):
        yield slice(first, min(first + _BLOCK, size))
