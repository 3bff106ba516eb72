"""Kernels that call functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from darwinn_reference.tfrt.executor import Frame, execute
from darwinn_reference.tfrt.host import Host
from darwinn_reference.tfrt.plan import FunctionPlan
from darwinn_reference.tfrt.registry import I64, frame_kernel
from darwinn_reference.tfrt.values import (
    CHAIN,
    AsyncValue,
    ErrorValue,
    KernelError,
    Value,
    settled,
    when_ready,
)

REPEAT_BLOCK: Final = 32
"""Iterations that are started before those that run are waited for."""


def run_later(host: Host, count: int, call: Callable[[], list[Value]]) -> list[Value]:
    """Results that a queued task will give."""
    results = [AsyncValue() for _ in range(count)]

    def task() -> None:
        for result, value in zip(results, call(), strict=True):
            result.set(value)

    host.enqueue(task)
    return list(results)


@frame_kernel(
    "tfrt.call",
    "tfrt_test.invoke_sync_function.i32_i32.i32",
    "tfrt_test.invoke_sync_function.i32_i32.i32_i32",
)
def call(frame: Frame) -> list[Value]:
    """Call a function."""
    (function,) = frame.functions
    return execute(frame.host, function, frame.arguments)


@frame_kernel("tfrt.if", "tfrt.cond")
def choose(frame: Frame) -> list[Value]:
    """Call the first function if the first operand is true, else the second."""
    if_true, if_false = frame.functions
    function = if_true if frame.arguments[0] else if_false
    return execute(frame.host, function, frame.arguments[1:])


@frame_kernel("tfrt.case")
def case(frame: Frame) -> list[Value]:
    """Call the function of that number, or the last one if there is none."""
    number = frame.arguments[0]
    if not 0 <= number < len(frame.functions):
        number = len(frame.functions) - 1
    return execute(frame.host, frame.functions[number], frame.arguments[1:])


@frame_kernel("tfrt.once")
def once(frame: Frame) -> list[Value]:
    """Call a function in the first call of a request; give the same results in later ones."""
    (function,) = frame.functions
    resources = frame.host.request.resources
    if function.name not in resources:
        resources[function.name] = execute(frame.host, function, frame.arguments)
    return list(resources[function.name])


@frame_kernel("tfrt_test.do.async")
def do_async(frame: Frame) -> list[Value]:
    """Call a function in a queued task."""
    (function,) = frame.functions
    host, arguments = frame.host, frame.arguments
    return run_later(host, frame.count, lambda: execute(host, function, arguments))


# --- repeat ----------------------------------------------------------------------------------


@frame_kernel("tfrt.repeat.i32")
def repeat(frame: Frame) -> list[Value]:
    """Call a function a number of times, each time with the results of the last."""
    (function,) = frame.functions
    count, *arguments = frame.arguments
    results = frame.later()
    _repeat_block(frame.host, function, 0, count, arguments, results)
    return [settled(result) for result in results]


def _repeat_block(
    host: Host,
    function: FunctionPlan,
    start: int,
    count: int,
    values: list[Value],
    results: list[AsyncValue],
) -> None:
    while True:
        # Without values there is nothing to wait for, and all iterations are one block.
        end = min(start + REPEAT_BLOCK, count) if values else count
        for _ in range(start, end):
            if host.request.cancelled is not None:
                _give(results, [host.request.cancelled] * len(results))
                return
            values = execute(host, function, values)
        if end >= count:
            _give(results, values)
            return
        first = values[0]
        if first.__class__ is AsyncValue and not first.ready:
            first.then(_then(_repeat_block, host, function, end, count, values, results))
            return
        start = end


def _then(call: Callable[..., None], *arguments: Any) -> Callable[[Value], None]:
    return lambda _: call(*arguments)


def _give(results: list[AsyncValue], values: list[Value]) -> None:
    for result, value in zip(results, values, strict=True):
        result.set(value)


# --- while -----------------------------------------------------------------------------------


@frame_kernel("tfrt.while", attributes=(I64,))
def loop(frame: Frame) -> list[Value]:
    """Call a function as long as the last of its results is true, with the others.

    With more than one parallel iteration, each iteration is a queued task.
    """
    (function,) = frame.functions
    (parallel,) = frame.attributes
    condition, *values = frame.arguments
    results = frame.later()
    _While(frame.host, function, parallel > 1, results).go_on(condition, values)
    return [settled(result) for result in results]


class _While:
    def __init__(
        self, host: Host, function: FunctionPlan, queued: bool, results: list[AsyncValue]
    ) -> None:
        self.host = host
        self.function = function
        self.queued = queued
        self.results = results

    def go_on(self, condition: Value, values: list[Value]) -> None:
        while True:
            if condition.__class__ is ErrorValue:
                # Nothing of the loop may be left running when the results become errors.
                errors = [condition] * len(self.results)
                when_ready(values, partial(_give, self.results, errors))
                return
            if not condition:
                _give(self.results, values)
                return
            if self.queued:
                self.host.enqueue(partial(self.iterate, values))
                return
            *values, condition = execute(self.host, self.function, values)
            if condition.__class__ is AsyncValue and not condition.ready:
                self.wait(condition, values)
                return
            condition = settled(condition)

    def iterate(self, values: list[Value]) -> None:
        *values, condition = execute(self.host, self.function, values)
        if condition.__class__ is AsyncValue and not condition.ready:
            self.wait(condition, values)
        else:
            self.go_on(settled(condition), values)

    def wait(self, condition: AsyncValue, values: list[Value]) -> None:
        host = self.host
        condition.then(lambda value: host.enqueue(lambda: self.go_on(value, values)))


# --- parallel --------------------------------------------------------------------------------


@frame_kernel("tfrt.parallel_for.i32", "tfrt.parallel_call.i32", results=1)
def parallel(frame: Frame) -> list[Value]:
    """Call a function with the start and end of every block of a range.

    Halves of the range are queued until one block is left, which runs at once.
    """
    (function,) = frame.functions
    start, end, block, *shared = frame.arguments
    if block <= 0:
        raise KernelError("Illegal block size")
    if end <= start:
        return [CHAIN]
    done = AsyncValue()
    ranges = _Ranges(frame.host, function, (start, end, block), shared, done)
    ranges.run(0, ranges.blocks)
    return [settled(done)]


class _Ranges:
    def __init__(
        self,
        host: Host,
        function: FunctionPlan,
        limits: tuple[int, int, int],
        shared: list[Value],
        done: AsyncValue,
    ) -> None:
        self.host = host
        self.function = function
        self.start, self.end, self.block = limits
        self.shared = shared
        self.done = done
        self.blocks = -(-(self.end - self.start) // self.block)
        self.pending = self.blocks
        self.error: ErrorValue | None = None

    def run(self, first: int, last: int) -> None:
        while last - first > 1:
            middle = first + (last - first) // 2
            self.enqueue(middle, last)
            last = middle
        begin = self.start + first * self.block
        end = min(self.end, begin + self.block)
        results = execute(self.host, self.function, [begin, end, *self.shared])
        when_ready(results, lambda: self.finished(results))

    def enqueue(self, first: int, last: int) -> None:
        self.host.enqueue(lambda: self.run(first, last))

    def finished(self, results: list[Value]) -> None:
        for result in map(settled, results):
            if result.__class__ is ErrorValue:
                self.error = result
        self.pending -= 1
        if self.pending == 0:
            self.done.set(self.error or CHAIN)
