"""Bytes of a part of a file that is being written, with the alignment that the part needs."""

from __future__ import annotations

from darwinn_formats.errors import FormatError
from darwinn_formats.tfrt.encoding import PADDING, vbr


class Emitter:
    """A growing part of a file; its ``alignment`` is the largest that anything in it asked for.

    Methods that append give the offset at which they did.
    """

    def __init__(self) -> None:
        self.data = bytearray()
        self.alignment = 1

    @property
    def size(self) -> int:
        """Bytes so far."""
        return len(self.data)

    def append(self, data: bytes | bytearray) -> int:
        """Append bytes."""
        offset = len(self.data)
        self.data += data
        return offset

    def pad(self, count: int) -> None:
        """Append bytes that mean nothing."""
        self.data += bytes([PADDING]) * count

    def align(self, alignment: int, before: int = 0) -> None:
        """Pad so that what comes ``before`` bytes later is aligned."""
        self.alignment = max(self.alignment, alignment)
        self.pad(-(len(self.data) + before) % alignment)

    def integer(self, value: int) -> int:
        """Append an INTEGER. Raises ``FormatError`` when the value is negative."""
        return self.append(vbr(value))

    def fixed(self, value: int, field: str) -> int:
        """Append a FIXED32, aligned.

        Raises:
            FormatError: when the value has more than 32 bits.
        """
        if not 0 <= value < 1 << 32:
            raise FormatError(field, f"{value} does not fit into 32 bits")
        self.align(4)
        return self.append(value.to_bytes(4, "little"))

    def overwrite(self, offset: int, value: int) -> None:
        """Replace a FIXED32."""
        self.data[offset : offset + 4] = value.to_bytes(4, "little")

    def part(self, part: Emitter) -> int:
        """Append a part, aligned as it needs."""
        self.align(part.alignment)
        return self.append(part.data)
