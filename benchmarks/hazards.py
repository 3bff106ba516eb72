"""The cost of looking for hazards: processor time of a `verify`, and memory.

    python -m benchmarks.hazards [FILE ...] [--repeat N] [--json]

Without files: the project's samples, and the compiled models of DARWINN_CORPUS. Each is verified on
its default inputs, without a reference, in one process whose kernels are compiled: without hazards,
for the first time with them, when the program is judged, and again, when that has been kept; the
least of N times counts, but for the first. Memory is all that the checker keeps, for each byte of
the memories that it follows: narrow and wide memory, scale/bias buffers, scalar memory, both
buffers. Exits with 1 beyond bounds, or where there is a hazard.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from darwinn_sim import chip
from darwinn_sim.accelerator import compile_kernels
from darwinn_sim.kernel.clocks import Clocks
from darwinn_testbench.chip import kept
from darwinn_testbench.chip.hazards import Judgement
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler.files import sample

from benchmarks.common import existing_file, machine, positive

MOST_TIMES = 1.5
MOST_BYTES = 4.0
"""Bounds: times a `verify` without hazards, where they have been kept; bytes for each byte of
memory."""

_SMALL = 0.05
"""Seconds that do not count: of a small program they are the reading of its file."""

_MEMORIES = (
    chip.TILES * (chip.NARROW_BYTES + chip.WIDE_ROWS * chip.ROW_BYTES + 4 * chip.SCALE_BIAS_WORDS)
    + 4 * chip.SCALAR_MEMORY_WORDS
    + chip.ACTIVATION_UNITS * chip.ACTIVATION_UNIT_BYTES
    + chip.PARAMETER_UNITS * chip.PARAMETER_UNIT_BYTES
)


class Cost(NamedTuple):
    """Processor seconds of `verify` of a file; how many hazards there are, and what holds for some
    inputs only."""

    file: str
    plain_seconds: float
    first_seconds: float
    kept_seconds: float
    hazards: int
    only: int

    @property
    def times(self) -> float:
        """How many times a plain `verify` one with a kept judgement takes, beyond what does not
        count."""
        return max(self.kept_seconds - _SMALL, 0.0) / self.plain_seconds

    def __str__(self) -> str:
        return (
            f"{self.file:60} {self.plain_seconds:8.3f} s, first "
            f"{self.first_seconds / self.plain_seconds:5.1f} times, kept "
            f"{self.kept_seconds / self.plain_seconds:5.2f} times, {self.hazards} hazards, "
            f"{self.only} only of an input"
        )


def _seconds(path: Path, *, hazards: bool) -> float:
    begin = time.process_time()
    verify(path, hazards=hazards)
    return time.process_time() - begin


def cost_of(path: Path, repeat: int) -> Cost:
    """The cost of a file of which nothing has been kept."""
    # What is loaded once for all is no part of it.
    _seconds(path, hazards=False)
    plain = min(_seconds(path, hazards=False) for _ in range(repeat))
    begin = time.process_time()
    found = verify(path).figures["hazards"]
    first = time.process_time() - begin
    assert found.judged is Judgement.JUDGED, found
    kept = min(_seconds(path, hazards=True) for _ in range(repeat))
    return Cost(path.name, plain, first, kept, len(found.found), len(found.only))


def files_of(named: Sequence[Path], samples: str) -> list[Path]:
    """The files that are measured."""
    if named:
        return list(named)
    sample(samples)
    corpus = os.environ.get("DARWINN_CORPUS")
    found = sorted(Path(samples).glob("*_edgetpu.tflite"))
    return found + (sorted(Path(corpus, "darwinn").glob("*_edgetpu.tflite")) if corpus else [])


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("files", nargs="*", type=existing_file, metavar="FILE")
    options.add_argument("--repeat", type=positive, default=1, metavar="N")
    options.add_argument("--json", action="store_true")
    asked = options.parse_args(arguments)
    compile_kernels()
    compile_kernels(hazards=True)
    rows = []
    with tempfile.TemporaryDirectory() as samples:
        kept.folder = Path(samples, "kept")
        for path in files_of(asked.files, samples):
            rows.append(cost_of(path, asked.repeat))
            if not asked.json:
                print(rows[-1], flush=True)
    most = max(row.times for row in rows)
    per_byte = Clocks.dtype.itemsize / _MEMORIES
    if asked.json:
        told = [row._asdict() for row in rows]
        print(json.dumps({"machine": machine(), "bytes_a_byte": per_byte, "rows": told}, indent=2))
    else:
        print(machine())
        print(f"kept: at most {most:.2f} times a verify without hazards (bound {MOST_TIMES})")
        print(
            f"{Clocks.dtype.itemsize / 1e6:.1f} MB beside {_MEMORIES / 1e6:.1f} MB of memories: "
            f"{per_byte:.2f} bytes a byte (bound {MOST_BYTES:.0f})"
        )
    beyond = most > MOST_TIMES or per_byte > MOST_BYTES or any(row.hazards for row in rows)
    return int(beyond)


if __name__ == "__main__":
    sys.exit(main())
