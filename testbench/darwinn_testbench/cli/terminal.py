"""Standard output and error as they are: lines for people, and readers that go away."""

from __future__ import annotations

import os
import sys
from typing import TextIO

import typer
from darwinn_formats.names import readable

Exit = typer.Exit

INTERRUPTED = 130
"""What a shell reports for a command that was interrupted (128 + SIGINT)."""
BROKEN_PIPE = 141
"""What a shell reports for a command whose reader went away (128 + SIGPIPE)."""


def print_line(text: str) -> None:
    """One line on standard error, whatever characters names of files in it have.

    Where it cannot be written (its reader went away, a full disk) nobody is told, and work goes on.
    """
    try:
        sys.stderr.write(readable(text) + "\n")
        sys.stderr.flush()
    except OSError:
        _discard(sys.stderr)


def reader_went_away() -> int:
    """The reader (`| head`) has seen enough: the exit code for stopping without a word."""
    discard_output()
    return BROKEN_PIPE


def discard_output() -> None:
    """Let nothing of what standard output still holds fail at the end of the interpreter."""
    _discard(sys.stdout)


def _discard(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
