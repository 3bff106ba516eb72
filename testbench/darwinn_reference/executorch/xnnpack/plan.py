"""The nodes of a graph as they are executed.

XNNPACK puts a clamp that is the only reader of a value into the node that writes the value. That
is no matter of speed alone: a quantised sum is then rounded once, to the scale of the clamp's
output, and not first to that of the value between.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np
from darwinn_formats.executorch.xnnpack import XnnpackGraph, schema
from darwinn_formats.executorch.xnnpack.schema import NO_VALUE

from darwinn_reference.executorch.xnnpack.operands import Target, scale_of
from darwinn_reference.executorch.xnnpack.operations import OPERATIONS, Entry

_TAKES_CLAMP = (
    schema.AvgPooling2d,
    schema.Clamp,
    schema.Conv2d,
    schema.ConvTranspose2d,
    schema.DepthwiseConv2d,
    schema.FullyConnected,
    schema.MaxPooling2d,
)
"""Nodes that a clamp behind them is put into."""


@dataclass(frozen=True, slots=True)
class Step:
    """A node that is ready to run.

    ``last`` are values that nobody reads after it; ``dimensions``, of a node that quantises at run
    time, how many of them have a scale in common.
    """

    number: int
    name: str
    operation: schema.Operation
    entry: Entry
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    target: Target
    last: tuple[int, ...] = ()
    dimensions: int = 0


def steps_of(graph: XnnpackGraph) -> tuple[Step, ...]:
    """The steps of a graph whose nodes are all in ``OPERATIONS``."""
    return _with_last(graph, _fused(graph, [_step(graph, *entry) for entry in _numbered(graph)]))


def _numbered(graph: XnnpackGraph) -> list[tuple[int, schema.Node]]:
    return list(enumerate(graph.root.xnodes))


def _step(graph: XnnpackGraph, number: int, node: schema.Node) -> Step:
    operation = node.operation
    inputs, outputs = (tuple(ids.values()) for ids in schema.value_ids(operation))
    entry = OPERATIONS[type(operation)]
    value = graph.values[outputs[0]]
    limits = node.output_min_max if entry.limited else None
    low, high = (-np.inf, np.inf) if limits is None else (limits.output_min, limits.output_max)
    target = Target(value.tensor.datatype, *scale_of(value), low, high)
    given = tuple(index for index in inputs if index != NO_VALUE)
    dimensions = _dimensions(graph, value)
    return Step(number, node.name, operation, entry, given, outputs, target, dimensions=dimensions)


def _dimensions(graph: XnnpackGraph, value: schema.Value) -> int:
    """Dimensions of a value quantised at run time that have a scale in common; 0 for others.

    XNNPACK makes matrix products of convolutions that see one pixel: each has a scale of its own.
    """
    quantisation = value.quantisation
    if not isinstance(quantisation, schema.PerTokenDynamicQuant):
        return 0
    readers = (node.operation for node in graph.root.xnodes)
    if any(_sees_one_pixel(each) and each.input1_id == value.tensor.id_out for each in readers):
        return 1
    return quantisation.num_nonbatch_dims


def _sees_one_pixel(operation: schema.Operation) -> TypeGuard[schema.Conv2d]:
    return (
        isinstance(operation, schema.Conv2d)
        and operation.kernel_height == operation.kernel_width == operation.groups == 1
        and operation.subsampling_height == operation.subsampling_width == 1
        and not operation.padding_top + operation.padding_right
        and not operation.padding_bottom + operation.padding_left
    )


def _fused(graph: XnnpackGraph, steps: list[Step]) -> list[Step]:
    readers = Counter(index for step in steps for index in step.inputs)
    writers: dict[int, int] = {}
    kept: list[Step] = []
    for step in steps:
        (read, *_) = step.inputs
        before = writers.get(read)
        if (
            isinstance(step.operation, schema.Clamp)
            and before is not None
            and isinstance(kept[before].operation, _TAKES_CLAMP)
            and readers[read] == 1
            and not graph.values[read].tensor.flags & schema.EXTERNAL_OUTPUT
        ):
            first, target = kept[before].target, step.target
            low, high = max(first.low, target.low), min(first.high, target.high)
            target = replace(target, low=low, high=high)
            kept[before] = replace(kept[before], outputs=step.outputs, target=target)
            writers[step.outputs[0]] = before
        else:
            writers.update(dict.fromkeys(step.outputs, len(kept)))
            kept.append(step)
    return kept


def _with_last(graph: XnnpackGraph, steps: list[Step]) -> tuple[Step, ...]:
    wanted = {
        index
        for index, value in graph.values.items()
        if value.tensor.flags & schema.EXTERNAL_OUTPUT
    }
    done: list[Step] = []
    for step in reversed(steps):
        done.append(replace(step, last=tuple({*step.inputs, *step.outputs} - wanted)))
        wanted.update(step.inputs)
    return tuple(reversed(done))
