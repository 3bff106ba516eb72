"""The headers around the flatbuffers, and where the segments after them are.

A program (.pte) may have an extended header at byte 8; a data file (.ptd) always has one. Both
are between the identifier of the flatbuffer and its contents, so that the whole is still a
flatbuffer. All numbers are little-endian; offsets are in bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from darwinn_formats import flatbuffer as fb
from darwinn_formats.errors import FormatError
from darwinn_formats.executorch.schema import TENSOR_ALIGNMENT, DataSegment
from darwinn_formats.signatures import Buffer, has_identifier
from darwinn_formats.uses import BOTH, Part, uses

HEADER_OFFSET = 8
PROGRAM_MAGIC = b"eh00"
DATA_MAGIC = b"FH01"
SEGMENT_ALIGNMENT = 128
"""Bytes to which written segments are aligned."""

_SHORT = struct.Struct("<4sIQQ")
_LONG = struct.Struct("<4sIQQQ")
_DATA = struct.Struct("<4sIQQQQ")
_ROOT = struct.Struct("<I")
_SIZE_LIMIT = 2**64


@uses(shown="segment_size")
@dataclass(frozen=True, slots=True)
class ExtendedHeader:
    """Header of a program or of a data file.

    Attributes:
        length: bytes of the header, magic included; 24 or more.
        program_size: bytes of the flatbuffer, counted from the start of the program.
        segment_base: where the segments start, from the start of the program; 0 for none.
        segment_size: bytes of all segments; 0 where the header does not say.
    """

    length: int
    program_size: int
    segment_base: int
    segment_size: int = 0

    @property
    def end(self) -> int:
        """Bytes that the file has to have."""
        if self.segment_base == 0:
            return self.program_size
        return self.segment_base + self.segment_size


PARTS = (
    Part("Standard flatbuffer header", "[0..3] offset of the root table", refused="root offset"),
    Part("Standard flatbuffer header", "[4..7] magic", refused="is of another version than"),
    Part("ExecuTorch extended header", "[8..11] magic"),
    Part("ExecuTorch extended header", "[12..15] size of the header", (ExtendedHeader, "length")),
    Part(
        "ExecuTorch extended header",
        "[16..23] size of the program",
        (ExtendedHeader, "program_size"),
    ),
    Part(
        "ExecuTorch extended header",
        "[24..31] start of the segments",
        (ExtendedHeader, "segment_base"),
    ),
    Part("ExecuTorch extended header", "[31..?] padding"),
    Part("Flatbuffer-serialized program data", use=BOTH),
    Part("Segment data", use=BOTH),
    Part("Padding"),
)
"""The parts of a program file, as the document of the format names them. A file whose extended
header has another magic is one without an extended header."""


def check_identifier(data: Buffer, identifier: bytes, base: int) -> None:
    """Raise FormatError unless the data starts as a flatbuffer of the identifier."""
    if len(data) < HEADER_OFFSET:
        reason = f"{len(data)} bytes are fewer than the {HEADER_OFFSET} of root and identifier"
        raise FormatError("file identifier", reason, offset=base)
    found = bytes(data[4:8])
    if found == identifier:
        return
    what = "is of another version than" if has_identifier(data, identifier) else "is not"
    raise FormatError("file identifier", f"{found!r} {what} {identifier!r}", offset=base + 4)


def read_program_header(data: memoryview, base: int) -> ExtendedHeader | None:
    """The extended header of a program, checked against the size of the data; None without one."""
    if bytes(data[HEADER_OFFSET : HEADER_OFFSET + 4]) != PROGRAM_MAGIC:
        return None
    if len(data) < HEADER_OFFSET + _SHORT.size:
        raise _fault("length", f"the data ends after {len(data)} bytes", base)
    _, length, program_size, segment_base = _SHORT.unpack_from(data, HEADER_OFFSET)
    segment_size = 0
    if length < _SHORT.size:
        raise _fault("length", f"{length} bytes are fewer than {_SHORT.size}", base + 4)
    if length >= _LONG.size:
        if len(data) < HEADER_OFFSET + _LONG.size:
            raise _fault("length", f"the data ends after {len(data)} bytes", base)
        segment_size = _LONG.unpack_from(data, HEADER_OFFSET)[4]
    header = ExtendedHeader(length, program_size, segment_base, segment_size)
    _check_extent(header, data, base)
    return header


def read_data_header(data: memoryview, base: int = 0) -> ExtendedHeader:
    """The header of a data file, checked against the size of the data."""
    if bytes(data[HEADER_OFFSET : HEADER_OFFSET + 4]) != DATA_MAGIC:
        raise _fault("magic", f"the header does not start with {DATA_MAGIC!r}", base)
    if len(data) < HEADER_OFFSET + _DATA.size:
        raise _fault("length", f"the data ends after {len(data)} bytes", base)
    _, length, start, size, segment_base, segment_size = _DATA.unpack_from(data, HEADER_OFFSET)
    if length < _DATA.size:
        raise _fault("length", f"{length} bytes are fewer than {_DATA.size}", base + 4)
    # The flatbuffer starts behind the header, but its root offset counts from byte 0.
    header = ExtendedHeader(length, start + size, segment_base, segment_size)
    _check_extent(header, data, base)
    return header


def _check_extent(header: ExtendedHeader, data: memoryview, base: int) -> None:
    if header.program_size > len(data):
        reason = f"{header.program_size} bytes of program in a file of {len(data)}"
        raise _fault("program_size", reason, base + 8)
    if header.program_size < HEADER_OFFSET:
        raise _fault("program_size", f"{header.program_size} bytes hold no program", base + 8)
    if header.segment_base + header.segment_size >= _SIZE_LIMIT:
        raise _fault("segment_size", "segments end past 64 bits", base + 24)
    if header.end > len(data) or header.segment_base > len(data):
        reason = f"segments end at {header.end}, after the {len(data)} bytes of the file"
        raise _fault("segment_base", reason, base + 16)
    if 0 < header.segment_base < header.program_size:
        reason = f"segments start at {header.segment_base}, within the program"
        raise _fault("segment_base", reason, base + 16)


def _fault(field: str, reason: str, position: int) -> FormatError:
    return FormatError(f"extended header.{field}", reason, offset=HEADER_OFFSET + position)


def check_root(data: memoryview, base: int) -> None:
    """Raise FormatError if the root offset leads into the header or out of the data."""
    root = _ROOT.unpack_from(data)[0]
    if not HEADER_OFFSET <= root <= len(data) - _ROOT.size:
        reason = f"root offset {root} leads out of the {len(data)} bytes of the program"
        raise FormatError("root offset", reason, offset=base)


def check_segments(
    segments: Sequence[DataSegment], header: ExtendedHeader | None, size: int
) -> None:
    """Raise FormatError unless every segment is within the file of ``size`` bytes."""
    start = 0 if header is None else header.segment_base
    for index, segment in enumerate(segments):
        reason = ""
        if segment.size and not start:
            reason = "the file has no header that says where segments start"
        elif segment.size and start + segment.offset + segment.size > size:
            end = start + segment.offset + segment.size
            reason = f"segment ends at {end}, after the {size} bytes of the file"
        if reason:
            raise FormatError(f"segments[{index}]", reason, offset=segment.file_offset)


def place_segments(segments: Sequence[Buffer]) -> tuple[DataSegment, ...]:
    """Offsets, counted from the segment base, of segments that are written one after another."""
    placed, offset = [], 0
    for segment in segments:
        placed.append(DataSegment(offset, len(segment)))
        offset = _aligned(offset + len(segment))
    return tuple(placed)


def write_program(root: Any, segments: Sequence[Buffer]) -> bytes:
    """File of a program whose segment table is in place; a header only if there are segments."""
    flat = fb.write(root)
    if not any(segments):
        return flat
    size = len(flat) + _padded(_LONG.size)
    header = _LONG.pack(
        PROGRAM_MAGIC, _LONG.size, size, _aligned(size), _segment_bytes(root.segments)
    )
    return _with_segments(_with_header(flat, header), segments)


def write_data(root: Any, segments: Sequence[Buffer]) -> bytes:
    """File of external data whose segment table is in place."""
    flat = fb.write(root)
    start = HEADER_OFFSET + _DATA.size
    size = len(flat) + _padded(_DATA.size)
    header = _DATA.pack(
        DATA_MAGIC,
        _DATA.size,
        start,
        size - start,
        _aligned(size),
        _segment_bytes(root.segments),
    )
    return _with_segments(_with_header(flat, header), segments)


def _segment_bytes(segments: Sequence[DataSegment]) -> int:
    return max((entry.offset + entry.size for entry in segments), default=0)


def _with_header(flat: bytes, header: bytes) -> bytes:
    """The flatbuffer with a header after its identifier; padding keeps its alignment."""
    header = header.ljust(_padded(len(header)), b"\0")
    root = _ROOT.unpack_from(flat)[0] + len(header)
    return _ROOT.pack(root) + flat[4:HEADER_OFFSET] + header + flat[HEADER_OFFSET:]


def _padded(size: int) -> int:
    return size + -size % TENSOR_ALIGNMENT


def _with_segments(program: bytes, segments: Sequence[Buffer]) -> bytes:
    pieces = [program, bytes(_aligned(len(program)) - len(program))]
    for segment in segments[:-1]:
        pieces += [bytes(segment), bytes(-len(segment) % SEGMENT_ALIGNMENT)]
    return b"".join([*pieces, *(bytes(segment) for segment in segments[-1:])])


def _aligned(offset: int) -> int:
    return offset + -offset % SEGMENT_ALIGNMENT
