"""Functions of other modules that a program can import, by their name and calling convention.

Both together are the key: a function whose arguments changed between versions of the bytecode
has an entry for each.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from darwinn_formats.errors import ExecutionError
from darwinn_formats.iree.calling_convention import parse

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")
_HOST = "host"


class PlacedError(ExecutionError):
    """A failure whose message says in which function and at which operation it was."""


Handler = Callable[..., Any]
"""Takes the host, then one value for each argument of the convention (a list of tuples for one
that repeats); returns None, the result, or a tuple of several results."""


@dataclass(frozen=True, slots=True)
class ImportTable:
    """Functions of one module."""

    module: str
    functions: dict[tuple[str, str], Handler]

    def add(self, name: str, convention: str, arguments: str = "") -> Callable[[_F], _F]:
        """Declare the decorated function as the import of a name and a convention.

        ``arguments`` names the arguments of the convention, all that the function takes if it is
        empty. The function gets those that its parameters name, and the host as ``host``; what no
        argument gives has to have a default. One that takes any number gets all.
        """

        def declare(function: _F) -> _F:
            handler = _handler(function, arguments.split(), len(parse(convention).arguments))
            self.functions[f"{self.module}.{name}", convention] = handler
            return function

        return declare

    def add_all(self, table: Mapping[str, Callable[..., Any]]) -> None:
        """Add functions by name, convention and names of arguments, apart by spaces."""
        for declaration, function in table.items():
            name, convention, *arguments = declaration.split()
            self.add(name, convention, " ".join(arguments))(function)


def _handler(function: Callable[..., Any], arguments: Sequence[str], count: int) -> Handler:
    """A function of the host and of all arguments, which passes on those that are used."""
    parameters = inspect.signature(function).parameters
    if any(entry.kind is entry.VAR_POSITIONAL for entry in parameters.values()):
        return lambda host, *values: function(*values)
    names = [_HOST, *(arguments or [name for name in parameters if name != _HOST])]
    assert len(names) == 1 + count
    places = {
        name: names.index(name)
        for name, entry in parameters.items()
        if name in names or entry.default is entry.empty
    }
    return lambda *values: function(**{name: values[place] for name, place in places.items()})


def merged(tables: Iterable[ImportTable]) -> Mapping[tuple[str, str], Handler]:
    """All functions of several modules."""
    return {key: function for table in tables for key, function in table.functions.items()}


def expect(value: object, kind: type[_T], what: str) -> _T:
    """A reference that must not be null; ExecutionError if it is, or is of another kind."""
    if not isinstance(value, kind):
        found = "null" if value is None else f"a {type(value).__name__}"
        raise ExecutionError(f"{what} is {found}, not a {kind.__name__}")
    return value
