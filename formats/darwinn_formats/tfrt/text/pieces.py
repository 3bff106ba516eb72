"""The pieces that the custom forms of operations are made of."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from darwinn_formats.tfrt.encoding import DTYPES, DType
from darwinn_formats.tfrt.model import Array, Scalar, String
from darwinn_formats.tfrt.text.attribute_text import (
    parse_attribute,
    parse_attributes,
    print_attribute,
    print_attributes,
    symbol_text,
)
from darwinn_formats.tfrt.text.form import DoesNotFit, Piece, Sheet
from darwinn_formats.tfrt.text.lexer import quote
from darwinn_formats.tfrt.text.numbers import number_text, scalar_of_text
from darwinn_formats.tfrt.text.syntax import (
    AnyAttribute,
    Block,
    FunctionReference,
    FunctionReferences,
)
from darwinn_formats.tfrt.text.values import Draft, ValueReader

_T = TypeVar("_T")


@dataclass(frozen=True)
class Word(Piece):
    """A word or mark."""

    text: str

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        parser.expect(self.text)

    def print(self, sheet: Sheet) -> None:
        sheet.text += f"{'' if self.text == ',' else ' '}{self.text}"


@dataclass(frozen=True)
class Operand(Piece):
    """One operand."""

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        parser.operand(draft)

    def print(self, sheet: Sheet) -> None:
        sheet.text += f" {sheet.operand()}"


@dataclass(frozen=True)
class Operands(Piece):
    """Operands, ``at_least`` some; ``number`` where a form has a certain number of them."""

    number: int | None = None
    at_least: int = 0

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        if self.number == 0:
            # What follows could be the results of the next operation.
            return
        token = parser.token
        parser.operands(draft)
        if self.number not in (None, len(draft.operands)):
            raise parser.error(f"{draft.name} has {self.number} operands", token)
        if len(draft.operands) < self.at_least:
            raise parser.error(f"{draft.name} has at least {self.at_least} operands", token)

    def print(self, sheet: Sheet) -> None:
        count = len(sheet.operation.operands)
        if self.number not in (None, count) or count < self.at_least:
            raise DoesNotFit
        sheet.text += f" {sheet.rest()}".rstrip()


@dataclass(frozen=True)
class MoreOperands(Piece):
    """Operands that follow others, each after a comma."""

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        while parser.accept(","):
            parser.operand(draft)

    def print(self, sheet: Sheet) -> None:
        rest = sheet.rest()
        sheet.text += f", {rest}" if rest else ""


@dataclass(frozen=True)
class EnclosedOperands(Piece):
    """Operands in parentheses; ``typed`` ones are each followed by their type."""

    typed: bool = False

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        def entry() -> None:
            parser.operand(draft)
            if self.typed:
                parser.expect(":")
                token = parser.token
                parser.check_types([parser.type()], draft, len(draft.operands) - 1, token)

        parser.entries("(", ")", entry)

    def print(self, sheet: Sheet) -> None:
        skip = sheet.operands
        names = [sheet.operand() for _ in sheet.operation.operands[skip:]]
        if self.typed:
            types = sheet.types(skip)
            names = [f"{name} : {text}" for name, text in zip(names, types, strict=True)]
        sheet.text += f"({', '.join(names)})"


@dataclass(frozen=True)
class AttributeDictionary(Piece):
    """``{name = attribute, ...}``, if there are any."""

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        draft.attributes |= parse_attributes(parser)

    def print(self, sheet: Sheet) -> None:
        left = {
            name: value
            for name, value in sheet.operation.attributes.items()
            if name not in sheet.bound
        }
        sheet.attributes |= left.keys()
        sheet.text += f" {print_attributes(left)}" if left else ""


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


def function_type_text(operands: Sequence[str], results: Sequence[str]) -> str:
    """``(types) -> type``, or ``(types)`` where there are several or none."""
    single = len(results) == 1 and not results[0].startswith("(")
    types = ", ".join(results)
    return f"({', '.join(operands)}) -> {types if single else f'({types})'}"


@dataclass(frozen=True)
class FunctionType(Piece):
    """``: (types) -> (types)`` of the operands from number ``skip`` on, and of the results.

    A single result is ``enclosed`` too, or not. Where the first of both is a ``chain`` of that
    type, it may be left out; it is printed if ``shows_chain``.
    """

    skip: int = 0
    enclosed: bool = True
    chain: str = ""
    shows_chain: bool = True

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        parser.function_type(draft, self.skip, self.chain)

    def print(self, sheet: Sheet) -> None:
        operands, results = sheet.types(self.skip), list(sheet.operation.result_types)
        if self.chain and not self.shows_chain:
            if operands[:1] != [self.chain] or results[:1] != [self.chain]:
                raise DoesNotFit
            del operands[0], results[0]
        text = function_type_text(operands, results)
        if self.enclosed:
            text = f"({', '.join(operands)}) -> ({', '.join(results)})"
        sheet.text += f" : {text}"
        sheet.results_known = True


@dataclass(frozen=True)
class OperandTypes(Piece):
    """``: types`` of the operands from number ``skip`` on; nothing where there are none.

    ``as_results`` makes them the types of the results too. ``optional`` types can be left out; the
    colon is printed with them even where there are none.
    """

    skip: int = 0
    as_results: bool = False
    optional: bool = False

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        types = draft.operand_types[self.skip :]
        if self.optional and not types:
            parser.accept(":")
        elif types and not (self.optional and parser.token.text != ":"):
            parser.expect(":")
            token = parser.token
            parser.check_types(parser.type_list(), draft, self.skip, token)
        if self.as_results:
            draft.result_types += types

    def print(self, sheet: Sheet) -> None:
        types = sheet.types(self.skip)
        if self.as_results:
            sheet.expect_results(types)
        sheet.text += f" : {', '.join(types)}".rstrip() if types or self.optional else ""


@dataclass(frozen=True)
class Results(Piece):
    """Results of types that are not written."""

    types: tuple[str, ...]

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        draft.result_types += self.types

    def print(self, sheet: Sheet) -> None:
        sheet.expect_results(self.types)


@dataclass(frozen=True)
class Region(Piece):
    """``{ operations }``, whose arguments have the names of the operands without ``left_out``."""

    left_out: tuple[int, ...] = ()

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        names = _without(draft.operand_names, self.left_out)
        types = _without(draft.operand_types, self.left_out)
        draft.regions.append(parser.block(names, types))

    def print(self, sheet: Sheet) -> None:
        if sheet.regions >= len(sheet.operation.regions):
            raise DoesNotFit
        region = sheet.operation.regions[sheet.regions]
        sheet.regions += 1
        operands = _without(list(sheet.operation.operands), self.left_out)
        names = [sheet.printer.name(value) for value in operands]
        types = tuple(sheet.printer.types[value] for value in operands)
        if len(set(names)) != len(names) or types != region.argument_types:
            raise DoesNotFit
        sheet.text += f" {sheet.printer.region(region, names)}"


@dataclass(frozen=True)
class ElseRegion(Piece):
    """``else { operations }``; without it, the region only returns."""

    left_out: tuple[int, ...]

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        token = parser.token
        if parser.accept("else"):
            Region(self.left_out).parse(parser, draft)
            return
        if draft.result_types:
            raise parser.error("else is needed where there are results", token)
        types = _without(draft.operand_types, self.left_out)
        draft.regions.append(Block(tuple(types), (), ()))

    def print(self, sheet: Sheet) -> None:
        sheet.text += " else"
        Region(self.left_out).print(sheet)


def _without(values: list[_T], left_out: tuple[int, ...]) -> list[_T]:
    return [value for number, value in enumerate(values) if number not in left_out]
