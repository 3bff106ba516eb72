"""Kernels as a part of an installation.

`python -m darwinn_testbench.kernels.build FOLDER [PART...]` writes them. They are compiled for a
level of processors, verified on the project's own sample, and those that Python calls are kept: the
others are contained in them. ``hatch_build.py`` puts them into a wheel.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from darwinn_sim.chips import DEFAULT, VARIABLE
from darwinn_sim.kernel.store import PORTABLE, install

from darwinn_testbench.kernels.parts import Part
from darwinn_testbench.kernels.warm import exercised


def build(target: Path, parts: Sequence[Part] = tuple(Part)) -> int:
    """Write portable kernels of ``parts`` into ``target``; the bytes that they take."""
    with tempfile.TemporaryDirectory(prefix="darwinn-kernels-") as cache:
        # Processes that begin now compile for that level, and store it there.
        os.environ.update(NUMBA_CPU_NAME=PORTABLE, NUMBA_CPU_FEATURES="", NUMBA_CACHE_DIR=cache)
        os.environ[VARIABLE] = DEFAULT
        exercised(parts)
        called = {path for each in exercised(parts) for path in each.loaded}
        return sum(install(path, target) for path in sorted(called))


_PARTS = ", ".join(each.value for each in Part)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do it for the command line."""
    parser = argparse.ArgumentParser(prog="darwinn_testbench.kernels.build", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("part", type=Part, nargs="*", help=f"{_PARTS}; all of them")
    given = parser.parse_args(arguments)
    size = build(given.folder, given.part or tuple(Part))
    print(f"{given.folder}: {size:,} bytes of kernels for {PORTABLE}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
