"""What the shim in a program and the device say to each other, and how Python sends it.

A program asks by :class:`Message`. The answer to its first OPEN brings the socket by which the chip
asks for the program's memory, by :class:`MemoryRequest`.
"""

from __future__ import annotations

import array
import socket
import time
from typing import Annotated

from darwinn_testbench.device.sockets import take
from darwinn_testbench.device.wire import U32, U64, Numbered, Record, Type

FOLDER_VARIABLE = "DARWINN_APEX"
"""The variable of the environment by which the shim finds the folder of the devices."""

MAX_DEVICES = 16
"""Devices that there may be."""

SOCKET_NAME = "socket_"
"""Of a device in that folder, before its number."""

CLASS_NAME = "class"
"""Of the folder in that one in which programs look for devices."""

DEVICE_NAME = "apex_"
"""Of a device, before its number."""

REGISTER_PAGES = (0x40000, 0x44000, 0x48000)
"""Offsets of the pages of registers that a program can map."""

PIECE_BYTES = 1 << 16
"""Bytes of a program's memory that are asked for at once, at most."""

WORDS = 5

SECONDS = 10.0
"""How long a client may take for the rest of a message, or to take an answer."""


class Operation(Numbered):
    """What a program asks of the device."""

    OPEN = 1, "answered with the socket of the program's memory, by the first one of a program"
    CLOSE = 2
    READ = 3, "words: offset; answered with the value"
    WRITE = 4, "words: offset, value"
    IOCTL = 5, "argument: enum ioctl; words: the structure, which the answer has changed"


class Ioctl(Numbered):
    """Ioctls, as in the driver's header: type (framework or device) in bits 15:8, then number."""

    RESET = 0xDC00
    SET_EVENTFD = 0xDC01, "served by the shim, as the next one"
    CLEAR_EVENTFD = 0xDC02
    TABLES = 0xDC04, "how many page tables there are"
    ENTRIES = 0xDC05, "of a page table"
    SIMPLE_ENTRIES = 0xDC06
    PARTITION = 0xDC07
    MAP = 0xDC08, "struct map_words"
    UNMAP = 0xDC09, "struct map_words"
    CLEAR_COUNTS = 0xDC0A, "of interrupts"
    COHERENT = 0xDC0B, "struct coherent_words; the answer has the memory's descriptor"
    MAP_FLAGS = 0xDC0C, "struct map_words, and flags"
    CLOCK_GATING = 0x7F00
    PERFORMANCE = 0x7F01


class MapWords(Record, frozen=True):
    """Words of ioctls that map pages."""

    table: Annotated[U64, "page table"]
    size: Annotated[U64, "bytes"]
    host: Annotated[U64, "address in the program, or bus address in the coherent buffer"]
    device: Annotated[U64, "address for the device"]


class CoherentWords(Record, frozen=True):
    """Words of the ioctl for coherent memory."""

    table: Annotated[U64, "page table"]
    enable: Annotated[U64, "0: take it back"]
    size: Annotated[U64, "bytes"]
    address: Annotated[U64, "on the bus; of the answer"]


class Message(Record, frozen=True):
    """A request or its answer, which may bring a file descriptor."""

    what: Annotated[U32, "of a request: enum operation; of an answer: an errno"]
    argument: Annotated[U32, "of a request"] = 0
    words: Annotated[tuple[int, ...], Type("uint64_t", "Q", WORDS), "by operation"] = (0,) * WORDS


class Access(Numbered):
    """What the chip does."""

    READ = 1, "answered with the bytes"
    WRITE = 2, "the bytes follow"
    INTERRUPT = 3, "address: the vector; not answered"


class MemoryRequest(Record, frozen=True):
    """An access of the chip to the program."""

    access: Annotated[U32, "enum access"]
    size: Annotated[U32, "bytes, PIECE_BYTES at most"]
    address: Annotated[U64, "in the program"]


class MemoryAnswer(Record, frozen=True):
    """The program's answer, before the bytes of a read."""

    error: Annotated[U32, "an errno, or 0"]
    size: Annotated[U32, "that of the request"]


class BrokenMessage(Exception):
    """A client sends half a message, or takes no answer."""


def answer(error: int = 0, *words: int) -> Message:
    """An answer."""
    return Message(what=error, words=(*words, *(0,) * (WORDS - len(words))))


def receive(connection: socket.socket) -> Message | None:
    """The next message, waited for as long as it takes; None if the client has gone.

    Raises:
        BrokenMessage: it is not complete in time.
    """
    size = Message.layout.size
    connection.settimeout(None)
    data = bytearray(connection.recv(size))
    if not data:
        return None
    try:
        data += take(connection, size - len(data), time.monotonic() + SECONDS)
    except (TimeoutError, EOFError):
        raise BrokenMessage(f"{len(data)} of {size} bytes of a message") from None
    return Message.unpack(data)


def send(connection: socket.socket, message: Message, descriptor: int | None = None) -> None:
    """Send an answer, with a file descriptor if there is one.

    Raises:
        BrokenMessage: the client does not take it in time.
    """
    connection.settimeout(SECONDS)
    beside = (
        []
        if descriptor is None
        else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
    )
    data = message.pack()
    try:
        sent = connection.sendmsg([data], beside)
        connection.sendall(data[sent:])
    except TimeoutError:
        raise BrokenMessage("an answer is not taken") from None
