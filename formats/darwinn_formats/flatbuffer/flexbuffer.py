"""FlexBuffers: verified reading of the schema-less sibling of flatbuffers.

Custom operators of TensorFlow Lite keep their options in one. Offsets lead backwards, every
value has a type and a width of its own, and strings may hold binary data, so they are given as
bytes in their place in the file. The encoding is that of the FlexBuffers internals document
(https://flatbuffers.dev/flexbuffers/#flexbuffers-encoding).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum

from darwinn_formats.errors import FormatError
from darwinn_formats.flatbuffer.schema import Span
from darwinn_formats.flatbuffer.tables import MAXIMUM_DEPTH
from darwinn_formats.flatbuffer.view import Budget

Value = None | bool | int | float | str | Span | tuple["Value", ...] | dict[str, "Value"]
"""A value: keys are ``str``, strings and blobs ``Span``, vectors tuples, maps dictionaries."""

_VALUE_MEMORY = 160


class Type(IntEnum):
    """Types of values."""

    NULL = 0
    INT = 1
    UINT = 2
    FLOAT = 3
    KEY = 4
    STRING = 5
    INDIRECT_INT = 6
    INDIRECT_UINT = 7
    INDIRECT_FLOAT = 8
    MAP = 9
    VECTOR = 10
    VECTOR_INT = 11
    VECTOR_UINT = 12
    VECTOR_FLOAT = 13
    VECTOR_KEY = 14
    BLOB = 25
    BOOL = 26
    VECTOR_BOOL = 36


_SIGNED = {1: "<b", 2: "<h", 4: "<i", 8: "<q"}
_UNSIGNED = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}
_FLOATING = {2: "<e", 4: "<f", 8: "<d"}
_ELEMENTS = {
    Type.VECTOR_INT: Type.INT,
    Type.VECTOR_UINT: Type.UINT,
    Type.VECTOR_FLOAT: Type.FLOAT,
    Type.VECTOR_KEY: Type.KEY,
    Type.VECTOR_BOOL: Type.BOOL,
}
_NUMBERS = {
    Type.INT: _SIGNED,
    Type.UINT: _UNSIGNED,
    Type.FLOAT: _FLOATING,
    Type.BOOL: _UNSIGNED,
    Type.INDIRECT_INT: _SIGNED,
    Type.INDIRECT_UINT: _UNSIGNED,
    Type.INDIRECT_FLOAT: _FLOATING,
}
_INDIRECT = {Type.INDIRECT_INT, Type.INDIRECT_UINT, Type.INDIRECT_FLOAT}


def read(data: memoryview, *, base: int = 0, budget: Budget | None = None) -> Value:
    """Verify and read a FlexBuffer.

    Args:
        data: the buffer, from its first byte to the width of its root.
        base: byte offset of the data in the file.
        budget: budget of the file, when the data is a part of it.

    Raises:
        FormatError: with offset and field, at the first fault.
    """
    return _Reader(data, base, budget or Budget(len(data))).root()


class _Reader:
    def __init__(self, data: memoryview, base: int, budget: Budget) -> None:
        self.data = data
        self.base = base
        self.budget = budget

    def root(self) -> Value:
        if len(self.data) < 3:
            raise self.fault(0, f"{len(self.data)} bytes are fewer than a FlexBuffer has")
        width = self.data[-1]
        if width not in _UNSIGNED or len(self.data) < 2 + width:
            raise self.fault(len(self.data) - 1, f"the root cannot have a width of {width} bytes")
        return self.value(len(self.data) - 2 - width, width, self.data[-2], 0)

    def fault(self, position: int, reason: str, field: str = "") -> FormatError:
        return FormatError(field, reason, offset=self.base + position)

    def charge(self, position: int, count: int) -> None:
        self.budget.structure -= count
        self.budget.memory -= _VALUE_MEMORY * count
        if self.budget.structure < 0 or self.budget.memory < 0:
            raise self.fault(position, "the data that offsets point to exceed the file many times")

    def number(self, position: int, width: int, codes: dict[int, str]) -> float:
        """Number at a position, which may be outside of the data."""
        if not 0 <= position <= len(self.data) - width:
            raise self.fault(max(position, 0), f"{width} bytes at {position} are outside the data")
        if width not in codes:
            raise self.fault(position, f"a float cannot have a width of {width} bytes")
        number: float = struct.unpack_from(codes[width], self.data, position)[0]
        return number

    def unsigned(self, position: int, width: int) -> int:
        return int(self.number(position, width, _UNSIGNED))

    def target(self, position: int, width: int) -> int:
        """Position that the offset at ``position`` leads back to.

        An offset of 0 is valid: the elements of an empty vector may be where it is referred to.
        What refers to itself is stopped by depth and budget.
        """
        offset = self.unsigned(position, width)
        if offset > position:
            raise self.fault(position, f"offset {offset} leads back to before the data")
        return position - offset

    def value(self, position: int, parent_width: int, packed_type: int, depth: int) -> Value:
        """Value of a type; ``position`` holds it, or the offset to it."""
        if depth > MAXIMUM_DEPTH:
            raise self.fault(position, f"values are nested more than {MAXIMUM_DEPTH} deep")
        self.charge(position, 1)
        try:
            kind = Type(packed_type >> 2)
        except ValueError:
            raise self.fault(position, f"type {packed_type >> 2} is not supported") from None
        if kind is Type.NULL:
            return None
        if kind in _NUMBERS and kind not in _INDIRECT:
            number = self.number(position, parent_width, _NUMBERS[kind])
            return bool(number) if kind is Type.BOOL else number
        target, width = self.target(position, parent_width), 1 << (packed_type & 3)
        if kind in _INDIRECT:
            return self.number(target, width, _NUMBERS[kind])
        if kind is Type.KEY:
            return self.key(target)
        if kind in (Type.STRING, Type.BLOB):
            return self.bytes(target, width, kind)
        if kind is Type.MAP:
            return self.map(target, width, depth)
        return self.vector(target, width, _ELEMENTS.get(kind), depth)

    def key(self, position: int) -> str:
        end = position
        while end < len(self.data) and self.data[end]:
            end += 1
        self.charge(position, end - position)
        if end == len(self.data):
            raise self.fault(position, "key does not end with a zero byte")
        try:
            return str(self.data[position:end], "utf-8")
        except UnicodeDecodeError:
            raise self.fault(position, "key is not UTF-8") from None

    def bytes(self, position: int, width: int, kind: Type) -> Span:
        size = self.unsigned(position - width, width)
        end = position + size
        if end > len(self.data):
            raise self.fault(position - width, f"{size} bytes end after the data")
        if kind is Type.STRING and (end == len(self.data) or self.data[end]):
            raise self.fault(position - width, "string does not end with a zero byte")
        return Span(self.data[position:end], self.base + position)

    def elements(
        self, position: int, width: int, element: Type | None
    ) -> Callable[[int, int], Value]:
        """Reader of the elements of a vector, by index and depth, after checking its extent."""
        count = self.unsigned(position - width, width)
        # An untyped vector is followed by a byte of type for each element.
        if count * (width if element is not None else width + 1) > len(self.data) - position:
            raise self.fault(position - width, f"vector of {count} elements ends after the data")
        self.charge(position, count)
        types = position + count * width

        def read_element(index: int, depth: int) -> Value:
            packed = self.data[types + index] if element is None else element << 2
            return self.value(position + index * width, width, packed, depth)

        return read_element

    def vector(
        self, position: int, width: int, element: Type | None, depth: int
    ) -> tuple[Value, ...]:
        read_element = self.elements(position, width, element)
        values: list[Value] = []
        try:
            for index in range(self.unsigned(position - width, width)):
                values.append(read_element(index, depth + 1))
        except FormatError as error:
            raise error.within(f"[{len(values)}]") from None
        return tuple(values)

    def map(self, position: int, width: int, depth: int) -> dict[str, Value]:
        keys_at = self.target(position - 3 * width, width)
        keys_width = self.unsigned(position - 2 * width, width)
        count = self.unsigned(position - width, width)
        if keys_width not in _UNSIGNED:
            raise self.fault(position - 2 * width, f"keys cannot have a width of {keys_width}")
        if self.unsigned(keys_at - keys_width, keys_width) != count:
            raise self.fault(position - width, "a map has not as many keys as values")
        keys = self.vector(keys_at, keys_width, Type.KEY, depth)
        read_element = self.elements(position, width, None)
        values: dict[str, Value] = {}
        previous = ""
        for index, key in enumerate(keys):
            if not isinstance(key, str) or key <= previous:
                raise self.fault(keys_at, f"keys are not in order at {key!r}")
            try:
                values[key] = read_element(index, depth + 1)
            except FormatError as error:
                raise error.within(f'["{key}"]') from None
            previous = key
        return values
