"""Events of a session by PCIe, as they are recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, get_args

import msgspec
from darwinn_sim.errors import SimulationError
from darwinn_sim.pcie.function import Watcher

from darwinn_testbench.device.trace import Fault, Octets, Passed
from darwinn_testbench.report import one_line

_Natural = Annotated[int, msgspec.Meta(ge=0)]


class RegisterRead(Passed, frozen=True, tag="rd"):
    """The host has read ``size`` bytes at ``offset`` of base address register 2."""

    offset: _Natural
    size: _Natural
    value: _Natural


class RegisterWrite(Passed, frozen=True, tag="wr"):
    """The host has written ``size`` bytes at ``offset``."""

    offset: _Natural
    size: _Natural
    value: _Natural


class MemoryRead(Passed, frozen=True, tag="dr"):
    """The chip has read ``data`` at a bus address."""

    address: _Natural
    data: Octets


class MemoryWrite(Passed, frozen=True, tag="dw"):
    """The chip has written ``data`` at a bus address."""

    address: _Natural
    data: Octets


class Interrupt(Passed, frozen=True, tag="irq"):
    """The chip has sent the interrupt of a vector."""

    vector: _Natural


Event = RegisterRead | RegisterWrite | MemoryRead | MemoryWrite | Interrupt | Fault

DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
"""Reads an event."""

KINDS = tuple(kind.__struct_config__.tag for kind in get_args(Event))
"""Names of the kinds."""


class Recorder(Watcher):
    """Has what passes on the bus written, event by event."""

    def __init__(self, write: Callable[[Event], None]) -> None:
        self._write = write

    def register_read(self, offset: int, size: int, value: int) -> None:
        """As :class:`Watcher`."""
        self._write(RegisterRead(offset, size, value))

    def register_written(self, offset: int, size: int, value: int) -> None:
        """As :class:`Watcher`."""
        self._write(RegisterWrite(offset, size, value))

    def memory_read(self, address: int, data: bytes) -> None:
        """As :class:`Watcher`."""
        self._write(MemoryRead(address, Octets(data)))

    def memory_written(self, address: int, data: bytes) -> None:
        """As :class:`Watcher`."""
        self._write(MemoryWrite(address, Octets(data)))

    def interrupted(self, vector: int) -> None:
        """As :class:`Watcher`."""
        self._write(Interrupt(vector))

    def fault(self, error: SimulationError) -> None:
        """As :class:`Watcher`."""
        self._write(Fault(one_line(error)))
