"""Write dataclasses as a flatbuffer, with the builder of the flatbuffers runtime."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import flatbuffers

from darwinn_formats.errors import FormatError
from darwinn_formats.flatbuffer.encoding import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    U32,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Primitive,
)
from darwinn_formats.flatbuffer.schema import (
    EXTENT_ALIGNMENT,
    Member,
    OpaqueTable,
    Scalar,
    Union,
    UnionVector,
    schema_of,
)


def write(value: Any, *, size_prefix: bool = False) -> bytes:
    """The flatbuffer of a root dataclass, with its file identifier if the class declares one.

    With ``size_prefix`` its size stands before it, in four bytes from which alignments count.

    Raises:
        FormatError: naming the field, when a value does not fit its type.
    """
    target = type(value)
    builder = flatbuffers.Builder(1024)
    try:
        finish = builder.FinishSizePrefixed if size_prefix else builder.Finish
        finish(write_table(builder, value), file_identifier=schema_of(target).identifier)
    except FormatError as error:
        raise error.within(target.__name__) from None
    return bytes(builder.Output())


def pack(code: str, values: Sequence[Any], name: str) -> bytes:
    """Bytes of numbers by a code of the struct module; FormatError if they do not fit."""
    try:
        return struct.pack(code, *values)
    except (struct.error, OverflowError) as error:
        raise FormatError("", f"not of type {name}: {error}") from None


def write_blob(builder: flatbuffers.Builder, data: bytes, alignment: int) -> int:
    """Append a vector of bytes and return its offset in the builder."""
    builder.StartVector(1, len(data), alignment)
    return end_vector(builder, data)


def end_vector(builder: flatbuffers.Builder, packed: bytes) -> int:
    """Place the packed elements of a vector that was started, and end it."""
    start = builder.Head() - len(packed)
    builder.head = start
    builder.Bytes[start : start + len(packed)] = packed
    return cast(int, builder.EndVector())


def _copy_table(builder: flatbuffers.Builder, table: OpaqueTable) -> int:
    """Append the part of a file that has a table which is known by name only.

    Offsets within it stay what they are.
    """
    data = bytes(table.data or b"")
    builder.Prep(EXTENT_ALIGNMENT, len(data))
    builder.head = builder.Head() - len(data)
    builder.Bytes[builder.head : builder.head + len(data)] = data
    return cast(int, builder.Offset()) - table.place


def write_table(builder: flatbuffers.Builder, value: Any) -> int:
    """Append a table with all it refers to and return its offset in the builder."""
    if isinstance(value, OpaqueTable):
        return _copy_table(builder, value)
    schema = schema_of(type(value))
    offsets: dict[int, int] = {}
    for member in schema.members:
        kind, content = member.field.kind, getattr(value, member.name)
        try:
            if isinstance(kind, Union):
                if content is not None:
                    offsets[member.slot] = kind.tag(content)
                    offsets[member.slot + 1] = write_table(builder, content)
            elif isinstance(kind, UnionVector):
                if content:
                    first, second = _write_unions(builder, kind, content)
                    offsets[member.slot], offsets[member.slot + 1] = first, second
            elif isinstance(kind, Scalar):
                pack(f"<{kind.primitive.code}", (content,), kind.primitive.name)
            elif content is None and member.field.required:
                raise FormatError("", "a value is required")
            elif member.field.required or content != member.field.absent:
                offsets[member.slot] = kind.write(builder, content)
        except FormatError as error:
            raise error.within(member.name) from None
    builder.StartObject(schema.slots)
    for member in sorted(schema.members, key=_inline_size, reverse=True):
        _write_member(builder, member, getattr(value, member.name), offsets)
    return cast(int, builder.EndObject())


def _write_unions(
    builder: flatbuffers.Builder, kind: UnionVector, content: Sequence[Any]
) -> tuple[int, int]:
    """Append the tags and the tables of a vector of unions and return the offsets of both."""
    tags = bytearray()
    tables: list[int] = []
    try:
        for entry in content:
            tags.append(0 if entry is None else kind.member.tag(entry))
            tables.append(0 if entry is None else write_table(builder, entry))
    except FormatError as error:
        raise error.within(f"[{len(tables)}]") from None
    first = write_blob(builder, bytes(tags), 1)
    builder.StartVector(U32.size, len(tables), U32.size)
    for offset in reversed(tables):
        if offset:
            builder.PrependUOffsetTRelative(offset)
        else:
            builder.PrependUint32(0)
    return first, cast(int, builder.EndVector())


def _inline_size(member: Member) -> int:
    kind = member.field.kind
    return kind.primitive.size if isinstance(kind, Scalar) else U32.size


def _write_member(
    builder: flatbuffers.Builder, member: Member, content: Any, offsets: Mapping[int, int]
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
        if isinstance(kind, UnionVector):
            builder.PrependUOffsetTRelativeSlot(slot + 1, offsets[slot + 1], 0)


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
