"""Print modules in the text form; ``parse`` of the result gives the same module."""

from __future__ import annotations

from collections.abc import Iterator

from darwinn_formats.tfrt.encoding import FunctionKind
from darwinn_formats.tfrt.model import Location
from darwinn_formats.tfrt.text.attribute_text import print_attributes, symbol_text
from darwinn_formats.tfrt.text.lexer import quote
from darwinn_formats.tfrt.text.location_text import location_text
from darwinn_formats.tfrt.text.operations import form_of
from darwinn_formats.tfrt.text.syntax import (
    NATIVE,
    SYNC,
    Attributes,
    Block,
    Module,
    Operation,
    TextFunction,
    Unit,
)

_INDENT = "  "


def print_module(module: Module, *, locations: bool = True) -> str:
    """The text of a module; without locations it is easier to read."""
    functions = [_Function(function, locations).text() for function in module.functions]
    if not module.attributes:
        return "\n".join(functions)
    body = "\n".join(functions)
    return f"module attributes {print_attributes(module.attributes)} {{\n{body}}}\n"


class _Function:
    """Text of a function; numbers its values, those of regions included."""

    def __init__(self, function: TextFunction, locations: bool) -> None:
        self.function = function
        self.locations = locations
        self.next_value = 0

    def text(self) -> str:
        function = self.function
        names = [f"%arg{number}" for number in range(len(function.argument_types))]
        arguments = ", ".join(
            f"{name}: {text}" for name, text in zip(names, function.argument_types, strict=True)
        )
        text = "func.func private" if function.block is None else "func.func"
        text += f" {symbol_text(function.name)}({arguments})"
        if function.result_types:
            text += f" -> ({', '.join(function.result_types)})"
        attributes = self.attributes()
        if attributes:
            text += f" attributes {print_attributes(attributes)}"
        if function.block is not None:
            text += f" {BlockPrinter(self, function.block, names, 1).text()}"
        return f"{text}{self.location(function.location)}\n"

    def attributes(self) -> Attributes:
        attributes = dict(self.function.attributes)
        if self.function.kind is FunctionKind.NATIVE:
            attributes[NATIVE] = Unit()
        if self.function.kind is FunctionKind.SYNC:
            attributes[SYNC] = Unit()
        return dict(sorted(attributes.items()))

    def location(self, location: Location) -> str:
        return f" loc({location_text(location)})" if self.locations else ""


class BlockPrinter:
    """Text of a block, with the names of its values."""

    def __init__(self, function: _Function, block: Block, names: list[str], depth: int) -> None:
        self.function = function
        self.block = block
        self.depth = depth
        self.types = block.value_types()
        self.names = list(names)
        for operation in block.operations:
            self.names += self.result_names(operation)

    def result_names(self, operation: Operation) -> list[str]:
        """Names of the results; an operation with several results has one name for all."""
        count = len(operation.result_types)
        if count == 0:
            return []
        name = f"%{self.function.next_value}"
        self.function.next_value += 1
        return [name] if count == 1 else [f"{name}#{number}" for number in range(count)]

    def name(self, value: int) -> str:
        """Name of a value."""
        return self.names[value]

    def text(self) -> str:
        """``{ operations }``."""
        indent = _INDENT * self.depth
        lines = "".join(f"{indent}{line}\n" for line in self.lines())
        return f"{{\n{lines}{_INDENT * (self.depth - 1)}}}"

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
            location = self.function.location(operation.location)
            yield f"{results}{self.operation(operation)}{location}"
        returned = ", ".join(map(self.name, self.block.returned))
        types = ", ".join(self.types[value] for value in self.block.returned)
        yield f"tfrt.return {returned} : {types}" if returned else "tfrt.return"

    def operation(self, operation: Operation) -> str:
        """An operation in its own form if it has one and fits, else in the generic form."""
        form = form_of(operation.name)
        mark = self.function.next_value
        text = None if form is None else form.print(self, operation)
        if text is not None:
            return text
        self.function.next_value = mark
        return self.generic(operation)

    def generic(self, operation: Operation) -> str:
        """``"name"(%a) ({regions}) {attributes} : (types) -> (types)``."""
        text = quote(operation.name.encode("utf-8", "surrogateescape"))
        text += f"({', '.join(map(self.name, operation.operands))})"
        if operation.regions:
            text += f" ({', '.join(map(self.generic_region, operation.regions))})"
        if operation.attributes:
            text += f" {print_attributes(operation.attributes)}"
        types = ", ".join(self.types[value] for value in operation.operands)
        return f"{text} : ({types}) -> ({', '.join(operation.result_types)})"

    def generic_region(self, region: Block) -> str:
        """``{ ^bb0(%a: type): operations }``."""
        names = []
        for _ in region.argument_types:
            names.append(f"%{self.function.next_value}")
            self.function.next_value += 1
        text = self.region(region, names)
        arguments = ", ".join(
            f"{name}: {kind}" for name, kind in zip(names, region.argument_types, strict=True)
        )
        return text.replace("{", f"{{ ^bb0({arguments}):", 1)

    def region(self, region: Block, names: list[str]) -> str:
        """``{ operations }`` of a region whose arguments have these names."""
        return BlockPrinter(self.function, region, names, self.depth + 1).text()
