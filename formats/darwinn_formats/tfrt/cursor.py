"""A checked position in a part of a file: nothing is read beyond its end."""

from __future__ import annotations

import struct

from darwinn_formats.errors import FormatError

_LONGEST_INTEGER = 10
"""Bytes of the longest INTEGER: ten groups of seven bits hold 64 bits."""


class Cursor:
    """Reads ``data[position:end]``; positions are offsets in the file.

    Every method takes the name of the field it reads, and raises a FormatError that names it.
    """

    __slots__ = ("data", "end", "path", "position", "start")

    def __init__(self, data: bytes, start: int, end: int, path: str) -> None:
        self.data = data
        self.start = start
        self.position = start
        self.end = end
        self.path = path

    def fail(self, field: str, reason: str, at: int | None = None) -> FormatError:
        """The error to raise for a field that starts at ``at``, or here."""
        path = f"{self.path}.{field}" if field else self.path
        return FormatError(path, reason, offset=self.position if at is None else at)

    def at(self, offset: int, field: str) -> Cursor:
        """A cursor on the same part, at an offset from its start."""
        if offset >= self.end - self.start:
            reason = f"offset {offset} is beyond the {self.end - self.start} bytes"
            raise self.fail(field, reason)
        cursor = Cursor(self.data, self.start, self.end, self.path)
        cursor.position += offset
        return cursor

    @property
    def remaining(self) -> int:
        """Bytes up to the end."""
        return self.end - self.position

    def bytes(self, size: int, field: str) -> bytes:
        """The next ``size`` bytes."""
        if size > self.remaining:
            raise self.fail(field, f"{size} bytes are needed, {self.remaining} are there")
        self.position += size
        return self.data[self.position - size : self.position]

    def byte(self, field: str) -> int:
        """The next byte."""
        if self.position >= self.end:
            raise self.fail(field, "the data ends here")
        self.position += 1
        return self.data[self.position - 1]

    def fixed(self, size: int, field: str) -> int:
        """A little-endian unsigned number of ``size`` bytes."""
        return int.from_bytes(self.bytes(size, field), "little")

    def words(self, count: int, field: str) -> tuple[int, ...]:
        """As many FIXED32."""
        return struct.unpack(f"<{count}I", self.bytes(4 * count, field))

    def integer(self, field: str) -> int:
        """An INTEGER; at most 64 bits in at most ten bytes."""
        start, value = self.position, 0
        while True:
            byte = self.byte(field)
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                break
            if self.position - start == _LONGEST_INTEGER:
                raise self.fail(field, "the integer is longer than ten bytes", start)
        if value >> 64:
            raise self.fail(field, "the integer has more than 64 bits", start)
        return value

    def count(self, field: str, size: int = 1) -> int:
        """An INTEGER that counts entries of at least ``size`` bytes each, all of them here."""
        start = self.position
        return self._checked(self.integer(field), field, size, start)

    def fixed_count(self, field: str, size: int) -> int:
        """A FIXED32 that counts entries of ``size`` bytes each, all of them here."""
        start = self.position
        return self._checked(self.fixed(4, field), field, size, start)

    def _checked(self, count: int, field: str, size: int, start: int) -> int:
        if count * size > self.remaining:
            reason = f"{count} entries do not fit into the {self.remaining} bytes that follow"
            raise self.fail(field, reason, start)
        return count

    def align(self, alignment: int, field: str) -> None:
        """Skip to the next multiple of ``alignment`` in the file."""
        self.bytes(-self.position % alignment, field)

    def index(self, count: int, what: str, field: str) -> int:
        """An INTEGER below ``count``."""
        start = self.position
        return self.below(self.integer(field), count, what, field, start)

    def below(self, value: int, count: int, what: str, field: str, at: int) -> int:
        """``value``, which has to be below ``count``."""
        if value >= count:
            raise self.fail(field, f"{what} {value} of {count} does not exist", at)
        return value

    def expect_end(self, field: str) -> None:
        """Nothing may follow."""
        if self.remaining:
            raise self.fail(field, f"{self.remaining} bytes follow the last entry")
