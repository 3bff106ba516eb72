"""The command `darwinn`. Each command is one file here that reads arguments and prints a report.

What a command does is a function of the library (docs/api.md); nothing is computed here.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Sequence

_FRAMES = 1 << 16
"""Words of the stack of calls."""

_OBJECTS = 50_000
"""Objects that are made before Python looks for cycles among them."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with ``arguments`` (the process's own by default) and exit with its code."""
    # Nearly all that is made stays, or goes without a search for cycles, which took an eighth of
    # the time of most commands, and as much again at the end of the interpreter.
    gc.set_threshold(_OBJECTS)
    atexit.register(gc.freeze)
    sys.exit(_run(sys.argv[1:] if arguments is None else arguments))


def _run(arguments: Sequence[str]) -> int:
    from darwinn_testbench.cli.application import run_command_line

    return run_command_line(arguments)


# Frames of calls are kept in chunks of 16 KiB, and a loop whose calls cross the end of one has the
# system give and take a chunk at each turn: thousands of times while modules are loaded. A call
# that needs more has a chunk of its own, and all calls within it use the rest of that.
_run.__code__ = _run.__code__.replace(co_stacksize=_FRAMES)
