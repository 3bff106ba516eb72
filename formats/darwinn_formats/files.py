"""Files, read whole: with a bound, since a name may stand for a device or pipe that never ends."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from darwinn_formats.errors import FormatError

MAX_FILE_BYTES = 1 << 30
"""Bytes of the largest file that is read: half of what a flatbuffer can address."""

_PART_BYTES = 1 << 24


def read_file(path: str | os.PathLike[str], limit: int | None = None) -> bytes:
    """The bytes of a file, device or pipe.

    Raises:
        FormatError: there are more than ``limit``, or ``MAX_FILE_BYTES`` without one.
        OSError: the file cannot be read.
    """
    with Path(path).open("rb") as stream:
        return read_stream(stream, os.fspath(path), limit)


def read_stream(stream: BinaryIO, name: str, limit: int | None = None) -> bytes:
    """What is left of a stream, whose ``name`` goes into errors; raises as :func:`read_file`."""
    parts: list[bytes] = []
    most = MAX_FILE_BYTES if limit is None else limit
    left = most
    while part := stream.read(_PART_BYTES):
        parts.append(part)
        left -= len(part)
        if left < 0:
            raise FormatError("size", f"more than {most} bytes", file=name)
    return b"".join(parts)
