"""Decide whether the reference is the model that an executable was compiled from; name differences.

A fault is in one place; another model differs in many places (docs/comparison.md, "Another model"):

- the parameters hold almost none of a layer's weights or biases, or lack some weights of many
  layers;
- the quantisation of a tensor differs: no instruction holds two operators that touch it, and the
  layers that read their weights agree on another zero point, or have another scale.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_reference.tflite.graph import ABSENT, Network, NetworkTensor, Operator
from darwinn_reference.tflite.stored_weights import (
    LEAST_GROUPS,
    LayerShare,
    layer_shares,
    operators_between,
)
from darwinn_reference.tflite.stored_words import StoredWords

from darwinn_testbench.comparison.expected_stages import ExpectedStage, expected_stages
from darwinn_testbench.comparison.held_stages import (
    SAME_FACTOR,
    HeldLayer,
    HeldLayers,
    HeldStages,
)
from darwinn_testbench.layers.candidates import zero_point_of
from darwinn_testbench.layers.on_chip import same_bytes
from darwinn_testbench.report import counted

_MOST_NAMED = 3
"""Layers, or tensors, that a message names."""
_MANY_LAYERS = 5
"""More than one fault is in: two exchanged rows of parameters are of two to four layers."""
_BIAS_AT: Mapping[str, int] = {"CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "FULLY_CONNECTED": 2}


@dataclass(frozen=True, slots=True)
class Difference:
    """A tensor whose quantisation is another than the executable holds."""

    tensor: NetworkTensor
    what: str
    here: str
    there: str

    def __str__(self) -> str:
        return (
            f"{self.what} of tensor {self.tensor.name} is {self.here}, "
            f"the executable holds {self.there}"
        )


class Twin:
    """A network beside the executables that may have been compiled from it.

    ``inputs`` and ``outputs`` are the tensors that the chip is given and sends: their quantisation
    is known from the executable's own description.
    """

    def __init__(
        self,
        network: Network,
        caching: Executable | None,
        inference: Executable,
        outputs: Collection[int],
        inputs: Collection[int],
    ) -> None:
        self.network = network
        executables = [inference] if caching is None else [inference, caching]
        self._stored = StoredWords(executables)
        self._caching, self._inference = caching, inference
        self._operators = operators_between(network, outputs, inputs)
        self._ports = frozenset(inputs).union(outputs)

    def differences(self) -> str:
        """What differs, beginning with what the rest follows from; empty if it is the model."""
        shares = self.weights()
        lacking = [each for each in shares if each.found < each.groups]
        if weights := [each for each in shares if each.differs]:
            return _named("weights", weights)
        if len(lacking) >= _MANY_LAYERS:
            return _named("weights", lacking)
        tensors = self.tensors()
        if tensors:
            more = len(tensors) - _MOST_NAMED
            named = [str(each) for each in tensors[:_MOST_NAMED]]
            return "; ".join([*named, *([f"{counted(more, 'more tensor')}"] if more > 0 else [])])
        return _named("biases", [each for each in self.biases() if each.differs])

    def weights(self) -> tuple[LayerShare, ...]:
        """How much of each layer's weights the executables hold."""
        return tuple(layer_shares(self.network, self._stored, self._operators))

    def biases(self) -> tuple[LayerShare, ...]:
        """How many of each layer's different biases the executables hold."""
        return tuple(self._biases()) if self._whole else ()

    def tensors(self) -> list[Difference]:
        """Tensors of another quantisation than the executable holds, in the network's order."""
        absent = self.absent()
        touching: dict[int, list[ExpectedStage]] = {}
        groups = same_bytes(self.network)
        for stage in absent:
            for first in dict.fromkeys(min(groups[each.index]) for each in stage.tensors):
                touching.setdefault(first, []).append(stage)
        ports = {min(groups[each]) for each in self._ports}
        doubtful = {
            first: found
            for first, found in touching.items()
            if len(found) > 1 and first not in ports
        }
        if not doubtful:
            return []
        held = HeldLayers(self._caching, self._inference, self._stored)
        layers = {
            stage.operator.index: layer
            for stage in absent
            if (layer := held.layer(self.network, stage)) is not None
        }
        known = _Known(self.network, groups, frozenset(doubtful), layers)
        found = (known.difference(*each) for each in doubtful.items())
        return [each for each in found if each is not None]

    def absent(self) -> list[ExpectedStage]:
        """The operators that no instruction holds."""
        if not self._whole:
            return []
        held = HeldStages(self._inference, self._stored)
        stages = expected_stages(self.network, self._operators)
        return [each for each in stages if not held.holds(each)]

    @property
    def _whole(self) -> bool:
        """Whether the parameters can hold all weights: incomplete ones say nothing of the model."""
        weights = (
            self.network.tensors[each.inputs[1]]
            for each in self._operators
            if each.name in _BIAS_AT and len(each.inputs) > 1 and each.inputs[1] != ABSENT
        )
        return sum(each.size for each in weights if each.constant is not None) <= self._stored.size

    def _biases(self) -> Iterator[LayerShare]:
        for operator in self._operators:
            place = _BIAS_AT.get(operator.name, len(operator.inputs))
            if place >= len(operator.inputs) or operator.inputs[place] == ABSENT:
                continue
            bias = self.network.tensors[operator.inputs[place]].constant
            if bias is None or bias.dtype != np.int32:
                continue
            values = np.unique(bias[bias != 0])
            if len(values) >= LEAST_GROUPS:
                yield LayerShare(operator, len(values), self._stored.count(values[:, None]))


@dataclass(frozen=True, eq=False)
class _Known:
    """What the layers of a program say of tensors.

    ``doubtful`` are the first tensors of ``groups`` that may differ; ``layers`` those of absent
    operators, by the index of the operator.
    """

    network: Network
    groups: Mapping[int, tuple[int, ...]]
    doubtful: Collection[int]
    layers: Mapping[int, HeldLayer]

    def difference(self, first: int, touching: Sequence[ExpectedStage]) -> Difference | None:
        """How a tensor differs, if its layers agree that it does."""
        group = self.groups[first]
        tensor = self.network.tensors[group[0]]
        expected = zero_point_of(tensor)
        held = set[int | None]()
        scales: list[float] = []
        for stage in touching:
            layer = self.layers.get(stage.operator.index)
            if layer is None:
                continue
            if stage.output.index in group:
                held.add(layer.output_zero_point)
                scales += self._scale(layer, tensor, stage.sources[0], made=True)
            else:
                held.add(layer.input_zero_point)
                scales += self._scale(layer, tensor, stage.output, made=False)
        if len(held) != 1:
            return None
        zero_point = held.pop()
        if zero_point is not None and expected is not None and zero_point != expected:
            here = int(tensor.zero_point[0])
            there = zero_point - expected + here
            return Difference(tensor, "zero point", str(here), str(there))
        other = next((each for each in scales if abs(each - 1) > SAME_FACTOR), None)
        if other is None:
            return None
        scale = float(tensor.scale[0])
        return Difference(tensor, "scale", f"{scale:.7g}", f"{scale * other:.7g}")

    def _scale(
        self, layer: HeldLayer, tensor: NetworkTensor, other: NetworkTensor, *, made: bool
    ) -> list[float]:
        """The held scale of a tensor divided by the expected one, if that of ``other`` is known."""
        if layer.ratio is None or min(self.groups[other.index]) in self.doubtful:
            return []
        return [1 / layer.ratio if made else layer.ratio]


def _named(what: str, shares: Sequence[LayerShare]) -> str:
    if not shares:
        return ""
    operators: list[Operator] = [each.operator for each in shares]
    named = ", ".join(f"{each.index} {each.name}" for each in operators[:_MOST_NAMED])
    others = len(operators) - _MOST_NAMED
    return (
        f"{what} of operator{'s' * (len(operators) > 1)} {named}"
        f"{f' and {others} more' if others > 0 else ''} differ"
    )
