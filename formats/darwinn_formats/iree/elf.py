"""Headers of ELF payloads: what machine code a llvm-cpu executable holds. Nothing is executed."""

from __future__ import annotations

import struct
from dataclasses import dataclass

MAGIC = b"\x7fELF"
_MACHINES = {3: "x86", 40: "arm", 62: "x86-64", 183: "aarch64", 243: "risc-v"}
_TYPES = {1: "relocatable", 2: "executable", 3: "shared object"}
_IDENTIFICATION = 16
_MINIMUM = 52
"""Bytes of the header of 32 bits, the shorter one."""
_64_BIT, _LITTLE_ENDIAN = 2, 1


@dataclass(frozen=True, slots=True)
class Elf:
    """What the header of an ELF file says: its machine and its type, and its size in bytes."""

    machine: str
    type: str
    bits: int
    size: int


def read_elf(data: memoryview) -> Elf | None:
    """Header of little-endian ELF data, or None for other data."""
    if bytes(data[:4]) != MAGIC or len(data) < _MINIMUM:
        return None
    if data[5] != _LITTLE_ENDIAN:
        return None
    kind, machine = struct.unpack_from("<HH", data, _IDENTIFICATION)
    return Elf(
        _MACHINES.get(machine, f"machine {machine}"),
        _TYPES.get(kind, f"type {kind}"),
        64 if data[4] == _64_BIT else 32,
        len(data),
    )
