"""The answers of two models about one picture, side by side: the chip's, and a reference's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from darwinn_testbench.report import counted
from darwinn_testbench.vision.answers import SURE, Answer, Box, Keypoint, Person, Seen

OVERLAPPING = 0.5
"""Share that two boxes of a class have in common, of what they cover, to be the same answer; and
the similarity of two people's key points."""

_SPREAD = {
    "nose": 0.026,
    "eye": 0.025,
    "ear": 0.035,
    "shoulder": 0.079,
    "elbow": 0.072,
    "wrist": 0.062,
    "hip": 0.107,
    "knee": 0.087,
    "ankle": 0.089,
}
"""How far people who annotate a key point differ, as a share of the size of a person (COCO)."""


@dataclass(frozen=True)
class Pair:
    """An answer of the chip and the same one of the reference; None where one of them has none.

    ``overlap`` is the share that two boxes have in common of what they cover together; ``distance``
    the greatest of the key points that both see of a person, in pixels of the picture.
    """

    chip: Answer | None
    reference: Answer | None
    overlap: float | None = None
    distance: float | None = None


@dataclass(frozen=True)
class Agreement:
    """How far two models agree about a picture.

    ``score_difference`` is the greatest of the same answers, ``overlap`` the least of the same
    boxes, ``distance`` the greatest of key points that both see of the same people, in pixels of
    the picture, ``pixels`` the share of a map's pixels that are of the same class; None where there
    are none to compare.
    """

    same: int
    only_chip: int
    only_reference: int
    score_difference: float | None = None
    overlap: float | None = None
    pixels: float | None = None
    distance: float | None = None

    @property
    def differs(self) -> bool:
        """Whether any answer is of one side alone, or any pixel of another class."""
        return bool(self.only_chip or self.only_reference) or self.pixels not in (None, 1)

    def __str__(self) -> str:
        parts = [f"{counted(self.same, 'answer')} of both"]
        if self.score_difference is not None:
            parts.append(f"scores within {self.score_difference:.4f}")
        if self.overlap is not None:
            same = self.overlap == 1
            parts.append(
                "the same boxes" if same else f"boxes overlap by {100 * self.overlap:.1f} % or more"
            )
        if self.distance is not None:
            parts.append(f"key points within {self.distance:.1f} pixels")
        if self.pixels is not None:
            parts.append(f"{100 * self.pixels:.2f} % of the pixels of the same class")
        sides = (("the chip", self.only_chip), ("the reference", self.only_reference))
        parts += [f"{count:,} of {side} alone" for side, count in sides if count]
        return ", ".join(parts)


def pairs_of(chip: Seen, reference: Seen) -> list[Pair]:
    """The answers of both: the same ones together, first those of the chip in their order."""
    left = list(reference.answers)
    found: list[Pair] = []
    for answer in chip.answers:
        same = max(_alike(answer, left), key=lambda each: each[1], default=None)
        if same is None:
            found.append(Pair(answer, None))
            continue
        left.remove(same[0])
        found.append(_pair(answer, *same))
    return [*found, *(Pair(None, each) for each in left)]


def _pair(answer: Answer, same: Answer, share: float) -> Pair:
    if isinstance(answer, Person) and isinstance(same, Person):
        return Pair(answer, same, distance=_distance(answer, same))
    return Pair(answer, same, share if isinstance(answer, Box) else None)


def _alike(answer: Answer, others: Sequence[Answer]) -> Iterator[tuple[Answer, float]]:
    """Of others those that can be the same as an answer, and their overlap."""
    for each in others:
        if each.number != answer.number:
            continue
        if isinstance(answer, Person) and isinstance(each, Person):
            if (share := similarity(answer, each)) >= OVERLAPPING:
                yield each, share
        elif not isinstance(answer, Box) or not isinstance(each, Box):
            yield each, 1.0
        elif (share := overlap(answer, each)) >= OVERLAPPING:
            yield each, share


def similarity(one: Person, other: Person) -> float:
    """How alike two people are, 0 to 1: COCO's measure for key points.

    The size of a person is that of the box around the key points that ``other`` has for sure, which
    are those that are compared; all of them if none is sure.
    """
    places = {each.name: each for each in one.keypoints}
    sure = [each for each in other.keypoints if each.score >= SURE] or list(other.keypoints)
    across = [[each.x for each in sure], [each.y for each in sure]]
    area = max(float(np.prod([max(each) - min(each) for each in across])), 1.0)
    likeness = [
        np.exp(-(_apart(places[each.name], each) ** 2) / (2 * area * _tolerance(each.name) ** 2))
        for each in sure
    ]
    return float(np.mean(likeness))


def _tolerance(name: str) -> float:
    return 2 * _SPREAD[name.rpartition(" ")[2]]


def _apart(one: Keypoint, other: Keypoint) -> float:
    return float(np.hypot(one.x - other.x, one.y - other.y))


def _distance(one: Person, other: Person) -> float | None:
    """The greatest distance of key points of which both are sure."""
    places = {each.name: each for each in one.keypoints if each.score >= SURE}
    both = [each for each in other.keypoints if each.score >= SURE and each.name in places]
    return max((_apart(places[each.name], each) for each in both), default=None)


def overlap(one: Box, other: Box) -> float:
    """The area that two boxes have in common, as a share of the area that they cover together."""
    width = min(one.right, other.right) - max(one.left, other.left)
    height = min(one.bottom, other.bottom) - max(one.top, other.top)
    common = max(width, 0) * max(height, 0)
    together = _area(one) + _area(other) - common
    return common / together if together > 0 else float(one == other)


def _area(box: Box) -> int:
    return max(box.right - box.left, 0) * max(box.bottom - box.top, 0)


def agreement_of(chip: Seen, reference: Seen) -> Agreement:
    """How far both agree."""
    pairs = pairs_of(chip, reference)
    both = [(each.chip, each.reference) for each in pairs if each.chip and each.reference]
    scores = [abs(one.score - other.score) for one, other in both]
    overlaps = [each.overlap for each in pairs if each.overlap is not None]
    distances = [each.distance for each in pairs if each.distance is not None]
    return Agreement(
        same=len(both),
        only_chip=sum(each.reference is None for each in pairs),
        only_reference=sum(each.chip is None for each in pairs),
        score_difference=round(max(scores), 6) if scores else None,
        overlap=round(min(overlaps), 6) if overlaps else None,
        pixels=_same_pixels(chip, reference),
        distance=round(max(distances), 1) if distances else None,
    )


def _same_pixels(chip: Seen, reference: Seen) -> float | None:
    """The share of pixels of one class on both maps, if these are of one size."""
    one, other = chip.classes, reference.classes
    if one is None or other is None or one.shape != other.shape:
        return None
    return round(float(np.mean(one == other)), 6)
