"""Compiling the kernels of parts of the model, in processes side by side."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.queues import SimpleQueue
from pathlib import Path

from darwinn_sim.kernel import store
from darwinn_sim.kernel.compiled import CACHES
from darwinn_sim.kernel.compiling import watched
from darwinn_sim.kernel.pruning import prune

from darwinn_testbench.errors import InputError
from darwinn_testbench.kernels.parts import Part, exercise
from darwinn_testbench.report import Report, Row, Verdict

Progress = Callable[[int], None]
"""Called every while with the number of kernels that were begun so far."""

_GLANCE_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class KernelsRow(Row):
    """The kernels of a part: ``compiled`` now, and ``found``, which were compiled before.

    ``processor_seconds`` is what it took; ``bytes`` are those of the files, new and found.
    """

    compiled: int
    found: int
    bytes: int
    processor_seconds: float


@dataclass(frozen=True)
class Exercised:
    """What a process has compiled and loaded to exercise a part, as the lists of
    ``darwinn_sim.kernel.store``."""

    part: Part
    saved: tuple[Path, ...]
    refused: tuple[Path, ...]
    loaded: tuple[Path, ...]
    processor_seconds: float


def warm_up(
    parts: Sequence[Part] = tuple(Part),
    *,
    jobs: int | None = None,
    progress: Progress = lambda begun: None,
) -> Report[KernelsRow]:
    """Compile the kernels of ``parts`` for this processor into the cache of the user.

    What is there already is not compiled again. What the installation brings is not used. Kernels
    of other states of the sources go where they have not been used for long (``pruning``).

    Args:
        parts: which.
        jobs: how many processes may do it side by side, by default one for each core.
        progress: is called every while.

    Raises:
        InputError: the cache cannot be written.
    """
    began = time.monotonic()
    done = exercised(parts, jobs=jobs, progress=progress)
    for each in done:
        if each.refused:
            raise InputError(
                f"compiled kernels cannot be stored in {CACHES}: let NUMBA_CACHE_DIR or "
                "XDG_CACHE_HOME name another folder"
            )
    seconds = time.monotonic() - began
    rows = tuple(map(_row, done))
    compiled = sum(row.compiled for row in rows)
    told = f"{compiled:,} kernels compiled" if compiled else "nothing had to be compiled"
    pruned = prune(CACHES)
    kept = f"the cache holds {pruned.kept_bytes / 1e6:,.0f} MB"
    removed = f", {pruned.removed_bytes / 1e6:,.0f} MB of unused ones were removed"
    return Report(
        command="warm-up",
        file=str(CACHES),
        rows=rows,
        figures={
            "seconds": seconds,
            "cache_bytes": pruned.kept_bytes,
            "removed_bytes": pruned.removed_bytes,
        },
        message=f"{told}, in {seconds:.1f} s; {kept}{removed * bool(pruned.removed_bytes)}",
    )


def _row(done: Exercised) -> KernelsRow:
    return KernelsRow(
        name=done.part.value,
        verdict=Verdict.PASS,
        compiled=len(done.saved),
        found=len(done.loaded),
        bytes=sum(path.stat().st_size for path in {*done.saved, *done.loaded}),
        processor_seconds=done.processor_seconds,
    )


def exercised(
    parts: Sequence[Part],
    *,
    jobs: int | None = None,
    progress: Progress = lambda begun: None,
) -> list[Exercised]:
    """Exercise ``parts`` without installed kernels, each in a process of its own, which begins with
    the environment of this one."""
    context = multiprocessing.get_context("spawn")
    begun: SimpleQueue[int] = context.SimpleQueue()
    workers = min(jobs or len(os.sched_getaffinity(0)), len(parts))
    with ProcessPoolExecutor(
        workers, context, initializer=_begin, initargs=(begun,), max_tasks_per_child=1
    ) as pool:
        futures: list[Future[Exercised]] = [pool.submit(_exercised, part) for part in parts]
        count = 0
        waiting = set(futures)
        while waiting:
            _, waiting = wait(waiting, timeout=_GLANCE_SECONDS)
            while not begun.empty():
                count += begun.get()
                progress(count)
        return [future.result() for future in futures]


_begun: SimpleQueue[int]


def _begin(begun: SimpleQueue[int]) -> None:
    global _begun
    _begun = begun


def _exercised(part: Part) -> Exercised:
    store.use_installed = False

    def watch(before: int | None) -> None:
        if before is not None:
            _begun.put(1)

    began = time.process_time()
    with watched(watch):
        exercise(part)
    return Exercised(
        part,
        tuple(store.saved),
        tuple(store.refused),
        tuple(store.loaded),
        time.process_time() - began,
    )
