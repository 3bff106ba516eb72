"""Memory of a program in another process, which answers the chip's accesses to it."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress

from darwinn_sim.pcie.function import HostFault

from darwinn_testbench.device.pcie.messages import (
    PIECE_BYTES,
    Access,
    MemoryAnswer,
    MemoryRequest,
)
from darwinn_testbench.device.sockets import take

SECONDS = 10.0
"""How long a program may take for an answer."""


class ProgramGone(HostFault):
    """The program has ended, or has closed the device."""


class ProgramMemory:
    """The other end of the bus, by a socket to a program.

    Args:
        channel: the socket; it is closed by :meth:`close`.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._closed = threading.Event()

    def close(self) -> None:
        """Nobody answers any more: an access that waits ends."""
        self._closed.set()
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        self._channel.close()

    def read(self, address: int, size: int) -> bytes:
        """``size`` bytes at an address of the program; raises ``HostFault``."""
        pieces = []
        for start in range(0, size, PIECE_BYTES):
            count = min(PIECE_BYTES, size - start)
            pieces.append(self._exchange(Access.READ, address + start, count))
        return b"".join(pieces)

    def write(self, address: int, data: bytes) -> None:
        """Write ``data`` at an address of the program; raises ``HostFault``."""
        for start in range(0, len(data), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            self._exchange(Access.WRITE, address + start, len(piece), piece)

    def interrupt(self, vector: int) -> None:
        """Wake whoever waits for the eventfd of a vector; raises ``HostFault``."""
        request = MemoryRequest(access=Access.INTERRUPT, size=0, address=vector)
        self._send(request.pack(), f"interrupt {vector}")

    def _exchange(self, access: Access, address: int, size: int, data: bytes = b"") -> bytes:
        what = f"a DMA {access.name.lower()} of {size} bytes at {address:#x}"
        request = MemoryRequest(access=access, size=size, address=address)
        self._send(request.pack() + data, what)
        try:
            answer = MemoryAnswer.unpack(self._take(MemoryAnswer.layout.size, what))
            if number := answer.error:
                reason = os.strerror(number) if number < 1 << 31 else f"error {number}"
                raise HostFault(f"the program refuses {what}: {reason}")
            if answer.size != size:
                raise HostFault(f"the program answers {what} with {answer.size} bytes")
            return self._take(size, what) if access is Access.READ else b""
        except (EOFError, OSError) as error:
            raise self._gone(what, error) from None

    def _take(self, size: int, what: str) -> bytes:
        try:
            return bytes(take(self._channel, size, time.monotonic() + SECONDS))
        except TimeoutError:
            raise HostFault(f"the program does not answer {what} in {SECONDS:g} s") from None

    def _send(self, data: bytes, what: str) -> None:
        try:
            self._channel.settimeout(SECONDS)
            self._channel.sendall(data)
        except TimeoutError:
            raise HostFault(f"the program does not take {what} in {SECONDS:g} s") from None
        except OSError as error:
            raise self._gone(what, error) from None

    def _gone(self, what: str, error: EOFError | OSError) -> ProgramGone:
        reason = "it has closed the device" if self._closed.is_set() else type(error).__name__
        return ProgramGone(f"the program is not there for {what}: {reason}")
