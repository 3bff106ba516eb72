"""A chip that sends back what it reads, for tests of what stands between it and a PCIe host.

A chunk is its program: descriptors of the scalar core, 16 bytes each (tag, size, device address);
what is read for inputs and parameters is the output.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable

from darwinn_sim import chip
from darwinn_sim.errors import SimulationError
from darwinn_sim.host.descriptors import STREAMS
from darwinn_sim.host.interface import HostInterface
from darwinn_sim.host.register_space import RegisterSpace
from darwinn_sim.pcie.function import Memory

DESCRIPTOR = struct.Struct("<IIQ")


def program(*descriptors: tuple[int, int, int]) -> bytes:
    """A chunk of descriptors: tag, size, device address."""
    return b"".join(DESCRIPTOR.pack(*each) for each in descriptors)


class BusChip:
    """See above. ``resets`` counts them."""

    def __init__(self, memory: Memory, interrupt: Callable[[int], None]) -> None:
        self.host = HostInterface(memory, lambda message: interrupt(message.vector))
        self.fault: SimulationError | None = None
        self.resets = 0
        self.descriptors: deque[tuple[int, int, int]] = deque()
        self._space = RegisterSpace(self.host.registers, self.reset, by_usb=False)

    def read(self, offset: int, width: int) -> int:
        return self._space.read(offset, width)

    def write(self, offset: int, value: int, width: int) -> None:
        self._space.write(offset, value, width)

    def reset(self) -> None:
        self.resets += 1
        self.fault = None
        self.host.reset()
        self.descriptors.clear()

    def advance(self) -> bool:
        if self.fault is not None:
            return False
        try:
            return self._advance()
        except SimulationError as error:
            self.fault = error
            raise

    def _advance(self) -> bool:
        moved = False
        while (chunk := self.host.fetch_chunk()) is not None:
            self.descriptors += DESCRIPTOR.iter_unpack(chunk)
            self.host.chunk_done()
            moved = True
        while self.descriptors:
            tag, size, address = self.descriptors.popleft()
            self.host.issue(tag, address, size)
            moved = True
        for tag in STREAMS:
            data = self.host.pull(tag, chip.HOST_FIFO_BYTES)
            self.host.push(data)
            moved |= bool(data.size)
        return moved
