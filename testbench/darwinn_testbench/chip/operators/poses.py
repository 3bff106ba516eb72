"""People in the outputs of PoseNet and BodyPix: key points, scores and masks.

The network gives, for each block of ``stride`` x ``stride`` pixels: the score of each of 17 kinds
of key points (as log odds), the offset to the nearest one of each kind (short), the offsets from
each key point to those that it is joined to (mid), and of BodyPix the offset from any pixel to the
key points of its person (long). A person is decoded from its best key point along a tree of joints
(Papandreou et al., PersonLab, 2018, https://arxiv.org/abs/1803.08225).

Everything is float32 in the order of the vendor's decoder (google-coral/libcoral, coral/posenet),
so that results are its results, with what it does unlike the paper: the joint from the left eye
back to the nose takes offsets of another joint, and masks whose width is not their height overlap.
Of key points of equal score the one is taken that a heap of the GNU C++ library gives first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Point = tuple[np.float32, np.float32]
"""y and x, in blocks."""

KEYPOINTS = 17
JOINTS = 16

_PARENTS = {
    1: 0,
    3: 1,
    2: 0,
    4: 2,
    5: 0,
    7: 5,
    9: 7,
    11: 5,
    13: 11,
    15: 13,
    6: 0,
    8: 6,
    10: 8,
    12: 6,
    14: 12,
    16: 14,
}
"""The key point from which each one is reached, in the order of the joints: 0 is the nose, then
eyes, ears, shoulders, elbows, wrists, hips, knees and ankles, each left (odd) and right (even)."""

_DIRECTED = [(parent, child) for child, parent in _PARENTS.items()]
_EDGES = _DIRECTED + [(child, parent) for parent, child in _DIRECTED]
_NEIGHBOURS = [
    [(edge, target) for edge, (source, target) in enumerate(_EDGES) if source == keypoint]
    for keypoint in range(KEYPOINTS)
]
"""Of each key point the joints that leave it, by number, and where they lead; first those away from
the nose, then those towards it."""

_SHORT_STEPS = 5
"""How often a key point is moved by the short offsets where a joint has led."""

_LONG_STEPS = 2

_ZERO, _ONE = np.float32(0), np.float32(1)


@dataclass(frozen=True)
class Poses:
    """Key points (people, 17, y and x) in pixels, their scores, and the scores of the people."""

    keypoints: Floats
    keypoint_scores: Floats
    scores: Floats


class Heap:
    """A priority queue of the GNU C++ library: of equal scores it does not give the first."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, Any]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, score: float, what: Any) -> None:
        """Add an entry."""
        self._entries.append((score, what))
        self._up(len(self._entries) - 1, (score, what))

    def pop(self) -> tuple[float, Any]:
        """Take an entry of the highest score."""
        entries = self._entries
        first, last = entries[0], entries.pop()
        if not entries:
            return first
        place, size = 0, len(entries)
        # The gap sinks to the bottom whatever fills it, which then rises.
        while 2 * place + 2 < size:
            child = 2 * place + 2
            child -= entries[child][0] < entries[child - 1][0]
            entries[place], place = entries[child], child
        if 2 * place + 2 == size:
            entries[place], place = entries[size - 1], size - 1
        self._up(place, last)
        return first

    def _up(self, place: int, entry: tuple[float, Any]) -> None:
        entries = self._entries
        while place and entries[(place - 1) // 2][0] < entry[0]:
            entries[place] = entries[(place - 1) // 2]
            place = (place - 1) // 2
        entries[place] = entry


def sample(tensor: Floats, y: Any, x: Any, channels: Sequence[int] | NDArray[Any]) -> Floats:
    """Values of ``tensor`` (height, width, channels) between its blocks, interpolated.

    ``y`` and ``x`` are numbers, or arrays of one shape; the result has the channels first.
    """
    height, width, _ = tensor.shape
    rows, columns = np.clip(y, _ZERO, height - 1), np.clip(x, _ZERO, width - 1)
    top, left = np.floor(rows).astype(np.intp), np.floor(columns).astype(np.intp)
    bottom, right = np.ceil(rows).astype(np.intp), np.ceil(columns).astype(np.intp)
    down, across = y - top.astype(np.float32), x - left.astype(np.float32)
    found = [
        (_ONE - down) * ((_ONE - across) * tensor[top, left, c] + across * tensor[top, right, c])
        + down * ((_ONE - across) * tensor[bottom, left, c] + across * tensor[bottom, right, c])
        for c in channels
    ]
    return np.asarray(found, np.float32)


def moved(offsets: Floats, y: Any, x: Any, channels: Sequence[int]) -> tuple[Any, Any]:
    """A point, or many, moved by the offsets that are there, within the blocks."""
    height, width, _ = offsets.shape
    dy, dx = sample(offsets, y, x, channels)
    return np.clip(y + dy, _ZERO, np.float32(height - 1)), np.clip(
        x + dx, _ZERO, np.float32(width - 1)
    )


def along_joint(
    shorts: Floats, mids: Floats, source: Point, edge: int, target: int, steps: int = _SHORT_STEPS
) -> Point:
    """Where joint ``edge`` leads from ``source``: to a key point of the kind ``target``."""
    joints, kinds = mids.shape[2] // 4, shorts.shape[2] // 2
    point = moved(mids, *source, (edge, joints + edge))
    for _ in range(steps):
        point = moved(shorts, *point, (target, kinds + target))
    return point


def decode_poses(
    heatmaps: Floats,
    shorts: Floats,
    mids: Floats,
    *,
    most: int,
    threshold: float,
    radius: float,
    stride: int,
) -> Poses:
    """At most ``most`` people with scores of at least ``threshold``.

    Args:
        heatmaps: scores, (height, width, 17).
        shorts: short offsets in blocks, (height, width, 2 x 17), all y before all x.
        mids: mid offsets in blocks, (height, width, 4 x 16): y and x of joints away from the nose,
            then y and x of those towards it.
        most: people, at most.
        threshold: probability, between 0 and 1.
        radius: in blocks: key points of one kind that are nearer than that are the same.
        stride: pixels of a block.
    """
    limit = np.float32(threshold)
    squared = np.float32(radius) * np.float32(radius)
    queue = _candidates(heatmaps, shorts, _log_odds(limit))
    points = np.zeros((most, KEYPOINTS, 2), np.float32)
    scores = np.zeros((most, KEYPOINTS), np.float32)
    totals: list[np.float32] = []
    while len(totals) < most and queue:
        _, (kind, root) = queue.pop()
        count = len(totals)
        if np.any(_squared_distance(points[:count, kind], np.array(root, np.float32)) <= squared):
            continue
        points[count], logits = _decode(heatmaps, shorts, mids, kind, root)
        scores[count] = _sigmoid(logits)
        total = _sum(np.sort(scores[count])[::-1]) / np.float32(KEYPOINTS)
        if total >= limit:
            totals.append(total)
    finals = _without_overlaps(points, scores, np.array(totals, np.float32), squared)
    kept = [k for k in _descending(finals) if finals[k] >= limit]
    return Poses(points[kept] * np.float32(stride), scores[kept], finals[kept])


def decode_masks(longs: Floats, poses: Poses, stride: int, room: Floats) -> None:
    """Write into ``room`` (flat) which blocks belong to whom: 1.0 where a person is.

    ``longs`` are long offsets in blocks, (height, width, 2 x 17). Each block is given to the person
    whose key points are nearest to where its long offsets lead.
    """
    height, width, _ = longs.shape
    rows, columns = (each.astype(np.float32) for each in np.mgrid[0:height, 0:width])
    count = len(poses.scores)
    distances = np.zeros((count, height, width), np.float32)
    for kind in range(KEYPOINTS if count else 0):
        y, x = rows, columns
        for _ in range(_LONG_STEPS + 1):
            y, x = moved(longs, y, x, (kind, KEYPOINTS + kind))
        led = np.stack([y, x], axis=-1) * np.float32(stride)
        distances += _squared_distance(poses.keypoints[:, kind, None, None], led)
    nearest = distances.argmin(axis=0) if count else np.zeros((height, width), np.intp)
    room[: height * width * count] = 0
    # The vendor's order, right where height and width are the same.
    places = (nearest * width + np.arange(height)[:, None]) * height + np.arange(width)
    room[places] = 1


def _candidates(heatmaps: Floats, shorts: Floats, limit: float) -> Heap:
    """Key points to begin with: scores that no neighbour of the same kind exceeds."""
    height, width, _ = heatmaps.shape
    around = np.pad(heatmaps, ((1, 1), (1, 1), (0, 0)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(around, (3, 3), axis=(0, 1))
    peaks = (heatmaps >= limit) & (heatmaps >= windows.max(axis=(-2, -1)))
    y, x, kind = np.nonzero(peaks)
    down = np.clip(y.astype(np.float32) + shorts[y, x, kind], _ZERO, np.float32(height - 1))
    across = np.clip(
        x.astype(np.float32) + shorts[y, x, KEYPOINTS + kind], _ZERO, np.float32(width - 1)
    )
    heap = Heap()
    for score, each, *point in zip(
        heatmaps[peaks].tolist(), kind.tolist(), down, across, strict=True
    ):
        heap.push(score, (each, tuple(point)))
    return heap


def _decode(
    heatmaps: Floats, shorts: Floats, mids: Floats, kind: int, root: Point
) -> tuple[Floats, Floats]:
    """The key points of a person and their scores, from one of them on; the best come first."""
    points = np.full((KEYPOINTS, 2), -1, np.float32)
    scores = np.full(KEYPOINTS, -1e5, np.float32)
    done: set[int] = set()
    queue = Heap()
    queue.push(float(sample(heatmaps, *root, (kind,))[0]), (kind, root))
    while queue:
        score, (kind, point) = queue.pop()
        if kind in done:
            continue
        done.add(kind)
        points[kind], scores[kind] = point, score
        for edge, target in _NEIGHBOURS[kind]:
            if target in done:
                continue
            # Offsets of joints towards the nose are behind those away from it, y and x of each
            # together; joint 16, the first of them, should be moved as well and is not.
            place = edge + JOINTS if edge > JOINTS else edge
            found = along_joint(shorts, mids, point, place, target)
            queue.push(float(sample(heatmaps, *found, (target,))[0]), (target, found))
    return points, scores


def _without_overlaps(
    points: Floats, scores: Floats, totals: Floats, squared: np.float32
) -> Floats:
    """Scores of people without the key points that a better person has in the same place."""
    finals = np.zeros(len(totals), np.float32)
    order = _descending(totals)
    for place, k in enumerate(order):
        others = points[order[:place]]
        taken = np.any(_squared_distance(others, points[k]) <= squared, axis=0)
        best = _descending(scores[k])
        finals[k] = _sum(scores[k][best][~taken[best]]) / np.float32(KEYPOINTS)
    return finals


def _descending(scores: Floats) -> list[int]:
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    return order


def _squared_distance(one: Floats, other: Floats) -> Floats:
    difference = other - one
    squares: Floats = difference * difference
    return squares[..., 0] + squares[..., 1]


def _sum(values: Floats) -> np.float32:
    """The sum in float32, one after another."""
    return np.add.accumulate(values)[-1] if len(values) else _ZERO


def _sigmoid(logits: Floats) -> Floats:
    return (_ONE / (_ONE + np.exp(-logits.astype(np.float64)).astype(np.float32))).astype(
        np.float32
    )


def _log_odds(probability: np.float32) -> float:
    odds = 1.0 / (float(probability) + 1e-6) - 1.0
    return float(np.float32(-math.log(odds))) if odds > 0 else math.inf
