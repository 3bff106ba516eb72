"""Bytes to a process, by whatever thread has them, without waiting for the process to read."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress

MAX_LEFT_BYTES = 256 << 20
"""Bytes that wait for a process to read. One that asks for still more and reads nothing is left."""


class Outgoing:
    """The outgoing side of a connection; to be made and closed within a running loop.

    What is sent goes out at once, by the thread that sends it: a client that waits for the chip is
    woken by the thread that computes. What the socket has no room for follows by the loop, and
    what is sent from then on, in order.

    Args:
        connection: to the process; to be closed after this.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = connection
        self._lock = threading.Lock()
        self._left = bytearray()
        self._is_closed = False

    def send(self, data: bytes) -> None:
        """Send ``data``, or drop it if the process is gone; from any thread."""
        with self._lock:
            if self._is_closed:
                return
            if self._left:
                if len(self._left) + len(data) > MAX_LEFT_BYTES:
                    self._give_up()
                    return
                self._left += data
                return
            sent = self._taken(data)
            if sent < len(data):
                self._left += memoryview(data)[sent:]
                self._loop.call_soon_threadsafe(self._follow)

    def close(self) -> None:
        """Nothing is sent any more."""
        with self._lock:
            self._is_closed = True
            self._left.clear()
            self._loop.remove_writer(self._socket)

    def _follow(self) -> None:
        if not self._is_closed:
            self._loop.add_writer(self._socket, self._send_left)

    def _send_left(self) -> None:
        with self._lock:
            del self._left[: self._taken(self._left)]
            if not self._left:
                self._loop.remove_writer(self._socket)

    def _taken(self, data: bytes | bytearray) -> int:
        """How many bytes of ``data`` the socket takes now; all of them if nobody will read them."""
        try:
            return self._socket.send(data, socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        except OSError:
            self._give_up()
            return len(data)

    def _give_up(self) -> None:
        """Whoever reads from the process is to see that it is gone."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
