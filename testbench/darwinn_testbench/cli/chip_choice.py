"""The chip that a command simulates: chosen before the command loads what has its sizes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from darwinn_sim.chips import VARIABLE

from darwinn_testbench.cli.terminal import Exit, print_line

_OPTION = "--chip"
_BAD_INPUT = 2


def choose(arguments: Sequence[str]) -> None:
    """Take the chip that ``--chip`` names, else the one that the environment names.

    Raises:
        Exit: the environment names none, which is said.
    """
    named = _named(arguments)
    if named is None and not os.environ.get(VARIABLE):
        return
    # Loaded where somebody chooses: other commands do not wait for it.
    from darwinn_formats.errors import FormatError
    from darwinn_sim.chips import selected

    if named is not None:
        # What is wrong with it the command says, if it takes the option at all.
        with suppress(FormatError, OSError):
            selected.choose(named)
    try:
        selected.selected()
    except FormatError as error:
        _refuse(str(error))
    except OSError as error:
        _refuse(f"{error.filename}: {error.strerror}")


def _named(arguments: Sequence[str]) -> str | None:
    """The last value of the option, before the command of a user's own that may follow ``--``."""
    words = list(arguments)
    words = words[: words.index("--")] if "--" in words else words
    values = [word.partition("=")[2] for word in words if word.startswith(f"{_OPTION}=")]
    values += [value for word, value in pairwise(words) if word == _OPTION]
    return values[-1] if values else None


def _refuse(reason: str) -> None:
    print_line(f"darwinn: bad-input: {VARIABLE}: {reason}")
    raise Exit(_BAD_INPUT)
