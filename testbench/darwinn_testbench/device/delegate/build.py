"""Builds the delegate's library from its C sources, once for each installation of Python."""

from __future__ import annotations

import hashlib
import os
import shutil
import string
import subprocess
import sys
import tempfile
from pathlib import Path

import darwinn_formats
import darwinn_sim
from platformdirs import user_cache_path

import darwinn_testbench
from darwinn_testbench.errors import Unavailable

LIBRARY = "libedgetpu.so.1"
"""Name of the library: the vendor's, so that applications find it where they look for that."""

SOURCES = Path(__file__).parent / "source"

_MODULE = "darwinn_testbench.device.delegate.server"
_ARGUMENTS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread")
_PLAIN = frozenset(string.ascii_letters + string.digits + " _/.,:+-@")


def library() -> Path:
    """Path of the library, built if it is not there yet.

    Raises:
        Unavailable: there is no C compiler, or it fails.
        OSError: the cache folder cannot be written.
    """
    config = _config()
    sources = sorted(path for path in SOURCES.iterdir() if path.suffix in (".c", ".h"))
    digest = hashlib.sha256(repr((_ARGUMENTS, config)).encode())
    for source in sources:
        digest.update(source.read_bytes())
    folder = user_cache_path("darwinn-testbench") / "delegate" / digest.hexdigest()[:16]
    path = folder / LIBRARY
    if not path.exists():
        _build(path, config, [str(each) for each in sources if each.suffix == ".c"])
    return path


def _config() -> str:
    """The header that says how the library starts the chip's process."""
    packages = (darwinn_testbench, darwinn_sim, darwinn_formats)
    folders = dict.fromkeys(str(Path(str(each.__file__)).parents[1]) for each in packages)
    values = {
        "DARWINN_PYTHON": sys.executable,
        "DARWINN_PYTHONPATH": os.pathsep.join(folders),
        "DARWINN_MODULE": _MODULE,
    }
    return "".join(f"#define {name} {_c_string(value)}\n" for name, value in values.items())


def _c_string(text: str) -> str:
    """A literal of C for a path."""
    plain = (chr(c) if chr(c) in _PLAIN else f"\\{c:03o}" for c in os.fsencode(text))
    return f'"{"".join(plain)}"'


def _build(path: Path, config: str, sources: list[str]) -> None:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise Unavailable("no C compiler (cc) to build the delegate with: apt-get install gcc")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Built beside its place and moved there whole: two may build at the same time.
    with tempfile.TemporaryDirectory(dir=path.parent) as work:
        (Path(work) / "config.h").write_text(config)
        built = Path(work) / LIBRARY
        command = [compiler, *_ARGUMENTS, f"-I{work}", "-o", str(built), *sources]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = " ".join(done.stderr.split())
            raise Unavailable(f"the delegate cannot be built: {compiler}: {said[:500]}")
        built.replace(path)
