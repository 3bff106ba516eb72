"""The virtual machine: a module with its state, and activations of its functions.

An activation owns the registers of a function, and the steps that were prepared with them. A call
takes an activation that is not running, so that recursion makes new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from darwinn_formats.iree import Function, Module, argument_registers
from darwinn_formats.iree.calling_convention import REGISTER_TYPES
from darwinn_formats.limits import Clock

from darwinn_testbench.errors import ExecutionError, Unsupported
from darwinn_testbench.reference.iree.binding import RETURN
from darwinn_testbench.reference.iree.blocks import Block, blocks_of
from darwinn_testbench.reference.iree.imports import Handler, PlacedError
from darwinn_testbench.reference.iree.registers import Registers
from darwinn_testbench.reference.iree.state import State

MAXIMUM_BLOCKS = 200_000_000
"""Blocks that a call from outside may run with its dispatches: what does not end is stopped."""
MAXIMUM_CALLS = 100
"""Calls within calls at most."""

_TURN = 16
"""Blocks between two looks at the clock."""


class Budget:
    """What a call from outside may still take, in all machines that share it: ``blocks`` of
    ``maximum`` until it is asked again, and the time and memory of the context's limits.
    """

    __slots__ = ("_clock", "_left", "blocks")

    def __init__(self, maximum: int) -> None:
        self._clock = Clock()
        self.begin(maximum)

    def begin(self, maximum: int) -> None:
        """Another call from outside begins."""
        self._clock.restart()
        self._left = maximum
        self.blocks = 0

    def ask(self) -> None:
        """Let further blocks run; ExecutionError if the call has had enough."""
        self.look()
        if not self._left:
            raise ExecutionError("the call runs more blocks than it may")
        self.blocks = min(_TURN, self._left)
        self._left -= self.blocks

    def look(self) -> None:
        """Look at the clock, also within a block: ExecutionError."""
        if passed := self._clock.passed():
            raise ExecutionError(f"the call has not ended after {passed}")


class Machine:
    """A module with its state; ``budget`` is what running takes from."""

    def __init__(
        self,
        module: Module,
        imports: Mapping[tuple[str, str], Handler],
        host: object,
        budget: Budget,
    ) -> None:
        self.state = State(module, imports, host)
        self.budget = budget
        self.depth = 0
        self._free: dict[int, list[Activation]] = {}

    def call(self, function: Function, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Run a function with values that fit its convention.

        Raises:
            ExecutionError: naming the function and the place where it failed.
        """
        if self.depth >= MAXIMUM_CALLS:
            raise ExecutionError(f"{function.name}: calls are nested {MAXIMUM_CALLS} deep")
        free = self._free.setdefault(function.ordinal, [])
        activation = free.pop() if free else Activation(self, function)
        self.depth += 1
        try:
            return activation.run(arguments)
        finally:
            self.depth -= 1
            activation.registers.clear()
            free.append(activation)


class Activation:
    """The registers of a function, and its blocks as steps that use them."""

    def __init__(self, machine: Machine, function: Function) -> None:
        self.function = function
        self.module = machine.state.module
        self.budget = machine.budget
        self.registers = Registers(function.descriptor)
        self.blocks = blocks_of(function, self.registers, machine.state, machine.call)
        self.parameters: list[tuple[Any, int]] = []
        if (convention := function.convention) is not None:
            letters, registers = convention.flat_arguments(), argument_registers(convention)[0]
            self.parameters = [
                self.registers.bank(REGISTER_TYPES[letter], register)
                for letter, register in zip(letters, registers, strict=True)
            ]

    def run(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Run the blocks from the first to a return, and give what is returned."""
        registers, budget, blocks, number = self.registers, self.budget, self.blocks, 0
        for (bank, index), value in zip(self.parameters, arguments, strict=True):
            bank[index] = value
        step: object = None
        try:
            while number != RETURN:
                block = blocks[number]
                if not budget.blocks:
                    budget.ask()
                budget.blocks -= 1
                for step in block.steps:
                    step()
                step = None
                number = block.leave()
        except (PlacedError, Unsupported):
            raise
        except ExecutionError as error:
            raise PlacedError(f"{self._place(blocks[number], step)}: {error}") from None
        return registers.results

    def _place(self, block: Block, step: object) -> str:
        """Function and operation, and where in the sources that is, in words."""
        failed = next((index for index, entry in enumerate(block.steps) if entry is step), -1)
        pc = block.places[failed]
        location = self.module.locations(self.function).get(pc)
        where = "" if location is None else f" ({self.module.location_text(location)})"
        return f"{self.function.name} at {pc}{where}"
