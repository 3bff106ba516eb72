"""Is every byte of every layer right? What the tiles hold against the tensors of the network.

The simulated chip is tapped at all of its layers, and each result is put together as the program
spread it over the tiles (``layer_results``). A tensor of the network is found if one result has its
size and equals it on every byte; nothing is shifted, scaled or chosen to make it fit. Tensors that
no layer holds are named with the reason: fused into others, moved by other units, left to the host.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from darwinn_sim.examine import TappedBytes
from darwinn_sim.program import LoweredProgram

from darwinn_testbench.layer_candidates import (
    Candidate,
    Match,
    device_bytes,
    find_candidates,
    find_matches,
    from_device,
    zero_point_of,
)
from darwinn_testbench.policy import AnyArray, absolute_difference
from darwinn_testbench.reference.graph import ABSENT, Network, Operator, Tensor, TensorValues
from darwinn_testbench.report import Row, Verdict
from darwinn_testbench.report.result import PYTHON_ONLY

RENAMING = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS"})
"""Operators whose output is the bytes of their input under another shape."""

MOVING = frozenset({"CONCATENATION", "PAD", "SPLIT", "TILE"})
"""Operators that the tiles do without their tensor units (docs/chip-facts.md, "How operators are
expressed")."""


class Finding(StrEnum):
    """What is known of a tensor: all its bytes, that some are wrong, or that no layer holds it."""

    EQUAL = "equal"
    DIFFERS = "differs"
    NOT_MATERIALISED = "not materialised"


@dataclass(frozen=True, kw_only=True)
class TensorRow(Row):
    """A tensor of the network in one inference, and what the chip held of it.

    ``operator`` computes it. ``layers`` are the numbers of the layers of the program (as ``--tap``
    takes them) that hold it, one for each pass; ``output`` says that it was sent to the host. If it
    differs, ``differing`` of its ``elements`` do, by at most ``max_difference``, in the layers that
    come closest, and ``value`` is what they hold, in the shape and dtype of the tensor.
    """

    run: int
    tensor: int
    operator: str
    shape: tuple[int, ...]
    dtype: str
    finding: Finding
    layers: tuple[int, ...] = ()
    output: bool = False
    elements: int = 0
    differing: int = 0
    max_difference: int = 0
    value: AnyArray | None = field(default=None, repr=False, metadata=PYTHON_ONLY)


def check_layers(
    network: Network,
    expected: TensorValues,
    program: LoweredProgram,
    tapped: Iterable[TappedBytes],
    *,
    inputs: Iterable[int],
    outputs: Mapping[int, AnyArray],
    run: int = 0,
) -> tuple[TensorRow, ...]:
    """A row for each tensor of the network that an operator computes, in the order of operators.

    Args:
        network: the network before compilation.
        expected: its tensors by the chip's arithmetic.
        program: the program that ran.
        tapped: what the taps of ``layer_taps`` copied in an inference.
        inputs: tensors of the network that the chip was given, by index.
        outputs: tensors that the chip has sent, by index, of any shape.
        run: number of the inference.
    """
    candidates = tuple(find_candidates(program, tapped))
    return _Check(network, expected, candidates, frozenset(inputs), outputs, run).rows()


class _Check:
    def __init__(
        self,
        network: Network,
        expected: TensorValues,
        candidates: Sequence[Candidate],
        inputs: frozenset[int],
        outputs: Mapping[int, AnyArray],
        run: int,
    ) -> None:
        self.network = network
        self.expected = expected
        self.candidates = candidates
        self.inputs = inputs
        self.outputs = outputs
        self.run = run
        self.on_chip = _on_chip(network, inputs, outputs)
        self.groups = _same_bytes(network)
        self.equal = {group: self._equal(group) for group in dict.fromkeys(self.groups.values())}
        # A layer that is one tensor is not looked at as another.
        claimed = {
            number for found in self.equal.values() for each in found for number in each.layers
        }
        self.unclaimed = [each for each in candidates if claimed.isdisjoint(each.layers)]
        self.layers = self._assign()

    def rows(self) -> tuple[TensorRow, ...]:
        tensors = self.network.tensors
        return tuple(
            self._row(tensors[index], operator)
            for operator in self.network.operators
            for index in operator.outputs
        )

    def _equal(self, group: tuple[int, ...]) -> list[Candidate]:
        """Candidates that are the tensors of ``group``, the likeliest first."""
        found = [
            match.candidate
            for index in group
            for match in self._matches(self.network.tensors[index], self.candidates)
            if not match.differing
        ]
        return sorted(found, key=lambda each: (each.copies, len(each.parts)))

    def _assign(self) -> dict[tuple[int, ...], tuple[int, ...]]:
        """The layers of each equal tensor: of several that equal it, one that is no other's yet."""
        assigned: dict[tuple[int, ...], tuple[int, ...]] = {}
        taken: set[int] = set()
        for operator in self.network.operators:
            for group in (self.groups[index] for index in operator.outputs):
                choices = [each.layers for each in self.equal[group]]
                if choices and group not in assigned:
                    free = (each for each in choices if taken.isdisjoint(each))
                    assigned[group] = next(free, choices[0])
                    taken.update(assigned[group])
        return assigned

    def _closest(self, group: tuple[int, ...]) -> Match | None:
        """The match that comes closest among computed layers that are no other tensor."""
        computed = [each for each in self.unclaimed if not each.copies]
        tensors = [self.network.tensors[index] for index in group]
        found = [match for tensor in tensors for match in self._matches(tensor, computed)]
        return min(found, key=lambda each: (each.differing, each.candidate.layers), default=None)

    def _matches(self, tensor: Tensor, candidates: Iterable[Candidate]) -> Iterator[Match]:
        if not self._comparable(tensor):
            return
        yield from find_matches(tensor, self.expected[tensor.index], candidates)

    def _comparable(self, tensor: Tensor) -> bool:
        held = tensor.index in self.expected and tensor.index in self.on_chip
        return held and tensor.size > 0 and tensor.dtype.itemsize == 1

    def _row(self, tensor: Tensor, operator: Operator) -> TensorRow:
        group = self.groups[tensor.index]
        row = TensorRow(
            name=tensor.name,
            verdict=Verdict.PASS,
            run=self.run,
            tensor=tensor.index,
            operator=operator.name,
            shape=tensor.shape,
            dtype=str(tensor.dtype),
            finding=Finding.EQUAL,
            layers=self.layers.get(group, ()),
            output=not self.outputs.keys().isdisjoint(group),
            elements=tensor.size,
        )
        sent = self._sent(group)
        if sent is not None and sent[0]:
            row = replace(row, value=self._sent_value(tensor, group))
            return _differs(row, *sent, "as it was sent to the host")
        if row.layers or sent is not None:
            return row
        reason = self._reason(tensor)
        if not reason:
            closest = self._closest(group)
            if closest is not None:
                value = closest.value(tensor)
                row = replace(row, layers=closest.candidate.layers, value=value)
                return _differs(row, closest.differing, closest.max_difference, "closest layer")
            reason = f"no layer has its size: {self._use(tensor, operator)}"
        return replace(row, finding=Finding.NOT_MATERIALISED, message=reason)

    def _sent(self, group: tuple[int, ...]) -> tuple[int, int] | None:
        """How what was sent of a tensor differs; None for others, or without an oracle."""
        for index in group:
            if index in self.outputs and index in self.expected:
                expected = self.expected[index]
                actual = self.outputs[index].reshape(expected.shape)
                gap = absolute_difference(actual, expected)
                return int(np.count_nonzero(gap)), int(gap.max(initial=0))
        return None

    def _sent_value(self, tensor: Tensor, group: tuple[int, ...]) -> AnyArray:
        """What was sent of a tensor, or of one with the same bytes, in its shape and dtype."""
        sent = next(self.outputs[index] for index in group if index in self.outputs)
        if sent.dtype == tensor.dtype:
            return sent.reshape(tensor.shape)
        return from_device(device_bytes(sent).reshape(tensor.shape), tensor.dtype)

    def _reason(self, tensor: Tensor) -> str:
        """Why a tensor cannot be looked for; empty if it can."""
        if tensor.index not in self.on_chip:
            return "left to the host"
        if tensor.index in self.expected.missing:
            return f"not compared: {self.expected.missing[tensor.index]}"
        if not self._comparable(tensor):
            return f"not compared: {tensor.dtype} tensor of {tensor.size} elements"
        given = self.inputs.intersection(self.groups[tensor.index])
        if given:
            return f"the bytes of input {self.network.tensors[min(given)].name}, as they are given"
        return ""

    def _use(self, tensor: Tensor, operator: Operator) -> str:
        """What becomes of a tensor that no layer computes."""
        users = dict.fromkeys(
            each.name for each in self.network.operators if tensor.index in each.inputs
        )
        if operator.name in MOVING:
            return f"{operator.name} moves bytes to where {' and '.join(users)} reads them"
        return f"{operator.name} is fused into {' and '.join(users) or 'nothing'}"


def _differs(row: TensorRow, differing: int, max_difference: int, where: str) -> TensorRow:
    return replace(
        row,
        verdict=Verdict.MISMATCH,
        finding=Finding.DIFFERS,
        differing=differing,
        max_difference=max_difference,
        message=f"{differing} of {row.elements} bytes differ, by up to {max_difference}: {where}",
    )


def _on_chip(network: Network, inputs: Collection[int], outputs: Iterable[int]) -> set[int]:
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


def _same_bytes(network: Network) -> dict[int, tuple[int, ...]]:
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
