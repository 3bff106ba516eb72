"""The cache of compiled kernels stays within bounds: states of the sources that nobody uses go.

Each state has folders of its own, and nothing says which states there still are: a folder whose
kernels were loaded or stored lately is one that is used. It is looked after by whoever stores a
kernel (``store.py``) and by `darwinn warm-up`.

Other processes may be at it. A folder first gets another name, so that what they look for is there
whole or not at all; what they miss they compile again. A folder that was used within the last day
stays whatever the bound is, so that nobody's work is thrown away by another's.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

KEPT_DAYS = 30
"""After so many days without use a folder goes."""
MOST_BYTES = 2 << 30
"""Beyond that the longest unused ones go."""

_DAY = 86_400.0
_KEY = re.compile(r"[0-9a-f]{16}")
_KERNEL = re.compile(r".*\.[0-9a-f]{32}|\..*")
"""A stored kernel, or one that was being stored."""
_GOING = ".pruned-"


@dataclass(frozen=True)
class Folder:
    """Kernels of a state of the sources: seconds since their last use, and bytes."""

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
        if time.time() - folder.stat().st_mtime > _DAY:
            os.utime(folder)


def prune(cache: Path) -> Pruned:
    """Remove from ``cache`` what has been unused for long, or is too much, as far as that is known.

    Anything else that lies there, and what belongs to other users, is left alone.
    """
    folders = sorted(_folders(cache), key=lambda each: each.unused)
    kept: list[Folder] = []
    size = removed = 0
    for each in folders:
        old = each.unused > KEPT_DAYS * _DAY
        too_much = size + each.size > MOST_BYTES and each.unused > _DAY
        if (old or too_much) and _remove(each.path):
            removed += each.size
        else:
            kept.append(each)
            size += each.size
    return Pruned(tuple(kept), removed)


def _folders(cache: Path) -> list[Folder]:
    """The folders of kernels in ``cache``; those that were on their way out go now."""
    found: list[Folder] = []
    with suppress(OSError):
        for path in cache.iterdir():
            if path.name.startswith(_GOING):
                shutil.rmtree(path, ignore_errors=True)
            elif _KEY.fullmatch(path.name):
                found += filter(None, [_folder(path)])
    return found


def _folder(path: Path) -> Folder | None:
    """None unless all that is in it are kernels of this user."""
    try:
        status = path.lstat()
        with os.scandir(path) as entries:
            files = [(each.name, each.stat(follow_symlinks=False)) for each in entries]
    except OSError:
        return None
    ours = status.st_uid == os.geteuid() and all(_KERNEL.fullmatch(name) for name, _ in files)
    size = sum(each.st_size for _, each in files)
    return Folder(path, time.time() - status.st_mtime, size) if ours else None


def _remove(path: Path) -> bool:
    """Whether it is away."""
    try:
        going = Path(tempfile.mkdtemp(prefix=_GOING, dir=path.parent))
        path.rename(going / path.name)
    except OSError:
        return False
    shutil.rmtree(going, ignore_errors=True)
    return True
