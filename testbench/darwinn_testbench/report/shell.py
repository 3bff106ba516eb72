"""Files as words of a command that a user is told to give to a shell."""

from __future__ import annotations

import shlex


def quote(file: str) -> str:
    """A file as one word, for a shell."""
    return shlex.quote(as_file(file))


def as_file(file: str) -> str:
    """A file as an argument that no command takes for an option; - is stdin."""
    return f"./{file}" if file.startswith("-") and file != "-" else file
