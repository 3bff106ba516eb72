"""Executables and instructions of both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, zip_longest

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_sim.isa.codec import DecodedChunk, Operation
from darwinn_sim.isa.fields import BUNDLE_BYTES
from darwinn_sim.isa.table import INSTRUCTIONS

from darwinn_testbench.chip.cpu_operators import named_operators
from darwinn_testbench.chip.inspection import LayerFigures, layer_figures
from darwinn_testbench.difference.rows import Aspect, DifferenceRow, Value, figures_of_both, row
from darwinn_testbench.difference.side import CACHING, INFERENCE, Side

_MOST_FIELDS = 3
"""Fields of the first instruction that differs, which are named."""


def executables(a: Side, b: Side) -> Iterator[DifferenceRow]:
    """What executables there are, and what they say of themselves."""
    for part in (INFERENCE, CACHING):
        left, right = a.executables.get(part), b.executables.get(part)
        if left is None and right is None:
            continue
        if left is None or right is None:
            kinds = [None if each is None else each.type.name for each in (left, right)]
            yield row(Aspect.EXECUTABLES, "type", *kinds, part=part)
            continue
        for name, mine, others in figures_of_both(_facts(left), _facts(right)):
            yield row(Aspect.EXECUTABLES, name, mine, others, part=part)
    names = [named_operators(side.bound.on_cpu) or "none" for side in (a, b)]
    yield row(Aspect.EXECUTABLES, "operators on the CPU", *names)


def _facts(executable: Executable) -> dict[str, Value]:
    facts: dict[str, Value] = {
        "type": executable.type.name,
        "chip": executable.chip,
        "batch": executable.batch_size,
        "chunks": len(executable.instruction_bitstreams),
        "relocations": sum(len(each.field_offsets) for each in executable.instruction_bitstreams),
    }
    exchanged = [layer_figures("input", each) for each in executable.input_layers]
    exchanged += [layer_figures("output", each) for each in executable.output_layers]
    counts: Counter[str] = Counter()
    for each in exchanged:
        facts[f"{each.direction} {counts[each.direction]}"] = _said(each)
        counts[each.direction] += 1
    return facts


def _said(layer: LayerFigures) -> str:
    return str(layer).removeprefix(layer.direction).strip()


def instructions(a: Side, b: Side) -> Iterator[DifferenceRow]:
    """Counts by unit and opcode, and where the programs begin to differ.

    Raises:
        DecodeError: a program is not all instructions.
    """
    for part in (INFERENCE, CACHING):
        codes = [_opcodes(side, part) for side in (a, b)]
        if not any(codes):
            continue
        yield row(Aspect.INSTRUCTIONS, "all", *(each.total() for each in codes), part=part)
        if not all(codes):
            continue
        for title, attribute in (("unit", "unit"), ("opcode", "name")):
            counts = [_by(each, attribute) for each in codes]
            for name in sorted(counts[0].keys() | counts[1].keys()):
                mine, others = counts[0][name], counts[1][name]
                yield row(Aspect.INSTRUCTIONS, f"{title} {name}", mine, others, part=part)
        yield from _first_difference(a, b, part)


def _opcodes(side: Side, part: str) -> Counter[int]:
    counts: Counter[int] = Counter()
    for chunk in side.chunks.get(part, ()):
        counts.update(chunk.opcode.tolist())
    return counts


def _by(opcodes: Counter[int], attribute: str) -> Counter[str]:
    """Counts by an attribute of the instruction table."""
    found: Counter[str] = Counter()
    for opcode, count in opcodes.items():
        found[getattr(INSTRUCTIONS[opcode], attribute)] += count
    return found


@dataclass(frozen=True)
class _Placed:
    """An instruction: its chunk, which of the chunk's it is, and its bits."""

    number: int
    chunk: DecodedChunk
    index: int
    data: bytes

    @property
    def operation(self) -> Operation:
        return self.chunk[self.index]

    def __str__(self) -> str:
        operation = self.operation
        return f"{operation.instruction.name} at chunk {self.number}, pc {operation.pc}"


def _first_difference(a: Side, b: Side, part: str) -> Iterator[DifferenceRow]:
    """The first instruction that is not the same bits, with what of it differs."""
    left, right = (list(_instructions(side, part)) for side in (a, b))
    if not left or not right:
        return
    pairs = enumerate(zip_longest(left, right))
    different = ((k, each) for k, each in pairs if not _same(*each))
    same, ends = next(different, (len(left), (None, None)))
    yield row(Aspect.INSTRUCTIONS, "equal from the start", same, same, part=part)
    if ends != (None, None):
        texts = [None if each is None else str(each) for each in ends]
        change = _fields(*ends)
        yield row(
            Aspect.INSTRUCTIONS, "first difference", *texts, part=part, change=change, equal=False
        )


def _instructions(side: Side, part: str) -> Iterator[_Placed]:
    chunks = zip(side.chunks.get(part, ()), side.streams.get(part, ()), strict=True)
    for number, (chunk, stream) in enumerate(chunks):
        starts = [BUNDLE_BYTES * each for each in (*chunk.pc.tolist(), chunk.bundles)]
        for index, (first, end) in enumerate(pairwise(starts)):
            yield _Placed(number, chunk, index, stream[first:end])


def _same(left: _Placed | None, right: _Placed | None) -> bool:
    """Whether nothing differs; that the head of a chunk says another length, the counts tell."""
    if left is None or right is None:
        return False
    heads = left.index == right.index == 0 and left.chunk.bundles != right.chunk.bundles
    return heads or left.data == right.data


def _fields(left: _Placed | None, right: _Placed | None) -> str | None:
    """The fields of two instructions that differ, if they have the same opcode."""
    if left is None or right is None:
        return None
    mine, others = left.operation, right.operation
    if mine.instruction is not others.instruction:
        return "another instruction"
    names = [name for name, value in mine.values.items() if others.values[name] != value]
    told = [
        f"{name} {_shown(mine, name)} → {_shown(others, name)}" for name in names[:_MOST_FIELDS]
    ]
    more = [f"{len(names) - _MOST_FIELDS} more"] if len(names) > _MOST_FIELDS else []
    return ", ".join([*told, *more]) or "bits of no known field"


def _shown(operation: Operation, name: str) -> str:
    """The value of a field, floating point ones as numbers."""
    value = operation.values[name]
    kind = next(each.kind for each in operation.instruction.fields if each.name == name)
    if kind == "float32" and isinstance(value, int):
        return f"{np.uint32(value).view(np.float32):.9g}"
    return str(value)
