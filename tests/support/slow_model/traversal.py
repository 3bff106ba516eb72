"""Slow traversal: nested loops over indices, addresses by adding encoded strides (docs/isa.md).

It works on the encoded fields: the normalised strides, the alternate reset and the mask-free rule
"when a loop advances, its stride is added", not on the real steps that the engine computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

Fields = Mapping[str, Any]


@dataclass
class Element:
    """One element: its address, the depths of the blocks that begin with it and end after it."""

    address: int
    begins: set[int] = field(default_factory=set)
    ends: set[int] = field(default_factory=set)
    prologue: bool = False
    index: tuple[int, ...] = ()


def indices(
    limits: Sequence[int], alternate_loop: int, alternate_limit: int, target: int = 0
) -> Iterator[tuple[int, ...]]:
    """Index tuples (loop 0 first) of nested loops, the outermost loop slowest."""
    for outer in product(*map(_count, reversed(limits[target + 1 :]))):
        # The indices of the loops outside of the one whose limit may be another.
        others = dict(enumerate(reversed(outer), target + 1))
        limit = limits[target]
        if alternate_loop and others[alternate_loop] == limits[alternate_loop]:
            limit = alternate_limit
        for inner in product(*map(_count, (limit, *reversed(limits[:target])))):
            yield (*outer, *inner)[::-1]


def _count(limit: int) -> range:
    return range(limit + 1)


def _advancing(before: tuple[int, ...], index: tuple[int, ...]) -> int:
    """The loop that advances: those outside of it stay where they are."""
    loop = 0
    while before[loop + 1 :] != index[loop + 1 :]:
        loop += 1
    return loop


def block_marks(elements: Sequence[Element]) -> None:
    """Fill in which blocks begin and end: a block of depth d is one iteration of loops d and up.

    Depth 0 is an element. Where loop k advances, the blocks of depth k and less are others.
    """
    for before, after in pairwise((None, *elements, None)):
        depths = range(9)
        if before is not None and after is not None:
            depths = range(_advancing(before.index, after.index) + 1)
        if before is not None:
            before.ends.update(depths)
        if after is not None:
            after.begins.update(depths)


def walk(fields: Fields, name: str, *, target: int = 0) -> list[Element]:
    """All elements of traversal ``name`` of an instruction, its prologue elements included."""

    def get(part: str) -> Any:
        return fields[f"{name}_{part}"]

    limits, strides = get("limit"), get("stride")
    alternate_loop, alternate_reset = get("alternate_loop"), get("alternate_reset")
    double_loop, double_offset = get("double_loop"), get("double_offset")
    body: list[Element] = []
    address = get("base")
    side = get("double_start")
    for index in indices(limits, alternate_loop, get("alternate_limit"), target):
        if body:
            before = body[-1].index
            advancing = _advancing(before, index)
            address += strides[advancing]
            if alternate_loop and before[alternate_loop] == limits[alternate_loop]:
                # A short one ends.
                address += alternate_reset if advancing > target else 0
            if before[double_loop:] != index[double_loop:]:
                side ^= 1
        body.append(Element(address + side * double_offset, index=index))
    block_marks(body)
    if not fields.get(f"{name}_prologue_enable"):
        return body
    return list(_with_prologue(body, get))


def _with_prologue(body: Sequence[Element], get: Any) -> Iterator[Element]:
    base = get("prologue_base")
    group = get("prologue_loop") + 1
    for i, element in enumerate(body):
        if i == 0 or body[i - 1].index[group:] != element.index[group:]:
            for k in range(get("prologue_inner_limit") + 1):
                yield Element(base + k, element.begins if k == 0 else set(), prologue=True)
            # Whatever waits for this block has waited before its prologue.
            element.begins = set()
            base += get("prologue_outer_stride")
            if base > get("prologue_outer_limit"):
                base = get("prologue_base")
        yield element
