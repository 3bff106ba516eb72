"""Where a device listens: a folder that none but this user can enter."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LONGEST_PATH = 100
"""A little less than what addresses of sockets have room for, with the names in the folder."""


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder for a socket, which none but this user can enter."""
    with tempfile.TemporaryDirectory(prefix="darwinn-") as folder:
        if len(folder) <= _LONGEST_PATH:
            yield Path(folder)
            return
    with tempfile.TemporaryDirectory(prefix="darwinn-", dir="/tmp") as folder:
        yield Path(folder)
