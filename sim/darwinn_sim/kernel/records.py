"""Records of instructions, as kernels read them: derived from the instruction table.

A record has the program counter, ``pc``, and every field of its instruction by its name. Fields of
an address generator are one member of its name (``traversal.PARAMETERS``), as are those of a
producer (``sync.PRODUCER``) and those of all watchers (``watchers``, ``sync.WATCHERS``). Where a
field means something else than in other instructions, its member is called as listings show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.isa.codec import Columns
from darwinn_sim.isa.fields import Field, Instruction
from darwinn_sim.kernel import sync, traversal

Members = Sequence[tuple[str, np.dtype[np.void] | str]]
"""Names and types of what a record has besides what the instruction table says."""

_NUMBERS = {"float32": "f4"}


def record(instructions: Sequence[Instruction], besides: Members) -> np.dtype[np.void]:
    """The type of the records of ``instructions``, which has what any of them has."""
    members = {name: dtype for entry in instructions for name, dtype in _members(entry)}
    return np.dtype([("pc", "i8"), *members.items(), *besides])


def lower(
    instruction: Instruction, columns: Columns, pc: NDArray[np.int64], dtype: np.dtype[np.void]
) -> NDArray[np.void]:
    """Decoded instructions of one opcode as records of ``dtype``; what they do not have is 0."""
    rows = len(pc)
    out = np.zeros(rows, dtype)
    out["pc"] = pc
    for walk in instruction.traversals:
        out[walk.name] = traversal.lower(walk, columns, rows)
    for name in instruction.producers:
        out[name] = sync.lower_producer(name, columns, rows)
    if instruction.watchers:
        out["watchers"] = sync.lower_watchers(columns, rows)
    for field in _plain(instruction):
        column = columns[field.name]
        bits = column.astype(np.uint32).view(np.float32) if field.kind == "float32" else column
        out[field.shown_as or field.name] = bits
    return out


def _members(instruction: Instruction) -> Iterator[tuple[str, np.dtype[np.void]]]:
    for walk in instruction.traversals:
        yield walk.name, traversal.PARAMETERS
    for name in instruction.producers:
        yield name, sync.PRODUCER
    if instruction.watchers:
        yield "watchers", sync.WATCHERS
    for field in _plain(instruction):
        shape = (field.count,) if field.count > 1 else ()
        yield field.shown_as or field.name, np.dtype((_NUMBERS.get(field.kind, "i8"), shape))


def _plain(instruction: Instruction) -> Iterator[Field]:
    """The fields that belong to no group."""
    groups = {name for walk in instruction.traversals for name in walk.fields}
    groups |= {f"{name}_{part}" for name in instruction.producers for part in _PRODUCER_PARTS}
    for field in instruction.fields:
        if field.name not in groups and not field.name.startswith("watcher_"):
            yield field


_PRODUCER_PARTS = ("increment", "depth")
