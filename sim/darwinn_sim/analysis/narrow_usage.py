"""How much narrow memory a program uses: the highest byte that one of its instructions can touch.

The compiler writes this figure into an executable (``used_narrow_memory_bytes_per_tile``); here it
follows from the address generators of the decoded program alone, without running it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.units import tensor_cells


def used_narrow_bytes(program: LoweredProgram) -> int:
    """Bytes of narrow memory per tile that ``program`` uses, counted from address 0.

    A base address that comes from a register is not known before a run: the address that the
    instruction itself holds counts.
    """
    return max(by_access(program).values(), default=0)


def by_access(program: LoweredProgram) -> dict[str, int]:
    """The byte after the highest byte that each kind of access touches; no entry: none does."""
    found: dict[str, int] = {}
    for access, end in (*_words(program), *_tensor_bytes(program)):
        found[access] = max(found.get(access, 0), end)
    return found


def _words(program: LoweredProgram) -> Iterator[tuple[str, int]]:
    """Ends of the traversals that walk whole words."""
    tables = program.tables
    to_narrow = tables.wide_to_narrow[tables.wide_to_narrow["scale_bias"] == 0]
    mesh = tables.mesh
    writing = mesh[(mesh["narrow_write"]["off"] == 0) | (mesh["immediate_valid"] != 0)]
    for access, walks in (
        ("wide-to-narrow write", to_narrow["narrow_write"]),
        ("narrow-to-wide read", tables.narrow_to_wide["narrow_read"]),
        ("mesh read", mesh["narrow_read"][mesh["narrow_read"]["off"] == 0]),
        ("mesh write", writing["narrow_write"]),
    ):
        for walk in walks:
            if walk["loops"]:
                yield access, WORD_BYTES * (highest_address(walk) + 1)


def _tensor_bytes(program: LoweredProgram) -> Iterator[tuple[str, int]]:
    """Ends of what each tensor instruction reads, a byte for each product or lane, and writes."""
    plan = program.tables.tensor_plan
    for instruction, place in zip(program.tables.tensor, plan.place, strict=True):
        if instruction["opcode"] == _NONE:
            continue
        first, count = int(place["iteration"]), int(place["iterations"])
        if count and instruction["opcode"] in _READS_NARROW:
            width = int(instruction["products"]) * (2 if instruction["activation_16bit"] else 1)
            if instruction["opcode"] == tensor_cells.INTERPOLATE:
                width = 1 + int(max(instruction["block_lanes"], instruction["last_block_lanes"]))
            yield "tensor read", int(plan.operand[first : first + count].max()) + width
        first, count = int(place["write"]), int(place["writes"])
        if count:
            highest = int(plan.write_address[first : first + count].max())
            yield "tensor write", highest + WORD_BYTES


_NONE = 0
"""Operation of the empty record in a table of a program without tensor instructions."""

_READS_NARROW = (tensor_cells.MAC, tensor_cells.INTERPOLATE)


def highest_address(walk: NDArray[np.void]) -> int:
    """The highest address of a traversal (a record of ``traversal.Parameters``), without prologue.

    A prologue takes in words that are dropped: what it addresses is overwritten later, and the
    compiler does not count it.
    """
    loops = int(walk["loops"])
    limits = [int(limit) for limit in walk["limit"][:loops]]
    if walk["alternate_loop"]:
        target = int(walk["alternate_target"])
        limits[target] = max(limits[target], int(walk["alternate_limit"]))
    steps = (int(step) for step in walk["step"][:loops])
    highest = int(walk["base"])
    highest += sum(max(0, step * limit) for step, limit in zip(steps, limits, strict=True))
    if walk["double_start"] or _blocks(limits, int(walk["double_loop"])) > 1:
        highest += max(0, int(walk["double_offset"]))
    return highest


def _blocks(limits: list[int], depth: int) -> int:
    """Blocks of a depth in a whole traversal."""
    return math.prod(limit + 1 for limit in limits[depth:])
