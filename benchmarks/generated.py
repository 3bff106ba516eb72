"""Judge networks by chance on every engine, and print what they cover.

    python -m benchmarks.generated --count 1000 /corpus /wild

Each network is compiled and judged as ``darwinn generate --check`` does it. The bins are printed,
and what the programs hold is compared with the compiled models of the folders, in their subfolder
``darwinn``. It exits with 1 if a network fails; the command that repeats it is printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from darwinn_formats.darwinn import load
from darwinn_formats.errors import FormatError
from darwinn_testbench.compilation.bins import WELL_MIXED
from darwinn_testbench.compilation.generate import GenerateOptions, generate
from darwinn_testbench.engine import Engine


def is_readable(path: Path) -> bool:
    """Whether a compiled model is whole; some public ones are cut off."""
    try:
        return bool(load(path).executables)
    except FormatError as error:
        print(f"left out: {error}")
        return False


def main() -> int:
    """Generate, judge and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--seed", type=int, default=1000, help="of the first network")
    parser.add_argument("--count", type=int, default=1000, help="number of networks")
    parser.add_argument("--size", type=int, help="operators of each")
    parser.add_argument("--rtl", action="store_true", help="run each network on the RTL, too")
    arguments = parser.parse_args()
    files = [
        path
        for folder in arguments.folders
        for path in sorted((folder / "darwinn").glob("*_edgetpu.tflite"))
        if is_readable(path)
    ]
    begin = time.perf_counter()
    report = generate(
        GenerateOptions(
            seed=arguments.seed,
            count=arguments.count,
            size=arguments.size,
            check=True,
            engine=Engine.RTL if arguments.rtl else Engine.MODEL,
            against=[str(path) for path in files],
        ),
        progress=lambda text, done, total: print(f"{done}: {text}", file=sys.stderr, flush=True),
    )
    print("| bin | | networks |\n|---|---|---|")
    for each in report.figures["bins"]:
        print(f"| {each.group} | {each.bin} | {each.networks} |")
    print("\n| in the programs | generated | public | both |\n|---|---|---|---|")
    for each in report.figures["programs"]:
        print(f"| {each.what} | {each.generated} | {each.others} | {each.both} |")
    counts: dict[str, int] = {}
    for row in report.rows:
        counts[row.verdict.value] = counts.get(row.verdict.value, 0) + 1
        if row.verdict.failed:
            print(f"{row.verdict.value}: {row.repeat}: {row.message}")
    seconds = (time.perf_counter() - begin) / len(report.rows)
    mixed = next(each.networks for each in report.figures["bins"] if each.bin == WELL_MIXED)
    print(f"\n{counts}; {mixed} with {WELL_MIXED}; {seconds:.2f} s each")
    return int(any(row.verdict.failed for row in report.rows))


if __name__ == "__main__":
    sys.exit(main())
