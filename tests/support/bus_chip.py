"""A chip that sends back what it reads, for tests of what stands between it and a PCIe host.

A chunk is its program: descriptors of the scalar core, 16 bytes each (tag, size, device address).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from copying_chip import CopyingChip
from darwinn_sim.host.interface import HostInterface
from darwinn_sim.host.register_space import RegisterSpace
from darwinn_sim.pcie.function import Memory

DESCRIPTOR = struct.Struct("<IIQ")


def program(*descriptors: tuple[int, int, int]) -> bytes:
    """A chunk of descriptors: tag, size, device address."""
    return b"".join(DESCRIPTOR.pack(*each) for each in descriptors)


class BusChip(CopyingChip):
    """See above."""

    def __init__(self, memory: Memory, interrupt: Callable[[int], None]) -> None:
        super().__init__()
        self.host: HostInterface = HostInterface(memory, lambda message: interrupt(message.vector))
        self._space = RegisterSpace(self.host.registers, self.reset, by_usb=False)

    def descriptors_of(self, chunk: bytes) -> Iterable[tuple[int, int, int]]:
        return DESCRIPTOR.iter_unpack(chunk)

    def read(self, offset: int, width: int) -> int:
        return self._space.read(offset, width)

    def write(self, offset: int, value: int, width: int) -> None:
        self._space.write(offset, value, width)

    def reset(self) -> None:
        super().reset()
        self.host.reset()
