"""Who performs the tasks: processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future, TimeoutError, as_completed
from typing import Any, Protocol, TypeVar

from darwinn_formats.limits import Limits, limited, limits
from pebble import ProcessExpired, ProcessPool

from darwinn_testbench.confinement import Confinement, confine
from darwinn_testbench.errors import InputError

_CONNECT_SECONDS = 20

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

    def perform(self) -> OutcomeType:
        """Do it; whatever goes wrong is an outcome, never an exception."""

    def failed(self, message: str) -> OutcomeType:
        """What came of it where the process that did it gave no outcome."""


def perform_here(tasks: Sequence[Work[Result]], jobs: int | None = None) -> Iterator[Result]:
    """Outcomes as they are finished by ``jobs`` processes, one for each core by default.

    A task that runs into its time limit, or that takes its process down, is a failure of its own;
    the others go on.
    """
    # Not forked: LiteRT and the compiled kernels have threads.
    context = multiprocessing.get_context("spawn")
    workers = min(jobs or len(os.sched_getaffinity(0)), len(tasks))
    with ProcessPool(max_workers=workers, context=context, initializer=_begin_worker) as pool:
        futures: dict[Future[Result], Work[Result]] = {
            pool.schedule(_perform, args=[task, limits()], timeout=task.timeout): task
            for task in tasks
        }
        try:
            for future in as_completed(futures):
                yield _result(future, futures[future])
        finally:
            # Also where the caller has had enough: nothing is left running behind.
            pool.stop()


def _begin_worker() -> None:
    """Confine this process, and let it end when the one that started it has ended, even by a kill.

    Each task has a time limit of its own; a limit here would count all that a process does.
    """
    confine(Confinement(seconds=None))
    # The signal for it would come when the thread ends that has started this process.
    threading.Thread(target=_await_end_of_parent, daemon=True).start()


def _await_end_of_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)


def _perform(task: Work[Result], allowed: Limits) -> Result:
    with limited(allowed):
        return task.perform()


def _result(future: Future[Result], task: Work[Result]) -> Result:
    try:
        return future.result()
    except TimeoutError:
        return task.failed(f"not finished within {task.timeout:g} s")
    except ProcessExpired as error:
        return task.failed(f"the process died: exit code {error.exitcode}")


def perform_on_cluster(tasks: Sequence[Work[Result]], address: str) -> Iterator[Result]:
    """Outcomes as they are finished by the Dask cluster whose scheduler is at ``address``.

    The workers need this package, and must see the files under the same paths.

    Raises:
        InputError: Dask is not installed, no scheduler answers, or it went away.
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
            client.submit(_perform, task, limits(), key=f"darwinn-{task.key}", retries=0): task
            for task in tasks
        }
        try:
            for future in distributed.as_completed(futures):
                yield _cluster_result(future, futures[future])
        except CancelledError:
            raise InputError(
                f"--scheduler {address}: the connection was lost; "
                "the same command goes on with the rest"
            ) from None
        finally:
            client.cancel(list(futures))


def _cluster_result(future: Any, task: Work[Result]) -> Result:
    error = future.exception()
    if error is not None:
        text = " ".join(str(error).split())
        return task.failed(f"the worker failed: {type(error).__name__}: {text}")
    outcome: Result = future.result()
    return outcome
