"""Values of a block while it is read: their names and types, and the operands that use them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from darwinn_formats.tfrt.text.lexer import Token
from darwinn_formats.tfrt.text.syntax import Attributes, Block
from darwinn_formats.tfrt.text.token_reader import TokenReader


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


class Scope:
    """Values of a block by name: the number of the first result, and how many there are."""

    def __init__(self) -> None:
        self.names: dict[str, tuple[int, int]] = {}
        self.types: list[str] = []


class ValueReader(TokenReader, ABC):
    """A position in a block: what the forms of operations need to be read."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.scope = Scope()

    @abstractmethod
    def block(self, names: list[str], types: list[str]) -> Block:
        """``{ operations }``, whose arguments have these names."""

    def operand(self, draft: Draft) -> None:
        """``%name`` or ``%name#number``, which joins the operands."""
        token = self.token
        name = self.of_kind("value", "a value")
        number = None
        if self.token.kind == "number_of_result" and self.token.start == token.end:
            number = int(self.take().text[1:])
            # An argument of a region can have the name of one result.
            if f"{name}#{number}" in self.scope.names:
                name, number = f"{name}#{number}", None
        if name not in self.scope.names:
            raise self.error(f"{name} is not a value of this block", token)
        first, count = self.scope.names[name]
        if number is not None:
            if number >= count:
                raise self.error(f"{name} has {count} results", token)
            name, first = f"{name}#{number}", first + number
        elif count != 1:
            raise self.error(f"{name} has {count} results: say which one", token)
        draft.operands.append(first)
        draft.operand_names.append(name)
        draft.operand_types.append(self.scope.types[first])

    def operands(self, draft: Draft) -> None:
        """``%a, %b`` or nothing."""
        if self.token.kind != "value":
            return
        self.operand(draft)
        while self.accept(","):
            self.operand(draft)

    def define(self, name: str, types: list[str], token: Token) -> None:
        """Give a name to values."""
        if name in self.scope.names:
            raise self.error(f"{name} is there twice", token)
        self.scope.names[name] = (len(self.scope.types), len(types))
        self.scope.types += types

    def function_type(self, draft: Draft, skip: int = 0, chain: str = "") -> None:
        """``: (types) -> types`` of the operands from number ``skip`` on, and of the results.

        A first operand and result of type ``chain`` need not be written.
        """
        self.expect(":")
        token = self.token
        types = self.entries("(", ")", self.type)
        implied = [chain] if chain and draft.operand_types[skip:] == [chain, *types] else []
        self.check_types([*implied, *types], draft, skip, token)
        self.expect("->")
        draft.result_types += [*implied, *self.types()]

    def check_types(self, stated: list[str], draft: Draft, skip: int, token: Token) -> None:
        """Whether the types that are written are those that the operands have."""
        names, actual = draft.operand_names[skip:], draft.operand_types[skip:]
        if len(stated) != len(actual):
            counts = f"{len(actual)} operands present, but expected {len(stated)}"
            raise self.error(f"number of operands and types do not match: got {counts}", token)
        self._check_uses(names, stated, actual, token)

    def check_uses(self, wanted: Sequence[str], draft: Draft, token: Token) -> None:
        """Whether the first operands are of the types that an operation is defined for."""
        self._check_uses(draft.operand_names, wanted, draft.operand_types, token)

    def _check_uses(
        self, names: Sequence[str], wanted: Sequence[str], actual: Sequence[str], token: Token
    ) -> None:
        for name, expected, given in zip(names, wanted, actual, strict=False):
            if expected != given:
                reason = f"use of value '{name}' expects different type than prior uses"
                raise self.error(f"{reason}: '{expected}' vs '{given}'", token)
