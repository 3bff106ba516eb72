"""What a tap and an observer see of a method that runs: instructions, and nodes of delegates."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from darwinn_formats import executorch
from darwinn_formats.executorch import schema

from darwinn_reference.executorch.values import TensorValue
from darwinn_reference.observation import Observer, Operator, Place, number_place
from darwinn_reference.protocol import Tap


@dataclass(frozen=True, slots=True)
class Look:
    """What looks into a call of a delegate: the instruction that makes the call, as an operator,
    and its number among the executed ones.
    """

    caller: Operator
    step: int
    tap: Tap | None
    observer: Observer | None


@runtime_checkable
class Inspected(Protocol):
    """A delegate whose nodes can be seen while it runs."""

    def look(self, arguments: Sequence[Any], look: Look) -> Sequence[TensorValue]:
        """Do what a call does, and show each node and the values that it makes."""
        ...


def operation_name(plan: schema.ExecutionPlan, step: Any) -> str:
    """What an instruction does: the operator, the delegate's id, or the kind of instruction."""
    match step:
        case schema.KernelCall(index, _):
            return plan.operators[index].full_name
        case schema.DelegateCall(index, _):
            return plan.delegates[index].id
    return type(step).__name__


def location_of(chain: schema.Chain, position: int) -> str:
    """Line of source of an instruction, or the empty text."""
    return executorch.location_of(chain.stacktrace[position]) if chain.stacktrace else ""


def operator_of(plan: schema.ExecutionPlan, number: int, position: int) -> Operator:
    """An instruction by its place: ``forward.3``, or ``forward.0.3`` where chains are several."""
    chain = plan.chains[number]
    place = f"{number}.{position}" if len(plan.chains) > 1 else f"{position}"
    kind = operation_name(plan, chain.instructions[position].instr_args)
    return Operator(f"{plan.name}.{place}", kind, location_of(chain, position))


def port_name(plan: schema.ExecutionPlan, index: int, fallback: str) -> str:
    """The name of an input or output: the tensor's own, where it has one."""
    value = plan.values[index].val
    return (isinstance(value, schema.Tensor) and value.name) or fallback


def places_of(indices: Iterable[int], values: Sequence[Any], method: Hashable) -> Iterator[Place]:
    """Places of the values of a method by index: of tensors in memory, and of numbers."""
    for index in indices:
        value = values[index]
        if not isinstance(value, TensorValue):
            yield number_place((method, index), value)
        elif value.memory is not None:
            yield tensor_place(value, value.memory)


def tensor_place(value: TensorValue, memory: Any) -> Place:
    """Where a tensor lies that has memory."""
    start = memory.__array_interface__["data"][0]
    size = min(memory.nbytes, value.nbytes)
    constant = not memory.flags.writeable
    return Place("", start, start + size, value.type_name, value.sizes, constant)
