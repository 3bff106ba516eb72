"""Turns at the cores, where more processes have work than there are cores.

Processes that share a core empty its caches for each other every few milliseconds; if each of them
computes for a while and the others wait, the same tasks take less processor time.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

_LOOK_SECONDS = 0.005
_PATIENCE_SECONDS = 10.0
"""How long others are waited for at most: the one that has the turn may hang."""


@contextmanager
def turn(folder: Path | None = None) -> Iterator[bool]:
    """Compute while no more do so than this process may use cores; whether the turn is its own.

    All processes of a user on this machine take turns, whichever cluster they belong to. Who has
    waited for long goes ahead without, and so does everybody where ``folder``, which has a lock
    for each core, cannot be written.
    """
    with ExitStack() as held:
        locks: list[IO[bytes]] = []
        with suppress(OSError):
            place = _private(folder or Path(tempfile.gettempdir()) / f"darwinn-turns-{os.getuid()}")
            for core in sorted(os.sched_getaffinity(0)):
                locks.append(held.enter_context((place / f"core-{core}").open("ab")))
        yield _taken(locks)


def _private(folder: Path) -> Path:
    """The folder, which nobody else may have made for this user."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or folder.is_symlink():
        raise PermissionError(folder)
    return folder


def _taken(locks: list[IO[bytes]]) -> bool:
    """Whether one of the locks was free within patience; closing its file releases it."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while locks:
        for lock in locks:
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
        if time.monotonic() > end:
            break
        time.sleep(_LOOK_SECONDS)
    return False
