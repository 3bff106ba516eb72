"""Events of a session by USB, as they are recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Annotated, Literal

import msgspec
from darwinn_sim.errors import SimulationError
from darwinn_sim.usb.descriptors import Mode, Speed
from darwinn_sim.usb.function import Watcher
from darwinn_sim.usb.requests import Setup

from darwinn_testbench.device.trace import Fault, Octets, Passed
from darwinn_testbench.report import one_line

_Byte = Annotated[int, msgspec.Meta(ge=0, le=0xFF)]
_Word = Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)]
_Endpoint = Annotated[int, msgspec.Meta(ge=1, le=0xF)]

_STALL: Literal["stall"] = "stall"


class Device(Passed, frozen=True, tag="device"):
    """The device that a session begins with: it stands before all that passes."""

    mode: Literal["boot", "application"]
    speed: Literal["high", "super"]

    @classmethod
    def of(cls, mode: Mode, speed: Speed) -> Device:
        """A device in ``mode`` at a cable of ``speed``."""
        return cls(_MODES[mode], _SPEEDS[speed])

    @property
    def is_boot(self) -> bool:
        """Whether it waits for firmware."""
        return self.mode == _MODES[Mode.BOOT]

    @property
    def cable(self) -> Speed:
        """The speed of its cable."""
        return next(speed for speed, name in _SPEEDS.items() if name == self.speed)


_MODES: Mapping[Mode, Literal["boot", "application"]] = {
    Mode.BOOT: "boot",
    Mode.APPLICATION: "application",
}
_SPEEDS: Mapping[Speed, Literal["high", "super"]] = {Speed.HIGH: "high", Speed.SUPER: "super"}


class Control(Passed, frozen=True, tag="control"):
    """A control request: bmRequestType, bRequest, wValue, wIndex, data to the device, wLength, and
    what it answered.

    Data is None for a request to the host. Its answer is None if it was stalled; that of a request
    to the device is None if it was accepted, and else ``"stall"``.
    """

    request_type: _Byte
    request: _Byte
    value: _Word
    index: _Word
    data: Octets | None
    length: _Word
    answer: Octets | Literal["stall"] | None

    @property
    def answered(self) -> bytes | None:
        """The bytes of its answer, none from a device that took data; None: it was stalled."""
        if isinstance(self.answer, Octets):
            return self.answer.b
        return b"" if self.answer is None and not self.setup.to_host else None

    @property
    def setup(self) -> Setup:
        """Its setup packet."""
        return Setup(self.request_type, self.request, self.value, self.index, self.length)


class Sent(Passed, frozen=True, tag="out"):
    """Bytes to a bulk endpoint, by its number."""

    endpoint: _Endpoint
    data: Octets


class Received(Passed, frozen=True, tag="in"):
    """Bytes that the host got from an endpoint, by its number."""

    endpoint: _Endpoint
    data: Octets


class Reset(Passed, frozen=True, tag="reset"):
    """A bus reset."""


Event = Device | Control | Sent | Received | Reset | Fault

DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
"""Reads an event."""


class Recorder(Watcher):
    """Has what passes on the cable written, event by event, from whatever thread it passes in.

    Args:
        write: takes an event.
        device: what the session begins with, written before its first event; without it a replay
            looks for that in the events.
    """

    def __init__(self, write: Callable[[Event], None], device: Device | None = None) -> None:
        self._write = write
        self._device = device
        self._lock = threading.Lock()
        self._owes_reset = False

    def control(self, setup: Setup, data: bytes, answer: bytes | None) -> None:
        """As :class:`Watcher`."""
        request = (setup.type, setup.request, setup.value, setup.index)
        if setup.to_host:
            event = Control(*request, None, setup.length, _octets(answer))
        else:
            stalled = _STALL if answer is None else None
            event = Control(*request, Octets(data), setup.length, stalled)
        self._note(event)

    def sent(self, endpoint: int, data: bytes) -> None:
        """As :class:`Watcher`."""
        self._note(Sent(endpoint, Octets(data)))

    def received(self, endpoint: int, data: bytes) -> None:
        """As :class:`Watcher`."""
        self._note(Received(endpoint, Octets(data)))

    def was_reset(self, quiet: bool) -> None:
        """As :class:`Watcher`.

        The last reset, after all is done, is not written: a replay can then see that nothing more
        comes than the session has.
        """
        if quiet:
            self._owes_reset = True
        else:
            self._note(Reset())

    def fault(self, error: SimulationError) -> None:
        """As :class:`Watcher`."""
        self._note(Fault(one_line(error)))

    def _note(self, event: Event) -> None:
        with self._lock:
            if self._device is not None:
                self._write(self._device)
                self._device = None
            if self._owes_reset:
                self._owes_reset = False
                self._write(Reset())
            self._write(event)


def _octets(data: bytes | None) -> Octets | None:
    return None if data is None else Octets(data)
