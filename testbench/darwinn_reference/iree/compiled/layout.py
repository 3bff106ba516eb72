"""What compiled code and the interpreter agree upon: numbers of operations, and a frame of words.

Compiled code gets one pointer, to the frame. In it stand the pointers that it works with, how many
blocks it may run, and of each register of a reference what its loads and stores need: the address
of the buffer, and for each type of access how many elements there are. The host writes these when
the code begins, and again when it has run an operation that may have changed the register.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from darwinn_formats.iree import Function, Instruction, argument_registers
from darwinn_formats.iree.opcodes import MOVE_BIT, REFERENCE_BIT

from darwinn_reference.iree.effects import ACCESSES
from darwinn_reference.iree.registers import ORDINAL


class Word(IntEnum):
    """Words of the frame; those of references follow. ``DONE`` is 1 when the host has run an
    operation, and 0 when that raised an error.
    """

    CELLS = 0
    GLOBALS = 1
    HOST = 2
    BLOCKS = 3
    DONE = 4
    REFERENCES = 5


COPIES = 1 << 32
"""Operations from here on are the copies of references of a branch, in the order of branches.

Others are numbered by their pc. The complement of the pc of what ends a block stands for asking
for further blocks when the block begins.
"""


@dataclass(frozen=True, slots=True)
class Access:
    """Loads or stores of elements of a type (``effects.ACCESSES``) by a register of references."""

    reference: int
    stores: bool
    element: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A way from one block to another, by the pc of it, with the copies on the way."""

    target: int
    numbers: tuple[tuple[int, int], ...]
    references: tuple[tuple[int, int], ...]


class Layout:
    """The frame of a function, and the ways between its blocks.

    Of one that is ``tracked`` the frame also takes, for each type of access, from where to where
    in memory there were such accesses.
    """

    def __init__(self, function: Function, *, tracked: bool = False) -> None:
        self.function = function
        self.tracked = tracked
        self.instructions = tuple(function.instructions())
        self.branches: Mapping[int, tuple[Branch, ...]] = {
            entry.pc: tuple(_branches(entry))
            for entry in self.instructions
            if entry.operation.terminates
        }
        self.copies: tuple[Branch, ...] = tuple(
            branch for ways in self.branches.values() for branch in ways if branch.references
        )
        accesses = {access_of(entry) for entry in self.instructions if entry.mnemonic in ACCESSES}
        self.accesses = tuple(
            sorted(accesses, key=lambda entry: (entry.reference, entry.stores, entry.element))
        )
        self.references = tuple(dict.fromkeys(entry.reference for entry in self.accesses))

    @cached_property
    def addresses(self) -> Mapping[int, int]:
        """Word of the address of the buffer of each register of references that needs one."""
        return {entry: Word.REFERENCES + place for place, entry in enumerate(self.references)}

    @cached_property
    def counts(self) -> Mapping[Access, int]:
        """Word of the count of the elements of each access."""
        first = Word.REFERENCES + len(self.references)
        return {entry: first + place for place, entry in enumerate(self.accesses)}

    @cached_property
    def ranges(self) -> Mapping[Access, tuple[int, int]]:
        """Words of the first address of each access, and of the one behind the last; or nothing."""
        first = Word.REFERENCES + len(self.references) + len(self.accesses)
        places = enumerate(self.accesses) if self.tracked else ()
        return {entry: (first + 2 * place, first + 2 * place + 1) for place, entry in places}

    @property
    def words(self) -> int:
        """Length of the frame."""
        first = Word.REFERENCES + len(self.references) + len(self.accesses)
        return first + 2 * len(self.ranges)

    @property
    def arguments(self) -> tuple[int, ...]:
        """Registers that hold numbers when the function begins."""
        convention = self.function.convention
        registers = () if convention is None else argument_registers(convention)[0]
        return tuple(entry for entry in registers if not entry & REFERENCE_BIT)

    def changed(self, registers: Sequence[int]) -> tuple[int, ...]:
        """Those of the registers that references need in the frame."""
        return tuple(entry for entry in dict.fromkeys(registers) if entry in self.addresses)

    def copy_number(self, branch: Branch) -> int:
        """Number of the operation that copies the references of a branch."""
        return COPIES + next(i for i, entry in enumerate(self.copies) if entry is branch)


def access_of(instruction: Instruction) -> Access:
    """The access of a load or a store."""
    stores = ".store." in instruction.mnemonic
    return Access(instruction.operands[0] & ORDINAL, stores, ACCESSES[instruction.mnemonic])


def references_changed(instruction: Instruction) -> Iterator[int]:
    """Ordinals of the registers of references that an instruction, run by itself, may change."""
    discards = instruction.mnemonic == "discard.refs"
    for field, operand in instruction.fields():
        if field.kind in "r*" or (field.kind == "V" and field.type != "n"):
            for register in operand if field.kind == "V" else (operand,):
                changed = discards or field.written or register & MOVE_BIT
                if register & REFERENCE_BIT and changed:
                    yield register & ORDINAL


def copied_references(branch: Branch) -> Iterator[int]:
    """Ordinals of the registers of references that the copies of a branch may change."""
    for source, target in branch.references:
        yield target & ORDINAL
        if source & MOVE_BIT:
            yield source & ORDINAL


def _branches(instruction: Instruction) -> Iterator[Branch]:
    target: int | None = None
    for field, operand in instruction.fields():
        if field.kind == "B":
            target = operand
            if instruction.mnemonic.endswith(".yieldable"):
                yield _branch(operand, ())
        elif field.kind == "M":
            assert target is not None
            yield _branch(target, operand)
        elif field.kind == "C":
            for block, copies in operand:
                yield _branch(block, copies)


def _branch(target: int, pairs: Sequence[tuple[int, int]]) -> Branch:
    numbers = tuple(pair for pair in pairs if not pair[0] & REFERENCE_BIT)
    return Branch(target, numbers, tuple(pair for pair in pairs if pair[0] & REFERENCE_BIT))
