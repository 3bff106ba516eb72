"""How sure it is what values of fields do (known, assumed or refused), and which a program holds.

The grades stand in the instruction table (``grades.py``); this finds the values of a decoded
program that are not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.isa.codec import Columns, DecodedChunk
from darwinn_sim.isa.fields import Field, Grade, Graded, Instruction
from darwinn_sim.isa.table import INSTRUCTIONS


@dataclass(frozen=True, slots=True)
class ValueUse:
    """An assumed or refused value of a field that a program holds.

    ``count`` instructions hold it; the first stands at bundle ``pc`` of chunk ``chunk``. ``rule``
    says what an assumed value is executed as, or why a value is refused; ``rtl`` whether the
    SystemVerilog does the same.
    """

    instruction: str
    field: str
    value: int
    grade: Grade
    rule: str
    count: int
    chunk: int
    pc: int
    opcode: int
    rtl: bool = False


@dataclass(frozen=True, slots=True)
class Assumption:
    """An assumed value that a program holds: what its results rest on without evidence.

    ``count`` instructions hold it, the first at bundle ``pc`` of chunk ``chunk``; ``rule`` is what
    is executed, ``rtl`` whether the SystemVerilog does the same.
    """

    instruction: str
    field: str
    value: int
    rule: str
    count: int
    chunk: int
    pc: int
    rtl: bool

    @property
    def text(self) -> str:
        """The assumption in one line."""
        noun = "instruction" if self.count == 1 else "instructions"
        return (
            f"{self.instruction}.{self.field} {self.value}: {self.rule} "
            f"({self.count:,} {noun}; first chunk {self.chunk}, pc {self.pc})"
        )


def uses(programs: Sequence[DecodedChunk], opcodes: Iterable[int] | None = None) -> list[ValueUse]:
    """Assumed and refused values of the chunks of a program, in the order of their first places.

    Of ``opcodes`` alone, if they are given.
    """
    found: dict[tuple[int, str, int, str], ValueUse] = {}
    wanted = None if opcodes is None else set(opcodes)
    for chunk, program in enumerate(programs):
        for opcode, columns in program.columns.items():
            if wanted is not None and opcode not in wanted:
                continue
            instruction = INSTRUCTIONS[opcode]
            pcs: NDArray[np.int64] | None = None
            for field, entry, where in graded(instruction, columns):
                if pcs is None:
                    pcs = program.pc[program.opcode == opcode]
                for use in _values(instruction, field, entry, where, columns[field.name], pcs):
                    key = (opcode, use.field, use.value, use.rule)
                    before = found.get(key)
                    found[key] = (
                        replace(use, chunk=chunk)
                        if before is None
                        else replace(before, count=before.count + use.count)
                    )
    return sorted(found.values(), key=lambda use: (use.chunk, use.pc, use.field))


def marks(program: DecodedChunk) -> Iterator[ValueUse]:
    """Every assumed and refused value of a chunk by itself: one of each instruction that has it."""
    for opcode, columns in program.columns.items():
        instruction = INSTRUCTIONS[opcode]
        pcs = program.pc[program.opcode == opcode]
        for field, entry, where in graded(instruction, columns):
            shape = (len(pcs), -1)
            for row in np.flatnonzero(where.reshape(shape).any(axis=1)):
                at = slice(row, row + 1)
                column = columns[field.name][at]
                yield from _values(instruction, field, entry, where[at], column, pcs[at])


def assumptions(found: Iterable[ValueUse]) -> tuple[Assumption, ...]:
    """The assumed ones of ``found``."""
    return tuple(
        Assumption(
            use.instruction,
            use.field,
            use.value,
            use.rule,
            use.count,
            use.chunk,
            use.pc,
            use.rtl,
        )
        for use in found
        if use.grade is Grade.ASSUMED
    )


def merged(several: Iterable[Iterable[Assumption]]) -> tuple[Assumption, ...]:
    """The assumptions of several programs, each once, with the places of the first program."""
    result: dict[tuple[str, str, int, str], Assumption] = {}
    for each in several:
        for item in each:
            key = (item.instruction, item.field, item.value, item.rule)
            before = result.get(key)
            result[key] = (
                item if before is None else replace(before, count=before.count + item.count)
            )
    return tuple(result.values())


def graded(
    instruction: Instruction, columns: Columns
) -> Iterator[tuple[Field, Graded, NDArray[np.bool_]]]:
    """Entries of the fields' grades that apply, each with where its values stand."""
    for field in instruction.graded_fields:
        for entry, where in _entries(field, columns):
            if where.any():
                yield field, entry, where


def _entries(field: Field, columns: Columns) -> Iterator[tuple[Graded, NDArray[np.bool_]]]:
    """Each entry of a field's grades, with where it is the first that names the value."""
    column = columns[field.name]
    taken: NDArray[np.bool_] | None = None
    for entry in field.grades:
        where = _matches(entry, column)
        if taken is not None:
            where &= ~taken
        if where.any():
            for name, values in entry.given:
                where &= _like(_isin(_column(columns, name), values), column)
        yield entry, where
        taken = where if taken is None else taken | where


def _matches(entry: Graded, column: NDArray[np.int64]) -> NDArray[np.bool_]:
    if entry.mask:
        bits: NDArray[np.bool_] = (column & entry.mask) != 0
        return bits
    found = _isin(column, entry.values)
    return ~found if entry.others else found


def _isin(column: NDArray[np.int64], values: Sequence[int]) -> NDArray[np.bool_]:
    if isinstance(values, range):
        return (column >= values.start) & (column < values.stop)
    if len(values) == 1:
        equal: NDArray[np.bool_] = column == values[0]
        return equal
    return np.isin(column, values)


def _column(columns: Columns, name: str) -> NDArray[np.int64]:
    """The column ``name``, or one repetition of it, ``name[k]``."""
    field, bracket, index = name.partition("[")
    return columns[field][:, int(index[:-1])] if bracket else columns[field]


def _like(where: NDArray[np.bool_], column: NDArray[np.int64]) -> NDArray[np.bool_]:
    """``where`` for each repetition of a field whose values are ``column``."""
    return where[:, None] if where.ndim < column.ndim else where


def _values(
    instruction: Instruction,
    field: Field,
    entry: Graded,
    where: NDArray[np.bool_],
    column: NDArray[np.int64],
    pcs: NDArray[np.int64],
) -> Iterator[ValueUse]:
    rows = np.flatnonzero(where) if where.ndim == 1 else np.nonzero(where)[0]
    values = column[where]
    for value in np.unique(values):
        holders = np.unique(rows[values == value])
        yield ValueUse(
            instruction.name,
            field.name,
            int(value),
            entry.grade,
            entry.reason,
            len(holders),
            0,
            int(pcs[holders[0]]),
            instruction.opcode,
            entry.rtl,
        )
