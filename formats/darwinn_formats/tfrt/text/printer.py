"""Print modules in the text form, as MLIR's printer does; ``parse`` of it gives the same module.

Values are numbered as there: those of a block from where the ones of the block around it end, so
that regions beside each other have the same names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import indent

from darwinn_formats.tfrt.encoding import FunctionKind
from darwinn_formats.tfrt.model import Location
from darwinn_formats.tfrt.text.attribute_text import print_attributes, symbol_text
from darwinn_formats.tfrt.text.lexer import quote
from darwinn_formats.tfrt.text.location_text import location_text
from darwinn_formats.tfrt.text.operations import form_of
from darwinn_formats.tfrt.text.pieces import function_type_text
from darwinn_formats.tfrt.text.syntax import (
    NATIVE,
    RETURN,
    SYNC,
    Attributes,
    Block,
    Module,
    Operation,
    TextFunction,
    Unit,
)

_INDENT = "  "


def print_module(module: Module, *, locations: bool = True, generic: bool = False) -> str:
    """The text of a module: with ``generic`` every operation in its generic form."""
    style = _Style(locations, generic)
    parts = [f"{text}\n" for text in module.compiled.values()]
    parts += [_function(function, style) for function in module.functions]
    body = "".join(indent(part, _INDENT) for part in parts)
    attributes = print_attributes(module.attributes) if module.attributes else ""
    if generic:
        return f'"builtin.module"() ({{\n{body}}}){_spaced(attributes)} : () -> ()\n'
    return f"module{_spaced(attributes and f'attributes {attributes}')} {{\n{body}}}\n"


def _spaced(text: str) -> str:
    return f" {text}" if text else ""


@dataclass(frozen=True)
class _Style:
    """What is printed besides the operations, and in which form these are."""

    locations: bool
    generic: bool

    def location(self, location: Location) -> str:
        return f" loc({location_text(location)})" if self.locations else ""


def _function(function: TextFunction, style: _Style) -> str:
    """Text of a function, with an end of line."""
    names = [f"%arg{number}" for number in range(len(function.argument_types))]
    attributes = dict(function.attributes)
    if function.kind is FunctionKind.NATIVE:
        attributes[NATIVE] = Unit()
    if function.kind is FunctionKind.SYNC:
        attributes[SYNC] = Unit()
    attributes = dict(sorted(attributes.items()))
    where = style.location(function.location)
    printer = None
    if function.block is not None:
        printer = BlockPrinter(style, function.block, names, 1, (0, len(names)))
    if style.generic:
        return f"{_generic_function(function, attributes, printer)}{where}\n"
    arguments = list(function.argument_types)
    if printer is not None:
        arguments = [f"{name}: {text}" for name, text in zip(names, arguments, strict=True)]
    visibility = "private " if printer is None else ""
    text = f"func.func {visibility}{symbol_text(function.name)}({', '.join(arguments)})"
    if function.result_types:
        text += function_type_text((), function.result_types).removeprefix("()")
    if attributes:
        text += f" attributes {print_attributes(attributes)}"
    return f"{text}{_spaced('' if printer is None else printer.text())}{where}\n"


def _generic_function(
    function: TextFunction, attributes: Attributes, printer: BlockPrinter | None
) -> str:
    kind = function_type_text(function.argument_types, function.result_types)
    name = quote(function.name.encode("utf-8", "surrogateescape"))
    visibility = ', sym_visibility = "private"' if printer is None else ""
    body = "{\n}" if printer is None else printer.text(labelled=True)
    own = print_attributes(attributes) if attributes else ""
    properties = f"<{{function_type = {kind}, sym_name = {name}{visibility}}}>"
    return f'"func.func"() {properties} ({body}){_spaced(own)} : () -> ()'


class BlockPrinter:
    """Text of a block, with the names of its values.

    ``depth`` counts what is around its operations; ``numbers`` are those of the next value and of
    the next argument of a region.
    """

    def __init__(
        self, style: _Style, block: Block, names: list[str], depth: int, numbers: tuple[int, int]
    ) -> None:
        self.style = style
        self.block = block
        self.depth = depth
        self.types = block.value_types()
        self.next_value, self.next_argument = numbers
        self.arguments = names
        self.names = list(names)
        for operation in block.operations:
            self.names += self.result_names(operation)

    def result_names(self, operation: Operation) -> list[str]:
        """Names of the results; an operation with several results has one name for all."""
        count = len(operation.result_types)
        if count == 0:
            return []
        name = f"%{self.next_value}"
        self.next_value += 1
        return [name] if count == 1 else [f"{name}#{number}" for number in range(count)]

    def name(self, value: int) -> str:
        """Name of a value."""
        return self.names[value]

    def text(self, labelled: bool = False) -> str:
        """``{ operations }``; with a label that names the arguments, where there are any."""
        margin, inner = _INDENT * (self.depth - 1), _INDENT * self.depth
        lines = "".join(f"{inner}{line}\n" for line in self.lines())
        label = ""
        if labelled and self.arguments:
            kinds = self.block.argument_types
            pairs = zip(self.arguments, kinds, strict=True)
            label = f"{margin}^bb0({', '.join(f'{name}: {kind}' for name, kind in pairs)}):\n"
        return f"{{\n{label}{lines}{margin}}}"

    def lines(self) -> Iterator[str]:
        """Operations, and the return."""
        value = len(self.block.argument_types)
        for operation in self.block.operations:
            count = len(operation.result_types)
            results = ""
            if count:
                first = self.names[value].partition("#")[0]
                results = f"{first} = " if count == 1 else f"{first}:{count} = "
            value += count
            location = self.style.location(operation.location)
            yield f"{results}{self.operation(operation)}{location}"
        yield self.operation(Operation(RETURN, self.block.returned, {}, (), ()))

    def operation(self, operation: Operation) -> str:
        """An operation in its own form if it has one and fits, else in the generic form."""
        form = None if self.style.generic else form_of(operation.name)
        text = None if form is None else form.print(self, operation)
        return self.generic(operation) if text is None else text

    def generic(self, operation: Operation) -> str:
        """``"name"(%a) ({regions}) {attributes} : (types) -> types``."""
        text = quote(operation.name.encode("utf-8", "surrogateescape"))
        text += f"({', '.join(map(self.name, operation.operands))})"
        if operation.regions:
            text += f" ({', '.join(map(self.generic_region, operation.regions))})"
        if operation.attributes:
            text += f" {print_attributes(operation.attributes)}"
        types = [self.types[value] for value in operation.operands]
        return f"{text} : {function_type_text(types, operation.result_types)}"

    def generic_region(self, region: Block) -> str:
        """``{ ^bb0(%a: type): operations }``."""
        count = len(region.argument_types)
        names = [f"%arg{self.next_argument + number}" for number in range(count)]
        return self.inside(region, names).text(labelled=True)

    def region(self, region: Block, names: list[str]) -> str:
        """``{ operations }`` of a region whose arguments have these names."""
        return self.inside(region, names).text()

    def inside(self, region: Block, names: list[str]) -> BlockPrinter:
        """What prints a region of an operation of this block."""
        numbers = (self.next_value, self.next_argument + len(names))
        return BlockPrinter(self.style, region, names, self.depth + 1, numbers)
