"""Compiled kernels on disk: what is loaded is whole, and was written by this user.

A stored kernel is machine code that this process will execute, and a pickle on the way there. So a
file is opened up only if it belongs to this user or to root, if nobody else may write it, and if
its checksum fits, which covers its name as well. Anything else is left alone: the kernel is
compiled again and replaces it, and one warning says so. Where the folder cannot be used kernels
stay in memory. SECURITY.md says what that protects from, and what not.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import compiler, serialize

# numba's own types know little of what is asked of it here.
_config: Any = numba.config
_serialize: Any = serialize
_Result: Any = compiler.CompileResult
_log = logging.getLogger(__name__)

_MAGIC = b"darwinn kernel 1\n"
_CHECKSUM_BYTES = hashlib.sha256().digest_size
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class _Unusable(Exception):
    """A file or a folder that is there, and is not used; the text says why."""


class KernelStore:
    """The compiled forms of one function in ``folder``, as numba's dispatcher asks for them.

    It takes the place of ``numba.core.caching.FunctionCache``, which unpickles what it finds, and
    which writes beside the sources where the folder of the user cannot be written.
    """

    _warned = False
    """In this process: what is wrong with one file is wrong with many."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._folder = folder
        self._line = function.__code__.co_firstlineno
        self._name = f"{Path(function.__code__.co_filename).stem}.{function.__qualname__}"

    @property
    def cache_path(self) -> str:
        """The folder, for numba's statistics."""
        return str(self._folder)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """What was compiled for the types of ``signature``; None if it has to be compiled."""
        target.refresh()
        path = self._path(signature, target.codegen())
        try:
            _check_folder(self._folder)
            stored = _read(path)
        except FileNotFoundError:
            return None
        except (OSError, _Unusable) as error:
            self._warn(error)
            return None
        return _Result._rebuild(target, *pickle.loads(stored))

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled for the types of ``signature``."""
        if result.library.has_dynamic_globals:
            return
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_folder(self._folder)
            path = self._path(signature, result.codegen)
            _write(path, _serialize.dumps(result._reduce()))
        except (OSError, _Unusable) as error:
            self._warn(error)

    def _path(self, signature: Any, codegen: Any) -> Path:
        """The file of a signature on this processor, by these versions with these settings."""
        key = (
            tuple(map(str, signature)),
            codegen.magic_tuple(),
            self._line,
            (sys.version, numba.__version__),
            (_config.BOUNDSCHECK, int(_config.OPT), _config.DEBUGINFO_DEFAULT),
        )
        digest = hashlib.sha256(repr(key).encode()).hexdigest()
        return self._folder / f"{self._name}.{digest[:32]}"

    def _warn(self, error: Exception) -> None:
        if not KernelStore._warned:
            KernelStore._warned = True
            reason: object = error
            if isinstance(error, OSError):
                reason = f"{error.filename or self._folder}: {error.strerror}"
            _log.warning("kernel cache: %s; kernels are compiled again", reason)


def _check_folder(folder: Path) -> None:
    """Refuse a folder in which somebody else can put files."""
    _check_owner(folder, folder.stat())


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise _Unusable(f"{path}: belongs to another user ({status.st_uid})")
    if status.st_mode & _WRITABLE_BY_OTHERS:
        raise _Unusable(f"{path}: other users may write it")


def _read(path: Path) -> bytes:
    """What :func:`_write` stored under this name; OSError or _Unusable where that is not there."""
    # No link, which could name any file of this user; no pipe, which would never end.
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as stream:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise _Unusable(f"{path}: no regular file")
        _check_owner(path, status)
        data = stream.read()
    head = len(_MAGIC) + _CHECKSUM_BYTES
    if data[:head] != _MAGIC + _checksum(path, data[head:]):
        raise _Unusable(f"{path}: damaged")
    return data[head:]


def _write(path: Path, stored: bytes) -> None:
    """A whole file or none, for this user alone."""
    handle, temporary = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(_MAGIC + _checksum(path, stored) + stored)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _checksum(path: Path, stored: bytes) -> bytes:
    """Of the name too, so that no kernel of ours stands for another."""
    digest = hashlib.sha256(f"{path.parent.name}/{path.name}\n".encode())
    digest.update(stored)
    return digest.digest()
