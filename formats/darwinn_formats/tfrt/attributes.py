"""Attributes as they are stored: reading and writing of one value of each kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from darwinn_formats.errors import FormatError
from darwinn_formats.tfrt.cursor import Cursor
from darwinn_formats.tfrt.emitter import Emitter
from darwinn_formats.tfrt.encoding import (
    ARRAY_FLAG,
    DENSE_ALIGNMENT,
    DTYPES,
    SCALARS,
    DType,
    Kind,
)
from darwinn_formats.tfrt.model import (
    Aggregate,
    Array,
    Attribute,
    Dense,
    FunctionName,
    Scalar,
    Shape,
    String,
    Symbol,
    Type,
    Untyped,
)

MAXIMUM_DEPTH: Final = 64
"""Aggregates in aggregates."""
MAXIMUM_RANK: Final = 255

_BASE = 8
"""Bytes of alignment, element type, prefix size and byte size."""
_WORD = 4
_DIMENSION = 8
_ARRAY_ELEMENTS = frozenset({DType(d) for d in DTYPES if DTYPES[d].size} | {Kind.TYPE})
STORED: Final = frozenset({d for d in DType if DTYPES[d].size} | {DType.STRING})
"""Element types of which attributes are stored; the others only occur as a type."""
UNKNOWN: Final = "is not known"
"""How other attribute types are refused."""
_DENSE_ELEMENTS = frozenset({*SCALARS, DType.COMPLEX64, DType.COMPLEX128})

# --- reading -------------------------------------------------------------------------------------


class AttributeReader:
    """Reads attributes of one section.

    Attributes never share bytes in a file that was written; a file in which they do could be
    small and yet mean any amount of data, so the bytes read may not exceed those of the section.
    """

    def __init__(self, section: Cursor) -> None:
        self.section = section
        self.budget = section.remaining

    def read(self, offset: int, code: int, path: str, depth: int = 0) -> Attribute:
        """The attribute of type ``code`` at an offset in the section."""
        cursor = self.section.at(offset, path)
        start = cursor.position
        if depth > MAXIMUM_DEPTH:
            raise cursor.fail(path, f"aggregates are nested more than {MAXIMUM_DEPTH} deep")
        value = self._reader(code, cursor, path)(cursor, path, depth)
        if not isinstance(value, Aggregate):
            # The elements of an aggregate have been counted one by one.
            self.budget -= cursor.position - start
        if self.budget < 0:
            raise cursor.fail(path, "attributes overlap", start)
        return value

    def _reader(
        self, code: int, cursor: Cursor, path: str
    ) -> Callable[[Cursor, str, int], Attribute]:
        if code & ARRAY_FLAG:
            element = _kind(code & ~ARRAY_FLAG)
            if element in _ARRAY_ELEMENTS:
                return lambda cursor, path, _: self._array(element, cursor, path)
        kind = _kind(code)
        if isinstance(kind, DType) and kind in SCALARS:
            return lambda cursor, path, _: self._scalar(kind, cursor, path)
        reader = self._KINDS.get(kind) if kind else None
        if reader is None:
            raise cursor.fail(path, f"attribute type {code} {UNKNOWN}")
        return lambda cursor, path, depth: reader(self, cursor, path, depth)

    def _scalar(self, dtype: DType, cursor: Cursor, path: str) -> Scalar:
        info = DTYPES[dtype]
        _check_alignment(cursor, info.alignment, path)
        start = cursor.position
        data = cursor.bytes(info.size, path)
        if dtype is DType.I1 and data[0] > 1:
            raise cursor.fail(path, f"i1 of value {data[0]}", start)
        return Scalar(dtype, data)

    def _string(self, cursor: Cursor, path: str, _: int) -> String:
        return String(self._text(cursor, path))

    def _function(self, cursor: Cursor, path: str, _: int) -> FunctionName:
        return FunctionName(self._text(cursor, path))

    def _text(self, cursor: Cursor, path: str) -> bytes:
        _check_alignment(cursor, _WORD, path)
        return cursor.bytes(cursor.fixed_count(f"{path}.count", 1), path)

    def _type(self, cursor: Cursor, path: str, _: int) -> Type:
        return Type(self._dtype(cursor, path))

    def _dtype(self, cursor: Cursor, path: str) -> DType:
        start = cursor.position
        number = cursor.byte(path)
        kind = _kind(number)
        if not isinstance(kind, DType):
            raise cursor.fail(path, f"element type {number} is not known", start)
        return kind

    def _array(self, element: DType | Kind, cursor: Cursor, path: str) -> Array:
        _check_alignment(cursor, _WORD, path)
        size = 1 if isinstance(element, Kind) else DTYPES[element].size
        start = cursor.position
        count = cursor.fixed_count(f"{path}.count", size)
        if count:
            _check_alignment(cursor, min(size, DENSE_ALIGNMENT), path)
        data = cursor.bytes(count * size, path)
        if element is DType.I1 and data.strip(b"\0\1"):
            raise cursor.fail(path, "i1 of a value above 1", start)
        if isinstance(element, Kind) and any(not isinstance(_kind(n), DType) for n in set(data)):
            raise cursor.fail(path, "element type that is not known", start)
        return Array(element, data)

    def _shape(self, cursor: Cursor, path: str, _: int) -> Shape:
        # A shape of unknown rank is one zero word; the base of others starts with an alignment.
        if cursor.remaining and cursor.data[cursor.position] == 0:
            if cursor.fixed(_WORD, path):
                raise cursor.fail(path, "the alignment is 0", cursor.position - _WORD)
            return Shape(None)
        start = cursor.position
        _check_alignment(cursor, _WORD, path)
        size = self._base(cursor, path)[1]
        dims = self._dims(cursor, path)
        if size != cursor.position - start:
            raise cursor.fail(f"{path}.byte_size", f"is {size}, not {cursor.position - start}")
        return Shape(dims)

    def _base(self, cursor: Cursor, path: str) -> tuple[int, int]:
        """Element type and byte size; alignment and prefix size follow from the rest."""
        alignment = cursor.byte(f"{path}.alignment")
        if alignment not in (_WORD, DENSE_ALIGNMENT):
            raise cursor.fail(f"{path}.alignment", f"is {alignment}", cursor.position - 1)
        element = cursor.byte(f"{path}.element_type")
        cursor.fixed(2, f"{path}.prefix_size")
        return element, cursor.fixed(_WORD, f"{path}.byte_size")

    def _dims(self, cursor: Cursor, path: str) -> tuple[int, ...]:
        start = cursor.position
        rank = cursor.fixed_count(f"{path}.rank", _DIMENSION)
        if rank > MAXIMUM_RANK:
            raise cursor.fail(f"{path}.rank", f"rank {rank} is above {MAXIMUM_RANK}", start)
        if rank:
            _check_alignment(cursor, _DIMENSION, path)
        data = [cursor.bytes(_DIMENSION, path) for _ in range(rank)]
        return tuple(int.from_bytes(entry, "little", signed=True) for entry in data)

    def _dense(self, cursor: Cursor, path: str, _: int) -> Dense:
        start = cursor.position
        _check_alignment(cursor, _WORD, path)
        element, size = self._base(cursor, path)
        dtype = _kind(element)
        if dtype not in _DENSE_ELEMENTS or not isinstance(dtype, DType):
            raise cursor.fail(path, f"element type {element} is not known", start)
        element_offset = cursor.fixed(_WORD, f"{path}.element_offset")
        count = cursor.fixed(_WORD, f"{path}.element_count")
        dims = self._dims(cursor, path)
        if any(dim < 0 for dim in dims) or math.prod(dims) != count:
            raise cursor.fail(path, f"{count} elements for the shape {list(dims)}", start)
        if element_offset != cursor.position - start:
            reason = f"is {element_offset}, not {cursor.position - start}"
            raise cursor.fail(f"{path}.element_offset", reason, start)
        _check_alignment(cursor, DENSE_ALIGNMENT, path)
        expected = element_offset + count * DTYPES[dtype].size
        if size != expected:
            raise cursor.fail(f"{path}.byte_size", f"is {size}, not {expected}", start)
        data = cursor.bytes(size - element_offset, path)
        if dtype is DType.I1 and data.strip(b"\0\1"):
            raise cursor.fail(path, "i1 of a value above 1", start)
        return Dense(dtype, dims, data)

    def _aggregate(self, cursor: Cursor, path: str, depth: int) -> Aggregate:
        start = cursor.position
        _check_alignment(cursor, _WORD, path)
        size = self._base(cursor, path)[1]
        count = cursor.fixed_count(f"{path}.count", _WORD)
        if count == 0:
            raise cursor.fail(path, "an aggregate has at least one element", start)
        if size > self.section.end - start:
            raise cursor.fail(f"{path}.byte_size", f"{size} bytes reach beyond the section", start)
        self.budget -= _BASE + _WORD + count * _WORD
        elements = []
        for number in range(count):
            at = cursor.position
            offset = cursor.fixed(_WORD, f"{path}.offsets[{number}]")
            if not _BASE + _WORD + count * _WORD < offset < size:
                reason = f"offset {offset} is not in the {size} bytes of the aggregate"
                raise cursor.fail(f"{path}.offsets[{number}]", reason, at)
            code = cursor.data[start + offset - 1]
            place = start + offset - self.section.start
            elements.append(self.read(place, code, f"{path}[{number}]", depth + 1))
        return Aggregate(tuple(elements))

    def _symbol(self, cursor: Cursor, path: str, _: int) -> Symbol:
        number = cursor.integer(f"{path}.id")
        root = cursor.count(f"{path}.root")
        lengths = [
            cursor.count(f"{path}.nested") for _ in range(cursor.count(f"{path}.nested count"))
        ]
        unit = cursor.count(f"{path}.unit")
        symbol = Symbol(
            number,
            cursor.bytes(root, f"{path}.root"),
            tuple(cursor.bytes(length, f"{path}.nested") for length in lengths),
            cursor.bytes(unit, f"{path}.unit"),
        )
        if cursor.byte(path):
            raise cursor.fail(path, "no zero follows the symbol", cursor.position - 1)
        return symbol

    _KINDS: Final[dict[DType | Kind, Callable[[AttributeReader, Cursor, str, int], Attribute]]] = {
        DType.STRING: _string,
        Kind.FUNCTION: _function,
        Kind.TYPE: _type,
        Kind.SHAPE: _shape,
        Kind.DENSE: _dense,
        Kind.SYMBOL: _symbol,
        Kind.AGGREGATE: _aggregate,
    }


def _kind(number: int) -> DType | Kind | None:
    for numbers in (DType, Kind):
        try:
            return numbers(number)
        except ValueError:
            continue
    return None


def _check_alignment(cursor: Cursor, alignment: int, path: str) -> None:
    if cursor.position % alignment:
        raise cursor.fail(path, f"not aligned to {alignment} bytes")


# --- writing -------------------------------------------------------------------------------------


def emit_attribute(section: Emitter, attribute: Attribute, path: str) -> int:
    """Append an attribute; gives its offset.

    Raises:
        FormatError: when a value does not fit its type, or is an attribute without a type.
    """
    emit = _EMITTERS.get(type(attribute))
    if emit is None:
        raise FormatError(path, "an attribute without a type cannot be written again")
    return emit(section, attribute, path)


def alignment_of(attribute: Attribute) -> int:
    """The alignment that an aggregate counts for an element; shapes of unknown rank have none."""
    match attribute:
        case Scalar():
            return DTYPES[attribute.dtype].size
        case String() | FunctionName():
            return _WORD
        case Type() | Symbol() | Shape(None):
            return 1
        case _:
            return _DIMENSION


def _emit_scalar(section: Emitter, attribute: Scalar, path: str) -> int:
    info = DTYPES[attribute.dtype]
    if attribute.dtype not in SCALARS or len(attribute.data) != info.size:
        raise FormatError(path, f"not a value of type {info.text}")
    section.align(info.alignment)
    return section.append(attribute.data)


def _emit_string(section: Emitter, attribute: String | FunctionName, path: str) -> int:
    section.align(_WORD)
    offset = section.fixed(len(attribute.data), path)
    section.append(attribute.data)
    return offset


def _emit_type(section: Emitter, attribute: Type, path: str) -> int:
    return section.append(bytes([attribute.dtype]))


def _emit_array(section: Emitter, attribute: Array, path: str) -> int:
    if attribute.element not in _ARRAY_ELEMENTS or len(attribute.data) % attribute.size:
        raise FormatError(path, "not an array of elements of a fixed size")
    count = len(attribute.data) // attribute.size
    alignment = min(attribute.size, DENSE_ALIGNMENT)
    if alignment <= _WORD or count == 0:
        section.align(_WORD)
    else:
        section.align(alignment, before=_WORD)
    offset = section.fixed(count, path)
    section.append(attribute.data)
    return offset


def _emit_header(
    section: Emitter, alignment: int, element: int, prefix: int, size: int, path: str
) -> int:
    section.align(alignment, before=prefix)
    offset = section.append(bytes([alignment, element]))
    # The field has 16 bits and the original drops the others; nothing needs it.
    section.append((prefix & 0xFFFF).to_bytes(2, "little"))
    section.fixed(size, path)
    return offset


def _emit_dims(section: Emitter, dims: tuple[int, ...], path: str) -> None:
    section.fixed(len(dims), path)
    for dim in dims:
        if not -(1 << 63) <= dim < 1 << 63:
            raise FormatError(path, f"dimension {dim} has more than 64 bits")
        section.append(dim.to_bytes(_DIMENSION, "little", signed=True))


def _emit_shape(section: Emitter, attribute: Shape, path: str) -> int:
    if attribute.dims is None:
        section.align(_WORD)
        return section.fixed(0, path)
    _check_rank(attribute.dims, path)
    size = _BASE + _WORD + _DIMENSION * len(attribute.dims)
    ranked = len(attribute.dims) > 0
    alignment = _DIMENSION if ranked else _WORD
    prefix = _BASE + _WORD if ranked else 0
    offset = _emit_header(section, alignment, 0, prefix, size, path)
    _emit_dims(section, attribute.dims, path)
    return offset


def _emit_dense(section: Emitter, attribute: Dense, path: str) -> int:
    _check_rank(attribute.dims, path)
    size, count = DTYPES[attribute.dtype].size, math.prod(attribute.dims)
    if (
        attribute.dtype not in _DENSE_ELEMENTS
        or any(dim < 0 for dim in attribute.dims)
        or len(attribute.data) != size * count
    ):
        raise FormatError(path, f"not the data of {count} elements")
    prefix = _BASE + 3 * _WORD + _DIMENSION * len(attribute.dims)
    total = prefix + len(attribute.data)
    offset = _emit_header(section, DENSE_ALIGNMENT, attribute.dtype, prefix, total, path)
    section.fixed(prefix, path)
    section.fixed(count, path)
    _emit_dims(section, attribute.dims, path)
    section.append(attribute.data)
    return offset


def _check_rank(dims: tuple[int, ...], path: str) -> None:
    if len(dims) > MAXIMUM_RANK:
        raise FormatError(path, f"rank {len(dims)} is above {MAXIMUM_RANK}")


def _emit_aggregate(section: Emitter, attribute: Aggregate, path: str) -> int:
    if not attribute.elements:
        raise FormatError(path, "an aggregate has at least one element")
    alignment = max(_WORD, *(alignment_of(element) for element in attribute.elements))
    count = len(attribute.elements)
    prefix = _BASE + _WORD + _WORD * count
    offset = _emit_header(section, alignment, 0, prefix, 0, path)
    section.fixed(count, path)
    table = section.append(bytes(_WORD * count))
    for number, element in enumerate(attribute.elements):
        # One byte is kept for the type, which ends up right before the element.
        section.pad(1)
        where = emit_attribute(section, element, f"{path}[{number}]")
        if isinstance(element, Untyped):  # pragma: no cover - refused by emit_attribute
            raise AssertionError
        section.data[where - 1] = element.code
        section.overwrite(table + _WORD * number, where - offset)
    section.overwrite(offset + 4, section.size - offset)
    return offset


def _emit_symbol(section: Emitter, attribute: Symbol, path: str) -> int:
    offset = section.integer(attribute.id)
    section.integer(len(attribute.root))
    section.integer(len(attribute.nested))
    for name in attribute.nested:
        section.integer(len(name))
    section.integer(len(attribute.unit))
    section.append(attribute.root + b"".join(attribute.nested) + attribute.unit + b"\0")
    return offset


_EMITTERS: Final[dict[type, Callable[..., int]]] = {
    Scalar: _emit_scalar,
    String: _emit_string,
    FunctionName: _emit_string,
    Type: _emit_type,
    Array: _emit_array,
    Shape: _emit_shape,
    Dense: _emit_dense,
    Aggregate: _emit_aggregate,
    Symbol: _emit_symbol,
}
