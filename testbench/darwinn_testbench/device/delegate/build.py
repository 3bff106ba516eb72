"""Builds the delegate's library from its C sources, once for each installation of Python."""

from __future__ import annotations

import os
import string
import sys
from pathlib import Path

import darwinn_formats
import darwinn_sim

import darwinn_testbench
from darwinn_testbench.device import native

LIBRARY = "libedgetpu.so.1"
"""Name of the library: the vendor's, so that applications find it where they look for that."""

_SOURCES = Path(__file__).parent / "source"
_SERVER = "darwinn_testbench.device.delegate.server"
_PLAIN = frozenset(string.ascii_letters + string.digits + " _/.,:+-@")


def library() -> Path:
    """Path of the library, built if it is not there yet; raises as :func:`native.library`."""
    packages = (darwinn_testbench, darwinn_sim, darwinn_formats)
    folders = dict.fromkeys(Path(str(each.__file__)).parents[1] for each in packages)
    return library_for(_SERVER, list(folders))


def library_for(module: str, folders: list[Path]) -> Path:
    """The library with a module of ``folders``, besides what Python has, as the chip's process."""
    values = {
        "DARWINN_PYTHON": sys.executable,
        "DARWINN_PYTHONPATH": os.pathsep.join(map(str, folders)),
        "DARWINN_MODULE": module,
    }
    config = "".join(f"#define {name} {_c_string(each)}\n" for name, each in values.items())
    return native.library(_SOURCES, LIBRARY, headers={"config.h": config})


def _c_string(text: str) -> str:
    """A literal of C for a path."""
    plain = (chr(c) if chr(c) in _PLAIN else f"\\{c:03o}" for c in os.fsencode(text))
    return f'"{"".join(plain)}"'
