"""Functions of other modules that a program can import, by their name and calling convention.

Both together are the key: a function whose arguments changed between versions of the bytecode
has an entry for each.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from darwinn_formats.iree.calling_convention import parse

from darwinn_testbench.errors import ExecutionError

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

        ``arguments`` names the arguments of the convention; the function gets those that its own
        parameters name, and the host if one is called ``host``. Without names it gets all.
        """

        def declare(function: _F) -> _F:
            handler = _handler(function, arguments.split(), len(parse(convention).arguments))
            self.functions[f"{self.module}.{name}", convention] = handler
            return function

        return declare


def _handler(function: Callable[..., Any], names: Sequence[str], count: int) -> Handler:
    """A function of the host and of all arguments, which passes on those that are used."""
    used = [name for name in inspect.signature(function).parameters if name != _HOST]
    places = [names.index(name) for name in used] if names else list(range(count))
    assert len(names or used) == count
    if _HOST in inspect.signature(function).parameters:
        return lambda host, *values: function(host, *[values[place] for place in places])
    return lambda host, *values: function(*[values[place] for place in places])


def merged(tables: Iterable[ImportTable]) -> Mapping[tuple[str, str], Handler]:
    """All functions of several modules."""
    return {key: function for table in tables for key, function in table.functions.items()}


def expect(value: object, kind: type[_T], what: str) -> _T:
    """A reference that must not be null; ExecutionError if it is, or is of another kind."""
    if not isinstance(value, kind):
        found = "null" if value is None else f"a {type(value).__name__}"
        raise ExecutionError(f"{what} is {found}, not a {kind.__name__}")
    return value
