"""A chip that sends back what it gets, for tests of what stands between it and the host.

A chunk is its program: each two bytes of it are a descriptor, tag and size; what is pushed for
descriptors of inputs and parameters is the output.
"""

from __future__ import annotations

from collections import deque

from darwinn_sim import chip
from darwinn_sim.errors import SimulationError
from darwinn_sim.host.descriptors import STREAMS
from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.registers import RegisterFault
from darwinn_sim.host.usb import UsbInterface
from darwinn_sim.usb.function import UsbFunction

RUN = 0x44018


class EchoChip:
    """See above. ``resets`` counts them."""

    def __init__(self, function: UsbFunction) -> None:
        self.registers = RegisterFile()
        self.host = UsbInterface(self.registers, function)
        self.resets = 0
        self.reset()

    def reset(self) -> None:
        self.resets += 1
        self.fault: SimulationError | None = None
        self.registers.reset()
        self.others: dict[int, int] = {}
        self.descriptors: deque[tuple[int, int]] = deque()

    def read(self, offset: int, width: int) -> int:
        try:
            return self.registers.read(offset, width)
        except RegisterFault:
            return self.others.get(offset, 0)

    def write(self, offset: int, value: int, width: int) -> None:
        try:
            self.registers.write(offset, value, width)
        except RegisterFault:
            self.others[offset] = value

    def advance(self) -> bool:
        try:
            return self._advance()
        except SimulationError as error:
            self.fault = error
            raise

    def _advance(self) -> bool:
        moved = False
        while (chunk := self.host.fetch_chunk()) is not None:
            self.descriptors += zip(chunk[::2], chunk[1::2], strict=True)
            moved = True
        while self.descriptors:
            tag, size = self.descriptors.popleft()
            self.host.issue(tag, 0, size)
            moved = True
        for stream in STREAMS:
            data = self.host.pull(stream, chip.HOST_FIFO_BYTES)
            self.host.push(data)
            moved |= bool(data.size)
        return moved


def echo(function: UsbFunction) -> tuple[EchoChip, UsbInterface]:
    """An echo chip for a function."""
    echoing = EchoChip(function)
    return echoing, echoing.host
