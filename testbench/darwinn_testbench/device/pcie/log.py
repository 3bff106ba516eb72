"""What passes on the bus, in lines for people: registers by name, bytes, interrupts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from darwinn_sim.host.registers import REGISTERS, SOC_REGISTERS
from darwinn_sim.pcie.function import Seen

_NAMES: Mapping[int, str] = {
    entry.offset + index * entry.width // 8: entry.name + f" {index}" * (entry.count > 1)
    for entry in (*REGISTERS, *SOC_REGISTERS)
    for index in range(entry.count)
}
_SHOWN_BYTES = 16


def named(offset: int) -> str:
    """A register by offset and name."""
    return f"{offset:05X} {_NAMES.get(offset, 'unknown')}"


class Log:
    """A watcher that writes a line for each thing that passes.

    Args:
        write: takes a line.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def __call__(self, seen: Seen) -> None:
        """Write a line."""
        match seen:
            case ("rd", offset, _, value):
                self._write(f"read {named(offset)} -> {value:X}")
            case ("wr", offset, _, value):
                self._write(f"write {named(offset)} <- {value:X}")
            case ("dr", address, data):
                self._write(f"DMA read {address:#x}: {_octets(data)}")
            case ("dw", address, data):
                self._write(f"DMA write {address:#x}: {_octets(data)}")
            case ("irq", vector):
                self._write(f"interrupt {vector}")


def _octets(data: bytes) -> str:
    more = " .." if len(data) > _SHOWN_BYTES else ""
    return f"{len(data)} bytes {data[:_SHOWN_BYTES].hex()}{more}"
