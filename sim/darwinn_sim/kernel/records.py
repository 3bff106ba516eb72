"""Records of instructions, as kernels read them: derived from the instruction table.

A record has the program counter, ``pc``, and every field of its instruction by its name. Fields of
an address generator are one member of its name (``traversal.Parameters``), as are those of a
producer (``sync.Producer``) and those of all watchers (``watchers``, ``sync.Watchers``). Where a
field means something else than in other instructions, its member is called as listings show it.

The classes stand in ``kernel/instructions.py``, so that a checker knows their fields; it is
written by ``python -m darwinn_sim.kernel.records``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.isa.codec import Columns
from darwinn_sim.isa.fields import Field, Instruction
from darwinn_sim.isa.table import BY_NAME, TENSOR_NAMES
from darwinn_sim.kernel import sync, traversal

SHARED = {
    "Tensor": TENSOR_NAMES,
    "RingConsumer": ("RingConsumerA", "RingConsumerB"),
    "Mesh": ("MeshSouth", "MeshWest", "MeshNorth", "MeshEast"),
}
"""Records of several instructions: they have what any of them has."""

_OWN = (
    *("Scalar", "Branch", "Loop", "ScalarFence", "PopInput", "RingInfeed", "RingOutfeed"),
    *("CoefficientTable", "RingProducer", "NarrowToWide", "WideToNarrow", "TileFence"),
)

_HEADER = '''\
"""Records of the instructions that have any.

Written by `python -m darwinn_sim.kernel.records`; do not edit.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel import sync, traversal
from darwinn_sim.kernel.structure import Numbers, Record
'''


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


def source() -> str:
    """The classes of all records, as the text of a module."""
    names = {**SHARED, **{name: (name,) for name in _OWN}}
    return _HEADER + "".join(
        _class_text(name, [BY_NAME[each] for each in instructions])
        for name, instructions in sorted(names.items())
    )


def _class_text(name: str, instructions: Sequence[Instruction]) -> str:
    members = dict(member for entry in instructions for member in _members(entry))
    fields = "".join(f"    {member}: {declared}\n" for member, declared in members.items())
    doc = " or ".join(entry.name for entry in instructions)
    return f'\n\nclass {name}(Record):\n    """{doc}."""\n\n    pc: int\n{fields}'


def _members(instruction: Instruction) -> Iterator[tuple[str, str]]:
    """Name and declaration of each member."""
    for walk in instruction.traversals:
        yield walk.name, "traversal.Parameters"
    for name in instruction.producers:
        yield name, "sync.Producer"
    if instruction.watchers:
        yield "watchers", "sync.Watchers"
    for field in _plain(instruction):
        real = field.kind == "float32"
        declared = "np.float32" if real else "int"
        if field.count > 1:
            array = "NDArray[np.float32]" if real else "Numbers"
            declared = f"Annotated[{array}, {field.count}]"
        yield field.shown_as or field.name, declared


def _plain(instruction: Instruction) -> Iterator[Field]:
    """The fields that belong to no group."""
    groups = {name for walk in instruction.traversals for name in walk.fields}
    groups |= {f"{name}_{part}" for name in instruction.producers for part in _PRODUCER_PARTS}
    for field in instruction.fields:
        if field.name not in groups and not field.name.startswith("watcher_"):
            yield field


_PRODUCER_PARTS = ("increment", "depth")

if __name__ == "__main__":
    sys.stdout.write(source())
