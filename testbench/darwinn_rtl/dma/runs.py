"""Performs the DMA programs of executables on the harness, free and under back-pressure, and
compares bytes and cycles: ``python -m darwinn_rtl.dma.runs FILES`` prints the table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from darwinn_formats.darwinn import Executable, load
from darwinn_sim.host.buffers import layer_bytes

from darwinn_rtl import toolchain
from darwinn_rtl.dma.player import WorkloadPlayer
from darwinn_rtl.dma.programs import Pressure
from darwinn_rtl.dma.workload import (
    DEFAULT_WINDOW,
    Workload,
    WorkloadResult,
    record,
    stall_pattern,
)
from darwinn_rtl.dma.workload_check import TimingComparison, check_bytes, compare_timing
from darwinn_rtl.harness import HarnessDescription

STALLED = Pressure(0.3, 0.3, 0.3)
"""Back-pressure of the stalled runs: each channel, in this share of the cycles."""

HARNESS = HarnessDescription()
"""The harness that executables are run on."""


@dataclass(frozen=True)
class DmaRun:
    """One run of the table: which executable, under which pressure, and the comparison."""

    name: str
    pressure: str
    comparison: TimingComparison
    cycles_per_second: float


def executables(path: Path) -> Iterator[tuple[str, Executable]]:
    """Name and contents of each executable of a file, parameter caching first."""
    for number, model in enumerate(load(path).models):
        for part, executable in (("caching", model.caching), ("inference", model.inference)):
            if executable:
                yield f"{path.stem.removesuffix('_edgetpu')}/{number}/{part}", executable


def recorded(executable: Executable, seed: int) -> tuple[Workload, WorkloadResult]:
    """The DMA program of ``executable`` for random inputs, and the model's result."""
    random = np.random.default_rng(seed)
    inputs = {
        layer.name: random.bytes(layer_bytes(layer) * max(1, executable.batch_size))
        for layer in executable.input_layers
    }
    return record(executable, inputs, DEFAULT_WINDOW.base)


def run_files(paths: Iterable[Path], *, seed: int = 1) -> list[DmaRun]:
    """Perform the DMA programs of all executables of the files.

    Raises ``WorkloadMismatch`` if bytes differ, and what ``WorkloadPlayer.perform`` raises;
    differences in cycles are in the result.
    """
    player, runs = WorkloadPlayer(seed), []
    for path in paths:
        for name, executable in executables(path):
            recording, expected = recorded(executable, seed)
            for pressure, stalls in (("free", Pressure()), ("stalled", STALLED)):
                workload = replace(recording, stalls=stall_pattern(seed, stalls))
                result = player.perform(workload)
                check_bytes(result, expected)
                comparison = compare_timing(workload, result, HARNESS)
                rate = result.cycles / result.seconds if result.seconds else 0.0
                runs.append(DmaRun(name, pressure, comparison, rate))
    player.close()
    return runs


HEADING = (
    f"{'executable':<64} {'pressure':<8} {'transfers':>9} {'bytes':>9} {'model':>8} {'RTL':>8} "
    f"{'difference':>10} {'Mcycle/s':>8}"
)
"""First line of the table; cycles are those of the last event."""


def table_row(run: DmaRun) -> str:
    """One line of the table."""
    it = run.comparison
    return (
        f"{run.name:<64} {run.pressure:<8} {it.transfers:>9} {it.size:>9} {it.cycles_model:>8} "
        f"{it.cycles_rtl:>8} {it.difference:>10} {run.cycles_per_second / 1e6:>8.2f}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if any cycle differs, 2 if the toolchain is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    lines = toolchain.missing()
    if lines:
        print("no RTL toolchain: " + "; ".join(lines), file=sys.stderr)
        return 2
    print(HEADING)
    worst = 0
    for path in options.files:
        for run in run_files([path], seed=options.seed):
            print(table_row(run), flush=True)
            if run.comparison.difference:
                print(f"  {run.comparison.first}")
            worst = max(worst, run.comparison.difference)
    print(f"largest difference: {worst} cycles")
    return int(worst != 0)


if __name__ == "__main__":
    sys.exit(main())
