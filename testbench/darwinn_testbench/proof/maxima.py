"""Value numbers of maxima: a maximum is the set of its values, whatever steps it is taken in."""

from __future__ import annotations

import numpy as np
from darwinn_sim.kernel.numbering import MOST_REMEMBERED, MOST_VALUES
from darwinn_sim.numbering import kernels
from numpy.typing import NDArray

Elements = NDArray[np.uint64]


class TooMany(Exception):
    """A maximum of more values than the chip's are followed of."""


class Maxima:
    """Makes the numbers of maxima, and remembers those of few values, as the chip's are."""

    def __init__(self) -> None:
        self._sets = np.zeros(0, np.uint64)
        self._firsts = self._counts = np.zeros(0, np.int64)
        self._pool = np.zeros(0, np.uint64)

    def of(self, values: Elements) -> Elements:
        """The number of the greatest of each row of values.

        Raises:
            TooMany: there are more than :data:`MOST_VALUES` different values in a row.
        """
        rows, columns = values.shape
        ends = np.arange(1, rows + 1) * columns
        flat, ends = self._expanded(np.ascontiguousarray(values).reshape(-1), ends)
        found, counts = np.empty(rows, np.uint64), np.empty(rows, np.int64)
        kernels.maxima(flat, ends, found, counts)
        if counts.max(initial=0) > MOST_VALUES:
            raise TooMany(f"a maximum of {counts.max()} values")
        self._remember(flat, np.concatenate(([0], ends[:-1])), found, counts)
        return found

    def _expanded(
        self, values: Elements, ends: NDArray[np.int64]
    ) -> tuple[Elements, NDArray[np.int64]]:
        """Values of their own, with those of maxima in the place of these."""
        if not len(self._sets):
            return values.copy(), ends
        known = (self._sets, self._firsts, self._counts, self._pool)
        found, found_ends = np.empty(values.size, np.uint64), np.empty_like(ends)
        total = kernels.expanded(values, ends, *known, found, found_ends)
        if total > found.size:
            found = np.empty(total, np.uint64)
            kernels.expanded(values, ends, *known, found, found_ends)
        return found[:total], found_ends

    def _remember(
        self,
        values: Elements,
        begins: NDArray[np.int64],
        numbers: Elements,
        counts: NDArray[np.int64],
    ) -> None:
        kept = np.flatnonzero((counts > 1) & (counts <= MOST_REMEMBERED))
        if not len(kept):
            return
        first = len(self._pool) + np.concatenate(([0], np.cumsum(counts[kept])[:-1]))
        places = np.repeat(begins[kept] - first, counts[kept]) + np.arange(
            len(self._pool), len(self._pool) + int(counts[kept].sum())
        )
        self._pool = np.concatenate([self._pool, values[places]])
        sets = np.concatenate([self._sets, numbers[kept]])
        firsts = np.concatenate([self._firsts, first])
        many = np.concatenate([self._counts, counts[kept]])
        self._sets, which = np.unique(sets, return_index=True)
        self._firsts, self._counts = firsts[which], many[which]
