"""Tasks that processes of this machine perform; those of a Dask cluster are in ``cluster``."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, TimeoutError, wait
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from itertools import islice
from typing import Protocol, TypeVar

from darwinn_formats.limits import Limits, limited, limits
from darwinn_sim.accelerator import compile_kernels
from pebble import ProcessExpired, ProcessPool
from threadpoolctl import threadpool_limits

from darwinn_testbench.confinement import Confinement, confine

_AHEAD = 4
"""Tasks for each process that are handed out at a time: the next one is there when one is done."""

_NO_LIMIT: AbstractContextManager[object] = nullcontext()

OutcomeType = TypeVar("OutcomeType", covariant=True)
Result = TypeVar("Result")


class Work(Protocol[OutcomeType]):
    """A task that another process can do, from which it travels as a pickle."""

    @property
    def key(self) -> str:
        """What tells it from all other tasks."""

    @property
    def timeout(self) -> float:
        """Seconds that it may take."""

    @property
    def lock(self) -> AbstractContextManager[object]:
        """What it holds meanwhile, in a process with several threads."""

    def prepare(self) -> None:
        """Do what a process does once, as compiling kernels."""

    def perform(self) -> OutcomeType:
        """Do it; whatever goes wrong is an outcome, never an exception."""

    def failed(self, message: str) -> OutcomeType:
        """What came of it where the process that did it gave no outcome."""


class ChipWork:
    """What most tasks have: their kernels are compiled before, and they do not meet."""

    @property
    def lock(self) -> AbstractContextManager[object]:
        """None."""
        return nullcontext()

    def prepare(self) -> None:
        """Compile kernels."""
        compile_kernels()


def perform_here(tasks: Sequence[Work[Result]], jobs: int | None = None) -> Iterator[Result]:
    """Outcomes as they are finished by ``jobs`` processes, one for each core by default.

    Few tasks are handed out at a time, so that however many there are take no memory.

    A task that runs into its time limit, or that takes its process down, is a failure of its own;
    the others go on.
    """
    # Not forked: LiteRT and the compiled kernels have threads.
    context = multiprocessing.get_context("spawn")
    workers = min(jobs or len(os.sched_getaffinity(0)), len(tasks))
    with ProcessPool(max_workers=workers, context=context, initializer=_begin_worker) as pool:
        waiting = iter(tasks)
        futures: dict[Future[Result], Work[Result]] = {}

        def hand_out(count: int) -> None:
            for task in islice(waiting, count):
                future = pool.schedule(perform_within, args=[limits(), task], timeout=task.timeout)
                futures[future] = task

        try:
            hand_out(_AHEAD * workers)
            while futures:
                done, _ = wait(futures, return_when=FIRST_COMPLETED)
                hand_out(len(done))
                for future in done:
                    yield _result(future, futures.pop(future))
        finally:
            # Also where the caller has had enough: nothing is left running behind.
            pool.stop()


def _begin_worker() -> None:
    """Confine this process, and let it end when the one that started it has ended, even by a kill.

    Each task has a time limit of its own; a limit here would count all that a process does.
    """
    confine(Confinement(seconds=None))
    # There is a process for each core: threads of NumPy's matrices only get in the way. What is not
    # loaded yet cannot be told.
    import_module("numpy")
    threadpool_limits(1)
    # The signal for it would come when the thread ends that has started this process.
    threading.Thread(target=_await_end_of_parent, daemon=True).start()


def _await_end_of_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)


def perform_within(
    allowed: Limits, task: Work[Result], limit: AbstractContextManager[object] = _NO_LIMIT
) -> Result:
    """What comes of a task within limits, which are the other process's own otherwise; ``limit`` is
    that of time, which what comes before the task takes nothing of.
    """
    with limited(allowed):
        task.prepare()
        with task.lock, limit:
            return task.perform()


def _result(future: Future[Result], task: Work[Result]) -> Result:
    try:
        return future.result()
    except TimeoutError:
        return task.failed(f"not finished within {task.timeout:g} s")
    except ProcessExpired as error:
        return task.failed(f"the process died: exit code {error.exitcode}")
