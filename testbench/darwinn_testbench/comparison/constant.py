"""A constant of a program, and what tells it from others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from darwinn_reference.arrays import AnyArray

LEAST = 16
"""Elements of a constant from which on it can be told from others."""
SHARE = 10
"""Of so many elements one may differ in two constants that are taken for one."""
MOST_RANK = 5
"""Dimensions of a constant of which all orders are tried."""


@dataclass(frozen=True, eq=False)
class Constant:
    """A constant: how its program calls it, and its elements."""

    name: str
    data: AnyArray


def mark(data: AnyArray) -> tuple[int, ...]:
    """Sums of powers of the stored bits: of the same elements in any order they are the same."""
    bits = np.ascontiguousarray(data).view(f"u{data.dtype.itemsize}").astype(np.uint64)
    return tuple(int((bits**power).sum()) for power in (1, 2, 3))
