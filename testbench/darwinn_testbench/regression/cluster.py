"""Tasks that the workers of a Dask cluster perform."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import nullcontext
from itertools import islice
from typing import Any

from darwinn_formats.limits import Limits, limits

from darwinn_testbench.errors import InputError
from darwinn_testbench.regression.pool import Result, Work, perform_within
from darwinn_testbench.regression.watchdog import Watchdog

_CONNECT_SECONDS = 20

_AHEAD = 2048
"""Tasks that are handed out at a time to all workers together, which may come and go."""

_TOGETHER = 8
"""Tasks that a worker is given at once, at most: what Dask does for a future takes as long as a
tenth of a small task."""
_SHARES = 32
"""How often a worker is given some, at least, so that all of them end at about the same time."""


def perform_on_cluster(tasks: Sequence[Work[Result]], address: str) -> Iterator[Result]:
    """Outcomes as they are finished by the Dask cluster whose scheduler is at ``address``.

    The workers need this package, and must see the files under the same paths.

    Raises:
        InputError: Dask is not installed, no scheduler answers, it has no worker, or it went away.
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
        try:
            client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
        except TimeoutError:
            raise InputError(
                f"--scheduler {address}: no worker has joined it within {_CONNECT_SECONDS} s; "
                f"start one: dask worker {address} --nthreads 1"
            ) from None
        threads = max(1, sum(client.nthreads().values()))
        together = max(1, min(_TOGETHER, len(tasks) // (_SHARES * threads)))
        waiting = iter(tasks)
        futures: dict[Any, list[Work[Result]]] = {}

        def submitted(some: list[Work[Result]]) -> Any:
            # Of all that it depends on: what a cluster is asked for twice by one name, by whomever,
            # it does once.
            allowed = limits()
            text = " ".join([str(allowed), *(task.key for task in some)])
            key = f"darwinn-{hashlib.sha256(text.encode()).hexdigest()}"
            future = client.submit(_perform_each, some, allowed, key=key, retries=0)
            futures[future] = some
            return future

        def handed_out(count: int) -> list[Any]:
            ahead = islice(waiting, count)
            return [submitted(some) for some in iter(lambda: list(islice(ahead, together)), [])]

        try:
            # Results come with what is finished, those of many futures in a message.
            finished = distributed.as_completed(
                handed_out(_AHEAD), with_results=True, raise_errors=False
            )
            for batch in finished.batches():
                for future, found in batch:
                    some = futures.pop(future)
                    if future.status == "error" and len(some) > 1:
                        # Which of them it was shows when each is done by itself.
                        finished.update([submitted([task]) for task in some])
                        continue
                    finished.update(handed_out(len(some)))
                    yield from _results(future, found, some)
        except CancelledError:
            raise InputError(
                f"--scheduler {address}: the connection was lost; "
                "the same command goes on with the rest"
            ) from None
        finally:
            client.cancel(list(futures))


_WATCHDOG = Watchdog()
"""Of a worker."""


def _perform_each(tasks: list[Work[Result]], allowed: Limits) -> list[Result]:
    """What a worker does. Where a nanny starts it anew, a task that is not finished in its time
    ends it; one without is somebody's own process, and no task has a limit of time."""
    from distributed import get_worker

    has_nanny = get_worker().nanny is not None

    def perform(task: Work[Result]) -> Result:
        with _WATCHDOG.within(task.timeout) if has_nanny else nullcontext():
            return perform_within(allowed, task)

    return [perform(task) for task in tasks]


def _results(future: Any, found: Any, tasks: list[Work[Result]]) -> list[Result]:
    if future.status == "cancelled":
        raise CancelledError
    if future.status == "error":
        _, error, _ = found
        return [task.failed(_reason(error, task.timeout)) for task in tasks]
    outcomes: list[Result] = found
    return outcomes


def _reason(error: BaseException, timeout: float) -> str:
    kind = type(error).__name__
    if kind == "KilledWorker":
        return f"it took down its worker, or was not finished within {timeout:g} s"
    return f"the worker failed: {kind}: {' '.join(str(error).split())}"
