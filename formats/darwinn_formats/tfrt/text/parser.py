"""Parse the text form: the MLIR subset that BEF files are converted from.

    func.func @name(%a: type, ...) [-> types] [attributes {...}] { operations }

inside an optional ``module attributes {...} { ... }``. Operations are written in their generic
form, or in the form that ``operations.FORMS`` gives them. An operation that names no location is
located at its name in the text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from darwinn_formats.errors import TextError
from darwinn_formats.tfrt.encoding import FunctionKind
from darwinn_formats.tfrt.model import (
    CallSite,
    FileLineColumn,
    Fused,
    Location,
    NameLocation,
    UnknownLocation,
)
from darwinn_formats.tfrt.text.attribute_text import parse_attribute
from darwinn_formats.tfrt.text.forms import Draft
from darwinn_formats.tfrt.text.lexer import Token, tokens, unescape
from darwinn_formats.tfrt.text.operations import form_of
from darwinn_formats.tfrt.text.syntax import (
    Attributes,
    Block,
    FunctionReference,
    FunctionReferences,
    Module,
    Operation,
    TextFunction,
    Unit,
)

RETURN: Final = "tfrt.return"
NATIVE: Final = "tfrt.native"
SYNC: Final = "tfrt.sync"
MAXIMUM_DEPTH: Final = 64
"""Regions in regions, and locations in locations."""

_T = TypeVar("_T")


def parse(text: str, file: str = "-") -> Module:
    """Parse a module; ``file`` is the name that locations get.

    Raises:
        TextError: with line and column, for text that is not a module.
    """
    return Parser(text, file).module()


class Scope:
    """Values of a block by name: the number of the first result, and how many there are."""

    def __init__(self) -> None:
        self.names: dict[str, tuple[int, int]] = {}
        self.types: list[str] = []


class Parser:
    """A position in a text, and what the productions need from it."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.tokens = tokens(text, file)
        self.position = 0
        self.scope = Scope()
        self.depth = 0

    # --- tokens --------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.position]

    def take(self) -> Token:
        """The next token, left behind."""
        token = self.token
        if token.kind != "end":
            self.position += 1
        return token

    def error(self, reason: str, token: Token | None = None) -> TextError:
        """An error at a token, or at the next one."""
        token = token or self.token
        return TextError(self.file, token.line, token.column, reason)

    def accept(self, text: str) -> bool:
        """Take a token of that text if it is next."""
        if self.token.text != text or self.token.kind == "string":
            return False
        self.take()
        return True

    def expect(self, text: str) -> Token:
        """Take a token, which has to be of that text."""
        token = self.token
        if not self.accept(text):
            raise self.error(f"{text!r} is expected, not {token.text or 'the end'!r}")
        return token

    def of_kind(self, kind: str, what: str) -> str:
        """Take a token, which has to be of that kind."""
        if self.token.kind != kind:
            raise self.error(f"{what} is expected, not {self.token.text or 'the end'!r}")
        return self.take().text

    def entries(self, opening: str, closing: str, entry: Callable[[], _T]) -> list[_T]:
        """Entries between brackets, with commas between them."""
        self.expect(opening)
        found: list[_T] = []
        if self.accept(closing):
            return found
        found.append(entry())
        while self.accept(","):
            found.append(entry())
        self.expect(closing)
        return found

    def string(self) -> bytes:
        """A quoted string."""
        token = self.token
        text = self.of_kind("string", "a string")
        try:
            return unescape(text)
        except ValueError as error:
            raise self.error(str(error), token) from None

    def name_string(self) -> str:
        """A quoted string that names something."""
        return self.string().decode("utf-8", "surrogateescape")

    def integer(self) -> int:
        """A decimal integer."""
        return int(self.of_kind("integer", "an integer"))

    def symbol(self) -> str:
        """``@name`` without the ``@``."""
        token = self.token
        text = self.of_kind("symbol", "the name of a function")[1:]
        if not text.startswith('"'):
            return text
        try:
            return unescape(text).decode("utf-8", "surrogateescape")
        except ValueError as error:
            raise self.error(str(error), token) from None

    # --- types and attributes ------------------------------------------------------------------

    def type(self) -> str:
        """A type, as it is written, with brackets that match."""
        start = self.token
        if start.kind not in ("type", "name"):
            raise self.error(f"a type is expected, not {start.text or 'the end'!r}")
        last = self.take()
        if self.token.text == "<" and self.token.start == last.end:
            depth = 0
            while True:
                last = self.take()
                if last.kind == "end":
                    raise self.error("the type does not end", start)
                depth += (last.text == "<") - (last.text == ">")
                if depth == 0:
                    break
        return " ".join(self.text[start.start : last.end].split())

    def types(self) -> list[str]:
        """``type`` or ``(type, ...)``."""
        if self.token.text == "(":
            return self.entries("(", ")", self.type)
        return [self.type()]

    def type_list(self) -> list[str]:
        """``type, ...``."""
        types = [self.type()]
        while self.accept(","):
            types.append(self.type())
        return types

    def attributes(self) -> Attributes:
        """``{name = attribute, ...}`` or nothing, in alphabetical order."""
        found: Attributes = {}
        if self.token.text != "{":
            return found

        def entry() -> None:
            token = self.token
            name = self.name_string() if token.kind == "string" else self.of_kind("name", "a name")
            if name in found:
                raise self.error(f"attribute {name!r} is there twice", token)
            found[name] = parse_attribute(self) if self.accept("=") else Unit()

        self.entries("{", "}", entry)
        return dict(sorted(found.items()))

    # --- values --------------------------------------------------------------------------------

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

    # --- blocks --------------------------------------------------------------------------------

    def block(self, names: list[str], types: list[str], opened: bool = False) -> Block:
        """``{ operations }``, whose arguments have these names."""
        token = self.token if opened else self.expect("{")
        if self.depth > MAXIMUM_DEPTH:
            raise self.error(f"regions are nested more than {MAXIMUM_DEPTH} deep", token)
        outer, self.scope = self.scope, Scope()
        self.depth += 1
        for name, type_name in zip(names, types, strict=True):
            self.define(name, [type_name], token)
        operations: list[Operation] = []
        returned: tuple[int, ...] | None = None
        while not self.accept("}"):
            if returned is not None and self.token.kind != "end":
                raise self.error(f"{RETURN} is the last operation of a block")
            operation = self.operation()
            if operation.name == RETURN:
                returned = operation.operands
            else:
                operations.append(operation)
        if returned is None:
            last = self.tokens[self.position - 1]
            raise self.error(f"a block ends with {RETURN}", last)
        self.scope = outer
        self.depth -= 1
        return Block(tuple(types), tuple(operations), returned)

    def generic_region(self) -> Block:
        """``{ ^label(%a: type): operations }``; the label only where there are arguments."""
        names: list[str] = []
        types: list[str] = []
        opening = self.expect("{")
        if self.token.kind == "block":
            self.take()
            if self.token.text == "(":
                self.entries("(", ")", lambda: self.argument(names, types))
            self.expect(":")
        if len(set(names)) != len(names):
            raise self.error("two arguments have one name", opening)
        return self.block(names, types, opened=True)

    def argument(self, names: list[str], types: list[str]) -> None:
        """``%name: type``."""
        names.append(self.of_kind("value", "an argument"))
        self.expect(":")
        types.append(self.type())

    def operation(self) -> Operation:
        """``%results = name ... loc(...)``; the results get their names."""
        results: list[tuple[str, int, Token]] = []
        if self.token.kind == "value":
            results.append(self.result())
            while self.accept(","):
                results.append(self.result())
            self.expect("=")
        token = self.token
        generic = token.kind == "string"
        draft = Draft(self.name_string() if generic else self.of_kind("name", "an operation"))
        if generic:
            self.generic_operation(draft)
        else:
            form = form_of(draft.name)
            if form is None:
                raise self.error(f"{draft.name} has to be written in its generic form", token)
            form.parse(self, draft)
        location = self.location() or FileLineColumn(self.file, token.line, token.column)
        self.define_results(draft, results, token)
        return Operation(
            draft.name,
            tuple(draft.operands),
            dict(sorted(draft.attributes.items())),
            tuple(draft.regions),
            tuple(draft.result_types),
            location,
        )

    def define_results(
        self, draft: Draft, results: list[tuple[str, int, Token]], token: Token
    ) -> None:
        """Name and count the results of an operation."""
        types = list(draft.result_types)
        if not results:
            self.scope.types += types
            return
        if sum(count for _, count, _ in results) != len(types):
            raise self.error(f"{draft.name} has {len(types)} results", results[0][2])
        for name, count, at in results:
            self.define(name, types[:count], at)
            del types[:count]

    def result(self) -> tuple[str, int, Token]:
        """``%name`` or ``%name:count``, before the ``=``."""
        token = self.token
        name = self.of_kind("value", "a result")
        count = self.integer() if self.accept(":") else 1
        if count < 1:
            raise self.error("there is at least one result", token)
        return name, count, token

    def generic_operation(self, draft: Draft) -> None:
        """``(%a, ...) ({regions}) {attributes} : (types) -> types``."""
        self.expect("(")
        self.operands(draft)
        self.expect(")")
        if self.token.text == "(":
            draft.regions += self.entries("(", ")", self.generic_region)
        draft.attributes |= self.attributes()
        self.function_type(draft)

    def function_type(self, draft: Draft, skip: int = 0) -> None:
        """``: (types) -> types`` of the operands from number ``skip`` on, and of the results."""
        self.expect(":")
        token = self.token
        types = self.entries("(", ")", self.type)
        self.check_types(types, draft.operand_types[skip:], token)
        self.expect("->")
        draft.result_types += self.types()

    def check_types(self, stated: list[str], actual: list[str], token: Token) -> None:
        """Whether the types that are written are those that the values have."""
        if stated != actual:
            raise self.error(
                f"the operands are of types ({', '.join(actual)}), not ({', '.join(stated)})", token
            )

    # --- locations -----------------------------------------------------------------------------

    def location(self) -> Location | None:
        """``loc(...)`` or nothing; aliases are put in at the end."""
        if self.token.text != "loc":
            return None
        self.take()
        self.expect("(")
        location = self.location_body(0)
        self.expect(")")
        return location

    def location_body(self, depth: int) -> Location:
        """What stands in ``loc(...)``."""
        token = self.token
        if depth > MAXIMUM_DEPTH:
            raise self.error(f"locations are nested more than {MAXIMUM_DEPTH} deep")
        if token.kind == "alias":
            self.take()
            return self.alias_location(token)
        if self.accept("unknown"):
            return UnknownLocation()
        if self.accept("fused"):
            entries = self.entries("[", "]", lambda: self.location_body(depth + 1))
            return Fused(tuple(entries)) if entries else UnknownLocation()
        if self.accept("callsite"):
            self.expect("(")
            callee = self.location_body(depth + 1)
            self.expect("at")
            caller = self.location_body(depth + 1)
            self.expect(")")
            return CallSite(callee, caller)
        name = self.name_string()
        if self.accept(":"):
            line = self.integer()
            self.expect(":")
            return FileLineColumn(name, line, self.integer())
        if self.accept("("):
            child = self.location_body(depth + 1)
            self.expect(")")
            return NameLocation(name, child)
        return NameLocation(name)

    def alias_location(self, token: Token) -> Location:
        """The location of ``#name``, which may be defined after its uses."""
        at = next(
            (
                number
                for number in range(len(self.tokens) - 1)
                if self.tokens[number].text == token.text
                and self.tokens[number + 1].text == "="
                and self.tokens[number].kind == "alias"
            ),
            None,
        )
        if at is None:
            raise self.error(f"{token.text} is not defined", token)
        if self.depth > MAXIMUM_DEPTH:
            raise self.error(f"{token.text} is defined by itself", token)
        back, self.position = self.position, at + 2
        self.depth += 1
        location = self.location()
        self.depth -= 1
        if location is None:
            raise self.error("loc(...) is expected")
        self.position = back
        return location

    # --- functions and the module --------------------------------------------------------------

    def module(self) -> Module:
        """The whole text."""
        attributes: Attributes = {}
        self.skip_aliases()
        braces = self.accept("module")
        if braces:
            if self.token.kind == "symbol":
                self.take()
            if self.accept("attributes"):
                attributes = self.attributes()
            self.expect("{")
        functions: list[TextFunction] = []
        self.skip_aliases()
        while self.token.text in ("func.func", "func"):
            functions.append(self.function())
            self.skip_aliases()
        if braces:
            self.expect("}")
            self.location()
            self.skip_aliases()
        if self.token.kind != "end":
            raise self.error(f"a function is expected, not {self.token.text!r}")
        module = Module(tuple(functions), attributes)
        self.check_functions(module)
        return module

    def skip_aliases(self) -> None:
        """``#name = loc(...)``."""
        while self.token.kind == "alias":
            self.take()
            self.expect("=")
            if self.location() is None:
                raise self.error("loc(...) is expected")

    def function(self) -> TextFunction:
        """One function."""
        token = self.take()
        _ = self.accept("private") or self.accept("public")
        name_token = self.token
        name = self.symbol()
        if not name:
            raise self.error("a function has a name", name_token)
        names: list[str] = []
        types: list[str] = []
        self.entries("(", ")", lambda: self.function_argument(names, types))
        results = self.types() if self.accept("->") else []
        attributes = self.attributes() if self.accept("attributes") else {}
        native = attributes.pop(NATIVE, None) is not None
        sync = attributes.pop(SYNC, None) is not None
        block = None
        if self.token.text == "{":
            if names and not all(names):
                raise self.error("a function with a body names its arguments", token)
            block = self.block(names, types)
        location = self.location() or FileLineColumn(self.file, token.line, token.column)
        if native != (block is None):
            reason = "a native function has no body" if native else "the body is missing"
            raise self.error(reason, name_token)
        kind = FunctionKind.NATIVE if native else FunctionKind.SYNC if sync else FunctionKind.ASYNC
        if block is not None:
            self.check_block(block, results, kind, name_token)
        return TextFunction(name, kind, tuple(types), tuple(results), block, attributes, location)

    def function_argument(self, names: list[str], types: list[str]) -> None:
        """``%name: type``, or only the type where there is no body."""
        if self.token.kind == "value":
            self.argument(names, types)
        else:
            names.append("")
            types.append(self.type())

    def check_block(
        self, block: Block, results: list[str], kind: FunctionKind, token: Token
    ) -> None:
        """Whether a block returns what its function says, and what its kind allows."""
        if list(block.result_types()) != results:
            returned = ", ".join(block.result_types())
            raise self.error(f"({returned}) is returned, not ({', '.join(results)})", token)
        if kind is not FunctionKind.SYNC:
            return
        if len(set(block.returned)) != len(block.returned):
            raise self.error("a sync function returns no value twice", token)
        if any(value < len(block.argument_types) for value in block.returned):
            raise self.error("a sync function returns none of its arguments", token)

    def check_functions(self, module: Module) -> None:
        """Whether function names are unique and every function that is named is there."""
        names: set[str] = set()
        for function in module.functions:
            if function.name in names:
                raise self.error(f"function @{function.name} is there twice")
            names.add(function.name)
        for function in module.functions:
            if function.block is not None:
                self.check_references(function.block, names)

    def check_references(self, block: Block, names: set[str]) -> None:
        """Whether the functions that operations name are there."""
        for operation in block.operations:
            for attribute in operation.attributes.values():
                missing = [name for name in references(attribute) if name not in names]
                if missing:
                    location = operation.location
                    line, column = 1, 1
                    if isinstance(location, FileLineColumn) and location.file == self.file:
                        line, column = location.line, location.column
                    reason = f"function @{missing[0]} is not defined"
                    raise TextError(self.file, line, column, reason)
            for region in operation.regions:
                self.check_references(region, names)


def references(attribute: object) -> tuple[str, ...]:
    """Functions that an attribute names."""
    match attribute:
        case FunctionReference(name):
            return (name,)
        case FunctionReferences(names):
            return names
        case _:
            return ()


def without_locations(module: Module) -> Module:
    """The same module with unknown locations."""

    def block(of: Block) -> Block:
        return replace(
            of,
            operations=tuple(
                replace(
                    operation,
                    regions=tuple(map(block, operation.regions)),
                    location=UnknownLocation(),
                )
                for operation in of.operations
            ),
        )

    functions = tuple(
        replace(
            function,
            block=None if function.block is None else block(function.block),
            location=UnknownLocation(),
        )
        for function in module.functions
    )
    return replace(module, functions=functions)
