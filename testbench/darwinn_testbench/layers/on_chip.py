"""Which part of a network the chip computes, and which of its tensors are the same bytes there."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
from darwinn_reference.tflite.graph import ABSENT, Network, Operator

from darwinn_testbench.layers.candidates import zero_point_of

RENAMING = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS"})
"""Operators whose output is the bytes of their input under another shape."""

MOVING = frozenset({"CONCATENATION", "PAD", "SPLIT", "TILE"})
"""Operators that the tiles do without their tensor units (docs/chip-facts.md, "How operators are
expressed")."""


def tensors_on_chip(network: Network, inputs: Collection[int], outputs: Iterable[int]) -> set[int]:
    """Tensors that outputs of the chip depend on, back to its inputs."""
    found: set[int] = set()
    waiting = list(outputs)
    makers = {index: each for each in network.operators for index in each.outputs}
    while waiting:
        index = waiting.pop()
        if index in found:
            continue
        found.add(index)
        if index in makers and index not in inputs:
            waiting += makers[index].inputs
    return found


def same_bytes(network: Network) -> dict[int, tuple[int, ...]]:
    """For each tensor those that are the same bytes on the chip under other names, in order."""
    groups: dict[int, tuple[int, ...]] = {k: (k,) for k in range(len(network.tensors))}
    for operator in network.operators:
        if not _renames(network, operator):
            continue
        merged = groups[operator.inputs[0]] + groups[operator.outputs[0]]
        groups |= dict.fromkeys(merged, merged)
    return groups


def _renames(network: Network, operator: Operator) -> bool:
    """True for a reshape, and for a change of sign that moves the zero point along."""
    if ABSENT in operator.inputs[:1] or not (operator.inputs and operator.outputs):
        return False
    source, output = (network.tensors[k] for k in (operator.inputs[0], operator.outputs[0]))
    if operator.name in RENAMING:
        return source.size == output.size and source.dtype == output.dtype
    if operator.name != "QUANTIZE":
        return False
    zero_point = zero_point_of(source)
    return (
        zero_point is not None
        and zero_point == zero_point_of(output)
        and np.array_equal(source.scale, output.scale)
    )
