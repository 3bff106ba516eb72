"""Gives places in narrow memory by lifetime: a place may lie where another one was before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from darwinn_formats.errors import Portable
from darwinn_sim import chip
from numpy.typing import NDArray

from darwinn_testbench.compiler.parameters import round_up

ALIGNMENT = 8
Key = tuple[str, int]
"""What a place is for: the kind, and the index of an image."""


class NoPlaceError(Portable):
    """No place was found for what is needed from step ``birth`` on."""

    def __init__(self, key: Key, birth: int) -> None:
        super().__init__(key)
        self.key, self.birth = key, birth


@dataclass(frozen=True)
class Request:
    """A place of ``size`` bytes from step ``birth`` to step ``death``, both included."""

    size: int
    birth: int
    death: int

    @classmethod
    def of(cls, size: int, birth: int, death: int) -> Request:
        """Ask for ``size`` bytes, rounded up to whole units."""
        return cls(round_up(max(size, 1), ALIGNMENT), birth, death)


_ORDERS: Sequence[Callable[[Request], tuple[int, ...]]] = (
    lambda each: (-each.size, each.birth),
    lambda each: (-each.size * (each.death - each.birth + 1), each.birth),
    lambda each: (each.birth, -each.size),
    lambda each: (each.birth - each.death, -each.size),
    lambda each: (-each.death, -each.size),
)
"""Orders in which places are given: large ones first, those that last long first, and so on."""


_TRIES = 8
"""How often each order is tried."""


@dataclass(frozen=True)
class Overlay:
    """A pair of places that may overlap: ``result`` lies at least ``below`` bytes below the place
    of its source, or ``above`` bytes above it."""

    result: Key
    source: Key
    below: int
    above: int


def _distances(
    asked: Mapping[Key, Request], overlays: Sequence[Overlay]
) -> dict[tuple[Key, Key], int]:
    """Bytes from the begin of a place to that of another one above it, at least, of such pairs."""
    found = {}
    for each in overlays:
        below, above = round_up(each.below, ALIGNMENT), round_up(each.above, ALIGNMENT)
        found[each.result, each.source] = min(below, asked[each.result].size)
        found[each.source, each.result] = min(above, asked[each.source].size)
    return found


def saved(asked: Mapping[Key, Request], overlays: Sequence[Overlay]) -> Iterator[Request]:
    """What places that overlap have in common, by pairs, and while both exist."""
    distances = _distances(asked, overlays)
    for each in overlays:
        one, other = asked[each.result], asked[each.source]
        spans = (
            max(distances[each.result, each.source] + other.size, one.size),
            max(distances[each.source, each.result] + one.size, other.size),
        )
        size = one.size + other.size - min(spans)
        yield Request(size, max(one.birth, other.birth), min(one.death, other.death))


def total(requests: Iterable[Request], less: Iterable[Request], steps: int) -> NDArray[np.int64]:
    """Bytes of requests at each of so many steps."""
    changes = [0] * (steps + 1)
    for sign, several in ((1, requests), (-1, less)):
        for each in several:
            changes[each.birth] += sign * each.size
            changes[each.death + 1] -= sign * each.size
    return np.cumsum(changes[:-1])


class Solver:
    """Gives places to all requests."""

    def __init__(self, asked: Mapping[Key, Request], overlays: Sequence[Overlay]) -> None:
        self.asked = asked
        self._apart = _distances(asked, overlays)

    def _distance(self, lower: Key, upper: Key) -> int:
        """Bytes from the begin of a place to that of another one above it, at least."""
        return self._apart.get((lower, upper), self.asked[lower].size)

    def solve(self) -> dict[Key, int]:
        """The first byte of each place: each as low as it can be, in one of several orders.

        What finds no place in an order comes first in the next one.

        Raises:
            NoPlaceError: none of them leads to places for all.
        """
        failed: list[Key] = []
        for order in _ORDERS:
            keys = sorted(self.asked, key=lambda key: order(self.asked[key]))
            for _ in range(_TRIES):
                placed, without = self._placed(keys)
                if without is None:
                    return placed
                failed.append(without)
                keys.remove(without)
                keys.insert(0, without)
        raise NoPlaceError(failed[0], self.asked[failed[0]].birth)

    def _placed(self, keys: Sequence[Key]) -> tuple[dict[Key, int], Key | None]:
        """Places in an order, up to the first key that finds none."""
        placed: dict[Key, int] = {}
        for key in keys:
            base = self._lowest(key, placed)
            if base + self.asked[key].size > chip.NARROW_BYTES:
                return placed, key
            placed[key] = base
        return placed, None

    def used(self, bases: Mapping[Key, int]) -> int:
        """Bytes up to the last place in use."""
        return max((base + self.asked[key].size for key, base in bases.items()), default=0)

    def _lowest(self, key: Key, placed: Mapping[Key, int]) -> int:
        """The lowest base that is far enough from all others that exist at the same time."""
        request = self.asked[key]
        taken = sorted(
            (base - self._distance(key, other), base + self._distance(other, key))
            for other, base in placed.items()
            if self.asked[other].birth <= request.death and request.birth <= self.asked[other].death
        )
        lowest = 0
        for below, above in taken:
            if lowest <= below:
                break
            lowest = max(lowest, above)
        return lowest
