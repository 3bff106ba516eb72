"""Which integers of a TensorFlow Lite graph are indices, and of how large a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

Shape = tuple[int, ...]


class Step(NamedTuple):
    """An operator: its name, indices of its tensors, and its option ``axis``."""

    name: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    axis: int = 0


_Table = Callable[[Step, Sequence[Shape]], Iterator[tuple[int, int]]]
"""From an operator and its operands' shapes: which operand indexes, and the size of its table."""


def _along_axis(step: Step, shapes: Sequence[Shape]) -> Iterator[tuple[int, int]]:
    if -len(shapes[0]) <= step.axis < len(shapes[0]):
        yield 1, shapes[0][step.axis]


def _of_each_dimension(step: Step, shapes: Sequence[Shape]) -> Iterator[tuple[int, int]]:
    count = shapes[1][-1] if shapes[1] else 0
    yield from ((1, size) for size in shapes[0][:count])


def _rows(step: Step, shapes: Sequence[Shape]) -> Iterator[tuple[int, int]]:
    if shapes[1]:
        yield 0, shapes[1][0]


INDEXING: Mapping[str, _Table] = {
    "EMBEDDING_LOOKUP": _rows,
    "GATHER": _along_axis,
    "GATHER_ND": _of_each_dimension,
}
"""Operators that index."""

MOVING = frozenset(
    {
        *("BROADCAST_TO", "CAST", "EXPAND_DIMS", "RESHAPE", "REVERSE_V2", "SLICE", "SPLIT"),
        *("SQUEEZE", "STRIDED_SLICE", "TILE", "TRANSPOSE", "UNPACK"),
    }
)
"""Operators whose results hold elements of the first operand that is no constant, and no others."""


def index_limit(steps: Iterable[Step], shape_of: Callable[[int], Shape], index: int) -> int | None:
    """The size of the smallest table that a tensor indexes; None if it indexes none."""
    same, found = {index}, list[int]()
    for step in steps:
        if step.name in MOVING and same.intersection(step.inputs):
            same.update(step.outputs)
        if step.name in INDEXING and len(step.inputs) > 1 and min(step.inputs) >= 0:
            shapes = [shape_of(each) for each in step.inputs]
            found += [
                size
                for place, size in INDEXING[step.name](step, shapes)
                if step.inputs[place] in same
            ]
    return min(found, default=None)
