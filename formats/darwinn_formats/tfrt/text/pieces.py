"""The pieces that the custom forms of operations are made of: operands, results, types, regions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from darwinn_formats.tfrt.text.attribute_text import parse_attributes, print_attributes
from darwinn_formats.tfrt.text.form import DoesNotFit, Piece, Sheet
from darwinn_formats.tfrt.text.syntax import Block
from darwinn_formats.tfrt.text.values import Draft, ValueReader

_T = TypeVar("_T")
MOST_RESULTS: Final = 1 << 16
"""Results of an operation that only says how many it has."""


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
    """Operands in parentheses, ``number`` of them or all that are left.

    ``typed`` ones are each followed by their type.
    """

    typed: bool = False
    number: int | None = None

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        token, before = parser.token, len(draft.operands)

        def entry() -> None:
            parser.operand(draft)
            if self.typed:
                parser.expect(":")
                token = parser.token
                parser.check_types([parser.type()], draft, len(draft.operands) - 1, token)

        parser.entries("(", ")", entry)
        if self.number not in (None, len(draft.operands) - before):
            raise parser.error(f"{draft.name} has {self.number} operands here", token)

    def print(self, sheet: Sheet) -> None:
        skip = sheet.operands
        left = len(sheet.operation.operands) - skip
        names = [sheet.operand() for _ in range(left if self.number is None else self.number)]
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
class ResultCount(Piece):
    """``: number`` of results of a type, if there are any, after some of other types."""

    type: str
    first: tuple[str, ...] = ()

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        count = 0
        if parser.accept(":"):
            token = parser.token
            count = parser.integer()
            if not 0 <= count <= MOST_RESULTS:
                raise parser.error(f"{count} results", token)
        draft.result_types += [*self.first, *[self.type] * count]

    def print(self, sheet: Sheet) -> None:
        count = len(sheet.operation.result_types) - len(self.first)
        sheet.expect_results([*self.first, *[self.type] * count])
        sheet.text += f" : {count}" if count else ""


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
