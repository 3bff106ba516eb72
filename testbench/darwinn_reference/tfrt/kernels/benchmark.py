"""The kernel that calls a function again and again, and prints how long that takes."""

from __future__ import annotations

import time
from typing import Final

from darwinn_formats.tfrt import FunctionKind

from darwinn_reference.tfrt.executor import Frame, execute
from darwinn_reference.tfrt.registry import I32, STRING, frame_kernel
from darwinn_reference.tfrt.values import CHAIN, ErrorValue, KernelError, Value

_BENCHMARK_ATTRIBUTES: Final = (I32, I32, STRING, I32)
_PERCENTILES: Final = (("Min", 0.0), ("50%", 0.5), ("95%", 0.95), ("99%", 0.99))


@frame_kernel("tfrt_test.benchmark", attributes=_BENCHMARK_ATTRIBUTES, results=1)
def benchmark(frame: Frame) -> list[Value]:
    """Call a function again and again, until either limit is reached; print the times."""
    duration, maximum, name, warm_up = frame.attributes
    return [_measure(frame, name, duration, maximum, warm_up) or CHAIN]


@frame_kernel("tfrt_test.sync_benchmark", attributes=(I32, I32, I32), results=0)
def synchronous_benchmark(frame: Frame) -> list[Value]:
    """The same for a synchronous function without results, by whose name the times are called."""
    duration, maximum, warm_up = frame.attributes
    (function,) = frame.functions
    if function.kind is not FunctionKind.SYNC:
        raise KernelError("SyncBenchmark op requires the input function be a sync function")
    if function.result_types:
        raise KernelError("SyncBenchmark op requires the input function have zero return value")
    _measure(frame, function.name, duration, maximum, warm_up)
    return []


def _measure(
    frame: Frame, name: str, duration: int, maximum: int, warm_up: int
) -> ErrorValue | None:
    """Call, print the times; gives the error that ends it early."""
    for _ in range(warm_up):
        error = _benchmark_call(frame)
        if error is not None:
            return error
    walls: list[int] = []
    processor: list[int] = []
    begin = time.perf_counter_ns()
    limit = begin + duration * 1_000_000_000
    while len(walls) < maximum and (not walls or time.perf_counter_ns() < limit):
        wall, used = time.perf_counter_ns(), time.process_time_ns()
        error = _benchmark_call(frame)
        if error is not None:
            return error
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
    return None


def _benchmark_call(frame: Frame) -> ErrorValue | None:
    (function,) = frame.functions
    for value in frame.host.wait(execute(frame.host, function, list(frame.arguments))):
        if isinstance(value, ErrorValue):
            return value
    return None
