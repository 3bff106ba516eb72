"""Fields of which a table stores the offset: how each is verified, read and written."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import flatbuffers
import numpy as np

from darwinn_formats.errors import FormatError
from darwinn_formats.flatbuffer.encoding import OBJECT_MEMORY, U32, VALUE_MEMORY, Primitive
from darwinn_formats.flatbuffer.schema import Reference, Span, schema_of, struct_layout
from darwinn_formats.flatbuffer.tables import TableView
from darwinn_formats.flatbuffer.view import View
from darwinn_formats.flatbuffer.writer import end_vector, pack, write, write_blob, write_table


@dataclass(frozen=True, slots=True)
class String(Reference):
    """UTF-8 text."""

    def verify(self, view: View, position: int, depth: int) -> None:
        # A Python text takes up to 4 bytes for each byte of UTF-8.
        view.verify_string(position, 4)
        start, end = view.extent(position)
        view.charge(position, end - start, OBJECT_MEMORY)
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
class Bytes(Reference):
    """A vector of bytes that is copied; ``alignment`` holds for writing."""

    alignment: int

    def verify(self, view: View, position: int, depth: int) -> None:
        view.verify_blob(position, 1)

    def read(self, view: View, position: int) -> Any:
        start, end = view.extent(position)
        return bytes(view.buffer[start:end])

    def write(self, builder: flatbuffers.Builder, value: Any) -> int:
        return write_blob(builder, bytes(value), self.alignment)


@dataclass(frozen=True, slots=True)
class ByteView(Bytes):
    """A vector of bytes that is not copied."""

    def verify(self, view: View, position: int, depth: int) -> None:
        view.verify_blob(position, 0)

    def read(self, view: View, position: int) -> Any:
        start, end = view.extent(position)
        return view.buffer[start:end]


@dataclass(frozen=True, slots=True)
class ByteSpan(Reference):
    """A vector of bytes that is not copied, with its place in the file."""

    alignment: int

    def verify(self, view: View, position: int, depth: int) -> None:
        view.verify_blob(position, 0)

    def read(self, view: View, position: int) -> Span:
        start, end = view.extent(position)
        return Span(view.buffer[start:end], view.base + start)

    def write(self, builder: flatbuffers.Builder, value: Any) -> int:
        return write_blob(builder, bytes(value.data), self.alignment)


@dataclass(frozen=True, slots=True)
class Numbers(Reference):
    """A vector of numbers, as a tuple."""

    element: Primitive

    def verify(self, view: View, position: int, depth: int) -> None:
        size = self.element.size
        view.verify_vector(position, size, size, VALUE_MEMORY)

    def read(self, view: View, position: int) -> tuple[Any, ...]:
        count = U32.unpack_from(view.buffer, position)[0]
        code = f"<{count}{self.element.code}"
        return struct.unpack_from(code, view.buffer, position + U32.size)

    def write(self, builder: flatbuffers.Builder, value: Any) -> int:
        packed = pack(f"<{len(value)}{self.element.code}", value, self.element.name)
        return cast(
            int,
            builder.CreateNumpyVector(np.frombuffer(packed, np.dtype(f"<{self.element.code}"))),
        )


@dataclass(frozen=True, slots=True)
class Structs(Reference):
    """A vector of structs, as a tuple."""

    element: type[Any]

    def verify(self, view: View, position: int, depth: int) -> None:
        layout = struct_layout(self.element)
        view.verify_vector(
            position, layout.codec.size, layout.alignment, schema_of(self.element).memory
        )

    def read(self, view: View, position: int) -> tuple[Any, ...]:
        codec = struct_layout(self.element).codec
        start = position + U32.size
        end = start + codec.size * U32.unpack_from(view.buffer, position)[0]
        return tuple(self.element(*values) for values in codec.iter_unpack(view.buffer[start:end]))

    def write(self, builder: flatbuffers.Builder, value: Any) -> int:
        layout = struct_layout(self.element)
        packed = b"".join(
            pack(layout.codec.format, dataclasses.astuple(entry), self.element.__name__)
            for entry in value
        )
        builder.StartVector(layout.codec.size, len(value), layout.alignment)
        return end_vector(builder, packed)


@dataclass(frozen=True, slots=True)
class Table(Reference):
    """A table."""

    target: type[Any]

    def verify(self, view: View, position: int, depth: int) -> None:
        view.verify_table(self.target, position, depth)

    def read(self, view: View, position: int) -> Any:
        return view.read_table(self.target, position)

    def write(self, builder: flatbuffers.Builder, value: Any) -> int:
        if type(value) is not self.target:
            raise FormatError("", f"{value!r} is not a {self.target.__name__}")
        return write_table(builder, value)


@dataclass(frozen=True, slots=True)
class References(Reference):
    """A vector of offsets."""

    element: Reference

    def verify(self, view: View, position: int, depth: int) -> None:
        view.verify_vector(position, U32.size, U32.size, VALUE_MEMORY)
        start, verify_element, index = position + U32.size, self.element.verify, -1
        try:
            for index in range(U32.unpack_from(view.buffer, position)[0]):
                verify_element(view, view.target(start + U32.size * index), depth)
        except FormatError as error:
            raise error.within(f"[{index}]") from None

    def read(self, view: View, position: int) -> tuple[Any, ...]:
        count = U32.unpack_from(view.buffer, position)[0]
        start, read_element = position + U32.size, self.element.read
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
        builder.StartVector(U32.size, len(offsets), U32.size)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return cast(int, builder.EndVector())


@dataclass(frozen=True, slots=True)
class Nested(Reference):
    """A flatbuffer of its own, in a vector of bytes or in a string that holds binary data.

    Its alignment counts from its own start: a loader copies it to an aligned place.
    """

    target: Callable[[], type[Any]]
    in_string: bool

    def verify(self, view: View, position: int, depth: int) -> None:
        verify_outer = view.verify_string if self.in_string else view.verify_blob
        verify_outer(position, 0)
        view.charge(position, 0, 16 * OBJECT_MEMORY)
        start, end = view.extent(position)
        nested_view = TableView(
            view.buffer[start:end],
            view.base + start,
            view.budget,
            is_aligned=view.is_aligned,
        )
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
        return write_blob(builder, inner, _NESTED_ALIGNMENT)


_NESTED_ALIGNMENT = 16
