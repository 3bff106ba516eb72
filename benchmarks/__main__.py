"""What can be measured: each bench, with the first line of what its ``--help`` says.

    python -m benchmarks

Nothing is measured, nor loaded, so that a bench whose extra is not installed is listed, too.
"""

from __future__ import annotations

import argparse
import ast
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent
_COMMAND = "__main__"


def sources() -> Iterator[tuple[str, Path]]:
    """Every module of this package, and every package in it as the command that it may be."""
    for module in pkgutil.iter_modules([str(FOLDER)]):
        path = FOLDER / module.name
        yield module.name, path / f"{_COMMAND}.py" if module.ispkg else path.with_suffix(".py")


def benches() -> dict[str, str]:
    """What is a command of its own, by name, with the first line of its docstring."""
    texts = {
        name: path.read_text() for name, path in sources() if name != _COMMAND and path.exists()
    }
    return {
        name: (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        for name, text in texts.items()
        if f'if __name__ == "{_COMMAND}":' in text
    }


def main() -> int:
    """Print a line for each bench."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    found = benches()
    width = max(map(len, found))
    for name, line in found.items():
        print(f"{name:{width}}  {line}")
    print(
        "\n`python -m benchmarks.NAME --help` says more; `make bench` measures those with bounds."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
