"""The virtual machine: modules with their state, and activations of their functions.

An activation owns the memory of a function's registers, and the steps that were prepared with
them. A call takes an activation that is not running, so that recursion makes new ones. Scalar
registers are cells of 32 bits in one memory with a view for each type, as in the original:
numbers of different types share cells bit by bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from darwinn_formats.iree import Function, Module, argument_registers
from darwinn_formats.iree.opcodes import MOVE_BIT, REFERENCE_BIT

from darwinn_testbench.reference.iree.imports import Handler, PlacedError
from darwinn_testbench.reference.iree.memory import Buffer, allocate
from darwinn_testbench.reference.iree.steps import RETURN, Block, Preparation
from darwinn_testbench.reference.protocol import ExecutionError, Unsupported

MAXIMUM_BLOCKS = 200_000_000
"""Blocks that a call from outside may run with its dispatches: what does not end is stopped."""
MAXIMUM_REFERENCES = 1 << 20
"""Globals that are references at most."""
MAXIMUM_CALLS = 100
"""Calls within calls at most."""

CELL_KINDS = {"i": ("i", 1), "f": ("f", 1), "l": ("q", 2), "d": ("d", 2)}
"""Code of the view of each register type, and how many cells a register of it takes."""
_LETTER_KINDS = {"i": "i", "I": "l", "f": "f", "F": "d"}
_ORDINAL = ~(REFERENCE_BIT | MOVE_BIT)


class Budget:
    """Blocks that may still run in all machines that share it."""

    __slots__ = ("blocks",)

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks


class Machine:
    """A module with its state.

    Attributes:
        module: the module.
        globals: memory of the globals that are numbers, with a view for each register type.
        references: the globals that are references.
        host: what the imports work with; they get it as their first argument.
        budget: what running takes from.
    """

    def __init__(
        self,
        module: Module,
        imports: Mapping[tuple[str, str], Handler],
        host: object,
        budget: Budget,
    ) -> None:
        self.module = module
        self.host = host
        self.budget = budget
        state = module.definition.module_state
        size = 0 if state is None else state.global_bytes_capacity
        memory = allocate(-(-size // 8) * 8)
        self.global_bytes = size
        self.globals: dict[str, Any] = {
            kind: memory.cast(code)  # type: ignore[call-overload]
            for kind, (code, _) in CELL_KINDS.items()
        }
        count = 0 if state is None else state.global_ref_count
        if count > MAXIMUM_REFERENCES:
            raise ExecutionError(f"{count} globals that are references")
        self.references: list[Any] = [None] * count
        self.rodata = [
            Buffer(data.data.toreadonly(), ordinal) for ordinal, data in enumerate(module.rodata)
        ]
        self.imports = _resolve(module, imports)
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
            activation.clear()
            free.append(activation)


def _resolve(
    module: Module, imports: Mapping[tuple[str, str], Handler]
) -> tuple[Handler | None, ...]:
    found: list[Handler | None] = []
    missing = []
    for entry in module.definition.imported_functions:
        convention = entry.signature.calling_convention if entry.signature else ""
        handler = imports.get((entry.full_name, convention))
        if handler is None and not entry.optional:
            missing.append(f"{entry.full_name} {convention}")
        found.append(handler)
    if missing:
        raise Unsupported("imports", missing)
    return tuple(found)


class Activation:
    """The registers of a function, and its blocks as steps that use them."""

    def __init__(self, machine: Machine, function: Function) -> None:
        self.machine = machine
        self.function = function
        descriptor = function.descriptor
        cells = 1 << max(descriptor.i32_register_count, 2).bit_length()
        memory = memoryview(bytearray(4 * cells))
        self.cells = memory
        self.zeros = bytes(4 * cells)
        self.banks: dict[str, Any] = {
            kind: memory.cast(code)  # type: ignore[call-overload]
            for kind, (code, _) in CELL_KINDS.items()
        }
        count = 1 << max(descriptor.ref_register_count - 1, 0).bit_length()
        self.references: list[Any] = [None] * count
        self.results: tuple[Any, ...] = ()
        self.pc = 0
        self.blocks: tuple[Block, ...] = Preparation(self).blocks()
        self.parameters = (
            () if function.convention is None else argument_registers(function.convention)[0]
        )
        self.letters = (
            () if function.convention is None else tuple(function.convention.flat_arguments())
        )

    def run(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Run the blocks from the first to a return, and give what is returned."""
        for letter, register, value in zip(self.letters, self.parameters, arguments, strict=True):
            self.put(letter, register, value)
        budget, blocks, number = self.machine.budget, self.blocks, 0
        step: object = None
        try:
            while number != RETURN:
                budget.blocks -= 1
                if budget.blocks < 0:
                    raise ExecutionError("the call runs more blocks than it may")
                block = blocks[number]
                for step in block.steps:
                    step()
                step = None
                number = block.leave()
        except (PlacedError, Unsupported):
            raise
        except ExecutionError as error:
            raise PlacedError(f"{self._place(blocks[number], step)}: {error}") from None
        return self.results

    def clear(self) -> None:
        """Make the registers what they are before a call."""
        self.cells[:] = self.zeros
        self.references[:] = [None] * len(self.references)
        self.results = ()

    def put(self, letter: str, register: int, value: Any) -> None:
        """Write a value to a register by the letter of a convention."""
        if letter == "r":
            self.references[register & _ORDINAL] = value
        else:
            kind = _LETTER_KINDS[letter]
            self.banks[kind][register // CELL_KINDS[kind][1]] = value

    def get(self, letter: str, register: int) -> Any:
        """Read a register by the letter of a convention."""
        if letter == "r":
            return self.reference(register)
        kind = _LETTER_KINDS[letter]
        return self.banks[kind][register // CELL_KINDS[kind][1]]

    def reference(self, register: int) -> Any:
        """A reference; one that moves leaves null behind."""
        ordinal = register & _ORDINAL
        value = self.references[ordinal]
        if register & MOVE_BIT:
            self.references[ordinal] = None
        return value

    def _place(self, block: Block, step: object) -> str:
        """Function and operation, and where in the sources that is, in words."""
        failed = next((index for index, entry in enumerate(block.steps) if entry is step), -1)
        pc = block.places[failed]
        module = self.machine.module
        location = module.locations(self.function).get(pc)
        where = "" if location is None else f" ({module.location_text(location)})"
        return f"{self.function.name} at {pc}{where}"
