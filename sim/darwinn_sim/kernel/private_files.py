"""Files that this process trusts because nobody but its user, or root, can have written them.

One is read only if it belongs to this user or to root, if nobody else may write it or its folder,
and if its checksum fits, which covers its name as well.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from darwinn_sim.kernel.pruning import MAGIC

_CHECKSUM_BYTES = hashlib.sha256().digest_size
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class Unusable(Exception):
    """A file or a folder that is there, and is not used; the text says why."""


def check_folder(folder: Path) -> None:
    """Refuse a folder in which somebody else can put files."""
    _check_owner(folder, folder.stat())


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise Unusable(f"{path}: belongs to another user ({status.st_uid})")
    if status.st_mode & _WRITABLE_BY_OTHERS:
        raise Unusable(f"{path}: other users may write it")


def read_whole(path: Path, *, private: bool = True) -> bytes:
    """What :func:`write_whole` stored under this name; OSError or Unusable where that is not there.

    ``private``: and where somebody else may have written it.
    """
    # No link, which could name any file of this user; no pipe, which would never end.
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as stream:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Unusable(f"{path}: no regular file")
        if private:
            _check_owner(path, status)
        head, stored = stream.read(len(MAGIC) + _CHECKSUM_BYTES), stream.read()
    if head != MAGIC + _checksum(path, stored):
        raise Unusable(f"{path}: damaged")
    return stored


def write_whole(path: Path, stored: bytes) -> None:
    """A whole file or none, for this user alone."""
    handle, temporary = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(MAGIC + _checksum(path, stored) + stored)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _checksum(path: Path, stored: bytes) -> bytes:
    """Of the name too, so that no kernel of ours stands for another."""
    digest = hashlib.sha256(f"{path.parent.name}/{path.name}\n".encode())
    digest.update(stored)
    return digest.digest()
