"""Tasks that the workers of a Dask cluster perform."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from itertools import islice
from typing import Any

from darwinn_formats.limits import Limits, limits

from darwinn_testbench.errors import InputError
from darwinn_testbench.regression.deadline import Late, deadline
from darwinn_testbench.regression.pool import Result, Work, perform_within
from darwinn_testbench.regression.program import program

_PROGRAM = program()
"""As it was when this process has begun with it, whatever becomes of its sources."""

_CONNECT_SECONDS = 20

_AHEAD = 2048
"""Tasks that are handed out at a time to all workers together, which may come and go."""

_TOGETHER = 8
"""Tasks that a worker is given at once, at most: what Dask does for a future takes as long as a
tenth of a small task."""
_SHARES = 32
"""How often a worker is given some, at least, so that all of them end at about the same time."""


class AnotherProgram(Exception):
    """A worker runs another state of this program, or of the libraries that it computes with."""


def perform_on_cluster(tasks: Sequence[Work[Result]], address: str) -> Iterator[Result]:
    """Outcomes as they are finished by the Dask cluster whose scheduler is at ``address``.

    The workers need this package, and must see the files under the same paths.

    Raises:
        InputError: Dask is not installed, no scheduler answers, it has no worker, or one that runs
            another program, or it went away.
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
        again: set[str] = set()

        def submitted(some: list[Work[Result]]) -> Any:
            # Of all that it depends on: what a cluster is asked for twice by one name, by whomever,
            # it does once.
            allowed = limits()
            keys = _keys(some)
            text = " ".join([str(allowed), str(again.issuperset(keys)), *keys])
            key = f"darwinn-{hashlib.sha256(text.encode()).hexdigest()}"
            future = client.submit(_perform_each, some, allowed, _PROGRAM, key=key, retries=0)
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
                    if future.status == "error" and not again.issuperset(_keys(some)):
                        # Which of them it was shows when each is done by itself, once more: with a
                        # worker dies what waits for it, too.
                        again.update(_keys(some))
                        finished.update([submitted([task]) for task in some])
                        continue
                    finished.update(handed_out(len(some)))
                    yield from _results(future, found, some)
        except AnotherProgram:
            raise InputError(
                f"--scheduler {address}: a worker runs another state of this program, or has other "
                "libraries; start the workers anew, with what is installed here"
            ) from None
        except CancelledError:
            raise InputError(
                f"--scheduler {address}: the connection was lost; "
                "the same command goes on with the rest"
            ) from None
        finally:
            client.cancel(list(futures))


def _keys(tasks: list[Work[Result]]) -> list[str]:
    return [task.key for task in tasks]


def _perform_each(tasks: list[Work[Result]], allowed: Limits, asked: str) -> list[Result]:
    """What a worker does for a client that runs the program ``asked``."""
    if asked != _PROGRAM:
        raise AnotherProgram
    return [_perform(task, allowed) for task in tasks]


def _perform(task: Work[Result], allowed: Limits) -> Result:
    try:
        return perform_within(allowed, task, deadline(task.timeout))
    except Late:
        return task.failed(f"not finished within {task.timeout:g} s")


def _results(future: Any, found: Any, tasks: list[Work[Result]]) -> list[Result]:
    if future.status == "cancelled":
        raise CancelledError
    if future.status == "error":
        _, error, _ = found
        if isinstance(error, AnotherProgram):
            raise error
        text = " ".join(str(error).split())
        return [task.failed(f"the worker failed: {type(error).__name__}: {text}") for task in tasks]
    outcomes: list[Result] = found
    return outcomes
