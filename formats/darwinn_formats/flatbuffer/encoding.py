"""Numbers as flatbuffers store them, and what values cost once they are read."""

from __future__ import annotations

import struct
from dataclasses import dataclass

IDENTIFIER_SIZE = 4
WIDEST = 8
"""Bytes of the widest number, which is the largest alignment."""
U16 = struct.Struct("<H")
U32 = struct.Struct("<I")
I32 = struct.Struct("<i")
VTABLE_HEADER = struct.Struct("<HH")
OBJECT_MEMORY = 56
VALUE_MEMORY = 40
"""Bytes that an object, and a value in it, take in Python at most."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """A number as flatbuffers store it: ``code`` as in the struct module, little-endian."""

    name: str
    code: str

    @property
    def size(self) -> int:
        """Bytes, which is also the alignment."""
        return struct.calcsize(f"<{self.code}")


BOOL = Primitive("bool", "?")
INT8 = Primitive("byte", "b")
UINT8 = Primitive("ubyte", "B")
INT16 = Primitive("short", "h")
UINT16 = Primitive("ushort", "H")
INT32 = Primitive("int", "i")
UINT32 = Primitive("uint", "I")
INT64 = Primitive("long", "q")
UINT64 = Primitive("ulong", "Q")
FLOAT32 = Primitive("float", "f")
FLOAT64 = Primitive("double", "d")
