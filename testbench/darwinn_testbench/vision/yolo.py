"""The head of a YOLO network: numbers for each cell of three grids, from which boxes are chosen.

Ultralytics' exporters write two kinds for the Edge TPU, where ``cells`` is the number of places of
the grids, one for every 8, 16 and 32 pixels of the input:

- YOLOv5 and YOLOv7, three shapes of a box in every cell: ``1 x 3 cells x (5 + classes)``, the fifth
  number being how sure it is that there is something;
- YOLOv8 and later: ``1 x (4 + classes) x cells``; 51 numbers more for 17 key points, or one for
  each channel of a second output, of which masks are made.

A box is its middle, width and height as shares of the input, and of early exports pixels. Pixels of
the picture are given from 0 to 1. Confirmed on compiled YOLOv5n, YOLOv8n and YOLO11n models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STRIDES = (8, 16, 32)
_SHAPES_OF_A_CELL = 3
_BOX = 4
_LARGEST_SHARE = 2.0
"""No box is twice the input: what has greater numbers is in pixels."""

_CANDIDATES = 3000
"""So many of the surest boxes are compared with each other."""

OVERLAP = 0.45
"""Of two boxes of a class that have this share of their union in common, the surer one is kept."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Head:
    """Which output has the boxes, and what the numbers of a box are."""

    output: int
    objectness: bool
    classes: int

    @property
    def extra(self) -> int:
        """Where the numbers behind those of the classes begin."""
        return _BOX + self.objectness + self.classes


@dataclass(frozen=True)
class Found:
    """Boxes that are kept, the surest first.

    ``edges`` (n x 4) are left, top, right and bottom, shares of the input; ``extra`` is what a
    row has behind its classes.
    """

    edges: NDArray[np.float64]
    classes: NDArray[np.int64]
    scores: NDArray[np.float64]
    extra: NDArray[np.float64]


def head_of(shapes: Sequence[Shape], width: int, height: int, extra: int = 0) -> Head | None:
    """The head that outputs of these shapes are, of an input of that size; None if they are none.

    ``extra`` is how many numbers a row has behind its classes, beside those of masks.
    """
    cells = sum((height // stride) * (width // stride) for stride in _STRIDES)
    masks = [shape[3] for shape in shapes if len(shape) == 4]
    places = [number for number, shape in enumerate(shapes) if len(shape) == 3]
    if len(places) != 1 or len(masks) > 1 or len(shapes) != 1 + len(masks):
        return None
    (batch, first, second) = shapes[places[0]]
    objectness = first == _SHAPES_OF_A_CELL * cells
    if batch != 1 or not cells or not (objectness or second == cells):
        return None
    classes = (second if objectness else first) - _BOX - objectness - sum(masks) - extra
    return Head(places[0], objectness, classes) if classes > 0 else None


def found_by(
    head: Head, output: NDArray[np.float64], size: tuple[int, int], threshold: float, most: int
) -> Found:
    """The boxes of at least ``threshold``, at most ``most``, without those that repeat a surer one.

    Args:
        head: what ``output`` is.
        output: real values, as the module describes them.
        size: width and height of the input.
        threshold: the least score: that of the class, times that there is anything.
        most: how many.

    Raises:
        ValueError: a box or score is no number.
    """
    rows = output[0] if head.objectness else output[0].T
    by_class = rows[:, _BOX + head.objectness : head.extra]
    classes = by_class.argmax(axis=1)
    scores = by_class.max(axis=1)
    if head.objectness:
        scores = scores * rows[:, _BOX]
    if not (np.isfinite(rows[:, :_BOX]).all() and np.isfinite(scores).all()):
        raise ValueError("a box of the model is no number")
    surest = np.argsort(-scores, kind="stable")[:_CANDIDATES]
    surest = surest[scores[surest] >= threshold]
    edges = _edges(rows[surest, :_BOX], size)
    kept = _suppressed(edges, classes[surest], most)
    chosen = surest[kept]
    return Found(edges[kept], classes[chosen], scores[chosen], rows[chosen, head.extra :])


def _edges(boxes: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.float64]:
    if boxes.size and boxes.max() > _LARGEST_SHARE:
        boxes = boxes / np.array([*size, *size], np.float64)
    middle, half = boxes[:, :2], boxes[:, 2:] / 2
    return np.concatenate([middle - half, middle + half], axis=1)


def _suppressed(
    edges: NDArray[np.float64], classes: NDArray[np.int64], most: int
) -> NDArray[np.int64]:
    """Which boxes stay of those in the order of their scores: non-maximum suppression."""
    left = np.arange(len(edges))
    kept: list[int] = []
    while left.size and len(kept) < most:
        first, rest = left[0], left[1:]
        kept.append(int(first))
        same = classes[rest] == classes[first]
        left = rest[~(same & (_overlap(edges[first], edges[rest]) >= OVERLAP))]
    return np.array(kept, np.int64)


def _overlap(box: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Intersection over union of a box with each of ``others``; 0 where both are empty."""
    common = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    intersection = common.clip(0).prod(axis=1)
    areas = (others[:, 2:] - others[:, :2]).clip(0).prod(axis=1)
    union = areas + (box[2:] - box[:2]).clip(0).prod() - intersection
    shares: NDArray[np.float64] = intersection / np.where(union > 0, union, 1)
    return shares
