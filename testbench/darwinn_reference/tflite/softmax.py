"""SOFTMAX as programs compute it on the tiles, in 16-bit steps (docs/chip-facts.md).

exponential of each difference to the greatest -> sum -> reciprocal root -> square -> product. Each
step rounds to 16 bits, so that a share whose 256-fold lies within about 0.1 % of the middle between
two bytes may come out one higher or lower than the exact value. The two functions are tables that
the program loads, and are taken from there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.call import SoftmaxFunctions

EXPONENTIAL_ONE = 65535
"""The exponential of 0."""

ROOT_ONE = 46340
"""The reciprocal root of 1: the greatest integer whose square fits in 31 bits."""

SQUARE_LIMIT = 32768
"""Clip of the square of the reciprocal root."""

EXPONENTIAL_UNIT = np.float32(1 / EXPONENTIAL_ONE)
_ROOT_UNIT = np.float32(1 / ROOT_ONE)
SHARE_FACTOR = _ROOT_UNIT * _ROOT_UNIT * np.float32(256)
"""Scale fields of the instructions, to the bit in every public program; rounded once the last would
be one step above it."""


def shares(
    differences: AnyArray, scale: np.float32, functions: SoftmaxFunctions
) -> NDArray[np.int64]:
    """round(256 * softmax) along the last axis, 0 to 255.

    ``differences`` are integers, each value less the greatest of its row, in units of ``scale``.
    """
    real = differences.astype(np.float32) * scale
    powers = to_16_bits(functions.exponential(real), EXPONENTIAL_ONE)
    total = powers.sum(axis=-1, keepdims=True).astype(np.float32) * EXPONENTIAL_UNIT
    roots = to_16_bits(functions.inverse_root(total), EXPONENTIAL_ONE)
    squares = to_16_bits((roots * roots).astype(np.float32) * EXPONENTIAL_UNIT, SQUARE_LIMIT)
    products = (powers * squares).astype(np.float32) * SHARE_FACTOR
    return to_16_bits(products, 255)


def to_16_bits(values: NDArray[np.float32], highest: int) -> NDArray[np.int64]:
    """Values as the output stage rounds and bounds them."""
    return np.rint(np.clip(values, 0, highest)).astype(np.int64)
