"""Builds the delegate's library from its C sources, once for each installation of Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import darwinn_formats
import darwinn_sim

from darwinn_testbench.device import native, wire
from darwinn_testbench.device.delegate import messages

LIBRARY = "libedgetpu.so.1"
"""Name of the library: the vendor's, so that applications find it where they look for that."""

FURTHER_NAMES = ("libedgetpu.so", "libedgetpu.so.1.0")
"""Names of links to the library: that of the file in the vendor's package, and a linker's."""

_SOURCES = Path(__file__).parent / "source"
_SEARCH = Path(__file__).parent / "search"
_SERVER = "darwinn_testbench.device.delegate.server"


def library() -> Path:
    """Path of the library, built if it is not there yet; raises as :func:`native.library`."""
    # Its own package by name: an import would be one of all that the package offers.
    own = sys.modules[__name__.partition(".")[0]]
    packages = (own, darwinn_sim, darwinn_formats)
    folders = dict.fromkeys(Path(str(each.__file__)).parents[1] for each in packages)
    return library_for(_SERVER, list(folders))


def library_for(module: str, folders: list[Path]) -> Path:
    """The library with a module of ``folders``, besides what Python has, as the chip's process."""
    values = {
        "DARWINN_PYTHON": sys.executable,
        "DARWINN_PYTHONPATH": os.pathsep.join(map(str, folders)),
        "DARWINN_MODULE": module,
    }
    headers = {**_config(values), **wire.header(messages)}
    path = native.library(_SOURCES, LIBRARY, "-Wl,--version-script=exports.map", headers=headers)
    for name in FURTHER_NAMES:
        with suppress(FileExistsError):
            (path.parent / name).symlink_to(LIBRARY)
    return path


def search_for(path: Path) -> Path:
    """The dynamic linker's auditor that gives a program ``path`` wherever it loads the vendor's.

    Built if it is not there yet; raises as :func:`native.library`.
    """
    headers = _config({"DARWINN_LIBRARY": str(path)})
    return native.library(_SEARCH, "libdarwinn-search.so", headers=headers)


def _config(values: Mapping[str, str]) -> dict[str, str]:
    """The header ``config.h`` that defines ``values``."""
    return {"config.h": "\n".join(wire.definition(*each) for each in values.items()) + "\n"}
