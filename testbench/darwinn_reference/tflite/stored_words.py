"""The parameters of executables as words of 4 bytes, in which values of a network are looked for.

Their order is the compiler's, so that the only question is whether a value is there, and where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from darwinn_formats.darwinn import Executable
from numpy.typing import NDArray

from darwinn_reference.arrays import AnyArray

WORD_BYTES = 4

Keys = NDArray[np.unsignedinteger[Any]]
Places = NDArray[np.intp]

_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


class StoredWords:
    """What the parameters of executables hold; places count through all of them, in words.

    ``size`` is in bytes, ``begins`` the place where each executable begins.
    """

    def __init__(self, executables: Sequence[Executable]) -> None:
        whole = [len(each.parameters) // WORD_BYTES for each in executables]
        self._words = [
            np.frombuffer(each.parameters, np.uint8)[: count * WORD_BYTES].view("<u4")
            for each, count in zip(executables, whole, strict=True)
        ]
        self.size = WORD_BYTES * sum(whole)
        self.begins = tuple(sum(whole[:k]) for k in range(len(whole)))
        self._sorted: dict[int, Keys] = {}

    def count(self, groups: AnyArray) -> int:
        """How many of ``groups``, rows of the same number of bytes, are there."""
        length = groups.shape[1] * groups.itemsize // WORD_BYTES
        if length not in self._sorted:
            self._sorted[length] = np.sort(self._keys(length))
        keys = self._sorted[length]
        if not keys.size:
            return 0
        wanted = _wanted(groups, length)
        at = np.searchsorted(keys, wanted).clip(max=keys.size - 1)
        return int(np.count_nonzero(keys[at] == wanted))

    def places(self, groups: AnyArray) -> Places:
        """Where those of ``groups`` begin that are there exactly once."""
        length = groups.shape[1] * groups.itemsize // WORD_BYTES
        keys = self._keys(length)
        order = np.argsort(keys, kind="stable")
        wanted = _wanted(groups, length)
        first, last = (np.searchsorted(keys, wanted, side=each, sorter=order) for each in _SIDES)
        places: Places = self._beginnings(length)[order[first[last - first == 1]]]
        return places

    def words(self, places: AnyArray) -> NDArray[np.uint32]:
        """The words at ``places``."""
        whole: NDArray[np.uint32] = np.concatenate(self._words)
        return whole[places]

    def _keys(self, length: int) -> Keys:
        """Of each run of ``length`` words within an executable."""
        parts = [_keys_of(each, length) for each in self._words]
        return np.concatenate(parts) if parts else np.zeros(0, np.uint32)

    def _beginnings(self, length: int) -> Places:
        """Where these runs begin."""
        runs = [max(len(each) - length + 1, 0) for each in self._words]
        return np.concatenate(
            [begin + np.arange(count) for begin, count in zip(self.begins, runs, strict=True)]
        )


def _wanted(groups: AnyArray, length: int) -> Keys:
    octets = np.ascontiguousarray(groups).reshape(-1).view(np.uint8)
    return _keys_of(octets.view("<u4"), length)[::length]


def _keys_of(words: AnyArray, length: int) -> Keys:
    """A number for each run of ``length`` words, equal for equal runs."""
    multiplier = np.uint64(0x9E3779B97F4A7C15)
    count = max(len(words) - length + 1, 0)
    if length == 1:
        return words
    keys: NDArray[np.uint64] = np.zeros(count, np.uint64)
    for place in range(length):
        keys *= multiplier
        keys += words[place : place + count]
    return keys
