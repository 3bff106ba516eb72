"""Kernels that tests of the runtime use: queued work, errors, resources, traced values."""

from __future__ import annotations

import operator
import os
import random
import re
from datetime import datetime
from typing import Any, Final

from darwinn_formats.limits import limits
from darwinn_formats.tfrt import CallSite, Fused, Location, NameLocation

from darwinn_reference.tfrt.executor import Frame
from darwinn_reference.tfrt.host import Host
from darwinn_reference.tfrt.kernels.control_flow import run_later
from darwinn_reference.tfrt.kernels.numbers import printing
from darwinn_reference.tfrt.registry import (
    AGGREGATE,
    I1,
    I32,
    I64,
    STRING,
    frame_kernel,
    frame_kernels,
    kernel,
    kernels,
)
from darwinn_reference.tfrt.values import (
    CANCELLED,
    CHAIN,
    Chain,
    ErrorValue,
    KernelError,
    Value,
)

BAD: Final = "something bad happened"
BAD_LATER: Final = "something bad happened asynchronously"
CANCEL_MESSAGE: Final = "Cancelled"
_MICROSECOND: Final = 1e-6
_BYTES_PER_LETTER: Final = 4
"""Of a text in memory, at most."""
_TEMPLATE: Final = re.compile(r"(?:[^%]|%%)*%[-+ 0#]{0,5}\d{0,3}[dixX](?:[^%]|%%)*", re.DOTALL)
"""A template for one number, of a bounded width."""

# --- queued work ---------------------------------------------------------------------------------


@frame_kernel("tfrt_test.async_copy.i32", "tfrt_test.async_copy_2.i32", results=1)
def async_copy(frame: Frame) -> list[Value]:
    """The same value, by a queued task."""
    value = frame.arguments[0]
    return run_later(frame.host, 1, lambda: [value])


@frame_kernel(
    "tfrt_test.async_copy.with_delay.i32", "tfrt_test.async_copy.with_delay.i64", results=1
)
def async_copy_with_delay(frame: Frame) -> list[Value]:
    """The same value, by a queued task that sleeps 1 to 10 ms."""
    value, host = frame.arguments[0], frame.host

    def copy() -> list[Value]:
        host.wait_for(_delay())
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
    host.wait_for(_delay())
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
    host.wait_for(max(0, microseconds) * _MICROSECOND)
    host.print(f"Slept for {microseconds} microseconds")


@kernel("tfrt_test.quiesce", host=True, results=0)
def quiesce(host: Host) -> None:
    """Run what is queued before anything else."""
    host.run_tasks()


@kernel("tfrt_test.get_thread_id", host=True)
def get_thread_id(host: Host, _: Chain) -> int:
    """A small number for the thread; the first one that asks is 0."""
    return host.thread_id()


# --- values --------------------------------------------------------------------------------------


def _next_three(value: int, bits: int) -> tuple[int, ...]:
    return tuple(_wrapped(value + step, bits) for step in (1, 2, 3))


def _wrapped(value: int, bits: int) -> int:
    half = 1 << bits - 1
    return (value + half) % (2 * half) - half


def _flat(value: list[Any]) -> tuple[Any, ...]:
    """Elements of ``[[s, [i, j]], [f]]``."""
    (text, (first, second)), (number,) = value
    return text, first, second, number


def _total(first: int, *others: int) -> int:
    """The sum of at least one number."""
    return _wrapped(sum(others, first), 32)


def _total_of_attributes(frame: Frame) -> list[Value]:
    return [_wrapped(sum(frame.attributes), 32)]


def _appended(first: str, second: str) -> str:
    """One text behind another; in a loop it doubles each time."""
    if (len(first) + len(second)) * _BYTES_PER_LETTER > limits().memory:
        raise KernelError("Cannot allocate string")
    return first + second


def _formatted(template: str, number: int) -> str:
    """``template`` with one number, as C's printf has it; the original takes any template."""
    if _TEMPLATE.fullmatch(template) is None:
        raise KernelError(f"cannot format a number as {template!r}")
    return template % number


def _sum(frame: Frame) -> list[Value]:
    """The sum, by a queued task."""
    first, second = frame.arguments[:2]
    total = _wrapped(first + second, 32)
    return run_later(frame.host, 1, lambda: [total])


frame_kernels(
    {
        "tfrt_test.identity": lambda frame: frame.arguments[1:],
        "tfrt_test.multi_arg_result tfrt_test.make_indirect": lambda frame: list(frame.arguments),
        # Whether the reference to each operand is the only one.
        "tfrt_test.get_uniqueness": lambda frame: [
            frame.is_unique(number) for number in range(len(frame.arguments))
        ],
    }
)
frame_kernel("tfrt_test.async_add.i32", results=1)(_sum)
frame_kernel("tfrt_test.share_to_two", results=2)(lambda frame: [frame.arguments[0]] * 2)
kernels(
    {
        "tfrt_test.as_chain": lambda *_: CHAIN,
        "tfrt_test.append_string": _appended,
        "tfrt_test.string_equal": operator.eq,
        "tfrt_test.format_string": _formatted,
        "tfrt_test.sum tfrt_test.sync_sum tfrt_test.sync_sum2": _total,
        # What the tests of class hierarchies of values, and of references to them, give.
        "tfrt_test.async_value_get": lambda: "base1:base2:final_class:3",
        "tfrt_test.async_value_ref": lambda: (
            "available:2;unavailable;(3);available:3;unavailable;available:4"
        ),
        "tfrt_tutorial.create_coordinate": lambda x, y: (x, y),
    }
)
frame_kernel("tfrt_test.sync_sum_attributes", attributes=(I32,), results=1, repeats=True)(
    _total_of_attributes
)
kernel("tfrt_test.get_string", "tfrt_test.get_string_sync", attributes=(STRING,))(
    lambda value: value
)
kernel("tfrt_test.flat", attributes=(AGGREGATE,), results=4)(_flat)
kernel("tfrt_test.count3.i32", results=3)(lambda value: _next_three(value, 32))
kernel("tfrt_test.count3.i64", results=3)(lambda value: _next_three(value, 64))

# --- errors --------------------------------------------------------------------------------------


def _later_error(frame: Frame) -> list[Value]:
    count = frame.count
    return run_later(frame.host, count, lambda: [frame.error(BAD_LATER)] * count)


def _error_unless_zero(frame: Frame) -> list[Value]:
    """0 for 0, else an error, by a queued task."""
    value = frame.arguments[0]
    return run_later(frame.host, 1, lambda: [0 if value == 0 else frame.error(BAD_LATER)])


frame_kernels(
    {
        "tfrt_test.fail tfrt_test.fail_s tfrt_test.error_s": lambda frame: (
            [frame.error(BAD)] * frame.count
        ),
        "tfrt_test.error_chain": lambda frame: [frame.error("error chain")] * frame.count,
        "tfrt_test.report_error_async": _later_error,
    }
)
frame_kernel(
    "tfrt_test.report_error_concrete_async", "tfrt_test.report_error_indirect_async", results=1
)(_error_unless_zero)
frame_kernel("tfrt_test.partial_fail", results=2)(lambda frame: [1, frame.error(BAD)])


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


# --- prints --------------------------------------------------------------------------------------


@kernel("tfrt_test.print_hello", host=True)
def print_hello(host: Host, chain: Chain) -> Chain:
    """A greeting."""
    host.print("hello host executor!")
    return chain


kernel("tfrt_test.print_string", host=True)(printing("string"))


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


# --- the tutorial --------------------------------------------------------------------------------


kernel("tfrt_tutorial.print_coordinate", host=True)(printing(""))
