"""How much of the processors a regression of many small tasks uses, here and on a Dask cluster.

    python -m benchmarks.regress [--tasks N] [--workers N] [--planned N] [--page FILE]

Every task verifies the sample's dense model with a seed of its own, sandboxed as always; here by a
process for each core, as the command does it, and there by --workers of a Dask
cluster with the settings that docs/ci.md has. Modules are compiled beforehand, as pip does it. The
efficiency is the processor time that the same task takes in a process that does nothing else,
LiteRT's process included, times the tasks, over what min(workers, cores) processors offer in the
time from the call to the report: starting processes, handing out, the journal and the report count
against it. What planning N tasks (100,000) takes is measured in a process of its own. Exits with 1
if an efficiency is below 0.9, the plan takes more than 1 GiB, a task does not pass, or a second
call does anything again.
"""

from __future__ import annotations

import argparse
import compileall
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import darwinn_formats
import darwinn_reference
import darwinn_rtl
import darwinn_sim
import darwinn_testbench
from darwinn_reference.tflite.litert import end_idle
from darwinn_sim.accelerator import compile_kernels
from darwinn_testbench.compiler import sample
from darwinn_testbench.pages import Page, Section, Table, charts, render
from darwinn_testbench.regression.manifest import load
from darwinn_testbench.regression.run import regress
from darwinn_testbench.regression.task import tasks_of
from darwinn_testbench.report.verdict import Verdict

from benchmarks.common import (
    MIB,
    alone,
    machine,
    machine_and_load,
    peak_bytes,
    positive,
    write_page,
)

EFFICIENCY = 0.9
PLAN_BYTES = 1024 * MIB
_WARM, _MEASURED = 20, 60

CLUSTER_SETTINGS = {
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.worker.profile.enabled": False,
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
}
"""Four idle workers, nannies and scheduler take 7 % of two cores without the first ones, 1 % with
them; without the last one a worker gives memory back at each chance, and a task takes up to 1.2
times as long."""


@dataclass(frozen=True)
class Run:
    """A regression: where, seconds, and processors that it had."""

    where: str
    seconds: float
    processors: int
    passed: bool
    tasks: int
    each: float

    @property
    def efficiency(self) -> float:
        return self.tasks * self.each / (self.seconds * self.processors)

    @property
    def wasteful(self) -> bool:
        return self.efficiency < EFFICIENCY

    def __str__(self) -> str:
        return (
            f"{self.tasks} tasks, {self.where}: {self.seconds:.1f} s on {self.processors} "
            f"processors, efficiency {self.efficiency:.2f} (bound {EFFICIENCY:g})"
            f"{'  BELOW' if self.wasteful else ''}{'' if self.passed else '  FAILED'}"
        )


def manifest(folder: Path, tasks: int) -> Path:
    """A manifest of so many tasks, beside the sample."""
    sample(folder)
    path = folder / f"{tasks}.toml"
    path.write_text(
        f"[[case]]\nfile = 'dense_edgetpu.tflite'\nreference = 'dense.tflite'\n"
        f"seeds = {list(range(tasks))}\n"
    )
    return path


def one_task(folder: Path) -> float:
    """Processor seconds of a task, LiteRT's process included, after others in the same process."""

    def seconds(count: int) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        alone(perform_each, manifest(folder, count))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # First the short ones: what is done the first time on a machine must not count as tasks.
    seconds(1)
    started = seconds(_WARM)
    return (seconds(_WARM + _MEASURED) - started) / _MEASURED


def perform_each(path: Path) -> None:
    """Perform every task of a manifest in this process."""
    compile_kernels()
    for task in tasks_of(load(path)):
        task.perform()
    end_idle()


def plan(path: Path) -> tuple[int, float, int]:
    """Tasks of a manifest, seconds, and what this process used at its peak."""
    begin = time.perf_counter()
    tasks = tasks_of(load(path))
    return len(tasks), time.perf_counter() - begin, peak_bytes()


def runs(folder: Path, path: Path, tasks: int, workers: int, each: float) -> Iterator[Run]:
    import dask
    import distributed

    cores = len(os.sched_getaffinity(0))

    def run(where: str, processors: int, perform: Callable[[Path], object]) -> Run:
        begin = time.perf_counter()
        report = perform(folder / where.split()[0].strip(","))
        seconds = time.perf_counter() - begin
        verdict = getattr(report, "verdict", None)
        return Run(where, seconds, processors, verdict is Verdict.PASS, tasks, each)

    local = f"{cores} processes"
    yield run(local, cores, lambda out: regress(path, out))
    again = regress(path, folder / local.split()[0])
    assert again.figures["taken_from_journal"] == tasks, "a second call did something again"
    with (
        dask.config.set(CLUSTER_SETTINGS),
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None
        ) as cluster,
    ):
        yield run(
            f"Dask, {workers} workers",
            min(workers, cores),
            lambda out: regress(path, out, scheduler=cluster.scheduler_address),
        )


def page(found: list[Run]) -> bytes:
    columns: dict[str, list[Any]] = {
        "name": [each.where for each in found],
        "value": [each.efficiency for each in found],
    }
    rows = [
        [each.where, each.tasks, each.seconds, 1e3 * each.each, round(each.efficiency, 3)]
        for each in found
    ]
    headings = ["where", "tasks", "seconds", "ms of a task alone", "efficiency"]
    right = [False, True, True, True, True]
    return render(
        Page(
            title="Efficiency of regressions",
            verdict=None,
            summary=f"{found[0].tasks} tasks, {machine()}.",
            sections=(
                Section(
                    "Efficiency",
                    "The share of the processors' time that tasks would have needed alone.",
                    [charts.bars(columns, unit="efficiency", label="efficiency of each way")],
                ),
                Section("Figures", parts=[Table(headings, rows, right)]),
            ),
        )
    )


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--tasks", type=positive, default=1000, metavar="N")
    options.add_argument(
        "--workers", type=positive, default=4, metavar="N", help="of Dask; 4 without"
    )
    options.add_argument("--planned", type=positive, default=100_000, metavar="N")
    options.add_argument("--page", metavar="FILE", help="write a page about it")
    chosen = options.parse_args()
    print(machine_and_load())
    for package in (
        darwinn_formats,
        darwinn_sim,
        darwinn_reference,
        darwinn_rtl,
        darwinn_testbench,
    ):
        compileall.compile_dir(package.__path__[0], quiet=1)
    failed, found = False, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count, seconds, peak = alone(plan, manifest(folder, chosen.planned))
        failed |= peak > PLAN_BYTES
        print(
            f"{count:,} tasks planned in {seconds:.1f} s, peak {peak / MIB:.0f} MiB "
            f"(bound {PLAN_BYTES // MIB})"
        )
        path = manifest(folder, chosen.tasks)
        each = one_task(folder)
        print(f"one task alone: {1e3 * each:.1f} ms of processor time")
        for run in runs(folder, path, chosen.tasks, chosen.workers, each):
            found.append(run)
            failed |= run.wasteful or not run.passed
            print(run, flush=True)
        if chosen.page:
            write_page(chosen.page, page(found))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
