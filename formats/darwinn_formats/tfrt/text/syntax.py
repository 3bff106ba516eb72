"""The text form as data: a module of functions, each a block of operations.

Values of a block are numbered: its arguments first, then the results of its operations. A block
sees no value of another block.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from darwinn_formats.tfrt.encoding import FunctionKind
from darwinn_formats.tfrt.model import Attribute, Location, UnknownLocation

RETURN: Final = "tfrt.return"
"""The operation at the end of every block."""
NATIVE: Final = "tfrt.native"
SYNC: Final = "tfrt.sync"
"""Attributes of a function that say its kind."""
COMPILED: Final = "tfrt.compiled"
"""Attribute of a module that is for another compiler, whose text a file carries."""


@dataclass(frozen=True, slots=True)
class FunctionReference:
    """``@name``."""

    name: str


@dataclass(frozen=True, slots=True)
class FunctionReferences:
    """``[@a, @b]``."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SymbolReference:
    """``@module::@name``: a symbol of a compiled module."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """An attribute that is only there, such as ``tfrt.sync``."""


AnyAttribute = Attribute | FunctionReference | FunctionReferences | SymbolReference | Unit
Attributes = dict[str, AnyAttribute]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation; ``attributes`` are in alphabetical order of their names."""

    name: str
    operands: tuple[int, ...]
    attributes: Attributes
    regions: tuple[Block, ...]
    result_types: tuple[str, ...]
    location: Location = UnknownLocation()


@dataclass(frozen=True, slots=True)
class Block:
    """Operations without the ``tfrt.return`` at the end, whose operands are ``returned``."""

    argument_types: tuple[str, ...]
    operations: tuple[Operation, ...]
    returned: tuple[int, ...]
    return_location: Location = field(default=UnknownLocation(), compare=False)

    def value_types(self) -> list[str]:
        """Types of all values."""
        types = list(self.argument_types)
        for operation in self.operations:
            types += operation.result_types
        return types

    def result_types(self) -> tuple[str, ...]:
        """Types of what the block returns."""
        types = self.value_types()
        return tuple(types[value] for value in self.returned)


@dataclass(frozen=True, slots=True)
class TextFunction:
    """A function; a native one has no block. ``attributes`` are those besides its kind."""

    name: str
    kind: FunctionKind
    argument_types: tuple[str, ...]
    result_types: tuple[str, ...]
    block: Block | None
    attributes: Attributes = field(default_factory=dict)
    location: Location = UnknownLocation()


@dataclass(frozen=True, slots=True)
class Module:
    """All functions, in order; ``compiled`` are texts of modules for other compilers, by name."""

    functions: tuple[TextFunction, ...]
    attributes: Attributes = field(default_factory=dict)
    compiled: dict[str, str] = field(default_factory=dict)
