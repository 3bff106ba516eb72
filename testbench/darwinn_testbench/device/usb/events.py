"""Events of a session by USB, as they are recorded."""

from __future__ import annotations

import threading
from typing import Annotated

import msgspec
from darwinn_sim.usb.function import Watcher
from darwinn_sim.usb.requests import Setup

from darwinn_testbench.device.trace import Octets, SessionFile

_Byte = Annotated[int, msgspec.Meta(ge=0, le=0xFF)]
_Word = Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)]
_Endpoint = Annotated[int, msgspec.Meta(ge=1, le=0xF)]


class _Event(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What all have in common."""


class Control(_Event, frozen=True, tag="control"):
    """A control request: bmRequestType, bRequest, wValue, wIndex, data to the device, wLength, and
    what it answered; None where the direction is the other one, or the request was stalled."""

    request_type: _Byte
    request: _Byte
    value: _Word
    index: _Word
    data: Octets | None
    length: _Word
    answer: Octets | None

    @property
    def setup(self) -> Setup:
        """Its setup packet."""
        return Setup(self.request_type, self.request, self.value, self.index, self.length)


class Sent(_Event, frozen=True, tag="out"):
    """Bytes to a bulk endpoint, by its number."""

    endpoint: _Endpoint
    data: Octets


class Received(_Event, frozen=True, tag="in"):
    """Bytes that the host got from an endpoint, by its number."""

    endpoint: _Endpoint
    data: Octets


class Reset(_Event, frozen=True, tag="reset"):
    """A bus reset."""


Event = Control | Sent | Received | Reset

DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
"""Reads an event."""


class Recorder(Watcher):
    """Writes what passes on the cable to a file, from whatever thread it passes in."""

    def __init__(self, file: SessionFile) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._owes_reset = False

    def control(self, setup: Setup, data: bytes, answer: bytes | None) -> None:
        """As :class:`Watcher`."""
        sent = None if setup.to_host else Octets(data)
        answered = Octets(answer) if setup.to_host and answer is not None else None
        self._write(
            Control(
                *(setup.type, setup.request, setup.value, setup.index),
                *(sent, setup.length, answered),
            )
        )

    def sent(self, endpoint: int, data: bytes) -> None:
        """As :class:`Watcher`."""
        self._write(Sent(endpoint, Octets(data)))

    def received(self, endpoint: int, data: bytes) -> None:
        """As :class:`Watcher`."""
        self._write(Received(endpoint, Octets(data)))

    def was_reset(self, quiet: bool) -> None:
        """As :class:`Watcher`.

        The last reset, after all is done, is not written: a replay can then see that nothing more
        comes than the session has.
        """
        if quiet:
            self._owes_reset = True
        else:
            self._write(Reset())

    def _write(self, event: Event) -> None:
        with self._lock:
            if self._owes_reset:
                self._owes_reset = False
                self._file.write(Reset())
            self._file.write(event)
