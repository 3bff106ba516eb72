"""What is to be said of files that are read all the same, for whoever listens.

    with listening() as remarks:
        ...  # whatever is read here, in this thread

Nobody has to listen: what is no error is then not told.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[list[str] | None] = ContextVar("listener", default=None)
_file: ContextVar[str] = ContextVar("file", default="")


@contextmanager
def listening() -> Iterator[list[str]]:
    """The remarks that are made within, each once."""
    heard: list[str] = []
    token = _listener.set(heard)
    try:
        yield heard
    finally:
        _listener.reset(token)


@contextmanager
def remarks_name(file: str) -> Iterator[None]:
    """Remarks that are made within name the file."""
    token = _file.set(file)
    try:
        yield
    finally:
        _file.reset(token)


def remark(text: str) -> None:
    """Tell who listens; of a file without a name only what was not said of one with a name."""
    heard, file = _listener.get(), _file.get()
    if heard is None:
        return
    said = f"{file}: {text}" if file else text
    if file and text in heard:
        heard.remove(text)
    if not any(each == said or each.endswith(f": {said}") for each in heard):
        heard.append(said)
