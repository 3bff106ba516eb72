"""What both sides need: memory, parameters, and what the DMA moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from itertools import zip_longest

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_sim.host.dma_trace import TransferKind, expected_entry
from darwinn_sim.machine.lowering import lower

from darwinn_testbench.difference.rows import (
    DIGEST,
    Aspect,
    DifferenceRow,
    Value,
    figures_of_both,
    row,
)
from darwinn_testbench.difference.side import CACHING, INFERENCE, Side
from darwinn_testbench.profile.memory import HOST, NARROW, WIDE, regions

_MEMORIES = {HOST: "host", NARROW: "narrow", WIDE: "wide"}
"""Short names of memories; narrow and wide memory are those of one tile."""


def memory(a: Side, b: Side) -> Iterator[DifferenceRow]:
    """Bytes of buffers and memories.

    Raises:
        SimulationError: a program holds what the model of the chip lacks.
    """
    for name, left, right in figures_of_both(_memory(a), _memory(b)):
        yield row(Aspect.MEMORY, name, left, right)


def _memory(side: Side) -> dict[str, Value]:
    """Bytes by place; inputs and outputs are told among the executables."""
    compiled = side.bound.compiled
    program = lower(side.streams[INFERENCE], assumptions=side.asked.assumptions)
    found: Counter[str] = Counter()
    for each in regions(compiled.inference, program, compiled.caching):
        if each.name == "free" or each.name.startswith(("input ", "output ")):
            continue
        name = "instructions" if each.name.startswith("instructions") else each.name
        found[f"{_MEMORIES[each.memory]}: {name}"] += each.size
    return dict(found)


def parameters(a: Side, b: Side) -> Iterator[DifferenceRow]:
    """Sizes of the parameters, and how many of their bytes differ."""
    for name, part in (("cached", CACHING), ("streamed", INFERENCE)):
        left, right = (
            bytes(side.executables[part].parameters) if part in side.executables else b""
            for side in (a, b)
        )
        yield row(Aspect.PARAMETERS, f"{name}, bytes", len(left), len(right))
        if left and right:
            yield _contents(name, left, right)


def _contents(name: str, left: bytes, right: bytes) -> DifferenceRow:
    """How many bytes differ, at most as many as the shorter has."""
    common = min(len(left), len(right))
    mine, others = (np.frombuffer(each, np.uint8, common) for each in (left, right))
    places = np.flatnonzero(mine != others)
    count = len(places)
    change = f"{count:,} of {common:,} bytes differ ({100 * count / common:.3g} %)"
    if count:
        change += f", from byte {int(places[0]):,} on"
    digests = (_digest(left), _digest(right))
    return row(Aspect.PARAMETERS, f"{name}, contents", *digests, change=change)


def _digest(data: bytes) -> str:
    return f"{DIGEST}{sha256(data).hexdigest()[:16]}"


def dma(a: Side, b: Side) -> Iterator[DifferenceRow]:
    """Hints and their bytes by direction, and the first hint that differs.

    An executable that one side lacks is told among the executables.
    """
    for part in (INFERENCE, CACHING):
        left, right = a.executables.get(part), b.executables.get(part)
        if left is None or right is None:
            continue
        for name, mine, others in figures_of_both(_moved(left), _moved(right)):
            yield row(Aspect.DMA, name, mine or 0, others or 0, part=part)
        lists = [_hints(each) for each in (left, right)]
        for number, (mine, others) in enumerate(zip_longest(*lists)):
            if mine != others:
                yield row(Aspect.DMA, f"first difference, hint {number}", mine, others, part=part)
                break


def _hints(executable: Executable) -> list[str]:
    return [expected_entry(hint).text() for hint in executable.dma_hints.hints]


def _moved(executable: Executable) -> dict[str, Value]:
    """Hints, and bytes by what they move and which way."""
    entries = [expected_entry(hint) for hint in executable.dma_hints.hints]
    found: Counter[str] = Counter({"hints": len(entries)})
    for each in entries:
        if each.kind is TransferKind.INSTRUCTION:
            chunks = executable.instruction_bitstreams
            size = len(chunks[each.number].bitstream) if each.number < len(chunks) else 0
        else:
            size = each.size
        if size:
            found[f"bytes {each.direction.value}"] += size
            found[f"{each.kind.value} {each.direction.value}"] += size
    certain = executable.dma_hints.fully_deterministic
    return {**found, "fully deterministic": "yes" if certain else "no"}
