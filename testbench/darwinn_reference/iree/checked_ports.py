"""Types of tensors that a function checks itself, for modules that declare none.

A function checks its arguments (``buffer_view.assert``) before it branches: element type and sizes
are constants there, or, where any size fits, come from the argument.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from darwinn_formats.iree import Function, Instruction, Module, argument_registers
from darwinn_formats.iree.opcodes import IMPORT_BIT, MOVE_BIT, REFERENCE_BIT

from darwinn_reference.errors import Unsupported
from darwinn_reference.iree.declaration import DeclaredPort
from darwinn_reference.iree.element_types import dtype_of, spelling_of
from darwinn_reference.protocol import Port

_CHECKS = frozenset({"hal.buffer_view.assert", "hal_inline.buffer_view.assert"})
_FIXED_ARGUMENTS = 4
"""View, message, element type and encoding; then come the sizes."""
_CONSTANTS = frozenset({"const.i32", "const.i64", "const.i32.zero", "const.i64.zero"})
"""Operations that write a constant: their first operand, or zero."""
_WIDE = frozenset("ld")
"""Kinds of registers that take two cells."""
_LEAVES = frozenset({"br", "cond_br", "br_table", "return", "fail"})


def checked_ports(module: Module, function: Function) -> dict[int, DeclaredPort]:
    """Ports of the arguments whose type a function checks, by their numbers."""
    found: dict[int, DeclaredPort] = {}
    for argument, element_type, shape in _Walk(module, function).checks():
        try:
            dtype = dtype_of(element_type)
        except Unsupported:
            continue
        port = Port(f"input{argument}", dtype, tuple(shape))
        found.setdefault(argument, DeclaredPort(port, spelling_of(element_type)))
    return found


class _Walk:
    """What the registers of a function hold in its first block, as far as it is known."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module = module
        self.function = function
        self.constants: dict[int, int] = {}
        self.wide: frozenset[int] = frozenset()
        registers = argument_registers(function.convention)[0] if function.convention else ()
        self.arguments = {register: at for at, register in enumerate(registers)}

    def checks(self) -> Iterator[tuple[int, int, Sequence[int | None]]]:
        """Number of an argument, its element type and its sizes, None where any fits."""
        for instruction in self.function.instructions():
            if instruction.mnemonic in _LEAVES:
                return
            if instruction.mnemonic == "call.variadic":
                yield from self._check(*instruction.operands)
            self._note(instruction)

    def _check(
        self, callee: int, _: Sequence[int], given: Sequence[int], __: Sequence[int]
    ) -> Iterator[tuple[int, int, Sequence[int | None]]]:
        if not callee & IMPORT_BIT:
            return
        entry = self.module.definition.imported_functions[callee & ~IMPORT_BIT]
        if entry.full_name not in _CHECKS or len(given) < _FIXED_ARGUMENTS:
            return
        argument = self.arguments.get(given[0] & ~MOVE_BIT)
        element_type = self.constants.get(given[2])
        if argument is not None and element_type is not None:
            sizes = [self.constants.get(register) for register in given[_FIXED_ARGUMENTS:]]
            yield argument, element_type, sizes

    def _note(self, instruction: Instruction) -> None:
        """Follow what an operation writes."""
        for declared, operand in instruction.fields():
            if not declared.written:
                continue
            results = isinstance(operand, tuple)
            # Of the results of a call each may be of 64 bits.
            cells = 2 if results or declared.kind in _WIDE else 1
            for register in operand if results else (operand,):
                self._overwrite(register, cells)
        if instruction.mnemonic in _CONSTANTS:
            *value, register = instruction.operands
            self.constants[register] = value[0] if value else 0
            self.wide = self.wide | {register} if cells > 1 else self.wide - {register}

    def _overwrite(self, register: int, cells: int) -> None:
        if register & REFERENCE_BIT:
            self.arguments.pop(register & ~MOVE_BIT, None)
            return
        for cell in range(register, register + cells):
            self.constants.pop(cell, None)
        if register - 1 in self.wide:
            self.constants.pop(register - 1, None)
