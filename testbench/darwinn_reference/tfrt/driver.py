"""Run all functions of a BEF file as test cases and print what the original driver prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TextIO

from darwinn_formats.errors import ExecutionError
from darwinn_formats.tfrt import BefFile, FileLineColumn, FunctionKind, Location
from darwinn_formats.tfrt.text.location_text import location_text

from darwinn_reference.errors import Unsupported
from darwinn_reference.tfrt.executor import execute
from darwinn_reference.tfrt.expected import (
    ReportedError,
    complaints,
    expected_errors,
)
from darwinn_reference.tfrt.host import Diagnostic, Host
from darwinn_reference.tfrt.kernels.native import native_functions
from darwinn_reference.tfrt.kernels.numbers import float_text
from darwinn_reference.tfrt.plan import FunctionPlan, NativeFunction
from darwinn_reference.tfrt.preparation import prepare
from darwinn_reference.tfrt.registry import KERNELS
from darwinn_reference.tfrt.values import ErrorValue, Value

SINGLE_THREADED: Final = "single-threaded"
SINGLE: Final = "s"
MULTI: Final = "mstd"
"""Work queues, as the original's command line calls them."""
_BLOCKING_THREADS: Final = 64
_MOST_THREADS: Final = 1 << 16
LEAK_CHECK: Final = "leak_check_allocator"
ALLOCATORS: Final = {
    LEAK_CHECK: "memory leak check allocator",
    "malloc": "malloc",
}
"""Each allocator by the name of its option, with the name that the driver prints.

The original has two more, which print single allocations or run short of memory; they are refused.
"""
_PLAIN: Final = frozenset({"i1", "i32", "i64"})
_FLOATS: Final = frozenset({"f32", "f64"})


@dataclass(frozen=True, slots=True)
class Options:
    """What the original's command line can say.

    Attributes:
        functions: names of those to run; all if empty.
        init_function: name of one to run first.
        print_error_code: whether errors show their code.
        threads: workers of the multi-threaded queue; None is the single-threaded one.
        blocking_threads: further workers, of the multi-threaded queue's name only.
        allocator: one of ``ALLOCATORS``; only the first one reports leaks.
    """

    functions: Sequence[str] = ()
    init_function: str | None = None
    print_error_code: bool = False
    threads: int | None = None
    blocking_threads: int = _BLOCKING_THREADS
    allocator: str = LEAK_CHECK

    @property
    def queue(self) -> str:
        """Name of the work queue."""
        if self.threads is None:
            return f"{SINGLE_THREADED} work queue"
        threads = f"({self.threads} threads, {self.blocking_threads} blocking threads)"
        return f"Multi-threaded C++ work queue {threads} work queue"


def queue_of(text: str) -> tuple[int | None, int]:
    """Threads, None without any, and blocking threads of a work queue: ``s``, ``mstd``, ``mstd:8``
    or ``mstd:8,32``. Without a number there are as many threads as processors.

    Raises:
        ValueError: no such queue.
    """
    kind, colon, numbers = text.partition(":")
    if kind == SINGLE and not colon:
        return None, _BLOCKING_THREADS
    counts = numbers.split(",") if colon else []
    fit = all(n.isascii() and n.isdecimal() and 0 < int(n) < _MOST_THREADS for n in counts)
    if kind != MULTI or len(counts) > 2 or not fit:
        raise ValueError(
            f"a queue is {SINGLE}, {MULTI}, {MULTI}:THREADS or {MULTI}:THREADS,BLOCKING"
        )
    threads = int(counts[0]) if counts else os.cpu_count() or 1
    return threads, int(counts[1]) if len(counts) == 2 else _BLOCKING_THREADS


@dataclass(slots=True)
class Driver:
    """One run of a file.

    ``source`` is the text that the file was made from; its ``expected-error`` comments say which
    errors have to be reported, and no others may be.
    """

    file: BefFile
    source: str | None = None
    options: Options = field(default_factory=Options)
    output: TextIO | None = None
    log: TextIO | None = None
    natives: dict[str, NativeFunction] = field(default_factory=dict)
    sleep: Callable[[float], None] | None = None

    def run(self) -> int:
        """Run and print; gives the exit status, 0 if all is as expected.

        Raises:
            ExecutionError: a function is not there, or gets stuck.
            Unsupported: naming an allocator that is not modelled, native functions, or kernels that
                are missing, unless the text expects each of them to be.
        """
        if self.options.allocator not in ALLOCATORS:
            raise Unsupported("allocators", [self.options.allocator])
        output = self.output or sys.stdout
        log = self.log or sys.stderr
        host = Host(output, log, self.options.threads)
        if self.sleep is not None:
            host.sleep = self.sleep
        host.print(f"Choosing {ALLOCATORS[self.options.allocator]}.")
        host.print(f"Choosing {self.options.queue}.")
        unknown = [
            Diagnostic(f"unknown kernel name '{name}'", location)
            for name, location in self._unknown_kernels()
        ]
        host.diagnostics += unknown
        if not unknown:
            natives = {**native_functions(host), **self.natives}
            plans = prepare(self.file, host, KERNELS, natives)
            for plan in self._chosen(plans):
                self._function(host, plan)
        found = self._complaints(host.diagnostics)
        if unknown and found:
            raise Unsupported("kernels", [name for name, _ in self._unknown_kernels()])
        for complaint in found:
            log.write(f"{complaint}\n")
        leaked = host.leaked if self.options.allocator == LEAK_CHECK else []
        if leaked:
            sizes = f"{len(leaked)} alive allocations, {sum(leaked)} alive bytes"
            host.print(f"Memory leak detected: {sizes}")
        return int(bool(found or leaked))

    def _unknown_kernels(self) -> list[tuple[str, Location | None]]:
        return [
            (kernel.name, kernel.location)
            for function in self.file.functions
            if function.body is not None
            for kernel in function.body.kernels
            if kernel.name not in KERNELS
        ]

    def _chosen(self, plans: list[FunctionPlan]) -> list[FunctionPlan]:
        by_name = {plan.name: plan for plan in plans if plan.name}
        first = [] if self.options.init_function is None else [self.options.init_function]
        for name in (*first, *self.options.functions):
            if name not in by_name:
                raise ExecutionError(f"couldn't find function {name}")
        chosen = plans
        if self.options.functions:
            chosen = [by_name[name] for name in self.options.functions]
        return [by_name[name] for name in first] + [
            each for each in chosen if each.name not in first
        ]

    def _function(self, host: Host, plan: FunctionPlan) -> None:
        if plan.argument_types:
            host.print(f"--- Not running '{plan.name}' because it has arguments.")
            return
        if not plan.name:
            return
        host.print(f"--- Running '{plan.name}':")
        with host.session():
            values = host.wait(execute(host, plan, []))
            if values:
                host.print(f"'{plan.name}' returned {self._results(plan, values)}")
            # Values that only the results hold go before the queue is drained.
            values.clear()

    def _results(self, plan: FunctionPlan, values: list[Value]) -> str:
        errors = [value for value in values if isinstance(value, ErrorValue)]
        if plan.kind is FunctionKind.SYNC and errors:
            return self._error(errors[0])
        return ",".join(map(self._result, plan.result_types, values))

    def _result(self, text: str, value: Value) -> str:
        if isinstance(value, ErrorValue):
            return self._error(value)
        if text in _PLAIN:
            return str(int(value))
        return float_text(float(value), "e") if text in _FLOATS else f"{text} value"

    def _error(self, error: ErrorValue) -> str:
        code = f", code: {error.code}" if self.options.print_error_code else ""
        return f"<<error: {error.message}{code}>>"

    def _complaints(self, diagnostics: list[Diagnostic]) -> list[str]:
        """Errors that were not expected, and those that were expected but did not come."""
        expected = [] if self.source is None else expected_errors(self.source)
        return complaints(list(map(_reported, diagnostics)), expected)


def _reported(diagnostic: Diagnostic) -> ReportedError:
    location = diagnostic.location
    return ReportedError(
        location.line if isinstance(location, FileLineColumn) else 0,
        f"runtime error: {diagnostic.message}",
        "" if location is None else location_text(location),
    )
