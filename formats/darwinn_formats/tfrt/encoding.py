"""The numbers of the binary executable format: docs/formats-bef.md, "Encoding"."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from darwinn_formats.errors import FormatError

VERSION: Final = 0
PADDING: Final = 0xCC
KERNEL_ALIGNMENT: Final = 4
DENSE_ALIGNMENT: Final = 8
PSEUDO_KERNEL_CODE: Final = 0xABABABAB
PSEUDO_KERNEL_LOCATION: Final = 0xCDCDCDCD
ARRAY_FLAG: Final = 0x80
"""Bit of an attribute type that makes it an array of that type."""
NAMELESS: Final = ""
"""Name of the functions that are regions of kernels."""


class SectionId(IntEnum):
    """Sections that have a meaning; every other number is an unknown section."""

    STRINGS = 0
    ATTRIBUTES = 1
    KERNELS = 2
    TYPES = 3
    FUNCTION_INDEX = 4
    FUNCTIONS = 5
    LOCATION_STRINGS = 6
    LOCATIONS = 7
    ATTRIBUTE_TYPES = 8
    ATTRIBUTE_NAMES = 9
    REGISTER_TYPES = 10


class FunctionKind(IntEnum):
    """What a function is: kernels run as they become ready, a host function, or in order."""

    ASYNC = 0
    NATIVE = 1
    SYNC = 2


class LocationKind(IntEnum):
    """First byte of a location."""

    UNKNOWN = 0
    FILE_LINE_COLUMN = 1
    NAME = 2
    CALL_SITE = 3
    FUSED = 4


class DType(IntEnum):
    """Element types."""

    UI8 = 1
    UI16 = 2
    UI32 = 3
    UI64 = 4
    I1 = 5
    I8 = 6
    I16 = 7
    I32 = 8
    I64 = 9
    F32 = 10
    F64 = 11
    COMPLEX64 = 12
    COMPLEX128 = 13
    F16 = 14
    BF16 = 15
    STRING = 16
    RESOURCE = 17
    VARIANT = 18
    QUI8 = 19
    QUI16 = 20
    QI8 = 21
    QI16 = 22
    QI32 = 23


class Kind(IntEnum):
    """Attribute types that are not element types: they follow the last element type."""

    TYPE = 24
    FUNCTION = 25
    SHAPE = 26
    DENSE = 27
    SYMBOL = 28
    AGGREGATE = 29


@dataclass(frozen=True, slots=True)
class DTypeInfo:
    """How an element type is stored and written.

    Attributes:
        size: bytes of one element; 0 if elements have no fixed size.
        alignment: bytes.
        text: the type in the text form.
        numpy: the NumPy type of one element; bf16 is held as its bits. Empty without a size.
    """

    size: int
    alignment: int
    text: str
    numpy: str


DTYPES: Final[dict[DType, DTypeInfo]] = {
    DType.UI8: DTypeInfo(1, 1, "ui8", "u1"),
    DType.UI16: DTypeInfo(2, 2, "ui16", "<u2"),
    DType.UI32: DTypeInfo(4, 4, "ui32", "<u4"),
    DType.UI64: DTypeInfo(8, 8, "ui64", "<u8"),
    DType.I1: DTypeInfo(1, 1, "i1", "u1"),
    DType.I8: DTypeInfo(1, 1, "i8", "i1"),
    DType.I16: DTypeInfo(2, 2, "i16", "<i2"),
    DType.I32: DTypeInfo(4, 4, "i32", "<i4"),
    DType.I64: DTypeInfo(8, 8, "i64", "<i8"),
    DType.F32: DTypeInfo(4, 4, "f32", "<f4"),
    DType.F64: DTypeInfo(8, 8, "f64", "<f8"),
    DType.COMPLEX64: DTypeInfo(8, 4, "complex<f32>", "<c8"),
    DType.COMPLEX128: DTypeInfo(16, 8, "complex<f64>", "<c16"),
    DType.F16: DTypeInfo(2, 2, "f16", "<f2"),
    DType.BF16: DTypeInfo(2, 2, "bf16", "<u2"),
    DType.STRING: DTypeInfo(0, 1, "!corert.string", ""),
    DType.RESOURCE: DTypeInfo(0, 1, "!corert.resource", ""),
    DType.VARIANT: DTypeInfo(0, 1, "!corert.variant", ""),
    DType.QUI8: DTypeInfo(1, 1, "!corert.quint8", "u1"),
    DType.QUI16: DTypeInfo(2, 2, "!corert.quint16", "<u2"),
    DType.QI8: DTypeInfo(1, 1, "!corert.qint8", "i1"),
    DType.QI16: DTypeInfo(2, 2, "!corert.qint16", "<i2"),
    DType.QI32: DTypeInfo(4, 4, "!corert.qint32", "<i4"),
}

DTYPE_OF_TEXT: Final = {info.text: dtype for dtype, info in DTYPES.items()}

FLOATS: Final = frozenset({DType.F16, DType.BF16, DType.F32, DType.F64})
COMPLEX: Final = frozenset({DType.COMPLEX64, DType.COMPLEX128})
INTEGERS: Final = frozenset(
    dtype for dtype, info in DTYPES.items() if info.numpy and dtype not in FLOATS | COMPLEX
)
SCALARS: Final = (FLOATS | INTEGERS) - {
    DType.QUI8,
    DType.QUI16,
    DType.QI8,
    DType.QI16,
    DType.QI32,
}
"""Element types of which an attribute can be one value."""


def vbr(value: int) -> bytes:
    """An INTEGER: groups of seven bits, the most significant group first (not LEB128).

    Raises:
        FormatError: when the value is negative, which would have groups without end.
    """
    if value < 0:
        raise FormatError("INTEGER", f"{value} is negative")
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(value & 0x7F | 0x80)
    return bytes(reversed(groups))
