"""One engine for every flatbuffer format: verify, read and write, driven by dataclasses.

A format declares its tables as frozen dataclasses, and the dataclass fields carry the flatbuffer
types::

    @dataclass(frozen=True, slots=True)
    class FieldOffset:
        meta: Meta = table(Meta, required=True)
        offset_bit: int = int32()

Fields take the slots of the vtable in order (a union takes two); a table of which only a subset
is declared names the slot of a field and is marked ``open_table``. Nested flatbuffers are fields
like any other, so that one call verifies and reads a whole tree of buffers.

``verify`` checks everything that ``read`` follows: every offset, vtable, vector length, string,
union tag, enumeration value, alignment, the depth, and by a budget the total work and memory,
so that vectors that alias each other cannot make a small file large. The binary encoding is that
of the FlatBuffers internals document (https://flatbuffers.dev/internals/).
"""

from darwinn_formats.flatbuffer.encoding import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
)
from darwinn_formats.flatbuffer.fields import (
    boolean,
    byte_span,
    byte_vector,
    byte_view,
    enumeration,
    file_offset,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    nested,
    nested_string_vector,
    string,
    string_vector,
    struct_vector,
    table,
    table_vector,
    uint8,
    uint32,
    uint64,
    union,
    union_vector,
    vector,
)
from darwinn_formats.flatbuffer.schema import (
    OpaqueTable,
    Span,
    file_identifier,
    open_table,
)
from darwinn_formats.flatbuffer.tables import read, verify
from darwinn_formats.flatbuffer.view import Budget
from darwinn_formats.flatbuffer.writer import write

__all__ = [
    "BOOL",
    "FLOAT32",
    "FLOAT64",
    "INT8",
    "INT32",
    "INT64",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "Budget",
    "OpaqueTable",
    "Span",
    "boolean",
    "byte_span",
    "byte_vector",
    "byte_view",
    "enumeration",
    "file_identifier",
    "file_offset",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "nested",
    "nested_string_vector",
    "open_table",
    "read",
    "string",
    "string_vector",
    "struct_vector",
    "table",
    "table_vector",
    "uint8",
    "uint32",
    "uint64",
    "union",
    "union_vector",
    "vector",
    "verify",
    "write",
]
