"""How programs of the other formats begin: what a file is, by its content, without its loader."""

from __future__ import annotations

import struct
from typing import Final

from darwinn_formats.errors import FormatError

Buffer = bytes | memoryview

EXECUTORCH_PROGRAM: Final = b"ET12"
"""Identifiers, of the version that is read, of the flatbuffers of ExecuTorch."""
EXECUTORCH_DATA: Final = b"FT01"
EXECUTORCH_BUNDLE: Final = b"BP08"
IREE_MODULE: Final = b"IREE"
IREE_PARAMETERS: Final = b"IRPA"
BEF: Final = b"\x0b\xef"
_ZIP: Final = b"PK\3\4"

_LOCAL_HEADER = struct.Struct("<4sHHHHHIIIHH")
_STORED = 0
_ENCRYPTED = 1


def is_executorch(data: Buffer) -> bool:
    """Whether the content is that of a .pte, .ptd or .bpte, of whatever version."""
    kinds = (EXECUTORCH_PROGRAM, EXECUTORCH_DATA, EXECUTORCH_BUNDLE)
    return any(has_identifier(data, kind) for kind in kinds)


def is_executorch_data(data: Buffer) -> bool:
    """Whether the content is that of external data (.ptd), of whatever version."""
    return has_identifier(data, EXECUTORCH_DATA)


def is_executorch_bundle(data: Buffer) -> bool:
    """Whether the content is that of a bundled program (.bpte), of whatever version."""
    return has_identifier(data, EXECUTORCH_BUNDLE)


def is_iree(data: Buffer) -> bool:
    """Whether the content starts as an IREE module does, alone or as a zip archive."""
    try:
        start = module_start(data, 0)
    except FormatError:
        return False
    return bytes(data[start + 8 : start + 12]) == IREE_MODULE


def is_iree_parameters(data: Buffer) -> bool:
    """Whether the content starts as an archive of an IREE module's parameters (.irpa) does."""
    return bytes(data[: len(IREE_PARAMETERS)]) == IREE_PARAMETERS


def is_external_data(data: Buffer) -> bool:
    """Whether the content is data of a program that is in another file (.ptd, .irpa)."""
    return is_executorch_data(data) or is_iree_parameters(data)


def is_bef(data: Buffer) -> bool:
    """Whether the content starts as a BEF file does."""
    return bytes(data[: len(BEF)]) == BEF


def has_identifier(data: Buffer, identifier: bytes) -> bool:
    """Whether a flatbuffer has an identifier of ExecuTorch, of this version or another one."""
    found = bytes(data[4:8])
    return found[:2] == identifier[:2] and len(found) == 4 and found[2:].isdigit()


def module_start(data: Buffer, base: int) -> int:
    """Where an IREE module begins: 0, or behind the header of the first member of a zip archive.

    Raises:
        FormatError: the member is cut off or not merely stored; ``base`` is added to its offset.
    """
    if bytes(data[: len(_ZIP)]) != _ZIP:
        return 0
    if len(data) < _LOCAL_HEADER.size:
        reason = f"the file ends after {len(data)} bytes, within the header of a zip member"
        raise FormatError("zip member", reason, offset=base + len(data))
    header = _LOCAL_HEADER.unpack_from(data)
    flags, method, name_size, extra_size = header[2], header[3], header[9], header[10]
    if method != _STORED or flags & _ENCRYPTED:
        reason = f"the module is compressed (method {method}) or encrypted"
        raise FormatError("zip member", reason, offset=base + 6)
    return _LOCAL_HEADER.size + int(name_size) + int(extra_size)
