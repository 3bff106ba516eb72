"""What all functions of a file share: the queue of tasks, the output, the request that runs."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TextIO

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.limits import SECONDS, Clock, limits
from darwinn_formats.tfrt import Location

from darwinn_reference.tfrt.plan import FunctionPlan, KernelPlan
from darwinn_reference.tfrt.values import ErrorValue, Value, is_there, settled

MAXIMUM_CALLS_OF_A_RUN: Final = 10_000_000
"""Calls of functions in one run: a function has no loops, so that only calls can go on forever."""
_RECURSION_LIMIT: Final = 5000

WRONG_VALUES: Final = (
    TypeError,
    AttributeError,
    ValueError,
    IndexError,
    OverflowError,
    MemoryError,
)
"""What Python raises when a kernel gets values of other types than it is made for."""

Task = Callable[[], None]
KernelTap = Callable[[FunctionPlan, KernelPlan, list[Value], list[Value]], list[Value]]
"""Sees results and operands of a kernel that has run; gives results that take their place."""


class Watch(Protocol):
    """Sees kernels and native functions while they run."""

    def begin(self, plan: FunctionPlan, kernel: KernelPlan) -> None:
        """A kernel starts now."""
        ...

    def end(
        self, kernel: KernelPlan, results: list[Value], operands: list[Value], serial: int
    ) -> None:
        """The kernel is done, in the call of its function with this number."""
        ...

    def native(self, plan: FunctionPlan, values: list[Value]) -> Any:
        """Call a native function."""
        ...


@dataclass(slots=True)
class Diagnostic:
    """An error that a kernel reported."""

    message: str
    location: Location | None


@dataclass(slots=True)
class Request:
    """One run of a function from outside: its cancellation and its resources."""

    cancelled: ErrorValue | None = None
    resources: dict[str, list[Value]] = field(default_factory=dict)


class Host:
    """What all functions share: the queue of tasks, the output, the request that runs.

    ``workers`` is None for the single-threaded queue; otherwise tasks count as run by that many
    threads in turn, though they run one after another all the same, first in first out.

    Attributes:
        output: what kernels print.
        log: what kernels log.
        sleep: waits for seconds.
        diagnostics: errors that kernels reported.
        leaked: sizes of allocations that are never freed.
        maximum_calls: of functions in one request, above which it is given up.
    """

    def __init__(
        self,
        output: TextIO | None = None,
        log: TextIO | None = None,
        workers: int | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.output = sys.stdout if output is None else output
        self.log = sys.stderr if log is None else log
        self.workers = workers
        self.sleep = sleep
        self.tap: KernelTap | None = None
        self.watch: Watch | None = None
        self.request = Request()
        self.diagnostics: list[Diagnostic] = []
        self.leaked: list[int] = []
        self.unique_locations: dict[int, str] = {}
        self.shared: dict[str, Any] = {}
        self.calls = 0
        self.calls_of_run = 0
        self.maximum_calls = MAXIMUM_CALLS_OF_A_RUN
        self.continuations = 0
        self._clock, self._slept = Clock(), 0.0
        self.thread = 0
        self.thread_ids: dict[int, int] = {}
        self._tasks: deque[Task] = deque()
        self._tasks_run = 0

    def look(self) -> None:
        """ExecutionError if the run has taken more time or memory than it may."""
        if passed := self._clock.passed():
            raise ExecutionError(f"the run has not ended after {passed}")

    def wait_for(self, seconds: float) -> None:
        """Sleep; ExecutionError for longer than a run may compute."""
        self._slept += seconds
        if self._slept > limits().seconds:
            raise ExecutionError(f"it sleeps for {self._slept:g} s, more than {SECONDS}")
        self.sleep(seconds)

    def print(self, text: str) -> None:
        """Print a line."""
        self.output.write(f"{text}\n")

    def enqueue(self, task: Task) -> None:
        """Run a task later."""
        self._tasks.append(task)

    def report(self, message: str, location: Location | None) -> ErrorValue:
        """An error value, with a diagnostic."""
        self.diagnostics.append(Diagnostic(message, location))
        return ErrorValue(message)

    def thread_id(self) -> int:
        """Small number of the thread that runs."""
        return self.thread_ids.setdefault(self.thread, len(self.thread_ids))

    def run_tasks(self, until: Callable[[], bool] | None = None) -> None:
        """Run queued tasks, all or until something is the case."""
        while self._tasks and not (until is not None and until()):
            task = self._tasks.popleft()
            self.look()
            if self.workers is not None:
                self.thread = 1 + self._tasks_run % self.workers
                self._tasks_run += 1
            try:
                task()
            finally:
                self.thread = 0

    def wait(self, values: list[Value]) -> list[Value]:
        """The values, when all are there.

        Raises:
            ExecutionError: when nothing is left that could give them.
        """
        self.run_tasks(lambda: all(is_there(value) for value in values))
        if not all(is_there(value) for value in values):
            raise ExecutionError("a result never becomes available: the function is stuck")
        return [settled(value) for value in values]

    @contextmanager
    def session(self) -> Iterator[None]:
        """A new request; what is still queued at the end runs before it ends.

        Raises:
            ExecutionError: a queued task, or who prints a result, gets a value of a wrong type.
        """
        self.request = Request()
        self._clock.restart()
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
        try:
            with np.errstate(all="ignore"):
                yield
                self.run_tasks()
        except WRONG_VALUES as error:
            raise ExecutionError(f"a value is of another type than its use: {error}") from error
        finally:
            self._tasks.clear()
            self.calls = self.calls_of_run = self.continuations = 0
            self.request = Request()
            sys.setrecursionlimit(limit)
