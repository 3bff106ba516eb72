"""Scripts of yosys, each in a process of its own: its errors end the process that it works in."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from darwinn_rtl import bounded

_PROGRAM = """
import sys, time
from pyosys import libyosys
libyosys.run_pass("script " + sys.argv[1])
print("SECONDS", time.process_time())
"""


_MOST_ERRORS = 3
"""Errors of yosys that are shown."""

_ERROR = re.compile(r"ERROR: |Source line ")
_SUMMARY = "; see full log for details"
_FOLDERS = re.compile(r"\S*/(?=[\w.]+:\d+:)")


class DesignRefused(Exception):
    """Yosys cannot read the design, or has failed; the text is its first errors."""


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


def run_script(script: Path, *, seconds: int | None = None) -> tuple[str, float]:
    """What yosys says while it does what ``script`` says, and the seconds of processor time that it
    takes, ``seconds`` at most. Raises :class:`DesignRefused`."""
    try:
        done = bounded.run(
            [sys.executable, "-c", _PROGRAM, script],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            seconds=seconds,
        )
    except bounded.Unended as reason:
        raise DesignRefused(f"yosys: {reason}") from None
    log, said, seconds = done.stdout.rpartition("\nSECONDS ")
    if done.returncode or not said:
        raise DesignRefused(first_errors(done.stdout))
    return log, float(seconds)


def first_errors(log: str) -> str:
    """The first errors in what yosys says, files without their folders; or how it ends."""
    lines = [_FOLDERS.sub("", line).strip() for line in log.splitlines()]
    errors = [line for line in lines if _ERROR.search(line) and not line.endswith(_SUMMARY)]
    if not errors:
        return "\n".join(line for line in lines[-_MOST_ERRORS:] if line)
    errors.sort(key=lambda line: "ERROR: " not in line)
    more = len(errors) - _MOST_ERRORS
    return "; ".join([*errors[:_MOST_ERRORS], *([f"{more} more errors"] if more > 0 else [])])
