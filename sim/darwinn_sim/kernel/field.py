"""Numbers of values: elements of the field of 2^61 - 1, in which linear forms are compared.

Bytes that nobody knows get random elements. A sum of products then has the same element as another
sum if both are the same linear form, and otherwise with a probability of 2^-61: a form that is not
0 has one root in each of its variables. What becomes of a sum is a hash of its element
(:func:`mixed`). A constant is its value, so that elements below ``CONSTANTS`` are constant bytes.
No random element and no hash is within 2^31 of 0, as constants of 32 bits are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel.compiled import compiled, inner

MODULUS = (1 << 61) - 1

CONSTANTS = 256
"""Elements below this are constant bytes of that value."""

LOW_BITS = 31
"""Bits of the lower of two parts of an element; products of either with a weight fit in 64 bits."""

_P = np.uint64(MODULUS)
_LOW = np.uint64((1 << LOW_BITS) - 1)
_HIGH_BITS = np.uint64(61 - LOW_BITS)
_HIGH = np.uint64((1 << (61 - LOW_BITS)) - 1)
_SHIFT = np.uint64(LOW_BITS)
_SPAN = np.uint64(61)
_ONE, _TWO = np.uint64(1), np.uint64(2)

_NEAR = np.uint64(1 << 31)
"""No variable is that near to 0, from either side."""
_FAR = np.uint64(MODULUS - (1 << 31))

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = np.uint64(0x94D049BB133111EB)


@inner
def folded(value: np.uint64) -> np.uint64:
    """An integer of 64 bits as an element."""
    value = (value & _P) + (value >> _SPAN)
    return np.uint64(value - _P) if value >= _P else value


@inner
def added(one: np.uint64, other: np.uint64) -> np.uint64:
    """The sum of two elements."""
    total = one + other
    return np.uint64(total - _P) if total >= _P else total


@inner
def subtracted(one: np.uint64, other: np.uint64) -> np.uint64:
    """The difference of two elements."""
    return np.uint64(one - other) if one >= other else np.uint64(one + _P - other)


@inner
def multiplied(one: np.uint64, other: np.uint64) -> np.uint64:
    """The product of two elements."""
    a, b = one >> _SHIFT, one & _LOW
    c, d = other >> _SHIFT, other & _LOW
    middle = a * d + b * c
    # 2^62 is 2 in this field, and 2^61 is 1.
    total = _TWO * (a * c) + (middle >> _HIGH_BITS) + ((middle & _HIGH) << _SHIFT)
    return folded(np.uint64(folded(total) + folded(b * d)))


@inner
def of_integer(value: int | np.int64) -> np.uint64:
    """An integer of 64 bits with a sign as an element."""
    if value < 0:
        return subtracted(np.uint64(0), folded(np.uint64(-value)))
    return folded(np.uint64(value))


@inner
def of_parts(low: int, high: int) -> np.uint64:
    """``low + high * 2^LOW_BITS``, of sums of the parts of elements."""
    upper = of_integer(high)
    upper = folded(np.uint64((upper >> _HIGH_BITS) + ((upper & _HIGH) << _SHIFT)))
    return added(of_integer(low), upper)


@inner
def low_part(element: np.uint64) -> np.int64:
    """The lower part of an element."""
    return np.int64(element & _LOW)


@inner
def high_part(element: np.uint64) -> np.int64:
    """The upper part of an element."""
    return np.int64(element >> _SHIFT)


@inner
def inverse(element: np.uint64) -> np.uint64:
    """What gives 1 with an element that is not 0: its power of the modulus less 2."""
    result, base, power = _ONE, element, MODULUS - 2
    while power:
        if power & 1:
            result = multiplied(result, base)
        base = multiplied(base, base)
        power >>= 1
    return result


@inner
def _scrambled(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> np.uint64(30))) * _FIRST_FACTOR
    value = (value ^ (value >> np.uint64(27))) * _SECOND_FACTOR
    return np.uint64(value ^ (value >> np.uint64(31)))


@inner
def mixed(one: np.uint64, other: np.uint64) -> np.uint64:
    """A hash of two numbers of 64 bits, in this order: no constant."""
    value = folded(_scrambled(_scrambled(one + _STEP) ^ (other * _STEP + _FIRST_FACTOR)))
    if value < _NEAR:
        return np.uint64(value + _NEAR)
    return np.uint64(value - _NEAR) if value > _FAR else value


@compiled
def mix(one: NDArray[np.uint64], other: NDArray[np.uint64], found: NDArray[np.uint64]) -> None:
    """:func:`mixed` of all."""
    for i in range(len(found)):
        found[i] = mixed(one[i], other[i])


@compiled
def join_parts(
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    constant: NDArray[np.int64],
    found: NDArray[np.uint64],
) -> None:
    """:func:`of_parts` plus a constant, of all."""
    for i in range(len(found)):
        found[i] = added(of_parts(low[i], high[i]), of_integer(constant[i]))


def random_elements(random: np.random.Generator, count: int) -> NDArray[np.uint64]:
    """Elements for bytes that nobody knows: none is a constant."""
    found: NDArray[np.uint64] = random.integers(_NEAR, _FAR, count, np.uint64)
    return found
