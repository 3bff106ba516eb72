"""A chip that sends back what it gets, for tests of what stands between it and a USB host.

A chunk is its program: each two bytes of it are a descriptor, tag and size.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from copying_chip import CopyingChip
from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.registers import RegisterFault
from darwinn_sim.host.usb import UsbInterface
from darwinn_sim.usb.function import UsbFunction

RUN = 0x44018


class EchoChip(CopyingChip):
    """See above."""

    def __init__(self, function: UsbFunction) -> None:
        super().__init__()
        self.host: UsbInterface = UsbInterface(RegisterFile(), function)
        self.others: dict[int, int] = {}

    def descriptors_of(self, chunk: bytes) -> Iterable[tuple[int, int, int]]:
        return [(tag, size, 0) for tag, size in zip(chunk[::2], chunk[1::2], strict=True)]

    def reset(self) -> None:
        super().reset()
        self.host.registers.reset()
        self.others.clear()

    def read(self, offset: int, width: int) -> int:
        try:
            return self.host.registers.read(offset, width)
        except RegisterFault:
            return self.others.get(offset, 0)

    def write(self, offset: int, value: int, width: int) -> None:
        try:
            self.host.registers.write(offset, value, width)
        except RegisterFault:
            self.others[offset] = value


class SlowChip(EchoChip):
    """An echo chip that computes for a second before it takes its first chunk."""

    slow = True

    def advance(self) -> bool:
        if self.slow and self.host.held_chunks:
            self.slow = False
            time.sleep(1)
        return super().advance()


def slow_echo(function: UsbFunction) -> tuple[EchoChip, UsbInterface]:
    """A slow chip for a function."""
    made = SlowChip(function)
    return made, made.host


def echo(function: UsbFunction) -> tuple[EchoChip, UsbInterface]:
    """An echo chip for a function."""
    made = EchoChip(function)
    return made, made.host
