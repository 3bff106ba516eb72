"""Recorded sessions: what passed between a device and its host, one JSON array a line, in gzip.

The first member of an array is the name of its kind; bytes are ``{"b": base64}``. Events are in the
file as soon as they have passed: a session whose end is missing has all that is before it.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec

from darwinn_testbench.errors import InputError
from darwinn_testbench.report.files import errors_named, result_stream

MAX_LINE_BYTES = 64 << 20
MAX_BYTES = 1 << 30
"""The longest line, and the longest session (unpacked), that are read."""

_FAST = 2
"""Compression of what is recorded while a client waits."""

_PART = ".part"
"""End of the name of a recording that is not whole yet, or never was."""

_Event = TypeVar("_Event")


class Octets(msgspec.Struct, frozen=True):
    """Bytes within an event."""

    b: bytes


class Passed(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An event; its kind is the tag."""


class _Name(msgspec.Struct, array_like=True):
    """The beginning of any event."""

    name: str


class Fault(Passed, frozen=True, tag="fault"):
    """The chip can do no more until it is reset; ``text`` is why."""

    text: str


class RecordedSession:
    """A session in a file that is read once, from its beginning: a pipe will do.

    Args:
        path: the file.

    Raises:
        InputError: the file is no recorded session, or one without events.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_cut_short = False
        """Whether the end is missing: known after the last event."""
        self._lines = self._read()
        first = next(self._lines, None)
        if first is None:
            raise InputError(f"{path}: the session has no events")
        self._first = first
        self.first_kind = _decode(msgspec.json.Decoder(_Name), path, *first).name
        """The name of the first event's kind: it tells what was recorded."""

    def events(self, decoder: msgspec.json.Decoder[_Event]) -> Iterator[_Event]:
        """The events, once; ``decoder`` knows their kinds (``msgspec.Struct`` with tags).

        Raises:
            InputError: an event is none of them; names the line.
            OSError: the file cannot be read.
        """
        for number, line in chain([self._first], self._lines):
            yield _decode(decoder, self.path, number, line)

    def _read(self) -> Iterator[tuple[int, bytes]]:
        """Whole lines with their numbers, from 1."""
        left, number = MAX_BYTES, 0
        try:
            with gzip.open(self.path) as file:
                while line := file.readline(MAX_LINE_BYTES + 1):
                    number += 1
                    left -= len(line)
                    if len(line) > MAX_LINE_BYTES or left < 0:
                        raise InputError(
                            f"{self.path}: line {number}: a line is {MAX_LINE_BYTES >> 20} MiB at "
                            f"most, and a session {MAX_BYTES >> 20} MiB"
                        )
                    yield number, line
        except EOFError:
            self.is_cut_short = True
        except (gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{self.path}: not a recorded session: {error}") from None


def _decode(decoder: msgspec.json.Decoder[_Event], path: Path, number: int, line: bytes) -> _Event:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: line {number}: {error}") from None


class CutShort(InputError):
    """A recording that does not have the whole session; the message says why, and what it has."""


class SessionFile:
    """Writes a session, event by event; a context manager, after which the file is there.

    Until then it is a file beside it (``NAME.*.part``), which stays if the recording cannot be
    finished and has events. An older file of that name survives a failure of any kind.

    Args:
        path: the file.

    Raises:
        OSError: the file cannot be made.
        CutShort: it could not be written to the end; raised at the end, so that a device goes on
            until then.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._events = 0
        self._error: OSError | None = None
        self._stack = ExitStack()

    def write(self, event: Passed) -> None:
        """Append an event, as long as the file can be written."""
        if self._error is None:
            try:
                self._file.write(msgspec.json.encode(event) + b"\n")
                self._file.flush()
                self._events += 1
            except OSError as error:
                self._error = error

    def __enter__(self) -> SessionFile:
        with errors_named(self._path):
            self._stream = self._stack.enter_context(result_stream(self._path, kept=_PART))
            self._file = self._stack.enter_context(
                gzip.GzipFile("", "wb", compresslevel=_FAST, fileobj=self._stream, mtime=0)
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        failure = error or self._error
        try:
            self._stack.__exit__(type(failure) if failure else None, failure, None)
        except OSError as last:
            self._error = self._error or last
        written = Path(self._stream.name)
        if written != self._path and not self._events:
            written.unlink(missing_ok=True)
        if error is None and self._error is not None:
            raise CutShort(self._lost(self._error, written)) from None

    def _lost(self, error: OSError, written: Path) -> str:
        text = f"{self._path}: {error.strerror}: the recording is cut short"
        return f"{text}; {self._events:,} events are in {written}" if self._events else text
