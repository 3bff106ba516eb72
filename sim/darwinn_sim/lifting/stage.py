"""A stage of a lifted program: runs of sums that are alike, or operations on words."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Numbers32 = NDArray[np.int32]


class Made(IntEnum):
    """How the sums of a stage are made."""

    PRODUCTS = 0
    """Weights times bytes."""
    MAXIMUM = 1
    """The greatest of values of ``width`` bytes each."""
    PAIRS = 2
    """Values times values, of one byte or two."""
    OPERATIONS = 3
    """Not at all: there are operations on words, one after another."""


@dataclass(eq=False)
class Stage:
    """Sums of ``lanes`` at each position, and what is made of them.

    ``operands``: numbers of bytes, shape (positions, k), in values of ``width`` bytes. PAIRS have
    the second factors in ``others``, of ``other_width`` bytes, and take ``zeros`` from both.
    ``weights``: (k, lanes); ``zero``: taken from each byte before, as far as ``offset`` (of each
    lane) does not hold it. ``bias``: added to the sums of the lanes at last, where they may
    saturate; None where they do not. The last ``of_bias`` columns of operands belong to it, too,
    as they are.
    ``operations``: numbers of those on words, which have eight bytes of
    operands each. ``made``: first identity of each position, and of each lane, that the results
    have: (positions, blocks), with the lanes of each block. ``size``: bytes of a result.
    """

    level: int
    row: int
    how: Made
    operands: Numbers32
    weights: Numbers32
    zero: int
    offset: Numbers32
    scale: NDArray[np.float32]
    made: NDArray[np.int64]
    blocks: tuple[int, ...]
    size: int
    table: Numbers32 | None = None
    bias: Numbers32 | None = None
    of_bias: int = 0
    others: Numbers32 = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    width: int = 1
    other_width: int = 1
    zeros: tuple[int, int] = (0, 0)
    operations: Numbers32 = field(default_factory=lambda: np.zeros(0, np.int32))

    @property
    def lanes(self) -> int:
        """Sums of a position."""
        return len(self.offset)

    @property
    def positions(self) -> int:
        """How often all lanes are made."""
        return len(self.operands)
