"""What a file is, by its content: a program of the chip, or why it is none.

Files are looked at with bounded memory: folders hold data sets and archives beside models.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from darwinn_formats import tflite
from darwinn_formats.darwinn import DarwinnFile, ExecutableType, FormatError, flatten, load, schema
from darwinn_formats.darwinn.bundle import BUNDLE_BYTES, chunk_bytes
from darwinn_formats.darwinn.loader import CUSTOM_OPERATOR
from darwinn_formats.files import MAX_FILE_BYTES
from darwinn_sim.isa.codec import DecodeError, decode
from darwinn_sim.isa.table import BY_NAME

from darwinn_testbench.programs.formats import FORMATS
from darwinn_testbench.report import one_line
from darwinn_testbench.request.inputs import head_of

UNCOMPILED = "model before compilation"
_MARKS = (CUSTOM_OPERATOR.encode(), schema.IDENTIFIER)
"""What a ``.tflite`` with a package has somewhere in it, even if it is cut off."""
_EXECUTE = BY_NAME["Execute"].opcode
"""What the last bundle of a chunk is."""
_TELLING_BUNDLES = 16
"""Bundles of instructions that are no coincidence: half of all opcodes do not exist."""


@dataclass(frozen=True)
class CompiledFile:
    """A file that holds a program of the chip, as far as it can be read.

    Attributes:
        path: where it is.
        sha256: of its content; empty if it could not be read.
        kind: ``tflite``, ``package`` or ``stream``; empty if it could not be read.
        runtime: the least version of the runtime that can load it; None if it does not say.
        compiler: what it says of its compiler, which is often nothing.
        models: how many models there are; none where parameters of other files are cached only.
        lacks: tokens of the models whose parameters an executable of another file caches.
        caches: tokens of the models whose parameters this file can cache.
        error: why it cannot be read; then nothing else is known.
    """

    path: Path
    sha256: str = ""
    kind: str = ""
    runtime: int | None = None
    compiler: str = ""
    models: int = 1
    lacks: frozenset[int] = frozenset()
    caches: frozenset[int] = frozenset()
    error: str = ""


def look_at(path: Path) -> CompiledFile | str:
    """The program of the chip in a file, or what the file is instead.

    Raises:
        OSError: it cannot be read.
    """
    head = head_of(path)
    if not head:
        return "empty"
    if not _is_program(path, head):
        return next(name for name, looks_like in _OTHERS if looks_like(head))
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise FormatError("size", f"more than {MAX_FILE_BYTES} bytes", file=str(path))
        return _facts(path, load(path))
    except FormatError as error:
        return CompiledFile(path, error=one_line(error))


def is_compiled(path: Path) -> bool:
    """Whether a file holds a program of the chip, which need not be readable (:func:`look_at`).

    Raises:
        OSError: it cannot be read.
    """
    head = head_of(path)
    return bool(head) and _is_program(path, head)


def is_uncompiled(path: Path) -> bool:
    """Whether a file can be the model before compilation of another: a ``.tflite`` without package.

    Raises:
        OSError: it cannot be read.
    """
    head = head_of(path)
    return _is_tflite(head) and not _is_program(path, head)


def _is_program(path: Path, head: bytes) -> bool:
    if _is_tflite(head):
        return _has_mark(path)
    return head[4:8] == schema.IDENTIFIER or _is_stream(path, head)


def _is_tflite(head: bytes) -> bool:
    return head[4:8] == tflite.IDENTIFIER


def _has_mark(path: Path) -> bool:
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return any(data.find(mark) >= 0 for mark in _MARKS)


def _is_stream(path: Path, head: bytes) -> bool:
    """Whether the file is a chain of chunks, or at least the beginning of one.

    The latter tells a program that was cut off from data that happens to begin like a chunk.
    """
    size = chunk_bytes(head)
    if size is None:
        return False
    if _is_chain(path):
        return True
    bundles = len(head[:size]) // BUNDLE_BYTES
    cut = bundles * BUNDLE_BYTES < size
    try:
        program = decode(head[: bundles * BUNDLE_BYTES])
    except DecodeError as error:
        # It may end within an instruction, but has none that there is not.
        return cut and error.opcode is None and error.bundle >= _TELLING_BUNDLES
    if cut:
        return bundles >= _TELLING_BUNDLES
    return int(program.opcode[-1]) == _EXECUTE


def _is_chain(path: Path) -> bool:
    """Whether each chunk says where the next begins, and the last that it is the last."""
    end = path.stat().st_size
    with path.open("rb") as stream:
        start = 0
        while start < end:
            stream.seek(start, os.SEEK_SET)
            size = chunk_bytes(stream.read(BUNDLE_BYTES))
            if size is None:
                return False
            start += size
    return start == end


def _facts(path: Path, file: DarwinnFile) -> CompiledFile:
    packages = list(flatten(file.packages))
    versions = dict.fromkeys(each.compiler_version or "" for each in packages)
    return CompiledFile(
        path=path,
        sha256=file.sha256,
        kind=file.kind,
        runtime=max((each.min_runtime_version for each in packages), default=None),
        # A build that names no change list leaves the empty path to one.
        compiler=", ".join(version for version in versions if version not in ("", "cl/")),
        models=1 if file.stream is not None else len(file.models),
        lacks=frozenset(model.token for model in file.models if model.lacks_caching),
        caches=frozenset(
            executable.parameter_caching_token
            for executable in file.executables
            if executable.type is ExecutableType.PARAMETER_CACHING
        ),
    )


def _starts(*signatures: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(signatures)


def _is_text(head: bytes) -> bool:
    try:
        # A character may be cut in two where the head ends.
        head[: max(len(head) - 3, 1)].decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in head


_OTHERS: tuple[tuple[str, Callable[[bytes], bool]], ...] = (
    (UNCOMPILED, _is_tflite),
    *((f"{each.name} program", each.looks_like) for each in FORMATS),
    ("image", _starts(b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*")),
    ("array", _starts(b"\x93NUMPY")),
    ("archive", _starts(b"PK\3\4", b"\x1f\x8b", b"\xfd7zXZ", b"BZh", b"7z\xbc\xaf")),
    ("text", _is_text),
    ("no program of the chip", lambda head: True),
)
"""What else files are, in the order in which they are tried, and how their first bytes say it."""
