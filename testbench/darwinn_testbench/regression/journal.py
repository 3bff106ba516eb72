"""The journal of long work: finished outcomes on disk, a line each, so that a kill loses none.

The journal is only ever appended to, and each line is on the disk before the next task counts as
begun. A line is an object whose first member is the checksum of the others; one that a kill cut
short, or that is not as it was written, is dropped.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import zlib
from collections.abc import Iterable
from io import BufferedRandom
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Generic, Protocol, TypeVar

import msgspec

from darwinn_testbench.errors import InputError

_LINE = re.compile(rb'\{"crc32":"([0-9a-f]{8})",(.*\})\n', re.DOTALL)
_SURROGATES = re.compile("[\ud800-\udfff]")


class Keyed(Protocol):
    """An outcome that msgspec can write."""

    @property
    def key(self) -> str:
        """What the journal knows it by; it changes with anything that the outcome depends on."""

    @property
    def name(self) -> str:
        """What people know it by."""


_LOOKED_AT = 100
"""Lines of which one has to look like a journal's."""

OutcomeType = TypeVar("OutcomeType", bound=Keyed)


class Journal(Generic[OutcomeType]):
    """The outcomes of type ``kind`` in ``path``, by key; one process at a time may hold it.

    Raises:
        InputError: another process is writing it, or it is something else: a link, no journal.
        OSError: it cannot be written.
    """

    def __init__(self, path: Path, kind: type[OutcomeType]) -> None:
        self._kind = kind
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise InputError(f"{path}: a journal is a file, and no link to one")
        self._stream: BufferedRandom = path.open("a+b")
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._stream.close()
            raise InputError(f"{path}: another process is writing this journal") from None
        if not self._is_journal():
            self._stream.close()
            raise InputError(f"{path}: this is no journal; let another folder take one")
        self._outcomes = self._read()

    def __enter__(self) -> Journal[OutcomeType]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stream.close()

    def outcome(self, key: str) -> OutcomeType | None:
        """The outcome of the task with this key, if it is finished."""
        return self._outcomes.get(key)

    def clear(self, keys: Iterable[str]) -> None:
        """Forget these outcomes in this process: their tasks are done again and appended."""
        for key in keys:
            self._outcomes.pop(key, None)

    def append(self, outcome: OutcomeType) -> None:
        """Keep ``outcome``; it is on the disk when this returns."""
        self._stream.write(_line(outcome))
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._outcomes[outcome.key] = outcome

    def _is_journal(self) -> bool:
        """Whether it is empty, or a line of it begins or ends as an object of JSON does."""
        self._stream.seek(0)
        lines = list(islice(self._stream, _LOOKED_AT))
        return not lines or any(line.startswith(b"{") or line.endswith(b"}\n") for line in lines)

    def _read(self) -> dict[str, OutcomeType]:
        self._stream.seek(0)
        outcomes: dict[str, OutcomeType] = {}
        end = 0
        for line in self._stream:
            if not line.endswith(b"\n"):
                break
            end += len(line)
            outcome = self._outcome_of(line)
            if outcome is not None:
                outcomes[outcome.key] = outcome
        # What is appended now must not continue a line that was cut short.
        self._stream.truncate(end)
        return outcomes

    def _outcome_of(self, line: bytes) -> OutcomeType | None:
        """None of a line of another version of this program, or damaged: its task is done again."""
        match = _LINE.fullmatch(line)
        if match is None or int(match[1], 16) != zlib.crc32(match[2]):
            return None
        try:
            return msgspec.json.decode(line, type=self._kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None


def _line(outcome: Keyed) -> bytes:
    try:
        members = msgspec.json.encode(outcome)[1:]
    except UnicodeEncodeError:
        # The name of a file that is no UTF-8: kept as what reports show of it.
        text = json.dumps(msgspec.to_builtins(outcome), ensure_ascii=False)
        shown = _SURROGATES.sub(lambda found: f"\\\\u{ord(found[0]):04x}", text)
        members = shown.encode()[1:]
    return b'{"crc32":"%08x",%s\n' % (zlib.crc32(members), members)
