"""Events of a session by PCIe, as they are recorded."""

from __future__ import annotations

from typing import Annotated

import msgspec
from darwinn_sim.pcie.function import Seen

from darwinn_testbench.device.trace import Octets, SessionFile

_Natural = Annotated[int, msgspec.Meta(ge=0)]


class _Event(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What all have in common."""


class RegisterRead(_Event, frozen=True, tag="rd"):
    """The host has read ``size`` bytes at ``offset`` of base address register 2."""

    offset: _Natural
    size: _Natural
    value: _Natural


class RegisterWrite(_Event, frozen=True, tag="wr"):
    """The host has written ``size`` bytes at ``offset``."""

    offset: _Natural
    size: _Natural
    value: _Natural


class MemoryRead(_Event, frozen=True, tag="dr"):
    """The chip has read ``data`` at a bus address."""

    address: _Natural
    data: Octets


class MemoryWrite(_Event, frozen=True, tag="dw"):
    """The chip has written ``data`` at a bus address."""

    address: _Natural
    data: Octets


class Interrupt(_Event, frozen=True, tag="irq"):
    """The chip has sent the interrupt of a vector."""

    vector: _Natural


Event = RegisterRead | RegisterWrite | MemoryRead | MemoryWrite | Interrupt

DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
"""Reads an event."""

KINDS = ("rd", "wr", "dr", "dw", "irq")
"""Names of the kinds."""


def event_of(seen: Seen) -> Event:
    """The event of what a watcher of the function has seen."""
    match seen:
        case ("rd", offset, size, value):
            return RegisterRead(offset, size, value)
        case ("wr", offset, size, value):
            return RegisterWrite(offset, size, value)
        case ("dr", address, data):
            return MemoryRead(address, Octets(data))
        case ("dw", address, data):
            return MemoryWrite(address, Octets(data))
        case ("irq", vector):
            return Interrupt(vector)


class Recorder:
    """A watcher that writes what it sees to a file."""

    def __init__(self, file: SessionFile) -> None:
        self._file = file

    def __call__(self, seen: Seen) -> None:
        """Write one event."""
        self._file.write(event_of(seen))
