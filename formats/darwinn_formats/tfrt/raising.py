"""From BEF files to the text form: as the original's converter and printer give it, or exactly, so
that converting the text again gives the same bytes.

What the text form of the original does not say, and a file does, is kept in attributes of our
own where it has to be exact: streams that are not those of the analysis, and entries of tables that
nothing refers to.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from darwinn_formats.errors import FormatError, TextError
from darwinn_formats.tfrt import streams
from darwinn_formats.tfrt.dialects import former, is_old, present
from darwinn_formats.tfrt.encoding import NAMELESS, DType, FunctionKind
from darwinn_formats.tfrt.lowering import NOT_STORED, STREAMS, STRINGS, TYPES, lower
from darwinn_formats.tfrt.model import (
    Aggregate,
    Array,
    Attribute,
    BefFile,
    Body,
    Function,
    Kernel,
    Scalar,
    String,
    Symbol,
    UnknownLocation,
    Untyped,
    encode,
)
from darwinn_formats.tfrt.text.attribute_pieces import Function as NamedFunction
from darwinn_formats.tfrt.text.attribute_pieces import FunctionList
from darwinn_formats.tfrt.text.compiled import compiled_module
from darwinn_formats.tfrt.text.operations import form_of
from darwinn_formats.tfrt.text.printer import print_module
from darwinn_formats.tfrt.text.syntax import (
    AnyAttribute,
    Attributes,
    Block,
    FunctionReference,
    FunctionReferences,
    Module,
    Operation,
    SymbolReference,
    TextFunction,
)
from darwinn_formats.tfrt.text.token_reader import TokenReader

MAXIMUM_DEPTH = 64
"""Regions in regions."""


MISSING_SECTIONS: Final = "Missing AttributeTypes, AttributeNames or RegisterTypes sections."
_NO_TYPE: Final = "none"
_NO_VALUE: Final = Scalar.of(DType.I32, 0xDEADBEEF)
"""What the original takes for a type of a register, and an attribute, that a file does not say."""
_CALLEE: Final = "callee"
"""The name under which the original gives a function to a kernel, since files do not say it."""


def to_text(
    file: BefFile, *, locations: bool = False, generic: bool = False, exact: bool = False
) -> str:
    """The text form as the original prints it; with ``generic`` only generic forms.

    An ``exact`` text has all that a file says, locations, streams and unused entries of tables
    included, and converts to the same bytes. Without the optional sections types are ``none``,
    attributes have no names and no values, and a comment at the begin says so.

    Raises:
        FormatError: for a file that has no text form, or no exact one without the sections.
    """
    module = raise_module(file, exact=exact)
    text = print_module(module, locations=locations or exact, generic=generic)
    text = former(text) if is_old(file.types) else text
    return text if exact or _has_all_sections(file) else f"// warning: {MISSING_SECTIONS}\n{text}"


def raise_module(file: BefFile, *, exact: bool = False) -> Module:
    """The module of a file.

    Raises:
        FormatError: as ``to_text``.
    """
    file = present(file) if is_old(file.types) else file
    module = _Raising(file, exact).run()
    if not exact:
        return module
    again = lower(module)
    unreferenced: Attributes = {}
    for name, table, known in (
        (STRINGS, file.strings, again.strings),
        (TYPES, file.types, again.types),
    ):
        # A type that is missing brings its string along.
        missing = [text for text in table if text not in known]
        if name == STRINGS:
            missing = [text for text in missing if text not in file.types]
        if missing:
            unreferenced[name] = Aggregate(
                tuple(String(text.encode("utf-8", "surrogateescape")) for text in missing)
            )
    return replace(module, attributes=unreferenced)


def _has_all_sections(file: BefFile) -> bool:
    return file.attribute_data is None and file.has_attribute_names and file.has_register_types


class _Raising:
    def __init__(self, file: BefFile, exact: bool) -> None:
        self.file = file
        self.exact = exact
        self.raised: set[int] = set()
        self.compiled: dict[str, str] = {}

    def run(self) -> Module:
        for text in self.file.types:
            self.check_type(text)
        functions = tuple(
            self.function(number, function)
            for number, function in enumerate(self.file.functions)
            if function.name != NAMELESS
        )
        for number, function in enumerate(self.file.functions):
            if function.name == NAMELESS and number not in self.raised:
                raise self.error(number, "is a nameless function that is no region of a kernel")
        # The original puts each one that it meets before all others.
        return Module(functions, compiled=dict(reversed(self.compiled.items())))

    def check_type(self, text: str) -> None:
        """A type has to read back as the same type."""
        try:
            reader = TokenReader(text, "-")
            if reader.type() == text and reader.token.kind == "end":
                return
        except TextError:
            pass
        raise FormatError("types", f"{text!r} is no type of the text form", file=self.file.file)

    def error(self, number: int, reason: str) -> FormatError:
        return FormatError(f"functions[{number}]", reason, file=self.file.file)

    def function(self, number: int, function: Function) -> TextFunction:
        block, attributes, location = None, Attributes(), None
        result_types = function.result_types
        if function.body is not None:
            block, stated = self.block(number, function.body, function.argument_types, 0)
            location = function.body.location
            result_types = block.result_types()
            if stated is not None:
                attributes[STREAMS] = stated
            arguments = len(function.argument_types)
            returned = function.body.results
            if function.kind is FunctionKind.SYNC and (
                len(set(returned)) != len(returned) or any(r < arguments for r in returned)
            ):
                raise self.error(number, "is synchronous and returns an argument, or a value twice")
        return TextFunction(
            function.name,
            function.kind,
            function.argument_types,
            result_types,
            block,
            attributes,
            location or UnknownLocation(),
        )

    def block(
        self, number: int, body: Body, arguments: tuple[str, ...], depth: int
    ) -> tuple[Block, Array | None]:
        """The block of a function, and its streams where they have to be stated."""
        if depth > MAXIMUM_DEPTH:
            raise self.error(number, f"regions are nested more than {MAXIMUM_DEPTH} deep")
        if self.exact and any(register.type is None for register in body.registers):
            raise self.error(number, "has no text form without the section REGISTER_TYPES")
        operations = [self.operation(number, body, kernel, depth) for kernel in body.kernels]
        # A text numbers results in order; a file may number its registers otherwise.
        order = [*range(len(arguments))]
        for kernel in body.kernels:
            order += kernel.results
        renumbered = {register: value for value, register in enumerate(order)}
        block = Block(
            arguments,
            tuple(
                replace(operation, operands=tuple(renumbered[v] for v in operation.operands))
                for operation in operations
            ),
            tuple(renumbered[register] for register in body.results),
        )
        actual = (body.entry_stream, *(kernel.stream for kernel in body.kernels))
        if not self.exact or actual == streams.streams(block, streams.Options()):
            return block, None
        return block, _numbers(actual)

    def operation(self, number: int, body: Body, kernel: Kernel, depth: int) -> Operation:
        attributes = self.attributes(number, kernel)
        named = [self.file.functions[index].name for index in kernel.functions]
        count = next((n for n, name in enumerate(named) if name == NAMELESS), len(named))
        if any(name != NAMELESS for name in named[count:]):
            raise self.error(number, "has a kernel with a named function after a region")
        attributes |= function_attributes(kernel.name, named[:count])
        regions, stated = [], []
        for index in kernel.functions[count:]:
            region, own = self.region(number, index, depth)
            regions.append(region)
            stated.append(own)
        if any(own is not None for own in stated):
            attributes[STREAMS] = Aggregate(
                tuple(
                    own or _numbers(streams.streams(region, streams.Options()))
                    for region, own in zip(regions, stated, strict=True)
                )
            )
        types = tuple(body.registers[register].type or _NO_TYPE for register in kernel.results)
        return Operation(
            kernel.name,
            kernel.arguments,
            dict(sorted(attributes.items())),
            tuple(regions),
            types,
            kernel.location or UnknownLocation(),
        )

    def attributes(self, number: int, kernel: Kernel) -> Attributes:
        """Attributes of a kernel, besides those that name functions."""
        names = kernel.attribute_names
        if names is None:
            if self.exact and kernel.attributes:
                raise self.error(number, "has no text form without the section ATTRIBUTE_NAMES")
            names = tuple(f"attr{index}" for index in range(len(kernel.attributes)))
        # The text form orders attributes by their names, kernels take them by their order.
        elif list(names) != sorted(set(names)) or NOT_STORED.intersection(names):
            raise self.error(number, "has a kernel with attributes that are not in order")
        attributes = Attributes()
        for name, index in zip(names, kernel.attributes, strict=True):
            attribute = self.file.attributes[index]
            if isinstance(attribute, Untyped) and self.exact:
                raise self.error(number, "has no text form without the section ATTRIBUTE_TYPES")
            attributes[name] = self.attribute(attribute)
        return attributes

    def attribute(self, attribute: Attribute) -> AnyAttribute:
        """An attribute in the text; a symbol is a reference into the module that comes with it."""
        if isinstance(attribute, Untyped):
            return _NO_VALUE
        if self.exact or not isinstance(attribute, Symbol):
            return attribute
        found = compiled_module(attribute.unit)
        if found is None or self.compiled.setdefault(*found) != found[1]:
            return attribute
        names = (attribute.root, *attribute.nested)
        return SymbolReference(tuple(name.decode("utf-8", "surrogateescape") for name in names))

    def region(self, number: int, index: int, depth: int) -> tuple[Block, Array | None]:
        function = self.file.functions[index]
        if index in self.raised or function.body is None:
            raise self.error(number, f"shares the region of function {index}")
        if function.kind is not FunctionKind.ASYNC:
            raise self.error(index, "is a region that is not asynchronous")
        self.raised.add(index)
        return self.block(index, function.body, function.argument_types, depth + 1)


def function_attributes(kernel: str, functions: list[str]) -> Attributes:
    """Attributes that name functions, under the names that the form of the kernel gives them.

    Files do not hold these names; only their order matters, which is the alphabetical one.
    """
    attributes: dict[str, AnyAttribute] = {}
    form = form_of(kernel)
    parts = () if form is None else form.pieces
    wanted = sorted(part.name for part in parts if isinstance(part, NamedFunction))
    lists = [part.name for part in parts if isinstance(part, FunctionList)]
    if lists and functions:
        return {lists[0]: FunctionReferences(tuple(functions))}
    if len(wanted) != len(functions):
        # The original has one name for all of them; they are told apart, and in order.
        width = len(str(len(functions) - 1))
        later = [f"{_CALLEE}{number:0{width}}" for number in range(1, len(functions))]
        wanted = [_CALLEE, *later][: len(functions)]
    for name, function in zip(wanted, functions, strict=True):
        attributes[name] = FunctionReference(function)
    return attributes


def _numbers(values: tuple[int, ...]) -> Array:
    return Array(DType.I64, encode(DType.I64, list(values)))
