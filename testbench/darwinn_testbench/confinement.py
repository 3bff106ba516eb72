"""Limits of the kernel for a process that reads what is not trusted.

They stop what the program's own bounds have missed: memory, time, files and processes that outlive
the one that wanted them. They keep nothing from what the user may read or write (SECURITY.md).
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from dataclasses import dataclass

_PR_SET_PDEATHSIG = 1
_PRCTL = getattr(ctypes.CDLL(None), "prctl", None)


@dataclass(frozen=True)
class Confinement:
    """``memory``: bytes that may be written to, from Linux 4.7 on (addresses that are only reserved
    do not count: V8, which makes charts, reserves hundreds of GiB); ``file``: bytes of any file
    that is written; ``seconds`` of processor time, or None. Each process that is started has as
    much again. None dumps core.
    """

    memory: int = 12 << 30
    file: int = 4 << 30
    seconds: int | None = 3600


def confine(limits: Confinement, *, parent: int | None = None) -> None:
    """Limit this process and all that it starts from now on; nothing can lift that again.

    With ``parent``, its process, this one is killed when that has ended (Linux).
    """
    _lower(resource.RLIMIT_DATA, limits.memory)
    _lower(resource.RLIMIT_FSIZE, limits.file)
    _lower(resource.RLIMIT_CORE, 0)
    if limits.seconds is not None:
        # At the lower bound comes a signal that says why; at the upper one that only kills.
        _lower(resource.RLIMIT_CPU, limits.seconds, limits.seconds + 1)
    if parent is not None:
        die_with(parent)


def _lower(which: int, soft: int, hard: int | None = None) -> None:
    """Set both bounds of a limit, each unless it is lower already."""
    wanted = (soft, soft if hard is None else hard)
    bounds = [
        most if bound == resource.RLIM_INFINITY else min(most, bound)
        for most, bound in zip(wanted, resource.getrlimit(which), strict=True)
    ]
    resource.setrlimit(which, (bounds[0], bounds[1]))


def die_with(parent: int) -> None:
    """Have this process killed when its ``parent`` has ended, however that ends (Linux).

    To be called in a process that has just been forked, too: it loads nothing.
    """
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # It has ended before the signal was asked for.
        os.kill(os.getpid(), signal.SIGKILL)
