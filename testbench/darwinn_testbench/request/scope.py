"""What settings apply to, and the refusal of those that do not apply."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from darwinn_testbench.errors import InputError


class Scope(StrEnum):
    """What a setting applies to, in the words of its refusal."""

    ANYTHING = "anything"
    CHIP = "DarwiNN files"
    """The file is for the chip: a compiled model, a package, a stream."""
    NETWORK = "compiled models with a .tflite reference"
    """The same, and no other program takes part in the comparison."""
    PROGRAM = "programs of other formats"
    """The file, or what it is compared with, is an ExecuTorch, IREE or BEF program."""
    REFERENCE = "the project's references"
    """The file is such a program, and its original runtime is not asked for."""


def only_for(scope: Scope, names: Iterable[str]) -> None:
    """Refuse options that were given and do not apply.

    Raises:
        InputError: there is one; all of them are named.
    """
    if given := list(dict.fromkeys(names)):
        raise InputError(f"{', '.join(given)}: only for {scope}")
