"""The values that the fields of a program's instructions hold, and how well each is understood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from darwinn_sim.isa import grading
from darwinn_sim.isa.codec import DecodedChunk, DecodeError, decode
from darwinn_sim.isa.fields import Grade
from darwinn_sim.isa.grading import ValueUse
from darwinn_sim.isa.table import INSTRUCTIONS
from numpy.typing import NDArray

KNOWN, ASSUMED, REFUSED = GRADES = tuple(str(grade) for grade in Grade)

_MOST_VALUES = 24
"""Values of a field that are listed; of fields with more (addresses, sizes) the bounds are told."""


@dataclass(frozen=True, kw_only=True)
class FieldValues:
    """The values of one grade that a field of one kind of instruction held.

    ``values`` are the distinct ones in order, empty where there are too many to list; they lie
    from ``lowest`` to ``highest``. ``instructions`` held one, in ``files`` files.
    """

    instruction: str
    field: str
    grade: str
    values: tuple[int, ...]
    lowest: int
    highest: int
    instructions: int
    files: int = 1

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from the others of a survey."""
        return (self.instruction, self.field, self.grade)

    @property
    def values_text(self) -> str:
        """The values for people."""
        if self.values:
            return ", ".join(map(str, self.values))
        return f"{self.lowest} to {self.highest}"

    def __str__(self) -> str:
        return f"{self.instruction}.{self.field} = {self.values_text}"


def field_values(chunks: Iterable[bytes]) -> tuple[FieldValues, ...]:
    """The values in all fields of the instructions of ``chunks``, as those of one file.

    A chunk that does not decode gives none.
    """
    return of_one_file(map(_of_chunk, chunks))


def uses_of(chunks: Iterable[bytes]) -> list[ValueUse]:
    """The assumed and refused values in ``chunks``; one that does not decode has none."""
    return grading.uses([program for program in map(_decoded, chunks) if program is not None])


def of_one_file(parts: Iterable[Iterable[FieldValues]]) -> tuple[FieldValues, ...]:
    """The values of the parts of a file as those of the file."""
    return tuple(replace(each, files=1) for each in _merged(parts))


def of_files(files: Iterable[Iterable[FieldValues]]) -> tuple[FieldValues, ...]:
    """The values of several files as one list: by grade, the least understood first, then name."""
    order = GRADES[::-1]
    return tuple(
        sorted(
            _merged(files),
            key=lambda each: (order.index(each.grade), each.instruction, each.field),
        )
    )


def _merged(parts: Iterable[Iterable[FieldValues]]) -> Iterable[FieldValues]:
    found: dict[tuple[str, str, str], FieldValues] = {}
    for each in chain.from_iterable(parts):
        found[each.key] = _together(found[each.key], each) if each.key in found else each
    return found.values()


def _decoded(chunk: bytes) -> DecodedChunk | None:
    try:
        return decode(chunk)
    except DecodeError:
        return None


def _of_chunk(chunk: bytes) -> Iterator[FieldValues]:
    program = _decoded(chunk)
    if program is None:
        return
    for opcode, columns in program.columns.items():
        instruction = INSTRUCTIONS[opcode]
        grades = {
            field.name: np.full(columns[field.name].shape, KNOWN, "U8")
            for field in instruction.fields
        }
        for field, entry, where in grading.graded(instruction, columns):
            grades[field.name][where] = entry.grade
        for field in instruction.fields:
            column, of_field = columns[field.name], grades[field.name]
            for grade in GRADES:
                held = of_field == grade
                if held.any():
                    yield _values(instruction.name, field.name, grade, column, held)


def _values(
    instruction: str,
    field: str,
    grade: str,
    column: NDArray[np.int64],
    held: NDArray[np.bool_],
) -> FieldValues:
    distinct = np.unique(column[held])
    return FieldValues(
        instruction=instruction,
        field=field,
        grade=grade,
        values=tuple(distinct.tolist()) if len(distinct) <= _MOST_VALUES else (),
        lowest=int(distinct[0]),
        highest=int(distinct[-1]),
        instructions=int(held.reshape(len(held), -1).any(axis=1).sum()),
    )


def _together(one: FieldValues, other: FieldValues) -> FieldValues:
    values = tuple(sorted({*one.values, *other.values}))
    listed = one.values and other.values and len(values) <= _MOST_VALUES
    return replace(
        one,
        values=values if listed else (),
        lowest=min(one.lowest, other.lowest),
        highest=max(one.highest, other.highest),
        instructions=one.instructions + other.instructions,
        files=one.files + other.files,
    )
