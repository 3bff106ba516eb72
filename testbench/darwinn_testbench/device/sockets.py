"""Sockets that a device is reached by: where they are, whose the other end is, reading in time."""

from __future__ import annotations

import os
import socket
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LONGEST_PATH = 100
"""A little less than what addresses of sockets have room for, with the names in the folder."""

_CREDENTIALS = struct.Struct("iII")


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder for a socket, which none but this user can enter."""
    with tempfile.TemporaryDirectory(prefix="darwinn-") as folder:
        if len(folder) <= _LONGEST_PATH:
            yield Path(folder)
            return
    with tempfile.TemporaryDirectory(prefix="darwinn-", dir="/tmp") as folder:
        yield Path(folder)


def is_of_this_user(connection: socket.socket) -> bool:
    """Whether a process of this user is at the other end of a local socket."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(data)
    return bool(user == os.geteuid())


def take(connection: socket.socket, size: int, deadline: float) -> bytearray:
    """``size`` bytes, until ``deadline`` (of ``time.monotonic``).

    Raises:
        TimeoutError: not all of them come in time.
        EOFError: the other side has gone.
        OSError: so it has.
    """
    data = bytearray(size)
    view = memoryview(data)
    while view:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        count = connection.recv_into(view)
        if not count:
            raise EOFError
        view = view[count:]
    return data
