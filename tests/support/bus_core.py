"""A chip that sends back what it reads, for tests of what stands between it and a PCIe host.

A chunk is its program: descriptors of the scalar core, 16 bytes each (tag, size, device address);
what is read for inputs and parameters is the output.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable

from darwinn_sim import chip
from darwinn_sim.host.interface import HostInterface
from darwinn_sim.host.registers import SCU_CTRL_3_BY_PCIE, RegisterFault
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.pcie.function import FORCE, FORCED, SCU_CTRL_3, Memory

DESCRIPTOR = struct.Struct("<IIQ")
_IN_RESET = 0x50


def program(*descriptors: tuple[int, int, int]) -> bytes:
    """A chunk of descriptors: tag, size, device address."""
    return b"".join(DESCRIPTOR.pack(*each) for each in descriptors)


class BusCore:
    """See above. ``resets`` counts them."""

    def __init__(self, memory: Memory, interrupt: Callable[[int], None]) -> None:
        self.host = HostInterface(memory, lambda message: interrupt(message.vector))
        self.resets = 0
        self.others = {SCU_CTRL_3.offset: SCU_CTRL_3_BY_PCIE}
        self.descriptors: deque[tuple[int, int, int]] = deque()

    def read(self, offset: int, width: int) -> int:
        try:
            return self.host.registers.read(offset, width)
        except RegisterFault:
            return self.others.get(offset, 0)

    def write(self, offset: int, value: int, width: int) -> None:
        try:
            self.host.registers.write(offset, value, width)
        except RegisterFault:
            if offset == SCU_CTRL_3.offset:
                forced = FORCE.extract(value) == FORCED
                value = value | _IN_RESET if forced else value & ~_IN_RESET
                if forced:
                    self._reset()
            self.others[offset] = value

    def _reset(self) -> None:
        self.resets += 1
        self.host.reset()
        self.descriptors.clear()

    def advance(self) -> bool:
        moved = False
        while (chunk := self.host.fetch_chunk()) is not None:
            self.descriptors += DESCRIPTOR.iter_unpack(chunk)
            self.host.chunk_done()
            moved = True
        while self.descriptors:
            tag, size, address = self.descriptors.popleft()
            self.host.issue(tag, address, size)
            moved = True
        for tag in (DescriptorTag.INPUT, DescriptorTag.PARAMETERS):
            data = self.host.pull(tag, chip.HOST_FIFO_BYTES)
            self.host.push(data)
            moved |= bool(data.size)
        return moved
