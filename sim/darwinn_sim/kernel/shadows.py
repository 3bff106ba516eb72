"""Shadows of bytes beside which numbers stand: 0 of one that is not known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

KNOWN = 1
"""What stands for the number of a byte of the host that is known: its value is its number."""

SHADOW = 4
"""Bit of the shadow of a byte whose value is known, and whose number is its origin."""

ORIGINS = 1 << 62
"""Numbers of bytes of the host from here on are those of known bytes: their origins."""


def shadows_of(numbers: NDArray[Any]) -> NDArray[np.uint8]:
    """Shadows of bytes of the host, by their numbers."""
    origin = numbers >= np.uint64(ORIGINS)
    found: NDArray[np.uint8] = np.where(origin, KNOWN | SHADOW, numbers == KNOWN).astype(np.uint8)
    return found


def places_of(numbers: NDArray[Any]) -> NDArray[np.uint64]:
    """Numbers of bytes on the chip, from those of bytes of the host."""
    origin = numbers >= np.uint64(ORIGINS)
    return np.where(origin, numbers - np.uint64(ORIGINS), numbers).astype(np.uint64)
