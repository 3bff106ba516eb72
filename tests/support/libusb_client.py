"""libusb-1.0 by ctypes, as a program in C uses it, with an echo core at the other end."""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable
from ctypes import POINTER, byref, c_int, c_ubyte, c_uint, c_void_p
from typing import Any

RUN = 0x44018
BOOT, APPLICATION = (0x1A6E, 0x089A), (0x18D1, 0x9302)
PROGRAM = bytes((1, 5, 3, 5, 4, 0))
"""Of the echo core: asks for 5 bytes, gives them back, interrupts."""

CONTROL, BULK, INTERRUPT = 0, 2, 3
COMPLETED, ERROR, TIMED_OUT, CANCELLED, STALL, NO_DEVICE, OVERFLOW = range(7)


class Transfer(ctypes.Structure):
    """struct libusb_transfer."""


Callback = ctypes.CFUNCTYPE(None, POINTER(Transfer))
Transfer._fields_ = [
    ("dev_handle", c_void_p),
    ("flags", ctypes.c_uint8),
    ("endpoint", c_ubyte),
    ("type", c_ubyte),
    ("timeout", c_uint),
    ("status", c_int),
    ("length", c_int),
    ("actual_length", c_int),
    ("callback", Callback),
    ("user_data", c_void_p),
    ("buffer", c_void_p),
    ("num_iso_packets", c_int),
]


class Time(ctypes.Structure):
    """struct timeval."""

    _fields_ = [("seconds", ctypes.c_long), ("microseconds", ctypes.c_long)]


class PollDescriptor(ctypes.Structure):
    """struct libusb_pollfd."""

    _fields_ = [("fd", c_int), ("events", ctypes.c_short)]


HotPlug = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_void_p)


def load() -> Any:
    lib = ctypes.CDLL("libusb-1.0.so.0")
    lib.libusb_alloc_transfer.restype = POINTER(Transfer)
    lib.libusb_get_pollfds.restype = POINTER(POINTER(PollDescriptor))
    lib.libusb_open_device_with_vid_pid.restype = c_void_p
    lib.libusb_get_device.restype = c_void_p
    lib.libusb_error_name.restype = lib.libusb_strerror.restype = ctypes.c_char_p
    lib.libusb_get_device_list.restype = ctypes.c_ssize_t
    return lib


class Bus:
    """A context, and the device that is plugged in."""

    def __init__(self) -> None:
        self.lib = load()
        self.context = c_void_p()
        assert self.lib.libusb_init(byref(self.context)) == 0
        self.handle = c_void_p()
        self.kept: list[Any] = []

    def devices(self) -> list[c_void_p]:
        listed = POINTER(c_void_p)()
        count = self.lib.libusb_get_device_list(self.context, byref(listed))
        devices = [c_void_p(listed[number]) for number in range(count)]
        self.lib.libusb_free_device_list(listed, 0)
        return devices

    def identity(self, device: c_void_p | None = None) -> tuple[int, int]:
        """Vendor and product."""
        text = ctypes.create_string_buffer(18)
        assert self.lib.libusb_get_device_descriptor(device or self.devices()[0], text) == 0
        return struct.unpack_from("<HH", text.raw, 8)

    def open(self, number: int = 0) -> int:
        return int(self.lib.libusb_open(self.devices()[number], byref(self.handle)))

    def close(self) -> None:
        self.lib.libusb_close(self.handle)
        self.handle = c_void_p()

    def control(self, kind: int, request: int, value: int, index: int, data: Any) -> Any:
        """Data that goes out, or how many bytes are awaited; what came, or the error."""
        is_in = isinstance(data, int)
        size = data if is_in else len(data)
        buffer = ctypes.create_string_buffer(b"" if is_in else data, max(size, 1))
        status = self.lib.libusb_control_transfer(
            self.handle, kind, request, value, index, buffer, size, 1000
        )
        return buffer.raw[:status] if is_in and status >= 0 else status

    def start(self) -> None:
        """Let the core run."""
        assert self.control(0x40, 0, RUN & 0xFFFF, RUN >> 16, (1).to_bytes(8, "little")) == 8

    def write(self, data: bytes, timeout: int = 5000, endpoint: int = 1) -> tuple[int, int]:
        """The error, and the bytes that went."""
        moved = c_int()
        status = self.lib.libusb_bulk_transfer(
            self.handle, endpoint, data, len(data), byref(moved), timeout
        )
        return status, moved.value

    def read(self, endpoint: int, size: int, timeout: int = 5000) -> tuple[int, bytes]:
        buffer = ctypes.create_string_buffer(size)
        moved = c_int()
        status = self.lib.libusb_bulk_transfer(
            self.handle, endpoint, buffer, size, byref(moved), timeout
        )
        return status, buffer.raw[: moved.value]

    def message(self, tag: int, payload: bytes) -> tuple[int, int]:
        return self.write(struct.pack("<II", len(payload), tag) + payload)

    def echo(self, text: bytes) -> bytes:
        """Let the echo core send five bytes back."""
        self.message(0, PROGRAM)
        self.message(1, text)
        status, data = self.read(0x81, 64)
        assert status == 0
        assert self.read(0x82, 16) == (0, struct.pack("<QIB3x", 0, 0, 4))
        return data

    def transfer(
        self, endpoint: int, size: int, done: Callable[[Any], None], timeout: int = 0
    ) -> Any:
        """Submit an asynchronous transfer; ``done`` is its callback."""
        transfer = self.lib.libusb_alloc_transfer(0)
        buffer = ctypes.create_string_buffer(size)
        callback = Callback(lambda ended: done(ended.contents))
        self.kept += [buffer, callback]
        what = transfer.contents
        what.dev_handle, what.endpoint, what.type = self.handle, endpoint, BULK
        what.timeout, what.length = timeout, size
        what.buffer = ctypes.cast(buffer, c_void_p)
        what.callback = callback
        assert self.lib.libusb_submit_transfer(transfer) == 0
        return transfer

    def handle_events(self, seconds: float = 0) -> int:
        whole = int(seconds)
        left = Time(whole, int((seconds - whole) * 1e6))
        return int(self.lib.libusb_handle_events_timeout(self.context, byref(left)))

    def handle_until(self, finished: Callable[[], bool]) -> None:
        end = time.monotonic() + 20
        while not finished():
            assert self.handle_events(1) == 0
            assert time.monotonic() < end, "it took more than 20 seconds"


def opened(number: int = 0) -> Bus:
    bus = Bus()
    assert bus.open(number) == 0
    bus.start()
    return bus


def error_name(bus: Bus, status: int) -> str:
    return str(bus.lib.libusb_error_name(status).decode())
