"""Sockets that a device is reached by: where they are, whose the other end is, reading in time."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LONGEST_PATH = 100
"""A little less than what addresses of sockets have room for, with the names in the folder."""

_CREDENTIALS = struct.Struct("iII")


_PREFIX = "darwinn-device-"
_OWNER = "owner"
"""A file in the folder of a socket, which its owner keeps locked as long as it lives."""


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder for a socket, which none but this user can enter.

    Folders of processes that were killed are removed first.
    """
    places = dict.fromkeys((tempfile.gettempdir(), "/tmp"))
    for place in places:
        for left in Path(place).glob(f"{_PREFIX}*"):
            _remove_if_ownerless(left)
    place = next(each for each in places if len(each) + len(_PREFIX) + 8 <= _LONGEST_PATH)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=place, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # It has its name only when it is locked: nobody sees it without its owner.
        with (folder / f"{_OWNER}.new").open("wb") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX)
            Path(owner.name).rename(folder / _OWNER)
            yield folder


def _remove_if_ownerless(folder: Path) -> None:
    """Remove the folder of a socket that is this user's, and whose owner is no more."""
    with suppress(OSError):
        if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
            return
        with (folder / _OWNER).open("rb") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)


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
