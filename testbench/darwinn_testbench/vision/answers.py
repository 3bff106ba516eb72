"""What the outputs of a model say of a picture: classes, boxes, regions or people."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from darwinn_reference.arrays import AnyArray
from numpy.typing import NDArray

from darwinn_testbench.chip.inputs import TensorPort
from darwinn_testbench.errors import InputError
from darwinn_testbench.vision.labels import Labels, name_of_class
from darwinn_testbench.vision.preparation import Placement
from darwinn_testbench.vision.shapes import KEYPOINT_NUMBERS, is_map, is_vector
from darwinn_testbench.vision.yolo import Found, Shape, found_by, head_of

KEYPOINTS = (
    "nose",
    *(
        f"{side} {part}"
        for part in ("eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle")
        for side in ("left", "right")
    ),
)
"""Key points of PoseNet and MoveNet, in their order."""

SURE = 0.2
"""Score from which on a key point is shown and compared."""

SCORES = "one vector of scores"
"""What a classifier gives, in words."""

_SCORE_DIGITS = 4


@dataclass(frozen=True)
class Answer:
    """One thing that is seen: ``number`` and ``label`` of its class, and how sure that is, 0 to 1.

    A score is what the model gives; if that is no probability it can be another number.
    """

    label: str
    number: int
    score: float


@dataclass(frozen=True)
class Box(Answer):
    """It lies in this box of the picture: pixels, the ends exclusive."""

    left: int
    top: int
    right: int
    bottom: int


@dataclass(frozen=True)
class Region(Answer):
    """So many pixels of the model's map of the picture are of it; ``score`` is their share."""

    pixels: int


@dataclass(frozen=True)
class Keypoint:
    """A part of a person, in pixels of the picture."""

    name: str
    x: float
    y: float
    score: float


@dataclass(frozen=True)
class Person(Answer):
    """A person: class 0, "person"."""

    keypoints: tuple[Keypoint, ...]


@dataclass(frozen=True)
class Seen:
    """The answers of a picture, the surest first; ``classes`` is the class of each pixel of it.

    ``beside`` is what a reference sees in the same picture, if there is one.
    """

    answers: tuple[Answer, ...]
    classes: NDArray[np.int64] | None = None
    beside: Seen | None = None


@dataclass(frozen=True)
class Question:
    """What is asked of outputs: at most ``most`` answers, of at least ``threshold``."""

    labels: Labels
    most: int
    threshold: float

    def __post_init__(self) -> None:
        if math.isnan(self.threshold):
            raise InputError("--threshold nan: a number")


Output = tuple[TensorPort, AnyArray]
Look = Callable[[Sequence[Output], Placement, Question], Seen]


def real(port: TensorPort, value: AnyArray) -> NDArray[np.float64]:
    """Real values of an output."""
    if value.dtype.kind not in "iu" or not port.scale:
        return value.astype(np.float64)
    return (value.astype(np.float64) - port.zero_point) * port.scale


def class_scores(outputs: Sequence[Output]) -> NDArray[np.float64]:
    """The scores of classes, a vector.

    Raises:
        InputError: the model has other outputs.
    """
    vectors = [(port, value) for port, value in outputs if is_vector(value.shape)]
    if len(vectors) != 1:
        raise _other(outputs, SCORES)
    return real(*vectors[0]).reshape(-1)


def classes(outputs: Sequence[Output], _: Placement, question: Question) -> Seen:
    """The classes of the highest scores; of equal ones the first."""
    scores = class_scores(outputs)
    order = np.argsort(-scores, kind="stable")[: question.most]
    return Seen(
        tuple(
            Answer(name_of_class(question.labels, int(k)), int(k), _rounded(scores[k]))
            for k in order
            if scores[k] >= question.threshold
        )
    )


def boxes(outputs: Sequence[Output], placement: Placement, question: Question) -> Seen:
    """The boxes of an SSD's post-processing, as pycoral takes its outputs, or of a YOLO's head."""
    found = _of_yolo(outputs, placement, question)
    if found is None:
        return _ssd(outputs, placement, question)
    return Seen(
        tuple(
            _box(question.labels, int(number), score, edges.tolist(), placement)
            for number, score, edges in zip(found.classes, found.scores, found.edges, strict=True)
        )
    )


def _of_yolo(
    outputs: Sequence[Output], placement: Placement, question: Question, extra: int = 0
) -> Found | None:
    """What the head of a YOLO finds; None if the outputs are no such head."""
    shapes = [value.shape for _, value in outputs]
    size = placement.width, placement.height
    head = head_of(shapes, *size, extra)
    if head is None:
        return None
    value = real(*outputs[head.output])
    try:
        return found_by(head, value, size, question.threshold, question.most)
    except ValueError as error:
        raise InputError(str(error)) from None


def _box(
    labels: Labels, number: int, score: float, edges: Sequence[float], placement: Placement
) -> Box:
    """A box of the picture, from left, top, right and bottom as shares of the input."""
    left, top, right, bottom = edges
    return Box(
        name_of_class(labels, number),
        number,
        _rounded(score),
        int(placement.x(left * placement.width)),
        int(placement.y(top * placement.height)),
        int(placement.x(right * placement.width)),
        int(placement.y(bottom * placement.height)),
    )


def _ssd(outputs: Sequence[Output], placement: Placement, question: Question) -> Seen:
    values = [real(port, value) for port, value in outputs]
    if len(values) != 4:
        raise _other(outputs, "boxes, classes, scores and count of an SSD, or the head of a YOLO")
    # The order of TensorFlow 1, and that of TensorFlow 2 by signatures.
    order = (0, 1, 2, 3) if values[3].size == 1 else (1, 3, 0, 2)
    places, numbers, scores, count = (values[k] for k in order)
    if count.size != 1 or places.size != 4 * scores.size or numbers.size != scores.size:
        raise _other(outputs, "boxes, classes, scores and count of an SSD")
    if not np.isfinite(count).all():
        raise InputError(f"the model counts {count.reshape(-1)[0]} boxes")
    found: list[Box] = []
    for place, number, score in zip(
        places.reshape(-1, 4), numbers.reshape(-1), scores.reshape(-1), strict=True
    ):
        if len(found) == int(count.reshape(-1)[0]):
            break
        top, left, bottom, right = place.tolist()
        if not np.isfinite([*place, number]).all():
            raise InputError(f"box {len(found)} of the model is {place.tolist()}, class {number}")
        edges = (left, top, right, bottom)
        found.append(_box(question.labels, int(number), score, edges, placement))
    kept = sorted((each for each in found if each.score >= question.threshold), key=_surest)
    return Seen(tuple(kept[: question.most]))


def regions(outputs: Sequence[Output], placement: Placement, question: Question) -> Seen:
    """The class of each pixel: a map of numbers, or of scores for each class."""
    maps = [(port, value) for port, value in outputs if is_map(value.shape)]
    if len(maps) != 1:
        raise _other(outputs, "one map of classes")
    port, value = maps[0]
    found = value[0]
    if found.ndim == 3:
        found = found[..., 0] if found.shape[2] == 1 else np.argmax(real(port, found), axis=-1)
    found = found.astype(np.int64)
    # What lies outside the picture belongs to no one.
    height, width = found.shape
    right = max(round(width * placement.shown[0] / placement.width), 1)
    bottom = max(round(height * placement.shown[1] / placement.height), 1)
    found = found[:bottom, :right]
    numbers, counts = np.unique(found, return_counts=True)
    answers = [
        Region(
            name_of_class(question.labels, int(number)),
            int(number),
            _rounded(count / found.size),
            int(count),
        )
        for number, count in zip(numbers, counts, strict=True)
        if count / found.size >= question.threshold
    ]
    return Seen(tuple(sorted(answers, key=_surest)[: question.most]), found)


def people(outputs: Sequence[Output], placement: Placement, question: Question) -> Seen:
    """The people of PoseNet's or BodyPix's decoder, of a YOLO's head, or MoveNet's only one."""
    yolo = _of_yolo(outputs, placement, question, KEYPOINT_NUMBERS)
    if yolo is not None:
        parts = yolo.extra.reshape(-1, len(KEYPOINTS), 3)
        points = parts[..., 1::-1] * (placement.height, placement.width)
        return _people(points, parts[..., 2], yolo.scores.tolist(), placement, question)
    values = [real(port, value) for port, value in outputs]
    single = [each for each in values if each.shape[-2:] == (len(KEYPOINTS), 3)]
    if len(values) == 1 and single and single[0].size == len(KEYPOINTS) * 3:
        rows = single[0].reshape(-1, 3)
        points = rows[None, :, :2] * (placement.height, placement.width)
        return _people(points, rows[None, :, 2], [float(rows[:, 2].mean())], placement, question)
    points, scores, totals, count = (
        _one(outputs, values, shape) for shape in (((17, 2), 4), ((17,), 3), ((), 2), ((), 1))
    )
    many = min(int(count.reshape(-1)[0]), totals.size)
    return _people(
        points.reshape(-1, 17, 2)[:many],
        scores.reshape(-1, 17)[:many],
        totals.reshape(-1)[:many].tolist(),
        placement,
        question,
    )


def _one(
    outputs: Sequence[Output],
    values: Sequence[NDArray[np.float64]],
    wanted: tuple[tuple[int, ...], int],
) -> NDArray[np.float64]:
    """The output whose last dimensions, and whose number of dimensions, are these."""
    last, dimensions = wanted
    for each in values:
        tail = each.shape[each.ndim - len(last) :]
        if each.ndim == dimensions and tail == last:
            return each
    raise _other(outputs, "key points, their scores, scores of people and their count")


def _people(
    points: NDArray[np.float64],
    scores: NDArray[np.float64],
    totals: Sequence[float],
    placement: Placement,
    question: Question,
) -> Seen:
    found = [
        Person(
            "person",
            0,
            _rounded(total),
            tuple(
                Keypoint(name, round(placement.x(x), 1), round(placement.y(y), 1), _rounded(score))
                for name, (y, x), score in zip(KEYPOINTS, own.tolist(), each, strict=True)
            ),
        )
        for own, each, total in zip(points, scores, totals, strict=True)
        if total >= question.threshold
    ]
    return Seen(tuple(sorted(found, key=_surest)[: question.most]))


def _surest(answer: Answer) -> float:
    return -answer.score


def _rounded(score: float) -> float:
    return round(float(score), _SCORE_DIGITS)


def _other(outputs: Sequence[Output], wanted: str) -> InputError:
    return other_outputs([(port, value.shape) for port, value in outputs], wanted)


def other_outputs(outputs: Sequence[tuple[TensorPort, Shape]], wanted: str) -> InputError:
    """The error of a model that gives tensors of these shapes where ``wanted`` is needed."""
    given = ", ".join(
        f"{port.name} ({port.dtype} {'x'.join(map(str, shape)) or 'scalar'})"
        for port, shape in outputs
    )
    return InputError(f"the model gives {given or 'nothing'}; this needs {wanted}")


LOOKS: Mapping[str, Look] = {
    "classify": classes,
    "detect": boxes,
    "segment": regions,
    "pose": people,
}
"""How the outputs are read, by command."""
