"""From the text form to BEF files: tables, registers, lists of users and streams.

Everything is numbered in the order in which the original converter walks a module: what is in the
regions of an operation, then the operation, then the function. docs/formats-bef.md, "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from darwinn_formats.errors import TextError
from darwinn_formats.tfrt import streams
from darwinn_formats.tfrt.dialects import former, is_old
from darwinn_formats.tfrt.encoding import DTYPES, FLOATS, INTEGERS, NAMELESS, DType, FunctionKind
from darwinn_formats.tfrt.model import (
    Aggregate,
    Array,
    Attribute,
    BefFile,
    Body,
    Function,
    Kernel,
    Location,
    Register,
    Scalar,
    String,
    Symbol,
)
from darwinn_formats.tfrt.text.attribute_text import cannot_encode, print_attribute
from darwinn_formats.tfrt.text.location_text import error_at
from darwinn_formats.tfrt.text.parser import parse
from darwinn_formats.tfrt.text.syntax import (
    AnyAttribute,
    Block,
    FunctionReference,
    FunctionReferences,
    Module,
    Operation,
    SymbolReference,
    TextFunction,
    Unit,
)
from darwinn_formats.tfrt.text.verifier import verify

STREAMS: Final = "_bef_streams"
"""Attribute with the streams that a file states where they are not those of the analysis.

A list of numbers for a function: the pseudo kernel, then each operation. A list of such lists,
one for each region, for an operation.
"""
STRINGS: Final = "_bef_strings"
TYPES: Final = "_bef_types"
"""Attributes of a module: entries of the tables that nothing refers to."""
NOT_STORED: Final = frozenset({streams.COST, STREAMS})
"""Attributes of operations that are for the converter only."""


def from_text(text: str, file: str = "-", *, verified: bool = True) -> BefFile:
    """Convert the text form; ``file`` is the name that locations get.

    Raises:
        TextError: with line and column; also for what the original's verifiers refuse, unless the
            text need not be ``verified``.
    """
    converted = lower(parse(text, file, verified=verified), file)
    return former(converted) if is_old([text]) else converted


def diagnose(text: str, file: str = "-") -> list[TextError]:
    """Why a text cannot be converted: all errors of the verifiers, else the first other one."""
    try:
        module = parse(text, file, verified=False)
        errors = verify(module, file)
        if not errors:
            lower(module, file)
    except TextError as error:
        return [error]
    return errors


def lower(module: Module, file: str = "-") -> BefFile:
    """Convert a module.

    Raises:
        TextError: for an attribute that a BEF file cannot hold.
    """
    return _Lowering(module, file).run()


class _Lowering:
    def __init__(self, module: Module, file: str) -> None:
        self.module = module
        self.file = file
        self.attributes: dict[Attribute, int] = {}
        self.symbols: dict[SymbolReference, Symbol] = {}
        self.kernels: dict[str, None] = {}
        self.types: dict[str, None] = {}
        self.strings: dict[str, None] = {}
        self.functions: list[tuple[TextFunction | None, Block | None, Location, streams.Options]]
        self.functions = []
        self.function_numbers: dict[str, int] = {}
        self.region_numbers: dict[int, int] = {}
        self.stated_streams: dict[int, tuple[int, ...]] = {}

    def run(self) -> BefFile:
        for function in self.module.functions:
            self.collect_function(function)
        for name, table in ((STRINGS, self.strings), (TYPES, self.types)):
            for text in _strings(self.module.attributes.get(name)):
                table.setdefault(text)
                self.strings.setdefault(text)
        functions = tuple(self.function(*entry) for entry in self.functions)
        ordered = sorted(self.strings, key=_encoded)
        return BefFile(
            functions,
            tuple(self.attributes),
            tuple(self.kernels),
            tuple(self.types),
            tuple(ordered),
            file=self.file,
        )

    # --- tables --------------------------------------------------------------------------------

    def add_type(self, text: str) -> None:
        self.types.setdefault(text)
        self.strings.setdefault(text)

    def add_function(
        self,
        function: TextFunction | None,
        block: Block | None,
        location: Location,
        chosen: streams.Options,
    ) -> int:
        name = NAMELESS if function is None else function.name
        self.strings.setdefault(name)
        self.functions.append((function, block, location, chosen))
        return len(self.functions) - 1

    def collect_function(self, function: TextFunction) -> None:
        try:
            chosen = streams.options(function.attributes, self.module.attributes)
            nested = streams.options(self.module.attributes)
        except ValueError as error:
            raise self.error(function.location, str(error)) from None
        if function.block is None:
            types = (*function.argument_types, *function.result_types)
        else:
            self.collect_block(function.block, nested)
            types = function.argument_types
        for text in types:
            self.add_type(text)
        number = self.add_function(function, function.block, function.location, chosen)
        self.function_numbers[function.name] = number
        if STREAMS in function.attributes and function.block is not None:
            stated = function.attributes[STREAMS]
            self.state_streams(function.block, stated, function.location)

    def collect_block(self, block: Block, nested: streams.Options) -> None:
        for operation in block.operations:
            for region in operation.regions:
                self.collect_block(region, nested)
            for text in operation.result_types:
                self.add_type(text)
            self.kernels.setdefault(operation.name)
            self.strings.setdefault(operation.name)
            for name, attribute in stored(operation):
                self.collect_attribute(name, attribute, operation)
            for region in operation.regions:
                for text in region.argument_types:
                    self.add_type(text)
                number = self.add_function(None, region, operation.location, nested)
                self.region_numbers[id(region)] = number
            self.state_region_streams(operation)

    def collect_attribute(self, name: str, attribute: AnyAttribute, operation: Operation) -> None:
        match attribute:
            case FunctionReference():
                return
            case Unit():
                reason = f"{cannot_encode(name)}, which has no value"
                raise self.error(operation.location, reason)
            case SymbolReference():
                attribute = self.symbol(attribute, operation)
        self.strings.setdefault(name)
        for text in _types_of(attribute):
            self.add_type(text)
        if not isinstance(attribute, FunctionReferences):
            self.attributes.setdefault(attribute, len(self.attributes))

    def symbol(self, reference: SymbolReference, operation: Operation) -> Symbol:
        """A reference with the text of the compiled module that it names; they are numbered."""
        known = self.symbols.get(reference)
        if known is not None:
            return known
        root, *nested = reference.names
        unit = self.module.compiled.get(root)
        if unit is None:
            reason = f"symbol {print_attribute(reference)}: there is no compiled module @{root}"
            raise self.error(operation.location, reason)
        names = [_encoded(name) for name in (root, *nested)]
        symbol = Symbol(len(self.symbols), names[0], tuple(names[1:]), _encoded(unit))
        self.symbols[reference] = symbol
        return symbol

    # --- functions -----------------------------------------------------------------------------

    def function(
        self,
        function: TextFunction | None,
        block: Block | None,
        location: Location,
        chosen: streams.Options,
    ) -> Function:
        if block is None:
            assert function is not None
            return Function(
                function.kind, function.name, function.argument_types, function.result_types, None
            )
        name, kind = NAMELESS, FunctionKind.ASYNC
        if function is not None:
            name, kind = function.name, function.kind
        numbers = self.stated_streams.get(id(block)) or streams.streams(block, chosen)
        body = self.body(block, location, numbers)
        return Function(kind, name, block.argument_types, block.result_types(), body)

    def body(self, block: Block, location: Location, numbers: tuple[int, ...]) -> Body:
        types = block.value_types()
        uses = [0] * len(types)
        users: list[list[int]] = [[] for _ in types]
        for number, operation in enumerate(block.operations, 1):
            for value in operation.operands:
                uses[value] += 1
                users[value].append(number)
        for value in block.returned:
            uses[value] += 1
        # The last use comes first, as in the use lists of the original's libraries.
        used_by = [tuple(reversed(entry)) for entry in users]
        idle = tuple(
            number for number, operation in enumerate(block.operations, 1) if not operation.operands
        )
        arguments = len(block.argument_types)
        kernels, first = [], arguments
        for operation, stream in zip(block.operations, numbers[1:], strict=True):
            count = len(operation.result_types)
            results = tuple(range(first, first + count))
            kernels.append(self.kernel(operation, results, used_by, stream))
            first += count
        return Body(
            location,
            tuple(map(Register, uses, types)),
            numbers[0],
            (idle, *used_by[:arguments]),
            tuple(kernels),
            block.returned,
        )

    def kernel(
        self,
        operation: Operation,
        results: tuple[int, ...],
        used_by: list[tuple[int, ...]],
        stream: int,
    ) -> Kernel:
        attributes, names, functions = [], [], []
        for name, attribute in stored(operation):
            match attribute:
                case FunctionReference(function):
                    functions.append(self.function_numbers[function])
                case FunctionReferences(listed):
                    functions += [self.function_numbers[function] for function in listed]
                case Unit():
                    continue
                case SymbolReference():
                    attributes.append(self.attributes[self.symbols[attribute]])
                    names.append(name)
                case _:
                    attributes.append(self.attributes[attribute])
                    names.append(name)
        functions += [self.region_numbers[id(region)] for region in operation.regions]
        return Kernel(
            operation.name,
            operation.location,
            operation.operands,
            tuple(attributes),
            tuple(names),
            tuple(functions),
            results,
            tuple(used_by[result] for result in results),
            len(operation.operands),
            stream,
        )

    # --- streams that are stated ---------------------------------------------------------------

    def state_region_streams(self, operation: Operation) -> None:
        stated = operation.attributes.get(STREAMS)
        if stated is None:
            return
        lists = stated.elements if isinstance(stated, Aggregate) else ()
        if len(lists) != len(operation.regions):
            raise self.error(operation.location, f"{STREAMS} has one list for each region")
        for region, numbers in zip(operation.regions, lists, strict=True):
            self.state_streams(region, numbers, operation.location)

    def state_streams(self, block: Block, stated: AnyAttribute, location: Location) -> None:
        numbers = stated.value if isinstance(stated, Array) else []
        integers = tuple(number for number in numbers if isinstance(number, int) and number >= 0)
        if len(integers) != len(numbers) or len(numbers) != len(block.operations) + 1:
            raise self.error(location, f"{STREAMS} has one number for each operation, and one more")
        self.stated_streams[id(block)] = integers

    def error(self, location: Location, reason: str) -> TextError:
        return error_at(location, self.file, reason)


def stored(operation: Operation) -> Iterator[tuple[str, AnyAttribute]]:
    """Attributes of an operation that a file holds."""
    return (entry for entry in operation.attributes.items() if entry[0] not in NOT_STORED)


def _types_of(attribute: AnyAttribute) -> Iterator[str]:
    """Types of the numbers in an attribute, in their order."""
    match attribute:
        case Scalar(dtype):
            yield DTYPES[dtype].text
        case Array(DType() as dtype) if attribute.data and dtype in FLOATS | INTEGERS:
            yield DTYPES[dtype].text
        case Aggregate(elements):
            for element in elements:
                yield from _types_of(element)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _strings(attribute: AnyAttribute | None) -> Iterator[str]:
    if isinstance(attribute, Aggregate):
        for element in attribute.elements:
            if isinstance(element, String):
                yield element.data.decode("utf-8", "surrogateescape")
