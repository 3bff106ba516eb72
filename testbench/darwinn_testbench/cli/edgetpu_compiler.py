"""`darwinn-edgetpu-compiler`: `darwinn compile` under the vendor's command line.

Exporters call `edgetpu_compiler` by name. A link of that name to this program, or a path to it
where the exporter takes one, makes them use the open compiler.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from darwinn_testbench.cli import main as darwinn
from darwinn_testbench.version import __version__

_VERSION = ("--version", "-v")
_HELP = ("--help", "-h")
_FOLDER = ("--out_dir", "-o")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the compiler with the vendor's arguments, and exit with the code of `darwinn compile`.

    By default results go to the current folder, as the vendor's do.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in _VERSION:
        sys.stdout.write(f"Edge TPU Compiler version darwinn-testbench {__version__}\n")
        return
    named = any(each.split("=")[0] in _FOLDER for each in given)
    folder = [] if named or not given or given[0] in _HELP else ["--out_dir", "."]
    darwinn(["compile", *given, *folder])
