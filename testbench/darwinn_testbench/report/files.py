"""Results on disk: written whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


def write_result(target: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` to ``target``: to a temporary file beside it that then takes its name.

    A reader never sees half a result, and an older result survives a failure. ``-`` is standard
    output; a target that exists and is no regular file (a pipe, a device) is written directly.

    Raises:
        OSError: the folder or the file cannot be written; it names ``target``.
    """
    try:
        _write(target, data)
    except BrokenPipeError:
        raise
    except OSError as error:
        # Not the temporary file, which nobody has heard of.
        raise OSError(error.errno, error.strerror, os.fspath(target)) from error


def _write(target: str | os.PathLike[str], data: bytes) -> None:
    if os.fspath(target) == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    path = Path(target)
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """The process's mask of permissions, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
