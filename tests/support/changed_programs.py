"""Programs of the sample compiler with a field of an instruction changed, by a seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from darwinn_formats.darwinn import Executable
from darwinn_sim.isa.codec import decode, encode
from darwinn_sim.isa.fields import Field
from darwinn_sim.isa.table import INSTRUCTIONS


@dataclass(frozen=True)
class Changed:
    """An executable, and what was changed in it."""

    executable: Executable
    what: str


def changed(executable: Executable, random: Random) -> Changed:
    """``executable`` with one field of one instruction changed: by one, by a bit, or at random.

    Instructions of all kinds are as likely as each other. Half of the changes are to another value
    that the field has in the same program.
    """
    number = random.randrange(len(executable.instruction_bitstreams))
    part = executable.instruction_bitstreams[number]
    program = decode(bytes(part.bitstream))
    while True:
        opcode = random.choice(sorted(program.columns))
        place = int(random.choice((program.opcode == opcode).nonzero()[0]))
        instruction = INSTRUCTIONS[opcode]
        field = random.choice(instruction.fields)
        column = program.columns[instruction.opcode][field.name]
        column = column.reshape(len(column), field.count)
        row, item = int(program.row[place]), random.randrange(field.count)
        old = int(column[row, item])
        new = _value(random, field, old, [int(each) for each in column.reshape(-1)])
        if field.name != "opcode" and new != old and field.range[0] <= new <= field.range[1]:
            break
    column[row, item] = new
    what = f"{instruction.name} at chunk {number}, pc {int(program.pc[place])}: "
    what += f"{field.name}[{item}] {old} -> {new}"
    parts = list(executable.instruction_bitstreams)
    parts[number] = replace(part, bitstream=encode(program))
    return Changed(replace(executable, instruction_bitstreams=tuple(parts)), what)


def _value(random: Random, field: Field, old: int, others: list[int]) -> int:
    kind = random.random()
    if kind < 0.5:
        return random.choice(others)
    if kind < 0.7:
        return old + random.choice((-1, 1))
    if kind < 0.9:
        return old ^ 1 << random.randrange(field.width)
    return random.randint(*field.range)
