"""What the device says of itself: descriptors of boot and application mode, at both speeds."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum, IntEnum

DEVICE, CONFIGURATION, INTERFACE, ENDPOINT, BOS, CAPABILITY, FUNCTIONAL, COMPANION = (
    *(1, 2, 4, 5),
    *(15, 16, 0x21, 0x30),
)
"""Types of descriptors."""

BLOCK_BYTES = 256
"""Bytes of a block of firmware (wTransferSize)."""

_BULK, _INTERRUPT = 2, 3
_BURST = 15
_DETACH_MILLISECONDS = 1000
_CAN_DOWNLOAD_UPLOAD_STAY = 7
_POWER = {True: 112, False: 250}
"""bMaxPower: units of 8 mA at super speed (as seen), of 2 mA at high speed."""


class Mode(Enum):
    """What runs on the device's controller; the values are vendor and product."""

    BOOT = (0x1A6E, 0x089A)
    APPLICATION = (0x18D1, 0x9302)


class Speed(IntEnum):
    """The speed of the cable, by its number in libusb."""

    HIGH = 3
    SUPER = 4


@dataclass(frozen=True)
class Endpoint:
    """An endpoint: its address (bit 7: to the host), whether it is an interrupt endpoint."""

    address: int
    interrupt: bool = False

    def packet_bytes(self, speed: Speed) -> int:
        """The largest packet."""
        if self.interrupt:
            return 64
        return 1024 if speed is Speed.SUPER else 512


OUTS = (1, 2, 3)
"""Instructions and data, or in multi-endpoint mode instructions, inputs, parameters."""
OUTPUTS, EVENTS, ERRORS = 0x81, 0x82, 0x83
"""Output bytes; an event of 16 bytes for each interrupt; 4 bytes for each error."""

ENDPOINTS = (
    *map(Endpoint, OUTS),
    Endpoint(OUTPUTS),
    Endpoint(EVENTS),
    Endpoint(ERRORS, interrupt=True),
)
"""The endpoints of application mode; boot mode has the control endpoint alone."""


def device(mode: Mode, speed: Speed) -> bytes:
    """The device descriptor (18 bytes)."""
    is_super = speed is Speed.SUPER
    version, packet = (0x0310, 9) if is_super else (0x0210, 64)
    vendor, product = mode.value
    return struct.pack(
        "<BBHBBBBHHHBBBB", 18, DEVICE, version, 0, 0, 0, packet, vendor, product, 0x100, 0, 0, 0, 1
    )


def configuration(mode: Mode, speed: Speed) -> bytes:
    """The configuration descriptor with all that follows it."""
    body = _boot_interface() if mode is Mode.BOOT else _application_interface(speed)
    power = _POWER[speed is Speed.SUPER]
    head = struct.pack("<BBHBBBBB", 9, CONFIGURATION, 9 + len(body), 1, 1, 0, 0x80, power)
    return head + body


def _interface(endpoints: int, *of_class: int) -> bytes:
    return bytes((9, INTERFACE, 0, 0, endpoints, *of_class, 0))


def _boot_interface() -> bytes:
    return _interface(0, 0xFE, 1, 2) + struct.pack(
        "<BBBHHH",
        9,
        FUNCTIONAL,
        _CAN_DOWNLOAD_UPLOAD_STAY,
        _DETACH_MILLISECONDS,
        BLOCK_BYTES,
        0x0101,
    )


def _application_interface(speed: Speed) -> bytes:
    return _interface(len(ENDPOINTS), 0xFF, 0xFF, 0xFF) + b"".join(
        _endpoint(endpoint, speed) for endpoint in ENDPOINTS
    )


def _endpoint(endpoint: Endpoint, speed: Speed) -> bytes:
    packet = endpoint.packet_bytes(speed)
    kind, interval = (_INTERRUPT, 1) if endpoint.interrupt else (_BULK, 0)
    text = struct.pack("<BBBBHB", 7, ENDPOINT, endpoint.address, kind, packet, interval)
    if speed is Speed.SUPER:
        burst, bytes_each = (0, packet) if endpoint.interrupt else (_BURST, 0)
        text += struct.pack("<BBBBH", 6, COMPANION, burst, 0, bytes_each)
    return text


def binary_object_store(speed: Speed) -> bytes:
    """The BOS descriptor: what hosts of USB 3 ask for before they use the device."""
    of_usb_2 = struct.pack("<BBBI", 7, CAPABILITY, 2, 0)
    of_usb_3 = struct.pack("<BBBBHBBH", 10, CAPABILITY, 3, 0, 0b1100, 2, 0, 0)
    parts = (of_usb_2, of_usb_3) if speed is Speed.SUPER else (of_usb_2,)
    body = b"".join(parts)
    return struct.pack("<BBHB", 5, BOS, 5 + len(body), len(parts)) + body
