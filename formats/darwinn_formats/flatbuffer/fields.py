"""Declarations of the fields of a dataclass that is a flatbuffer table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Set
from enum import IntEnum
from types import UnionType
from typing import Any, Protocol, TypeVar, get_args

from darwinn_formats.flatbuffer.encoding import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT32,
    UINT64,
    Primitive,
)
from darwinn_formats.flatbuffer.references import (
    Bytes,
    ByteSpan,
    ByteView,
    Nested,
    Numbers,
    References,
    String,
    Structs,
    Table,
)
from darwinn_formats.flatbuffer.schema import (
    FILE_OFFSET,
    Absent,
    Field,
    Reference,
    Scalar,
    Union,
    UnionVector,
)

_T = TypeVar("_T", contravariant=True)


def _field(
    kind: Scalar | Reference | Union | UnionVector,
    absent: Absent,
    slot: int | None,
    required: bool = False,
) -> Any:
    metadata = {"flatbuffer": Field(kind, absent, slot, required)}
    if required:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=absent, metadata=metadata)


def _present(kind: Reference, absent: Absent, slot: int | None, required: bool) -> Any:
    """A field that has a value of its own when a dataclass is made without it."""
    return dataclasses.field(
        default=absent, metadata={"flatbuffer": Field(kind, absent, slot, required)}
    )


def file_offset() -> Any:
    """Byte offset of the table in its file, for error messages: 0 for a table that was not read.

    It takes no slot, is not written, and plays no part in comparisons.
    """
    return dataclasses.field(
        default=0, compare=False, repr=False, metadata={"flatbuffer": FILE_OFFSET}
    )


class _Number(Protocol[_T]):
    """Declares a number; NaN and infinity are values like any other."""

    def __call__(self, default: _T = ..., *, slot: int | None = None) -> Any: ...


def _number(primitive: Primitive, zero: _T) -> _Number[_T]:
    def declare(default: _T = zero, *, slot: int | None = None) -> Any:
        return _field(Scalar(primitive), default, slot)

    return declare


boolean = _number(BOOL, False)
int8 = _number(INT8, 0)
uint8 = _number(UINT8, 0)
int16 = _number(INT16, 0)
int32 = _number(INT32, 0)
uint32 = _number(UINT32, 0)
int64 = _number(INT64, 0)
uint64 = _number(UINT64, 0)
float32 = _number(FLOAT32, 0.0)
float64 = _number(FLOAT64, 0.0)


def enumeration(default: IntEnum, storage: Primitive = INT16, *, slot: int | None = None) -> Any:
    """A member of the enumeration of ``default``; any other number is an error."""
    return _field(Scalar(storage, type(default)), default, slot)


def string(*, optional: bool = False, required: bool = False, slot: int | None = None) -> Any:
    """UTF-8 text; absent text is None if optional, an error if required, else the empty text."""
    return _present(String(), None if optional else "", slot, required)


def byte_vector(*, alignment: int = 1, slot: int | None = None) -> Any:
    """A vector of bytes as ``bytes``; ``alignment`` in bytes holds for writing."""
    return _field(Bytes(alignment), b"", slot)


def byte_view(*, alignment: int = 1, slot: int | None = None) -> Any:
    """A vector of bytes as a read-only ``memoryview`` of the file: nothing is copied."""
    return _field(ByteView(alignment), b"", slot)


def byte_span(*, alignment: int = 1, slot: int | None = None) -> Any:
    """A vector of bytes as a ``Span``: nothing is copied, and its place in the file is known.

    ``alignment`` in bytes holds for writing.
    """
    return _field(ByteSpan(alignment), None, slot)


def vector(element: Primitive, *, required: bool = False, slot: int | None = None) -> Any:
    """A vector of numbers, as a tuple; if ``required``, an absent one is an error."""
    return _present(Numbers(element), (), slot, required)


def struct_vector(element: type[Any], *, slot: int | None = None) -> Any:
    """A vector of structs, as a tuple; ``element`` is a dataclass of numbers only."""
    return _field(Structs(element), (), slot)


def table(
    target: type[Any], *, required: bool = False, absent: Absent = None, slot: int | None = None
) -> Any:
    """A table; an absent one reads as ``absent``, or is an error if ``required``."""
    return _field(Table(target), absent, slot, required)


def table_vector(target: type[Any], *, required: bool = False, slot: int | None = None) -> Any:
    """A vector of tables, as a tuple; if ``required``, an absent one is an error."""
    return _present(References(Table(target)), (), slot, required)


def string_vector(*, slot: int | None = None) -> Any:
    """A vector of UTF-8 texts, as a tuple."""
    return _field(References(String()), (), slot)


def nested(target: Callable[[], type[Any]], *, slot: int | None = None) -> Any:
    """A whole flatbuffer in a vector of bytes: its root table, or None."""
    return _field(Nested(target, in_string=False), None, slot)


def nested_string_vector(target: Callable[[], type[Any]], *, slot: int | None = None) -> Any:
    """A vector of strings that each hold a whole flatbuffer, as a tuple of root tables."""
    return _field(References(Nested(target, in_string=True)), (), slot)


def union(
    members: Mapping[int, type[Any]] | UnionType,
    *,
    other: Mapping[int, str] | None = None,
    bare: Set[int] = frozenset(),
    numbers: Set[int] = frozenset(),
    growing: bool = False,
    slot: int | None = None,
) -> Any:
    """One of several tables, by tag, or None; it takes two slots, of which ``slot`` is the first.

    Tags of types that are given as ``A | B`` count from 1, as those of a schema do. Tags of
    ``other`` are known by name only: their tables read as ``OpaqueTable``. A tag of ``bare`` may
    stand without its table, and then reads as a table without values.

    Where a union is ``growing``, a tag that is not known, or a table with a field or a number that
    is not declared, is of a newer schema, and reads as ``OpaqueTable``. The tables of tags
    ``numbers`` refer to nothing, so that writing one again takes few bytes; any other takes a copy
    of the file from it on.
    """
    return _field(Union(_by_tag(members), other or {}, bare, numbers, growing), None, slot)


def union_vector(members: Mapping[int, type[Any]] | UnionType, *, slot: int | None = None) -> Any:
    """A vector of unions, as a tuple; it takes two slots, of which ``slot`` is the first."""
    return _field(UnionVector(Union(_by_tag(members), {})), (), slot)


def _by_tag(members: Mapping[int, type[Any]] | UnionType) -> Mapping[int, type[Any]]:
    return dict(enumerate(get_args(members), 1)) if isinstance(members, UnionType) else members
