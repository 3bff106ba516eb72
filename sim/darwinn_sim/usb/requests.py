"""The requests on the control endpoint, by the first bytes of their setup packet."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

_SETUP = struct.Struct("<BBHHH")

TO_HOST = 0x80
"""Bit of ``Setup.type``: data comes from the device."""


class Kind(IntEnum):
    """Who defines a request: bits 5 and 6 of ``Setup.type``."""

    STANDARD = 0
    CLASS = 1
    VENDOR = 2


class Standard(IntEnum):
    """Requests of USB itself that the device knows."""

    GET_STATUS = 0
    CLEAR_FEATURE = 1
    SET_FEATURE = 3
    GET_DESCRIPTOR = 6
    GET_CONFIGURATION = 8
    SET_CONFIGURATION = 9
    GET_INTERFACE = 10
    SET_INTERFACE = 11
    SET_SEL = 0x30
    SET_ISOCHRONOUS_DELAY = 0x31


class Recipient(IntEnum):
    """Whom a request is for: the low bits of ``Setup.type``."""

    DEVICE = 0
    INTERFACE = 1
    ENDPOINT = 2


@dataclass(frozen=True)
class Setup:
    """A setup packet: bmRequestType, bRequest, wValue, wIndex, wLength."""

    type: int
    request: int
    value: int
    index: int
    length: int

    @classmethod
    def unpack(cls, data: bytes) -> Setup:
        """From the 8 bytes of a setup packet."""
        return cls(*_SETUP.unpack(data))

    def pack(self) -> bytes:
        """The 8 bytes."""
        return _SETUP.pack(self.type, self.request, self.value, self.index, self.length)

    @property
    def to_host(self) -> bool:
        """Data comes from the device."""
        return bool(self.type & TO_HOST)

    @property
    def kind(self) -> int:
        """Who defines the request."""
        return self.type >> 5 & 3

    @property
    def recipient(self) -> int:
        """Whom it is for."""
        return self.type & 0x1F

    def __str__(self) -> str:
        """As documents write it."""
        return (
            f"{self.type:02X} {self.request:02X} wValue={self.value:04X} wIndex={self.index:04X} "
            f"wLength={self.length}"
        )
