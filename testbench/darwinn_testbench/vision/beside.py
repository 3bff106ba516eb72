"""The answers of two models about one picture, side by side: the chip's, and a reference's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from darwinn_testbench.report import counted
from darwinn_testbench.vision.answers import Answer, Box, Seen

OVERLAPPING = 0.5
"""Share that two boxes of a class have in common, of what they cover, to be the same answer."""


@dataclass(frozen=True)
class Pair:
    """An answer of the chip and the same one of the reference; None where one of them has none.

    ``overlap`` is the share that two boxes have in common of what they cover together.
    """

    chip: Answer | None
    reference: Answer | None
    overlap: float | None = None


@dataclass(frozen=True)
class Agreement:
    """How far two models agree about a picture.

    ``score_difference`` is the greatest of the same answers, ``overlap`` the least of the same
    boxes, ``pixels`` the share of a map's pixels that are of the same class; None where there are
    none to compare.
    """

    same: int
    only_chip: int
    only_reference: int
    score_difference: float | None = None
    overlap: float | None = None
    pixels: float | None = None

    @property
    def differs(self) -> bool:
        """Whether any answer is of one side alone, or any pixel of another class."""
        return bool(self.only_chip or self.only_reference) or self.pixels not in (None, 1)

    def __str__(self) -> str:
        parts = [f"{counted(self.same, 'answer')} of both"]
        if self.score_difference is not None:
            parts.append(f"scores within {self.score_difference:.4f}")
        if self.overlap is not None:
            parts.append(f"boxes overlap by {100 * self.overlap:.1f} % or more")
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
        found.append(Pair(answer, same[0], same[1] if isinstance(answer, Box) else None))
    return [*found, *(Pair(None, each) for each in left)]


def _alike(answer: Answer, others: Sequence[Answer]) -> Iterator[tuple[Answer, float]]:
    """Of others those that can be the same as an answer, and their overlap."""
    for each in others:
        if each.number != answer.number:
            continue
        if not isinstance(answer, Box) or not isinstance(each, Box):
            yield each, 1.0
        elif (share := overlap(answer, each)) >= OVERLAPPING:
            yield each, share


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
    return Agreement(
        same=len(both),
        only_chip=sum(each.reference is None for each in pairs),
        only_reference=sum(each.chip is None for each in pairs),
        score_difference=round(max(scores), 6) if scores else None,
        overlap=round(min(overlaps), 6) if overlaps else None,
        pixels=_same_pixels(chip, reference),
    )


def _same_pixels(chip: Seen, reference: Seen) -> float | None:
    """The share of pixels of one class on both maps, if these are of one size."""
    one, other = chip.classes, reference.classes
    if one is None or other is None or one.shape != other.shape:
        return None
    return round(float(np.mean(one == other)), 6)
