"""SystemRDL description of the registers, from which register block and header are generated.

``python -m darwinn_rtl.registers_rdl`` writes it to standard output. The rule of each
register follows from its access alone:

- read, write: the host writes, the harness reads;
- read: the harness gives the value, or it is a constant if the value after reset is not 0;
- read, write 0 to clear: the harness sets bits, the host clears them; where both happen in one
  cycle the bit stays set, so that no event is lost;
- a repeated register is a memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from operator import attrgetter

from darwinn_sim.chips.register_map import (
    Access,
    Register,
    RegisterField,
    check_apart,
    read_register_map,
)
from darwinn_sim.host.registers import REGISTERS

ADDRESS_MAP = "darwinn_registers"
"""Name of the address map, and of the generated register block."""

WHOLE_REGISTER = "value"
"""Name of the only field of a register that the table gives no fields."""

HARNESS_REGISTERS = read_register_map("harness").blocks["harness"]
"""Registers that the harness has, and the chip has not."""

HARNESS_MAP: tuple[Register, ...] = (*REGISTERS, *HARNESS_REGISTERS)
"""The registers of the harness: those of the chip, and its own."""


def fields_of(register: Register) -> tuple[RegisterField, ...]:
    """The register's fields; one over all its bits if the table names none."""
    if register.fields:
        return register.fields
    return (RegisterField(WHOLE_REGISTER, 0, register.width, register.meaning),)


def is_constant(register: Register) -> bool:
    """True if neither host nor harness can change the register."""
    return register.access is Access.READ_ONLY and register.reset != 0


def systemrdl(registers: Iterable[Register] = HARNESS_MAP) -> str:
    """Return the description of ``registers`` as an address map called ``ADDRESS_MAP``.

    Raises ``FormatError`` if registers overlap, as those of the harness may on another chip.
    """
    registers = sorted(registers, key=attrgetter("offset"))
    check_apart(ADDRESS_MAP, registers)
    lines = [
        "// Generated from the register table; do not edit.",
        f"addrmap {ADDRESS_MAP} {{",
        "    default regwidth = 64;",
        "    default accesswidth = 64;",
    ]
    for register in registers:
        lines += _memory(register) if register.count > 1 else _register(register)
    lines.append("};")
    return "\n".join(lines) + "\n"


def _memory(register: Register) -> Iterator[str]:
    yield "    external mem {"
    yield f"        desc = {_quoted(register.meaning)};"
    yield f"        mementries = {register.count};"
    yield f"        memwidth = {register.width};"
    yield "        sw = rw;"
    yield f"    }} {register.name} @ {register.offset:#x};"


def _register(register: Register) -> Iterator[str]:
    yield "    reg {"
    yield f"        desc = {_quoted(register.meaning)};"
    for field in fields_of(register):
        yield f"        field {{ desc = {_quoted(field.meaning)}; {_rule(register)} }}"
        high = field.low + field.width - 1
        yield f"            \\{field.name} [{high}:{field.low}]{_reset(register, field)};"
    yield f"    }} {register.name} @ {register.offset:#x};"


def _rule(register: Register) -> str:
    if is_constant(register):
        return "sw = r; hw = na;"
    return {
        Access.READ_WRITE: "sw = rw; hw = r;",
        Access.READ_ONLY: "sw = r; hw = w;",
        Access.WRITE_ZERO_TO_CLEAR: "sw = rw; onwrite = wzc; hw = r; hwset; precedence = hw;",
    }[register.access]


def _reset(register: Register, field: RegisterField) -> str:
    """A value from the harness has no storage, and so no value after reset."""
    if register.access is Access.READ_ONLY and not is_constant(register):
        return ""
    return f" = {field.width}'h{field.extract(register.reset):x}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


if __name__ == "__main__":
    sys.stdout.write(systemrdl())
