"""The factors of output stages, as compilers round them: each function is one rule.

Which rules beside each of them the public executables rule out: ``roundings``.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from darwinn_reference.tflite.graph import NetworkTensor
from darwinn_reference.tflite.output_stage import reciprocal

MAXIMUM_WEIGHT = 2**15 - 1
"""Greatest 16-bit weight that the compiler gives an operand of an addition."""

BYTE_SPAN = 255
"""Steps from the least byte to the greatest one."""

MIDDLE = 128
"""The zero point of a difference that is kept in steps of two."""

_NEARLY = 2.0**-22
"""Relative error of what is the same but for roundings of float32."""

ROOT_STEPS = np.float32(2**16 - 1)
"""Steps of the reciprocal root of the least length of a vector, 1."""

Factors = NDArray[np.float32]


def conversion_factor(
    input_scale: np.float32, output: NetworkTensor, weight_scale: Factors | None = None
) -> Factors:
    """Factor from the sum's unit to the output's.

    It is float32(float32(s_in * s_w) * float32(1 / s_out)), rounded at each step: one element, or
    one for each output channel if ``weight_scale`` has one for each.
    """
    unit = np.atleast_1d(np.float32(input_scale))
    if weight_scale is not None:
        unit = unit * weight_scale.astype(np.float32)
    factor: Factors = unit * reciprocal(output.scale[0])
    return factor


def averaging_factor(
    input_scale: np.float32, output_scale: np.float32, elements: int
) -> np.float32:
    """Factor of a sum of ``elements`` that becomes their mean: float32(float32(s_in / s_out) / n).

    Both are divisions: with equal scales nothing is left but 1 / n.
    """
    return np.float32(input_scale) / np.float32(output_scale) / np.float32(elements)


def staged_factors(
    input_scale: np.float32, output_scale: np.float32, extents: tuple[int, int]
) -> tuple[np.float32, np.float32]:
    """Factors of a mean that is made of one axis after the other.

    Sums of the first axis are kept in steps of float32(s_in / n): their factor is 1 but for the
    last bit.
    """
    step = np.float32(input_scale) / np.float32(extents[0])
    first = averaging_factor(input_scale, step, extents[0])
    return first, averaging_factor(step, output_scale, extents[1])


def fraction(ratio: Fraction, limit: int = MAXIMUM_WEIGHT) -> tuple[int, int]:
    """The best fraction for a positive ratio whose two integers are at most ``limit``."""
    if ratio <= 1:
        limited = ratio.limit_denominator(limit)
        return limited.numerator, limited.denominator
    limited = (1 / ratio).limit_denominator(limit)
    return limited.denominator, limited.numerator


def addition_weights(
    first_scale: np.float32, second_scale: np.float32, output: NetworkTensor
) -> tuple[int, int, np.float32]:
    """Weights of the two operands of an addition and the factor of their sum.

    The weights are the best approximation of the ratio of the scales by a fraction of integers of
    at most 15 bits, and the factor is float32(float32(s_a / w_a) * float32(1 / s_out)). An operand
    whose scale is too small beside the other has a weight of 0, and the factor is of the other.
    """
    first, second = fraction(Fraction(float(first_scale)) / Fraction(float(second_scale)))
    unit = first_scale / np.float32(first) if first else second_scale / np.float32(second)
    return first, second, unit * reciprocal(output.scale[0])


def difference_weights(
    first_scale: np.float32, second_scale: np.float32, output: NetworkTensor
) -> tuple[int, int, np.float32]:
    """The weights of both sides of a SQUARED_DIFFERENCE, and the unit of the difference."""
    first, second, _ = addition_weights(first_scale, second_scale, output)
    unit = first_scale / np.float32(first) if first else second_scale / np.float32(second)
    return first, second, unit


def elder_addition_weights(
    first_scale: np.float32,
    second_scale: np.float32,
    output: NetworkTensor,
    held: Collection[float],
) -> tuple[int, int, np.float32] | None:
    """Weights of an addition that are not those of :func:`addition_weights`, by the factor that an
    elder compiler's program holds (``held``); None if it holds no such factor.

    The factor gives one weight, and the ratio of the scales the other; both must be integers as
    nearly as float32 tells. (mobilenet_v2 of iNat insects, 2019: 6909 and 5466 in place of 25175
    and 19917. How that compiler chose them is not known.)
    """
    first, second = float(first_scale), float(second_scale)
    unit = first / float(output.scale[0])
    known, _, _ = addition_weights(first_scale, second_scale, output)
    for factor in sorted(held):
        weight = round(unit / factor) if factor * MAXIMUM_WEIGHT > unit else 0
        other = round(weight * second / first)
        if weight == known or not (weight and 0 < other <= MAXIMUM_WEIGHT):
            continue
        errors = factor * weight / unit - 1, other * first / (weight * second) - 1
        if max(map(abs, errors)) < _NEARLY:
            return weight, other, np.float32(factor)
    return None


def halved_difference(scale: np.float32) -> tuple[np.float32, np.float32]:
    """Factor and upper bound of a difference of two bytes that is kept in steps of two.

    The compiler makes a maximum of two tensors of it: the second one less twice what it has more
    than the first one, which is at most 0. The bound is that of its magnitude.
    """
    unit = 2 * scale
    return scale * reciprocal(unit), np.float32(np.rint(np.float32(BYTE_SPAN) * scale / unit))


def root_unit(scale: np.float32) -> np.float32:
    """One step of the reciprocal root of a sum of squares: float32(float32(1 / s) / 65535)."""
    return reciprocal(scale) / ROOT_STEPS


def constant_term(levels: NDArray[np.int64], scale: np.float32, unit: np.float32) -> Factors:
    """Biases of constant terms ``levels * scale`` in steps of ``unit``, rounded to integers.

    The steps are float64: in float32 0.5 would be a little less than half of an odd number of
    steps of 2/255.
    """
    steps = float(scale) / float(unit)
    return np.rint(levels.astype(np.float64) * steps).astype(np.float32)
