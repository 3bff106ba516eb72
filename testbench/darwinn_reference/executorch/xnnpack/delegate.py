"""The XNNPACK delegate as a backend of the interpreter: a graph, executed node by node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.executorch import xnnpack
from darwinn_formats.executorch.xnnpack import XnnpackGraph, schema
from darwinn_formats.executorch.xnnpack.schema import NO_VALUE, Datatype
from darwinn_formats.limits import Clock

from darwinn_reference.errors import Unsupported
from darwinn_reference.executorch.looking import Look
from darwinn_reference.executorch.values import (
    TensorValue,
    one_instruction,
    refuse_more,
)
from darwinn_reference.executorch.xnnpack import elementwise
from darwinn_reference.executorch.xnnpack.operands import (
    DTYPES,
    Operand,
    constant_of,
    described,
    scale_of,
)
from darwinn_reference.executorch.xnnpack.operations import OPERATIONS
from darwinn_reference.executorch.xnnpack.plan import Step, steps_of
from darwinn_reference.executorch.xnnpack.showing import Showing

BACKEND = "XnnpackBackend"
"""The id of the delegate in programs."""

_EXTERNAL_TYPES = {Datatype.FP32, Datatype.FP16, Datatype.QINT8, Datatype.QUINT8, Datatype.INT32}
_KNOWN_FLAGS: Mapping[type[Any], int] = {
    schema.FullyConnected: schema.TRANSPOSE_WEIGHTS,
    schema.BatchMatrixMultiply: schema.TRANSPOSE_WEIGHTS,
    schema.Conv2d: schema.SAME_PADDING,
    schema.DepthwiseConv2d: schema.SAME_PADDING,
    schema.StaticResizeBilinear2D: schema.ALIGN_CORNERS | schema.LEGACY_RESIZE,
    schema.GlobalAvgPooling2d: schema.KEEP_DIMS,
}
"""Flags that change what a node computes, of the nodes where they do."""
_CHANGING = schema.TRANSPOSE_WEIGHTS | 2 | schema.SAME_PADDING | schema.ALIGN_CORNERS


def refusals(graph: XnnpackGraph) -> tuple[str, ...]:
    """Nodes, with the types of their values, and further uses that are not implemented."""
    found: dict[str, None] = {}
    for node in graph.root.xnodes:
        operation = node.operation
        entry = OPERATIONS.get(type(operation))
        types = _types(graph, operation)
        if entry is None:
            found[node.name] = None
        elif types not in entry.types:
            names = [datatype.name.lower() for datatype in types]
            found[f"{node.name} of {', '.join(names[:-1])} to {names[-1]}"] = None
        elif flags := operation.flags & _CHANGING & ~_KNOWN_FLAGS.get(type(operation), 0):
            found[f"{node.name} with the flags {flags:#x}"] = None
        elif entry.moves and len(_quantisations(graph, operation)) > 1:
            found[f"{node.name} from one quantisation to another"] = None
    for value in graph.root.xvalues:
        tensor = value.tensor
        if tensor.dq_datatype is not Datatype.INVALID:
            found["values that are quantised before use (dq_datatype)"] = None
        is_external = tensor.flags & (schema.EXTERNAL_INPUT | schema.EXTERNAL_OUTPUT)
        if tensor.datatype not in DTYPES or (
            is_external and tensor.datatype not in _EXTERNAL_TYPES
        ):
            found[f"values of {tensor.datatype.name.lower()}"] = None
    return tuple(found)


class Delegate:
    """A graph that can be executed.

    Raises:
        Unsupported: nodes or types of values that are not implemented, all of them.
    """

    def __init__(self, graph: XnnpackGraph) -> None:
        if found := refusals(graph):
            raise Unsupported("of the XNNPACK delegate", found)
        self._graph = graph
        self._constants = {
            index: constant_of(graph, value)
            for index, value in graph.values.items()
            if value.tensor.constant_buffer_idx
        }
        self._given = _external(graph, schema.EXTERNAL_INPUT)
        self._wanted = _external(graph, schema.EXTERNAL_OUTPUT)
        self._steps = steps_of(graph)
        self._clock = Clock()

    def __call__(self, arguments: Sequence[Any]) -> Sequence[TensorValue]:
        """Run the graph on the arguments of a call, by external id; writes and returns outputs.

        Raises:
            ExecutionError: naming argument or node.
        """
        return self._execute(arguments, None)

    def look(self, arguments: Sequence[Any], look: Look) -> Sequence[TensorValue]:
        """Run the graph, and show nodes and the values between them; raises as a call does."""
        showing = Showing(look, self._external(arguments), self._constants)
        return self._execute(arguments, showing)

    def _external(self, arguments: Sequence[Any]) -> dict[int, TensorValue]:
        """Arguments by the ids that their values have in the graph."""
        ends = (*self._given, *self._wanted)
        return {value.tensor.id_out: _argument(arguments, value) for value in ends}

    def _execute(self, arguments: Sequence[Any], showing: Showing | None) -> Sequence[TensorValue]:
        values = dict(self._constants)
        for value in self._given:
            values[value.tensor.id_out] = described(value, _argument(arguments, value).array())
        self._clock.restart()
        held = sum(entry.array.nbytes for entry in values.values())
        for step in self._steps:
            if passed := self._clock.passed():
                raise ExecutionError(f"the delegate has not ended after {passed}")
            try:
                with one_instruction():
                    if showing is None:
                        self._run(step, values)
                    else:
                        showing.node(step, values, self._run)
                    held += _bytes_of(step.outputs, values) - _bytes_of(step.last, values)
                    for index in step.last:
                        values.pop(index, None)
                    refuse_more(held, "values")
            except (ValueError, IndexError, ExecutionError, MemoryError) as error:
                reason = str(error) or type(error).__name__
                raise ExecutionError(f"node {step.number} {step.name}: {reason}") from None
        written = []
        for value in self._wanted:
            target = _argument(arguments, value)
            result = values[value.tensor.id_out].array
            # A graph has no tensors of rank 0: they have one element there.
            target.write(result.reshape(target.sizes) if not target.sizes else result)
            written.append(target)
        return written

    def _run(self, step: Step, values: dict[int, Operand]) -> None:
        operands = [values[index] for index in step.inputs]
        if step.target.datatype is Datatype.QDINT8:
            (output,) = step.outputs
            values[output] = elementwise.by_row(operands[0], step.dimensions)
        else:
            results = step.entry.kernel(step.operation, operands, step.target)
            each = results if isinstance(results, tuple) else (results,)
            for output, array in zip(step.outputs, each, strict=True):
                values[output] = described(self._graph.values[output], array)


def _bytes_of(indices: Iterable[int], values: Mapping[int, Operand]) -> int:
    return sum(values[index].array.nbytes for index in indices if index in values)


def open_delegate(payload: memoryview, named_data: xnnpack.Lookup, offset: int) -> Delegate:
    """The delegate of a payload that starts at byte ``offset`` of its file; raises as it does.

    Raises:
        FormatError: the payload is no valid graph.
    """
    return Delegate(xnnpack.load(payload, named_data, base=offset))


def _types(graph: XnnpackGraph, operation: schema.Operation) -> tuple[Datatype, ...]:
    inputs, outputs = schema.value_ids(operation)
    indices = [index for index in inputs.values() if index != NO_VALUE]
    return tuple(
        graph.values[index].tensor.datatype for index in (*indices, next(iter(outputs.values())))
    )


def _quantisations(graph: XnnpackGraph, operation: schema.Operation) -> set[tuple[np.float32, int]]:
    """Scales and zero points of the inputs and the first output of a node."""
    inputs, outputs = schema.value_ids(operation)
    indices = (*inputs.values(), next(iter(outputs.values())))
    return {scale_of(graph.values[index]) for index in indices}


def _external(graph: XnnpackGraph, flag: int) -> list[schema.Value]:
    found = [value for value in graph.root.xvalues if value.tensor.flags & flag]
    return sorted(found, key=lambda value: value.tensor.external_id)


def _argument(arguments: Sequence[Any], value: schema.Value) -> TensorValue:
    tensor = value.tensor
    place = tensor.external_id
    found = arguments[place] if place < len(arguments) else None
    if not isinstance(found, TensorValue):
        raise ExecutionError(f"argument {place} of the delegate is no tensor")
    wanted = np.dtype(DTYPES[tensor.datatype])
    is_index = wanted == np.int32 and found.dtype == np.int64
    if found.dtype != wanted and not is_index:
        raise ExecutionError(
            f"argument {place} of the delegate has elements of type {found.dtype}, not {wanted}"
        )
    return found
