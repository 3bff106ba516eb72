"""Files, read whole: with a bound, since a name may stand for a device or pipe that never ends."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Self

from darwinn_formats.errors import FormatError
from darwinn_formats.remarks import remarks_name

MAX_FILE_BYTES = 1 << 30
"""Bytes of the largest file that is read: half of what a flatbuffer can address."""

_PART_BYTES = 1 << 24

Source = str | os.PathLike[str] | bytes
"""A file by its path, or its bytes."""


class Content(bytes):
    """Bytes that were read from something that messages call by ``name``, as standard input."""

    name: str

    def __new__(cls, data: bytes, name: str) -> Self:
        """A copy of ``data`` with a name."""
        self = super().__new__(cls, data)
        self.name = name
        return self


def name_of(source: Source) -> str:
    """How messages call a file."""
    if isinstance(source, bytes):
        return source.name if isinstance(source, Content) else "<bytes>"
    return os.fspath(source)


def content_of(source: Source) -> bytes:
    """The bytes of a file; raises as :func:`read_file`."""
    return source if isinstance(source, bytes) else read_file(source)


def read_once(source: Source) -> bytes:
    """The bytes of a file under its name, for what looks at it several times.

    Whatever becomes of the file meanwhile, all of it is then about the same bytes.

    Raises: as :func:`read_file`.
    """
    return source if isinstance(source, bytes) else Content(read_file(source), name_of(source))


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether a word names something that exists; one that no file can have as its name does not.

    For words that may be something else than a path. One that has to be a path is opened, and the
    error says what is wrong with it.
    """
    try:
        return Path(path).exists()
    except OSError:
        return False


@contextmanager
def errors_name(source: Source) -> Iterator[None]:
    """Errors of the format that arise within name the file, unless it is bytes without a name; so
    do remarks.
    """
    is_named = not isinstance(source, bytes) or isinstance(source, Content)
    try:
        with remarks_name(name_of(source) if is_named else ""):
            yield
    except FormatError as error:
        if not is_named:
            raise
        raise error.with_file(name_of(source)) from None


def read_file(path: str | os.PathLike[str], limit: int | None = None) -> bytes:
    """The bytes of a file, a device, or a pipe that is open already.

    Raises:
        FormatError: there are more than ``limit``, or ``MAX_FILE_BYTES`` without one; or it is a
            pipe in a folder, which may wait for ever for a program that writes. One that is open
            already, as a shell passes it in ``/dev/fd/N``, is read.
        OSError: the file cannot be read.
    """
    with open(path, "rb", opener=_without_waiting) as stream:
        most = MAX_FILE_BYTES if limit is None else limit
        status = os.fstat(stream.fileno())
        if stat.S_ISFIFO(status.st_mode) and not _is_open_already(path):
            reason = "a pipe, which may never have content: give a file, or - with what writes it"
            raise FormatError("", reason, file=os.fspath(path))
        os.set_blocking(stream.fileno(), True)
        if status.st_size > most:
            # A file of holes may be of any size.
            raise _too_large(os.fspath(path), most)
        return read_stream(stream, os.fspath(path), most)


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe that nobody writes to as well."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _is_open_already(path: str | os.PathLike[str]) -> bool:
    """Whether a path stands for what the caller has opened."""
    return str(Path(path).absolute()).startswith(("/dev/fd/", "/dev/stdin", "/proc/"))


def digest_of(path: str | os.PathLike[str]) -> str | None:
    """SHA-256 of a file; None of what cannot be read or is no regular file: a pipe can be read only
    once, a device has no end.
    """
    if not Path(path).is_file():
        return None
    try:
        with Path(path).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def digest_of_sources(folders: Iterable[Path], suffixes: Collection[str] = (".py",)) -> str:
    """SHA-256 of names and contents of the sources in ``folders``, which end in ``suffixes``: what
    was made by others is made again. Of what cannot be read the name counts.
    """
    found = hashlib.sha256()
    for folder in folders:
        for path in sorted(each for each in folder.rglob("*") if each.suffix in suffixes):
            line = f"{path.relative_to(folder)} {digest_of(path)}\n"
            found.update(line.encode(errors="surrogateescape"))
        found.update(b"\n")
    return found.hexdigest()


def read_stream(stream: BinaryIO, name: str, limit: int | None = None) -> bytes:
    """What is left of a stream, whose ``name`` goes into errors; raises as :func:`read_file`."""
    parts: list[bytes] = []
    most = MAX_FILE_BYTES if limit is None else limit
    left = most
    while part := stream.read(_PART_BYTES):
        parts.append(part)
        left -= len(part)
        if left < 0:
            raise _too_large(name, most)
    return b"".join(parts)


def _too_large(name: str, most: int) -> FormatError:
    return FormatError("size", f"more than {most} bytes", file=name)
