"""bfloat16, which NumPy lacks: the upper halves of float32 values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BITS = 16


def to_bfloat16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Upper halves of float32 values, rounded to the nearest, ties to even; NaN stays NaN."""
    bits = np.atleast_1d(values).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> _BITS & 1)
    rounded[np.isnan(np.atleast_1d(values))] = 0x7FC00000
    return (rounded >> _BITS).astype(np.uint16).reshape(values.shape)


def from_bfloat16(stored: NDArray[np.uint16]) -> NDArray[np.float32]:
    """The values whose upper halves are ``stored``."""
    return (stored.astype(np.uint32) << _BITS).view(np.float32)
