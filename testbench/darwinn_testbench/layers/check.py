"""Compare the bytes of every layer in the tiles with the tensors of the network.

The simulated chip is tapped at all of its layers, and each result is put together as the program
spread it over the tiles (``layers.results``). A tensor of the network is found if one result has
its size and equals it on every byte. Nothing is shifted, scaled or chosen to make it fit. If no
layer holds a tensor, the reason is named: fused into others, moved by other units, left to the
host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain

import numpy as np
from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.graph import Network, NetworkTensor, Operator, TensorValues

from darwinn_testbench.layers.candidates import (
    Candidate,
    Candidates,
    Match,
    as_tensor,
    find_equal,
    find_matches,
)
from darwinn_testbench.layers.on_chip import MOVING, same_bytes, tensors_on_chip
from darwinn_testbench.layers.taken_tensors import TakenTensor
from darwinn_testbench.policy import absolute_difference
from darwinn_testbench.report import Row, Verdict
from darwinn_testbench.report.result import PYTHON_ONLY

LEFT_TO_THE_HOST = "left to the host"
"""Why a tensor is not looked for that is computed before or after the chip."""

BY_FUNCTION = "by function"
"""A layer is a tensor's since it computes elements of it for every input."""
BY_VALUES = "by values"
"""It is the one that comes closest in this inference."""
_HOW = {BY_FUNCTION: "in the layer that computes it", BY_VALUES: "closest layer"}


class Finding(StrEnum):
    """What is known of a tensor: all its bytes, that some are wrong, or that no layer holds it.

    What cannot be computed is taken as the chip has it, to go on from there.
    """

    EQUAL = "equal"
    DIFFERS = "differs"
    TAKEN = "taken"
    NOT_MATERIALISED = "not materialised"


@dataclass(frozen=True, kw_only=True)
class TensorRow(Row):
    """A tensor of the network in one inference, and what the chip held of it.

    ``operator`` computes it. ``layers`` are the numbers of the layers of the program (as ``--tap``
    takes them) that hold it, one for each pass; ``output`` says that it was sent to the host. If it
    differs, ``differing`` of its ``elements`` do, by at most ``max_difference``, in the layers that
    come closest, and ``value`` is what they hold, in the shape and dtype of the tensor; ``paired``
    says how these layers were found.
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
    paired: str = ""
    value: AnyArray | None = field(default=None, repr=False, metadata=PYTHON_ONLY)

    @property
    def place(self) -> str:
        """Which tensor it is, what computes it, and where the chip has it."""
        layers = "+".join(map(str, self.layers))
        where = f", in layer {layers}" if layers else ", sent to the host" if self.output else ""
        return f"run {self.run}: {self.name}, by {self.operator}{where}"


@dataclass(eq=False)
class LayerCheck:
    """The tensors of a network in one inference, against what the layers of the chip hold.

    Attributes:
        network: the network before compilation.
        expected: its tensors by the chip's arithmetic.
        candidates: what the taps of ``layer_taps`` copied (``find_candidates``).
        inputs: tensors of the network that the chip was given, by index.
        outputs: tensors that the chip has sent, by index, of any shape.
        run: number of the inference.
        taken: tensors that were taken from the chip as they are, by index.
        makers: layers that are known to compute a tensor, by its index, whatever they hold. A
            tensor without is looked for by its values, among the others.
    """

    network: Network
    expected: TensorValues
    candidates: Candidates
    inputs: frozenset[int]
    outputs: Mapping[int, AnyArray]
    run: int = 0
    taken: Mapping[int, TakenTensor] = field(default_factory=dict)
    makers: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.on_chip = tensors_on_chip(self.network, self.inputs, self.outputs)
        self.groups = same_bytes(self.network)
        # Whatever has the same bytes as a tensor that was taken was taken, too.
        self.taken_group = {
            member: each for k, each in self.taken.items() for member in self.groups[k]
        }
        self.known = {
            group: frozenset().union(*(self.makers.get(index, frozenset()) for index in group))
            for group in dict.fromkeys(self.groups.values())
        }
        self.equal = {group: self._equal(group) for group in dict.fromkeys(self.groups.values())}
        # A layer that is one tensor is not looked at as another.
        equal = [each.layers for found in self.equal.values() for each in found]
        taken = [each.layers for each in self.taken_group.values()]
        self.claimed = set(chain.from_iterable([*equal, *taken, *self.known.values()]))
        self.layers = self._assign()

    def rows(self) -> tuple[TensorRow, ...]:
        """A row for each tensor that an operator computes, in the order of operators."""
        tensors = self.network.tensors
        return tuple(
            self._row(tensors[index], operator)
            for operator in self.network.operators
            for index in operator.outputs
        )

    def _equal(self, group: tuple[int, ...]) -> list[Candidate]:
        """Candidates that are the tensors of ``group``, the likeliest first."""
        found = [
            candidate
            for index in group
            if self._comparable(self.network.tensors[index])
            for candidate in find_equal(
                self.network.tensors[index], self.expected[index], self.candidates
            )
            if not self.known[group] or self.known[group].issuperset(candidate.layers)
        ]
        return sorted(found, key=lambda each: (each.copies, len(each.parts)))

    def _assign(self) -> dict[tuple[int, ...], tuple[int, ...]]:
        """The layers of each equal tensor: of several that equal it, one that is no other's yet."""
        assigned: dict[tuple[int, ...], tuple[int, ...]] = {}
        used: set[int] = set()
        for operator in self.network.operators:
            for group in (self.groups[index] for index in operator.outputs):
                choices = [each.layers for each in self.equal[group]]
                if choices and group not in assigned:
                    free = (each for each in choices if used.isdisjoint(each))
                    assigned[group] = next(free, choices[0])
                    used.update(assigned[group])
        return assigned

    def _closest(self, group: tuple[int, ...]) -> Match | None:
        """The match that comes closest among the layers that are known to compute it, or else
        among computed ones that are no other tensor."""
        known = self.known[group]

        def allowed(candidate: Candidate) -> bool:
            if known:
                return known.issuperset(candidate.layers)
            return not candidate.copies and self.claimed.isdisjoint(candidate.layers)

        tensors = [self.network.tensors[index] for index in group]
        found = [match for tensor in tensors for match in self._matches(tensor, allowed)]
        return min(found, key=lambda each: (each.differing, each.candidate.layers), default=None)

    def _matches(
        self, tensor: NetworkTensor, allowed: Callable[[Candidate], bool] = lambda _: True
    ) -> Iterator[Match]:
        if self._comparable(tensor):
            values = self.expected[tensor.index]
            yield from find_matches(tensor, values, self.candidates, allowed)

    def _comparable(self, tensor: NetworkTensor) -> bool:
        held = tensor.index in self.expected and tensor.index in self.on_chip
        return held and tensor.size > 0 and tensor.dtype.itemsize == 1

    def _row(self, tensor: NetworkTensor, operator: Operator) -> TensorRow:
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
        taken = self.taken_group.get(tensor.index)
        if taken is not None:
            why = "; ".join(taken.reasons)
            message = f"taken from the chip ({taken.identified}): {why}"
            return replace(row, finding=Finding.TAKEN, layers=taken.layers, message=message)
        sent = self._sent(group)
        if sent is not None and sent[0]:
            value = next(self.outputs[index] for index in group if index in self.outputs)
            row = replace(row, value=as_tensor(value, tensor))
            return _differs(row, *sent, "as it was sent to the host")
        if row.layers or sent is not None:
            return row
        reason = self._reason(tensor)
        if not reason:
            closest = self._closest(group)
            if closest is not None:
                value = closest.value(tensor)
                row = replace(row, layers=closest.candidate.layers, value=value)
                paired = BY_FUNCTION if self.known[group] else BY_VALUES
                row = replace(row, paired=paired)
                return _differs(row, closest.differing, closest.max_difference, _HOW[paired])
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

    def _reason(self, tensor: NetworkTensor) -> str:
        """Why a tensor cannot be looked for; empty if it can."""
        if tensor.index not in self.on_chip:
            return LEFT_TO_THE_HOST
        if tensor.index in self.expected.missing:
            return f"not compared: {self.expected.missing[tensor.index]}"
        if not self._comparable(tensor):
            return f"not compared: {tensor.dtype} tensor of {tensor.size:,} elements"
        given = self.inputs.intersection(self.groups[tensor.index])
        if given:
            return f"the bytes of input {self.network.tensors[min(given)].name}, as they are given"
        return ""

    def _use(self, tensor: NetworkTensor, operator: Operator) -> str:
        """The use of a tensor that no layer computes."""
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
        message=f"{differing:,} of {row.elements:,} bytes differ, by up to {max_difference}: "
        f"{where}",
    )
