"""Computes integers of a model that follow from shapes and constants, before it is compiled.

Exports with shapes of their own making (SHAPE, STRIDED_SLICE, PACK, RESHAPE) have them. The file
says every shape, so such a tensor is a constant, and nothing has to compute it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from darwinn_formats import tflite
from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.graph import ABSENT, Network, Operator, network
from darwinn_reference.tflite.output_stage import NotComputableError

_MOST_ELEMENTS = 1024
"""Elements of a tensor that is computed here, at most: shapes and indices have few."""


def folded(model: tflite.Model, name: str) -> tflite.Model:
    """The model in which such tensors are constants; their operators still stand there.

    Raises:
        ModelError: a model of which no network is made.
    """
    values = dict(_values(network(model, name)))
    if not values:
        return model
    source, buffers = model.subgraphs[0], list(model.buffers)
    tensors = list(source.tensors)
    for index, value in values.items():
        tensors[index] = replace(tensors[index], buffer=len(buffers))
        buffers.append(tflite.Buffer(memoryview(value.tobytes())))
    return replace(
        model,
        subgraphs=(replace(source, tensors=tuple(tensors)), *model.subgraphs[1:]),
        buffers=tuple(buffers),
    )


def is_folded(source: Network, operator: Operator) -> bool:
    """Whether an operator has nothing to compute: all its results are constants.

    One without results is there for what else it does: it assigns a variable.
    """
    constants = [source.tensors[index].constant is not None for index in operator.outputs]
    return bool(constants) and all(constants)


def _values(source: Network) -> Iterator[tuple[int, AnyArray]]:
    """Tensors that operators make, and what they hold, as far as that is known."""
    reference = ChipArithmetic(source)
    known = {each.index: each.constant for each in source.tensors if each.constant is not None}
    for operator in source.operators:
        if not _is_of_integers(source, operator):
            continue
        given = dict(known)
        if operator.name == "SHAPE":
            tensor = source.tensors[operator.inputs[0]]
            given[tensor.index] = np.broadcast_to(np.zeros((), tensor.dtype), tensor.shape)
        if not given.keys() >= {index for index in operator.inputs if index != ABSENT}:
            continue
        try:
            found = reference.run_operator(operator, given)
        except (NotComputableError, ArithmeticError, LookupError, TypeError, ValueError):
            continue
        known |= found
        yield from found.items()


def _is_of_integers(source: Network, operator: Operator) -> bool:
    """Whether an operator makes a few plain integers, which are no outputs of the network."""
    results = [source.tensors[index] for index in operator.outputs]
    plain = all(
        each.dtype in (np.dtype(np.int32), np.dtype(np.int64))
        and not len(each.scale)
        and not each.variable
        and each.size <= _MOST_ELEMENTS
        for each in results
    )
    return plain and not operator.custom and set(source.outputs).isdisjoint(operator.outputs)
