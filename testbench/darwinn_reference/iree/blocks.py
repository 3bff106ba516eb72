"""The blocks of a function, as steps."""

from __future__ import annotations

from dataclasses import dataclass

from darwinn_formats.iree import Function
from darwinn_formats.iree.opcodes import BLOCK

from darwinn_reference.iree.binding import Binding, Call, Leave, Step
from darwinn_reference.iree.branches import LEAVES
from darwinn_reference.iree.registers import Registers
from darwinn_reference.iree.state import State
from darwinn_reference.iree.steps import STEPS, step_of

COVERED = STEPS | LEAVES.keys()
"""Mnemonics of all operations that can be run."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block: its steps, what leads to the next block, and the pc of each and of the last."""

    steps: tuple[Step, ...]
    leave: Leave
    places: tuple[int, ...]


def blocks_of(
    function: Function, registers: Registers, state: State, call: Call
) -> tuple[Block, ...]:
    """All blocks in their order; control goes to them by their number."""
    instructions = list(function.instructions())
    starts = [entry.pc for entry in instructions if entry.mnemonic == BLOCK]
    block_of = {pc: index for index, pc in enumerate(starts)}
    binding = Binding(function, registers, state, call, block_of)
    made: list[Block] = []
    steps: list[Step] = []
    places: list[int] = []
    for entry in instructions:
        if entry.operation.terminates:
            leave = LEAVES[entry.mnemonic](binding, entry)
            made.append(Block(tuple(steps), leave, (*places, entry.pc)))
            steps, places = [], []
        elif (step := step_of(binding, entry)) is not None:
            steps.append(step)
            places.append(entry.pc)
    return tuple(made)
