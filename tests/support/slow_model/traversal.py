"""Slow traversal: nested loops over indices, addresses by adding encoded strides (docs/isa.md).

It works on the encoded fields: the normalised strides, the alternate reset and the mask-free rule
"when a loop advances, its stride is added", not on the real steps that the engine computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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

    def nest(loop: int, outer: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if loop < 0:
            yield outer
            return
        limit = limits[loop]
        # outer holds the indices of the loops outside this one.
        others = dict(enumerate(outer, loop + 1))
        if loop == target and alternate_loop and others[alternate_loop] == limits[alternate_loop]:
            limit = alternate_limit
        for i in range(limit + 1):
            yield from nest(loop - 1, (i, *outer))

    yield from nest(len(limits) - 1, ())


def block_marks(elements: Sequence[Element], loops: int) -> None:
    """Fill in which blocks begin and end: a block of depth d is one iteration of loops d and up."""
    for depth in range(9):
        d = min(depth, loops)
        for i, element in enumerate(elements):
            if i == 0 or depth == 0 or elements[i - 1].index[d:] != element.index[d:]:
                element.begins.add(depth)
            last = i == len(elements) - 1
            if last or depth == 0 or elements[i + 1].index[d:] != element.index[d:]:
                element.ends.add(depth)


def walk(fields: Fields, name: str, *, target: int = 0) -> list[Element]:
    """All elements of traversal ``name`` of an instruction, its prologue elements included."""

    def get(part: str) -> Any:
        return fields[f"{name}_{part}"]

    limits, strides = get("limit"), get("stride")
    loops = len(limits)
    body: list[Element] = []
    address = get("base")
    side = get("double_start")
    for index in indices(limits, get("alternate_loop"), get("alternate_limit"), target):
        if body:
            before = body[-1].index
            advancing = max(k for k in range(loops) if before[k] != index[k])
            address += strides[advancing]
            short = get("alternate_loop") and (
                before[get("alternate_loop")] == limits[get("alternate_loop")]
            )
            if short and advancing > target:
                address += get("alternate_reset")
            if before[get("double_loop") :] != index[get("double_loop") :]:
                side ^= 1
        body.append(Element(address + side * get("double_offset"), index=index))
    block_marks(body, loops)
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
