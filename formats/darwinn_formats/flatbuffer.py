"""One engine for every flatbuffer format: verify, read and write, driven by dataclasses.

A format declares its tables as frozen dataclasses, and the dataclass fields carry the flatbuffer
types::

    @dataclass(frozen=True, slots=True)
    class FieldOffset:
        meta: Meta = table(Meta, required=True)
        offset_bit: int = int32()

Fields take the slots of the vtable in order (a union takes two); a table of which only a subset
is declared names the slot of a field and is marked ``open_table``. Nested flatbuffers are fields
like any other, so that one call verifies and reads a whole tree of buffers.

``verify`` checks everything that ``read`` follows: every offset, vtable, vector length, string,
union tag, enumeration value, alignment, the depth, and by a budget the total work and memory,
so that vectors that alias each other cannot make a small file large. The binary encoding is that
of the FlatBuffers internals document (https://flatbuffers.dev/internals/).
"""

from __future__ import annotations

import dataclasses
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

import flatbuffers
import numpy as np

from darwinn_formats.errors import FormatError

T = TypeVar("T")

MAXIMUM_SIZE = 2**31 - 1
"""Bytes of a flatbuffer at most: offsets are 32 bits and the vtable offset is signed."""
MAXIMUM_DEPTH = 64
"""Tables within tables at most, nested flatbuffers included."""
STRUCTURE_SLACK = 64 * 1024
MEMORY_SLACK = 48 * 1024 * 1024

_IDENTIFIER_SIZE = 4
_WIDEST = 8
_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_VTABLE_HEADER = struct.Struct("<HH")


class Budget:
    """What one file may cost: shared by all flatbuffers within it.

    ``structure`` bounds the work: bytes of tables, vectors and strings that are visited. In a
    file without aliasing they are disjoint, so that twice the file's size is never reached.
    ``memory`` bounds the objects that are made, in bytes, by an estimate that errs high; with
    the file itself and a copy of it a load stays within 64 MiB plus twice the file's size.
    """

    __slots__ = ("memory", "structure")

    def __init__(self, file_size: int) -> None:
        self.structure = 2 * file_size + STRUCTURE_SLACK
        self.memory = file_size + MEMORY_SLACK


# --- fields ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Primitive:
    """A number as flatbuffers store it: ``code`` as in the struct module, little-endian."""

    name: str
    code: str

    @property
    def size(self) -> int:
        """Bytes, which is also the alignment."""
        return struct.calcsize(f"<{self.code}")


BOOL = Primitive("bool", "?")
INT8 = Primitive("byte", "b")
UINT8 = Primitive("ubyte", "B")
INT16 = Primitive("short", "h")
UINT16 = Primitive("ushort", "H")
INT32 = Primitive("int", "i")
UINT32 = Primitive("uint", "I")
INT64 = Primitive("long", "q")
UINT64 = Primitive("ulong", "Q")
FLOAT32 = Primitive("float", "f")
FLOAT64 = Primitive("double", "d")

Absent = Any
"""Value of a field that a table does not store."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number, a truth value or an enumeration, stored in the table."""

    primitive: Primitive
    enum: type[IntEnum] | None = None


class Reference(ABC):
    """A field of which the table stores the offset."""

    @abstractmethod
    def verify(self, view: View, position: int, depth: int) -> None:
        """Check what is at the byte ``position`` of the view; raise FormatError."""

    @abstractmethod
    def read(self, view: View, position: int) -> Any:
        """Value at the byte ``position`` of a verified view."""

    @abstractmethod
    def write(self, builder: flatbuffers.Builder, value: Any) -> int:
        """Append ``value`` and return its offset in the builder; raise FormatError."""


@dataclass(frozen=True, slots=True)
class _Field:
    """What the metadata of a dataclass field says about it."""

    kind: Scalar | Reference | Union
    absent: Absent
    slot: int | None
    required: bool


_FILE_OFFSET = object()


def _field(
    kind: Scalar | Reference | Union, absent: Absent, slot: int | None, required: bool = False
) -> Any:
    metadata = {"flatbuffer": _Field(kind, absent, slot, required)}
    if required:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=absent, metadata=metadata)


def file_offset() -> Any:
    """Byte offset of the table in its file, for error messages: 0 for a table that was not read.

    It takes no slot, is not written, and plays no part in comparisons.
    """
    return dataclasses.field(
        default=0, compare=False, repr=False, metadata={"flatbuffer": _FILE_OFFSET}
    )


def boolean(default: bool = False, *, slot: int | None = None) -> Any:
    """A truth value."""
    return _field(Scalar(BOOL), default, slot)


def int8(default: int = 0, *, slot: int | None = None) -> Any:
    """A signed 8-bit integer."""
    return _field(Scalar(INT8), default, slot)


def uint8(default: int = 0, *, slot: int | None = None) -> Any:
    """An unsigned 8-bit integer."""
    return _field(Scalar(UINT8), default, slot)


def int32(default: int = 0, *, slot: int | None = None) -> Any:
    """A signed 32-bit integer."""
    return _field(Scalar(INT32), default, slot)


def uint32(default: int = 0, *, slot: int | None = None) -> Any:
    """An unsigned 32-bit integer."""
    return _field(Scalar(UINT32), default, slot)


def int64(default: int = 0, *, slot: int | None = None) -> Any:
    """A signed 64-bit integer."""
    return _field(Scalar(INT64), default, slot)


def uint64(default: int = 0, *, slot: int | None = None) -> Any:
    """An unsigned 64-bit integer."""
    return _field(Scalar(UINT64), default, slot)


def float32(default: float = 0.0, *, slot: int | None = None) -> Any:
    """A 32-bit float; NaN and infinity are values like any other."""
    return _field(Scalar(FLOAT32), default, slot)


def float64(default: float = 0.0, *, slot: int | None = None) -> Any:
    """A 64-bit float; NaN and infinity are values like any other."""
    return _field(Scalar(FLOAT64), default, slot)


def enumeration(default: IntEnum, storage: Primitive = INT16, *, slot: int | None = None) -> Any:
    """A member of the enumeration of ``default``; any other number is an error."""
    return _field(Scalar(storage, type(default)), default, slot)


def string(*, optional: bool = False, slot: int | None = None) -> Any:
    """UTF-8 text; absent text is None if optional, otherwise the empty text."""
    return _field(_String(), None if optional else "", slot)


def byte_vector(*, alignment: int = 1, slot: int | None = None) -> Any:
    """A vector of bytes as ``bytes``; ``alignment`` in bytes holds for writing."""
    return _field(_Bytes(alignment), b"", slot)


def byte_view(*, alignment: int = 1, slot: int | None = None) -> Any:
    """A vector of bytes as a read-only ``memoryview`` of the file: nothing is copied."""
    return _field(_ByteView(alignment), b"", slot)


def byte_span(*, slot: int | None = None) -> Any:
    """A vector of bytes as a ``Span``: nothing is copied, and its place in the file is known."""
    return _field(_ByteSpan(), None, slot)


def vector(element: Primitive, *, slot: int | None = None) -> Any:
    """A vector of numbers, as a tuple."""
    return _field(_Numbers(element), (), slot)


def struct_vector(element: type[Any], *, slot: int | None = None) -> Any:
    """A vector of structs, as a tuple; ``element`` is a dataclass of numbers only."""
    return _field(_Structs(element), (), slot)


def table(
    target: type[Any], *, required: bool = False, absent: Absent = None, slot: int | None = None
) -> Any:
    """A table; an absent one reads as ``absent``, or is an error if ``required``."""
    return _field(_Table(target), absent, slot, required)


def table_vector(target: type[Any], *, slot: int | None = None) -> Any:
    """A vector of tables, as a tuple."""
    return _field(_References(_Table(target)), (), slot)


def string_vector(*, slot: int | None = None) -> Any:
    """A vector of UTF-8 texts, as a tuple."""
    return _field(_References(_String()), (), slot)


def nested(target: Callable[[], type[Any]], *, slot: int | None = None) -> Any:
    """A whole flatbuffer in a vector of bytes: its root table, or None."""
    return _field(_Nested(target, in_string=False), None, slot)


def nested_string_vector(target: Callable[[], type[Any]], *, slot: int | None = None) -> Any:
    """A vector of strings that each hold a whole flatbuffer, as a tuple of root tables."""
    return _field(_References(_Nested(target, in_string=True)), (), slot)


def union(
    members: Mapping[int, type[Any]],
    *,
    other: Mapping[int, str] | None = None,
    slot: int | None = None,
) -> Any:
    """One of several tables, by tag, or None; it takes two slots, of which ``slot`` is the first.

    Tags of ``other`` are known by name only: their tables read as ``OpaqueTable``.
    """
    return _field(Union(members, other or {}), None, slot)


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of a file with the offset at which they start; equal when the bytes are equal."""

    data: memoryview
    offset: int = dataclasses.field(default=0, compare=False)

    def __len__(self) -> int:
        return len(self.data)


@dataclass(frozen=True, slots=True)
class OpaqueTable:
    """A member of a union that the declared subset of the schema knows by name only."""

    tag: int
    name: str


def open_table(cls: type[T]) -> type[T]:
    """Mark a dataclass that declares a subset of its table: further fields are passed over."""
    _OPEN_TABLES.add(cls)
    return cls


def file_identifier(identifier: bytes) -> Callable[[type[T]], type[T]]:
    """Give a root table the four bytes that follow the root offset in its files."""

    def mark(cls: type[T]) -> type[T]:
        _IDENTIFIERS[cls] = identifier
        return cls

    return mark


@dataclass(frozen=True, slots=True)
class _AnyTable:
    """A table of which nothing is read."""


_OPEN_TABLES: set[type[Any]] = {_AnyTable}
_IDENTIFIERS: dict[type[Any], bytes] = {}


# --- schema of one dataclass ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Member:
    """A dataclass field as the engine uses it: argument index, slot, type and absent value."""

    argument: int
    name: str
    slot: int
    field: _Field


@dataclass(frozen=True, slots=True, eq=False)
class _Schema:
    """The flatbuffer side of a dataclass."""

    target: type[Any]
    members: tuple[_Member, ...]
    place: int | None
    slots: int
    memory: int
    is_open: bool
    identifier: bytes | None
    defaults: tuple[Any, ...]


_OBJECT_MEMORY = 56
_VALUE_MEMORY = 40


def _for_each_type(make: Callable[[type[Any]], T]) -> Callable[[type[Any]], T]:
    """Call ``make`` once for each dataclass and remember what it returns."""
    known: dict[type[Any], T] = {}

    def look_up(target: type[Any]) -> T:
        if target not in known:
            known[target] = make(target)
        return known[target]

    return look_up


@_for_each_type
def _schema(target: type[Any]) -> _Schema:
    members: list[_Member] = []
    slot, place = 0, None
    for argument, entry in enumerate(dataclasses.fields(target)):
        declared = entry.metadata["flatbuffer"]
        if declared is _FILE_OFFSET:
            place = argument
            continue
        slot = slot if declared.slot is None else declared.slot
        members.append(_Member(argument, entry.name, slot, declared))
        slot += 2 if isinstance(declared.kind, Union) else 1
    return _Schema(
        target,
        tuple(members),
        place,
        slot,
        _OBJECT_MEMORY + _VALUE_MEMORY * len(members),
        target in _OPEN_TABLES,
        _IDENTIFIERS.get(target),
        tuple(
            0 if declared is _FILE_OFFSET else declared.absent
            for declared in (entry.metadata["flatbuffer"] for entry in dataclasses.fields(target))
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _StructLayout:
    """Packing of a struct: naturally aligned, as a C compiler would."""

    codec: struct.Struct
    alignment: int


@_for_each_type
def _struct_layout(target: type[Any]) -> _StructLayout:
    code, offset, alignment = "<", 0, 1
    for entry in dataclasses.fields(target):
        primitive = cast(Scalar, entry.metadata["flatbuffer"].kind).primitive
        padding = -offset % primitive.size
        code += "x" * padding + primitive.code
        offset += padding + primitive.size
        alignment = max(alignment, primitive.size)
    return _StructLayout(struct.Struct(code + "x" * (-offset % alignment)), alignment)


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """How tables of one dataclass that share one vtable are verified and read.

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
    stored: tuple[_Stored, ...]
    aligned: frozenset[int]
    defaults: tuple[Any, ...]
    scalars: struct.Struct
    scalar_arguments: tuple[int, ...]
    enumerations: tuple[tuple[int, int, Mapping[int, IntEnum], int, str], ...]
    references: tuple[tuple[int, int, Reference, str], ...]
    unions: tuple[tuple[int, int, int, Union, str], ...]


@dataclass(frozen=True, slots=True)
class _Stored:
    """A field that a vtable stores: byte offset and size within the table."""

    offset: int
    size: int
    name: str


@lru_cache(maxsize=1024)
def _plan(schema: _Schema, vtable: bytes) -> _Plan | str:
    """The plan for a dataclass and a vtable up to its last declared slot, or what is wrong."""
    entries = [entry for (entry,) in _U16.iter_unpack(vtable)]
    size, offsets = entries[1], entries[2:]
    missing = [
        member.name
        for member in schema.members
        if member.field.required and not _slot_offset(offsets, member.slot)
    ]
    if missing:
        return f"the required field {missing[0]} is absent"
    stored = sorted(_stored(schema, offsets), key=lambda entry: entry.offset)
    end = _U32.size
    for entry in stored:
        if entry.offset < end:
            return f"field {entry.name} at {entry.offset} overlaps what is before it"
        end = entry.offset + entry.size
    if end > size:
        return f"fields take {end} bytes of a table of {size}"
    return _make_plan(schema, offsets, size, stored)


def _slot_offset(offsets: Sequence[int], slot: int) -> int:
    return offsets[slot] if slot < len(offsets) else 0


def _stored(schema: _Schema, offsets: Sequence[int]) -> list[_Stored]:
    stored = []
    for member in schema.members:
        kind = member.field.kind
        sizes = [kind.primitive.size if isinstance(kind, Scalar) else _U32.size]
        if isinstance(kind, Union):
            sizes = [UINT8.size, _U32.size]
        for slot, size in enumerate(sizes, member.slot):
            offset = _slot_offset(offsets, slot)
            if offset:
                stored.append(_Stored(offset, size, member.name))
    return stored


def _make_plan(
    schema: _Schema, offsets: Sequence[int], size: int, stored: Sequence[_Stored]
) -> _Plan:
    scalars, enumerations, references, unions = [], [], [], []
    for member in schema.members:
        kind, offset = member.field.kind, _slot_offset(offsets, member.slot)
        if isinstance(kind, Union):
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
    return _Plan(
        size,
        schema.place,
        tuple(stored),
        frozenset(
            position
            for position in range(_WIDEST)
            if all((position + entry.offset) % entry.size == 0 for entry in stored)
        ),
        schema.defaults,
        struct.Struct(code),
        tuple(member.argument for _, _, member in scalars),
        tuple(enumerations),
        tuple(references),
        tuple(unions),
    )


# --- verify and read ------------------------------------------------------------------------


class View:
    """One flatbuffer: its bytes, and where they start in the file."""

    __slots__ = ("base", "budget", "buffer", "length", "nested", "plans")

    def __init__(self, buffer: memoryview, base: int, budget: Budget) -> None:
        self.buffer = buffer
        self.length = len(buffer)
        self.base = base
        self.budget = budget
        self.plans: dict[tuple[int, type[Any]], _Plan] = {}
        self.nested: dict[int, View] = {}

    def fault(self, position: int, reason: str, field: str = "") -> FormatError:
        """An error at the byte ``position`` of this view."""
        return FormatError(field, reason, offset=self.base + position)

    def charge(self, position: int, structure: int, memory: int) -> None:
        """Take from the budget; FormatError when it is spent."""
        budget = self.budget
        budget.structure -= structure
        budget.memory -= memory
        if budget.structure < 0 or budget.memory < 0:
            raise self.fault(position, "the data that offsets point to exceed the file many times")

    def verify_root(self, target: type[Any], depth: int) -> None:
        """Check the header and everything that is reachable from the root table."""
        if self.length > MAXIMUM_SIZE:
            raise self.fault(0, f"{self.length} bytes are more than a flatbuffer can have")
        identifier = _schema(target).identifier
        header = _U32.size + (0 if identifier is None else _IDENTIFIER_SIZE)
        if self.length < header:
            raise self.fault(0, f"{self.length} bytes are fewer than the header of {header}")
        if identifier is not None and bytes(self.buffer[4:8]) != identifier:
            found = bytes(self.buffer[4:8])
            raise self.fault(4, f"file identifier {found!r} is not {identifier!r}")
        self.verify_table(target, self.target(0), depth)

    def target(self, position: int) -> int:
        """Byte position that the offset at ``position``, which is within the view, points to."""
        offset: int = _U32.unpack_from(self.buffer, position)[0]
        if not 0 < offset < self.length - position:
            raise self.fault(position, f"offset {offset} leads out of the {self.length} bytes")
        return position + offset

    def verify_table(self, target: type[Any], position: int, depth: int) -> None:
        """Check a table and everything that it refers to."""
        if depth > MAXIMUM_DEPTH:
            raise self.fault(position, f"tables are nested more than {MAXIMUM_DEPTH} deep")
        plan = self._verified_plan(target, position)
        if position + plan.size > self.length:
            raise self.fault(position, f"table of {plan.size} bytes ends after the data")
        if position % _WIDEST not in plan.aligned:
            raise self._misaligned(plan, position)
        self.charge(position, plan.size, _schema(target).memory)
        if plan.enumerations:
            values = plan.scalars.unpack_from(self.buffer, position)
            for index, _, known, offset, name in plan.enumerations:
                if values[index] not in known:
                    reason = f"no member has the number {values[index]}"
                    raise self.fault(position + offset, reason, name)
        path = ""
        try:
            for _, offset, kind, name in plan.references:
                path = name
                kind.verify(self, self.target(position + offset), depth + 1)
            for _, tag_offset, offset, member, name in plan.unions:
                path = name
                member.verify(self, position, tag_offset, offset, depth + 1)
        except FormatError as error:
            raise error.within(path) from None

    def read_table(self, target: type[T], position: int) -> T:
        """The table at a position that was verified."""
        buffer = self.buffer
        vtable = position - _I32.unpack_from(buffer, position)[0]
        plan = self.plans[vtable, target]
        arguments = list(plan.defaults)
        if plan.place is not None:
            arguments[plan.place] = self.base + position
        values = plan.scalars.unpack_from(buffer, position)
        for argument, value in zip(plan.scalar_arguments, values, strict=True):
            arguments[argument] = value
        for index, argument, known, _, _ in plan.enumerations:
            arguments[argument] = known[values[index]]
        for argument, offset, kind, _ in plan.references:
            place = position + offset
            arguments[argument] = kind.read(self, place + _U32.unpack_from(buffer, place)[0])
        for argument, tag_offset, offset, member, _ in plan.unions:
            arguments[argument] = member.read(self, position, tag_offset, offset)
        return target(*arguments)

    def verify_vector(self, position: int, size: int, alignment: int, memory: int) -> None:
        """Check place and length of a vector of elements of ``size`` bytes.

        ``memory`` is what an element costs once it is read, in bytes.
        """
        if position % _U32.size:
            raise self.fault(position, "vector is not aligned to 4 bytes")
        if position + _U32.size > self.length:
            raise self.fault(position, "the length of a vector is outside the data")
        count: int = _U32.unpack_from(self.buffer, position)[0]
        start = position + _U32.size
        if count * size > self.length - start:
            raise self.fault(
                position, f"vector of {count} elements of {size} bytes ends after data"
            )
        if count and start % alignment:
            raise self.fault(start, f"elements are not aligned to {alignment} bytes")
        self.charge(position, _U32.size + count * size, _OBJECT_MEMORY + count * memory)

    def verify_blob(self, position: int, memory: int) -> None:
        """Check place and length of a vector of bytes, which is not charged as structure.

        ``memory`` is what a byte costs once it is read.
        """
        self.verify_vector(position, 0, 1, 0)
        count = _U32.unpack_from(self.buffer, position)[0]
        if count > self.length - position - _U32.size:
            raise self.fault(position, f"vector of {count} bytes ends after the data")
        self.charge(position, 0, count * memory)

    def verify_string(self, position: int, memory: int) -> None:
        """Check place, length and terminating zero of a string."""
        self.verify_blob(position, memory)
        end = position + _U32.size + _U32.unpack_from(self.buffer, position)[0]
        if end >= self.length or self.buffer[end]:
            raise self.fault(position, "string does not end with a zero byte")

    def extent(self, position: int) -> tuple[int, int]:
        """Start and end of the bytes of a vector of bytes that was verified."""
        start = position + _U32.size
        return start, start + _U32.unpack_from(self.buffer, position)[0]

    def _verified_plan(self, target: type[Any], position: int) -> _Plan:
        if position % _U32.size:
            raise self.fault(position, "table is not aligned to 4 bytes")
        if position + _U32.size > self.length:
            raise self.fault(position, "table starts after the data")
        vtable = position - _I32.unpack_from(self.buffer, position)[0]
        known = self.plans.get((vtable, target))
        if known is not None:
            return known
        if vtable % _U16.size:
            raise self.fault(position, f"vtable at {self.base + vtable} is not aligned to 2 bytes")
        if not 0 <= vtable <= self.length - _VTABLE_HEADER.size:
            raise self.fault(position, f"vtable at {self.base + vtable} is outside the data")
        size, table_size = _VTABLE_HEADER.unpack_from(self.buffer, vtable)
        if size % _U16.size or size < _VTABLE_HEADER.size or vtable + size > self.length:
            raise self.fault(vtable, f"vtable has the impossible size {size}")
        if table_size < _U32.size:
            raise self.fault(vtable, f"vtable gives its tables the impossible size {table_size}")
        schema = _schema(target)
        declared = min(size, _VTABLE_HEADER.size + _U16.size * schema.slots)
        self.charge(vtable, size - declared, _OBJECT_MEMORY * 4)
        if not schema.is_open and any(self.buffer[vtable + declared : vtable + size]):
            raise self.fault(
                vtable, f"{target.__name__} has no field after slot {schema.slots - 1}"
            )
        plan = _plan(schema, bytes(self.buffer[vtable : vtable + declared]))
        if isinstance(plan, str):
            raise self.fault(vtable, plan)
        self.plans[vtable, target] = plan
        return plan

    def _misaligned(self, plan: _Plan, position: int) -> FormatError:
        first = next(entry for entry in plan.stored if (position + entry.offset) % entry.size)
        reason = f"field is not aligned to {first.size} bytes"
        return self.fault(position + first.offset, reason, first.name)


@dataclass(frozen=True, slots=True)
class Verified(Generic[T]):
    """A flatbuffer that was verified: the only thing that can be read."""

    _view: View
    _root: type[T]

    def read(self) -> T:
        """The root table with everything in it."""
        return self._view.read_table(self._root, self._view.target(0))


def verify(
    data: bytes | memoryview,
    root: type[T],
    *,
    base: int = 0,
    budget: Budget | None = None,
    depth: int = 0,
) -> Verified[T]:
    """Check a whole flatbuffer.

    Args:
        data: the flatbuffer.
        root: dataclass of its root table; checked for the identifier that the class declares.
        base: byte offset of the data in the file; error offsets count from the file's start.
        budget: budget of the file, when the data is a part of it.
        depth: how many tables of the file already enclose the data.

    Raises:
        FormatError: with offset and field, at the first fault.
    """
    view = View(memoryview(data).toreadonly(), base, budget or Budget(len(data)))
    try:
        view.verify_root(root, depth)
    except FormatError as error:
        raise error.within(root.__name__) from None
    return Verified(view, root)


def read(data: bytes | memoryview, root: type[T]) -> T:
    """Verify a flatbuffer and read it; raises FormatError as ``verify`` does."""
    return verify(data, root).read()


def write(value: Any) -> bytes:
    """The flatbuffer of a root dataclass, with its file identifier if the class declares one.

    Raises:
        FormatError: naming the field, when a value does not fit its type.
    """
    target = type(value)
    builder = flatbuffers.Builder(1024)
    try:
        builder.Finish(_write_table(builder, value), file_identifier=_schema(target).identifier)
    except FormatError as error:
        raise error.within(target.__name__) from None
    return bytes(builder.Output())


# --- references -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _String(Reference):
    def verify(self, view: View, position: int, depth: int) -> None:
        # A Python text takes up to 4 bytes for each byte of UTF-8.
        view.verify_string(position, 4)
        start, end = view.extent(position)
        view.charge(position, end - start, _OBJECT_MEMORY)
        try:
            str(view.buffer[start:end], "utf-8")
        except UnicodeDecodeError as error:
            raise view.fault(start + error.start, "text is not UTF-8") from None

    def read(self, view: View, position: int) -> str:
        start, end = view.extent(position)
        return str(view.buffer[start:end], "utf-8")

    def write(self, builder: flatbuffers.Builder, value: Any) -> int:
        try:
            encoded = value.encode("utf-8")
        except UnicodeEncodeError:
            raise FormatError("", "text has no UTF-8 form") from None
        return cast(int, builder.CreateString(encoded))


@dataclass(frozen=True, slots=True)
class _Bytes(Reference):
    alignment: int

    def verify(self, view: View, position: int, depth: int) -> None:
        view.verify_blob(position, 1)

    def read(self, view: View, position: int) -> Any:
        start, end = view.extent(position)
        return bytes(view.buffer[start:end])

    def write(self, builder: flatbuffers.Builder, value: Any) -> int:
        return _write_blob(builder, bytes(value), self.alignment)


@dataclass(frozen=True, slots=True)
class _ByteView(_Bytes):
    def verify(self, view: View, position: int, depth: int) -> None:
        view.verify_blob(position, 0)

    def read(self, view: View, position: int) -> Any:
        start, end = view.extent(position)
        return view.buffer[start:end]


@dataclass(frozen=True, slots=True)
class _ByteSpan(Reference):
    def verify(self, view: View, position: int, depth: int) -> None:
        view.verify_blob(position, 0)

    def read(self, view: View, position: int) -> Span:
        start, end = view.extent(position)
        return Span(view.buffer[start:end], view.base + start)

    def write(self, builder: flatbuffers.Builder, value: Any) -> int:
        return _write_blob(builder, bytes(value.data), 1)


@dataclass(frozen=True, slots=True)
class _Numbers(Reference):
    element: Primitive

    def verify(self, view: View, position: int, depth: int) -> None:
        size = self.element.size
        view.verify_vector(position, size, size, _VALUE_MEMORY)

    def read(self, view: View, position: int) -> tuple[Any, ...]:
        count = _U32.unpack_from(view.buffer, position)[0]
        code = f"<{count}{self.element.code}"
        return struct.unpack_from(code, view.buffer, position + _U32.size)

    def write(self, builder: flatbuffers.Builder, value: Any) -> int:
        packed = _pack(f"<{len(value)}{self.element.code}", value, self.element.name)
        return cast(
            int,
            builder.CreateNumpyVector(np.frombuffer(packed, np.dtype(f"<{self.element.code}"))),
        )


@dataclass(frozen=True, slots=True)
class _Structs(Reference):
    element: type[Any]

    def verify(self, view: View, position: int, depth: int) -> None:
        layout = _struct_layout(self.element)
        view.verify_vector(
            position, layout.codec.size, layout.alignment, _schema(self.element).memory
        )

    def read(self, view: View, position: int) -> tuple[Any, ...]:
        codec = _struct_layout(self.element).codec
        start = position + _U32.size
        end = start + codec.size * _U32.unpack_from(view.buffer, position)[0]
        return tuple(self.element(*values) for values in codec.iter_unpack(view.buffer[start:end]))

    def write(self, builder: flatbuffers.Builder, value: Any) -> int:
        layout = _struct_layout(self.element)
        packed = b"".join(
            _pack(layout.codec.format, dataclasses.astuple(entry), self.element.__name__)
            for entry in value
        )
        builder.StartVector(layout.codec.size, len(value), layout.alignment)
        return _end_vector(builder, packed)


@dataclass(frozen=True, slots=True)
class _Table(Reference):
    target: type[Any]

    def verify(self, view: View, position: int, depth: int) -> None:
        view.verify_table(self.target, position, depth)

    def read(self, view: View, position: int) -> Any:
        return view.read_table(self.target, position)

    def write(self, builder: flatbuffers.Builder, value: Any) -> int:
        if type(value) is not self.target:
            raise FormatError("", f"{value!r} is not a {self.target.__name__}")
        return _write_table(builder, value)


@dataclass(frozen=True, slots=True)
class _References(Reference):
    """A vector of offsets."""

    element: Reference

    def verify(self, view: View, position: int, depth: int) -> None:
        view.verify_vector(position, _U32.size, _U32.size, _VALUE_MEMORY)
        start, verify_element, index = position + _U32.size, self.element.verify, -1
        try:
            for index in range(_U32.unpack_from(view.buffer, position)[0]):
                verify_element(view, view.target(start + _U32.size * index), depth)
        except FormatError as error:
            raise error.within(f"[{index}]") from None

    def read(self, view: View, position: int) -> tuple[Any, ...]:
        count = _U32.unpack_from(view.buffer, position)[0]
        start, read_element = position + _U32.size, self.element.read
        offsets = struct.unpack_from(f"<{count}I", view.buffer, start)
        return tuple(
            read_element(view, place + offset)
            for place, offset in zip(range(start, start + 4 * count, 4), offsets, strict=True)
        )

    def write(self, builder: flatbuffers.Builder, value: Any) -> int:
        offsets: list[int] = []
        try:
            for entry in value:
                offsets.append(self.element.write(builder, entry))
        except FormatError as error:
            raise error.within(f"[{len(offsets)}]") from None
        builder.StartVector(_U32.size, len(offsets), _U32.size)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return cast(int, builder.EndVector())


@dataclass(frozen=True, slots=True)
class _Nested(Reference):
    """A flatbuffer of its own, in a vector of bytes or in a string that holds binary data.

    Its alignment counts from its own start: a loader copies it to an aligned place.
    """

    target: Callable[[], type[Any]]
    in_string: bool

    def verify(self, view: View, position: int, depth: int) -> None:
        verify_outer = view.verify_string if self.in_string else view.verify_blob
        verify_outer(position, 0)
        view.charge(position, 0, 16 * _OBJECT_MEMORY)
        start, end = view.extent(position)
        nested_view = View(view.buffer[start:end], view.base + start, view.budget)
        nested_view.verify_root(self.target(), depth)
        view.nested[position] = nested_view

    def read(self, view: View, position: int) -> Any:
        nested_view = view.nested[position]
        return nested_view.read_table(self.target(), nested_view.target(0))

    def write(self, builder: flatbuffers.Builder, value: Any) -> int:
        if type(value) is not self.target():
            raise FormatError("", f"{value!r} is not a {self.target().__name__}")
        inner = write(value)
        if self.in_string:
            return cast(int, builder.CreateString(inner))
        return _write_blob(builder, inner, _NESTED_ALIGNMENT)


_NESTED_ALIGNMENT = 16


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """One of several tables, chosen by a tag that is stored beside the offset."""

    members: Mapping[int, type[Any]]
    other: Mapping[int, str]

    def verify(
        self, view: View, position: int, tag_offset: int, value_offset: int, depth: int
    ) -> None:
        """Check tag and table; ``position`` is that of the table that holds the union."""
        tag = view.buffer[position + tag_offset] if tag_offset else 0
        if not value_offset:
            if tag:
                raise view.fault(position + tag_offset, f"union of tag {tag} has no value")
            return
        if not tag:
            raise view.fault(position + value_offset, "union has a value but no tag")
        target = self.members.get(tag)
        if target is None and tag not in self.other:
            raise view.fault(position + tag_offset, f"no member of the union has the tag {tag}")
        view.verify_table(target or _AnyTable, view.target(position + value_offset), depth)

    def read(self, view: View, position: int, tag_offset: int, value_offset: int) -> Any:
        """Value of a verified union, or None."""
        if not value_offset:
            return None
        tag = view.buffer[position + tag_offset]
        if tag in self.other:
            return OpaqueTable(tag, self.other[tag])
        return view.read_table(self.members[tag], view.target(position + value_offset))

    def tag(self, value: Any) -> int:
        """Tag of a value."""
        for tag, target in self.members.items():
            if type(value) is target:
                return tag
        raise FormatError("", f"{value!r} is not a member of the union")


# --- write ----------------------------------------------------------------------------------


def _pack(code: str, values: Sequence[Any], name: str) -> bytes:
    try:
        return struct.pack(code, *values)
    except (struct.error, OverflowError) as error:
        raise FormatError("", f"not of type {name}: {error}") from None


def _write_blob(builder: flatbuffers.Builder, data: bytes, alignment: int) -> int:
    builder.StartVector(1, len(data), alignment)
    return _end_vector(builder, data)


def _end_vector(builder: flatbuffers.Builder, packed: bytes) -> int:
    """Place the packed elements of a vector that was started, and end it."""
    start = builder.Head() - len(packed)
    builder.head = start
    builder.Bytes[start : start + len(packed)] = packed
    return cast(int, builder.EndVector())


def _write_table(builder: flatbuffers.Builder, value: Any) -> int:
    schema = _schema(type(value))
    offsets: dict[int, int] = {}
    for member in schema.members:
        kind, content = member.field.kind, getattr(value, member.name)
        try:
            if isinstance(kind, Union):
                if content is not None:
                    offsets[member.slot] = kind.tag(content)
                    offsets[member.slot + 1] = _write_table(builder, content)
            elif isinstance(kind, Scalar):
                _pack(f"<{kind.primitive.code}", (content,), kind.primitive.name)
            elif content is None and member.field.required:
                raise FormatError("", "a value is required")
            elif content != member.field.absent:
                offsets[member.slot] = kind.write(builder, content)
        except FormatError as error:
            raise error.within(member.name) from None
    builder.StartObject(schema.slots)
    for member in sorted(schema.members, key=_inline_size, reverse=True):
        _write_member(builder, member, getattr(value, member.name), offsets)
    return cast(int, builder.EndObject())


def _inline_size(member: _Member) -> int:
    kind = member.field.kind
    return kind.primitive.size if isinstance(kind, Scalar) else _U32.size


def _write_member(
    builder: flatbuffers.Builder, member: _Member, content: Any, offsets: Mapping[int, int]
) -> None:
    kind, slot = member.field.kind, member.slot
    if isinstance(kind, Scalar):
        # Zero and minus zero are equal but not the same.
        if content != member.field.absent or str(content) != str(member.field.absent):
            _PREPEND[kind.primitive](builder, content)
            builder.Slot(slot)
    elif isinstance(kind, Union):
        if slot in offsets:
            builder.PrependUOffsetTRelativeSlot(slot + 1, offsets[slot + 1], 0)
            builder.PrependUint8Slot(slot, offsets[slot], 0)
    elif slot in offsets:
        builder.PrependUOffsetTRelativeSlot(slot, offsets[slot], 0)


_PREPEND: Mapping[Primitive, Callable[[flatbuffers.Builder, Any], None]] = {
    BOOL: flatbuffers.Builder.PrependBool,
    INT8: flatbuffers.Builder.PrependInt8,
    UINT8: flatbuffers.Builder.PrependUint8,
    INT16: flatbuffers.Builder.PrependInt16,
    UINT16: flatbuffers.Builder.PrependUint16,
    INT32: flatbuffers.Builder.PrependInt32,
    UINT32: flatbuffers.Builder.PrependUint32,
    INT64: flatbuffers.Builder.PrependInt64,
    UINT64: flatbuffers.Builder.PrependUint64,
    FLOAT32: flatbuffers.Builder.PrependFloat32,
    FLOAT64: flatbuffers.Builder.PrependFloat64,
}
