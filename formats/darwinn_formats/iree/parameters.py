"""Parameter archives (.irpa): values of a module that are in a file of their own, by name.

A file has one archive or several; each has a header, a table of entries, a segment of names and
one of data. All offsets count from the header. The public header ``parameter_archive.h`` defines
the layout.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from darwinn_formats.errors import FormatError
from darwinn_formats.files import Source, content_of, errors_name, name_of
from darwinn_formats.signatures import IREE_PARAMETERS

_PREFIX = struct.Struct("<4sHHQQQ")
"""Magic, major and minor version, size of the header, offset of the next header, flags."""
_HEADER = struct.Struct("<Q6Q")
"""Number of entries; offset and length of the segments of entries, of names and of data."""
_ENTRY = struct.Struct("<QIQ2Q2QQ")
"""Size, kind, flags, name, metadata (both offset and length), alignment."""
_SPLAT = struct.Struct("<Q16sB")
_RANGE = struct.Struct("<2Q")
_EXTERNAL = struct.Struct("<2Q2Q")
_ALIGNMENT = 16
VERSION = 0, 0
"""Major and minor version of the archives that are read."""
_PATTERN_SIZES = (1, 2, 4, 8, 16)


class EntryKind(IntEnum):
    """What an entry of an archive is."""

    SKIP = 0
    SPLAT = 1
    DATA = 2
    EXTERNAL = 3


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named value.

    Attributes:
        name: unique in its file.
        kind: whether its bytes are in the file, are a pattern, or are in another file.
        size: bytes that it has.
        data: its bytes, those of the pattern, or none.
        path: the other file, as the archive names it.
        metadata: what its writer added.
    """

    name: str
    kind: EntryKind
    size: int
    data: memoryview = field(repr=False)
    path: str = ""
    metadata: bytes = b""


@dataclass(frozen=True, slots=True)
class ParameterFile:
    """A loaded file of parameters: its name (``<bytes>`` if it was given as bytes) and values."""

    file: str
    sha256: str
    size: int
    parameters: dict[str, Parameter] = field(repr=False)


def load_parameters(source: Source) -> ParameterFile:
    """Load a file of parameters.

    Raises:
        FormatError: with file, offset and field, for anything that is none.
        OSError: the file cannot be read.
    """
    with errors_name(source):
        data = content_of(source)
        found: dict[str, Parameter] = {}
        for offset, entry in _entries(memoryview(data)):
            if entry.name in found:
                raise FormatError("name", f"{entry.name} is there twice", offset=offset)
            found[entry.name] = entry
        digest = hashlib.sha256(data).hexdigest()
        return ParameterFile(name_of(source), digest, len(data), found)


def describe_parameters(file: ParameterFile) -> dict[str, Any]:
    """What is in a file of parameters, as JSON values."""
    return {
        "file": file.file,
        "sha256": file.sha256,
        "bytes": file.size,
        "parameters": [
            {"name": entry.name, "kind": entry.kind.name.lower(), "bytes": entry.size}
            | ({"path": entry.path} if entry.path else {})
            for entry in file.parameters.values()
        ],
    }


@dataclass(frozen=True)
class _Archive:
    """An archive in a file: where its header is, and its segments, relative to the header."""

    data: memoryview
    start: int
    names: tuple[int, int]
    storage: tuple[int, int]

    def part(self, segment: tuple[int, int], offset: int, length: int, what: str) -> memoryview:
        """Bytes of a segment; FormatError if they are not in it."""
        first, size = segment
        if offset + length > size:
            reason = f"bytes {offset} to {offset + length} are not in the {size} of the segment"
            raise FormatError(what, reason, offset=self.start + first)
        begin = self.start + first + offset
        return self.data[begin : begin + length]

    def text(self, offset: int, length: int, what: str) -> str:
        """A text of the segment of names."""
        try:
            return str(self.part(self.names, offset, length, what), "utf-8")
        except UnicodeDecodeError:
            raise FormatError(what, "text is not UTF-8", offset=self.start) from None


def _entries(data: memoryview) -> Iterator[tuple[int, Parameter]]:
    """Entries of all archives, each with the byte of the file at which it is."""
    start = 0
    while True:
        magic, major, minor, size, following, _ = _unpack(_PREFIX, data, start, "header")
        if magic != IREE_PARAMETERS:
            raise FormatError("header", "does not start with IRPA", offset=start)
        # Archives of other versions tell their size, so that they could be left out; that would
        # also leave out what the program asks for.
        if (major, minor) != VERSION:
            reason = f"version {major}.{minor} is not 0.0"
            raise FormatError("header.version", reason, offset=start + 4)
        if size < _PREFIX.size + _HEADER.size:
            raise FormatError("header.header_size", f"{size} bytes", offset=start + 8)
        yield from _of_archive(data, start)
        if not following:
            return
        if following < size:
            raise FormatError("header.next_header_offset", "leads back", offset=start + 16)
        start += following


def _of_archive(data: memoryview, start: int) -> Iterator[tuple[int, Parameter]]:
    count, *ranges = _unpack(_HEADER, data, start + _PREFIX.size, "header")
    segments = list(zip(ranges[::2], ranges[1::2], strict=True))
    named = zip(("entry", "metadata", "storage"), segments, strict=True)
    for name, (offset, length) in named:
        if start + offset + length > len(data):
            reason = f"ends at byte {start + offset + length} of {len(data)}"
            raise FormatError(f"header.{name}_segment", reason, offset=start)
    (position, table), names, storage = segments
    archive, end = _Archive(data, start, names, storage), position + table
    for index in range(count):
        what = f"entries[{index}]"
        if position + _ENTRY.size > end:
            raise FormatError(what, "is not in the table of entries", offset=start + position)
        size, kind, *_ = _unpack(_ENTRY, data, start + position, what)
        if not _ENTRY.size <= size <= end - position:
            raise FormatError(f"{what}.entry_size", f"{size} bytes", offset=start + position)
        try:
            known = EntryKind(kind)
        except ValueError:
            raise FormatError(f"{what}.type", str(kind), offset=start + position + 8) from None
        if known is not EntryKind.SKIP:
            body = data[start + position : start + position + size]
            yield start + position, _entry(archive, known, body, what, start + position)
        position += -(-size // _ALIGNMENT) * _ALIGNMENT


def _entry(
    archive: _Archive, kind: EntryKind, body: memoryview, what: str, place: int
) -> Parameter:
    _, _, _, name, name_size, note, note_size, _ = _unpack(_ENTRY, body, 0, what)
    text = archive.text(name, name_size, f"{what}.name")
    metadata = bytes(archive.part(archive.names, note, note_size, f"{what}.metadata"))
    if kind is EntryKind.SPLAT:
        size, pattern, length = _unpack(_SPLAT, body, _ENTRY.size, what, place)
        if length not in _PATTERN_SIZES or size % length:
            reason = f"a pattern of {length} bytes for {size}"
            raise FormatError(f"{what}.pattern_length", reason, offset=place)
        return Parameter(text, kind, size, memoryview(pattern[:length]), "", metadata)
    if kind is EntryKind.DATA:
        offset, size = _unpack(_RANGE, body, _ENTRY.size, what, place)
        data = archive.part(archive.storage, offset, size, f"{what}.storage")
        return Parameter(text, kind, size, data, "", metadata)
    path, path_size, _, size = _unpack(_EXTERNAL, body, _ENTRY.size, what, place)
    other = archive.text(path, path_size, f"{what}.path")
    return Parameter(text, kind, size, memoryview(b""), other, metadata)


def _unpack(
    layout: struct.Struct, data: memoryview, offset: int, what: str, base: int = 0
) -> tuple[Any, ...]:
    if offset + layout.size > len(data):
        reason = f"{layout.size} bytes are needed, {max(len(data) - offset, 0)} left"
        raise FormatError(what, reason, offset=base + offset)
    return layout.unpack_from(data, offset)
