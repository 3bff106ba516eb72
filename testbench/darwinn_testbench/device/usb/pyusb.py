"""The device for clients of PyUSB, in their own process: a backend in place of libusb.

What libusb would refuse is refused with the same errors: a device that a reset has changed is gone,
an interface is claimed once, a transfer ends when its time is over.
"""

from __future__ import annotations

import array
import errno
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NoReturn

from darwinn_formats.errors import Unavailable
from darwinn_sim.usb import descriptors
from darwinn_sim.usb.descriptors import Speed
from darwinn_sim.usb.endpoints import Status, Transfer
from darwinn_sim.usb.errors import Stall
from darwinn_sim.usb.function import UsbFunction, Watcher
from darwinn_sim.usb.requests import TO_HOST, Setup

from darwinn_testbench.device.clock import LOOK_SECONDS, Clock, seconds_of
from darwinn_testbench.device.usb.attach import attached
from darwinn_testbench.device.usb.log import Faults
from darwinn_testbench.device.usb.port import BUS, PORT

_DEVICE_FIELDS = (
    "bLength bDescriptorType bcdUSB bDeviceClass bDeviceSubClass bDeviceProtocol bMaxPacketSize0 "
    "idVendor idProduct bcdDevice iManufacturer iProduct iSerialNumber bNumConfigurations"
)
_CONFIGURATION_FIELDS = (
    "bLength bDescriptorType wTotalLength bNumInterfaces bConfigurationValue iConfiguration "
    "bmAttributes bMaxPower"
)
_INTERFACE_FIELDS = (
    "bLength bDescriptorType bInterfaceNumber bAlternateSetting bNumEndpoints bInterfaceClass "
    "bInterfaceSubClass bInterfaceProtocol iInterface"
)
_ENDPOINT_FIELDS = "bLength bDescriptorType bEndpointAddress bmAttributes wMaxPacketSize bInterval"

_LIBUSB_ERRORS = {
    errno.EPIPE: (-9, "Pipe error"),
    errno.ENODEV: (-4, "No such device (it may have been disconnected)"),
    errno.ENOENT: (-5, "Entity not found"),
    errno.EBUSY: (-6, "Resource busy"),
    errno.EOVERFLOW: (-8, "Overflow"),
    errno.ETIMEDOUT: (-7, "Operation timed out"),
    errno.EINVAL: (-2, "Invalid parameter"),
}
_ERROR_OF_STATUS = {
    Status.STALLED: errno.EPIPE,
    Status.NO_DEVICE: errno.ENODEV,
    Status.OVERFLOW: errno.EOVERFLOW,
    Status.CANCELLED: errno.ETIMEDOUT,
}


def pyusb_backend(
    *,
    speed: Speed = Speed.SUPER,
    boot: bool = True,
    watchers: tuple[Watcher, ...] = (),
    clock: Clock = Clock.CHIP,
) -> Backend:
    """A backend for ``usb.core.find(backend=...)`` at whose port a simulated chip is plugged in.

    Faults of the chip are said on standard error. The chip computes in a thread of this process
    until :meth:`Backend.close`; the backend is a context manager too.

    Args:
        speed: of the cable.
        boot: the chip waits for firmware, as after power-up; False: it has some.
        watchers: see what passes on the cable, for example a recorder.
        clock: what time-outs count: ``CHIP`` stands still while the simulation computes.

    Raises:
        Unavailable: PyUSB is not installed.
    """
    try:
        import usb.core  # noqa: F401
    except ImportError:
        raise Unavailable("PyUSB is not installed: pip install pyusb") from None
    stack = ExitStack()
    watchers = (Faults(_say), *watchers)
    function = stack.enter_context(attached(speed=speed, boot=boot, watchers=watchers))
    return Backend(function, stack, clock)


def _say(text: str) -> None:
    print(f"darwinn device: {text}", file=sys.stderr)


@dataclass(eq=False)
class _Device:
    """The device as it was when it was found: another ``address`` is another device."""

    address: int


@dataclass(eq=False)
class _Handle:
    """A device that was opened."""

    device: _Device
    claimed: set[int] = field(default_factory=set)


def _fail(number: int) -> NoReturn:
    from usb.core import USBError, USBTimeoutError

    code, text = _LIBUSB_ERRORS[number]
    kind = USBTimeoutError if number == errno.ETIMEDOUT else USBError
    raise kind(text, code, number)


class Backend:
    """The methods of ``usb.backend.IBackend`` that PyUSB calls for this device.

    Arguments and results are PyUSB's own; ``function`` is the device at the other end.
    """

    def __init__(self, function: UsbFunction, stack: ExitStack, clock: Clock = Clock.CHIP) -> None:
        self.function = function
        self._stack = stack
        self._clock = seconds_of(clock, function)
        self._claims: dict[int, _Handle] = {}
        self._is_unplugged = False

    def close(self) -> None:
        """Unplug the device, which ends what waits for it, and end its thread."""
        if not self._is_unplugged:
            self._is_unplugged = True
            self.function.reset()
            self._stack.close()

    def __enter__(self) -> Backend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Finding and describing.

    def enumerate_devices(self) -> Iterator[_Device]:
        """The one device, until it is unplugged."""
        if not self._is_unplugged:
            yield _Device(self.function.address)

    def get_parent(self, dev: _Device) -> None:
        """It hangs at no hub."""

    def get_device_descriptor(self, dev: _Device) -> Any:
        """Its device descriptor, and where it is plugged in."""
        values = struct.unpack("<BBHBBBBHHHBBBB", self.function.device_descriptor())
        return SimpleNamespace(
            **dict(zip(_DEVICE_FIELDS.split(), values, strict=True)),
            bus=BUS,
            address=dev.address,
            port_number=PORT,
            port_numbers=(PORT,),
            speed=int(self.function.speed),
        )

    def get_configuration_descriptor(self, dev: _Device, config: int) -> Any:
        """Its one configuration; IndexError for another."""
        if config:
            raise IndexError(f"there is no configuration {config}")
        values = struct.unpack_from("<BBHBBBBB", self.function.configuration_descriptor())
        return _named(_CONFIGURATION_FIELDS, values, b"")

    def get_interface_descriptor(self, dev: _Device, intf: int, alt: int, config: int) -> Any:
        """Its one interface; IndexError for another."""
        if intf or alt or config:
            raise IndexError(f"there is no interface {intf} with alternate setting {alt}")
        interface, extra, _ = self._parts()
        return _named(_INTERFACE_FIELDS, tuple(interface), extra)

    def get_endpoint_descriptor(
        self, dev: _Device, ep: int, intf: int, alt: int, config: int
    ) -> Any:
        """Its endpoint number ``ep`` from 0; IndexError for one that is not there."""
        endpoint, extra = self._parts()[2][ep]
        described = _named(_ENDPOINT_FIELDS, struct.unpack("<BBBBHB", endpoint), extra)
        described.bRefresh = described.bSynchAddress = 0
        return described

    def _parts(self) -> tuple[bytes, bytes, list[tuple[bytes, bytes]]]:
        """The interface, the descriptors behind it, and the endpoints with those behind them."""
        text = self.function.configuration_descriptor()
        found: list[list[bytes]] = []
        at = text[0]
        while at < len(text):
            part = text[at : at + text[at]]
            if part[1] in (descriptors.INTERFACE, descriptors.ENDPOINT):
                found.append([part, b""])
            else:
                found[-1][1] += part
            at += len(part)
        (interface, extra), *endpoints = found
        return interface, extra, [(endpoint, after) for endpoint, after in endpoints]

    # Handles.

    def open_device(self, dev: _Device) -> _Handle:
        """Open it; an error if a reset has made another device of it."""
        self._present(dev)
        return _Handle(dev)

    def close_device(self, dev_handle: _Handle) -> None:
        """Close it, and release what was claimed."""
        for interface in tuple(dev_handle.claimed):
            self.release_interface(dev_handle, interface)

    def _present(self, dev: _Device) -> None:
        if self._is_unplugged or dev.address != self.function.address:
            _fail(errno.ENODEV)

    def set_configuration(self, dev_handle: _Handle, config_value: int) -> None:
        """Choose the one configuration there is; busy while an interface is claimed."""
        self._present(dev_handle.device)
        if self._claims:
            _fail(errno.EBUSY)
        self._request(dev_handle, Setup(0x00, 9, config_value, 0, 0), b"")

    def get_configuration(self, dev_handle: _Handle) -> int:
        """The configuration that is chosen."""
        return self._request(dev_handle, Setup(0x80, 8, 0, 0, 1), b"")[0]

    def set_interface_altsetting(self, dev_handle: _Handle, intf: int, altsetting: int) -> None:
        """Choose the one alternate setting there is."""
        self._request(dev_handle, Setup(0x01, 11, altsetting, intf, 0), b"")

    def claim_interface(self, dev_handle: _Handle, intf: int) -> None:
        """Claim an interface; busy if another handle has."""
        self._present(dev_handle.device)
        if intf:
            _fail(errno.ENOENT)
        if self._claims.setdefault(intf, dev_handle) is not dev_handle:
            _fail(errno.EBUSY)
        dev_handle.claimed.add(intf)

    def release_interface(self, dev_handle: _Handle, intf: int) -> None:
        """Release an interface; an error if it was not claimed."""
        if intf not in dev_handle.claimed:
            _fail(errno.ENOENT)
        dev_handle.claimed.remove(intf)
        del self._claims[intf]

    def reset_device(self, dev_handle: _Handle) -> None:
        """A bus reset; as by libusb an error, "not found", if it is another device afterwards."""
        self._present(dev_handle.device)
        if self.function.reset():
            _fail(errno.ENOENT)

    def clear_halt(self, dev_handle: _Handle, ep: int) -> None:
        """A stalled endpoint of this device stays so until a reset; an error if there is none."""
        self._present(dev_handle.device)
        try:
            self.function.control(Setup(0x02, 1, 0, ep, 0))
        except Stall:
            _fail(errno.ENOENT)

    def is_kernel_driver_active(self, dev_handle: _Handle, intf: int) -> bool:
        """No kernel knows of it."""
        return False

    def detach_kernel_driver(self, dev_handle: _Handle, intf: int) -> None:
        """There is none."""
        _fail(errno.ENOENT)

    attach_kernel_driver = detach_kernel_driver

    # Transfers.

    def ctrl_transfer(
        self,
        dev_handle: _Handle,
        bmRequestType: int,  # noqa: N803
        bRequest: int,  # noqa: N803
        wValue: int,  # noqa: N803
        wIndex: int,  # noqa: N803
        data: array.array[int],
        timeout: int,
    ) -> int:
        """A control request; ``data`` goes out or is filled. The bytes moved."""
        length = len(data) * data.itemsize
        setup = Setup(bmRequestType, bRequest, wValue, wIndex, length)
        if not setup.to_host:
            self._request(dev_handle, setup, data.tobytes())
            return length
        answer = self._request(dev_handle, setup, b"")
        memoryview(data).cast("B")[: len(answer)] = answer
        return len(answer)

    def _request(self, handle: _Handle, setup: Setup, data: bytes) -> bytes:
        self._present(handle.device)
        try:
            return self.function.control(setup, data)
        except Stall:
            _fail(errno.EPIPE)

    def bulk_write(
        self, dev_handle: _Handle, ep: int, intf: int, data: array.array[int], timeout: int
    ) -> int:
        """Send ``data``, or receive into it: as by libusb, the address of the endpoint says which.

        The bytes that were moved before the time was over, which is an error if there are none.
        """
        if not ep & TO_HOST:
            sent = Transfer(ep, lambda transfer: None, data=data.tobytes())
            return self._transfer(dev_handle, timeout, sent).actual
        length = len(data) * data.itemsize
        received = Transfer(ep, lambda transfer: None, length=length)
        came = self._transfer(dev_handle, timeout, received).data
        memoryview(data).cast("B")[: len(came)] = came
        return len(came)

    bulk_read = intr_write = intr_read = bulk_write

    def iso_write(self, *_: object) -> int:
        """It has no isochronous endpoints."""
        raise NotImplementedError("the device has no isochronous endpoints")

    iso_read = iso_write

    def _transfer(self, handle: _Handle, timeout: int, transfer: Transfer) -> Transfer:
        """Carry out a transfer within ``timeout`` milliseconds (0: however long it takes)."""
        self._present(handle.device)
        ended = threading.Event()
        transfer.done = lambda _: ended.set()
        self.function.submit(transfer)
        try:
            # It may have been unplugged since it was seen.
            self._present(handle.device)
            self._await(ended, timeout / 1000 if timeout else None)
        finally:
            # Also where this thread is interrupted: nothing may take bytes of the next transfer.
            self.function.cancel(transfer)
        moved_in_time = transfer.status is Status.CANCELLED and transfer.actual
        if transfer.status in _ERROR_OF_STATUS and not moved_in_time:
            _fail(_ERROR_OF_STATUS[transfer.status])
        return transfer

    def _await(self, ended: threading.Event, seconds: float | None) -> None:
        """Wait for the end of a transfer, as long as it may take by the clock of time-outs."""
        end = None if seconds is None else self._clock() + seconds
        if end is None:
            ended.wait()
            return
        if ended.wait(max(0.0, end - self._clock())):
            return
        # Only where the clock has stood still meanwhile.
        while (left := end - self._clock()) > 0:
            if ended.wait(max(left, LOOK_SECONDS)):
                return


def _named(names: str, values: tuple[int, ...], extra: bytes) -> SimpleNamespace:
    described = SimpleNamespace(**dict(zip(names.split(), values, strict=True)))
    described.extra_descriptors = list(extra)
    return described
