"""Activations of functions: registers, and the steps that were prepared with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from darwinn_formats.errors import ExecutionError
from darwinn_formats.iree import Function, argument_registers
from darwinn_formats.iree.calling_convention import REGISTER_TYPES

from darwinn_reference.errors import Unsupported
from darwinn_reference.iree.binding import RETURN, Call
from darwinn_reference.iree.blocks import Block, blocks_of
from darwinn_reference.iree.budget import Budget
from darwinn_reference.iree.imports import PlacedError
from darwinn_reference.iree.registers import Registers
from darwinn_reference.iree.state import State


class Activation:
    """The registers of a function, and its blocks as steps that use them: the interpreter."""

    def __init__(self, function: Function, state: State, call: Call, budget: Budget) -> None:
        self.function = function
        self.module = state.module
        self.budget = budget
        self.registers = Registers(function.descriptor)
        self.blocks = blocks_of(function, self.registers, state, call)
        self.parameters: list[tuple[Any, int]] = []
        if (convention := function.convention) is not None:
            letters, registers = convention.flat_arguments(), argument_registers(convention)[0]
            self.parameters = [
                self.registers.bank(REGISTER_TYPES[letter], register)
                for letter, register in zip(letters, registers, strict=True)
            ]

    def run(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Run the blocks from the first to a return, and give what is returned."""
        for (bank, index), value in zip(self.parameters, arguments, strict=True):
            bank[index] = value
        self.run_blocks()
        return self.registers.results

    def run_blocks(self) -> None:
        """Run the blocks, with the arguments in their registers."""
        budget, blocks, number = self.budget, self.blocks, 0
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
            raise self.placed(error, _pc(blocks[number], step)) from None

    def placed(self, error: ExecutionError, pc: int) -> PlacedError:
        """The error with function, operation, and where in the sources that is, in words."""
        location = self.module.locations(self.function).get(pc)
        where = "" if location is None else f" ({self.module.location_text(location)})"
        return PlacedError(f"{self.function.name} at {pc}{where}: {error}")


def _pc(block: Block, step: object) -> int:
    """Where a step of a block is; None stands for what leaves it."""
    failed = next((index for index, entry in enumerate(block.steps) if entry is step), -1)
    return block.places[failed]
