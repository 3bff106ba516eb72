"""Functions of other modules that a program can import, by their name and calling convention.

Both together are the key: a function whose arguments changed between versions of the bytecode
has an entry for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from darwinn_testbench.reference.protocol import ExecutionError


class PlacedError(ExecutionError):
    """A failure whose message says in which function and at which operation it was."""


Handler = Callable[..., Any]
"""Takes the machine, then one value for each argument of the convention (a list of tuples for
one that repeats); returns None, the result, or a tuple of several results."""


@dataclass(frozen=True, slots=True)
class ImportTable:
    """Functions of one module."""

    module: str
    functions: dict[tuple[str, str], Handler]

    def add(self, name: str, convention: str) -> Callable[[Handler], Handler]:
        """Declare the decorated function as the import of a name and a convention."""

        def declare(function: Handler) -> Handler:
            self.functions[f"{self.module}.{name}", convention] = function
            return function

        return declare


def merged(tables: Iterable[ImportTable]) -> Mapping[tuple[str, str], Handler]:
    """All functions of several modules."""
    return {key: function for table in tables for key, function in table.functions.items()}


def expect(value: Any, kind: type[Any], what: str) -> Any:
    """A reference that must not be null; ExecutionError if it is, or is of another kind."""
    if not isinstance(value, kind):
        found = "null" if value is None else f"a {type(value).__name__}"
        raise ExecutionError(f"{what} is {found}, not a {kind.__name__}")
    return value
