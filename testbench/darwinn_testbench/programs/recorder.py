"""What an observer writes down of calls of a program: operators, their times, who reads whom."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from darwinn_reference.observation import Operator, Place, Places

DESCRIBED = 4
"""Executions of an operator whose values are looked at: what it reads is the same later on."""


@dataclass(eq=False)
class Seen:
    """An operator that has run.

    Attributes:
        operator: the operator.
        depth: how many operators it ran within.
        reads, writes: the values of its first execution; of those read not the constant ones.
        constants: bytes of constant values that it reads.
        sources: names of the operators that wrote what it reads, in the order of reading.
        is_nesting: whether other operators ran within it.
        executions: of the call, how often it has run.
        own: nanoseconds of the call without the operators within it.
        total: nanoseconds of the call with them.
    """

    operator: Operator
    depth: int
    reads: tuple[Place, ...] = ()
    writes: tuple[Place, ...] = ()
    constants: int = 0
    sources: dict[str, None] = field(default_factory=dict)
    is_nesting: bool = False
    executions: int = 0
    own: int = 0
    total: int = 0
    described: int = 0


@dataclass(eq=False, slots=True)
class _Open:
    """An operator that runs: when it began, and what of that operators within it took."""

    seen: Seen
    start: int
    serial: int
    within: int = 0
    is_outermost: bool = True


@dataclass(eq=False, slots=True)
class _Written:
    """Bytes that an operator was the last to write."""

    place: Place
    writer: str
    serial: int


class Recorder:
    """An observer (``observation.Observer``) of calls, one after another.

    Its own work stops its clock. Only the first executions of an operator are looked at closely,
    so that loops take no more memory than what is in them.

    Attributes:
        seen: operators by name, in the order of their first executions.
        closely: whether calls are looked at closely: times are then no measure.
    """

    def __init__(self) -> None:
        self.closely = True
        self.seen: dict[str, Seen] = {}
        self._open: list[_Open] = []
        self._memories: dict[Hashable, _Memory] = {}
        self._serial = 0
        self._paused = 0

    def begin_call(self) -> None:
        """Count from 0 again: another call begins."""
        self._open.clear()
        self._memories.clear()
        for each in self.seen.values():
            each.executions = each.own = each.total = 0

    def begin(self, operator: Operator) -> None:
        """See ``observation.Observer``."""
        entered = time.perf_counter_ns()
        seen = self.seen.get(operator.name)
        if seen is None:
            seen = Seen(operator, len(self._open))
            self.seen[operator.name] = seen
        if self._open:
            self._open[-1].seen.is_nesting = True
        self._serial += 1
        outermost = all(each.seen is not seen for each in self._open)
        entry = _Open(seen, 0, self._serial, is_outermost=outermost)
        self._open.append(entry)
        left = time.perf_counter_ns()
        self._paused += left - entered
        entry.start = left - self._paused

    def end(self, places: Callable[[], Places]) -> None:
        """See ``observation.Observer``."""
        entered = time.perf_counter_ns()
        entry = self._open.pop()
        taken = entered - self._paused - entry.start
        seen = entry.seen
        seen.executions += 1
        seen.own += taken - entry.within
        if entry.is_outermost:
            seen.total += taken
        if self._open:
            self._open[-1].within += taken
        if self.closely and seen.described < DESCRIBED:
            self._describe(entry, *places())
        self._paused += time.perf_counter_ns() - entered

    def _describe(self, entry: _Open, reads: Iterable[Place], writes: Iterable[Place]) -> None:
        seen = entry.seen
        reads, writes = tuple(reads), tuple(writes)
        if not seen.described:
            seen.reads = tuple(self._known(each) for each in reads if not each.constant)
            seen.writes = writes
            seen.constants = sum(each.bytes for each in reads if each.constant)
        seen.described += 1
        for place in reads:
            seen.sources |= dict.fromkeys(self._writers(place))
        for place in writes:
            self._write(place, entry)

    def _overlapping(self, place: Place) -> Sequence[_Written]:
        return self._memory(place).overlapping(place)

    def _memory(self, place: Place) -> _Memory:
        return self._memories.setdefault(place.memory, _Memory())

    def _known(self, place: Place) -> Place:
        """The place with type and shape by who wrote exactly that, where the reader cannot tell."""
        if place.shape is not None:
            return place
        same = (
            each.place
            for each in self._overlapping(place)
            if (each.place.start, each.place.stop) == (place.start, place.stop)
        )
        return next(same, place)

    def _writers(self, place: Place) -> list[str]:
        return [each.writer for each in self._overlapping(place)]

    def _write(self, place: Place, entry: _Open) -> None:
        """Note the writer, unless an operator within it has written that since it began."""
        over, own = self._overlapping(place), entry.seen.operator.name
        if any(each.serial > entry.serial and each.writer != own for each in over):
            return
        self._serial += 1
        self._memory(place).write(_Written(place, own, self._serial))


class _Memory:
    """Bytes of a memory that were written, in order, and none of them twice."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._held: list[_Written] = []

    def overlapping(self, place: Place) -> Sequence[_Written]:
        """What was written last to any of the bytes of a place."""
        return self._held[self._range(place)]

    def write(self, written: _Written) -> None:
        """Take bytes that are written over what was there."""
        place = written.place
        if place.start == place.stop:
            return
        over = self._range(place)
        parts = [part for each in self._held[over] for part in _left(each, place)]
        self._held[over] = sorted([*parts, written], key=lambda each: each.place.start)
        added = over.start + len(parts) + 1
        self._starts[over] = [each.place.start for each in self._held[over.start : added]]

    def _range(self, place: Place) -> slice:
        """Where what overlaps a place is held."""
        first = bisect_right(self._starts, place.start)
        if first and self._held[first - 1].place.stop > place.start:
            first -= 1
        return slice(first, max(first, bisect_left(self._starts, place.stop)))


def _left(written: _Written, by: Place) -> Iterator[_Written]:
    """What is left of bytes when others are written over them."""
    old = written.place
    for start, stop in ((old.start, min(old.stop, by.start)), (max(old.start, by.stop), old.stop)):
        if start < stop:
            place = Place(old.memory, start, stop)
            yield _Written(place, written.writer, written.serial)
