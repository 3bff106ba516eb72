"""Where the sources of the RTL are."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

SOURCES_VARIABLE = "DARWINN_RTL_SOURCES"
"""Environment variable: folder of the sources to build, such as a copy with deliberate faults."""


def source_folder() -> Path:
    """The SystemVerilog sources: beside the packages in a checkout, within the package if not, or
    those that the environment asks for."""
    if SOURCES_VARIABLE in os.environ:
        return Path(os.environ[SOURCES_VARIABLE])
    packaged = Path(__file__).parent / "sources"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "rtl"


def source_files() -> list[Path]:
    """Every SystemVerilog source, in the order of their folders and names."""
    return sorted(source_folder().rglob("*.sv"))


@cache
def source(name: str) -> Path:
    """The source, SystemVerilog or C++, with that file name in whichever folder it is."""
    (path,) = source_folder().rglob(name)
    return path
