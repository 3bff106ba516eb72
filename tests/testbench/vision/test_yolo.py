"""Heads of YOLO networks, against a slow reading of the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from darwinn_testbench.chip.inputs import TensorPort
from darwinn_testbench.errors import InputError
from darwinn_testbench.vision.answers import KEYPOINTS, Box, Person, Question, boxes, people
from darwinn_testbench.vision.preparation import Placement
from darwinn_testbench.vision.yolo import OVERLAP, Head, found_by, head_of
from hypothesis import given, settings
from hypothesis import strategies as st

SIZE = (64, 32)
CELLS = 8 * 4 + 4 * 2 + 2 * 1
WHOLE = Placement(*SIZE, SIZE, 0, 0, 2.0, 4.0)


def output(value: np.ndarray) -> tuple[TensorPort, np.ndarray]:
    return TensorPort("x", value.shape, value.dtype), value


@pytest.mark.parametrize(
    ("shapes", "head"),
    [
        ([(1, 3 * CELLS, 85)], Head(0, True, 80)),
        ([(1, 84, CELLS)], Head(0, False, 80)),
        ([(1, 5, CELLS)], Head(0, False, 1)),
        ([(1, 116, CELLS), (1, 8, 16, 32)], Head(0, False, 80)),
        ([(1, 8, 16, 32), (1, 3 * CELLS, 117)], Head(1, True, 80)),
        ([(1, 4, CELLS)], None),
        ([(1, 3 * CELLS, 5)], None),
        ([(1, CELLS, 84)], None),
        ([(2, 84, CELLS)], None),
        ([(1, 84, CELLS), (1, 84, CELLS)], None),
        ([(1, 84, CELLS), (1, 10)], None),
        ([(1, 1001)], None),
    ],
)
def test_heads_are_known_by_their_shapes(shapes: list[tuple[int, ...]], head: Head | None) -> None:
    assert head_of(shapes, *SIZE) == head


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    """Shares of a union, of boxes by middle and size, on paper."""
    (ax, ay, aw, ah), (bx, by, bw, bh) = a[:4].tolist(), b[:4].tolist()
    wide = min(ax + aw / 2, bx + bw / 2) - max(ax - aw / 2, bx - bw / 2)
    high = min(ay + ah / 2, by + bh / 2) - max(ay - ah / 2, by - bh / 2)
    common = max(wide, 0) * max(high, 0)
    union = aw * ah + bw * bh - common
    return common / union if union > 0 else 0.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0), st.booleans(), st.integers(1, 3), st.floats(0, 1), st.integers(1, 60))
def test_the_surest_of_boxes_that_overlap_stays(
    seed: int, objectness: bool, classes: int, threshold: float, most: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.random((CELLS * (3 if objectness else 1), 4 + objectness + classes))
    if rng.random() < 0.5:
        rows[:, :4] = rows[rng.integers(0, 5, len(rows)), :4]
    head = Head(0, objectness, classes)
    value = (rows if objectness else rows.T)[None]
    found = found_by(head, value, SIZE, threshold, most)

    def score(row: np.ndarray) -> float:
        return float(row[4 + objectness :].max() * (row[4] if objectness else 1))

    kept: list[np.ndarray] = []
    for row in sorted(rows, key=score, reverse=True):
        if score(row) < threshold or len(kept) == most:
            break
        own = row[4 + objectness :].argmax()
        rivals = [each for each in kept if each[4 + objectness :].argmax() == own]
        if all(overlap(row, each) < OVERLAP for each in rivals):
            kept.append(row)
    assert found.scores.tolist() == [score(row) for row in kept]
    assert found.classes.tolist() == [int(row[4 + objectness :].argmax()) for row in kept]
    middles = [((each[:2] + each[2:]) / 2).tolist() for each in found.edges]
    assert np.allclose(np.reshape(middles, (-1, 2)), np.reshape([row[:2] for row in kept], (-1, 2)))


@pytest.mark.parametrize("unit", [(1, 1), SIZE], ids=["shares", "pixels"])
def test_boxes_are_in_pixels_of_the_picture(unit: tuple[int, int]) -> None:
    value = np.zeros((1, 6, CELLS), np.float32)
    value[0, :, 7] = (0.5 * unit[0], 0.5 * unit[1], 0.25 * unit[0], 0.5 * unit[1], 0.1, 0.75)
    question = Question({1: "cat"}, 9, 0.5)
    assert boxes([output(value)], WHOLE, question).answers == (Box("cat", 1, 0.75, 48, 32, 80, 96),)


def test_a_head_with_key_points_finds_people() -> None:
    value = np.zeros((1, 5 + 3 * len(KEYPOINTS), CELLS), np.float32)
    value[0, :5, 3] = (0.5, 0.5, 0.25, 0.5, 0.75)
    value[0, 5:8, 3] = (0.25, 0.75, 0.5)
    (person,) = people([output(value)], WHOLE, Question({}, 9, 0.5)).answers
    assert isinstance(person, Person)
    nose = person.keypoints[0]
    assert (nose.x, nose.y, nose.score, person.score) == (32, 96, 0.5, 0.75)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 4])
def test_boxes_that_are_no_numbers_are_refused(place: int, value: float) -> None:
    rows = np.zeros((1, 5, CELLS), np.float32)
    rows[0, place, 5] = value
    with pytest.raises(InputError, match="no number"):
        boxes([output(rows)], WHOLE, Question({}, 9, 0.5))
