"""Who performs the tasks: processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, TimeoutError, as_completed
from typing import Any

from pebble import ProcessExpired, ProcessPool

from darwinn_testbench.regression.task import Outcome, Task, outcome_of, perform
from darwinn_testbench.report import InputError, Verdict

_CONNECT_SECONDS = 20


def perform_here(tasks: Sequence[Task], jobs: int) -> Iterator[Outcome]:
    """Outcomes as they are finished by ``jobs`` processes.

    A task that runs into its time limit, or that takes its process down, is a fault; the others go
    on.
    """
    # Not forked: LiteRT and the compiled kernels have threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPool(max_workers=jobs, context=context) as pool:
        futures: dict[Future[Outcome], Task] = {
            pool.schedule(perform, args=[task], timeout=task.case.timeout): task for task in tasks
        }
        try:
            for future in as_completed(futures):
                yield _result(future, futures[future])
        finally:
            # Also where the caller has had enough: nothing is left running behind.
            pool.stop()


def _result(future: Future[Outcome], task: Task) -> Outcome:
    try:
        return future.result()
    except TimeoutError:
        return outcome_of(task, Verdict.FAULT, f"not finished within {task.case.timeout:g} s")
    except ProcessExpired as error:
        return outcome_of(task, Verdict.FAULT, f"the process died: exit code {error.exitcode}")


def perform_on_cluster(tasks: Sequence[Task], address: str) -> Iterator[Outcome]:
    """Outcomes as they are finished by the Dask cluster whose scheduler is at ``address``.

    The workers need this package, and must see the files under the same paths.

    Raises:
        InputError: Dask is not installed, or no scheduler answers.
    """
    try:
        import distributed
    except ModuleNotFoundError:
        raise InputError(
            "--scheduler needs Dask: pip install 'darwinn-testbench[cluster]'"
        ) from None
    try:
        client = distributed.Client(address, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise InputError(f"--scheduler {address}: {error}") from None
    with client:
        futures = {
            client.submit(perform, task, key=f"darwinn-{task.key}", retries=0): task
            for task in tasks
        }
        try:
            for future in distributed.as_completed(futures):
                yield _cluster_result(future, futures[future])
        finally:
            client.cancel(list(futures))


def _cluster_result(future: Any, task: Task) -> Outcome:
    error = future.exception()
    if error is not None:
        text = " ".join(str(error).split())
        return outcome_of(task, Verdict.FAULT, f"the worker failed: {type(error).__name__}: {text}")
    outcome: Outcome = future.result()
    return outcome
