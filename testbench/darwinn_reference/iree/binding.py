"""What the steps of an activation are bound to: its registers, and the module that it runs in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darwinn_formats.iree import Function, Instruction
from darwinn_formats.iree.calling_convention import REGISTER_TYPES

from darwinn_reference.iree.registers import Registers
from darwinn_reference.iree.state import State

Step = Callable[[], None]
"""An instruction with its registers."""
Leave = Callable[[], int]
"""The last instruction of a block: gives the number of the next one, or RETURN."""
Call = Callable[[Function, Sequence[Any]], tuple[Any, ...]]
"""Runs another function of the module."""
RETURN = -1
"""What leaves a function, in the place of the next block."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What steps are made with; ``block_of`` numbers the blocks of the function by their pc."""

    function: Function
    registers: Registers
    state: State
    call: Call
    block_of: Mapping[int, int]

    def bank(self, kind: str, register: int) -> tuple[Any, int]:
        """Memory of a register and its index in it."""
        return self.registers.bank(kind, register)

    def reader(self, kind: str, register: int) -> Callable[[], Any]:
        """What reads a register; a reference that moves leaves null behind."""
        return self.registers.reader(kind, register)

    def taken(self, letter: str, register: int) -> Callable[[], Any]:
        """What reads a register by the letter of a convention."""
        return self.reader(REGISTER_TYPES[letter], register)

    def given(self, letters: Sequence[str], registers: Sequence[int]) -> list[tuple[Any, int]]:
        """Memory and index of the registers that take the results of a call."""
        return [
            self.bank(REGISTER_TYPES[letter], register)
            for letter, register in zip(letters, registers, strict=True)
        ]

    def readers(self, instruction: Instruction) -> list[Callable[[], Any]]:
        """What reads each register that an instruction reads."""
        return [
            self.reader(field.kind, operand)
            for field, operand in instruction.fields()
            if field.kind in "ilfdr" and not field.written
        ]

    def target(self, instruction: Instruction) -> tuple[Any, int]:
        """Memory and index of the register that an instruction writes."""
        field, operand = instruction.operation.fields[-1], instruction.operands[-1]
        return self.bank(field.kind, operand)

    def set(self, kind: str, register: Any, value: Any) -> Step:
        """A step that writes a constant."""
        bank, index = self.bank(kind, register)

        def step() -> None:
            bank[index] = value

        return step
