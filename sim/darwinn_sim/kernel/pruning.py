"""The cache of compiled kernels stays within bounds: states of the sources that nobody uses go.

Each state has folders of its own, and nothing says which states there still are: a folder whose
kernels were loaded or stored lately is one that is used. It is looked after by whoever stores a
kernel (``store.py``) and by `darwinn warm-up`.

Nothing goes but files that are kernels by their names, their owner and their first bytes, from
folders that hold nothing else: a cache may lie where other things do. Other processes may be at it:
each file is there whole or not at all, and what they miss they compile again. A folder that was
used within the last day stays whatever the bound is, so that nobody's work is thrown away by
another's.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

KEPT_DAYS = 30
"""After so many days without use a folder goes."""
MOST_BYTES = 2 << 30
"""Beyond that the longest unused ones go."""
YOUNG_DAYS = 1
"""A folder that was used since stays in any case."""

MAGIC = b"darwinn kernel 1\n"
"""The first bytes of a stored kernel."""

_DAY = 86_400.0
_KEY = re.compile(r"[0-9a-f]{16}")
_KERNEL = re.compile(r"[^.].*\.[0-9a-f]{32}")
_UNFINISHED = re.compile(r"\.[a-z0-9_]{8}")
"""A kernel that was being stored: a name that ``tempfile`` gives."""


@dataclass(frozen=True)
class Folder:
    """A folder of a cache (kernels of a state of the sources): seconds since its last use, and
    bytes."""

    path: Path
    unused: float
    size: int


@dataclass(frozen=True)
class Pruned:
    """What became of a cache: folders that are there, and bytes that went."""

    kept: tuple[Folder, ...]
    removed_bytes: int

    @property
    def kept_bytes(self) -> int:
        """Bytes of what is there."""
        return sum(each.size for each in self.kept)


def used(folder: Path) -> None:
    """Note that kernels of ``folder`` are used: once a day is often enough."""
    with suppress(OSError):
        if time.time() - folder.stat().st_mtime > YOUNG_DAYS * _DAY:
            os.utime(folder)


def prune(cache: Path) -> Pruned:
    """Remove from ``cache`` what has been unused for long, or is too much, as far as that is known.

    Anything else that lies there, and what belongs to other users, is left alone.
    """
    return prune_folders(_folders(cache), _remove, KEPT_DAYS, MOST_BYTES)


def prune_folders(
    folders: Iterable[Folder], remove: Callable[[Path], bool], days: float, most_bytes: int
) -> Pruned:
    """Remove folders of any cache: those unused for ``days``, and the longest unused ones beyond
    ``most_bytes``, but none that was used within the last day.

    Args:
        folders: all that there are.
        remove: removes one; False if it has to stay.
        days: after so many days without use a folder goes.
        most_bytes: what all folders may take together.
    """
    kept: list[Folder] = []
    size = removed = 0
    for each in sorted(folders, key=lambda each: each.unused):
        old = each.unused > days * _DAY
        too_much = size + each.size > most_bytes and each.unused > YOUNG_DAYS * _DAY
        if (old or too_much) and remove(each.path):
            removed += each.size
        else:
            kept.append(each)
            size += each.size
    return Pruned(tuple(kept), removed)


def _folders(cache: Path) -> list[Folder]:
    """The folders of kernels in ``cache``."""
    found: list[Folder] = []
    with suppress(OSError):
        for path in cache.iterdir():
            if _KEY.fullmatch(path.name):
                found += filter(None, [_folder(path)])
    return found


def _folder(path: Path) -> Folder | None:
    """None unless it is a folder of this user, and all that is in it are his kernels."""
    try:
        status = path.lstat()
        files = _kernels(path) if stat.S_ISDIR(status.st_mode) else []
        if status.st_uid != os.geteuid() or not files:
            return None
        size = sum(each.stat().st_size for each in files)
    except OSError:
        return None
    return Folder(path, time.time() - status.st_mtime, size)


def _kernels(folder: Path) -> list[Path]:
    """The files of a folder; none if one of them is no kernel, or another's."""
    files = list(folder.iterdir())
    return files if all(_is_kernel(each) for each in files) else []


def _is_kernel(path: Path) -> bool:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        return False
    unfinished = bool(_UNFINISHED.fullmatch(path.name))
    if not unfinished and not _KERNEL.fullmatch(path.name):
        return False
    with path.open("rb") as stream:
        first = stream.read(len(MAGIC))
    return first == MAGIC or (unfinished and not first)


def _remove(path: Path) -> bool:
    """Whether it is away."""
    try:
        for each in _kernels(path):
            each.unlink()
        path.rmdir()
    except OSError:
        return False
    return True
