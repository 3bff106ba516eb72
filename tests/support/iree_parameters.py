"""Archives of parameters (.irpa) for tests, laid out as the public header says."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

SKIP, SPLAT, DATA, EXTERNAL = range(4)
HEADER_BYTES = 88


@dataclass(frozen=True)
class Entry:
    """A parameter: its bytes, or the bytes and the size of a pattern, or the path of a file."""

    name: str
    contents: bytes = b""
    splat: int | None = None
    path: str = ""
    skip: bool = False


def archive(
    entries: Sequence[Entry], following: int = 0, version: tuple[int, int] = (0, 0)
) -> bytes:
    """An archive; ``following`` is the offset of the next one."""
    table, names, storage = b"", b"", b""
    for entry in entries:
        name = len(names), len(entry.name.encode())
        names += entry.name.encode()
        if entry.splat is not None:
            kind, size = SPLAT, len(entry.contents)
            body = struct.pack("<Q16sB", entry.splat, entry.contents, size)
        elif entry.path:
            kind = EXTERNAL
            body = struct.pack("<4Q", len(names), len(entry.path), 0, 64)
            names += entry.path.encode()
        else:
            kind = DATA
            body = struct.pack("<2Q", len(storage), len(entry.contents))
            storage += entry.contents
        kind = SKIP if entry.skip else kind
        head = struct.pack("<QIQ2Q2QQ", 60 + len(body), kind, 0, *name, 0, 0, 0)
        table += (head + body).ljust(-(-(60 + len(body)) // 16) * 16, b"\0")
    start = HEADER_BYTES + 8
    segments = [start, len(table), start + len(table), len(names)]
    segments += [start + len(table) + len(names), len(storage)]
    header = struct.pack("<4sHHQQQ", b"IRPA", *version, HEADER_BYTES, following, 0)
    header += struct.pack("<7Q", len(entries), *segments)
    return header + bytes(8) + table + names + storage
