"""Arrays in .npy and .npz files: known by their heads, and bounded, before any of them is read."""

from __future__ import annotations

import io
import math
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, unquote

import numpy as np
from darwinn_formats.limits import MEMORY, limits
from darwinn_reference.arrays import AnyArray

from darwinn_testbench.errors import InputError

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
    TypeError,
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
    """An array of a file, which is read when NumPy asks for it; of an archive ``opens`` its member,
    without looking through all of them again.
    """

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    opens: Callable[[], IO[bytes]]

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
        with _reading(self.path), self.opens() as stream:
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
        if stream.read(2) == b"PK":
            raise InputError(f"{path}: an archive of arrays must be called .npz")
        stream.seek(0)
        found = StoredArray(path, *_head(stream, size), lambda: path.open("rb"))
    _refuse_size(path, found.size * found.dtype.itemsize, "holds", _DATA_LIMIT)
    return found


def stored_arrays(path: Path) -> dict[str, StoredArray]:
    """The arrays of an .npz file by name (:func:`member_name`); raises as :func:`stored_array`."""
    found = {}
    with _reading(path):
        # It stays open as long as one of the arrays, and is read from one after another.
        archive = zipfile.ZipFile(path)
        members = archive.infolist()
        most = min(_DATA_LIMIT, max(_UNPACKED, _UNPACKED_FACTOR * path.stat().st_size))
        _refuse_size(path, sum(each.file_size for each in members), "unpacks to", most)
        for each in members:
            opens = partial(archive.open, each)
            with opens() as stream:
                array = StoredArray(path, *_head(stream, each.file_size), opens)
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


def _head(stream: IO[bytes], size: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type that the beginning of a stream of ``size`` bytes says; ValueError if that
    cannot be.
    """
    version = np.lib.format.read_magic(stream)
    if version not in _HEADS:
        raise ValueError(f"version {'.'.join(map(str, version))} of the format")
    shape, _, dtype = _HEADS[version](stream)
    if dtype.hasobject:
        raise ValueError("it holds objects of Python")
    if any(type(each) is not int or each < 0 for each in shape):
        raise ValueError(f"shape {shape}")
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"shape {shape} of {dtype} in {size} bytes")
    return shape, dtype


def _refuse_size(path: Path, size: int, verb: str, most: int) -> None:
    allowed = min(most, limits().memory)
    if size > allowed:
        said = f" ({MEMORY})" if allowed < most else ""
        raise InputError(f"{path}: {verb} {size} bytes, more than {allowed}{said}")
