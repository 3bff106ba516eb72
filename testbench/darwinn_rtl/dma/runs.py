"""Performs the DMA programs of executables on the harness, free and under back-pressure, and
compares bytes and cycles: ``python -m darwinn_rtl.dma.runs FILES`` prints the table.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from darwinn_formats.darwinn import Executable, load
from darwinn_sim.host.buffers import layer_bytes

from darwinn_rtl import toolchain
from darwinn_rtl.build import Design, simulate
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

FOLDER_VARIABLE = "DARWINN_WORKLOADS"
"""Environment variable of the simulation: the folder of workloads, and of their results."""

_MODULE = "darwinn_rtl.dma.workload_playing"


def workload_design(
    harness: HarnessDescription = HARNESS, *, waves: bool = False, unruly: bool = False
) -> Design:
    """The harness with memory and units in C++. An ``unruly`` memory has no predictable cycles; it
    does everything that AXI4 allows."""
    return Design(
        "workload",
        {
            "DataBytes": harness.data_bytes,
            "BufferBeats": harness.buffer_words,
            "QueueDepth": harness.queue_depth,
            "OutstandingReads": harness.outstanding_reads,
            "OutstandingWrites": harness.outstanding_writes,
            "Latency": harness.memory_latency,
            **({"Unruly": 1} if unruly else {}),
        },
        registers=True,
        c_sources=("workload.cpp",),
        waves=waves,
    )


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


def run_files(paths: Iterable[Path], work: Path, *, seed: int = 1) -> list[DmaRun]:
    """Perform the DMA programs of all executables of the files in one simulation.

    Raises ``WorkloadMismatch`` if bytes differ, ``SimulationFailed`` if the simulation ends early;
    differences in cycles are in the result.
    """
    cases: list[tuple[str, str, Workload, WorkloadResult]] = []
    for path in paths:
        for name, executable in executables(path):
            workload, expected = recorded(executable, seed)
            for pressure, stalls in (("free", Pressure()), ("stalled", STALLED)):
                case = Workload(workload.descriptors, workload.regions, workload.output)
                case.stalls = stall_pattern(seed, stalls)
                cases.append((name, pressure, case, expected))
    found = play([case for _, _, case, _ in cases], work, seed=seed)
    runs = []
    for (name, pressure, workload, expected), result in zip(cases, found, strict=True):
        check_bytes(result, expected)
        comparison = compare_timing(workload, result, HARNESS)
        rate = result.cycles / result.seconds if result.seconds else 0.0
        runs.append(DmaRun(name, pressure, comparison, rate))
    return runs


def play(
    workloads: Sequence[Workload],
    work: Path,
    *,
    seed: int,
    design: Design | None = None,
) -> list[WorkloadResult]:
    """Perform workloads one after another in one simulation; return their results."""
    folder = work / "workloads"
    folder.mkdir(parents=True, exist_ok=True)
    for number, workload in enumerate(workloads):
        workload.save(workload_path(folder, number))
    simulate(
        design or workload_design(),
        _MODULE,
        "play",
        seed=seed,
        work=work,
        environment={FOLDER_VARIABLE: str(folder)},
    )
    return [WorkloadResult.load(result_path(folder, n)) for n in range(len(workloads))]


def workload_path(folder: Path, number: int) -> Path:
    """File of a workload that the simulation is to perform."""
    return folder / f"workload-{number}.npz"


def result_path(folder: Path, number: int) -> Path:
    """File of its result."""
    return folder / f"result-{number}.npz"


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
        with tempfile.TemporaryDirectory() as work:
            for run in run_files([path], Path(work), seed=options.seed):
                print(table_row(run), flush=True)
                if run.comparison.difference:
                    print(f"  {run.comparison.first}")
                worst = max(worst, run.comparison.difference)
    print(f"largest difference: {worst} cycles")
    return int(worst != 0)


if __name__ == "__main__":
    sys.exit(main())
