"""What the shim and the device say to each other: see ``shim/shim.h`` and ``shim/connection.c``."""

from __future__ import annotations

import array
import socket
import struct
import time
from dataclasses import dataclass
from enum import IntEnum

from darwinn_testbench.device.sockets import take

_WORDS = 5
_MESSAGE = struct.Struct(f"<II{_WORDS}Q")

SECONDS = 10.0
"""How long a client may take for the rest of a message, or to take an answer."""


class Operation(IntEnum):
    """What a program asks of the device."""

    OPEN = 1
    CLOSE = 2
    READ = 3
    WRITE = 4
    IOCTL = 5


class BrokenMessage(Exception):
    """A client sends half a message, or takes no answer."""


@dataclass(frozen=True)
class Message:
    """A request (an operation and its argument) or an answer (an errno, and 0), with five words."""

    what: int
    argument: int = 0
    words: tuple[int, ...] = (0,) * _WORDS

    def pack(self) -> bytes:
        """The bytes."""
        return _MESSAGE.pack(self.what, self.argument, *self.words)


def answer(error: int = 0, *words: int) -> Message:
    """An answer."""
    return Message(error, 0, (*words, *(0,) * (_WORDS - len(words))))


def receive(connection: socket.socket) -> Message | None:
    """The next message, waited for as long as it takes; None if the client has gone.

    Raises:
        BrokenMessage: it is not complete in time.
    """
    connection.settimeout(None)
    data = bytearray(connection.recv(_MESSAGE.size))
    if not data:
        return None
    try:
        data += take(connection, _MESSAGE.size - len(data), time.monotonic() + SECONDS)
    except (TimeoutError, EOFError):
        raise BrokenMessage(f"{len(data)} of {_MESSAGE.size} bytes of a message") from None
    what, argument, *words = _MESSAGE.unpack(data)
    return Message(what, argument, tuple(words))


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
