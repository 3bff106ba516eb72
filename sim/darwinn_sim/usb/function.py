"""The USB function: boot and application mode, control requests, endpoints, reset, and faults.

Transfers may come from any thread and never wait for the chip: what it computes, it computes in
:meth:`UsbFunction.work`, which a :class:`~darwinn_sim.device.worker.Worker` calls. The chip itself
is any :class:`~darwinn_sim.host.attachment.AttachedChip`.

Two locks: ``_turns`` is for the chip, ``_lock`` for endpoints and what waits in them. Who needs
both takes ``_turns`` first; what is only assigned (configuration, detach) needs neither.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from darwinn_sim.device.stopwatch import Stopwatch
from darwinn_sim.device.turns import Turns
from darwinn_sim.errors import SimulationError, defect
from darwinn_sim.host.attachment import AttachedChip
from darwinn_sim.host.descriptors import STREAMS
from darwinn_sim.host.registers import register
from darwinn_sim.host.usb import UsbInterface
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.usb import descriptors
from darwinn_sim.usb.descriptors import (
    ENDPOINTS,
    ERRORS,
    EVENTS,
    OUTPUTS,
    OUTS,
    Endpoint,
    Mode,
    Speed,
)
from darwinn_sim.usb.endpoints import InEndpoint, OutEndpoint, Status, Transfer
from darwinn_sim.usb.errors import ProtocolFault, Stall
from darwinn_sim.usb.firmware import Firmware, Request
from darwinn_sim.usb.messages import HELD_BYTES, Chunks, Data, Messages, Stream
from darwinn_sim.usb.requests import Kind, Recipient, Setup, Standard

UNREAD_BYTES = 16 << 20
"""Output bytes that may wait for the host before the chip stops."""

UNREAD_EVENTS = 1 << 12
"""Events that may wait for the host before the chip stops."""

MAX_ADDRESS = 127
"""Addresses of a bus begin with 1."""

EVENT_BYTES = 16
_EVENT = struct.Struct("<QIB3x")
_FATAL = struct.pack("<I", 1)

DESCRIPTOR_EVENTS = register("descr_ep").offset
"""Bit t: descriptors of tag t are told on endpoint 2 (4 and up: interrupts); 0: interrupts are."""
CHUNK_LENGTH = register("outfeed_chunk_length").offset
"""Bytes of a packet of outputs, in units of 8."""
FATAL_CONTROL = register("usb_fatal_err_int_control").offset
"""Bit 0: whether errors are told on endpoint 3."""
MULTI_ENDPOINT = register("multi_bo_ep").offset
"""1 for an endpoint for each kind of data."""
CREDITS = register("ep_status_credit").offset
"""What a host asks that counts credits itself."""

_INTERRUPTS_ONLY = 0xF0

STUCK_SECONDS = 2.0
"""How long nothing takes a transfer of the host before that is said."""

Result = TypeVar("Result")


class Watcher:
    """Sees what passes on the cable; this one looks away."""

    def control(self, setup: Setup, data: bytes, answer: bytes | None) -> None:
        """A control request with its data, and its answer; None: it was stalled."""

    def sent(self, endpoint: int, data: bytes) -> None:
        """Bytes that the device took on a bulk endpoint."""

    def received(self, endpoint: int, data: bytes) -> None:
        """Bytes that the host took."""

    def was_reset(self, quiet: bool) -> None:
        """A bus reset; ``quiet``: nothing was under way."""

    def fault(self, error: SimulationError) -> None:
        """The chip can do no more until it is reset."""

    def refused(self, reason: str) -> None:
        """A request was stalled."""

    def untaken(self, reason: str) -> None:
        """The host sends what the chip does not ask for, and the chip waits, too."""


class _Intake:
    """What the host has sent to an endpoint; ``stream`` takes it, None: nobody does."""

    def __init__(self) -> None:
        self.stream: Stream | None = None
        self.clear()

    def clear(self) -> None:
        """Nothing has been sent."""
        self.arrived = bytearray()
        self.taken = 0
        """Bytes that the stream has, and the chip has not."""
        self._fed = 0
        """Of those, what has come since the stream was looked at."""
        self._space = HELD_BYTES
        """What the stream had room for then."""

    @property
    def held(self) -> int:
        """Bytes that the chip does not have yet."""
        return len(self.arrived) + self.taken

    def room(self) -> int:
        """How many bytes the host may send."""
        return self._space - self._fed - len(self.arrived)

    def hand_over(self) -> bytearray:
        """What has arrived, which the stream is to be given."""
        arrived, self.arrived = self.arrived, bytearray()
        self.taken += len(arrived)
        self._fed += len(arrived)
        return arrived

    def feed(self, arrived: bytearray) -> None:
        """Give the stream what has arrived."""
        if arrived and self.stream is not None:
            self.stream.feed(arrived)

    def count(self) -> None:
        """See what the chip has left of it."""
        self._fed = 0
        if self.stream is not None:
            self.taken, self._space = self.stream.held, self.stream.room


class UsbFunction:
    """The device at the end of the cable, in boot mode unless told otherwise.

    Args:
        make_chip: makes the chip, given whom its output goes to.
        speed: of the cable.
        mode: what it starts in.
        watchers: see what passes, in this order.
    """

    def __init__(
        self,
        make_chip: Callable[[UsbFunction], tuple[AttachedChip, UsbInterface]],
        *,
        speed: Speed = Speed.SUPER,
        mode: Mode = Mode.BOOT,
        watchers: tuple[Watcher, ...] = (),
    ) -> None:
        self.speed = speed
        self.mode = mode
        self.watchers = watchers
        self.fault: SimulationError | None = None
        """What ended the chip's work since the last reset."""
        self.wake: Callable[[], None] = lambda: None
        """Called when there may be work."""
        self.patience: Callable[[], float | None] = lambda: None
        """Seconds after which there is work by itself; None: not before ``wake`` is called."""
        self.changed: Callable[[], None] = lambda: None
        """Called when a reset has made another device of it (other descriptors)."""
        self.address = 1
        self.readdress: Callable[[int], int] = lambda address: address % MAX_ADDRESS + 1
        """How the host finds an address for another device, given that of the one before."""
        self._lock = threading.RLock()
        self._turns = Turns()
        self._firmware = Firmware()
        self._detached = False
        self._configuration = 1
        self._goes_on = False
        self._untaken_since: dict[int, float] = {}
        self._untaken_said: set[int] = set()
        """Endpoints of which it has been said since the last reset."""
        self.computing = Stopwatch()
        """Runs while the chip computes."""
        self.chip, self._interface = make_chip(self)
        self._intakes = {address: _Intake() for address in OUTS}
        self._use_streams(multiple=False)
        self._outs = {
            address: OutEndpoint(intake.room, self._taker(address))
            for address, intake in self._intakes.items()
        }
        self._ins = {
            endpoint.address: InEndpoint(
                endpoint.address == OUTPUTS,
                endpoint.packet_bytes(speed),
                self._seer(endpoint.address),
            )
            for endpoint in ENDPOINTS
            if endpoint.address & 0x80
        }

    # What a transport calls.

    def device_descriptor(self) -> bytes:
        """Who it is, in the mode that it is in."""
        return descriptors.device(self.mode, self.speed)

    def configuration_descriptor(self) -> bytes:
        """Its one configuration, in the mode that it is in."""
        return descriptors.configuration(self.mode, self.speed)

    def control(self, setup: Setup, data: bytes = b"") -> bytes:
        """Answer a control request; raises ``Stall``. It may take as long as the chip's next look
        at the host.
        """
        try:
            answer = self._answer(setup, data)[: setup.length]
        except Stall as stall:
            for watcher in self.watchers:
                watcher.control(setup, data, None)
                watcher.refused(f"{setup}: {stall}")
            raise
        for watcher in self.watchers:
            watcher.control(setup, data, answer)
        return answer

    def submit(self, transfer: Transfer) -> None:
        """Begin a bulk or interrupt transfer; ``transfer.done`` is called when it is over."""
        with self._lock:
            endpoints = self._ins if transfer.endpoint & 0x80 else self._outs
            endpoint = endpoints.get(transfer.endpoint)
            if endpoint is None or self.mode is Mode.BOOT:
                transfer.end(Status.STALLED)
                return
            # Bytes are work for the chip; a host that takes some is, if the chip waits for that.
            is_work = transfer.endpoint in self._outs or self._is_unread()
            endpoint.submit(transfer)
        if is_work:
            self.wake()

    def cancel(self, transfer: Transfer) -> bool:
        """End a transfer that waits; False if it has ended already."""
        with self._lock:
            endpoints = self._ins if transfer.endpoint & 0x80 else self._outs
            endpoint = endpoints.get(transfer.endpoint)
            if transfer.endpoint in self._outs:
                self._say_if_untaken(transfer.endpoint)
            return endpoint is not None and endpoint.cancel(transfer)

    def look(self) -> None:
        """Say if nothing has taken a transfer of the host for some time; to be called at times."""
        with self._lock:
            for address in self._outs:
                if not self._is_untaken(address):
                    self._untaken_since.pop(address, None)
                    continue
                since = self._untaken_since.setdefault(address, time.monotonic())
                if time.monotonic() - since >= STUCK_SECONDS:
                    self._say_if_untaken(address)

    def _is_untaken(self, address: int) -> bool:
        """Whether a transfer waits for a chip that itself waits."""
        intake = self._intakes[address]
        idle = self.fault is None and not (self._goes_on or intake.arrived or self._is_unread())
        waits = bool(self._outs[address].transfers) and intake.room() <= 0
        return idle and waits and self.patience() is None

    def _say_if_untaken(self, address: int) -> None:
        intake = self._intakes[address]
        if address in self._untaken_said or not self._is_untaken(address):
            return
        self._untaken_said.add(address)
        assert intake.stream is not None
        reason = (
            f"endpoint {address} is full: no descriptor asks for {intake.taken:,} bytes of "
            f"{intake.stream.where()}"
        )
        for watcher in self.watchers:
            watcher.untaken(reason)

    def reset(self) -> bool:
        """A bus reset, which starts firmware that is complete; True if it is another device now."""
        with self._turns, self._lock:
            before, quiet = self.mode, self.quiet
            if self._detached:
                self.mode = Mode.BOOT
                self._firmware = Firmware()
            elif self._firmware.complete:
                self.mode = Mode.APPLICATION
            self._detached = False
            self._firmware.reset()
            self._clear()
            for watcher in self.watchers:
                watcher.was_reset(quiet)
            if self.mode is not before:
                self.address = self.readdress(self.address)
        if self.mode is not before:
            self.changed()
        return self.mode is not before

    def _clear(self) -> None:
        """Everything as after power-up, except for the firmware."""
        self.chip.reset()
        self._interface.clear()
        self._use_streams(multiple=False)
        self._configuration = 1
        self._goes_on = False
        self._untaken_since.clear()
        self._untaken_said.clear()
        self.fault = None
        self._ins[OUTPUTS].packet_bytes = Endpoint(OUTPUTS).packet_bytes(self.speed)
        for endpoint in (*self._outs.values(), *self._ins.values()):
            endpoint.end_all(Status.NO_DEVICE)
            endpoint.clear()

    @property
    def quiet(self) -> bool:
        """Nothing is under way: neither the host nor the chip has anything that the other lacks."""
        with self._lock:
            waits = any(endpoint.held for endpoint in self._ins.values())
            sent = any(intake.held for intake in self._intakes.values())
            return not (waits or sent or self._goes_on or self.patience() is not None)

    def unread(self, endpoint: int) -> int:
        """Bytes of an endpoint that wait for the host."""
        with self._lock:
            return self._ins[endpoint].held

    # Control requests.

    def _answer(self, setup: Setup, data: bytes) -> bytes:
        if setup.kind == Kind.STANDARD:
            return self._standard(setup)
        if setup.kind == Kind.VENDOR and self.mode is Mode.APPLICATION:
            return self._register(setup, data)
        if setup.kind == Kind.CLASS and setup.recipient == Recipient.INTERFACE:
            if self.mode is Mode.BOOT:
                with self._lock:
                    return self._firmware.request(setup.request, setup.value, data, setup.length)
            if setup.request == Request.DETACH:
                self._detached = True
                return b""
        raise Stall(f"no such request in {self.mode.name.lower()} mode")

    def _standard(self, setup: Setup) -> bytes:
        self._check_recipient(setup)
        match setup.request:
            case Standard.GET_DESCRIPTOR:
                return self._descriptor(setup.value >> 8, setup.value & 0xFF)
            case Standard.GET_STATUS:
                return struct.pack("<H", self._is_halted(setup))
            case Standard.GET_CONFIGURATION:
                return bytes([self._configuration])
            case Standard.SET_CONFIGURATION if setup.value <= 1:
                self._configuration = setup.value
            case Standard.GET_INTERFACE if not setup.index:
                return b"\0"
            case Standard.SET_INTERFACE if not setup.index and not setup.value:
                pass
            case Standard.CLEAR_FEATURE | Standard.SET_FEATURE:
                pass
            case Standard.SET_SEL | Standard.SET_ISOCHRONOUS_DELAY:
                pass
            case _:
                raise Stall("no such standard request")
        return b""

    def _descriptor(self, kind: int, index: int) -> bytes:
        if not index:
            if kind == descriptors.DEVICE:
                return self.device_descriptor()
            if kind == descriptors.CONFIGURATION:
                return self.configuration_descriptor()
            if kind == descriptors.BOS:
                return descriptors.binary_object_store(self.speed)
        raise Stall(f"there is no descriptor {index} of type {kind}")

    def _check_recipient(self, setup: Setup) -> None:
        """Stall requests to an interface or an endpoint that is not there (USB 2.0, 9.4)."""
        if setup.recipient == Recipient.INTERFACE and setup.index & 0xFF:
            raise Stall(f"there is no interface {setup.index & 0xFF}")
        if setup.recipient == Recipient.ENDPOINT:
            address = setup.index & 0xFF
            known = () if self.mode is Mode.BOOT else (*self._outs, *self._ins)
            if address & 0x7F and address not in known:
                raise Stall(f"there is no endpoint {address:02X}")

    def _is_halted(self, setup: Setup) -> bool:
        if setup.recipient != Recipient.ENDPOINT:
            return False
        endpoint = self._outs.get(setup.index) or self._ins.get(setup.index)
        return endpoint is not None and endpoint.halted

    def _register(self, setup: Setup, data: bytes) -> bytes:
        """Registers: request 0 is for those of 64 bits, 1 for those of 32."""
        if setup.request not in (0, 1):
            raise Stall("no such vendor request")
        size = 8 >> setup.request
        offset = setup.index << 16 | setup.value
        with self._turns:
            if setup.to_host:
                self._check_read(offset)
                value = self._carried_out(lambda: self.chip.read(offset, 8 * size))
                return (value or 0).to_bytes(size, "little")
            if len(data) != size:
                raise Stall(f"{len(data)} bytes for a register of {size}")
            value = int.from_bytes(data, "little")
            self._carried_out(lambda: self.chip.write(offset, value, 8 * size))
            self._written(offset, value)
        self.wake()
        return b""

    def _written(self, offset: int, value: int) -> None:
        """What registers of the USB block do to the endpoints."""
        if offset == CHUNK_LENGTH and value:
            self._ins[OUTPUTS].packet_bytes = min(8 * value, 1 << 20)
        elif offset == MULTI_ENDPOINT:
            with self._lock:
                self._use_streams(multiple=bool(value & 1))

    def _check_read(self, offset: int) -> None:
        """Refuse by name what a host with several endpoints must not count on."""
        if offset == CREDITS and self.chip.read(MULTI_ENDPOINT, 64) & 1:
            self._fail(
                ProtocolFault(
                    "credits that the host counts (ep_status_credit, USB_OPERATING_MODE=1) are "
                    "not implemented: modes 0 and 2 are"
                )
            )

    # What the host has sent.

    def _use_streams(self, *, multiple: bool) -> None:
        """One endpoint for everything, or one for each kind of data; nothing has been sent."""
        receiver = self._interface
        streams: list[Stream | None] = [Messages(receiver), None, None]
        if multiple:
            streams = [Chunks(receiver), *(Data(receiver, tag) for tag in STREAMS)]
        for intake, stream in zip(self._intakes.values(), streams, strict=True):
            intake.clear()
            intake.stream = stream
            intake.count()

    def _taker(self, endpoint: int) -> Callable[[bytes], None]:
        def take(data: bytes) -> None:
            for watcher in self.watchers:
                watcher.sent(endpoint, data)
            intake = self._intakes[endpoint]
            if intake.stream is None:
                self._fail(
                    ProtocolFault(
                        f"{len(data)} bytes on endpoint {endpoint}, which takes none unless "
                        "multi_bo_ep is 1"
                    )
                )
                return
            intake.arrived += data

        return take

    def work(self) -> bool:
        """Let the chip go on for a moment; False if there is nothing more that it can do now."""
        with self._turns:
            with self._lock:
                if self.fault is not None or self.mode is Mode.BOOT or self._is_unread():
                    return False
                arrived = [(intake, intake.hand_over()) for intake in self._intakes.values()]
            with self.computing:
                self._goes_on = bool(self._carried_out(lambda: self._go_on_with(arrived)))
            if self.fault is not None:
                return False
            with self._lock:
                for intake in self._intakes.values():
                    intake.count()
                for endpoint in self._outs.values():
                    endpoint.move()
                return self._goes_on or any(each.arrived for each in self._intakes.values())

    def _go_on_with(self, arrived: list[tuple[_Intake, bytearray]]) -> bool:
        for intake, data in arrived:
            intake.feed(data)
        return self.chip.advance()

    # What the chip sends: it calls these while it computes.

    def take_output(self, data: bytes) -> None:
        """Output bytes."""
        with self._lock:
            self._ins[OUTPUTS].put(data)

    def take_event(self, tag: int, address: int, size: int) -> None:
        """A descriptor of the scalar core: told on endpoint 2 if the host wants that."""
        told = self.chip.read(DESCRIPTOR_EVENTS, 64) or _INTERRUPTS_ONLY
        if not told >> tag & 1:
            return
        if tag < DescriptorTag.INTERRUPT_0:
            event = _EVENT.pack(address, size, tag)
        else:
            event = _EVENT.pack(0, 0, tag)
        with self._lock:
            self._ins[EVENTS].put(event)

    def _is_unread(self) -> bool:
        """So much waits for the host that the chip has to wait."""
        events = self._ins[EVENTS].held // EVENT_BYTES
        return self._ins[OUTPUTS].held >= UNREAD_BYTES or events >= UNREAD_EVENTS

    def _seer(self, endpoint: int) -> Callable[[bytes], None]:
        def see(data: bytes) -> None:
            for watcher in self.watchers:
                watcher.received(endpoint & 0xF, data)

        return see

    # Faults.

    def _carried_out(self, what: Callable[[], Result]) -> Result | None:
        """What the chip gives, or None where that ends its work."""
        try:
            return what()
        except SimulationError as error:
            self._fail(error)
        except Exception as error:
            self._fail(defect(error))
        return None

    def _fail(self, error: SimulationError) -> None:
        """The chip can do no more: tell the host on endpoint 3, and stall what moves data."""
        with self._lock:
            if self.fault is not None:
                return
            self.fault = error
            for watcher in self.watchers:
                watcher.fault(error)
            interrupts = self._interface.interrupts
            if not self._interface.registers.get("hib_error_status"):
                interrupts.report_error("instruction_queue_invalid")
            if self.chip.read(FATAL_CONTROL, 64) & 1:
                self._ins[ERRORS].put(_FATAL)
            for endpoint in self._outs.values():
                endpoint.halt()
            for address in (OUTPUTS, EVENTS):
                self._ins[address].halt()
