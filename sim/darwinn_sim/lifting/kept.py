"""Lifted programs on disk: what was found out in one process serves all others of its user.

They lie beside compiled kernels, are trusted as those are (``kernel/private_files.py``), and go as
those do when nobody uses them (``kernel/pruning.py``). The name of one says of which executable it
is, and of which state of the sources. What cannot be read is lifted again.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import pickle
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import darwinn_formats
import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_formats.files import digest_of_sources

from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.kernel.compiled import CACHES
from darwinn_sim.kernel.private_pickles import dump, load
from darwinn_sim.kernel.pruning import prune
from darwinn_sim.lifting.program import LiftedProgram

LEAST_PRODUCTS = 1 << 26
"""Products of an input from which on a program is kept: below, it is lifted in a second or so."""

_NAME = "lifted program"

_log = logging.getLogger(__name__)


def kept(accelerator: Accelerator, executable: Executable) -> LiftedProgram | None:
    """What was lifted of ``executable`` on a chip that held what this one holds; None if nothing
    was, or it cannot be read."""
    device = accelerator.chip

    def fits(found: object) -> bool:
        return isinstance(found, LiftedProgram) and found.foundation.holds(
            device.tiles, device.core_array
        )

    program: LiftedProgram | None = load(_path(executable), fits, _NAME, "lifted")
    return program


def keep(executable: Executable, program: LiftedProgram) -> None:
    """Keep ``program``, if it is large enough, in place of what is there of ``executable``."""
    if program.products < LEAST_PRODUCTS:
        return
    path = _path(executable)
    if dump(path, program, _NAME):
        prune(path.parent.parent)


@contextmanager
def alone(executable: Executable) -> Iterator[bool]:
    """Whether nobody else of this user lifts ``executable`` now, and nobody does meanwhile.

    Lifting takes much memory, and all would find the same: whoever is not alone does without, and
    asks later for what has been kept.
    """
    folder = _path(executable).parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        # Nobody can keep anything for others there.
        yield True
        return
    is_alone = _lock(handle)
    try:
        yield is_alone
    finally:
        if is_alone:
            with suppress(OSError):
                folder.rmdir()  # where nothing has been kept
        with suppress(OSError):
            # A process that was forked meanwhile has the folder open as well.
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _lock(handle: int) -> bool:
    """False if somebody else has locked the folder, until it is closed."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        _log.warning("lifted program: no lock: %s; others may lift it as well", error)
    return True


def _path(executable: Executable) -> Path:
    """A folder of its own: each is as large as many kernels, and goes by itself."""
    digest = hashlib.sha256(_versions())
    digest.update(pickle.dumps(executable, pickle.HIGHEST_PROTOCOL))
    name = digest.hexdigest()
    return CACHES / name[:16] / f"lifted.{name[16:48]}"


@cache
def _versions() -> bytes:
    """All that a lifted program follows from, but for the executable and what the chip holds."""
    sources = digest_of_sources((Path(darwinn_formats.__file__).parent, Path(__file__).parents[1]))
    versions = f"{np.__version__} {sysconfig.get_config_var('SOABI')} {sources}"
    return f"{versions} {chip.constants()}".encode()
