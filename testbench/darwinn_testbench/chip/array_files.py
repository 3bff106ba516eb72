"""Arrays in .npy and .npz files: known by their heads, and bounded, before any of them is read."""

from __future__ import annotations

import io
import math
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, unquote

import numpy as np
from darwinn_formats.limits import MEMORY, limits

from darwinn_testbench.errors import InputError
from darwinn_testbench.policy import AnyArray

_DATA_LIMIT = 1 << 30
"""Bytes that the arrays of a file may have: an .npz unpacks to more than its size, and an .npy may
be a file with holes."""

_UNPACKED = 1 << 26
_UNPACKED_FACTOR = 20
"""An archive unpacks to so many bytes at most, or to so many times its size: real data packs to a
quarter, what was made to fill the memory to a thousandth."""

_HEADS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""By version. What the third has more is no array of numbers."""

_SUFFIX = ".npy"

_DAMAGED = (
    ValueError,
    EOFError,
    KeyError,
    SyntaxError,
    tokenize.TokenError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy and zipfile raise for damaged files."""


@dataclass(frozen=True)
class StoredArray:
    """An array of a file, or of its ``member``, which is read when NumPy asks for it."""

    path: Path
    member: str | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        """The array, as :func:`numpy.asarray` asks for it.

        Raises:
            InputError: it is damaged.
            OSError: it cannot be read.
        """
        with _reading(self.path), _opened(self.path, self.member) as stream:
            array: AnyArray = np.lib.format.read_array(stream, allow_pickle=False)
            # What is left is nothing, and reading that compares the checksum of a member.
            stream.read(1)
        return array if dtype is None else array.astype(dtype)


def stored_array(path: Path) -> StoredArray:
    """The array of an .npy file.

    Raises:
        InputError: it is damaged or too large.
        OSError: it cannot be read.
    """
    with _reading(path), path.open("rb") as stream:
        size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        found = _head(path, None, stream, size)
    _refuse_size(path, found.size * found.dtype.itemsize, "holds", _DATA_LIMIT)
    return found


def stored_arrays(path: Path) -> dict[str, StoredArray]:
    """The arrays of an .npz file by name (:func:`member_name`); raises as :func:`stored_array`."""
    found = {}
    with _reading(path), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        most = min(_DATA_LIMIT, max(_UNPACKED, _UNPACKED_FACTOR * path.stat().st_size))
        _refuse_size(path, sum(each.file_size for each in members), "unpacks to", most)
        for each in members:
            with archive.open(each) as stream:
                array = _head(path, each.filename, stream, each.file_size)
            found[unquote(each.filename.removesuffix(_SUFFIX))] = array
    return found


def member_name(name: str) -> str:
    """What the tensor ``name`` is called in an .npz, so that nobody unpacks it somewhere else.

    It is the name itself, unless that is no relative path of printable characters: then it is
    written as in a URL, without slashes. :func:`stored_arrays` takes that back.
    """
    parts = name.split("/")
    plain = name.isprintable() and not {"%", "\\"} & set(name) and not {"", ".", ".."} & set(parts)
    return name if plain else quote(name, safe="")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        # NumPy takes the head of an array for Python, whose compiler warns of what it finds odd.
        with warnings.catch_warnings(action="ignore"):
            yield
    except _DAMAGED as error:
        raise InputError(f"{path}: not a readable NumPy file: {error}") from error


@contextmanager
def _opened(path: Path, member: str | None) -> Iterator[IO[bytes]]:
    if member is None:
        with path.open("rb") as stream:
            yield stream
    else:
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            yield stream


def _head(path: Path, member: str | None, stream: IO[bytes], size: int) -> StoredArray:
    """What the beginning of a stream of ``size`` bytes says; ValueError if that cannot be."""
    if member is None and stream.read(2) == b"PK":
        raise InputError(f"{path}: an archive of arrays must be called .npz")
    if member is None:
        stream.seek(0)
    version = np.lib.format.read_magic(stream)
    if version not in _HEADS:
        raise ValueError(f"version {'.'.join(map(str, version))} of the format")
    shape, _, dtype = _HEADS[version](stream)
    if dtype.hasobject:
        raise ValueError("it holds objects of Python")
    if any(not isinstance(each, int) or each < 0 for each in shape):
        raise ValueError(f"shape {shape}")
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"shape {shape} of {dtype} in {size} bytes")
    return StoredArray(path, member, shape, dtype)


def _refuse_size(path: Path, size: int, verb: str, most: int) -> None:
    allowed = min(most, limits().memory)
    if size > allowed:
        said = f" ({MEMORY})" if allowed < most else ""
        raise InputError(f"{path}: {verb} {size} bytes, more than {allowed}{said}")
