"""The pieces that the custom forms of operations are made of; each can be parsed and printed.

A form is a sequence of pieces. Parsing runs them over a draft; printing runs them over an
operation and gives up, so that the generic form is used, where an operation does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from darwinn_formats.tfrt.encoding import DTYPES, DType
from darwinn_formats.tfrt.model import Array, Scalar, String
from darwinn_formats.tfrt.text.attribute_text import (
    number_text,
    parse_attribute,
    print_attribute,
    scalar_of_text,
    symbol_text,
)
from darwinn_formats.tfrt.text.lexer import quote
from darwinn_formats.tfrt.text.syntax import (
    AnyAttribute,
    Attributes,
    Block,
    FunctionReference,
    FunctionReferences,
    Operation,
    Unit,
)

if TYPE_CHECKING:
    from darwinn_formats.tfrt.text.parser import Parser
    from darwinn_formats.tfrt.text.printer import BlockPrinter

_T = TypeVar("_T")


@dataclass
class Draft:
    """An operation that is being parsed."""

    name: str
    operands: list[int] = field(default_factory=list)
    operand_names: list[str] = field(default_factory=list)
    operand_types: list[str] = field(default_factory=list)
    attributes: Attributes = field(default_factory=dict)
    regions: list[Block] = field(default_factory=list)
    result_types: list[str] = field(default_factory=list)


class DoesNotFit(Exception):
    """An operation that a form cannot print."""


@dataclass
class Sheet:
    """An operation that is being printed: its text so far, and what has been printed of it."""

    printer: BlockPrinter
    operation: Operation
    text: str
    operands: int = 0
    regions: int = 0
    attributes: set[str] = field(default_factory=set)
    results_known: bool = False

    def operand(self) -> str:
        """The next operand."""
        if self.operands >= len(self.operation.operands):
            raise DoesNotFit
        self.operands += 1
        return self.printer.name(self.operation.operands[self.operands - 1])

    def rest(self) -> str:
        """The other operands."""
        names = []
        while self.operands < len(self.operation.operands):
            names.append(self.operand())
        return ", ".join(names)

    def attribute(self, name: str) -> AnyAttribute:
        """An attribute, which has to be there."""
        if name not in self.operation.attributes:
            raise DoesNotFit
        self.attributes.add(name)
        return self.operation.attributes[name]

    def types(self, skip: int = 0) -> list[str]:
        """Types of the operands."""
        return [self.printer.types[value] for value in self.operation.operands[skip:]]

    def expect_results(self, types: Sequence[str]) -> None:
        """The form implies these result types."""
        if tuple(types) != self.operation.result_types:
            raise DoesNotFit
        self.results_known = True

    @property
    def complete(self) -> bool:
        """Whether nothing of the operation is missing in the text."""
        return (
            self.operands == len(self.operation.operands)
            and self.regions == len(self.operation.regions)
            and self.attributes == set(self.operation.attributes)
            and (self.results_known or not self.operation.result_types)
        )


class Piece(Protocol):
    """A part of a form."""

    def parse(self, parser: Parser, draft: Draft) -> None:
        """Read the part into a draft."""

    def print(self, sheet: Sheet) -> None:
        """Append the part to a sheet; DoesNotFit where that is not possible."""


@dataclass(frozen=True)
class Form:
    """A sequence of pieces."""

    pieces: tuple[Piece, ...]

    def parse(self, parser: Parser, draft: Draft) -> None:
        """Read what follows the name of an operation."""
        for piece in self.pieces:
            piece.parse(parser, draft)

    def print(self, printer: BlockPrinter, operation: Operation) -> str | None:
        """An operation without its results and location; None where it does not fit."""
        sheet = Sheet(printer, operation, operation.name)
        try:
            for piece in self.pieces:
                piece.print(sheet)
        except DoesNotFit:
            return None
        return sheet.text if sheet.complete else None


@dataclass(frozen=True)
class Word(Piece):
    """A word or mark."""

    text: str

    def parse(self, parser: Parser, draft: Draft) -> None:
        parser.expect(self.text)

    def print(self, sheet: Sheet) -> None:
        sheet.text += f"{'' if self.text == ',' else ' '}{self.text}"


@dataclass(frozen=True)
class Operand(Piece):
    """One operand."""

    def parse(self, parser: Parser, draft: Draft) -> None:
        parser.operand(draft)

    def print(self, sheet: Sheet) -> None:
        sheet.text += f" {sheet.operand()}"


@dataclass(frozen=True)
class Operands(Piece):
    """Operands, ``at_least`` some; ``number`` where a form has a certain number of them."""

    number: int | None = None
    at_least: int = 0

    def parse(self, parser: Parser, draft: Draft) -> None:
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

    def parse(self, parser: Parser, draft: Draft) -> None:
        while parser.accept(","):
            parser.operand(draft)

    def print(self, sheet: Sheet) -> None:
        rest = sheet.rest()
        sheet.text += f", {rest}" if rest else ""


@dataclass(frozen=True)
class EnclosedOperands(Piece):
    """Operands in parentheses; ``typed`` ones are each followed by their type."""

    typed: bool = False

    def parse(self, parser: Parser, draft: Draft) -> None:
        def entry() -> None:
            parser.operand(draft)
            if self.typed:
                parser.expect(":")
                token = parser.token
                parser.check_types([parser.type()], draft.operand_types[-1:], token)

        parser.entries("(", ")", entry)

    def print(self, sheet: Sheet) -> None:
        skip = sheet.operands
        names = [sheet.operand() for _ in sheet.operation.operands[skip:]]
        if self.typed:
            types = sheet.types(skip)
            names = [f"{name} : {text}" for name, text in zip(names, types, strict=True)]
        sheet.text += f"{'' if self.typed else ' '}({', '.join(names)})"


@dataclass(frozen=True)
class AttributeDictionary(Piece):
    """``{name = attribute, ...}``, if there are any."""

    def parse(self, parser: Parser, draft: Draft) -> None:
        draft.attributes |= parser.attributes()

    def print(self, sheet: Sheet) -> None:
        left = {
            name: value
            for name, value in sheet.operation.attributes.items()
            if name not in sheet.attributes
        }
        sheet.attributes |= left.keys()
        sheet.text += f" {dictionary(left)}" if left else ""


@dataclass(frozen=True)
class Function(Piece):
    """``@name``."""

    name: str

    def parse(self, parser: Parser, draft: Draft) -> None:
        draft.attributes[self.name] = FunctionReference(parser.symbol())

    def print(self, sheet: Sheet) -> None:
        attribute = sheet.attribute(self.name)
        if not isinstance(attribute, FunctionReference):
            raise DoesNotFit
        sheet.text += f" {symbol_text(attribute.name)}"


@dataclass(frozen=True)
class FunctionList(Piece):
    """``[@a, @b]``."""

    name: str

    def parse(self, parser: Parser, draft: Draft) -> None:
        names = parser.entries("[", "]", parser.symbol)
        draft.attributes[self.name] = FunctionReferences(tuple(names))

    def print(self, sheet: Sheet) -> None:
        attribute = sheet.attribute(self.name)
        if not isinstance(attribute, FunctionReferences):
            raise DoesNotFit
        sheet.text += f" {print_attribute(attribute)}"


@dataclass(frozen=True)
class StringValue(Piece):
    """``"text"``."""

    name: str

    def parse(self, parser: Parser, draft: Draft) -> None:
        draft.attributes[self.name] = String(parser.string())

    def print(self, sheet: Sheet) -> None:
        attribute = sheet.attribute(self.name)
        if not isinstance(attribute, String):
            raise DoesNotFit
        sheet.text += f" {quote(attribute.data)}"


@dataclass(frozen=True)
class Number(Piece):
    """A number of a type that is not written."""

    name: str
    dtype: DType

    def parse(self, parser: Parser, draft: Draft) -> None:
        token = parser.take()
        text, kind = token.text, token.kind
        if self.dtype is DType.I1 and text in ("true", "false"):
            text, kind = str(int(text == "true")), "integer"
        if kind not in ("integer", "float", "hex"):
            raise parser.error(f"a number is expected, not {text or 'the end'!r}", token)
        try:
            draft.attributes[self.name] = scalar_of_text(text, kind, self.dtype)
        except ValueError as error:
            raise parser.error(str(error), token) from None

    def print(self, sheet: Sheet) -> None:
        attribute = sheet.attribute(self.name)
        if not isinstance(attribute, Scalar) or attribute.dtype is not self.dtype:
            raise DoesNotFit
        sheet.text += f" {number_text(attribute)}"


@dataclass(frozen=True)
class TypedNumber(Piece):
    """``value : type``."""

    name: str
    dtype: DType

    def parse(self, parser: Parser, draft: Draft) -> None:
        token = parser.token
        attribute = parse_attribute(parser)
        if not isinstance(attribute, Scalar) or attribute.dtype is not self.dtype:
            raise parser.error(f"a number of type {DTYPES[self.dtype].text} is expected", token)
        draft.attributes[self.name] = attribute

    def print(self, sheet: Sheet) -> None:
        attribute = sheet.attribute(self.name)
        if not isinstance(attribute, Scalar) or attribute.dtype is not self.dtype:
            raise DoesNotFit
        sheet.text += f" {print_attribute(attribute)}"


@dataclass(frozen=True)
class NumberList(Piece):
    """``[value : type, ...]``."""

    name: str
    dtype: DType

    def parse(self, parser: Parser, draft: Draft) -> None:
        token = parser.token
        attribute = parse_attribute(parser)
        if not self.fits(attribute):
            text = DTYPES[self.dtype].text
            raise parser.error(f"a list of numbers of type {text} is expected", token)
        draft.attributes[self.name] = attribute

    def fits(self, attribute: AnyAttribute) -> bool:
        """Whether this is a list of that type, or one without elements."""
        return isinstance(attribute, Array) and (
            attribute.element is self.dtype
            or (not attribute.data and attribute.element is DType.I32)
        )

    def print(self, sheet: Sheet) -> None:
        attribute = sheet.attribute(self.name)
        if not self.fits(attribute):
            raise DoesNotFit
        sheet.text += f" {print_attribute(attribute)}"


@dataclass(frozen=True)
class Setting(Piece):
    """``name = value``, an i64; with a default it can be left out, together with its comma."""

    name: str
    default: int | None = None

    def parse(self, parser: Parser, draft: Draft) -> None:
        if self.default is not None and not parser.accept(","):
            draft.attributes[self.name] = Scalar.of(DType.I64, self.default)
            return
        parser.expect(self.name)
        parser.expect("=")
        draft.attributes[self.name] = Scalar.of(DType.I64, parser.integer())

    def print(self, sheet: Sheet) -> None:
        attribute = sheet.attribute(self.name)
        if not isinstance(attribute, Scalar) or attribute.dtype is not DType.I64:
            raise DoesNotFit
        comma = "" if self.default is None else ","
        sheet.text += f"{comma} {self.name} = {attribute.value}"


@dataclass(frozen=True)
class EnclosedSetting(Piece):
    """``name(value)``, an i64."""

    name: str

    def parse(self, parser: Parser, draft: Draft) -> None:
        parser.expect(self.name)
        parser.expect("(")
        draft.attributes[self.name] = Scalar.of(DType.I64, parser.integer())
        parser.expect(")")

    def print(self, sheet: Sheet) -> None:
        attribute = sheet.attribute(self.name)
        if not isinstance(attribute, Scalar) or attribute.dtype is not DType.I64:
            raise DoesNotFit
        sheet.text += f" {self.name}({attribute.value})"


@dataclass(frozen=True)
class FunctionType(Piece):
    """``: (types) -> types`` of the operands from number ``skip`` on, and of the results."""

    skip: int = 0

    def parse(self, parser: Parser, draft: Draft) -> None:
        parser.function_type(draft, self.skip)

    def print(self, sheet: Sheet) -> None:
        results = ", ".join(sheet.operation.result_types)
        sheet.text += f" : ({', '.join(sheet.types(self.skip))}) -> ({results})"
        sheet.results_known = True


@dataclass(frozen=True)
class OperandTypes(Piece):
    """``: types`` of the operands from number ``skip`` on; nothing where there are none.

    ``as_results`` makes them the types of the results too; ``optional`` types can be left out.
    """

    skip: int = 0
    as_results: bool = False
    optional: bool = False

    def parse(self, parser: Parser, draft: Draft) -> None:
        types = draft.operand_types[self.skip :]
        if types and not (self.optional and parser.token.text != ":"):
            parser.expect(":")
            token = parser.token
            parser.check_types(parser.type_list(), types, token)
        if self.as_results:
            draft.result_types += types

    def print(self, sheet: Sheet) -> None:
        types = sheet.types(self.skip)
        if self.as_results:
            sheet.expect_results(types)
        sheet.text += f" : {', '.join(types)}" if types else ""


@dataclass(frozen=True)
class Results(Piece):
    """Results of types that are not written."""

    types: tuple[str, ...]

    def parse(self, parser: Parser, draft: Draft) -> None:
        draft.result_types += self.types

    def print(self, sheet: Sheet) -> None:
        sheet.expect_results(self.types)


@dataclass(frozen=True)
class Region(Piece):
    """``{ operations }``, whose arguments have the names of the operands without ``left_out``."""

    left_out: tuple[int, ...] = ()

    def parse(self, parser: Parser, draft: Draft) -> None:
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

    def parse(self, parser: Parser, draft: Draft) -> None:
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


def dictionary(attributes: Attributes) -> str:
    """``{name = attribute, name, ...}``."""
    entries = (
        name_text(name)
        if isinstance(value, Unit)
        else f"{name_text(name)} = {print_attribute(value)}"
        for name, value in attributes.items()
    )
    return f"{{{', '.join(entries)}}}"


def name_text(name: str) -> str:
    """A name of an attribute, quoted if need be."""
    return symbol_text(name)[1:]
