"""The chip's output stage: int32 sum times float32 factor, clip, round half to even, offset.

Decided by published outputs of real Edge TPUs (docs/comparison.md, "The chip's arithmetic"): any
other rule for ties, or a float64 product, changes thousands of output bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.graph import NetworkTensor

INT16_MAXIMUM = 2**15 - 1
INT32_MAXIMUM = 2**31 - 1
FLOAT32_INTEGERS = 2**24
"""float32 holds every integer up to this magnitude."""
FLOAT64_INTEGERS = 2**53
"""float64 holds every integer up to this magnitude."""


class NotComputableError(Exception):
    """An operator, or one form of it, whose arithmetic on the chip is not known: says which."""


def reciprocal(scale: np.float32) -> np.float32:
    """float32(1 / scale), as the compiler forms it."""
    return np.float32(1) / np.float32(scale)


def bound(real: float, output: NetworkTensor) -> np.float32:
    """A bound of the real value in units of the output: float32(real * float32(1 / s_out))."""
    return np.float32(real) * reciprocal(output.scale[0])


def clip_bounds(output: NetworkTensor, activation: str = "NONE") -> tuple[np.float32, np.float32]:
    """Lower and upper bound in units of the output, before the zero point is added.

    Raises:
        NotComputableError: a fused activation that is no clip.
    """
    limits = np.iinfo(output.dtype)
    zero_point = int(output.zero_point[0])
    low, high = np.float32(limits.min - zero_point), np.float32(limits.max - zero_point)
    if activation not in _ACTIVATIONS:
        raise NotComputableError(f"fused activation {activation}")
    real_low, real_high = _ACTIVATIONS[activation]
    return np.maximum(low, bound(real_low, output)), np.minimum(high, bound(real_high, output))


def output_stage(
    total: AnyArray,
    factor: NDArray[np.float32] | np.float32,
    output: NetworkTensor,
    activation: str = "NONE",
) -> AnyArray:
    """Turn exact integer sums (any dtype that holds them) into values of ``output``.

    ``factor`` broadcasts against ``total``; the result has the dtype of ``output``.
    """
    bounds = clip_bounds(output, activation)
    return requantise(total, factor, bounds, int(output.zero_point[0]), output.dtype)


def low_bytes(total: AnyArray, factor: NDArray[np.float32], output: NetworkTensor) -> AnyArray:
    """As :func:`output_stage` without bounds: of a result beyond a byte the low byte is kept."""
    rounded = np.rint(total.astype(np.float32) * factor).astype(np.int64)
    kept: AnyArray = (rounded + int(output.zero_point[0])).astype(output.dtype)
    return kept


def requantise(
    total: AnyArray,
    factor: NDArray[np.float32] | np.float32,
    bounds: tuple[np.float32, np.float32],
    zero_point: int,
    dtype: DTypeLike,
) -> AnyArray:
    """Exact integer sums times ``factor``, clipped to ``bounds``, rounded, plus ``zero_point``."""
    # The dtype of the sums holds them exactly, so that this is the only rounding to float32.
    scaled = total.astype(np.float32)
    scaled *= factor
    np.clip(scaled, *bounds, out=scaled)
    np.rint(scaled, out=scaled)
    # Integers of at most 17 bits: exact in float32.
    scaled += np.float32(zero_point)
    return scaled.astype(dtype)


def summing_dtype(bound: float) -> type[np.float32] | type[np.float64]:
    """The float type in which a sum of integers is exact in any order of summation.

    ``bound`` is the sum of the magnitudes of all terms, and so an upper limit of the magnitude of
    every partial sum: if it is at most 2^24 (2^53), each partial sum is an integer that float32
    (float64) holds, no addition rounds, and fused multiply-add changes nothing either.

    Raises:
        NotComputableError: no float type holds such a sum.
    """
    if bound > FLOAT64_INTEGERS:
        raise NotComputableError(f"the sum may reach {bound:.3g}, beyond float64")
    return np.float32 if bound <= FLOAT32_INTEGERS else np.float64


def accumulated(sums: AnyArray, factor: NDArray[np.float32], reach: float) -> tuple[AnyArray, bool]:
    """What the chip's accumulator of 32 bits holds of exact sums, and whether it matters.

    ``reach`` bounds the magnitude of the sums. Sums beyond int32 wrap. It does not matter where the
    factor makes 0 of every int32.
    """
    if reach <= INT32_MAXIMUM:
        return sums, False
    beyond = _beyond(sums)
    wrapped = np.where(beyond, (sums + _SPAN / 2) % _SPAN - _SPAN / 2, sums)
    return wrapped, _matters(beyond, factor)


def biased(sums: AnyArray, factor: NDArray[np.float32], reach: float) -> tuple[AnyArray, bool]:
    """As :func:`accumulated`, of sums to which a bias has been added: they saturate.

    Compilers give a dead channel (weights of scale 1e-21) a bias of 2^31 - 1, where it does not
    matter.
    """
    if reach <= INT32_MAXIMUM:
        return sums, False
    return np.clip(sums, -INT32_MAXIMUM - 1, INT32_MAXIMUM), _matters(_beyond(sums), factor)


_SPAN = 2.0 * (INT32_MAXIMUM + 1)


def _beyond(sums: AnyArray) -> NDArray[np.bool_]:
    beyond: NDArray[np.bool_] = (sums > INT32_MAXIMUM) | (sums < -INT32_MAXIMUM - 1)
    return beyond


def _matters(beyond: NDArray[np.bool_], factor: NDArray[np.float32]) -> bool:
    return bool((beyond & (factor * _SPAN / 2 > 0.5)).any())


_ACTIVATIONS: dict[str, tuple[float, float]] = {
    "NONE": (-np.inf, np.inf),
    "RELU": (0.0, np.inf),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU_0_TO_1": (0.0, 1.0),
}
"""Fused activations that are a clip, as bounds of the real value."""
