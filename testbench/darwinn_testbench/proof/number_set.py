"""A large set of value numbers, which is asked for many at once."""

from __future__ import annotations

import numpy as np
from darwinn_sim.kernel.numbering import Made
from darwinn_sim.kernel.structure import Records
from darwinn_sim.numbering import kernels
from darwinn_sim.numbering.run import Elements
from numpy.typing import NDArray

_LEAST_SLOTS = 1 << 12


class NumberSet:
    """A set of value numbers, as of all bytes that a program makes."""

    def __init__(self) -> None:
        self._table = np.zeros(_LEAST_SLOTS, np.uint64)
        self._count = 0

    def forget(self) -> None:
        """Begin anew."""
        self._table, self._count = np.zeros(_LEAST_SLOTS, np.uint64), 0

    def take(self, made: Records[Made]) -> None:
        """Enter results (``numbering.run``)."""
        self.enter(np.ascontiguousarray(made["number"]))

    def enter(self, numbers: Elements) -> NDArray[np.bool_]:
        """Enter numbers: which were not there."""
        while 4 * (self._count + len(numbers)) > 3 * len(self._table):
            before, self._table = self._table, np.zeros(2 * len(self._table), np.uint64)
            there = before[before != 0]
            kernels.enter(self._table, there, np.empty(len(there), np.bool_))
        new = np.empty(len(numbers), np.bool_)
        self._count += int(kernels.enter(self._table, numbers, new))
        return new

    def have(self, numbers: Elements) -> NDArray[np.bool_]:
        """Which of numbers are among them, or constants."""
        found = np.empty(numbers.size, np.bool_)
        kernels.look_up(self._table, np.ascontiguousarray(numbers).reshape(-1), found)
        return found.reshape(numbers.shape)
