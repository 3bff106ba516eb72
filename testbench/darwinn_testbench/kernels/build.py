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
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from darwinn_sim.chips import DEFAULT, VARIABLE
from darwinn_sim.kernel.store import PORTABLE, install

from darwinn_testbench.kernels.parts import Part
from darwinn_testbench.kernels.warm import exercised

_LINE_SECONDS = 15.0


class Told:
    """Writes every while how many kernels are compiled, as a build says nothing for minutes."""

    def __init__(
        self, write: Callable[[str], object], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._write, self._now = write, now
        self._began = self._said = now()

    def __call__(self, begun: int | None) -> None:
        """``begun`` kernels were begun; None: none is being compiled."""
        now = self._now()
        if begun is not None and now - self._said >= _LINE_SECONDS:
            self._said = now
            self._write(f"darwinn-testbench: {begun} kernels so far, {now - self._began:.0f} s\n")


def build(
    target: Path,
    parts: Sequence[Part] = tuple(Part),
    progress: Callable[[int | None], None] = lambda begun: None,
) -> int:
    """Write portable kernels of ``parts`` into ``target``; the bytes that they take.

    ``progress`` is called every while with the number of kernels that were begun.
    """
    with tempfile.TemporaryDirectory(prefix="darwinn-kernels-") as cache:
        # Processes that begin now compile for that level, and store it there.
        os.environ.update(NUMBA_CPU_NAME=PORTABLE, NUMBA_CPU_FEATURES="", NUMBA_CACHE_DIR=cache)
        os.environ[VARIABLE] = DEFAULT
        exercised(parts, progress=progress)
        called = {path for each in exercised(parts) for path in each.loaded}
        return sum(install(path, target) for path in sorted(called))


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


_PARTS = ", ".join(each.value for each in Part)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do it for the command line."""
    parser = argparse.ArgumentParser(prog="darwinn_testbench.kernels.build", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("part", type=Part, nargs="*", help=f"{_PARTS}; all of them")
    given = parser.parse_args(arguments)
    print(
        "darwinn-testbench: compiling the model of the chip, hundreds of kernels, for several "
        "minutes of processor time",
        file=sys.stderr,
        flush=True,
    )
    size = build(given.folder, given.part or tuple(Part), Told(_write))
    print(f"{given.folder}: {size:,} bytes of kernels for {PORTABLE}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
