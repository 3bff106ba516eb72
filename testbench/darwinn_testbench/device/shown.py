"""What passes between a device and its host, as text: registers by name, bytes."""

from __future__ import annotations

from collections.abc import Mapping

from darwinn_sim.host.registers import REGISTERS, SOC_REGISTERS, USB_REGISTERS

_NAMES: Mapping[int, str] = {
    entry.offset + index * entry.width // 8: entry.name + f" {index}" * (entry.count > 1)
    for entry in (*REGISTERS, *USB_REGISTERS, *SOC_REGISTERS)
    for index in range(entry.count)
}
_SHOWN_BYTES = 16


def named(offset: int) -> str:
    """A register by offset and name, with its number if there are several."""
    return f"{offset:05X} {_NAMES.get(offset, 'unknown register')}"


def octets(data: bytes) -> str:
    """How many bytes there are, and the first of them."""
    more = " .." if len(data) > _SHOWN_BYTES else ""
    return f"{len(data)} bytes {data[:_SHOWN_BYTES].hex()}{more}"
