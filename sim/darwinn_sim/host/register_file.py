"""The values of the registers: what the host writes, the chip reads, and the other way round."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.chips.register_map import Access, Register
from darwinn_sim.host.registers import REGISTERS, RegisterFault, UnknownRegister

_offset = attrgetter("offset")


class RegisterFile:
    """The registers' values, as the host sees them (by offset) and as the chip does (by name).

    Hooks give a register behaviour: a write hook runs after the host has written the register,
    with the stored value.
    """

    def __init__(self, registers: Sequence[Register] = REGISTERS) -> None:
        self._registers = registers
        self._values: dict[str, NDArray[np.uint64]] = {
            register.name: np.full(register.count, register.reset, np.uint64)
            for register in registers
        }
        self._by_offset = sorted(registers, key=_offset)
        self._write_hooks: dict[str, Callable[[int], None]] = {}

    def reset(self) -> None:
        """Give every register the value that it has after reset."""
        for entry in self._registers:
            self._values[entry.name][:] = entry.reset

    def __contains__(self, offset: int) -> bool:
        """Whether a register begins at byte ``offset``."""
        return self._at(offset) is not None

    def on_write(self, name: str, hook: Callable[[int], None]) -> None:
        """Call ``hook(value)`` after each host write of register ``name``; raises ``KeyError``."""
        if name not in self._values:
            raise KeyError(name)
        self._write_hooks[name] = hook

    def get(self, name: str) -> int:
        """The chip's own view of register ``name``; raises ``KeyError`` for an unknown name."""
        return int(self._values[name][0])

    def set(self, name: str, value: int) -> None:
        """Give register ``name`` a value from inside the chip, whatever the host may do."""
        self._values[name][0] = value

    def array(self, name: str) -> NDArray[np.uint64]:
        """The values of a repeated register, shape ``(count,)``: the storage, not a copy."""
        return self._values[name]

    def _at(self, offset: int) -> tuple[Register, int] | None:
        """The register that begins at a byte, and which repetition of it."""
        behind = bisect_right(self._by_offset, offset, key=_offset)
        if not behind:
            return None
        register = self._by_offset[behind - 1]
        index, inside = divmod(offset - register.offset, register.width // 8)
        return None if inside or index >= register.count else (register, index)

    def _find(self, offset: int, width: int) -> tuple[Register, int]:
        found = self._at(offset)
        if found is None:
            raise UnknownRegister(offset)
        if found[0].width != width:
            raise RegisterFault(
                offset, f"{found[0].name} is {found[0].width} bits wide, not {width}"
            )
        return found

    def read(self, offset: int, width: int = 64) -> int:
        """Host read of ``width`` bits at byte ``offset``; raises ``RegisterFault``."""
        found, index = self._find(offset, width)
        return int(self._values[found.name][index])

    def write(self, offset: int, value: int, width: int = 64) -> None:
        """Host write of ``width`` bits at byte ``offset``; raises ``RegisterFault``."""
        found, index = self._find(offset, width)
        if found.access is Access.READ_ONLY:
            raise RegisterFault(offset, f"{found.name} cannot be written")
        if value >> width:
            raise RegisterFault(offset, f"{value:#x} does not fit in {found.name}")
        values = self._values[found.name]
        if found.access is Access.WRITE_ZERO_TO_CLEAR:
            value &= int(values[index])
        values[index] = value
        hook = self._write_hooks.get(found.name)
        if hook is not None:
            hook(value)
