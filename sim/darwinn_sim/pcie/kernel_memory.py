"""Memory that the kernel driver gives the device: tables of pages, and coherent buffers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.host.memory import PAGE_BYTES
from darwinn_sim.pcie.function import Host, HostFault

FIRST_ADDRESS = 1 << 56
"""Bus address from which on memory is the kernel's: programs have none there on any machine."""


class KernelMemory:
    """Pages of the kernel driver by bus address; all others are the program's.

    Args:
        program: whoever answers for the memory of the program.
    """

    def __init__(self, program: Host) -> None:
        self._program = program
        self._pages: dict[int, NDArray[np.uint8]] = {}
        self._next = FIRST_ADDRESS

    def give(self, storage: NDArray[np.uint8]) -> int:
        """Put whole pages (uint8, one axis) on the bus; their address."""
        address = self._next
        for start in range(0, storage.size, PAGE_BYTES):
            self._pages[address + start] = storage[start : start + PAGE_BYTES]
        self._next += storage.size
        return address

    def take_back(self, address: int, size: int) -> None:
        """Take what was given at ``address`` off the bus."""
        for start in range(address, address + size, PAGE_BYTES):
            del self._pages[start]

    def clear(self) -> None:
        """Take everything off the bus."""
        self._pages.clear()

    def read(self, address: int, size: int) -> bytes:
        """``size`` bytes; raises ``HostFault``."""
        if address < FIRST_ADDRESS:
            return self._program.read(address, size)
        return b"".join(part.tobytes() for part in self._parts(address, size))

    def write(self, address: int, data: bytes) -> None:
        """Write ``data``; raises ``HostFault``."""
        if address < FIRST_ADDRESS:
            self._program.write(address, data)
            return
        octets = np.frombuffer(data, np.uint8)
        for part in self._parts(address, len(data)):
            part[:] = octets[: part.size]
            octets = octets[part.size :]

    def interrupt(self, vector: int) -> None:
        """Hand an interrupt on; raises ``HostFault``."""
        self._program.interrupt(vector)

    def _parts(self, address: int, size: int) -> list[NDArray[np.uint8]]:
        parts = []
        while size:
            within = address % PAGE_BYTES
            page = self._pages.get(address - within)
            if page is None:
                raise HostFault(f"there is no memory at bus address {address:#x}")
            part = page[within : within + size]
            parts.append(part)
            address += part.size
            size -= part.size
        return parts
