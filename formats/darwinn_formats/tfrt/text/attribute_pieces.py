"""The pieces of custom forms that are the text of attributes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from darwinn_formats.tfrt.encoding import DTYPES, DType
from darwinn_formats.tfrt.model import EMPTY_ARRAY, Aggregate, Array, Attribute, Scalar, String
from darwinn_formats.tfrt.text.attribute_text import (
    BARE_NAME,
    cannot_encode,
    parse_attribute,
    parse_in_order,
    print_attribute,
    print_attributes,
    symbol_text,
)
from darwinn_formats.tfrt.text.form import DoesNotFit, Piece, Sheet
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
from darwinn_formats.tfrt.text.values import Draft, ValueReader

_T = TypeVar("_T")


@dataclass(frozen=True)
class AttributePiece(Piece):
    """An attribute of that name."""

    name: str

    @property
    def bound(self) -> frozenset[str]:
        return frozenset({self.name})

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        draft.attributes[self.name] = self.read(parser)

    def print(self, sheet: Sheet) -> None:
        sheet.text += self.text(sheet.attribute(self.name))

    @abstractmethod
    def read(self, parser: ValueReader) -> AnyAttribute:
        """The attribute that is next in the text."""

    @abstractmethod
    def text(self, attribute: AnyAttribute) -> str:
        """Text of the attribute; DoesNotFit where there is none."""


def _of_kind(attribute: AnyAttribute, kind: type[_T]) -> _T:
    if not isinstance(attribute, kind):
        raise DoesNotFit
    return attribute


def _number(attribute: AnyAttribute, dtype: DType) -> Scalar:
    number = _of_kind(attribute, Scalar)
    if number.dtype is not dtype:
        raise DoesNotFit
    return number


@dataclass(frozen=True)
class Function(AttributePiece):
    """``@name``."""

    def read(self, parser: ValueReader) -> FunctionReference:
        return FunctionReference(parser.symbol())

    def text(self, attribute: AnyAttribute) -> str:
        return f" {symbol_text(_of_kind(attribute, FunctionReference).name)}"


@dataclass(frozen=True)
class FunctionList(AttributePiece):
    """``[@a, @b]``."""

    def read(self, parser: ValueReader) -> FunctionReferences:
        return FunctionReferences(tuple(parser.entries("[", "]", parser.symbol)))

    def text(self, attribute: AnyAttribute) -> str:
        return f" {print_attribute(_of_kind(attribute, FunctionReferences))}"


@dataclass(frozen=True)
class StringValue(AttributePiece):
    """``"text"``."""

    def read(self, parser: ValueReader) -> String:
        return String(parser.string())

    def text(self, attribute: AnyAttribute) -> str:
        return f" {quote(_of_kind(attribute, String).data)}"


@dataclass(frozen=True)
class Number(AttributePiece):
    """A number of a type that is not written."""

    dtype: DType

    def read(self, parser: ValueReader) -> Scalar:
        token = parser.take()
        text, kind = token.text, token.kind
        if self.dtype is DType.I1 and text in ("true", "false"):
            text, kind = str(int(text == "true")), "integer"
        if kind not in ("integer", "float", "hex"):
            raise parser.error(f"a number is expected, not {text or 'the end'!r}", token)
        try:
            return scalar_of_text(text, kind, self.dtype)
        except ValueError as error:
            raise parser.error(str(error), token) from None

    def text(self, attribute: AnyAttribute) -> str:
        return f" {number_text(_number(attribute, self.dtype))}"


@dataclass(frozen=True)
class TypedNumber(AttributePiece):
    """``value : type``."""

    dtype: DType

    def read(self, parser: ValueReader) -> Scalar:
        token = parser.token
        attribute = parse_attribute(parser)
        if not isinstance(attribute, Scalar) or attribute.dtype is not self.dtype:
            raise parser.error(f"a number of type {DTYPES[self.dtype].text} is expected", token)
        return attribute

    def text(self, attribute: AnyAttribute) -> str:
        return f" {print_attribute(_number(attribute, self.dtype))}"


@dataclass(frozen=True)
class NumberList(AttributePiece):
    """``[value : type, ...]``."""

    dtype: DType

    def read(self, parser: ValueReader) -> AnyAttribute:
        token = parser.token
        attribute = parse_attribute(parser)
        if not self.fits(attribute):
            text = DTYPES[self.dtype].text
            raise parser.error(f"a list of numbers of type {text} is expected", token)
        return attribute

    def fits(self, attribute: AnyAttribute) -> bool:
        """Whether this is a list of that type, or one without elements."""
        return isinstance(attribute, Array) and (
            attribute.element is self.dtype
            or (not attribute.data and attribute.element is DType.I32)
        )

    def text(self, attribute: AnyAttribute) -> str:
        if not self.fits(attribute):
            raise DoesNotFit
        return f" {print_attribute(attribute)}"


@dataclass(frozen=True)
class AttributeValue(AttributePiece):
    """Any attribute, with its type."""

    def read(self, parser: ValueReader) -> AnyAttribute:
        return parse_attribute(parser)

    def text(self, attribute: AnyAttribute) -> str:
        return f" {print_attribute(attribute)}"


@dataclass(frozen=True)
class Settings(Piece):
    """``name = value, ...``: i32 in any order; those with a default can be left out."""

    names: tuple[str, ...]
    defaults: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def bound(self) -> frozenset[str]:
        return frozenset(self.names)

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        found = dict(self.defaults)
        given: set[str] = set()
        token = parser.token
        while True:
            at = parser.token
            name = parser.of_kind("name", "the name of a setting")
            if name not in self.names or name in given:
                raise parser.error(f"one of {', '.join(self.names)} is expected, each once", at)
            parser.expect("=")
            found[name] = parser.integer()
            given.add(name)
            if not parser.accept(","):
                break
        missing = [name for name in self.names if name not in found]
        if missing:
            raise parser.error(f"{draft.name} has {', '.join(missing)} too", token)
        draft.attributes |= {name: Scalar.of(DType.I32, value) for name, value in found.items()}

    def print(self, sheet: Sheet) -> None:
        texts = (
            f"{name} = {_number(sheet.attribute(name), DType.I32).value}" for name in self.names
        )
        sheet.text += f" {', '.join(texts)}"


@dataclass(frozen=True)
class Pairs(AttributePiece):
    """``{name = attribute, ...}``, or nothing: a list of lists of two, the first a string."""

    def read(self, parser: ValueReader) -> AnyAttribute:
        token = parser.token
        pairs: list[Attribute] = []
        for name, value in parse_in_order(parser).items():
            if isinstance(value, Unit | FunctionReference | FunctionReferences | SymbolReference):
                raise parser.error(cannot_encode(name), token)
            pairs.append(Aggregate((String(name.encode()), value)))
        return Aggregate(tuple(pairs)) if pairs else EMPTY_ARRAY

    def text(self, attribute: AnyAttribute) -> str:
        if attribute == EMPTY_ARRAY:
            return ""
        entries = _of_kind(attribute, Aggregate).elements
        found: Attributes = {}
        for entry in entries:
            name, *values = _of_kind(entry, Aggregate).elements
            found[_of_kind(name, String).value] = _single(values)
        if len(found) != len(entries) or any(not BARE_NAME.fullmatch(name) for name in found):
            raise DoesNotFit
        return f" {print_attributes(found)}"


def _single(values: Sequence[_T]) -> _T:
    if len(values) != 1:
        raise DoesNotFit
    return values[0]


@dataclass(frozen=True)
class EnclosedSetting(AttributePiece):
    """``name(value)``, an i64."""

    def read(self, parser: ValueReader) -> Scalar:
        parser.expect(self.name)
        parser.expect("(")
        value = parser.integer()
        parser.expect(")")
        return Scalar.of(DType.I64, value)

    def text(self, attribute: AnyAttribute) -> str:
        return f" {self.name}({_number(attribute, DType.I64).value})"
