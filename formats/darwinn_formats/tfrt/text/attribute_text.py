"""Attributes in the text form."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from darwinn_formats.tfrt.encoding import DTYPE_OF_TEXT, DTYPES, SCALARS, DType, Kind
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
)
from darwinn_formats.tfrt.text.dense_text import parse_dense, print_dense
from darwinn_formats.tfrt.text.lexer import quote
from darwinn_formats.tfrt.text.numbers import number_text, scalar_of_text
from darwinn_formats.tfrt.text.syntax import (
    AnyAttribute,
    Attributes,
    FunctionReference,
    FunctionReferences,
    SymbolReference,
    Unit,
)
from darwinn_formats.tfrt.text.token_reader import TokenReader

MAXIMUM_DEPTH = 64
"""Lists in lists."""
_IMPLIED: Final = frozenset({DType.I64, DType.F64})
"""Types of numbers in lists that name none."""
BARE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")
"""Names that need no quotes."""

# --- printing ------------------------------------------------------------------------------------


def print_attribute(attribute: AnyAttribute) -> str:
    """The text of an attribute."""
    match attribute:
        case FunctionReference(name):
            return symbol_text(name)
        case SymbolReference(names):
            return "::".join(map(symbol_text, names))
        case FunctionReferences(names):
            return f"[{', '.join(map(symbol_text, names))}]"
        case Unit():
            return "unit"
        case _:
            return _print_stored(attribute)


def _print_stored(attribute: Attribute, in_list: bool = False) -> str:
    """The text of an attribute as files hold it."""
    match attribute:
        case Scalar():
            return _print_scalar(attribute, in_list)
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
        case Dense():
            return print_dense(attribute)
        case Symbol(number, root, nested, unit):
            path = ", ".join(map(quote, (root, *nested)))
            return f"#bef.symbol<{number}, [{path}], {quote(unit)}>"
        case Aggregate(elements):
            return f"[{', '.join(_print_stored(element, True) for element in elements)}]"
        case Untyped():
            raise ValueError("an attribute without a type has no text")


def _print_array(array: Array) -> str:
    element, data = array.element, array.data
    if element == Kind.TYPE:
        return f"[{', '.join(DTYPES[DType(byte)].text for byte in data)}]"
    if array == EMPTY_ARRAY or (data and element in SCALARS):
        return f"[{', '.join(_print_scalar(scalar, True) for scalar in _elements(array))}]"
    # Elements that no list can hold, and empty lists of another type than i32.
    return f"#bef.array<{int(element)}, {quote(data)}>"


def _elements(array: Array) -> list[Scalar]:
    assert isinstance(array.element, DType)
    size = array.size
    return [
        Scalar(array.element, array.data[start : start + size])
        for start in range(0, len(array.data), size)
    ]


def _print_scalar(scalar: Scalar, in_list: bool) -> str:
    """A number with its type, which is left out where a list without it is read as the same."""
    text = number_text(scalar)
    implied = scalar.dtype in _IMPLIED and not text.startswith("0x")
    if scalar.dtype is DType.I1 or (in_list and implied):
        return text
    return f"{text} : {DTYPES[scalar.dtype].text}"


def _dims_text(dims: tuple[int, ...] | None) -> str:
    if dims is None:
        return "*"
    return "x".join("?" if dim == -1 else str(dim) for dim in dims)


def symbol_text(name: str) -> str:
    """``@name``, quoted where the name has other characters than a plain name may have."""
    if BARE_NAME.fullmatch(name):
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


def parse_attribute(reader: TokenReader, depth: int = 0, name: str = "") -> AnyAttribute:
    """The attribute of that name at the reader's position."""
    token = reader.token
    if depth > MAXIMUM_DEPTH:
        raise reader.error(f"lists are nested more than {MAXIMUM_DEPTH} deep")
    if token.kind == "string":
        return String(reader.string())
    if token.kind == "symbol":
        return _parse_reference(reader)
    if token.kind in ("integer", "float", "hex"):
        return _parse_number(reader)
    if token.text in ("true", "false"):
        reader.take()
        return Scalar.of(DType.I1, token.text == "true")
    if token.text == "unit":
        reader.take()
        return Unit()
    if token.text == "[":
        return _parse_list(reader, depth, name)
    if token.text == "dense":
        return parse_dense(reader)
    if token.kind == "alias":
        return _parse_own(reader)
    text = reader.type()
    if text in DTYPE_OF_TEXT:
        return Type(DTYPE_OF_TEXT[text])
    raise reader.error(f"{cannot_encode(name)}: {text}", token)


def cannot_encode(name: str) -> str:
    """Why an attribute of a kind that files do not have is refused."""
    return f"BEF files cannot encode the '{name}' attribute"


def parse_attributes(reader: TokenReader) -> Attributes:
    """``{name = attribute, ...}`` or nothing, in alphabetical order."""
    return dict(sorted(parse_in_order(reader).items()))


def parse_in_order(reader: TokenReader) -> Attributes:
    """``{name = attribute, ...}`` or nothing, as it is written."""
    found: Attributes = {}
    if reader.token.text != "{":
        return found

    def entry() -> None:
        token = reader.token
        name = reader.name_string() if token.kind == "string" else reader.of_kind("name", "a name")
        if name in found:
            raise reader.error(f"attribute {name!r} is there twice", token)
        found[name] = parse_attribute(reader, name=name) if reader.accept("=") else Unit()

    reader.entries("{", "}", entry)
    return found


def _parse_reference(reader: TokenReader) -> FunctionReference | SymbolReference:
    """``@name``, or ``@module::@name``."""
    names = [reader.symbol()]
    while reader.accept("::"):
        names.append(reader.symbol())
    return FunctionReference(names[0]) if len(names) == 1 else SymbolReference(tuple(names))


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


def _parse_list(reader: TokenReader, depth: int, name: str) -> AnyAttribute:
    start = reader.token
    elements = reader.entries("[", "]", lambda: parse_attribute(reader, depth + 1, name))
    references = [entry.name for entry in elements if isinstance(entry, FunctionReference)]
    if references:
        if len(references) != len(elements):
            raise reader.error("a list of functions holds nothing else", start)
        return FunctionReferences(tuple(references))
    plain: list[Attribute] = []
    for entry in elements:
        if isinstance(entry, FunctionReference | FunctionReferences | SymbolReference | Unit):
            raise reader.error(f"{cannot_encode(name)}: a list of this", start)
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
