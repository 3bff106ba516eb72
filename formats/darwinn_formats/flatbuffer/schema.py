"""What a dataclass says about its flatbuffer: field types and slots."""

from __future__ import annotations

import dataclasses
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar, cast

import flatbuffers

from darwinn_formats.errors import FormatError
from darwinn_formats.flatbuffer.encoding import (
    I32,
    OBJECT_MEMORY,
    U16,
    U32,
    UINT8,
    VALUE_MEMORY,
    VTABLE_HEADER,
    WIDEST,
    Primitive,
)
from darwinn_formats.flatbuffer.view import View

T = TypeVar("T")


class NewerError(FormatError):
    """A table has what only a newer schema can explain: a field or a number that is not declared.

    Where such a table may be left unread, it is no fault of the file.
    """


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
class Field:
    """What the metadata of a dataclass field says about it."""

    kind: Scalar | Reference | Union | UnionVector
    absent: Absent
    slot: int | None
    required: bool


FILE_OFFSET = object()
"""Marks the dataclass field that takes the file offset of its table."""


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """One of several tables, chosen by a tag that is stored beside the offset.

    Tags of ``other`` are known by name only; a tag of ``bare`` may stand without its table. Tables
    of ``numbers`` refer to nothing. Where a union is ``growing``, tags and tables that only a newer
    schema has are known by name, too.
    """

    members: Mapping[int, type[Any]]
    other: Mapping[int, str]
    bare: Set[int] = frozenset()
    numbers: Set[int] = frozenset()
    growing: bool = False

    def verify(
        self, view: View, position: int, tag_offset: int, value_offset: int, depth: int
    ) -> None:
        """Check tag and table; ``position`` is that of the table that holds the union."""
        tag = view.buffer[position + tag_offset] if tag_offset else 0
        if not value_offset:
            if tag and tag not in self.bare:
                raise view.fault(position + tag_offset, f"union of tag {tag} has no value")
            return
        if not tag:
            raise view.fault(position + value_offset, "union has a value but no tag")
        self.verify_value(view, position + tag_offset, position + value_offset, depth)

    def verify_value(self, view: View, tag_position: int, position: int, depth: int) -> None:
        """Check the table that the offset at ``position`` leads to, by the tag beside it."""
        tag = view.buffer[tag_position]
        target = self.members.get(tag)
        if target is None and tag not in self.other and not self.growing:
            raise view.fault(tag_position, f"no member of the union has the tag {tag}")
        table = view.target(position)
        try:
            view.verify_table(target or AnyTable, table, depth)
        except NewerError:
            if not self.growing:
                raise
            view.verify_table(AnyTable, table, depth)
            view.newer.add(table)

    def read(self, view: View, position: int, tag_offset: int, value_offset: int) -> Any:
        """Value of a verified union, or None."""
        tag = view.buffer[position + tag_offset] if tag_offset else 0
        if not value_offset:
            return self.members[tag]() if tag else None
        return self.read_value(view, position + tag_offset, position + value_offset)

    def read_value(self, view: View, tag_position: int, position: int) -> Any:
        """The table that the verified offset at ``position`` leads to."""
        tag, table = view.buffer[tag_position], view.target(position)
        if tag in self.members and table not in view.newer:
            return view.read_table(self.members[tag], table)
        name = self.other.get(tag)
        if name is None:
            known = self.members.get(tag)
            name = f"{known.__name__ if known else f'number {tag}'} of a newer schema"
        first, end = _extent(view, table, alone=tag in self.numbers)
        return OpaqueTable(tag, name, view.buffer[first:end], table - first)

    def tag(self, value: Any) -> int:
        """Tag of a value."""
        if isinstance(value, OpaqueTable) and value.data is not None:
            return value.tag
        for tag, target in self.members.items():
            if type(value) is target:
                return tag
        raise FormatError("", f"{value!r} is not a member of the union")


@dataclass(frozen=True, slots=True, eq=False)
class UnionVector:
    """A vector of unions: a vector of tags, and one as long of offsets to tables.

    An element of tag 0 is None, and its offset is 0.
    """

    member: Union

    def verify(
        self, view: View, position: int, tags_offset: int, values_offset: int, depth: int
    ) -> None:
        """Check both vectors and every table; ``position`` is that of the table that holds them."""
        if not tags_offset and not values_offset:
            return
        if not tags_offset or not values_offset:
            present = position + (tags_offset or values_offset)
            raise view.fault(present, "a vector of unions has tags or tables, but not both")
        tags = view.target(position + tags_offset)
        values = view.target(position + values_offset)
        view.verify_vector(tags, UINT8.size, UINT8.size, 0)
        view.verify_vector(values, U32.size, U32.size, VALUE_MEMORY)
        count = U32.unpack_from(view.buffer, tags)[0]
        if U32.unpack_from(view.buffer, values)[0] != count:
            raise view.fault(values, f"vector of unions has another length than its {count} tags")
        tags, values = tags + U32.size, values + U32.size
        index = -1
        try:
            for index in range(count):
                self._verify_element(view, tags + index, values + U32.size * index, depth)
        except FormatError as error:
            raise error.within(f"[{index}]") from None

    def read(self, view: View, position: int, tags_offset: int, values_offset: int) -> Any:
        """Values of a verified vector of unions, as a tuple."""
        tags = view.target(position + tags_offset)
        values = view.target(position + values_offset)
        count = U32.unpack_from(view.buffer, tags)[0]
        tags, values = tags + U32.size, values + U32.size
        return tuple(
            self.member.read_value(view, tags + index, values + U32.size * index)
            if view.buffer[tags + index]
            else None
            for index in range(count)
        )

    def _verify_element(self, view: View, tag: int, value: int, depth: int) -> None:
        if view.buffer[tag]:
            self.member.verify_value(view, tag, value, depth)
        elif U32.unpack_from(view.buffer, value)[0]:
            raise view.fault(value, "union has a value but no tag")


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of a file with the offset at which they start; equal when the bytes are equal."""

    data: memoryview
    offset: int = dataclasses.field(default=0, compare=False)

    def __len__(self) -> int:
        return len(self.data)


@dataclass(frozen=True, slots=True)
class OpaqueTable:
    """A member of a union that the declared subset of the schema knows by name only.

    It is written as it was read: ``data`` is a part of the file with all that belongs to the table,
    which is at byte ``place`` of it. The part begins where the file is aligned.
    """

    tag: int
    name: str
    data: memoryview | None = dataclasses.field(default=None, compare=False, repr=False)
    place: int = dataclasses.field(default=0, compare=False, repr=False)


def _extent(view: View, table: int, *, alone: bool) -> tuple[int, int]:
    """The bytes that belong to a verified table: it and its vtable, and if it may refer to
    something, which stands behind it, all to the end."""
    vtable = table - I32.unpack_from(view.buffer, table)[0]
    size, table_size = VTABLE_HEADER.unpack_from(view.buffer, vtable)
    first = min(table, vtable) // EXTENT_ALIGNMENT * EXTENT_ALIGNMENT
    if not alone:
        return first, view.length
    offsets = U16.iter_unpack(view.buffer[vtable + VTABLE_HEADER.size : vtable + size])
    widest = max((offset + WIDEST for (offset,) in offsets if offset), default=0)
    return first, min(max(vtable + size, table + table_size, table + widest), view.length)


EXTENT_ALIGNMENT = 16
"""To so many bytes, at least, anything in a flatbuffer is aligned."""


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
class AnyTable:
    """A table of which nothing is read."""


_OPEN_TABLES: set[type[Any]] = {AnyTable}
_IDENTIFIERS: dict[type[Any], bytes] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A dataclass field as the engine uses it: argument index, slot, type and absent value."""

    argument: int
    name: str
    slot: int
    field: Field


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The flatbuffer side of a dataclass."""

    target: type[Any]
    members: tuple[Member, ...]
    place: int | None
    slots: int
    memory: int
    is_open: bool
    identifier: bytes | None
    defaults: tuple[Any, ...]


def _for_each_type(make: Callable[[type[Any]], T]) -> Callable[[type[Any]], T]:
    """Call ``make`` once for each dataclass and remember what it returns."""
    known: dict[type[Any], T] = {}

    def look_up(target: type[Any]) -> T:
        if target not in known:
            known[target] = make(target)
        return known[target]

    return look_up


@_for_each_type
def schema_of(target: type[Any]) -> Schema:
    """Schema of a dataclass, from the metadata of its fields."""
    members: list[Member] = []
    slot, place = 0, None
    for argument, entry in enumerate(dataclasses.fields(target)):
        declared = entry.metadata["flatbuffer"]
        if declared is FILE_OFFSET:
            place = argument
            continue
        slot = slot if declared.slot is None else declared.slot
        members.append(Member(argument, entry.name, slot, declared))
        slot += 2 if isinstance(declared.kind, Union | UnionVector) else 1
    return Schema(
        target,
        tuple(members),
        place,
        slot,
        OBJECT_MEMORY + VALUE_MEMORY * len(members),
        target in _OPEN_TABLES,
        _IDENTIFIERS.get(target),
        tuple(
            0 if declared is FILE_OFFSET else declared.absent
            for declared in (entry.metadata["flatbuffer"] for entry in dataclasses.fields(target))
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class StructLayout:
    """Packing of a struct: naturally aligned, as a C compiler would."""

    codec: struct.Struct
    alignment: int


@_for_each_type
def struct_layout(target: type[Any]) -> StructLayout:
    """Packing of a dataclass of numbers."""
    code, offset, alignment = "<", 0, 1
    for entry in dataclasses.fields(target):
        primitive = cast(Scalar, entry.metadata["flatbuffer"].kind).primitive
        padding = -offset % primitive.size
        code += "x" * padding + primitive.code
        offset += padding + primitive.size
        alignment = max(alignment, primitive.size)
    return StructLayout(struct.Struct(code + "x" * (-offset % alignment)), alignment)
