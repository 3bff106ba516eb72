"""Load the payload of an XNNPACK delegate: a header, the graph, the constant data after it.

Constant data may also be data of the program, or of a file of external data, by name. A payload
without the header is a graph that has its constant data within the flatbuffer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from darwinn_formats import flatbuffer as fb
from darwinn_formats.errors import FormatError
from darwinn_formats.executorch.xnnpack import check, schema
from darwinn_formats.executorch.xnnpack.schema import Graph
from darwinn_formats.signatures import Buffer

HEADER_MAGIC = b"XH00"
ROOTS: Mapping[bytes, type[Graph]] = {b"XN01": Graph, b"XN00": schema.OlderGraph}
"""Root tables of the graphs that are read, by the identifier."""
ALIGNMENT = 16
"""Bytes to which graph and constants are aligned in a payload that is written."""

_HEADER = struct.Struct("<4x4sHIIIQ")
"""Four bytes of zeros, magic, bytes of the header; offset and size of graph and of constants."""

Lookup = Callable[[str], memoryview]
"""Data by name; KeyError where there is none."""


@dataclass(frozen=True, slots=True)
class XnnpackGraph:
    """A graph with its constant data.

    Attributes:
        root: the graph.
        constants: constant data by its index; entry 0 is empty.
        values: the values by ``id_out``.
    """

    root: Graph
    constants: tuple[memoryview, ...] = field(repr=False)
    values: dict[int, schema.Value] = field(repr=False)

    def data(self, value: schema.Value) -> memoryview | None:
        """Bytes of a constant value; None for a value that is not constant."""
        index = value.tensor.constant_buffer_idx
        return self.constants[index] if index else None


def is_xnnpack(payload: Buffer) -> bool:
    """Whether a payload starts as one of this delegate."""
    return bytes(payload[4:8]) in (HEADER_MAGIC, *ROOTS)


def load(payload: Buffer, named_data: Lookup, *, base: int = 0) -> XnnpackGraph:
    """Read a payload and check all of it; ``base`` is where it starts in its file.

    Raises:
        FormatError: with offset and field, for anything that is not a valid graph.
    """
    data = memoryview(payload).toreadonly()
    start, size, constants = _extents(data, base)
    flat = data[start : start + size]
    identifier = bytes(flat[4:8])
    if identifier not in ROOTS:
        reason = f"{identifier!r} is neither of {', '.join(map(repr, ROOTS))}"
        offset = base + start + min(4, size)
        raise FormatError("file identifier", reason, offset=offset)
    budget = fb.Budget(len(data))
    root = fb.verify(flat, ROOTS[identifier], base=base + start, budget=budget).read()
    try:
        pieces = _constants(root, constants, named_data)
        values = check.check_graph(root, [len(piece) for piece in pieces])
    except FormatError as error:
        raise error.within("Graph") from None
    return XnnpackGraph(root, pieces, values)


def dump(root: Graph, constants: Sequence[Buffer] = ()) -> bytes:
    """Write a payload; ``constants`` are those from index 1 on.

    ``Graph.constant_data`` is set to where they are written.

    Raises:
        FormatError: naming the field, when a value does not fit its type.
    """
    placed, content = [schema.ConstantDataOffset()], b""
    for piece in constants:
        placed.append(schema.ConstantDataOffset(len(content), len(piece)))
        content += bytes(piece) + bytes(-len(piece) % ALIGNMENT)
    flat = fb.write(replace(root, constant_data=tuple(placed)))
    start = _HEADER.size + -_HEADER.size % ALIGNMENT
    padded = len(flat) + -len(flat) % ALIGNMENT
    header = _HEADER.pack(
        HEADER_MAGIC, _HEADER.size, start, len(flat), start + padded, len(content)
    )
    return header.ljust(start, b"\0") + flat.ljust(padded, b"\0") + content


def _extents(data: memoryview, base: int) -> tuple[int, int, memoryview | None]:
    """Start and size of the graph, and the bytes of the constants after it."""
    if bytes(data[4:8]) != HEADER_MAGIC:
        return 0, len(data), None
    if len(data) < _HEADER.size:
        reason = f"the payload ends after {len(data)} bytes, within its header"
        raise FormatError("XNNPACK header", reason, offset=base)
    _, length, start, size, first, count = _HEADER.unpack_from(data)
    fault = ""
    if length < _HEADER.size:
        fault, name, at = f"{length} bytes are fewer than {_HEADER.size}", "length", 8
    elif start < length or start + size > len(data):
        fault = f"graph from {start} to {start + size} in a payload of {len(data)} bytes"
        name, at = "flatbuffer_offset", 10
    elif first < start + size or first + count > len(data):
        fault = f"constants from {first} to {first + count} in a payload of {len(data)} bytes"
        name, at = "constant_data_offset", 18
    if fault:
        raise FormatError(f"XNNPACK header.{name}", fault, offset=base + at)
    return start, size, data[first : first + count]


_EMPTY = memoryview(b"")


def _constants(
    root: Graph, region: memoryview | None, named_data: Lookup
) -> tuple[memoryview, ...]:
    if region is None or (root.constant_buffer and not root.constant_data):
        buffers = (entry.storage for entry in root.constant_buffer)
        return tuple(_EMPTY if span is None else span.data for span in buffers)
    return tuple(
        _constant(index, entry, region, named_data)
        for index, entry in enumerate(root.constant_data)
    )


def _constant(
    index: int, entry: schema.ConstantDataOffset, region: memoryview, named_data: Lookup
) -> memoryview:
    if index == 0:
        return _EMPTY
    if entry.named_key:
        try:
            found = named_data(entry.named_key)
        except KeyError:
            reason = f"neither the program nor its external data has {entry.named_key!r}"
            raise _fault(index, "named_key", reason, entry.file_offset) from None
        if entry.size > len(found):
            reason = f"{entry.size} bytes of {len(found)}"
            raise _fault(index, "size", reason, entry.file_offset)
        return found[: entry.size] if entry.size else found
    if entry.offset + entry.size > len(region):
        reason = f"bytes {entry.offset} to {entry.offset + entry.size} of {len(region)}"
        raise _fault(index, "offset", reason, entry.file_offset)
    # Writers before the size was stored left it 0: the data goes on for as long as it must.
    return region[entry.offset : entry.offset + entry.size if entry.size else None]


def _fault(index: int, name: str, reason: str, offset: int) -> FormatError:
    return FormatError(f"constant_data[{index}].{name}", reason, offset=offset)
