"""The command `darwinn`. Each command is one file here that reads arguments and prints a report.

What a command does is a function of the library (docs/api.md); nothing is computed here.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with ``arguments`` (the process's own by default) and exit with its code."""
    from darwinn_testbench.cli.application import run_command_line

    # The end of the interpreter looks for cycles in all that is loaded, which took a third of the
    # time of most commands; what they are to leave behind is behind them by then.
    atexit.register(gc.freeze)
    sys.exit(run_command_line(sys.argv[1:] if arguments is None else arguments))
