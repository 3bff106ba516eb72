"""Value numbers of maxima: the number depends on the set of values, and not on the steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from darwinn_sim.kernel.field import CONSTANTS
from darwinn_sim.kernel.numbering import MOST_EXPANDED, MOST_VALUES
from darwinn_sim.numbering import kernels
from darwinn_sim.numbering.run import Sets
from numpy.typing import NDArray

Elements = NDArray[np.uint64]


class TooMany(Exception):
    """A maximum of more values than the chip's run follows."""


class Maxima:
    """Makes the numbers of maxima, and remembers those of few values, as the chip's are.

    The chip takes a maximum of many values in steps, whose results are values of the next one
    (``MOST_EXPANDED``). Where a number is none of the chip's (``have``), its maxima (``taken``)
    are looked at for one of the same values.
    """

    def __init__(self, have: Callable[[Elements], NDArray[np.bool_]], taken: Sets) -> None:
        self._have, self._taken = have, taken
        self._steps: dict[frozenset[int], int] | None = None
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
        begins = np.concatenate(([0], ends[:-1]))
        for row in np.flatnonzero((counts > MOST_EXPANDED) & ~self._have(found)):
            values_of_row = flat[begins[row] : begins[row] + counts[row]].tolist()
            found[row] = self._in_steps().get(frozenset(values_of_row), found[row])
        self._remember(flat, begins, found, counts)
        return found

    def _in_steps(self) -> Mapping[frozenset[int], int]:
        """The numbers of the chip's maxima by all their values, those of steps in their place."""
        if self._steps is None:
            self._steps = {}
            taken, known = self._taken, dict[int, frozenset[int]]()
            # What a maximum is of has been taken before it.
            for at in np.argsort(taken.firsts):
                first, number = int(taken.firsts[at]), int(taken.numbers[at])
                members = taken.pool[first : first + int(taken.counts[at])].tolist()
                whole = frozenset().union(*(known.get(each, {each}) for each in members))
                known[number] = _without_lesser(whole)
                if len(known[number]) > MOST_EXPANDED:
                    self._steps[known[number]] = number
        return self._steps

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
        kept = np.flatnonzero((counts > 1) & (counts <= MOST_EXPANDED))
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


def _without_lesser(values: frozenset[int]) -> frozenset[int]:
    """Drop all constants except the greatest, and also that one if it is 0: no byte is less."""
    constants = [each for each in values if each < CONSTANTS]
    kept = {max(constants)} - {0} if constants else set()
    return values - frozenset(constants) | kept
