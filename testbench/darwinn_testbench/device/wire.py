"""Messages between Python and C: a table in Python for each protocol, and C's header from it.

A table is a module. C gets its enumerations (:class:`Numbered`), its records (:class:`Record`) and
the constants that it has in capitals. Both ends are on one machine, whose byte order they use.

Fill records by name, in both languages: the table alone says their order.
"""

from __future__ import annotations

import inspect
import os
import re
import string
import struct
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from types import ModuleType
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeVar, get_type_hints

import msgspec

MAXIMUM_COUNT = 1 << 12
"""Entries of a list, at most."""

_PLAIN = frozenset(string.ascii_letters + string.digits + " _/.,:+-@")


class MessageError(Exception):
    """Content that is not as its table says."""


class Content:
    """Reads the content of a message from its beginning to its end."""

    def __init__(self, data: bytes | bytearray) -> None:
        self._data = memoryview(data)
        self._at = 0

    def take(self, size: int) -> memoryview:
        """The next bytes."""
        if size > len(self._data) - self._at:
            raise MessageError(f"the message ends at byte {len(self._data)}, within a field")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, code: str = "I") -> Any:
        """The next number, by its code in :mod:`struct`."""
        return struct.unpack(f"={code}", self.take(struct.calcsize(f"={code}")))[0]

    def count(self) -> int:
        """How many entries follow."""
        count: int = self.number()
        if count > MAXIMUM_COUNT:
            raise MessageError(f"{count} entries, more than {MAXIMUM_COUNT}")
        return count

    def text(self) -> str:
        """A name, which need not be valid UTF-8."""
        return bytes(self.take(self.number())).decode("utf-8", "replace")

    def octets(self) -> bytes:
        """Bytes behind their number."""
        return bytes(self.take(self.number("Q")))

    def numbers(self) -> tuple[int, ...]:
        """Indices, or dimensions."""
        count = self.count()
        return struct.unpack(f"={count}i", self.take(4 * count))

    def end(self) -> None:
        """Nothing may follow."""
        if self._at != len(self._data):
            raise MessageError(f"{len(self._data) - self._at} bytes too many")


class Type(NamedTuple):
    """Type of a field: in C; of numbers the code in :mod:`struct`, of others how they are read."""

    in_c: str
    code: str = ""
    length: int | None = None
    """Elements of an array."""
    read: Callable[[Content], Any] | None = None


U8 = Annotated[int, Type("uint8_t", "B")]
U32 = Annotated[int, Type("uint32_t", "I")]
U64 = Annotated[int, Type("uint64_t", "Q")]
I32 = Annotated[int, Type("int32_t", "i")]
F32 = Annotated[float, Type("float", "f")]
Text = Annotated[str, Type("Text", read=Content.text)]
Octets = Annotated[bytes, Type("Octets", read=Content.octets)]
Numbers = Annotated[tuple[int, ...], Type("Numbers", read=Content.numbers)]


class Numbered(IntEnum):
    """Numbers that have a name and a meaning."""

    meaning: str

    def __new__(cls, value: int, meaning: str = "") -> Self:
        """Numbers may go without a meaning where the name says it."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member


class Record(msgspec.Struct, frozen=True):
    """Fields in order: each is annotated with its type and its meaning.

    A record of numbers is sent as C's structure: :meth:`pack`, :meth:`unpack`. An array of numbers
    is the last field. A record with other fields is what C adds to a buffer: :meth:`read`.
    """

    fields: ClassVar[Mapping[str, tuple[Type, str]]]
    layout: ClassVar[struct.Struct]
    """Of a record of numbers."""

    def __init_subclass__(cls) -> None:
        hints = get_type_hints(cls, include_extras=True)
        cls.fields = {name: hints[name].__metadata__ for name in cls.__annotations__}
        codes = (f"{type_.length or ''}{type_.code}" for type_, _ in cls.fields.values())
        cls.layout = struct.Struct("=" + "".join(codes))

    @classmethod
    def unpack(cls, data: bytes | bytearray) -> Self:
        """The record that ``data`` holds, all of it."""
        values = cls.layout.unpack(data)
        last = len(cls.fields) - 1
        return cls(*values) if len(values) == last + 1 else cls(*values[:last], values[last:])

    def pack(self) -> bytes:
        """Its bytes."""
        *values, last = msgspec.structs.astuple(self)
        return self.layout.pack(*values, *(last if isinstance(last, tuple) else (last,)))

    @classmethod
    def read(cls, content: Content) -> Self:
        """The record that comes next."""
        types = (type_ for type_, _ in cls.fields.values())
        return cls(
            *(each.read(content) if each.read else content.number(each.code) for each in types)
        )


Each = TypeVar("Each", bound=Record)


def list_of(record: type[Each]) -> Type:
    """Records behind their number."""

    def read(content: Content) -> tuple[Each, ...]:
        return tuple(record.read(content) for _ in range(content.count()))

    return Type("List", read=read)


def header(table: ModuleType) -> dict[str, str]:
    """The header ``messages.h`` with all of a table that is for C, for :func:`native.library`."""
    lines = [f"/* Written from {table.__name__}. */", "#pragma once", "#include <stdint.h>"]
    for name, value in vars(table).items():
        if name.isupper() and isinstance(value, int | str | tuple):
            lines.append(definition(name, value))
        elif isinstance(value, type) and value not in (Numbered, Record):
            in_c = re.sub(r"(?<!^)(?=[A-Z])", "_", value.__name__).lower()
            said = f"/* {(inspect.getdoc(value) or '').partition(chr(10))[0]} */"
            if issubclass(value, Numbered):
                lines += [said, *_enumeration(in_c, value)]
            elif issubclass(value, Record):
                lines += [said, *_structure(in_c, value)]
    return {"messages.h": "\n".join(lines) + "\n"}


def definition(name: str, value: int | str | tuple[int, ...]) -> str:
    """A macro."""
    return f"#define {name} {_literal(value)}"


def _literal(value: int | str | tuple[int, ...]) -> str:
    if isinstance(value, int):
        return f"{value:#x}" if value > 9 else str(value)
    if isinstance(value, tuple):
        return f"{{{', '.join(map(_literal, value))}}}"
    plain = (chr(c) if chr(c) in _PLAIN else f"\\{c:03o}" for c in os.fsencode(value))
    return f'"{"".join(plain)}"'


def _enumeration(name: str, numbers: type[Numbered]) -> Iterator[str]:
    yield f"enum {name} {{"
    for each in numbers:
        meaning = each.meaning and f" /* {each.meaning} */"
        yield f"    {name.upper()}_{each.name} = {_literal(each.value)},{meaning}"
    yield "};\n"


def _structure(name: str, record: type[Record]) -> Iterator[str]:
    """A record, with a check of its size, or with a function that adds it to a buffer."""
    yield f"struct {name} {{"
    for field, (type_, meaning) in record.fields.items():
        array = f"[{type_.length}]" if type_.length else ""
        yield f"    {type_.in_c} {field}{array}; /* {meaning} */"
    yield "};"
    if not any(type_.read for type_, _ in record.fields.values()):
        # Without padding: fields are where Python has them.
        size = record.layout.size
        yield f'_Static_assert(sizeof(struct {name}) == {size}, "struct {name} has padding");\n'
        return
    yield f"static inline void add_{name}(Buffer *to, const struct {name} *from) {{"
    for field, (type_, _) in record.fields.items():
        suffix, size_in_c = "", f", sizeof from->{field}"
        if type_.read:
            suffix, size_in_c = f"_{type_.in_c.lower()}", ""
        yield f"    buffer_add{suffix}(to, &from->{field}{size_in_c});"
    yield "}\n"
