"""A loaded module: what the file stores, with its bytecode and data at hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from darwinn_formats.flatbuffer import Span
from darwinn_formats.iree import bytecode
from darwinn_formats.iree.bytecode import Instruction
from darwinn_formats.iree.calling_convention import CallingConvention
from darwinn_formats.iree.container import Container
from darwinn_formats.iree.schema import (
    BytecodeModule,
    CallSiteLocation,
    FileLocation,
    FunctionDescriptor,
    FusedLocation,
    Location,
    NameLocation,
)

_LOCATION_PARTS = 32
"""Parts of a location that its text shows at most."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a module.

    Attributes:
        ordinal: its place among the functions.
        name: that of its export, else that in the debug database, else its ordinal in words.
        exports: names under which others call it.
        convention: what it takes and returns; None where the module does not say.
        body: its bytecode, and the byte of the file at which it starts.
    """

    ordinal: int
    name: str
    exports: tuple[str, ...]
    convention: CallingConvention | None
    attributes: dict[str, str]
    descriptor: FunctionDescriptor
    body: Span = field(repr=False)

    def instructions(self) -> Iterator[Instruction]:
        """Its instructions in the order of the bytes, decoded anew each time."""
        return bytecode.decode(self.body.data, self.body.offset)


@dataclass(frozen=True, slots=True)
class Module:
    """A module of bytecode.

    Attributes:
        definition: the tables of the file.
        container: how the file holds them; offsets count from the start of the module's bytes.
        functions: all functions, by ordinal.
        rodata: read-only data segments, embedded and external ones alike, by ordinal.
        nested: modules that are the contents of data segments, by the ordinal of these.
    """

    definition: BytecodeModule = field(repr=False)
    container: Container
    functions: tuple[Function, ...] = field(repr=False)
    rodata: tuple[Span, ...] = field(repr=False)
    nested: dict[int, Module] = field(repr=False)

    @property
    def name(self) -> str:
        """Name of the module, the first part of the full names of its functions."""
        return self.definition.name

    @property
    def bytecode_version(self) -> tuple[int, int]:
        """Major and minor version of the bytecode."""
        version = self.definition.bytecode_version
        return version >> 16, version & 0xFFFF

    @property
    def exports(self) -> dict[str, Function]:
        """Functions by the names under which they are exported, in the order of the file."""
        return {
            entry.local_name: self.functions[entry.internal_ordinal]
            for entry in self.definition.exported_functions
        }

    def locations(self, function: Function) -> dict[int, int]:
        """Where the operations of a function come from: indices of locations, by pc.

        Source maps are one for each function, or fewer (compilers of version 17 keep the last
        one only): then they are found by the name of the function.
        """
        database = self.definition.debug_database
        maps = () if database is None else database.functions
        if len(maps) == len(self.functions):
            entries = maps[function.ordinal].locations
        else:
            named = {entry.local_name: entry.locations for entry in maps}
            entries = named.get(function.name, ())
        return {entry.bytecode_offset: entry.location for entry in entries}

    def location_text(self, index: int) -> str:
        """A location in words: ``file:line:column``, names quoted, parts joined.

        The text is cut where a location has very many parts.
        """
        database = self.definition.debug_database
        return "?" if database is None else _LocationText(database.location_table).of(index)


class _LocationText:
    """Follows locations to their parts, as many as ``left`` allows."""

    def __init__(self, table: tuple[Location | None, ...]) -> None:
        self.table = table
        self.left = _LOCATION_PARTS

    def of(self, index: int) -> str:
        self.left -= 1
        if self.left < 0 or not 0 <= index < len(self.table):
            return "?"
        match self.table[index]:
            case FileLocation(filename, line, column):
                return f"{filename}:{line}:{column}"
            case CallSiteLocation(callee, caller):
                return f"{self.of(callee)} at {self.of(caller)}"
            case NameLocation(name, child):
                inner = self.of(child)
                return f'"{name}"' if inner == "?" else f'"{name}"({inner})'
            case FusedLocation(_, locations):
                parts = dict.fromkeys(self.of(entry) for entry in locations[: self.left])
                return f"[{', '.join(parts)}]"
        return "?"
