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
from darwinn_formats.iree.schema import IDENTIFIER

ZIP_SIGNATURE = b"PK\3\4"
BLOB_ALIGNMENT = 64
"""Blobs start at a multiple of this, counted from the start of the file."""
MINIMUM_SIZE = 16
"""Bytes that a module has at least, behind the header of its zip member."""

_LOCAL_HEADER = struct.Struct("<4sHHHHHIIIHH")
_SIZE = struct.Struct("<I")
SIZE_PREFIX = _SIZE.size
"""Bytes of the size before the flatbuffer."""
_STORED = 0
_ENCRYPTED = 1

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


def looks_like(data: bytes | memoryview) -> bool:
    """Whether the data start as a module does: by content, not by name."""
    try:
        position = _module_position(memoryview(data), 0)[1]
    except FormatError:
        return False
    return bytes(data[position + 8 : position + 12]) == IDENTIFIER


def locate(data: memoryview, base: int = 0) -> Container:
    """Find the module in a file; ``base`` is added to the offsets of errors.

    Raises:
        FormatError: there is no module.
    """
    kind, position = _module_position(data, base)
    left = len(data) - position
    if left < MINIMUM_SIZE:
        reason = f"{left} bytes are fewer than the {MINIMUM_SIZE} of a module"
        raise FormatError("container", reason, offset=base + min(position, len(data)))
    size = _SIZE.unpack_from(data, position)[0]
    if size > left - _SIZE.size:
        reason = f"flatbuffer of {size} bytes in {left - _SIZE.size}"
        raise FormatError("size prefix", reason, offset=base + position)
    return Container(kind, position + _SIZE.size, size)


def _module_position(data: memoryview, base: int) -> tuple[Kind, int]:
    if bytes(data[:4]) != ZIP_SIGNATURE:
        return "flatbuffer", 0
    if len(data) < _LOCAL_HEADER.size:
        reason = f"the file ends after {len(data)} bytes, within the header of a zip member"
        raise FormatError("zip member", reason, offset=base + len(data))
    header = _LOCAL_HEADER.unpack_from(data)
    flags, method, name_size, extra_size = header[2], header[3], header[9], header[10]
    if method != _STORED or flags & _ENCRYPTED:
        reason = f"the module is compressed (method {method}) or encrypted"
        raise FormatError("zip member", reason, offset=base + 6)
    return "zip", _LOCAL_HEADER.size + name_size + extra_size
