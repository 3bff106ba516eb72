"""Where the bytes of a lifted program are, and in which order it makes positions.

What a stage makes of a lane lies side by side, position after position; its positions have the
order of those that it takes. So a column of operands is a few spans of slots: a row of a picture
each, or all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.lifting.stage import Made, Stage
from darwinn_sim.lifting.tape import CONSTANTS
from darwinn_sim.units.identities import BLOCK

Numbers32 = NDArray[np.int32]


class Placed(NamedTuple):
    """A stage, and slots of its operands: (positions, k). Byte k of what it makes of lane n at
    position p is in ``slot + n * of_lane + k * of_byte + p * of_position``.
    """

    stage: Stage
    operands: Numbers32
    others: Numbers32
    slot: int
    of_lane: int
    of_byte: int
    of_position: int


class Slots:
    """Places of bytes: those that are not needed any more are used again."""

    def __init__(self, identities: int) -> None:
        self.total = CONSTANTS
        blocks = identities // BLOCK + 2
        self._of = np.full(blocks, -1, np.int32)
        self._stride = np.ones(blocks, np.int32)
        self._free: list[tuple[int, int]] = []

    def reserve(self, numbers: Numbers32) -> int:
        """Slots of an input, for as long as the program runs."""
        # Numbers of inputs follow each other, and begin with a block.
        begin = int(numbers[0]) - CONSTANTS
        first = self.total
        blocks = np.arange(begin // BLOCK, -(-(begin + len(numbers)) // BLOCK))
        self._of[blocks] = first + BLOCK * np.arange(len(blocks))
        self.total = first + BLOCK * len(blocks)
        return first

    def of(self, numbers: Numbers32) -> Numbers32:
        """Slots of bytes."""
        identity = np.maximum(numbers - CONSTANTS, 0)
        first, stride = self._of[identity // BLOCK], self._stride[identity // BLOCK]
        # What says nothing is 0; so is what nobody needs.
        known = np.where(first >= 0, first + stride * (identity % BLOCK), 0)
        return np.where(numbers < CONSTANTS, numbers, known).astype(np.int32)

    def placed(self, parts: list[Stage], outputs: Numbers32) -> Iterator[Placed]:
        """Stages with slots; one's are free when no later one takes its results."""
        last = self._last_taken(parts, outputs)
        ends: dict[int, list[tuple[int, int]]] = {}
        for k, stage in enumerate(parts):
            size = stage.positions * stage.lanes * stage.size
            slot = self._take(size)
            yield self._placed(stage, slot)
            ends.setdefault(int(last[k]), []).append((slot, size))
            for each in ends.pop(k, []):
                self._give_back(*each)

    def _last_taken(self, parts: list[Stage], outputs: Numbers32) -> NDArray[np.int64]:
        """The last stage that takes what each has made; behind all, what goes out."""
        maker = np.full(len(self._of), -1, np.int32)
        for k, stage in enumerate(parts):
            for first, lanes in zip(stage.made.T, stage.blocks, strict=True):
                for block in range(-(-lanes * stage.size // BLOCK)):
                    maker[first // BLOCK + block] = k
        last = np.arange(len(parts))
        for k, stage in enumerate(parts):
            for operands in (stage.operands, stage.others):
                identity = operands[operands >= CONSTANTS] - CONSTANTS
                takes = maker[identity // BLOCK]
                last[takes[takes >= 0]] = k
        kept = maker[(outputs - CONSTANTS) // BLOCK]
        last[kept[kept >= 0]] = len(parts)
        return last

    def _placed(self, stage: Stage, slot: int) -> Placed:
        operands, others, made = self.of(stage.operands), self.of(stage.others), stage.made
        if stage.lanes == 1:
            # Lanes of rows of data are positions, of which several are in a block.
            strides = (0, 1, stage.size)
        else:
            strides = (stage.size * stage.positions, stage.positions, 1)
            order = _order(operands)
            operands, made = operands[order], made[order]
        _, of_byte, of_position = strides
        begin = slot + of_position * np.arange(stage.positions)
        for first, count in zip(made.T, stage.blocks, strict=True):
            self._place(first, begin, count * stage.size, of_byte)
            begin = begin + of_byte * count * stage.size
        if stage.how is Made.OPERATIONS:
            # An operation may take what one before it has made.
            operands = self.of(stage.operands)
        return Placed(stage, operands, others, slot, *strides)

    def _place(
        self, first: NDArray[np.int64], begin: NDArray[np.int64], size: int, stride: int
    ) -> None:
        """Bytes from the identities ``first`` on are in slots from ``begin`` on."""
        whole = first % BLOCK == 0
        for block in range(-(-size // BLOCK)):
            which = first[whole] // BLOCK + block
            self._of[which] = begin[whole] + BLOCK * stride * block
            self._stride[which] = stride

    def _take(self, size: int) -> int:
        for k, (first, room) in enumerate(self._free):
            if room >= size:
                self._free[k] = (first + size, room - size)
                return first
        first = self.total
        if self._free and sum(self._free[-1]) == self.total:
            first = self._free.pop()[0]
        self.total = first + size
        return first

    def _give_back(self, first: int, size: int) -> None:
        joined: list[tuple[int, int]] = []
        for each in sorted([*self._free, (first, size)]):
            if joined and sum(joined[-1]) == each[0]:
                joined[-1] = (joined[-1][0], joined[-1][1] + each[1])
            elif each[1]:
                joined.append(each)
        self._free = joined


def _order(operands: Numbers32) -> NDArray[np.intp]:
    """Positions in the order of what they take.

    Of the column that is padded least: the middle of a window, which every position has.
    """
    if not operands.size:
        return np.arange(len(operands))
    column = np.argmax((operands >= CONSTANTS).sum(axis=0))
    return np.argsort(operands[:, column], kind="stable")
