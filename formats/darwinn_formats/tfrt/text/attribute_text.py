"""Attributes in the text form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from darwinn_formats.tfrt.encoding import (
    COMPLEX,
    DTYPE_OF_TEXT,
    DTYPES,
    FLOATS,
    INTEGERS,
    SCALARS,
    DType,
    Kind,
)
from darwinn_formats.tfrt.model import (
    EMPTY_ARRAY,
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
    decode,
    encode,
)
from darwinn_formats.tfrt.text.lexer import quote
from darwinn_formats.tfrt.text.syntax import (
    AnyAttribute,
    Attributes,
    FunctionReference,
    FunctionReferences,
    Unit,
)
from darwinn_formats.tfrt.text.token_reader import TokenReader

MAXIMUM_DEPTH = 64
"""Lists in lists."""

# --- printing ------------------------------------------------------------------------------------


def print_attribute(attribute: AnyAttribute) -> str:
    """The text of an attribute."""
    match attribute:
        case FunctionReference(name):
            return symbol_text(name)
        case FunctionReferences(names):
            return f"[{', '.join(map(symbol_text, names))}]"
        case Unit():
            return "unit"
        case _:
            return _print_stored(attribute)


def _print_stored(attribute: Attribute) -> str:
    """The text of an attribute as files hold it."""
    match attribute:
        case Scalar():
            return _print_scalar(attribute)
        case String(data):
            return quote(data)
        case FunctionName(data):
            return f"#bef.func<{quote(data)}>"
        case Type(dtype):
            return DTYPES[dtype].text
        case Shape(dims):
            return f"#corert.shape<{_dims_text(dims)}>"
        case Array():
            return _print_array(attribute)
        case Dense(dtype, dims, data):
            shape = "".join(f"{dim}x" for dim in dims)
            return f'dense<"0x{data.hex().upper()}"> : tensor<{shape}{DTYPES[dtype].text}>'
        case Symbol(number, root, nested, unit):
            path = ", ".join(map(quote, (root, *nested)))
            return f"#bef.symbol<{number}, [{path}], {quote(unit)}>"
        case Aggregate(elements):
            return f"[{', '.join(map(print_attribute, elements))}]"
        case Untyped():
            raise ValueError("an attribute without a type has no text")


def _print_array(array: Array) -> str:
    element, data = array.element, array.data
    if element == Kind.TYPE:
        return f"[{', '.join(DTYPES[DType(byte)].text for byte in data)}]"
    if array == EMPTY_ARRAY or (data and element in SCALARS):
        return f"[{', '.join(map(_print_scalar, _elements(array)))}]"
    # Elements that no list can hold, and empty lists of another type than i32.
    return f"#bef.array<{int(element)}, {quote(data)}>"


def _elements(array: Array) -> list[Scalar]:
    assert isinstance(array.element, DType)
    size = array.size
    return [
        Scalar(array.element, array.data[start : start + size])
        for start in range(0, len(array.data), size)
    ]


def _print_scalar(scalar: Scalar) -> str:
    value = scalar.value
    if scalar.dtype is DType.I1:
        return "true" if value else "false"
    return f"{number_text(scalar)} : {DTYPES[scalar.dtype].text}"


def number_text(scalar: Scalar) -> str:
    """A number without its type: what reads back as the same bits."""
    if scalar.dtype not in FLOATS:
        return str(int(scalar.value.real))
    number = decode(scalar.dtype, scalar.data)[0]
    text = np.format_float_scientific(number, unique=True, trim="0", exp_digits=2)
    if np.isfinite(number) and Scalar.of(scalar.dtype, float(text)) == scalar:
        return text
    return f"0x{int.from_bytes(scalar.data, 'little'):0{2 * len(scalar.data)}X}"


def _dims_text(dims: tuple[int, ...] | None) -> str:
    if dims is None:
        return "*"
    return "x".join("?" if dim == -1 else str(dim) for dim in dims)


def symbol_text(name: str) -> str:
    """``@name``, quoted where the name has other characters than a plain name may have."""
    plain = name.replace(".", "_").replace("$", "_")
    if plain.isascii() and plain.isidentifier():
        return f"@{name}"
    return "@" + quote(name.encode("utf-8", "surrogateescape"))


def print_attributes(attributes: Attributes) -> str:
    """``{name = attribute, name, ...}``."""
    entries = (
        _name_text(name)
        if isinstance(value, Unit)
        else f"{_name_text(name)} = {print_attribute(value)}"
        for name, value in attributes.items()
    )
    return f"{{{', '.join(entries)}}}"


def _name_text(name: str) -> str:
    """A name of an attribute, quoted if need be."""
    return symbol_text(name)[1:]


# --- parsing -------------------------------------------------------------------------------------


def parse_attribute(reader: TokenReader, depth: int = 0) -> AnyAttribute:
    """The attribute at the reader's position."""
    token = reader.token
    if depth > MAXIMUM_DEPTH:
        raise reader.error(f"lists are nested more than {MAXIMUM_DEPTH} deep")
    if token.kind == "string":
        return String(reader.string())
    if token.kind == "symbol":
        return FunctionReference(reader.symbol())
    if token.kind in ("integer", "float", "hex"):
        return _parse_number(reader)
    if token.text in ("true", "false"):
        reader.take()
        return Scalar.of(DType.I1, token.text == "true")
    if token.text == "unit":
        reader.take()
        return Unit()
    if token.text == "[":
        return _parse_list(reader, depth)
    if token.text == "dense":
        return _parse_dense(reader)
    if token.kind == "alias":
        return _parse_own(reader)
    text = reader.type()
    if text in DTYPE_OF_TEXT:
        return Type(DTYPE_OF_TEXT[text])
    raise reader.error(f"a BEF file cannot hold the attribute {text!r}", token)


def parse_attributes(reader: TokenReader) -> Attributes:
    """``{name = attribute, ...}`` or nothing, in alphabetical order."""
    found: Attributes = {}
    if reader.token.text != "{":
        return found

    def entry() -> None:
        token = reader.token
        name = reader.name_string() if token.kind == "string" else reader.of_kind("name", "a name")
        if name in found:
            raise reader.error(f"attribute {name!r} is there twice", token)
        found[name] = parse_attribute(reader) if reader.accept("=") else Unit()

    reader.entries("{", "}", entry)
    return dict(sorted(found.items()))


def _parse_number(reader: TokenReader) -> Scalar:
    token = reader.token
    kind = reader.take().kind
    default = "f64" if kind == "float" else "i64"
    type_token = reader.token
    text = reader.type() if reader.accept(":") else default
    dtype = DTYPE_OF_TEXT.get(text)
    if dtype is None or dtype not in SCALARS:
        raise reader.error(f"a number cannot be of type {text!r}", type_token)
    try:
        return scalar_of_text(token.text, kind, dtype)
    except ValueError as error:
        raise reader.error(str(error), token) from None


def scalar_of_text(text: str, kind: str, dtype: DType) -> Scalar:
    """A number of a type; ``kind`` is that of its token.

    Raises:
        ValueError: when the text is no number of that type.
    """
    info = DTYPES[dtype]
    if dtype in FLOATS:
        if kind == "hex":
            bits = int(text, 16)
            if bits >> 8 * info.size:
                raise ValueError(f"{text} has more than {8 * info.size} bits")
            return Scalar(dtype, bits.to_bytes(info.size, "little"))
        if kind == "integer":
            raise ValueError(f"{text} is an integer, {info.text} needs a decimal point")
        return Scalar.of(dtype, float(text))
    if kind == "float":
        raise ValueError(f"{text} is not an integer")
    value = int(text, 16 if kind == "hex" else 10)
    check_range(value, dtype)
    return Scalar.of(dtype, value)


def check_range(value: int, dtype: DType) -> None:
    """Whether an integer fits a type; i-types take values of either sign, as in the original.

    Raises:
        ValueError: when it does not.
    """
    info = DTYPES[dtype]
    bits = 1 if dtype is DType.I1 else 8 * info.size
    lowest = 0 if info.text.startswith("ui") else -(1 << bits - 1)
    if not lowest <= value < 1 << bits:
        raise ValueError(f"{value} does not fit into {info.text}")


def _parse_list(reader: TokenReader, depth: int) -> AnyAttribute:
    start = reader.token
    elements = reader.entries("[", "]", lambda: parse_attribute(reader, depth + 1))
    references = [entry.name for entry in elements if isinstance(entry, FunctionReference)]
    if references:
        if len(references) != len(elements):
            raise reader.error("a list of functions holds nothing else", start)
        return FunctionReferences(tuple(references))
    plain: list[Attribute] = []
    for entry in elements:
        if isinstance(entry, FunctionReference | FunctionReferences | Unit):
            raise reader.error("a BEF file cannot hold this list", start)
        plain.append(entry)
    return list_attribute(plain)


def list_attribute(elements: list[Attribute]) -> Attribute:
    """Elements of one type of fixed size are an array, others an aggregate."""
    if not elements:
        return EMPTY_ARRAY
    first = elements[0]
    if isinstance(first, Scalar) and all(
        isinstance(entry, Scalar) and entry.dtype is first.dtype for entry in elements
    ):
        data = b"".join(entry.data for entry in elements if isinstance(entry, Scalar))
        return Array(first.dtype, data)
    types = [entry.dtype for entry in elements if isinstance(entry, Type)]
    if len(types) == len(elements):
        return Array(Kind.TYPE, bytes(types))
    return Aggregate(tuple(elements))


def _parse_dense(reader: TokenReader) -> Dense:
    start = reader.take()
    reader.expect("<")
    if reader.token.kind == "string":
        token = reader.token
        text = reader.string().decode("ascii", "replace")
        if not text.startswith("0x"):
            raise reader.error("dense strings are hexadecimal, from 0x on", token)
        values: list[float] | None = None
        try:
            data = bytes.fromhex(text[2:])
        except ValueError:
            raise reader.error("not hexadecimal", token) from None
    else:
        values, data = _parse_elements(reader, 0), b""
    reader.expect(">")
    reader.expect(":")
    token = reader.token
    dims, dtype = _tensor_type(reader)
    count = math.prod(dims)
    if values is not None:
        if len(values) == 1:
            values *= count
        try:
            if dtype in INTEGERS:
                for value in values:
                    check_range(int(value), dtype)
            data = encode(dtype, values)
        except ValueError as error:
            raise reader.error(str(error), start) from None
    if len(data) != count * DTYPES[dtype].size:
        raise reader.error(f"not {count} elements", token)
    return Dense(dtype, dims, data)


def _parse_elements(reader: TokenReader, depth: int) -> list[float]:
    if depth > MAXIMUM_DEPTH:
        raise reader.error(f"lists are nested more than {MAXIMUM_DEPTH} deep")
    if reader.token.text == "[":
        nested = reader.entries("[", "]", lambda: _parse_elements(reader, depth + 1))
        return [value for values in nested for value in values]
    token = reader.take()
    if token.text in ("true", "false"):
        return [token.text == "true"]
    if token.kind == "integer":
        return [int(token.text)]
    if token.kind == "float":
        return [float(token.text)]
    raise reader.error("an element of a tensor is a number", token)


def _tensor_type(reader: TokenReader) -> tuple[tuple[int, ...], DType]:
    token = reader.token
    text = reader.type().replace(" ", "")
    if not (text.startswith("tensor<") and text.endswith(">")):
        raise reader.error("a tensor type is needed", token)
    *sizes, element = text[len("tensor<") : -1].split("x", text.count("x"))
    # complex has an x of its own.
    if sizes and sizes[-1] == "comple":
        element = f"{sizes.pop()}x{element}"
    dtype = DTYPE_OF_TEXT.get(element)
    if dtype is None or dtype not in {*SCALARS, *COMPLEX} or not all(s.isdecimal() for s in sizes):
        raise reader.error(f"a tensor of type {text!r} cannot be held", token)
    return tuple(map(int, sizes)), dtype


def _parse_own(reader: TokenReader) -> Attribute:
    token = reader.token
    parse = _OWN.get(token.text)
    if parse is None:
        raise reader.error(f"{token.text} is not known", token)
    reader.take()
    reader.expect("<")
    attribute = parse(reader)
    reader.expect(">")
    return attribute


def _parse_shape(reader: TokenReader) -> Shape:
    start = reader.token
    text = ""
    while reader.token.text != ">" and reader.token.kind != "end":
        text += reader.take().text
    if text == "*":
        return Shape(None)
    sizes = text.split("x") if text else []
    if not all(size == "?" or size.lstrip("-").isdecimal() for size in sizes):
        raise reader.error(f"{text!r} is not a shape", start)
    return Shape(tuple(-1 if size == "?" else int(size) for size in sizes))


def _parse_func(reader: TokenReader) -> FunctionName:
    return FunctionName(reader.string())


def _parse_array(reader: TokenReader) -> Array:
    token = reader.token
    number = reader.integer()
    reader.expect(",")
    data = reader.string()
    try:
        element = Kind.TYPE if number == Kind.TYPE else DType(number)
        array = Array(element, data)
        if array.size and len(data) % array.size == 0:
            return array
    except ValueError:
        pass
    raise reader.error("not an array", token)


def _parse_symbol(reader: TokenReader) -> Symbol:
    token = reader.token
    number = reader.integer()
    reader.expect(",")
    names = reader.entries("[", "]", reader.string)
    reader.expect(",")
    if not names or number < 0:
        raise reader.error("a symbol has a number and a name", token)
    return Symbol(number, names[0], tuple(names[1:]), reader.string())


_OWN: Final[dict[str, Callable[[TokenReader], Attribute]]] = {
    "#corert.shape": _parse_shape,
    "#bef.func": _parse_func,
    "#bef.array": _parse_array,
    "#bef.symbol": _parse_symbol,
}
