"""Execute BEF functions: docs/formats-bef.md, "Execution".

The loop over ready kernels calls most of them directly with the values of registers. Whatever is
out of the ordinary takes the general way: errors, values that come later, results of the
function, several results, kernels that call functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from darwinn_formats.errors import ExecutionError
from darwinn_formats.tfrt import FunctionKind

from darwinn_reference.tfrt.definition import Style
from darwinn_reference.tfrt.host import WRONG_VALUES, Host
from darwinn_reference.tfrt.plan import FunctionPlan, KernelPlan
from darwinn_reference.tfrt.values import (
    AsyncValue,
    ErrorValue,
    KernelError,
    Value,
    is_there,
    settled,
    when_ready,
)

MAXIMUM_CONTINUATIONS: Final = 100
"""Continuations in continuations; further ones are queued, as in the original."""
MAXIMUM_CALLS: Final = 200
"""Functions in functions that have not returned."""


def execute(host: Host, function: FunctionPlan, arguments: list[Value]) -> list[Value]:
    """Call a function; results that are not there yet are AsyncValues."""
    if host.calls >= MAXIMUM_CALLS:
        raise ExecutionError(f"calls are nested more than {MAXIMUM_CALLS} deep")
    if len(arguments) != len(function.argument_types):
        count = len(function.argument_types)
        name = function.name or "a region"
        raise ExecutionError(f"{name} is called with {len(arguments)} arguments, not {count}")
    host.calls_of_run += 1
    if host.calls_of_run > host.maximum_calls:
        raise ExecutionError(f"the run takes more than {host.maximum_calls} calls of functions")
    host.look()
    host.calls += 1
    try:
        if function.kind is FunctionKind.NATIVE:
            return _native(host, function, arguments)
        if function.kind is FunctionKind.SYNC:
            return _run_in_order(host, function, arguments)
        return Run(host, function).start(arguments)
    finally:
        host.calls -= 1


def _native(host: Host, function: FunctionPlan, arguments: list[Value]) -> list[Value]:
    assert function.native is not None
    count = len(function.result_types)
    values = [settled(value) for value in arguments]
    if not all(is_there(value) for value in values):
        # Called with values that are still to come.
        later = [AsyncValue() for _ in range(count)]

        def call() -> None:
            for result, value in zip(later, _native(host, function, values), strict=True):
                result.set(value)

        when_ready(values, call)
        return list(later)
    errors = [value for value in values if value.__class__ is ErrorValue]
    if errors:
        return [errors[-1]] * count
    try:
        if host.watch is None:
            given = function.native(*values)
        else:
            given = host.watch.native(function, values)
    except KernelError as error:
        # The error of a native function has no place in the file to report.
        return [ErrorValue(str(error))] * count
    results = _as_list(given, count)
    if len(results) != count:
        reason = f"gave {len(results)} results, not {count}"
        raise ExecutionError(f"native function {function.name} {reason}")
    return results


def _as_list(given: Any, count: int) -> list[Value]:
    if count == 1:
        return [given]
    return [] if given is None else list(given)


@dataclass(slots=True)
class Frame:
    """A call of a kernel that needs more than its operands."""

    host: Host
    kernel: KernelPlan
    arguments: list[Value]
    run: Run | None

    @property
    def attributes(self) -> tuple[Any, ...]:
        """Attributes, as Python values."""
        return self.kernel.attributes

    @property
    def functions(self) -> tuple[FunctionPlan, ...]:
        """Functions and regions of the kernel."""
        return self.kernel.functions

    @property
    def count(self) -> int:
        """Number of results."""
        return len(self.kernel.results)

    def error(self, message: str) -> ErrorValue:
        """An error value, with a diagnostic at the kernel."""
        return self.host.report(message, self.kernel.location)

    def later(self) -> list[AsyncValue]:
        """One AsyncValue for each result."""
        return [AsyncValue() for _ in range(self.count)]

    def is_unique(self, number: int) -> bool:
        """Whether nothing but this kernel can see the value of an operand."""
        if self.run is None:
            return False
        register = self.kernel.operands[number]
        return self.run.plan.fresh[register] and self.run.uses[register] == 1


class Run:
    """One execution of an asynchronous function."""

    __slots__ = (
        "counts",
        "general_only",
        "host",
        "plan",
        "registers",
        "request",
        "returned",
        "serial",
        "uses",
    )

    def __init__(self, host: Host, plan: FunctionPlan) -> None:
        self.host = host
        self.plan = plan
        self.request = host.request
        self.serial = host.calls_of_run
        self.registers: list[Value] = [None] * len(plan.uses)
        self.uses = plan.uses.copy()
        self.counts = plan.counts.copy()
        self.returned = {register: AsyncValue() for register in plan.returned}
        # Set as soon as a register holds an error: from then on operands are looked at.
        self.general_only = host.tap is not None or host.watch is not None

    def start(self, arguments: list[Value]) -> list[Value]:
        """Run what can run; gives the results, or AsyncValues for them."""
        plan = self.plan
        inline: list[int] = []
        outline: list[int] = []
        stream = plan.streams[0]
        self.ready(plan.entry_used_by[0], stream, inline, outline)
        for register, value in enumerate(arguments):
            users = plan.entry_used_by[register + 1]
            if users or register in self.returned:
                self.publish(register, settled(value), users, stream, inline, outline)
        # Only the registers hold the arguments from here on.
        value = None
        self.process(stream, inline, outline)
        return [settled(self.returned[register]) for register in plan.returned]

    def ready(
        self, users: tuple[int, ...], stream: int, inline: list[int], outline: list[int]
    ) -> None:
        """One more operand of each of these kernels is there."""
        counts, streams = self.counts, self.plan.streams
        for user in users:
            counts[user] -= 1
            if counts[user] == 0:
                (inline if streams[user] == stream else outline).append(user)

    def publish(
        self,
        register: int,
        value: Value,
        users: tuple[int, ...],
        stream: int,
        inline: list[int],
        outline: list[int],
    ) -> None:
        """Make a result known, now or when it is there."""
        if value.__class__ is AsyncValue:
            if users:
                value.then(lambda arrived: self.continue_with(register, arrived, users, stream))
            else:
                self.returned[register].set(value)
            return
        self.store(register, value)
        self.ready(users, stream, inline, outline)

    def store(self, register: int, value: Value) -> None:
        """Put a value into a register, and give it to who waits for the results."""
        if value.__class__ is ErrorValue:
            self.general_only = True
        if register in self.returned:
            if self.uses[register]:
                self.registers[register] = value
            self.returned[register].set(value)
        else:
            self.registers[register] = value

    def continue_with(
        self, register: int, value: Value, users: tuple[int, ...], stream: int
    ) -> None:
        """Go on with a value that has come; as a task, where continuations are nested deeply."""
        host = self.host
        if host.continuations >= MAXIMUM_CONTINUATIONS:
            host.enqueue(lambda: self._continue(register, value, users, stream))
            return
        host.continuations += 1
        try:
            self._continue(register, value, users, stream)
        finally:
            host.continuations -= 1

    def _continue(self, register: int, value: Value, users: tuple[int, ...], stream: int) -> None:
        inline: list[int] = []
        outline: list[int] = []
        self.store(register, value)
        self.ready(users, stream, inline, outline)
        self.process(stream, inline, outline)

    def process(self, stream: int, inline: list[int], outline: list[int]) -> None:
        """Run ready kernels, those of the stream last in first out, until there is none."""
        plan = self.plan
        steps, streams = plan.steps, plan.streams
        registers, counts, uses = self.registers, self.counts, self.uses
        request = self.request
        while inline or outline:
            if outline:
                stream = self.switch(stream, inline, outline)
            number = inline.pop()
            way, call, arguments, operands, result, users = steps[number]
            if way < 0 or self.general_only or request.cancelled is not None:
                self.general(number, stream, inline, outline)
                continue
            try:
                if way == 2:
                    first, second = arguments
                    value = call(registers[first], registers[second])
                elif way == 1:
                    value = call(registers[arguments[0]])
                elif way == 0:
                    value = call()
                else:
                    value = call(*[registers[register] for register in arguments])
            except KernelError as error:
                reported = self.host.report(str(error), plan.kernels[number - 1].location)
                count = len(plan.kernels[number - 1].results)
                self.finish(number, [reported] * count, stream, inline, outline)
                continue
            except WRONG_VALUES as error:
                raise _wrong_values(plan.kernels[number - 1], error) from error
            for register in operands:
                uses[register] -= 1
                if uses[register] == 0:
                    registers[register] = None
            if result >= 0:
                registers[result] = value
                for user in users:
                    left = counts[user] - 1
                    counts[user] = left
                    if left == 0:
                        (inline if streams[user] == stream else outline).append(user)
            # The loop must not keep a value alive that no register holds.
            value = None

    def switch(self, stream: int, inline: list[int], outline: list[int]) -> int:
        """Take up the stream of the first kernel of other streams if there is nothing else.

        Kernels of further streams become tasks, one for each stream.
        """
        streams = self.plan.streams
        waiting: dict[int, list[int]] = {}
        for number in outline:
            waiting.setdefault(streams[number], []).append(number)
        if not inline:
            stream = streams[outline[0]]
            inline += waiting.pop(stream)
        for other in sorted(waiting):
            self.enqueue(other, waiting[other])
        outline.clear()
        return stream

    def enqueue(self, stream: int, numbers: list[int]) -> None:
        """Run ready kernels of a stream in a task."""
        self.host.enqueue(lambda: self.process(stream, numbers, []))

    def general(self, number: int, stream: int, inline: list[int], outline: list[int]) -> None:
        """Run any kernel under any conditions."""
        kernel = self.plan.kernels[number - 1]
        registers = self.registers
        error = self.request.cancelled
        for register in kernel.operands:
            if registers[register].__class__ is ErrorValue:
                error = registers[register]
        if error is not None:
            results: list[Value] = [error] * len(kernel.results)
        else:
            results = seen_kernel(self.host, self.plan, kernel, registers, self.serial, self)
        self.finish(number, results, stream, inline, outline)

    def finish(
        self,
        number: int,
        results: list[Value],
        stream: int,
        inline: list[int],
        outline: list[int],
    ) -> None:
        """Let go of the operands, make the results known."""
        kernel = self.plan.kernels[number - 1]
        uses, registers = self.uses, self.registers
        for register in kernel.operands:
            uses[register] -= 1
            if uses[register] == 0:
                registers[register] = None
        results.reverse()
        for register, users in zip(kernel.results, kernel.used_by, strict=True):
            value = settled(results.pop())
            if users or register in self.returned:
                self.publish(register, value, users, stream, inline, outline)
            value = None


def seen_kernel(
    host: Host,
    plan: FunctionPlan,
    kernel: KernelPlan,
    registers: list[Value],
    serial: int,
    run: Run | None = None,
) -> list[Value]:
    """Results of a kernel, shown to who looks; ``serial`` is the number of the function's call."""
    watch = host.watch
    if watch is None and host.tap is None:
        return call_kernel(host, kernel, registers, run)
    if watch is not None:
        watch.begin(plan, kernel)
    results = call_kernel(host, kernel, registers, run)
    operands = [registers[register] for register in kernel.operands]
    if watch is not None:
        watch.end(kernel, results, operands, serial)
    if host.tap is not None:
        results = host.tap(plan, kernel, results, operands)
    operands.clear()
    return results


def call_kernel(
    host: Host, kernel: KernelPlan, registers: list[Value], run: Run | None
) -> list[Value]:
    """Results of a kernel; all of them errors where it raises one."""
    count = len(kernel.results)
    arguments = [registers[register] for register in kernel.passed]
    try:
        if kernel.definition.style is Style.FRAME:
            results: list[Value] = kernel.call(Frame(host, kernel, arguments, run))
            if len(results) != count:
                reason = f"gave {len(results)} results, not {count}"
                raise ExecutionError(f"kernel {kernel.definition.name} {reason}")
            return results
        given = kernel.call(*arguments)
    except KernelError as error:
        return [host.report(str(error), kernel.location)] * count
    except WRONG_VALUES as error:
        raise _wrong_values(kernel, error) from error
    return _as_list(given, count) if count else []


def _wrong_values(kernel: KernelPlan, error: Exception) -> ExecutionError:
    return ExecutionError(
        f"kernel {kernel.number}, {kernel.definition.name}, cannot take its operands: {error}"
    )


def _run_in_order(host: Host, plan: FunctionPlan, arguments: list[Value]) -> list[Value]:
    """Run a synchronous function: kernel after kernel, up to the first error."""
    serial = host.calls_of_run
    registers: list[Value] = [None] * len(plan.uses)
    registers[: len(arguments)] = [settled(value) for value in arguments]
    for kernel in plan.kernels:
        if host.request.cancelled is not None:
            return [host.request.cancelled] * len(plan.returned)
        for register in kernel.operands:
            if registers[register].__class__ is ErrorValue:
                return [registers[register]] * len(plan.returned)
        reported = len(host.diagnostics)
        results = seen_kernel(host, plan, kernel, registers, serial)
        if not results and len(host.diagnostics) > reported:
            # An error ends the function even where the kernel has no result that could be one.
            return [ErrorValue(host.diagnostics[-1].message)] * len(plan.returned)
        for register, value in zip(kernel.results, results, strict=True):
            registers[register] = settled(value)
            if not is_there(registers[register]):
                reason = "gives a result that comes later, in a synchronous function"
                raise ExecutionError(f"{plan.name}: {kernel.definition.name} {reason}")
            if registers[register].__class__ is ErrorValue:
                return [registers[register]] * len(plan.returned)
    return [registers[register] for register in plan.returned]
