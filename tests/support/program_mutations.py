"""Instruction streams, cut into instructions and changed field by field, by the instruction table.

A field is reached by its bits, so that everything else stays as it was, also bits of no field.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

from darwinn_sim.isa.codec import decode
from darwinn_sim.isa.fields import BUNDLE_BYTES, Field, Instruction
from darwinn_sim.isa.table import INSTRUCTIONS

_SYNC = ("fence", "increment", "watch", "producer", "flag", "depth", "count", "mask")
"""Words in the names of fields by which units wait for each other."""


def instructions_of(stream: bytes) -> list[bytes]:
    """The bytes of each instruction; DecodeError as :func:`decode`."""
    starts = [BUNDLE_BYTES * int(pc) for pc in decode(stream).pc]
    return [stream[a:b] for a, b in pairwise([*starts, len(stream)])]


def entry_of(instruction: bytes) -> Instruction:
    """What the table says of an instruction."""
    return INSTRUCTIONS[int.from_bytes(instruction[:2], "little") >> 6 & 0x3F]


def value_of(instruction: bytes, field: Field, index: int = 0) -> int:
    """What a field holds; of a repeated one the ``index``-th."""
    raw = int.from_bytes(instruction, "little") >> field.offsets()[index]
    value = raw & (1 << field.width) - 1
    return value - (1 << field.width) if field.signed and value >> field.width - 1 else value


def with_value(instruction: bytes, field: Field, value: int, index: int = 0) -> bytes:
    """The instruction with another value in a field; of a wide value the bits that fit."""
    at, mask = field.offsets()[index], (1 << field.width) - 1
    raw = int.from_bytes(instruction, "little")
    raw = raw & ~(mask << at) | (value & mask) << at
    return raw.to_bytes(len(instruction), "little")


def other_value(
    draw: Random, instructions: Sequence[bytes], number: int
) -> tuple[Field, int, int] | None:
    """A field of an instruction, which repetition of it, and another value that it may hold.

    Half of the fields are those by which units wait for each other. The value is that of the same
    field elsewhere, a neighbour, one bit away, a bound, or anything.
    """
    entry = entry_of(instructions[number])
    fields = [field for field in entry.fields if field.name != "opcode"]
    sync = [field for field in fields if any(word in field.name for word in _SYNC)]
    if not fields:
        return None
    field = draw.choice(sync if sync and draw.random() < 0.5 else fields)
    index = draw.randrange(field.count)
    old = value_of(instructions[number], field, index)
    alike = [each for each in instructions if entry_of(each) is entry]
    lowest, highest = field.range
    value = draw.choice(
        (
            value_of(draw.choice(alike), field, index),
            old + draw.choice((-1, 1)),
            old ^ 1 << draw.randrange(field.width),
            draw.choice((lowest, highest, 0, 1)),
            draw.randint(lowest, highest),
        )
    )
    return (field, index, value) if lowest <= value <= highest and value != old else None
