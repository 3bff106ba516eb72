"""Find where two programs begin to differ: pair their values, and name the first pair that differs.

The values of one call come from one program, for example the reference. The other program is
followed: at each value that has a partner, it continues with the partner's value. So the next
difference arises there and nowhere before.

If both programs compute the same values in the same order, the order pairs them. If not, because
one has fused operators that the other keeps apart, equal values are paired. Where no more values
are equal, each value that could be next is tried; the right one leads to the most equal values
after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.limits import MEMORY, limits
from darwinn_reference.arrays import AnyArray
from darwinn_reference.protocol import Intermediate, Tap
from numpy.typing import NDArray

from darwinn_testbench.comparison.pairing import Layout
from darwinn_testbench.layers.localise import Divergence
from darwinn_testbench.policy import NAMED, FloatTolerance, Policy, absolute_difference, within

RunTapped = Callable[[Tap], None]
"""Makes the same call again, from the same state, with a tap."""

BY_NAME = "by name"
BY_ORDER = "by type, size and order"
BY_VALUE = "by type, size and equal values"

_MOST_FOUND = 8
"""Differences that are looked for where each takes runs of its own."""
_MOST_TRIED, _MOST_OWN = 4, 8
"""Values of the reference, and of the program for each, that are tried as the next pair."""
_SAMPLE = 256
"""Elements that are compared before all are."""
_IMAGES = (3, 4)
_HIDDEN_SHARE = 0.25
"""Share of the elements that may differ of a value that is taken for another one, where all outputs
agree."""


@dataclass(frozen=True)
class PairingFigures:
    """How the values of two programs were paired in a call: so many of both, and by what."""

    run: int
    how: str
    paired: int
    values: int
    reference_values: int

    def __str__(self) -> str:
        return (
            f"run {self.run}: {self.paired} of {self.values} values paired with the reference's "
            f"{self.reference_values}, {self.how}"
        )


@dataclass(frozen=True)
class Judge:
    """How far values may be off: integers by one policy, floats by another."""

    integers: Policy
    floats: Policy

    @classmethod
    def of(cls, policy: Policy | None, integers: Policy) -> Judge:
        """The policy that is asked for, of the values that it is for."""
        floats = NAMED["float32-reassociated"]
        if isinstance(policy, FloatTolerance):
            return cls(integers, policy)
        return cls(policy or integers, floats)

    def outside(self, values: AnyArray, expected: AnyArray) -> NDArray[np.bool_]:
        """Which elements are too far off."""
        policy = self.floats if values.dtype.kind == "f" else self.integers
        return ~within(policy, values, expected)


def trace(run: RunTapped) -> list[Intermediate]:
    """The values that a call computes, in order.

    Raises:
        ExecutionError: they take more memory than may be taken.
    """
    seen: list[Intermediate] = []
    held = 0

    def tap(entry: Intermediate) -> None:
        nonlocal held
        held += entry.data.nbytes
        if held > limits().memory:
            raise ExecutionError(f"the values take more than {limits().memory} bytes ({MEMORY})")
        kept = entry.data.copy()
        seen.append(Intermediate(entry.name, entry.step, entry.operation, kept, entry.location))

    run(tap)
    return seen


def first_differences(
    own: RunTapped,
    reference: RunTapped,
    run: int,
    judge: Judge,
    *,
    reference_follows: bool = False,
    differs: bool = True,
) -> tuple[list[Divergence], PairingFigures]:
    """The values of a program that differ from a reference's of themselves, in order, and how the
    values of the two were paired.

    The program goes on from the reference's values, or, where only that can
    (``reference_follows``), the reference from the program's. Without ``differs``, where outputs
    agree, a value that is equal to none may have no counterpart: it is only paired with one that it
    cannot but be.

    Raises:
        ExecutionError: a call fails, or its values cannot be held.
    """
    follower, leader = (reference, own) if reference_follows else (own, reference)
    theirs = trace(leader)
    ours = trace(follower)
    how = _how(ours, theirs)
    if how == BY_VALUE:
        search = _Search(follower, theirs, judge)
        different = search.different(differs)
        pairs = search.pairs
    else:
        different, pairs = _in_step(follower, ours, theirs, judge)
    found = [
        _divergence(each, run, how, first=not number, swapped=reference_follows)
        for number, each in enumerate(different)
    ]
    counts = (len(theirs), len(ours)) if reference_follows else (len(ours), len(theirs))
    return found, PairingFigures(run, how, pairs, *counts)


def _how(ours: Sequence[Intermediate], theirs: Sequence[Intermediate]) -> str:
    """By what values are paired."""
    kinds = [[_kind(each) for each in side] for side in (ours, theirs)]
    if kinds[0] != kinds[1]:
        return BY_VALUE
    return BY_NAME if [a.name for a in ours] == [b.name for b in theirs] else BY_ORDER


def _kind(entry: Intermediate) -> tuple[str, int, int]:
    """What values of two programs have in common if they are one: class of type, and sizes."""
    kind = "i" if entry.data.dtype.kind in "iu" else entry.data.dtype.kind
    return kind, entry.data.dtype.itemsize, entry.data.size


def _in_step(
    own: RunTapped,
    ours: Sequence[Intermediate],
    theirs: Sequence[Intermediate],
    judge: Judge,
) -> tuple[list[_Different], int]:
    found: list[_Different] = []
    position = -1
    pairs = 0

    def tap(entry: Intermediate) -> AnyArray | None:
        nonlocal position, pairs
        position += 1
        # Where another value has led to other instructions, the two are no longer in step.
        if position >= len(ours) or ours[position].name != entry.name:
            return None
        other = theirs[position]
        pairs += 1
        seen = _closest(entry.data, other.data, judge)
        if seen.outside:
            found.append(_Different(entry, other, seen))
        return seen.values

    own(tap)
    return found, pairs


@dataclass(frozen=True, eq=False)
class _Seen:
    """A reference's value as the program would have it, and how far the program's is from it."""

    values: AnyArray
    changed: str
    outside: int
    greatest: float
    mean: float


def _closest(values: AnyArray, expected: AnyArray, judge: Judge) -> _Seen:
    """The way to see the reference's value in which the program's is nearest to it."""
    ways = []
    for changed, view in _views(expected, values):
        wrong = int(np.count_nonzero(judge.outside(values, view)))
        gap = absolute_difference(values, view)
        greatest, mean = (float(each(gap)) if gap.size else 0.0 for each in (np.nanmax, np.nanmean))
        ways.append(_Seen(view, changed, wrong, greatest, mean))
        if not wrong:
            break
    return min(ways, key=lambda each: (each.outside, each.mean))


def _views(theirs: AnyArray, like: AnyArray) -> Iterator[tuple[str, AnyArray]]:
    """A reference's value in the type and shape of another, in each order that it may have.

    The two are of one kind (``_kind``).
    """
    signed = ""
    if theirs.dtype != like.dtype and theirs.dtype.kind in "iu":
        signed = "sign changed"
        bits = 8 * theirs.dtype.itemsize
        unsigned = theirs.view(f"u{theirs.dtype.itemsize}")
        theirs = (unsigned ^ unsigned.dtype.type(1 << (bits - 1))).view(like.dtype)
    moved = list(_moved(theirs, like))
    same = _sizes(theirs) == _sizes(like)
    if same or not moved or like.ndim < min(_IMAGES):
        yield signed, theirs.reshape(like.shape)
    for layout, values in moved:
        yield ", ".join(filter(None, (signed, str(layout)))), values.reshape(like.shape)


def _moved(theirs: AnyArray, like: AnyArray) -> Iterator[tuple[Layout, AnyArray]]:
    """An image with its channels elsewhere, as far as it may be the other value then."""
    if theirs.ndim not in _IMAGES:
        return
    full = theirs.reshape((1,) * (4 - theirs.ndim) + theirs.shape)
    for layout in (Layout.TO_NCHW, Layout.TO_NHWC):
        moved = np.transpose(full, layout.value)
        is_flat = like.ndim < min(_IMAGES)
        # Of one pixel or one channel the order is the same.
        moves = moved.tobytes() != full.tobytes() if is_flat else _sizes(moved) == _sizes(like)
        if moves:
            yield layout, np.ascontiguousarray(moved)


def _sizes(values: AnyArray) -> list[int]:
    """The dimensions of an array without those of size 1."""
    return [size for size in values.shape if size != 1]


@dataclass(frozen=True, eq=False)
class _Different:
    """A value of who follows that is not the one that it should be."""

    ours: Intermediate
    theirs: Intermediate
    seen: _Seen


def _divergence(each: _Different, run: int, how: str, *, first: bool, swapped: bool) -> Divergence:
    entry, other = (each.theirs, each.ours) if swapped else (each.ours, each.theirs)
    return Divergence(
        run=run,
        first=first,
        name=other.name,
        operation=other.operation,
        where=f"{entry.name}, by {entry.operation}",
        location=other.location,
        elements=each.theirs.data.size,
        differing=each.seen.outside,
        max_difference=each.seen.greatest,
        paired=", ".join(filter(None, (how, each.seen.changed))),
    )


# --- programs whose values are not one another's in order -----------------------------------------


@dataclass(eq=False)
class _Run:
    """A run of the program: which of the reference's values (by index) its own are (by position).

    ``pairs`` were equal, ``unpaired`` are kinds of the others; ``found`` are the differences at the
    pairs that were given.
    """

    pairs: dict[int, int] = field(default_factory=dict)
    unpaired: dict[int, tuple[str, int, int]] = field(default_factory=dict)
    found: dict[int, tuple[Intermediate, _Seen]] = field(default_factory=dict)


class _Search:
    """Follows a program along the values of a reference."""

    def __init__(self, own: RunTapped, theirs: Sequence[Intermediate], judge: Judge) -> None:
        self.own, self.theirs, self.judge = own, theirs, judge
        self.kinds = [_kind(each) for each in theirs]
        self.pairs = 0

    def different(self, differs: bool) -> list[_Different]:
        """What differs, if anything, until nothing that could be paired is left."""
        given: dict[int, int] = {}
        at = self.follow(given)
        while differs and len(given) < _MOST_FOUND:
            following = self._next(at, given)
            if following is None:
                break
            given, at = following
        if not differs:
            given, at = self._hidden(at)
        self.pairs = len(at.pairs) + len(given)
        return [
            _Different(entry, self.theirs[given[position]], seen)
            for position, (entry, seen) in sorted(at.found.items())
            if seen.outside
        ]

    def follow(self, given: Mapping[int, int]) -> _Run:
        """Run the program; at the positions that are ``given`` it takes the reference's values."""
        at = _Run()
        left: dict[tuple[str, int, int], list[int]] = {}
        for index, kind in enumerate(self.kinds):
            if index not in given.values():
                left.setdefault(kind, []).append(index)
        position = -1

        def tap(entry: Intermediate) -> AnyArray | None:
            nonlocal position
            position += 1
            if position in given:
                seen = _closest(entry.data, self.theirs[given[position]].data, self.judge)
                kept = Intermediate(
                    entry.name, entry.step, entry.operation, seen.values, entry.location
                )
                at.found[position] = kept, seen
                return seen.values
            kind = _kind(entry)
            for index in left.get(kind, ()):
                equal = self._equal(entry.data, self.theirs[index].data)
                if equal is not None:
                    left[kind].remove(index)
                    at.pairs[position] = index
                    return equal
            at.unpaired[position] = kind
            return None

        self.own(tap)
        return at

    def _equal(self, values: AnyArray, expected: AnyArray) -> AnyArray | None:
        """The reference's value as the program has it, if they are equal; one number repeated says
        nothing.
        """
        if values.size > 1 and (values == values.reshape(-1)[:1]).all():
            return None
        step = max(1, values.size // _SAMPLE)
        for _, view in _views(expected, values):
            some = values.reshape(-1)[::step], view.reshape(-1)[::step]
            if self.judge.outside(*some).any():
                continue
            if not self.judge.outside(values, view).any():
                return view
        return None

    def _next(self, at: _Run, given: Mapping[int, int]) -> tuple[dict[int, int], _Run] | None:
        """The next pair that differs: of those from which on most is equal the one that is nearest;
        None if none gains.

        Most is half of what the best gains: what only moves or repeats a value gains one more.
        """
        for index, positions in self._candidates(at, given):
            gaining: list[tuple[int, int, dict[int, int], _Run]] = []
            for position in positions:
                tried = {**given, position: index}
                follows = self.follow(tried)
                gained = len(follows.pairs) - len(at.pairs)
                # What is the last value of both can gain nothing.
                if position in follows.found and (gained > 0 or self._is_last(position, index, at)):
                    outside = follows.found[position][1].outside
                    gaining.append((gained, outside, tried, follows))
            if gaining:
                most = max(gained for gained, *_ in gaining)
                near = (each for each in gaining if 2 * each[0] >= most)
                _, _, tried, follows = min(near, key=lambda each: (each[1], -each[0]))
                return tried, follows
        return None

    def _hidden(self, at: _Run) -> tuple[dict[int, int], _Run]:
        """Pairs that differ although all outputs agree, and the run with them.

        Only what cannot be another value is taken for one: it lies between the same pairs as the
        reference's, is the only one of its kind there, mostly equal, and the reference's value in
        its place leaves all later values as they are.
        """
        given: dict[int, int] = {}
        for index, position in self._alone(at)[:_MOST_FOUND]:
            tried = {**given, position: index}
            follows = self.follow(tried)
            if position not in follows.found or len(follows.pairs) < len(at.pairs):
                continue
            entry, seen = follows.found[position]
            if seen.outside <= _HIDDEN_SHARE * entry.data.size:
                given, at = tried, follows
        return given, at

    def _alone(self, at: _Run) -> list[tuple[int, int]]:
        """Values of the reference and of the program, each the only unpaired one of its kind
        between two pairs.
        """
        ends = sorted((index, own) for own, index in at.pairs.items())
        gaps = zip([(-1, -1), *ends], [*ends, (len(self.theirs), 1 << 62)], strict=True)
        found = []
        for (first, after), (last, until) in gaps:
            for kind in dict.fromkeys(self.kinds[first + 1 : last]):
                theirs = [each for each in range(first + 1, last) if self.kinds[each] == kind]
                ours = [
                    own for own, each in at.unpaired.items() if each == kind and after < own < until
                ]
                if len(theirs) == len(ours) == 1:
                    found.append((theirs[0], ours[0]))
        return found

    def _is_last(self, position: int, index: int, at: _Run) -> bool:
        last = max((*at.pairs, *at.unpaired), default=position)
        return position == last and index == len(self.theirs) - 1

    def _candidates(
        self, at: _Run, given: Mapping[int, int]
    ) -> Iterator[tuple[int, Sequence[int]]]:
        """Values of the reference that are nothing yet, in order, and the program's that may be
        each: of its kind, behind what comes before it and before what comes behind it; then others.
        """
        pairs = {index: own for own, index in (*at.pairs.items(), *given.items())}
        last = len(self.theirs) - 1
        free = [index for index in range(last + 1) if index not in pairs]
        tried = 0
        for index in free:
            after = max((own for other, own in pairs.items() if other < index), default=-1)
            until = min(
                (own for other, own in pairs.items() if other > index and own > after),
                default=1 + max(at.unpaired, default=0),
            )
            alike = [own for own, kind in sorted(at.unpaired.items()) if kind == self.kinds[index]]
            between = [own for own in alike if after < own < until]
            # Branches may be computed in another order.
            others = sorted(set(alike) - set(between), key=lambda own: abs(own - after))
            if alike and (tried < _MOST_TRIED or index == last):
                tried += 1
                if tried > _MOST_TRIED:
                    yield index, alike[-1:]
                else:
                    yield index, between[:_MOST_OWN]
                    yield index, others[:_MOST_OWN]
