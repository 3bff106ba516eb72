"""What the form of an operation is: pieces, each of which can be parsed and printed.

Parsing runs the pieces over a draft; printing runs them over an operation and gives up, so that
the generic form is used, where an operation does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from darwinn_formats.tfrt.text.syntax import AnyAttribute, Block, Operation
from darwinn_formats.tfrt.text.values import Draft, ValueReader


class ValueNames(Protocol):
    """Names and types of the values of a block that is printed."""

    types: list[str]

    def name(self, value: int) -> str:
        """Name of a value."""

    def region(self, region: Block, names: list[str]) -> str:
        """``{ operations }`` of a region whose arguments have these names."""


class DoesNotFit(Exception):
    """An operation that a form cannot print."""


@dataclass
class Sheet:
    """An operation that is being printed: its text so far, and what has been printed of it.

    ``bound`` are the attributes that pieces of the form print, so that no dictionary does.
    """

    printer: ValueNames
    operation: Operation
    text: str
    operands: int = 0
    regions: int = 0
    bound: frozenset[str] = frozenset()
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

    @property
    def bound(self) -> frozenset[str]:
        """Names of the attributes that the part is the text of."""
        return frozenset()

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        """Read the part into a draft."""

    def print(self, sheet: Sheet) -> None:
        """Append the part to a sheet; DoesNotFit where that is not possible."""


@dataclass(frozen=True)
class Form:
    """A sequence of pieces, and what is known of the operation.

    Attributes:
        printed: whether the original defines the operation: such ones are printed so, and verified.
        operand_types: of all operands; None where they differ.
        first_types: of the first operands.
        other_type: of all further ones; None where they differ.
        result_types: of all results; None where they differ.
    """

    pieces: tuple[Piece, ...]
    printed: bool = True
    operand_types: tuple[str, ...] | None = None
    first_types: tuple[str, ...] = ()
    other_type: str | None = None
    result_types: tuple[str, ...] | None = None

    @property
    def bound(self) -> frozenset[str]:
        """Attributes that the form has a place for."""
        return frozenset[str]().union(*(piece.bound for piece in self.pieces))

    def wanted_types(self, count: int) -> tuple[str, ...]:
        """Types of so many operands, or of the first of them."""
        if self.operand_types is not None:
            return self.operand_types
        others = () if self.other_type is None else (self.other_type,)
        return (*self.first_types, *others * max(0, count - len(self.first_types)))

    def parse(self, parser: ValueReader, draft: Draft) -> None:
        """Read what follows the name of an operation."""
        token = parser.token
        for piece in self.pieces:
            piece.parse(parser, draft)
        parser.check_uses(self.wanted_types(len(draft.operands)), draft, token)

    def print(self, printer: ValueNames, operation: Operation) -> str | None:
        """An operation without its results and location; None where it does not fit."""
        actual = [printer.types[value] for value in operation.operands]
        wanted = self.wanted_types(len(actual))
        if not self.printed or tuple(actual[: len(wanted)]) != wanted:
            return None
        sheet = Sheet(printer, operation, operation.name, bound=self.bound)
        try:
            for piece in self.pieces:
                piece.print(sheet)
        except DoesNotFit:
            return None
        return sheet.text if sheet.complete else None
