"""The coverage report: line and toggle coverage of the RTL as lcov and HTML, functional coverage
with every bin that was missed: ``python -m darwinn_rtl.coverage_report FOLDER``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from darwinn_rtl.line_coverage import (
    COUNTS,
    COVERAGE_VARIABLE,
    FileCoverage,
    covered,
    lcov,
    merge,
)

BINS = "*.bins.json"
"""Files of functional coverage, beside those of counts."""

EXPLAINED: dict[str, str] = {}
"""Bins that need not be hit, as ``unit: item: bin``, each with the reason."""

Bins = dict[str, dict[str, int]]
"""Hits of each bin of each item of one unit."""


def keep_bins(unit: str, bins: Bins) -> None:
    """Keep the functional coverage of a test, where coverage is asked for."""
    folder = os.environ.get(COVERAGE_VARIABLE)
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        name = f"{unit.replace(' ', '-')}-{uuid.uuid4().hex[:8]}"
        Path(folder, name).with_suffix(".bins.json").write_text(json.dumps({unit: bins}))


def merge_bins(paths: Sequence[Path]) -> dict[str, Bins]:
    """Sum the hits over tests, by unit."""
    merged: dict[str, Bins] = {}
    for path in paths:
        for unit, items in json.loads(path.read_text()).items():
            for item, bins in items.items():
                own = merged.setdefault(unit, {}).setdefault(item, {})
                for name, hits in bins.items():
                    own[name] = own.get(name, 0) + hits
    return merged


@dataclass(frozen=True)
class MissedBin:
    """A declared bin that no test has hit, and the reason; empty if there is none."""

    unit: str
    item: str
    name: str
    reason: str


def missed_bins(merged: dict[str, Bins]) -> list[MissedBin]:
    """Every bin without a hit."""
    return [
        MissedBin(unit, item, name, EXPLAINED.get(f"{unit}: {item}: {name}", ""))
        for unit, items in sorted(merged.items())
        for item, bins in items.items()
        for name, hits in bins.items()
        if not hits
    ]


def write_report(folder: Path, sources: Path) -> tuple[dict[str, FileCoverage], dict[str, Bins]]:
    """Merge the counts that simulations left in ``folder``; write ``coverage.info`` and
    ``index.html`` there.

    ``sources`` holds the RTL. Raises ``FileNotFoundError`` if there is nothing to merge.
    """
    from jinja2 import Environment, PackageLoader

    counts = sorted(folder.glob(COUNTS))
    if not counts:
        raise FileNotFoundError(f"{folder} holds no coverage of a simulation")
    paths = {path.name: path for path in sorted(sources.rglob("*.sv"))}
    merged = merge(counts, paths)
    bins = merge_bins(sorted(folder.glob(BINS)))
    (folder / "coverage.info").write_text(lcov(merged, paths))
    texts = {name: paths[name].read_text().splitlines() for name in merged}
    environment = Environment(
        loader=PackageLoader("darwinn_rtl", "."), autoescape=True, trim_blocks=True
    )
    page = environment.get_template("coverage.html.j2").render(
        files=[_FilePage.of(name, found, texts[name]) for name, found in merged.items()],
        never=sorted(set(paths) - set(merged)),
        simulations=len(counts),
        bins=bins,
        missed=missed_bins(bins),
    )
    (folder / "index.html").write_text(page)
    return merged, bins


@dataclass(frozen=True)
class _Line:
    """One line of a source: its count if it runs, and its places that were never reached."""

    number: int
    text: str
    count: int | None
    missed: tuple[str, ...]


@dataclass(frozen=True)
class _FilePage:
    """A source file on the page: places reached and in all, and the annotated text."""

    name: str
    lines: tuple[int, int]
    branches: tuple[int, int]
    toggles: tuple[int, int]
    text: tuple[_Line, ...]

    @classmethod
    def of(cls, name: str, found: FileCoverage, text: Sequence[str]) -> _FilePage:
        missed: dict[int, list[str]] = {}
        for places in (found.branches, found.toggles):
            for (line, what), count in sorted(places.items()):
                if not count:
                    missed.setdefault(line, []).append(what)
        lines = tuple(
            _Line(number, line, found.lines.get(number), tuple(missed.get(number, ())))
            for number, line in enumerate(text, 1)
        )
        return cls(
            name, covered(found.lines), covered(found.branches), covered(found.toggles), lines
        )


def totals(merged: dict[str, FileCoverage], bins: dict[str, Bins]) -> dict[str, tuple[int, int]]:
    """How many lines, branches, toggles and functional bins were reached, and how many there
    are."""
    found: dict[str, tuple[int, int]] = {}
    for what in ("lines", "branches", "toggles"):
        each = [covered(getattr(file, what)) for file in merged.values()]
        found[what] = sum(reached for reached, _ in each), sum(places for _, places in each)
    hits = [count for items in bins.values() for item in items.values() for count in item.values()]
    found["functional bins"] = sum(count > 0 for count in hits), len(hits)
    return found


def summary(merged: dict[str, FileCoverage], bins: dict[str, Bins]) -> list[str]:
    """The totals, and every missed bin, for a terminal."""
    lines = [_share(what, *found) for what, found in totals(merged, bins).items()]
    lines += [
        f"  missed: {missed.unit}: {missed.item}: {missed.name}: {missed.reason or 'no reason'}"
        for missed in missed_bins(bins)
    ]
    return lines


def unexplained(bins: dict[str, Bins]) -> bool:
    """Whether a declared bin was missed without a reason."""
    return any(not missed.reason for missed in missed_bins(bins))


def _share(what: str, reached: int, places: int) -> str:
    percent = 100 * reached / places if places else 100.0
    return f"{what:<16} {reached:>7} of {places:>7}  {percent:6.2f} %"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report; 1 if a declared bin was missed for no reason, 2 without coverage."""
    from darwinn_rtl.source_files import source_folder

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    options = parser.parse_args(arguments)
    try:
        merged, bins = write_report(options.folder, source_folder())
    except (FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(summary(merged, bins)))
    print(f"{options.folder / 'index.html'}, {options.folder / 'coverage.info'}")
    return int(unexplained(bins))


if __name__ == "__main__":
    sys.exit(main())
