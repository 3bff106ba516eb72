"""Scripts of yosys, each in a process of its own: its errors end the process that it works in."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

_PROGRAM = """
import sys, time
from pyosys import libyosys
libyosys.run_pass("script " + sys.argv[1])
print("SECONDS", time.process_time())
"""


class DesignRefused(Exception):
    """Yosys cannot read the design, or has failed; the text is the end of what it says."""


def is_installed() -> bool:
    """Whether there is a yosys with slang's front end (pyosys, of the extra ``dev``)."""
    return importlib.util.find_spec("pyosys") is not None


def read_command(
    top: str,
    sources: Iterable[str | Path],
    *,
    parameters: Mapping[str, object] = MappingProxyType({}),
    folders: Iterable[Path] = (),
    options: str = "",
) -> str:
    """The command that reads a design for synthesis.

    ``folders`` are those where slang finds modules by their names.
    """
    libraries = [f"-y {folder}" for folder in folders]
    return " ".join(
        [
            *("read_slang -j 1 -D SYNTHESIS", *([options] if options else []), "--top", top),
            *(f"-G {name}={value}" for name, value in parameters.items()),
            *map(str, sources),
            *libraries,
            *(["-Y .sv"] if libraries else []),
        ]
    )


def run_script(script: Path) -> tuple[str, float]:
    """What yosys says while it does what ``script`` says, and the seconds of processor time that it
    takes. Raises :class:`DesignRefused`."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    log, said, seconds = done.stdout.rpartition("\nSECONDS ")
    if done.returncode or not said:
        raise DesignRefused(done.stdout[-4000:])
    return log, float(seconds)
