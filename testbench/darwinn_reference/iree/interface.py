"""What a module can be asked for: its public functions, and what they take and give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.iree import Function, Module

from darwinn_reference.errors import names_of
from darwinn_reference.iree.checked_ports import checked_ports
from darwinn_reference.iree.declaration import (
    ATTRIBUTE,
    DeclaredPort,
    parse_declaration,
    unnamed_ports,
)
from darwinn_reference.protocol import Port

NUMBERS: Mapping[str, type[np.number[Any]]] = {
    "i": np.int32,
    "I": np.int64,
    "f": np.float32,
    "F": np.float64,
}
"""NumPy types of the numbers of a calling convention."""

_INTERNAL_PREFIX = "__"
_PREFERRED = ("forward", "main")


@dataclass(frozen=True, slots=True)
class Signature:
    """A function with its arguments and results: letter of the convention, and port."""

    function: Function
    arguments: tuple[tuple[str, DeclaredPort], ...]
    results: tuple[tuple[str, DeclaredPort], ...]


class Interface:
    """The functions that are meant to be called, which is what ``protocol.Reference`` names."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._functions = {
            name: function
            for name, function in module.exports.items()
            if not name.startswith(_INTERNAL_PREFIX)
        }

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of what can be called, in the order of the file."""
        return tuple(self._functions)

    def inputs(self, function: str | None = None) -> tuple[Port, ...]:
        """Inputs of a function."""
        return tuple(entry.port for _, entry in self.signature(function).arguments)

    def outputs(self, function: str | None = None) -> tuple[Port, ...]:
        """Outputs of a function."""
        return tuple(entry.port for _, entry in self.signature(function).results)

    def signature(self, function: str | None) -> Signature:
        """What a function takes and gives."""
        return signature_of(self.module, self._functions[self.name_of(function)])

    def name_of(self, function: str | None) -> str:
        """The name of a function; of None the only one, or ``forward`` or ``main``.

        Raises:
            ExecutionError: there is none, or the choice is open.
        """
        known = names_of(self._functions)
        if function is None:
            preferred = [entry for entry in _PREFERRED if entry in self._functions]
            candidates = preferred or list(self._functions)
            if len(candidates) != 1:
                choice = f"{known} (--function NAME chooses)" if known else "there is none"
                raise ExecutionError(f"which function? {choice}")
            return candidates[0]
        if function not in self._functions:
            raise ExecutionError(f"the module has no function {function}, only {known}")
        return function


def signature_of(module: Module, function: Function) -> Signature:
    """A function as it declares its ports; else with names made up, and with the types of the
    arguments that it checks.
    """
    assert function.convention is not None
    letters, results = tuple(function.convention.flat_arguments()), function.convention.results
    ports = parse_declaration(function.attributes.get(ATTRIBUTE, ""))
    if ports is None or (len(ports[0]), len(ports[1])) != (len(letters), len(results)):
        checked = checked_ports(module, function)
        inputs = unnamed_ports("input", letters)
        ports = (
            tuple(checked.get(number, port) for number, port in enumerate(inputs)),
            unnamed_ports("output", results),
        )
    return Signature(
        function,
        tuple(zip(letters, ports[0], strict=True)),
        tuple(zip(results, ports[1], strict=True)),
    )
