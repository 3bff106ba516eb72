"""A recorded session played into the device without its client: does it answer the same?

The host's side is played in order. What the chip answers is compared request by request, and for
each endpoint as a stream of bytes: the order between endpoints, and the pieces that bytes come in,
are no part of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from darwinn_sim.accelerator import compile_kernels
from darwinn_sim.usb import descriptors
from darwinn_sim.usb.descriptors import ENDPOINTS, EVENTS, Mode, Speed
from darwinn_sim.usb.endpoints import Status, Transfer
from darwinn_sim.usb.errors import Stall
from darwinn_sim.usb.firmware import Request
from darwinn_sim.usb.function import EVENT_BYTES, UsbFunction, Watcher
from darwinn_sim.usb.requests import Kind, Standard

from darwinn_testbench.device.answers import Answers, Faults, Place, report
from darwinn_testbench.device.trace import Fault, RecordedSession
from darwinn_testbench.device.usb.attach import new_function
from darwinn_testbench.device.usb.events import (
    DECODER,
    Control,
    Device,
    Event,
    Received,
    Reset,
    Sent,
)
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Report, counted

_FIRST_EVENTS = 64
"""Where a session without :class:`Device` shows what kind of device it was recorded with."""
_SHOWN_BYTES = 16
_DEVICE_BYTES = 18
_USB_3 = 3


def _compare(place: Place, what: str, expected: bytes | None, given: bytes | None) -> None:
    """Note an answer; None is a stalled request."""
    place.count(len(expected or b""))
    if given != expected:
        place.differ(f"{what}: recorded {_shown(expected, given)}")


def _shown(expected: bytes | None, given: bytes | None) -> str:
    """Both answers from shortly before where they differ."""
    if expected is None or given is None:
        return f"{_part(expected, 0)}, the device gives {_part(given, 0)}"
    pairs = zip(expected, given, strict=False)
    same = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(expected), len(given)))
    where = f" at byte {same}" if max(len(expected), len(given)) > _SHOWN_BYTES else ""
    first = same if where else 0
    return f"{_part(expected, first)}, the device gives {_part(given, first)}{where}"


def _part(data: bytes | None, first: int) -> str:
    if data is None:
        return "a stall"
    if not data[first:]:
        return "nothing"
    more = ".." if len(data) > first + _SHOWN_BYTES else ""
    return data[first : first + _SHOWN_BYTES].hex() + more


class Player:
    """Plays events into a device, and compares what it answers."""

    def __init__(self, function: UsbFunction) -> None:
        self.function = function
        self._number = 0
        self._control = Place("control requests")
        self._endpoints = {
            endpoint.address: Place(f"endpoint {endpoint.address & 0xF}")
            for endpoint in ENDPOINTS
            if endpoint.address & 0x80
        }

    def play(self, event: Event) -> None:
        """The next event."""
        self._number += 1
        match event:
            case Control():
                self._request(event)
            case Sent():
                self._send(event.endpoint, event.data.b)
            case Received():
                self._receive(event.endpoint, event.data.b)
            case Fault():
                self._settle()
            case Reset():
                self._settle()
                self.function.reset()

    def end(self, *, is_cut_short: bool = False) -> None:
        """There are no more events: nothing may be left that the recording does not have."""
        self._settle()
        if is_cut_short:
            return
        for address, place in self._endpoints.items():
            if left := self.function.unread(address):
                place.differ(f"{left} bytes more than the recording has")

    @property
    def places(self) -> tuple[Place, ...]:
        """What was found, by place."""
        return self._control, *self._endpoints.values()

    def _settle(self) -> None:
        """Let the chip compute as far as it can without the host."""
        while self.function.work():
            pass

    def _request(self, event: Control) -> None:
        self._settle()
        answer: bytes | None
        try:
            answer = self.function.control(event.setup, event.data.b if event.data else b"")
        except Stall:
            answer = None
        what, expected = f"event {self._number}, {event.setup}", event.answered
        if event.setup.to_host:
            _compare(self._control, what, expected, answer)
        elif expected is not None and answer is None:
            self._control.differ(f"{what}: the device stalls it")
        elif expected is None and answer is not None:
            self._control.differ(f"{what}: recorded a stall, the device accepts it")

    def _send(self, endpoint: int, data: bytes) -> None:
        transfer = Transfer(endpoint, lambda transfer: None, data=data)
        self.function.submit(transfer)
        self._settle()
        self.function.cancel(transfer)
        if transfer.status is not Status.COMPLETED and self.function.fault is None:
            assert transfer.status is not None
            self._control.differ(
                f"event {self._number}: of {len(data)} bytes to endpoint {endpoint} the device "
                f"takes {transfer.actual} ({transfer.status.value})"
            )

    def _receive(self, endpoint: int, data: bytes) -> None:
        address = endpoint | 0x80
        self._settle()
        came = b""
        while len(came) < len(data):
            # An event comes whole or not at all.
            room = max(len(data) - len(came), EVENT_BYTES if address == EVENTS else 0)
            transfer = Transfer(address, lambda transfer: None, length=room)
            self.function.submit(transfer)
            self._settle()
            if not transfer.data:
                self.function.cancel(transfer)
                break
            came += transfer.data
        place = self._endpoints.get(address)
        if place is None:
            self._control.differ(f"event {self._number}: there is no endpoint {endpoint}")
        else:
            _compare(place, f"event {self._number}", data, came)


def replay(session: RecordedSession, *, watchers: tuple[Watcher, ...] = ()) -> Report[Answers]:
    """Play ``session``; a row for each place that answers come from.

    Raises:
        InputError: it is no recorded session.
        OSError: it cannot be read.
    """
    events = list(session.events(DECODER))
    device = _device(events)
    if not events:
        raise InputError(f"{session.path}: the session has no events")
    # What is wrong with the file is said before anything is compiled.
    compile_kernels()
    function = new_function(speed=device.cable, boot=device.is_boot, watchers=watchers)
    player = Player(function)
    faults = Faults(events)
    number = 0
    for number, event in enumerate(events, 1):
        if isinstance(event, Device):
            raise InputError(
                f"{session.path}: after {counted(number - 1, 'event')} there is another "
                f'"device": only the first line of a session says what it begins with'
            )
        player.play(event)
        faults.look(number, function.fault)
        if faults.unexpected is not None:
            break
    else:
        player.end(is_cut_short=session.is_cut_short)
        faults.look(number, function.fault)
    return report(session, number, len(events), player.places, faults)


def _device(events: list[Event]) -> Device:
    """What the session begins with, which is taken from its ``events``.

    Sessions of earlier versions do not say it: there the events tell, as far as they can.
    """
    if isinstance(device := events[0], Device):
        del events[0]
        return device
    first = events[:_FIRST_EVENTS]
    return Device.of(Mode.BOOT if _is_boot(first) else Mode.APPLICATION, _speed(first))


def _speed(events: Iterable[Event]) -> Speed:
    """The speed that the recorded device descriptor is of; super speed without one."""
    for event in events:
        if isinstance(event, Control) and (descriptor := _device_descriptor(event)):
            return Speed.SUPER if descriptor[3] >= _USB_3 else Speed.HIGH
    return Speed.SUPER


def _is_boot(events: Iterable[Event]) -> bool:
    """Whether the session begins before the firmware was there."""
    for event in events:
        if isinstance(event, Sent | Received):
            return False
        if isinstance(event, Control):
            if event.setup.kind == Kind.CLASS:
                return event.request != Request.DETACH
            if event.setup.kind == Kind.VENDOR:
                return False
            if descriptor := _device_descriptor(event):
                return descriptor[8:12] == descriptors.device(Mode.BOOT, Speed.SUPER)[8:12]
    return True


def _device_descriptor(event: Control) -> bytes:
    """The device descriptor that a request was answered with; empty if it is for something else."""
    asked = event.setup.kind == Kind.STANDARD and event.request == Standard.GET_DESCRIPTOR
    answer = event.answered or b""
    whole = asked and event.value >> 8 == descriptors.DEVICE and len(answer) >= _DEVICE_BYTES
    return answer if whole else b""
