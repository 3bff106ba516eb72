"""Write results to disk as a whole, or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def write_result(target: str | os.PathLike[str], data: bytes, *, over_link: bool = False) -> None:
    """Write ``data`` to ``target``, as :func:`result_stream` does. ``-`` is standard output.

    Nobody may have named ``target``: with ``over_link`` a symbolic link of its name is replaced,
    and what it leads to stays as it is.

    Raises:
        OSError: the folder or the file cannot be written; it names ``target``.
    """
    if os.fspath(target) == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with errors_named(target), result_stream(target, over_link=over_link) as stream:
        stream.write(data)


@contextmanager
def result_stream(
    target: str | os.PathLike[str], *, kept: str = "", over_link: bool = False
) -> Iterator[IO[bytes]]:
    """A stream to ``target``: to a temporary file beside it that takes its name at the end.

    A reader never sees half a result, and an older result survives a failure of any kind. A target
    that exists and is no regular file (a pipe, a device) is written directly; a symbolic link
    stays, and the file that it leads to is written.

    Args:
        target: the file.
        kept: how the name of the temporary file ends, if it is to stay after a failure, and to be
            seen beside the file (``NAME.*kept``); its path is the stream's ``name``.
        over_link: the file takes the place of a symbolic link itself.

    Raises:
        OSError: the folder or the file cannot be written.
    """
    path = Path(target)
    replaced = over_link and path.is_symlink()
    if path.exists() and not path.is_file() and not replaced:
        with path.open("wb") as stream:
            yield stream
        return
    # The file that a link leads to, whether it is there already or not.
    path = Path(os.path.realpath(path)) if path.is_symlink() and not replaced else path
    hidden = "" if kept else "."
    handle, temporary = tempfile.mkstemp(kept, f"{hidden}{path.name}.", path.parent)
    os.close(handle)
    try:
        with Path(temporary).open("wb") as stream:
            yield stream
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        if not kept:
            Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def errors_named(target: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors of the system name ``target``, not a temporary file, whose name nobody knows."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(target)) from error


def _umask() -> int:
    """The process's mask of permissions, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
