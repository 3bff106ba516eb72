"""What the outputs of a model are, by their shapes: known before the first picture."""

from __future__ import annotations

from collections.abc import Sequence

from darwinn_testbench.chip.inputs import TensorPort
from darwinn_testbench.vision.yolo import Shape, head_of

KEYPOINT_NUMBERS = 51
"""Numbers of a YOLO's boxes behind their classes: x, y and score of 17 key points."""

_SSD_OUTPUTS = 4


def is_vector(shape: Shape) -> bool:
    """Whether a tensor is a vector of several numbers, whatever its dimensions."""
    return max(shape, default=0) > 1 and sum(each != 1 for each in shape) == 1


def is_map(shape: Shape) -> bool:
    """Whether a tensor has something for every pixel of a picture."""
    return len(shape) in (3, 4) and shape[0] == 1 and min(shape[1:3]) > 1


def class_count(task: str, shapes: Sequence[Shape], size: tuple[int, int]) -> int | None:
    """How many classes a model tells apart; None where shapes do not say it.

    An SSD's post-processing and an ARG_MAX give numbers of classes: their shapes do not say which
    there are. ``size`` is width and height of the input.
    """
    if task == "classify":
        vectors = [shape for shape in shapes if is_vector(shape)]
        return max(vectors[0]) if len(vectors) == 1 else None
    if task == "detect":
        head = head_of(shapes, *size)
        return None if head is None else head.classes
    if task == "segment":
        maps = [shape for shape in shapes if is_map(shape)]
        scored = len(maps) == 1 and len(maps[0]) == 4 and maps[0][3] > 1
        return maps[0][3] if scored else None
    return None


def tasks_of(shapes: Sequence[Shape], size: tuple[int, int]) -> tuple[str, ...]:
    """The commands on pictures that can read such outputs; none where none is certain."""
    if head_of(shapes, *size) is not None:
        people = head_of(shapes, *size, KEYPOINT_NUMBERS)
        return ("pose",) if people is not None and people.classes == 1 else ("detect",)
    boxes = [shape for shape in shapes if len(shape) == 3 and shape[2] == 4]
    if len(shapes) == _SSD_OUTPUTS and len(boxes) == 1:
        return ("detect",)
    if sum(map(is_vector, shapes)) == 1:
        return ("classify",)
    return ("segment",) if sum(map(is_map, shapes)) == 1 else ()


def instead_of(task: str, ports: Sequence[TensorPort], size: tuple[int, int]) -> str:
    """What to try where outputs are not what ``task`` reads: the end of a message, or nothing."""
    others = [each for each in tasks_of([port.shape for port in ports], size) if each != task]
    return f": try darwinn {' or '.join(others)}" if others else ""
