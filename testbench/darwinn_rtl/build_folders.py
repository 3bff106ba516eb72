"""The cache of RTL builds: one process at a time builds in a folder, and unused folders go.

A build takes 20 to 150 MB, and each checkout, version of a tool, and set of parameters has builds
of its own. Whoever makes a new one removes those that nobody has used for long
(``darwinn_sim.kernel.pruning`` has the rule). A folder that a process has built or brought up to
date stays until that process ends, however old it is.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from darwinn_sim.kernel.pruning import Folder, Pruned, prune_folders
from platformdirs import user_cache_path

BUILD_VARIABLE = "DARWINN_RTL_BUILD"
"""Environment variable: folder for builds; without it, a folder in the user's cache folder."""

KEPT_DAYS = 14
"""After so many days without use a build goes."""
MOST_BYTES = 10 << 30
"""Beyond that the longest unused ones go. The tests of one checkout make builds of 3 GB."""

_BUILD = re.compile(r"\w[\w-]*-[0-9a-f]{12}")
"""A folder of this name, with a lock, is a build; nothing else goes."""
_REMOVED = re.compile(rf"\.{_BUILD.pattern}\.\d+")
"""One whose removal has begun."""
_LOCK, _HELD = ".lock", ".held"

_holds: dict[Path, IO[str]] = {}
"""Builds that this process uses: a shared lock on each, until it ends."""


def build_root() -> Path:
    """Folder of all builds."""
    chosen = os.environ.get(BUILD_VARIABLE)
    return Path(chosen) if chosen else user_cache_path("darwinn-testbench") / "rtl"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let only one process at a time build in ``folder``."""
    with ExitStack() as stack:
        while not _lock(folder, stack):
            pass  # somebody has removed it meanwhile
        yield


def _lock(folder: Path, stack: ExitStack) -> bool:
    """Wait for the lock of ``folder``; whether it is still that of the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _LOCK
    with suppress(FileNotFoundError):
        lock = stack.enter_context(path.open("w"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        return path.stat().st_ino == os.fstat(lock.fileno()).st_ino
    return False


def hold(folder: Path) -> None:
    """Keep ``folder``, whose lock this process has, until this process ends, and note its use."""
    if folder not in _holds:
        held = (folder / _HELD).open("w")
        fcntl.flock(held, fcntl.LOCK_SH)
        _holds[folder] = held
    os.utime(folder / _HELD)


def prune_builds() -> Pruned:
    """Remove builds that were not used for long, or are too much together."""
    root = build_root()
    for path in root.iterdir():
        if _REMOVED.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)
    return prune_folders(_builds(root), _remove, KEPT_DAYS, MOST_BYTES)


def _builds(root: Path) -> list[Folder]:
    paths = [path for path in root.iterdir() if _BUILD.fullmatch(path.name)]
    return [_build(path) for path in paths if (path / _LOCK).is_file() and not path.is_symlink()]


def _build(path: Path) -> Folder:
    size, used = 0, 0.0
    for file in path.rglob("*"):
        with suppress(FileNotFoundError):
            status = file.lstat()
            size += status.st_size if stat.S_ISREG(status.st_mode) else 0
            if file.name in (_LOCK, _HELD):
                used = max(used, status.st_mtime)
    return Folder(path, time.time() - used, size)


def _remove(path: Path) -> bool:
    """Remove a build, unless somebody builds or uses it; whether it is away."""
    # Moved first: nobody meets a folder of which half is left.
    removed = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with (path / _LOCK).open("a") as lock, (path / _HELD).open("a") as held:
            for each in (lock, held):
                fcntl.flock(each, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.rename(removed)
        shutil.rmtree(removed)
    except OSError:
        return False
    return True
