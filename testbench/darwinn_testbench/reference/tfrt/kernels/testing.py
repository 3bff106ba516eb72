"""Kernels that tests of the runtime use: queued work, errors, resources, traced values."""

from __future__ import annotations

import os
import random
import time
from datetime import datetime
from typing import Any, Final, TextIO

from darwinn_formats.tfrt import CallSite, Fused, Location, NameLocation

from darwinn_testbench.reference.tfrt.executor import Frame, Host
from darwinn_testbench.reference.tfrt.kernels.control_flow import run_later
from darwinn_testbench.reference.tfrt.registry import (
    AGGREGATE,
    I1,
    I32,
    I64,
    STRING,
    frame_kernel,
    kernel,
)
from darwinn_testbench.reference.tfrt.values import (
    CANCELLED,
    CHAIN,
    AsyncValue,
    Chain,
    ErrorValue,
    KernelError,
    Value,
)

BAD: Final = "something bad happened"
BAD_LATER: Final = "something bad happened asynchronously"
CANCEL_MESSAGE: Final = "Cancelled"
_MICROSECOND: Final = 1e-6

# --- queued work -----------------------------------------------------------------------------


@frame_kernel("tfrt_test.async_add.i32", results=1)
def async_add(frame: Frame) -> list[Value]:
    """The sum, by a queued task."""
    first, second = frame.arguments[:2]
    half = 1 << 31
    total = (first + second + half) % (2 * half) - half
    return run_later(frame.host, 1, lambda: [total])


@frame_kernel("tfrt_test.async_copy.i32", "tfrt_test.async_copy_2.i32", results=1)
def async_copy(frame: Frame) -> list[Value]:
    """The same value, by a queued task."""
    value = frame.arguments[0]
    return run_later(frame.host, 1, lambda: [value])


@frame_kernel("tfrt_test.async_copy.with_delay.i32", results=1)
def async_copy_with_delay(frame: Frame) -> list[Value]:
    """The same value, by a queued task that sleeps 1 to 10 ms."""
    value, host = frame.arguments[0], frame.host

    def copy() -> list[Value]:
        host.sleep(_delay())
        return [value]

    return run_later(host, 1, copy)


def _delay() -> float:
    return random.randint(1, 10) * 1e-3


@frame_kernel("tfrt_test.async_constant.i1", attributes=(I1,), results=1)
@frame_kernel("tfrt_test.async_constant.i32", attributes=(I32,), results=1)
def async_constant(frame: Frame) -> list[Value]:
    """A constant, by a queued task."""
    (value,) = frame.attributes
    return run_later(frame.host, 1, lambda: [value])


@kernel("tfrt_test.copy.with_delay.i32", "tfrt_test.copy.with_delay.i64", host=True)
def copy_with_delay(host: Host, value: int) -> int:
    """The same value after 1 to 10 ms."""
    host.sleep(_delay())
    return value


@frame_kernel("tfrt_test.usleep", results=0)
def usleep(frame: Frame) -> list[Value]:
    """Sleep in a queued task, then print."""
    host, (microseconds, *_) = frame.host, frame.arguments
    host.enqueue(lambda: _sleep(host, microseconds))
    return []


@frame_kernel("tfrt_test.blocking.usleep", results=1)
def blocking_usleep(frame: Frame) -> list[Value]:
    """Sleep in a queued task, then print, then give the chain."""
    host, (microseconds, *_) = frame.host, frame.arguments

    def sleep() -> list[Value]:
        _sleep(host, microseconds)
        return [CHAIN]

    return run_later(host, 1, sleep)


def _sleep(host: Host, microseconds: int) -> None:
    host.sleep(max(0, microseconds) * _MICROSECOND)
    host.print(f"Slept for {microseconds} microseconds")


@kernel("tfrt_test.get_thread_id", host=True)
def get_thread_id(host: Host, _: Chain) -> int:
    """A small number for the thread; the first one that asks is 0."""
    return host.thread_id()


# --- values ----------------------------------------------------------------------------------


@kernel("tfrt_test.count3.i32", results=3)
def count3_i32(value: int) -> tuple[int, ...]:
    """The next three numbers."""
    return _next_three(value, 32)


@kernel("tfrt_test.count3.i64", results=3)
def count3_i64(value: int) -> tuple[int, ...]:
    """The next three numbers."""
    return _next_three(value, 64)


def _next_three(value: int, bits: int) -> tuple[int, ...]:
    half = 1 << bits - 1
    return tuple((value + step + half) % (2 * half) - half for step in (1, 2, 3))


@frame_kernel("tfrt_test.identity")
def identity(frame: Frame) -> list[Value]:
    """The operands after the chain."""
    return frame.arguments[1:]


@frame_kernel("tfrt_test.multi_arg_result", "tfrt_test.make_indirect")
def forward(frame: Frame) -> list[Value]:
    """The operands."""
    return list(frame.arguments)


@frame_kernel("tfrt_test.share_to_two", results=2)
def share_to_two(frame: Frame) -> list[Value]:
    """The operand, twice."""
    return [frame.arguments[0]] * 2


@kernel("tfrt_test.as_chain")
def as_chain(*_: Any) -> Chain:
    """A chain when everything is there."""
    return CHAIN


@kernel("tfrt_test.get_string", attributes=(STRING,))
def get_string(value: str) -> str:
    """A constant text."""
    return value


@kernel("tfrt_test.append_string")
def append_string(first: str, second: str) -> str:
    """Both texts."""
    return first + second


@kernel("tfrt_test.flat", attributes=(AGGREGATE,), results=4)
def flat(value: list[Any]) -> tuple[Any, ...]:
    """Elements of ``[[s, [i, j]], [f]]``."""
    (text, (first, second)), (number,) = value
    return text, first, second, number


@kernel("tfrt_test.async_value_get")
def async_value_get() -> str:
    """What the test of class hierarchies of values gives."""
    return "base1:base2:final_class:3"


@kernel("tfrt_test.async_value_ref")
def async_value_ref() -> str:
    """What the test of references to values gives."""
    return "available:2;unavailable;(3);available:3;unavailable;available:4"


@frame_kernel("tfrt_test.get_uniqueness")
def get_uniqueness(frame: Frame) -> list[Value]:
    """Whether the reference to each operand is the only one."""
    return [frame.is_unique(number) for number in range(len(frame.arguments))]


# --- errors ----------------------------------------------------------------------------------


@frame_kernel("tfrt_test.fail")
def fail(frame: Frame) -> list[Value]:
    """An error."""
    return [frame.error(BAD)] * frame.count


@frame_kernel("tfrt_test.error_chain")
def error_chain(frame: Frame) -> list[Value]:
    """An error in the place of a chain."""
    return [frame.error("error chain")] * frame.count


@frame_kernel("tfrt_test.report_error_async")
def report_error_async(frame: Frame) -> list[Value]:
    """An error, by a queued task."""
    count = frame.count
    return run_later(frame.host, count, lambda: [frame.error(BAD_LATER)] * count)


@frame_kernel(
    "tfrt_test.report_error_concrete_async", "tfrt_test.report_error_indirect_async", results=1
)
def report_error_unless_zero(frame: Frame) -> list[Value]:
    """0 for 0, else an error, by a queued task."""
    value = frame.arguments[0]
    return run_later(frame.host, 1, lambda: [0 if value == 0 else frame.error(BAD_LATER)])


@frame_kernel("tfrt_test.partial_fail", results=2)
def partial_fail(frame: Frame) -> list[Value]:
    """A number and an error."""
    return [1, frame.error(BAD)]


@kernel("tfrt_test.cancel", host=True, results=2)
def cancel(host: Host, chain: Chain) -> tuple[int, Chain]:
    """Cancel the request: kernels that have not run yet will not run."""
    host.request.cancelled = ErrorValue(CANCEL_MESSAGE, CANCELLED)
    return 0, chain


@frame_kernel("tfrt_test.unique_loc", attributes=(STRING,), results=1)
def unique_loc(frame: Frame) -> list[Value]:
    """An error when kernels of two names have one location."""
    (name,) = frame.attributes
    offset = frame.kernel.location_offset
    if frame.host.unique_locations.setdefault(offset, name) != name:
        return [frame.error(f"duplicate locations {offset}")]
    return [CHAIN]


# --- counters and resources ------------------------------------------------------------------


class Counter:
    """A number that several functions share."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


@kernel("tfrt_test.atomic.create.i32")
def create_counter() -> Counter:
    """A counter of 0."""
    return Counter()


@kernel("tfrt_test.atomic.inc.i32")
def increment_counter(counter: Counter, chain: Chain) -> Chain:
    """Count."""
    counter.value += 1
    return chain


@kernel("tfrt_test.atomic.add.i32")
def add_to_counter(counter: Counter, value: int, chain: Chain) -> Chain:
    """Add a number."""
    counter.value += value
    return chain


@kernel("tfrt_test.atomic.get.i32", results=2)
def get_counter(counter: Counter, chain: Chain) -> tuple[int, Chain]:
    """The number."""
    return counter.value, chain


class Resource:
    """A resource that says when it goes."""

    __slots__ = ("_output",)

    def __init__(self, output: TextIO) -> None:
        self._output: TextIO | None = output

    def destroy(self) -> None:
        """Free it now; once."""
        if self._output is not None:
            self._output.write("Destroyed TestResource\n")
            self._output = None

    def __del__(self) -> None:
        self.destroy()


@kernel("tfrt_test.allocate_resource", host=True, results=2)
def allocate_resource(host: Host, chain: Chain) -> tuple[Resource, Chain]:
    """A resource."""
    host.print("Allocated TestResource")
    return Resource(host.output), chain


@kernel("tfrt_test.deallocate_resource", host=True)
def deallocate_resource(host: Host, resource: Resource, chain: Chain) -> Chain:
    """Free a resource."""
    resource.destroy()
    host.print("tfrt_test.deallocate_resource done")
    return chain


@kernel("tfrt_test.use_sample_shared_context", host=True, results=2)
def use_sample_shared_context(host: Host, chain: Chain) -> tuple[str, Chain]:
    """Name of the one context that all calls share."""
    number = host.shared.setdefault("sample_shared_context", 0)
    return f"sample_shared_context{number}", chain


@kernel("tfrt_test.memory_leak_one_int32", host=True, results=0)
def leak(host: Host) -> None:
    """Lose four bytes."""
    host.leaked.append(4)


# --- prints ----------------------------------------------------------------------------------


@kernel("tfrt_test.print_hello", host=True)
def print_hello(host: Host, chain: Chain) -> Chain:
    """A greeting."""
    host.print("hello host executor!")
    return chain


@kernel("tfrt_test.print_string", host=True)
def print_string(host: Host, text: str, chain: Chain) -> Chain:
    """A text."""
    host.print(f"string = {text}")
    return chain


@kernel("tfrt_test.print_bool", host=True)
def print_bool(host: Host, chain: Chain, value: bool) -> Chain:
    """``true`` or ``false``."""
    host.print("true" if value else "false")
    return chain


@kernel("tfrt_test.test_cost", host=True, attributes=(I64,))
def test_cost(host: Host, number: int, _: Any) -> int:
    """Print the attribute; gives 0."""
    host.print(f"id: {number}")
    return 0


@frame_kernel("tfrt_test.print_debug_info", results=1)
def print_debug_info(frame: Frame) -> list[Value]:
    """Name of the location of the kernel."""
    frame.host.print(debug_name(frame.kernel.location) or "Kernel has no debug info")
    return [CHAIN]


def debug_name(location: Location | None) -> str:
    """What locations say to a person: names, those of fused ones joined, that of a callee."""
    match location:
        case NameLocation(name):
            return name
        case Fused(locations):
            return "".join(entry.name for entry in locations if isinstance(entry, NameLocation))
        case CallSite(callee):
            return debug_name(callee)
        case _:
            return ""


@kernel("tfrt_test.logging", host=True)
def log(host: Host, text: str, chain: Chain) -> Chain:
    """Six lines of log."""
    for condition in ("", "_IF"):
        for level in ("INFO", "WARNING", "ERROR"):
            stamp = datetime.now().strftime("%m%d %H:%M:%S.%f")
            what = f"TFRT_LOG{condition}({level}{', true' if condition else ''})"
            origin = f"{os.getpid():>7} testing.py:1] "
            host.log.write(f"{level[0]}{stamp} {origin}from {what}: {text}\n")
    return chain


# --- values whose life is traced -------------------------------------------------------------


class TracedValue:
    """A number that says when it goes."""

    __slots__ = ("_output", "number")

    def __init__(self, number: int, output: TextIO) -> None:
        self.number = number
        self._output = output
        # A kernel makes its result, which then moves to where it stays.
        output.write(f"constructed vt.value({number})\nmove constructed vt.value({number})\n")

    def __del__(self) -> None:
        self._output.write(f"destroyed vt.value({self.number})\n")


@kernel("vt.constant", host=True, attributes=(I32,))
def traced_constant(host: Host, number: int) -> TracedValue:
    """A traced number."""
    return TracedValue(number, host.output)


@kernel("vt.add", host=True)
def traced_add(host: Host, first: TracedValue, second: TracedValue) -> TracedValue:
    """The traced sum."""
    return TracedValue(first.number + second.number, host.output)


@kernel("vt.print", host=True)
def traced_print(host: Host, value: TracedValue, chain: Chain) -> Chain:
    """Print a traced number."""
    host.print(f"print vt_value({value.number})")
    return chain


# --- the tutorial ----------------------------------------------------------------------------


@kernel("tfrt_tutorial.create_coordinate")
def create_coordinate(x: int, y: int) -> tuple[int, int]:
    """A pair."""
    return x, y


@kernel("tfrt_tutorial.print_coordinate", host=True)
def print_coordinate(host: Host, coordinate: tuple[int, int], chain: Chain) -> Chain:
    """Print a pair."""
    host.print(f"({coordinate[0]}, {coordinate[1]})")
    return chain


# --- benchmark -------------------------------------------------------------------------------

_BENCHMARK_ATTRIBUTES: Final = (I64, I64, STRING, I64)
_PERCENTILES: Final = (("Min", 0.0), ("50%", 0.5), ("95%", 0.95), ("99%", 0.99))


@frame_kernel("tfrt_test.benchmark", attributes=_BENCHMARK_ATTRIBUTES, results=1)
def benchmark(frame: Frame) -> list[Value]:
    """Call a function again and again, until either limit is reached; print the times."""
    duration, maximum, name, warm_up = frame.attributes
    for _ in range(warm_up):
        error = _benchmark_call(frame)
        if error is not None:
            return [error]
    walls: list[int] = []
    processor: list[int] = []
    begin = time.perf_counter_ns()
    limit = begin + duration * 1_000_000_000
    while len(walls) < maximum and (not walls or time.perf_counter_ns() < limit):
        wall, used = time.perf_counter_ns(), time.process_time_ns()
        error = _benchmark_call(frame)
        if error is not None:
            return [error]
        walls.append(time.perf_counter_ns() - wall)
        processor.append(time.process_time_ns() - used)
    total = time.perf_counter_ns() - begin
    lines = {"Duration(ns)": total, "Count": len(walls)}
    for label, times in (("Time", sorted(walls)), ("CPU", sorted(processor))):
        for text, part in _PERCENTILES:
            at = min(int(len(times) * part), len(times) - 1)
            lines[f"{label} {text}(ns)"] = times[at] if times else 0
    lines["CPU utilization(percent)"] = round(100 * sum(processor) / max(1, sum(walls)))
    for text, value in lines.items():
        frame.host.print(f"BM:{name}:{text}: {value}")
    return [CHAIN]


def _benchmark_call(frame: Frame) -> ErrorValue | None:
    (function,) = frame.functions
    for value in frame.host.wait(frame.host.execute(function, list(frame.arguments))):
        if isinstance(value, ErrorValue):
            return value
    return None


# --- native functions ------------------------------------------------------------------------


def native_add(first: int, second: int) -> int:
    """The sum."""
    return first + second


def native_async_add(host: Host, first: int, second: int) -> AsyncValue:
    """The sum, by a queued task."""
    (later,) = run_later(host, 1, lambda: [first + second])
    assert isinstance(later, AsyncValue)
    return later


def native_sink(*_: Any) -> None:
    """Nothing."""


def native_async_sink(host: Host, *_: Any) -> AsyncValue:
    """A chain, by a queued task."""
    (later,) = run_later(host, 1, lambda: [CHAIN])
    assert isinstance(later, AsyncValue)
    return later


def native_error() -> int:
    """An error that has no diagnostic."""
    raise KernelError(BAD)
