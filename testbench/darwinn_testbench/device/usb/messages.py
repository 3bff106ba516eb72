"""What the stand-in for libusb and the device say to each other.

A request and a reply begin with their records; ``size`` bytes follow. Each request but CANCEL has
one reply, of its operation and number.
"""

from __future__ import annotations

from typing import Annotated

from darwinn_testbench.device.wire import I32, U8, U32, Numbered, Record, Type

SOCKET_VARIABLE = "DARWINN_USB_SOCKET"
"""The variable of the environment by which the stand-in finds the device."""

MAX_DEVICES = 16
"""Devices that may be plugged in."""

SETUP_BYTES = 8
"""The packet that a control transfer begins with."""

ADDRESS_SHIFT = 8
"""Where the address of the device stands; below it is that of an endpoint, or 0."""


class Operation(Numbered):
    """What a message asks for."""

    DEVICE = 1, "where: its number; answered with struct device_reply and its configuration"
    OPEN = 2, "begin to use it; where: its address, as for all up to IN"
    CLOSE = 3
    RESET = 4
    CONTROL = 5, "payload: setup packet and data"
    OUT = 6, "where: address and endpoint; payload: data"
    IN = 7, "where: address and endpoint; room: bytes"
    CANCEL = 8, "where: the number of the message to cancel"
    EXPIRE = 10, "where: the number of a message to cancel if its time is over; room: milliseconds"
    CHANGED = 9, "from the chip's process alone: another device is plugged in"


class Error(Numbered):
    """Errors of libusb."""

    NONE = 0
    IO = -1
    INVALID_PARAM = -2
    ACCESS = -3
    NO_DEVICE = -4
    NOT_FOUND = -5
    BUSY = -6
    TIMEOUT = -7
    OVERFLOW = -8
    PIPE = -9
    INTERRUPTED = -10
    NO_MEM = -11
    NOT_SUPPORTED = -12
    OTHER = -99


class Request(Record, frozen=True):
    """From a program."""

    operation: Annotated[U32, "enum operation"]
    number: Annotated[U32, "of the message; its reply has it too"]
    where: Annotated[U32, "by operation"]
    room: Annotated[U32, "bytes that the reply may have"]
    size: Annotated[U32, "bytes of payload that follow"]


class Reply(Record, frozen=True):
    """To a program."""

    operation: Annotated[U32, "that of the request, or CHANGED"]
    number: Annotated[U32, "that of the request"]
    status: Annotated[I32, "enum error"]
    moved: Annotated[U32, "bytes that went either way"]
    size: Annotated[U32, "bytes of payload that follow"]


class DeviceReply(Record, frozen=True):
    """A device that is plugged in; the configuration descriptor follows."""

    count: Annotated[U8, "devices that are plugged in"]
    bus: Annotated[U8, "where it is plugged in"]
    port: Annotated[U8, "of the bus"]
    address: Annotated[U8, "another one after each reset"]
    speed: Annotated[U8, "as libusb counts"]
    device: Annotated[bytes, Type("uint8_t", "s", 18), "its descriptor"]
