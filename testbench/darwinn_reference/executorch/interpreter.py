"""Interpreter of execution plans.

A method keeps its values and its planned memory between calls, as the original runtime does:
that is where the state of a program lives. Tensors lie where the plan puts them, so that values
which the plan lets overlap do overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from darwinn_formats import executorch
from darwinn_formats.errors import ExecutionError
from darwinn_formats.executorch import ProgramFile, schema
from darwinn_formats.limits import Clock

from darwinn_reference.arrays import AnyArray
from darwinn_reference.errors import AND, Unsupported
from darwinn_reference.executorch.element_types import mixed_types
from darwinn_reference.executorch.looking import (
    Inspected,
    Look,
    location_of,
    operation_name,
    operator_of,
    places_of,
    port_name,
)
from darwinn_reference.executorch.natives import Native, native_delegate, native_operator
from darwinn_reference.executorch.operators import (
    OPERATORS,
    REFUSED,
    Convention,
    Operator,
)
from darwinn_reference.executorch.placeholders import placeholder_delegates, placeholder_operator
from darwinn_reference.executorch.promotion import category
from darwinn_reference.executorch.values import (
    ROUNDINGS,
    Memory,
    TensorValue,
    has_arithmetic,
    one_instruction,
    refuse_more,
)
from darwinn_reference.observation import INPUT, OUTPUT, Observer, Places, show_port
from darwinn_reference.protocol import Datum, Intermediate, Tap

INSTRUCTION_LIMIT = 10_000_000
"""Instructions of one call, after which a loop is taken to be endless."""

_KERNEL_ERRORS = (
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    OverflowError,
    ZeroDivisionError,
    MemoryError,
    AttributeError,
    ExecutionError,
)
"""What is raised when the arguments of a kernel do not fit."""

DelegateRunner = Callable[[Sequence[Any]], Sequence[TensorValue]]
"""Executes a delegate: takes its arguments, tensors as ``TensorValue``, writes those that are
outputs, and returns these. One that is ``Inspected`` shows its nodes besides."""


@dataclass(frozen=True, slots=True)
class DelegateProgram:
    """What a backend gets: payload, compile specs by key, and data by name (KeyError).

    ``offset`` is the byte of the file at which the payload starts.
    """

    id: str
    payload: memoryview
    compile_specs: Mapping[str, bytes]
    named_data: Callable[[str], memoryview]
    offset: int = 0


Backend = Callable[[DelegateProgram], DelegateRunner]
"""Opens a delegate."""


@dataclass(frozen=True, slots=True)
class _Items:
    """A list whose entries are values of the method, by index; below 0 for nothing."""

    indices: tuple[int, ...]


class Method:
    """A method with its values and memory. ``backends`` open delegates by id; with
    ``placeholders`` what is missing writes zeros. ``natives`` are operators by full name, and
    delegates by id.

    Raises:
        Unsupported: operators, types of elements or delegates that are not available, all of them.
        ExecutionError: a device that is not available.
    """

    def __init__(
        self,
        file: ProgramFile,
        plan: schema.ExecutionPlan,
        backends: Mapping[str, Backend],
        *,
        placeholders: bool = False,
        natives: Mapping[str, Native] | None = None,
    ) -> None:
        self.file = file
        self.plan = plan
        given = natives or {}
        self.operators = _operators_of(plan, given, backends, placeholders=placeholders)
        _check_calls(plan, self.operators)
        known = {*backends, *given}
        missing = [entry.id for entry in plan.delegates if entry.id not in known]
        self._refuse_devices()
        instead = placeholder_delegates(plan) if missing else ()
        self.delegates: list[DelegateRunner] = []
        for number, entry in enumerate(plan.delegates):
            if entry.id in given:
                runner: DelegateRunner = native_delegate(plan, number, entry.id, given[entry.id])
            elif entry.id in backends:
                runner = backends[entry.id](_delegate_program(file, entry))
            else:
                runner = instead[number]
            self.delegates.append(runner)
        self.values: list[Any] = []
        self._numbers = _made_numbers(plan, self.operators)
        self._clock = Clock()
        self.reset()

    def reset(self) -> None:
        """Take the values and the memory of a method that was just loaded."""
        sizes = self.plan.non_const_buffer_sizes
        refuse_more(sum(sizes), "planned memory")
        memory = [np.zeros(size, np.uint8) for size in sizes]
        self.values = [
            self._initial(index, value.val, memory) for index, value in enumerate(self.plan.values)
        ]

    def run(
        self, inputs: Sequence[Datum], tap: Tap | None = None, observer: Observer | None = None
    ) -> tuple[Datum, ...]:
        """Call the method; arrays that come out are copies.

        Raises:
            ExecutionError: naming input or instruction.
        """
        self._set_inputs(inputs)
        self._clock.restart()
        budget = iter(range(INSTRUCTION_LIMIT))
        if observer is not None:
            self._show_ports(observer, INPUT, self.plan.inputs)
        with np.errstate(all="ignore"):
            for number, chain in enumerate(self.plan.chains):
                self._run_chain(number, chain, budget, tap, observer)
        if observer is not None:
            self._show_ports(observer, OUTPUT, self.plan.outputs)
        return tuple(self._output(index) for index in self.plan.outputs)

    # --- values -----------------------------------------------------------------------------------

    def _initial(self, index: int, value: Any, memory: Sequence[Memory]) -> Any:
        match value:
            case schema.Tensor():
                return self._tensor(index, value, memory)
            case schema.IntList() | schema.TensorList() | schema.OptionalTensorList():
                return _Items(tuple(value.items))
            case schema.DoubleList() | schema.BoolList():
                return list(value.items)
            case schema.Int():
                return value.int_val
            case schema.Bool():
                return value.bool_val
            case schema.Double():
                return value.double_val
            case schema.String():
                return value.string_val
        return None

    def _tensor(self, index: int, tensor: schema.Tensor, memory: Sequence[Memory]) -> TensorValue:
        info = tensor.extra_tensor_info
        if info is not None and info.device_type is not schema.DeviceType.CPU:
            raise ExecutionError(f"%{index} is on {info.device_type.name}, which is not supported")
        value = TensorValue(tensor, value_name(index))
        data = self.file.data(tensor)
        stored = None if data is None else np.frombuffer(data, np.uint8)
        place = tensor.allocation_info
        if place is None:
            value.bind(stored)
            return value
        start = place.memory_offset
        planned = memory[place.memory_id][start : start + tensor.size_bytes]
        if stored is not None:
            planned[:] = stored
        value.bind(planned)
        return value

    def _refuse_devices(self) -> None:
        for entry in self.plan.non_const_buffer_device:
            if entry.device_type is not schema.DeviceType.CPU:
                name = entry.device_type.name
                raise ExecutionError(f"planned memory on {name}, which is not supported")

    def _set_inputs(self, inputs: Sequence[Datum]) -> None:
        wanted = self.plan.inputs
        if len(inputs) != len(wanted):
            raise ExecutionError(f"{len(inputs)} inputs, the method takes {len(wanted)}")
        for position, (index, given) in enumerate(zip(wanted, inputs, strict=True)):
            value = self.values[index]
            try:
                if isinstance(value, TensorValue):
                    _set_tensor(value, given)
                elif not _same_number(value, given):
                    raise ExecutionError(f"{given!r} given where the program has {value!r}")
            except ExecutionError as error:
                raise ExecutionError(f"input {position}: {error}") from None

    def _output(self, index: int) -> Datum:
        content = self._argument(index)
        if isinstance(content, list):
            raise ExecutionError(f"output {value_name(index)} is a list")
        result: Datum = content.copy() if isinstance(content, np.ndarray) else content
        return result

    def _argument(self, index: int) -> Any:
        """A value as a kernel takes it."""
        value = self.values[index]
        if isinstance(value, TensorValue):
            return value.array()
        if isinstance(value, _Items):
            return [None if item < 0 else self._argument(item) for item in value.indices]
        return value

    # --- instructions -----------------------------------------------------------------------------

    def _run_chain(
        self,
        number: int,
        chain: schema.Chain,
        budget: Iterator[int],
        tap: Tap | None,
        observer: Observer | None,
    ) -> None:
        instructions = chain.instructions
        is_seen = tap is not None or observer is not None
        position = 0
        while position < len(instructions):
            count = next(budget, None)
            if count is None:
                raise ExecutionError(f"more than {INSTRUCTION_LIMIT} instructions: an endless loop")
            if passed := self._clock.passed():
                raise ExecutionError(f"{self.plan.name} has not ended after {passed}")
            step = instructions[position].instr_args
            try:
                with one_instruction():
                    if is_seen:
                        look = Look(operator_of(self.plan, number, position), count, tap, observer)
                        written = self._seen_step(step, look)
                    else:
                        written = self._step(step)
            except _KERNEL_ERRORS as error:
                raise self._failure(chain, position, error) from None
            if tap is not None:
                self._tap(tap, count, step, written, location_of(chain, position))
            position += 1
            if isinstance(step, schema.JumpFalseCall) and not self._holds(step.cond_value_index):
                position = step.destination_instruction

    def _seen_step(self, step: Any, look: Look) -> Sequence[TensorValue]:
        """Execute an instruction that somebody looks at."""
        if look.observer is None:
            return self._step(step, look)
        look.observer.begin(look.caller)
        written = self._step(step, look)
        look.observer.end(lambda: self._places(step, written))
        return written

    def _step(self, step: Any, look: Look | None = None) -> Sequence[TensorValue]:
        """Execute an instruction other than a jump; returns the tensors that it wrote."""
        match step:
            case schema.KernelCall(index, arguments):
                return self._call(self.operators[index], arguments)
            case schema.DelegateCall(index, arguments):
                runner, given = self.delegates[index], [*map(self._as_it_lies, arguments)]
                if look is not None and isinstance(runner, Inspected):
                    return runner.look(given, look)
                return runner(given)
            case schema.MoveCall(source, target):
                self.values[target] = self.values[source]
            case schema.JumpFalseCall(condition, _):
                self._holds(condition)
            case schema.FreeCall(index):
                self._tensor_value(index).bind(None)
        return ()

    def _call(self, operator: Operator, arguments: Sequence[int]) -> Sequence[TensorValue]:
        last = len(arguments) - operator.repeated
        given, outputs = arguments[: last - operator.outputs], arguments[last - operator.outputs :]
        if operator.convention is Convention.PLACED:
            return (operator.kernel(*map(self._as_it_lies, given)),)
        rounding = self._rounding(outputs) if operator.rounds else None
        options = {} if rounding is None else {"rounded": rounding}
        result = operator.kernel(*map(self._argument, given), **options)
        match operator.convention:
            case Convention.VALUE:
                _refuse_wide(result)
                self.values[outputs[0]] = result
                return ()
            case Convention.IN_PLACE:
                targets = [self._tensor_value(given[0])]
            case _:
                targets = self._targets(outputs[: operator.outputs])
        results = result if isinstance(result, tuple | list) else (result,)
        if len(results) != len(targets):
            raise ExecutionError(f"{len(results)} results for {len(targets)} outputs")
        for target, entry in zip(targets, results, strict=True):
            # An operator gives nothing for an output that its call does not want.
            if entry is not None:
                if operator.keeps_category:
                    _refuse_conversion(np.asarray(entry).dtype, target.dtype)
                target.write(entry)
        return targets

    def _rounding(self, outputs: Sequence[int]) -> Callable[[AnyArray], AnyArray] | None:
        """How sums are rounded for the first output, if that is of half precision."""
        (target, *_) = self._targets(outputs[:1])
        return ROUNDINGS.get(target.declared.scalar_type)

    def _targets(self, indices: Sequence[int]) -> list[TensorValue]:
        targets: list[TensorValue] = []
        for index in indices:
            value = self.values[index]
            nested = value.indices if isinstance(value, _Items) else (index,)
            targets += map(self._tensor_value, nested)
        return targets

    def _tensor_value(self, index: int) -> TensorValue:
        value = self.values[index]
        if not isinstance(value, TensorValue):
            raise ExecutionError(f"{value_name(index)} is no tensor")
        return value

    def _as_it_lies(self, index: int) -> Any:
        value = self.values[index]
        return value if isinstance(value, TensorValue) else self._argument(index)

    def _holds(self, index: int) -> bool:
        value = self.values[index]
        if isinstance(value, TensorValue) and value.dtype == np.bool_:
            return bool(value.array().all())
        if isinstance(value, bool):
            return value
        raise ExecutionError(f"{value_name(index)} decides a jump but is no truth value")

    # --- reports ----------------------------------------------------------------------------------

    def _tap(
        self, tap: Tap, count: int, step: Any, written: Sequence[TensorValue], location: str
    ) -> None:
        for value in written:
            operation = operation_name(self.plan, step)
            entry = Intermediate(value.name, count, operation, value.array(), location)
            replacement = tap(entry)
            if replacement is not None:
                value.write(replacement)

    def _places(self, step: Any, written: Sequence[TensorValue]) -> Places:
        """What an instruction has read and written. Numbers count if instructions make them."""
        reads: Sequence[int] = ()
        made: Sequence[int] = ()
        match step:
            case schema.KernelCall(index, arguments):
                operator = self.operators[index]
                reads = arguments[: len(arguments) - operator.repeated - operator.outputs]
                made = arguments
            case schema.DelegateCall(_, arguments):
                reads = [each for each in arguments if self.values[each] not in written]
                made = arguments
            case schema.JumpFalseCall(condition, _):
                reads = (condition,)
            case schema.MoveCall(source, target):
                reads, made, written = (source,), (target,), [self.values[target]]
        numbers = [each for each in made[-1:] if each in self._numbers]
        results = [each for each in self._flat(made) if self.values[each] in written]
        return (
            places_of(filter(self._is_shown, self._flat(reads)), self.values, self.plan.name),
            places_of(dict.fromkeys((*results, *numbers)), self.values, self.plan.name),
        )

    def _is_shown(self, index: int) -> bool:
        return isinstance(self.values[index], TensorValue) or index in self._numbers

    def _flat(self, indices: Sequence[int]) -> Iterator[int]:
        """Indices of values, and of the entries of lists."""
        for index in indices:
            value = self.values[index]
            nested = value.indices if isinstance(value, _Items) else (index,)
            yield from (each for each in nested if each >= 0)

    def _show_ports(self, observer: Observer, kind: str, indices: Sequence[int]) -> None:
        for at, index in enumerate(indices):
            name = port_name(self.plan, index, f"{kind}{at}")
            places = places_of(self._flat([index]), self.values, self.plan.name)
            show_port(observer, kind, name, places)

    def _failure(self, chain: schema.Chain, position: int, error: Exception) -> ExecutionError:
        text = executorch.instruction_text(self.plan, chain.instructions[position])
        location = location_of(chain, position)
        where = f" ({location})" if location else ""
        reason = str(error) or type(error).__name__
        return ExecutionError(f"{self.plan.name}, instruction {position}{where}: {text}: {reason}")


def value_name(index: int) -> str:
    """Name of a value of a method, as listings print it."""
    return f"%{index}"


def missing_operators(plan: schema.ExecutionPlan) -> tuple[str, ...]:
    """Names of the operators of a method that have no kernel, in its order."""
    return tuple(entry.full_name for entry in plan.operators if entry.full_name not in OPERATORS)


def refuse_missing(
    plans: Sequence[schema.ExecutionPlan],
    natives: Collection[str] = (),
    backends: Collection[str] = (),
) -> None:
    """Refuse methods with operators, delegates or types of elements that are not there.

    Raises:
        Unsupported: naming all operators and delegates, or all types.
    """
    found = [name for plan in plans for name in missing_operators(plan)]
    operators = [name for name in found if name not in natives]
    reasons = {name: f"{name} ({REFUSED[name]})" for name in operators if name in REFUSED}
    called = [entry.id for plan in plans for entry in plan.delegates]
    missing = {
        "operators": [reasons.get(name, name) for name in operators],
        "delegates": [name for name in called if name not in natives and name not in backends],
    }
    kinds = [kind for kind, names in missing.items() if names]
    if kinds:
        raise Unsupported(AND.join(kinds), [name for kind in kinds for name in missing[kind]])
    tensors = [value.val for plan in plans for value in plan.values]
    types = [tensor.scalar_type for tensor in tensors if isinstance(tensor, schema.Tensor)]
    if foreign := [entry.name.lower() for entry in types if not has_arithmetic(entry)]:
        raise Unsupported("types of elements", foreign)


def _operators_of(
    plan: schema.ExecutionPlan,
    natives: Mapping[str, Native],
    backends: Collection[str],
    *,
    placeholders: bool,
) -> list[Operator]:
    if not placeholders:
        refuse_missing([plan], natives, backends)
    names = [entry.full_name for entry in plan.operators]
    given = {name: native_operator(name, natives[name]) for name in names if name in natives}
    return [given.get(name) or OPERATORS.get(name) or placeholder_operator(name) for name in names]


def _made_numbers(plan: schema.ExecutionPlan, operators: Sequence[Operator]) -> frozenset[int]:
    """Values that are no tensors and that instructions make, by index."""
    calls = (each.instr_args for chain in plan.chains for each in chain.instructions)
    return frozenset(
        call.args[-1]
        for call in calls
        if isinstance(call, schema.KernelCall)
        and operators[call.op_index].convention is Convention.VALUE
    )


def _check_calls(plan: schema.ExecutionPlan, operators: Sequence[Operator]) -> None:
    for chain in plan.chains:
        for position, instruction in enumerate(chain.instructions):
            step = instruction.instr_args
            if not isinstance(step, schema.KernelCall):
                continue
            operator = operators[step.op_index]
            reason = _misfit(plan, operator, step.args)
            if reason:
                text = executorch.instruction_text(plan, instruction)
                raise ExecutionError(f"{plan.name}, instruction {position}: {text}: {reason}")


def _misfit(plan: schema.ExecutionPlan, operator: Operator, arguments: Sequence[int]) -> str:
    """Why an operator cannot be called like this, or the empty text."""
    count = len(arguments)
    if not operator.accepts(count):
        return f"{count} arguments"
    first_output = count - operator.repeated - operator.outputs
    mixed = mixed_types(operator.name, plan.values, arguments, first_output)
    types = ", ".join(mixed)
    return f"elements of types {types}, which this operator does not convert" if mixed else ""


def _refuse_wide(number: Any) -> None:
    """Python's integers grow without bound; those of a program have 64 bits."""
    if isinstance(number, int) and not -(2**63) <= number < 2**63:
        raise ExecutionError(f"an integer of {number.bit_length()} bits, which has room for 64")


def _refuse_conversion(result: np.dtype[Any], output: np.dtype[Any]) -> None:
    if category(result) > category(output):
        raise ExecutionError(f"results of type {result} in an output of type {output}")


def _delegate_program(file: ProgramFile, delegate: schema.BackendDelegate) -> DelegateProgram:
    specs = {entry.key: entry.value for entry in delegate.compile_specs}
    span = file.payload_span(delegate)
    return DelegateProgram(delegate.id, span.data, specs, file.named_data, span.offset)


def _set_tensor(value: TensorValue, given: Datum) -> None:
    if not isinstance(given, np.ndarray | np.generic):
        raise ExecutionError(f"{given!r} given where the program takes a tensor")
    array: AnyArray = np.asarray(given)
    if array.dtype != value.dtype:
        raise ExecutionError(f"elements of type {array.dtype}, the program takes {value.dtype}")
    if value.declared.allocation_info is None:
        # Memory that the caller brings may not be changed through the copy.
        value.allocate()
    value.write(array)


def _same_number(value: Any, given: Datum) -> bool:
    if type(value) is not type(given):
        return False
    if isinstance(value, float) and isinstance(given, float):
        return bool(np.isclose(given, value, rtol=1e-5, atol=1e-4))
    return bool(value == given)
