"""How tables of one dataclass that share one vtable are verified and read."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any

from darwinn_formats.flatbuffer.encoding import U16, U32, UINT8, WIDEST
from darwinn_formats.flatbuffer.schema import Reference, Scalar, Schema, Union, UnionVector


@dataclass(frozen=True, slots=True)
class Stored:
    """A field that a vtable stores: byte offset and size within the table."""

    offset: int
    size: int
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Where a vtable puts the fields of a dataclass.

    ``place`` is the argument for the file offset of the table;
    ``aligned`` are the positions, modulo 8, at which every field of ``stored`` is aligned;
    ``scalars`` unpacks all stored numbers at once into the arguments ``scalar_arguments``;
    ``enumerations`` are (index in ``scalars``, argument, member by number, offset in the table,
    name);
    ``references`` are (argument, offset of the offset, type, name); ``unions`` are (argument,
    offset of the tag, offset of the offset, type, name), 0 for an offset that is not stored.
    """

    size: int
    place: int | None
    stored: tuple[Stored, ...]
    aligned: frozenset[int]
    defaults: tuple[Any, ...]
    scalars: struct.Struct
    scalar_arguments: tuple[int, ...]
    enumerations: tuple[tuple[int, int, Mapping[int, IntEnum], int, str], ...]
    references: tuple[tuple[int, int, Reference, str], ...]
    unions: tuple[tuple[int, int, int, Union | UnionVector, str], ...]


@lru_cache(maxsize=1024)
def plan_of(schema: Schema, vtable: bytes) -> Plan | str:
    """The plan for a dataclass and a vtable up to its last declared slot, or what is wrong."""
    entries = [entry for (entry,) in U16.iter_unpack(vtable)]
    size, offsets = entries[1], entries[2:]
    missing = [
        member.name
        for member in schema.members
        if member.field.required and not _slot_offset(offsets, member.slot)
    ]
    if missing:
        return f"the required field {missing[0]} is absent"
    stored = sorted(_stored(schema, offsets), key=lambda entry: entry.offset)
    end = U32.size
    for entry in stored:
        if entry.offset < end:
            return f"field {entry.name} at {entry.offset} overlaps what is before it"
        end = entry.offset + entry.size
    # Writers share a vtable between tables of equal offsets, whatever their sizes are: the Python
    # builder of flatbuffers does. So the size in a vtable is no bound for the fields.
    return _make_plan(schema, offsets, max(size, end), stored)


def _slot_offset(offsets: Sequence[int], slot: int) -> int:
    return offsets[slot] if slot < len(offsets) else 0


def _stored(schema: Schema, offsets: Sequence[int]) -> list[Stored]:
    stored = []
    for member in schema.members:
        kind = member.field.kind
        sizes = [kind.primitive.size if isinstance(kind, Scalar) else U32.size]
        if isinstance(kind, Union):
            sizes = [UINT8.size, U32.size]
        elif isinstance(kind, UnionVector):
            sizes = [U32.size, U32.size]
        for slot, size in enumerate(sizes, member.slot):
            offset = _slot_offset(offsets, slot)
            if offset:
                stored.append(Stored(offset, size, member.name))
    return stored


def _make_plan(schema: Schema, offsets: Sequence[int], size: int, stored: Sequence[Stored]) -> Plan:
    scalars, enumerations, references, unions = [], [], [], []
    for member in schema.members:
        kind, offset = member.field.kind, _slot_offset(offsets, member.slot)
        if isinstance(kind, Union | UnionVector):
            value = _slot_offset(offsets, member.slot + 1)
            if offset or value:
                unions.append((member.argument, offset, value, kind, member.name))
        elif not offset:
            continue
        elif isinstance(kind, Scalar):
            scalars.append((offset, kind, member))
        else:
            references.append((member.argument, offset, kind, member.name))
    scalars.sort(key=lambda entry: entry[0])
    code, end = "<", 0
    for index, (offset, kind, member) in enumerate(scalars):
        code += "x" * (offset - end) + kind.primitive.code
        end = offset + kind.primitive.size
        if kind.enum is not None:
            known: Mapping[int, IntEnum] = {int(entry): entry for entry in kind.enum}
            enumerations.append((index, member.argument, known, offset, member.name))
    return Plan(
        size,
        schema.place,
        tuple(stored),
        frozenset(
            position
            for position in range(WIDEST)
            if all((position + entry.offset) % entry.size == 0 for entry in stored)
        ),
        schema.defaults,
        struct.Struct(code),
        tuple(member.argument for _, _, member in scalars),
        tuple(enumerations),
        tuple(references),
        tuple(unions),
    )
