"""Parse the text form: the MLIR subset that BEF files are converted from.

    func.func @name(%a: type, ...) [-> types] [attributes {...}] { operations }

inside an optional ``module attributes {...} { ... }``. Operations are written in their generic
form, or in the form that ``operations.form_of`` gives them. An operation that names no location is
located at its name in the text.
"""

from __future__ import annotations

from typing import Final

from darwinn_formats.tfrt.encoding import FunctionKind
from darwinn_formats.tfrt.model import FileLineColumn, Location, UnknownLocation
from darwinn_formats.tfrt.text.attribute_text import parse_attributes
from darwinn_formats.tfrt.text.lexer import Token
from darwinn_formats.tfrt.text.location_text import error_at, parse_location
from darwinn_formats.tfrt.text.operations import form_of
from darwinn_formats.tfrt.text.syntax import (
    COMPILED,
    NATIVE,
    RETURN,
    SYNC,
    Attributes,
    Block,
    Module,
    Operation,
    TextFunction,
)
from darwinn_formats.tfrt.text.values import Draft, Scope, ValueReader
from darwinn_formats.tfrt.text.verifier import verify

MAXIMUM_DEPTH: Final = 64
"""Regions in regions."""


def parse(text: str, file: str = "-", *, verified: bool = True) -> Module:
    """Parse a module; ``file`` is the name that locations get.

    Raises:
        TextError: with line and column, for text that is not a module, or, unless it need not be
            ``verified``, one that the original's verifiers refuse.
    """
    module = Parser(text, file).module()
    for error in verify(module, file) if verified else ():
        raise error
    return module


class Parser(ValueReader):
    """A position in a module."""

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
        where: Location = UnknownLocation()
        while not self.accept("}"):
            if returned is not None and self.token.kind != "end":
                raise self.error(f"{RETURN} is the last operation of a block")
            operation = self.operation()
            if operation.name == RETURN:
                returned, where = operation.operands, operation.location
            else:
                operations.append(operation)
        if returned is None:
            reason = f"all functions need to have a {RETURN}"
            if operations:
                raise error_at(operations[-1].location, self.file, reason)
            raise self.error(reason, self.tokens[self.position - 1])
        self.scope = outer
        self.depth -= 1
        return Block(tuple(types), tuple(operations), returned, where)

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
        location = parse_location(self) or FileLineColumn(self.file, token.line, token.column)
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
        draft.attributes |= parse_attributes(self)
        self.function_type(draft)

    # --- functions and the module --------------------------------------------------------------

    def module(self) -> Module:
        """The whole text."""
        attributes: Attributes = {}
        self.skip_aliases()
        # What begins with a compiled module has no module around it.
        braces = self.token.text == "module" and not self.at_compiled_module()
        if braces:
            attributes = self.module_head()[1]
            self.expect("{")
        functions: list[TextFunction] = []
        compiled: dict[str, str] = {}
        self.skip_aliases()
        while self.token.text in ("func.func", "func", "module"):
            if self.token.text == "module":
                name, text = self.compiled_module(compiled)
                compiled[name] = text
            else:
                functions.append(self.function())
            self.skip_aliases()
        if braces:
            self.expect("}")
            parse_location(self)
            self.skip_aliases()
        if self.token.kind != "end":
            raise self.error(f"a function is expected, not {self.token.text!r}")
        module = Module(tuple(functions), attributes, compiled)
        self.check_names(module)
        return module

    def module_head(self) -> tuple[str, Attributes]:
        """``module [@name] [attributes {...}]``."""
        self.expect("module")
        name = self.symbol() if self.token.kind == "symbol" else ""
        return name, parse_attributes(self) if self.accept("attributes") else {}

    def at_compiled_module(self) -> bool:
        """Whether a module comes that is for another compiler."""
        back = self.position
        attributes = self.module_head()[1]
        self.position = back
        return COMPILED in attributes

    def compiled_module(self, known: dict[str, str]) -> tuple[str, str]:
        """Name and text of a module for another compiler: whatever is between its braces."""
        start = self.token
        name, attributes = self.module_head()
        if COMPILED not in attributes:
            raise self.error(f"a module in a module has the attribute {COMPILED}", start)
        if not name or name in known:
            raise self.error(f"{name!r} is there twice" if name else "it has no name", start)
        return name, self.source(start, self.skip_braces())

    def skip_braces(self) -> Token:
        """Take ``{ ... }``, in which anything may be; gives the last token."""
        start, depth = self.expect("{"), 1
        while depth:
            token = self.tokens[self.position]
            if token.kind == "end":
                raise self.error("the braces do not end", start)
            self.position += 1
            depth += (token.text == "{") - (token.text == "}")
        return self.tokens[self.position - 1]

    def source(self, first: Token, last: Token) -> str:
        """The text from a token to another, without the margin of the first one's line."""
        margin = first.column - 1
        lines = self.text[first.start : last.end].split("\n")
        return "\n".join(line[min(margin, len(line) - len(line.lstrip())) :] for line in lines)

    def skip_aliases(self) -> None:
        """``#name = loc(...)``."""
        while self.token.kind == "alias":
            self.take()
            self.expect("=")
            if parse_location(self) is None:
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
        attributes = parse_attributes(self) if self.accept("attributes") else {}
        native = attributes.pop(NATIVE, None) is not None
        sync = attributes.pop(SYNC, None) is not None
        block = None
        if self.token.text == "{":
            if names and not all(names):
                raise self.error("a function with a body names its arguments", token)
            block = self.block(names, types)
        location = parse_location(self) or FileLineColumn(self.file, token.line, token.column)
        if native != (block is None):
            reason = "external functions are not allowed"
            if native:
                reason = "a native function has no body"
            raise self.error(reason, name_token)
        kind = FunctionKind.NATIVE if native else FunctionKind.SYNC if sync else FunctionKind.ASYNC
        return TextFunction(name, kind, tuple(types), tuple(results), block, attributes, location)

    def function_argument(self, names: list[str], types: list[str]) -> None:
        """``%name: type``, or only the type where there is no body."""
        if self.token.kind == "value":
            self.argument(names, types)
        else:
            names.append("")
            types.append(self.type())

    def check_names(self, module: Module) -> None:
        """Whether function names are unique."""
        names: set[str] = set()
        for function in module.functions:
            if function.name in names:
                raise self.error(f"function @{function.name} is there twice")
            names.add(function.name)
