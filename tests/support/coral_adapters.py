"""What applications for the Edge TPU do with an interpreter, by the methods of Coral's adapters.

Written from their documentation (https://coral.ai/docs/reference/py/): any interpreter will do that
has ``get_input_details``, ``get_output_details`` and ``tensor``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image


@dataclass(frozen=True)
class Class:
    """A class and its score."""

    id: int
    score: float


@dataclass(frozen=True)
class Object:
    """An object: its class, score and box (left, top, right, bottom) in pixels of the picture."""

    id: int
    score: float
    box: tuple[float, float, float, float]


def input_size(interpreter: Any) -> tuple[int, int]:
    """Width and height of the picture that the model takes."""
    _, height, width, _ = interpreter.get_input_details()[0]["shape"]
    return int(width), int(height)


def set_input(interpreter: Any, picture: Path) -> None:
    """Write a picture, in the size that the model takes, into its input in place."""
    image = Image.open(picture).convert("RGB").resize(input_size(interpreter))
    index = interpreter.get_input_details()[0]["index"]
    interpreter.tensor(index)()[0][:, :] = np.asarray(image)


def output_tensor(interpreter: Any, number: int) -> NDArray[Any]:
    """A view of an output."""
    view: NDArray[Any] = interpreter.tensor(interpreter.get_output_details()[number]["index"])()
    return view


def get_classes(interpreter: Any, top: int) -> list[Class]:
    """The classes with the highest scores, the best one first."""
    detail = interpreter.get_output_details()[0]
    scores = output_tensor(interpreter, 0).flatten()
    if np.issubdtype(detail["dtype"], np.integer):
        scale, zero_point = detail["quantization"]
        scores = scale * (scores.astype(np.int64) - zero_point)
    best = np.argsort(-scores, kind="stable")[:top]
    return [Class(int(k), float(scores[k])) for k in best]


def get_objects(interpreter: Any, threshold: float) -> list[Object]:
    """Objects with scores of at least ``threshold``."""
    if interpreter._get_full_signature_list():
        raise ValueError("models with signatures name their outputs otherwise")
    boxes, ids, scores = (output_tensor(interpreter, k)[0] for k in range(3))
    count = int(output_tensor(interpreter, 3)[0])
    width, height = input_size(interpreter)
    return [
        Object(
            int(ids[k]),
            float(scores[k]),
            (
                *(float(boxes[k][1] * width), float(boxes[k][0] * height)),
                *(float(boxes[k][3] * width), float(boxes[k][2] * height)),
            ),
        )
        for k in range(count)
        if scores[k] >= threshold
    ]


def get_segments(interpreter: Any) -> NDArray[Any]:
    """The class of each pixel, or its scores."""
    return np.asarray(output_tensor(interpreter, 0)[0])


def get_poses(interpreter: Any) -> list[NDArray[Any]]:
    """Key points (y, x) of each person."""
    count = int(output_tensor(interpreter, 3)[0])
    return [output_tensor(interpreter, 0)[0][k] for k in range(count)]


def labels(path: Path) -> dict[int, str]:
    """Names of classes: a line each, with or without its number."""
    lines = path.read_text(encoding="utf-8").splitlines()
    numbered = [line.split(maxsplit=1) for line in lines]
    if all(each and each[0].isdigit() for each in numbered):
        return {int(number): name for number, name in numbered}
    return dict(enumerate(lines))
