"""Executables of strangers, by name, in whichever of the folders that hold them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLES = ("DARWINN_WILD", "DARWINN_WILD2")
"""The folders: each of the layout of the corpus, and each may be absent."""


def strangers_in(folder: Path, name: str) -> Path | None:
    """A file of a folder by the name that the survey gives its row; None if it is not there."""
    places = (f"darwinn/{name}_edgetpu.tflite", f"darwinn/{name}", f"{name}.coral")
    return next((folder / place for place in places if (folder / place).exists()), None)


def stranger(name: str) -> Path:
    """A file of one of the folders by that name; skips where a folder is absent that may have it.

    Raises: LookupError if all folders are here and none has it.
    """
    absent = []
    for variable in VARIABLES:
        if folder := os.environ.get(variable):
            if found := strangers_in(Path(folder), name):
                return found
        else:
            absent.append(variable)
    if absent:
        pytest.skip(f"{' and '.join(absent)} not set: no {name} at hand")
    raise LookupError(f"no {name} in {' and '.join(VARIABLES)}")
