"""What a BEF file says, as immutable dataclasses: attributes, locations, kernels, functions.

Values that the format stores as bytes are held as these bytes (``data``), so that nothing is lost
on the way; ``value`` interprets them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from darwinn_formats.tfrt.encoding import (
    ARRAY_FLAG,
    DTYPES,
    FLOATS,
    DType,
    FunctionKind,
    Kind,
)
from darwinn_formats.uses import uses

# --- attributes ----------------------------------------------------------------------------------


@uses()
@dataclass(frozen=True, slots=True)
class Scalar:
    """One number; ``data`` is little endian and has the size of the type."""

    dtype: DType
    data: bytes

    @staticmethod
    def of(dtype: DType, value: float) -> Scalar:
        """From a value; integers wrap like the C++ conversion of the original."""
        return Scalar(dtype, encode(dtype, [value]))

    @property
    def value(self) -> int | float | complex:
        """The number."""
        (value,) = decode(self.dtype, self.data).tolist()
        return value  # type: ignore[no-any-return]

    @property
    def code(self) -> int:
        """Attribute type."""
        return int(self.dtype)


@uses()
@dataclass(frozen=True, slots=True)
class String:
    """Bytes of a string, which need not be UTF-8."""

    code: ClassVar[int] = int(DType.STRING)
    data: bytes

    @property
    def value(self) -> str:
        """The text; bytes that are not UTF-8 are replaced."""
        return self.data.decode("utf-8", "replace")


@uses(shown="data")
@dataclass(frozen=True, slots=True)
class FunctionName:
    """The attribute kind ``func``: the name of a function, as bytes."""

    code: ClassVar[int] = int(Kind.FUNCTION)
    data: bytes


@uses(shown="dtype")
@dataclass(frozen=True, slots=True)
class Type:
    """An element type."""

    code: ClassVar[int] = int(Kind.TYPE)
    dtype: DType


@uses(shown="dims")
@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the dimensions, -1 where unknown; None when the rank is unknown."""

    code: ClassVar[int] = int(Kind.SHAPE)
    dims: tuple[int, ...] | None


@uses()
@dataclass(frozen=True, slots=True)
class Array:
    """Elements of one type of fixed size: an element type, or ``Kind.TYPE`` (one byte each)."""

    element: DType | Kind
    data: bytes

    @property
    def value(self) -> list[int] | list[float] | list[complex]:
        """The elements."""
        if isinstance(self.element, Kind):
            return list(self.data)
        return decode(self.element, self.data).tolist()  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return 1 if isinstance(self.element, Kind) else DTYPES[self.element].size

    @property
    def code(self) -> int:
        """Attribute type."""
        return int(self.element) | ARRAY_FLAG


@uses()
@dataclass(frozen=True, slots=True)
class Dense:
    """A tensor: elements in row-major order."""

    code: ClassVar[int] = int(Kind.DENSE)
    dtype: DType
    dims: tuple[int, ...]
    data: bytes

    @property
    def value(self) -> NDArray[np.generic]:
        """The tensor."""
        return decode(self.dtype, self.data).reshape(self.dims)


@uses(shown="id root nested unit")
@dataclass(frozen=True, slots=True)
class Symbol:
    """A reference into a serialised compilation unit, whose bytes are carried as they are."""

    code: ClassVar[int] = int(Kind.SYMBOL)
    id: int
    root: bytes
    nested: tuple[bytes, ...] = ()
    unit: bytes = b""


@uses()
@dataclass(frozen=True, slots=True)
class Aggregate:
    """Attributes of any types; at least one, for a list without elements is an empty array."""

    code: ClassVar[int] = int(Kind.AGGREGATE)
    elements: tuple[Attribute, ...]


@uses()
@dataclass(frozen=True, slots=True)
class Untyped:
    """An attribute of a file without AttributeTypes: only its offset in the section is known."""

    offset: int


Attribute = (
    Scalar | String | FunctionName | Type | Shape | Array | Dense | Symbol | Aggregate | Untyped
)
EMPTY_ARRAY = Array(DType.I32, b"")
"""A list without elements: its type is array of i32."""


def decode(dtype: DType, data: bytes) -> NDArray[np.generic]:
    """Elements as NumPy values; i1 as bool, bf16 widened to float32."""
    array: NDArray[np.generic] = np.frombuffer(data, DTYPES[dtype].numpy)
    if dtype is DType.I1:
        return array.astype(np.bool_)
    if dtype is DType.BF16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


def encode(dtype: DType, values: list[float] | list[int]) -> bytes:
    """The bytes of elements; integers wrap, bf16 rounds to the nearest, ties to even."""
    info = DTYPES[dtype]
    if dtype is DType.BF16:
        bits = np.array(values, np.float32).view(np.uint32)
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        # Rounding would carry a NaN into another number.
        quiet = np.where(np.isnan(bits.view(np.float32)), bits >> 16 | 0x40, rounded)
        return quiet.astype("<u2").tobytes()
    if dtype in FLOATS or info.numpy.startswith("<c"):
        with np.errstate(over="ignore"):
            return np.array(values).astype(info.numpy).tobytes()
    mask = (1 << 8 * info.size) - 1
    return b"".join((int(value) & mask).to_bytes(info.size, "little") for value in values)


# --- locations -----------------------------------------------------------------------------------


@uses()
@dataclass(frozen=True, slots=True)
class UnknownLocation:
    """A location that says nothing."""


@uses()
@dataclass(frozen=True, slots=True)
class FileLineColumn:
    """A place in a source file."""

    file: str
    line: int
    column: int


@uses(shown="child")
@dataclass(frozen=True, slots=True)
class NameLocation:
    """A name for a location."""

    name: str
    child: Location = UnknownLocation()


@uses(shown="caller")
@dataclass(frozen=True, slots=True)
class CallSite:
    """A place that was reached by a call."""

    callee: Location
    caller: Location


@uses()
@dataclass(frozen=True, slots=True)
class Fused:
    """Several locations that an operation stands for."""

    locations: tuple[Location, ...]


Location = UnknownLocation | FileLineColumn | NameLocation | CallSite | Fused


# --- functions -----------------------------------------------------------------------------------


@uses(shown="uses type")
@dataclass(frozen=True, slots=True)
class Register:
    """A value of a function; ``type`` is None in a file without RegisterTypes."""

    uses: int
    type: str | None


@uses(shown="attribute_names")
@dataclass(frozen=True, slots=True)
class Kernel:
    """One call of a kernel.

    Attributes:
        name: of the kernel implementation.
        location: None in a file without Locations.
        arguments: registers read.
        attributes: indexes into ``BefFile.attributes``.
        attribute_names: as many, or None in a file without AttributeNames.
        functions: indexes into ``BefFile.functions``.
        results: registers written.
        used_by: for each result the kernels that read it, once for each operand.
        ready_count: operands that have to be available; the number of arguments.
        stream: kernels of one stream run one after another.
        location_offset: the number in the file; the only name of a location of which there are
            no Locations.
    """

    name: str
    location: Location | None
    arguments: tuple[int, ...]
    attributes: tuple[int, ...]
    attribute_names: tuple[str, ...] | None
    functions: tuple[int, ...]
    results: tuple[int, ...]
    used_by: tuple[tuple[int, ...], ...]
    ready_count: int
    stream: int
    location_offset: int = field(default=0, compare=False)


@uses(shown="location")
@dataclass(frozen=True, slots=True)
class Body:
    """What a function that is not native does.

    Attributes:
        location: of the function, or None in a file without Locations.
        registers: arguments first, then the results of the kernels.
        entry_stream: stream of the pseudo kernel.
        entry_used_by: kernels without operands, then the users of each argument.
        kernels: numbered from 1 in ``used_by``; 0 is the pseudo kernel.
        results: registers that the function returns.
    """

    location: Location | None
    registers: tuple[Register, ...]
    entry_stream: int
    entry_used_by: tuple[tuple[int, ...], ...]
    kernels: tuple[Kernel, ...]
    results: tuple[int, ...]
    location_offset: int = field(default=0, compare=False)


@uses()
@dataclass(frozen=True, slots=True)
class Function:
    """An entry of the function index; the nameless ones are regions of kernels."""

    kind: FunctionKind
    name: str
    argument_types: tuple[str, ...]
    result_types: tuple[str, ...]
    body: Body | None


@uses(shown="id alignment data")
@dataclass(frozen=True, slots=True)
class UnknownSection:
    """A section of another kind; ``alignment`` is 1 when the file does not say."""

    id: int
    alignment: int
    data: bytes


@uses(shown="kernel_names types strings has_attribute_names has_register_types unknown_sections")
@dataclass(frozen=True, slots=True)
class BefFile:
    """A BEF file.

    Attributes:
        functions: in the order of the function index.
        attributes: in the order of the section.
        kernel_names: the kernels section.
        types: the types section.
        strings: all strings, in the order of the section.
        has_attribute_names: whether AttributeNames is there.
        has_register_types: whether RegisterTypes is there.
        attribute_data: the attributes section of a file without AttributeTypes, else None.
        unknown_sections: kept, and written after all others.
        file: its name; no part of comparisons.
    """

    functions: tuple[Function, ...]
    attributes: tuple[Attribute, ...]
    kernel_names: tuple[str, ...]
    types: tuple[str, ...]
    strings: tuple[str, ...]
    has_attribute_names: bool = True
    has_register_types: bool = True
    attribute_data: bytes | None = None
    unknown_sections: tuple[UnknownSection, ...] = ()
    file: str = field(default="<bytes>", compare=False)

    def function(self, name: str) -> Function | None:
        """The function of that name, or None."""
        return next((entry for entry in self.functions if entry.name == name != ""), None)
