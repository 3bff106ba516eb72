"""Where in its bytes a module is: behind the header of a zip member or not, and its blobs.

A module is a flatbuffer behind its size in four bytes. As a zip archive, the first member of the
file is the module and every other member is a blob of data; members are stored, not compressed.
The zip directory is not needed to find anything: the size before the flatbuffer is exact (that
of the zip member is 4 bytes less), and the offsets of the blobs count from the end of the
flatbuffer, rounded up to 64 bytes of the file, over the local headers of their members.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

from darwinn_formats.errors import FormatError
from darwinn_formats.signatures import module_start

BLOB_ALIGNMENT = 64
"""Blobs start at a multiple of this, counted from the start of the file."""
MINIMUM_SIZE = 16
"""Bytes that a module has at least, behind the header of its zip member."""

_SIZE = struct.Struct("<I")
SIZE_PREFIX = _SIZE.size
"""Bytes of the size before the flatbuffer."""

Kind = Literal["zip", "flatbuffer"]


@dataclass(frozen=True, slots=True)
class Container:
    """Places in a file, in bytes from its start.

    Attributes:
        kind: whether the module is the first member of a zip archive.
        start: where the flatbuffer starts, behind its size.
        size: bytes of the flatbuffer.
        blobs: where the offsets of external data count from.
    """

    kind: Kind
    start: int
    size: int

    @property
    def end(self) -> int:
        """Where the flatbuffer ends."""
        return self.start + self.size

    @property
    def blobs(self) -> int:
        """Where the offsets of external data count from."""
        return -(-self.end // BLOB_ALIGNMENT) * BLOB_ALIGNMENT


def locate(data: memoryview, base: int = 0) -> Container:
    """Find the module in a file; ``base`` is added to the offsets of errors.

    Raises:
        FormatError: there is no module.
    """
    position = module_start(data, base)
    left = len(data) - position
    if left < MINIMUM_SIZE:
        reason = f"{left} bytes are fewer than the {MINIMUM_SIZE} of a module"
        raise FormatError("container", reason, offset=base + min(position, len(data)))
    size = _SIZE.unpack_from(data, position)[0]
    if size > left - _SIZE.size:
        reason = f"flatbuffer of {size} bytes in {left - _SIZE.size}"
        raise FormatError("size prefix", reason, offset=base + position)
    return Container("zip" if position else "flatbuffer", position + _SIZE.size, size)
