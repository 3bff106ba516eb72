"""Control and status registers of the chip that this process simulates, from its register map.

``REGISTERS`` are those of the core, with its host interface; ``USB_REGISTERS`` those of the USB
attachment, ``SOC_REGISTERS`` those around the core: power, clocks, temperature, bus monitors. The
documentation (``python -m darwinn_sim.host.registers > docs/registers.md``) is generated from them.
A register file refuses an access to another offset, because nothing is known about what it would
do; a chip that a stranger drives (``device``) notes it and goes on.
"""

from __future__ import annotations

import sys

from darwinn_sim.chips.register_map import Register, RegisterField
from darwinn_sim.chips.selected import selected
from darwinn_sim.errors import SimulationError


class RegisterFault(SimulationError):
    """A host access to a register that does not exist, or that the register does not allow."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"register at {offset:#07x}: {reason}")
        self.offset = offset
        self.reason = reason


class UnknownRegister(RegisterFault):
    """There is no such register in the model."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset, "no such register in the model")


_MAP = selected().registers

REGISTERS = _MAP.blocks["core"]
"""Every register of the core and its host interface that the model implements."""

USB_REGISTERS = _MAP.blocks["usb"]
"""Registers of the USB attachment."""

SOC_REGISTERS = _MAP.blocks["soc"]
"""Registers around the core; but for ``scu_ctrl_3``, what is written is read back."""

RUN_CONTROLS = _MAP.run_controls
"""Run control and run status of each unit, in the order in which the driver starts and stops them.

The driver writes ``tileconfig0`` between the scalar core's units, which have a run status, and
those of the tiles, which have none.
"""

_BY_NAME = {entry.name: entry for entry in (*REGISTERS, *USB_REGISTERS, *SOC_REGISTERS)}


def register(name: str) -> Register:
    """Return the register called ``name``; raise ``KeyError`` if there is none."""
    return _BY_NAME[name]


HIB_ERRORS = register("hib_error_status").fields
"""Fields of the error registers of the host interface block."""

PAGE_TABLE_ENTRIES = register("page_table").count
"""Entries of the page table on the chip."""


def _field_text(field: RegisterField) -> str:
    return f"| | | | [{field.bits}] `{field.name}` | | {field.meaning} | |"


def documentation() -> str:
    """The register tables as a page of Markdown (docs/registers.md)."""
    lines = [
        "# Registers",
        "",
        "This page lists every register that the model has, with its fields, access, reset value",
        "and source. [The host interface](host-interface.md) explains how driver and chip use",
        "them.",
        "",
        "The registers stand in `sim/darwinn_sim/chips/register_maps/beagle.toml`.",
        "`python -m darwinn_sim.host.registers` generates this page from it; do not edit the page.",
        "Offsets are in bytes from base address register 2 (1 MiB). All registers are",
        "little-endian.",
        "",
        "A chip of your own may name another map: `register_map` in its TOML file. The map may",
        "move registers, give them other values after reset, and add some. The model has their",
        "widths, access and counts built in, and refuses a map that changes them.",
    ]
    for title, table in _TABLES:
        lines += ["", f"## {title}", "", *_table_text(table)]
    return "\n".join(lines) + "\n"


_TABLES = (
    ("The core, with its host interface", REGISTERS),
    ("The USB attachment", USB_REGISTERS),
    ("Around the core", SOC_REGISTERS),
)


def _table_text(table: tuple[Register, ...]) -> list[str]:
    lines = [
        "| offset | bits | reset | register, fields | access | meaning | known from |",
        "|---|---|---|---|---|---|---|",
    ]
    for entry in table:
        name = f"`{entry.name}`" + (f" x {entry.count}" if entry.count > 1 else "")
        lines.append(
            f"| {entry.offset:05X} | {entry.width} | {entry.reset:#x} | {name} "
            f"| {entry.access.value} | {entry.meaning} | {entry.source} |"
        )
        lines += map(_field_text, entry.fields)
    return lines


if __name__ == "__main__":
    sys.stdout.write(documentation())
