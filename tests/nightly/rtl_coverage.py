"""Coverage of the RTL by its tests: lines, branches, toggles, functional bins.

    python -m tests.nightly.rtl_coverage FOLDER [--jobs N]

Runs tests/rtl on builds that count, which are made for it, and writes lcov and pages to FOLDER.
Exits with 1 if a test fails, or a declared bin was missed for no reason, and with 2 if nothing was
counted. In a night that is too short for all tests missed bins are not judged.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from darwinn_rtl import coverage_report
from darwinn_rtl.source_files import source_folder

from benchmarks.figures import keep_figures
from tests.nightly.deadline import is_over

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(
        prog="python -m tests.nightly.rtl_coverage",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("folder", type=Path, metavar="FOLDER")
    options.add_argument("--jobs", default="1", metavar="N", help="at a time")
    options.add_argument(
        "tests", nargs="*", default=["tests/rtl"], help="other ones than tests/rtl"
    )
    found = options.parse_args(arguments)
    folder: Path = found.folder.absolute()
    # Counts of another night are no counts of these tests.
    shutil.rmtree(folder, ignore_errors=True)
    asked = ["-p", "tests.nightly.deadline", "-q", "-n", found.jobs, *found.tests]
    asked += ["--rtl-coverage", str(folder)]
    failed = subprocess.run([sys.executable, "-m", "pytest", *asked], cwd=ROOT).returncode
    try:
        merged, bins = coverage_report.write_report(folder, source_folder())
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    print(*coverage_report.summary(merged, bins), folder / "index.html", sep="\n")
    totals = coverage_report.totals(merged, bins)
    keep_figures({f"{what}, %": 100 * part / whole for what, (part, whole) in totals.items()})
    if is_over():
        print("there was no time for all tests: bins that were missed say nothing")
        return int(failed != 0)
    return int(failed != 0 or coverage_report.unexplained(bins))


if __name__ == "__main__":
    sys.exit(main())
