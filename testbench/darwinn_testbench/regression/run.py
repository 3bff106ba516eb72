"""A regression from manifest to report: what is finished already is taken from the journal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec
from darwinn_sim.accelerator import compile_kernels
from darwinn_sim.isa import grading

from darwinn_testbench.regression.cluster import perform_on_cluster
from darwinn_testbench.regression.manifest import load
from darwinn_testbench.regression.pool import perform_here
from darwinn_testbench.regression.resume import resume
from darwinn_testbench.regression.task import Outcome, Task, runs_on_chip, tasks_of
from darwinn_testbench.report import Report, Verdict
from darwinn_testbench.report.progress import ProgressCallback, silent


def regress(
    manifest: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    fresh: bool = False,
    assumptions: bool = True,
    progress: ProgressCallback = silent,
) -> Report[Outcome]:
    """Perform every task of ``manifest`` that is not finished yet, and report all of them.

    A task for whose outcome the machine was to blame (``Outcome.conclusive``) is not finished.

    Args:
        manifest: path of the TOML file (docs/ci.md).
        folder: where the journal is kept; with the same folder a later call goes on.
        jobs: processes of this machine; one for each core by default.
        scheduler: address of a Dask scheduler that gets the work instead.
        fresh: do everything again.
        assumptions: False refuses assumed values in every case.
        progress: called after each task.

    Raises:
        InputError: the manifest is not valid, the journal is in use, or no scheduler answers.
        OSError: a file cannot be read or written.
    """
    cases = load(manifest)
    if not assumptions:
        cases = tuple(msgspec.structs.replace(case, assumptions=False) for case in cases)
    tasks = tasks_of(cases)
    perform = (
        partial(_perform_here, jobs=jobs)
        if scheduler is None
        else partial(perform_on_cluster, address=scheduler)
    )
    rows, known = resume(
        tasks,
        Outcome,
        folder,
        perform,
        fresh=fresh,
        again=lambda outcome: not outcome.conclusive,
        progress=progress,
    )
    passed = sum(row.verdict.passed for row in rows)
    ran = sum(row.verdict is Verdict.RAN for row in rows)
    return Report(
        command="regress",
        file=os.fspath(manifest),
        rows=rows,
        figures={
            "tasks": len(tasks),
            "passed": passed,
            "ran": ran,
            "taken_from_journal": known,
            "assumptions": grading.merged(row.assumptions for row in rows),
            "seconds": round(sum(row.seconds for row in rows), 3),
        },
        message=f"{passed} of {len(tasks)} tasks pass"
        + (f", {ran} ran and were compared with nothing" if ran else "")
        + (f", {known} of them done earlier" if known else ""),
    )


def _perform_here(tasks: Sequence[Task], jobs: int | None) -> Iterator[Outcome]:
    if any(map(runs_on_chip, tasks)):
        # Here and once, so that the processes find the kernels in the cache.
        compile_kernels()
    return perform_here(tasks, jobs)
