"""The virtual machine: a module with its state, and activations of its functions.

An activation owns the registers of a function, and the steps that were prepared with them. A call
takes an activation that is not running, so that recursion makes new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from darwinn_formats.errors import ExecutionError
from darwinn_formats.iree import Function, Module

from darwinn_reference.iree.activation import Activation
from darwinn_reference.iree.budget import Budget
from darwinn_reference.iree.compiled import Code, CompiledActivation, Ranges, code_of
from darwinn_reference.iree.imports import Handler
from darwinn_reference.iree.state import State
from darwinn_reference.observation import Observer, Operator

MAXIMUM_CALLS = 100
"""Calls within calls at most."""


class Machine:
    """A module with its state; ``budget`` is what running takes from, and ``compiled`` says
    whether functions with loops become machine code, with ``ranges`` all of them, into which goes
    where they read and write. An ``observer`` sees the functions.
    """

    def __init__(
        self,
        module: Module,
        imports: Mapping[tuple[str, str], Handler],
        host: object,
        budget: Budget,
        *,
        compiled: bool = True,
        ranges: Ranges | None = None,
    ) -> None:
        self.state = State(module, imports, host)
        self.budget = budget
        self.compiled = compiled
        self.depth = 0
        self.ranges = ranges
        self.observer: Observer | None = None
        self._free: dict[int, list[Activation]] = {}
        self._code: dict[int, Code | None] = {}

    def call(self, function: Function, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Run a function with values that fit its convention.

        Raises:
            ExecutionError: naming the function and the place where it failed.
        """
        if self.depth >= MAXIMUM_CALLS:
            raise ExecutionError(f"{function.name}: calls are nested {MAXIMUM_CALLS} deep")
        free = self._free.setdefault(function.ordinal, [])
        activation = free.pop() if free else self._activation(function)
        self.depth += 1
        observer = self.observer
        if observer is not None:
            observer.begin(Operator(function.name, "function"))
        try:
            return activation.run(arguments)
        finally:
            if observer is not None:
                observer.end(lambda: ((), ()))
            self.depth -= 1
            activation.registers.clear()
            free.append(activation)

    def _activation(self, function: Function) -> Activation:
        if self.compiled and function.ordinal not in self._code:
            tracked = self.ranges is not None
            self._code[function.ordinal] = code_of(function, tracked=tracked)
        code = self._code.get(function.ordinal)
        if code is None:
            return Activation(function, self.state, self.call, self.budget)
        return CompiledActivation(function, self.state, self.call, self.budget, code, self.ranges)
