"""Where the sources of the RTL are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCES_VARIABLE = "DARWINN_RTL_SOURCES"
"""Environment variable: folder of sources that replace ours of the same file names, and add to
them: a design of your own, or a copy with deliberate faults."""


def source_folder() -> Path:
    """Our SystemVerilog sources: beside the packages in a checkout, within the package if not."""
    packaged = Path(__file__).parent / "sources"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "rtl"


def own_folder() -> Path | None:
    """The folder of sources that replace ours, if the environment names one."""
    named = os.environ.get(SOURCES_VARIABLE)
    return Path(named).absolute() if named else None


def source_files() -> list[Path]:
    """Every SystemVerilog source, in the order of their folders and names."""
    return sorted(path for name, path in _by_name(own_folder()).items() if name.endswith(".sv"))


def source(name: str) -> Path:
    """The source, SystemVerilog or C++, with that file name in whichever folder it is."""
    return _by_name(own_folder())[name]


@cache
def _by_name(own: Path | None) -> dict[str, Path]:
    return dict(_sources(source_folder())) | dict(_sources(own) if own else ())


def _sources(folder: Path) -> Iterator[tuple[str, Path]]:
    return ((path.name, path) for path in folder.rglob("*.*") if path.is_file())
