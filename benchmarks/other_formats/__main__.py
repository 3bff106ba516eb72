"""The programs of other formats: every claim of the formats' pages, with its figure.

    python -m benchmarks.other_formats [--point N ...] [--releases A B ...] [--tfrt DIR]

Point by point: 1 releases of IREE, 2 types of IREE, 3 comparison of all pairs of formats,
4 generated inputs, 5 delegates and machine code of others, 6 XNNPACK's time, 7 suites of TFRT,
8 `diff` with gates, 9 members of the documents.

Modules of IREE are made here: pip installs the compiler and the runtime of each release from PyPI
into a folder of its own under --cache (by default the user's cache; about 9 GB for all). The other
programs are made by this project, except those of point 6 (extra `executorch` and torchvision) and
7 (--tfrt: `mlir_tests` of TFRT's repository). The command names whatever a point needs and cannot
find, and goes on with the rest.

Exits with 1 if a figure is not as it should be, with 2 if none could be measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import commit, machine_and_load, positive
from benchmarks.other_formats.comparison_points import inputs, pairs
from benchmarks.other_formats.execution_points import suites, xnnpack
from benchmarks.other_formats.figure import Figure, MissingError, Settings
from benchmarks.other_formats.iree_points import bfloat16, parameters, releases, unsigned
from benchmarks.other_formats.program_points import differences, foreign, machine_code, members


@dataclass(frozen=True)
class Point:
    """A point: what it is about, and what gives its figures, each of which may miss something."""

    title: str
    parts: Sequence[Callable[[Settings], Iterator[Figure]]]


POINTS: Mapping[int, Point] = {
    1: Point("IREE: releases", [releases]),
    2: Point("IREE: types of arguments", [unsigned, bfloat16, parameters]),
    3: Point("comparison across formats", [pairs]),
    4: Point("generated inputs", [inputs]),
    5: Point("delegates and machine code of others", [foreign, machine_code]),
    6: Point("ExecuTorch: XNNPACK's time", [xnnpack]),
    7: Point("TFRT: suites", [suites]),
    8: Point("differences and gates", [differences]),
    9: Point("members of the documents", [members]),
}


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "darwinn-testbench" / "iree-releases"


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--point", type=int, nargs="*", choices=[*POINTS], default=[*POINTS], metavar="N"
    )
    options.add_argument("--cache", type=Path, default=_cache(), metavar="DIR")
    options.add_argument("--releases", nargs="*", default=[], metavar="RELEASE")
    options.add_argument("--tfrt", type=Path, metavar="DIR")
    options.add_argument("--repeat", type=positive, default=5, metavar="N")
    return options.parse_args()


def show(figure: Figure) -> None:
    """Print a figure with its reasons."""
    mark = "" if figure.kept else "  NOT KEPT"
    print(f"   {figure.what:<62} {figure.value}{mark}", flush=True)
    for note in figure.notes:
        print(f"      {note}")


def measured(number: int, settings: Settings) -> list[Figure]:
    """Print the figures of a point, and what is missing."""
    point = POINTS[number]
    print(f"{number}. {point.title}", flush=True)
    found = []
    for part in point.parts:
        try:
            for figure in part(settings):
                found.append(figure)
                show(figure)
        except MissingError as error:
            print(f"   not there: {error}", flush=True)
    return found


def main() -> int:
    options = _options()
    print(f"{machine_and_load()}; commit {commit()}")
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            options.cache, Path(folder), options.releases, options.tfrt, options.repeat
        )
        found = [figure for number in options.point for figure in measured(number, settings)]
    if not found:
        return 2
    kept = sum(figure.kept for figure in found)
    print(f"{kept} of {len(found)} figures are as they should be")
    return int(kept < len(found))


if __name__ == "__main__":
    sys.exit(main())
