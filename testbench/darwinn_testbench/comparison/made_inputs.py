"""Make inputs for one element, backwards, so that the term that differs counts in its sum.

If the operand of the term follows directly from an input of the network, the sum is solved. The
operand is as far from its zero point as possible, and the others bring the sum to a value at which
the two results round differently.

Otherwise the wanted change of the operand goes backwards through the earlier sums, as if nothing
were clipped, and the inputs that it depends on most follow its sign. The wanted change of the whole
sum goes backwards in the same way, and all other inputs follow it in several strengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, floor

import numpy as np
from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.call import Call, CompilerChoices, Operand
from darwinn_reference.tflite.graph import Network, NetworkTensor, Operator
from darwinn_reference.tflite.layers import window_axes
from darwinn_reference.tflite.output_stage import clip_bounds
from darwinn_reference.tflite.rules import Terms, rule_of
from darwinn_sim.kernel.field import CONSTANTS
from numpy.typing import NDArray

from darwinn_testbench.chip.inputs import TensorPort
from darwinn_testbench.layers.on_chip import RENAMING
from darwinn_testbench.proof.difference import SumTerms, TermDifference, sum_terms
from darwinn_testbench.proof.shown import MadeInput

_MOST_BOUNDARIES = 256
"""Rounding boundaries that are tried for a sum."""
_STRENGTHS = tuple(1 - int(f"{k:06b}"[::-1], 2) / 64 for k in range(64))
"""How far inputs follow what is wanted, from 1 down and each between those before: each strength
gives another sum, and somewhere the two results are rounded apart."""
_ALIKE = frozenset({"ADD", "SUB", "MUL", "RELU", "RELU6", "LOGISTIC", "TANH", "QUANTIZE"})
"""What gives more of an element for more of the same element of each input, or nearly so."""

Wanted = NDArray[np.float64]
"""For each element of a tensor, how much more of it is wanted."""


@dataclass(frozen=True)
class Maker:
    """Makes inputs for a network of these ``ports``."""

    network: Network
    ports: Sequence[TensorPort]
    choices: CompilerChoices

    def inputs(self, found: TermDifference) -> Iterator[tuple[MadeInput, ...]]:
        """Inputs for which the element may differ, the likeliest first."""
        operator = self.network.operators[found.operator]
        output = self.network.tensors[operator.outputs[0]]
        flat = int(np.ravel_multi_index(found.element, output.shape))
        terms = sum_terms(self.network, operator, flat)
        if terms is None or found.factor is None:
            return
        source = self.network.tensors[operator.inputs[0]]
        operand = _operand(self.network, operator, terms, found)
        if self._is_given(source.index):
            for values in _solved(self.network, operator, terms, operand, found):
                yield self._made({source.index: values})
            return
        driven, rest = np.zeros(source.size), np.zeros(source.size)
        weights = _weights(self.network, operator).reshape(-1)[terms.weights]
        np.add.at(rest, terms.sources, weights)
        if operand is not None:
            driven[terms.sources[operand]] = 1
            rest[terms.sources[operand]] = 0
        ends = [self._backwards(source.index, each) for each in (driven, rest)]
        zero = {k: np.zeros(self.network.tensors[k].size) for k in {**ends[0], **ends[1]}}
        signs = [1, -1] if operand is not None else [1]
        for strength, up, sign in product(_STRENGTHS, (1, -1), signs):
            term, others = ({k: each.get(k, zero[k]) for k in zero} for each in ends)
            yield self._made(
                {
                    k: _driven(self.network.tensors[k], sign * term[k], up * strength, others[k])
                    for k in zero
                }
            )

    def _is_given(self, index: int) -> bool:
        """Its values follow from an input's alone, one from one."""
        while index not in self.network.inputs:
            maker = self._maker(index)
            if maker is None or not self._is_renamed(maker):
                return False
            index = maker.inputs[0]
        return True

    def _maker(self, index: int) -> Operator | None:
        return next((each for each in self.network.operators if index in each.outputs), None)

    def _is_renamed(self, maker: Operator) -> bool:
        source = self.network.tensors[maker.inputs[0]]
        return maker.name in RENAMING or (maker.name == "QUANTIZE" and source.dtype.kind == "f")

    def _made(self, values: Mapping[int, AnyArray]) -> tuple[MadeInput, ...]:
        """Inputs of the network that give some tensors these values; others at zero."""
        given = {}
        for index, value in values.items():
            at = index
            while at not in self.network.inputs:
                maker = self._maker(at)
                assert maker is not None
                tensor = self.network.tensors[at]
                if maker.name == "QUANTIZE":
                    value = (value - float(tensor.zero_point[0])) * float(tensor.scale[0])
                at = maker.inputs[0]
            given[at] = value.reshape(-1)
        made = []
        for index, port in zip(self.network.inputs, self.ports, strict=True):
            array = given.get(index, np.full(port.elements, float(port.zero_point)))
            kinds, counts = np.unique(array, return_counts=True)
            fill = float(kinds[np.argmax(counts)])
            places = np.flatnonzero(array != fill)
            values_there = tuple(map(float, array[places].tolist()))
            made.append(MadeInput(port.name, fill, tuple(places.tolist()), values_there))
        return tuple(made)

    def _backwards(self, index: int, wanted: Wanted) -> dict[int, Wanted]:
        """What is wanted of tensors that are given, from what is wanted of one within."""
        waiting: dict[int, Wanted] = {index: wanted}
        ends: dict[int, Wanted] = {}
        for operator in reversed(self.network.operators):
            here = [waiting.pop(k, None) for k in operator.outputs]
            if all(each is None for each in here):
                continue
            for k, each in self._of_inputs(operator, here):
                if self.network.tensors[k].constant is not None:
                    continue
                at = ends if self._is_given(k) else waiting
                at[k] = at.get(k, 0) + each / max(np.abs(each).max(initial=0), 1e-9)
        return ends

    def _of_inputs(
        self, operator: Operator, wanted: Sequence[Wanted | None]
    ) -> Iterator[tuple[int, Wanted]]:
        """What is wanted of the inputs of an operator."""
        rule, whole = rule_of(self.network, operator), wanted[0]
        if rule is not None and rule.terms is Terms.MOVES:
            yield from self._moved(operator, wanted)
        elif operator.name in _ALIKE and whole is not None:
            for place, k in enumerate(operator.inputs[:2]):
                if self.network.tensors[k].size == whole.size:
                    yield k, -whole if operator.name == "SUB" and place else whole
        elif operator.name in ("MEAN", "AVERAGE_POOL_2D") and whole is not None:
            source = self.network.tensors[operator.inputs[0]]
            if whole.size == source.shape[-1]:
                yield source.index, np.tile(whole, source.size // whole.size)
        elif whole is not None:
            yield from self._of_sums(operator, whole)

    def _of_sums(self, operator: Operator, wanted: Wanted) -> Iterator[tuple[int, Wanted]]:
        if operator.name not in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"):
            return
        source, output = (
            self.network.tensors[k] for k in (operator.inputs[0], operator.outputs[0])
        )
        weights = _weights(self.network, operator)
        if operator.name == "FULLY_CONNECTED":
            yield source.index, (wanted.reshape(-1, weights.shape[0]) @ weights).reshape(-1)
            return
        depthwise = operator.name == "DEPTHWISE_CONV_2D"
        if weights.shape[3] != source.shape[3]:
            # Groups, or several channels of each: they are not followed.
            return
        found, grid = np.zeros(source.shape), wanted.reshape(output.shape)
        axes = window_axes(operator.options, source.shape[1:3], weights.shape[1:3])
        for i, j in np.ndindex(*weights.shape[1:3]):
            part = grid * weights[0, i, j] if depthwise else grid @ weights[:, i, j]
            lines = [
                np.arange(count) * axis.stride + k * axis.dilation - axis.before
                for axis, k, count in zip(axes, (i, j), output.shape[1:3], strict=True)
            ]
            met = [(at >= 0) & (at < n) for at, n in zip(lines, source.shape[1:3], strict=True)]
            rows, columns = (at[inside] for at, inside in zip(lines, met, strict=True))
            found[:, rows[:, None], columns] += part[:, met[0]][:, :, met[1]]
        yield source.index, found.reshape(-1)

    def _moved(
        self, operator: Operator, wanted: Sequence[Wanted | None]
    ) -> Iterator[tuple[int, Wanted]]:
        """By the operator's own rule, on places in the place of values."""
        rule = rule_of(self.network, operator)
        assert rule is not None
        operands: list[Operand | None] = []
        begins: dict[int, int] = {}
        end = CONSTANTS
        for k in operator.inputs:
            if k < 0:
                operands.append(None)
                continue
            tensor = self.network.tensors[k]
            if tensor.constant is not None:
                operands.append(Operand(tensor, tensor.constant))
                continue
            begins[k] = end
            places = np.arange(end, end + tensor.size).reshape(tensor.shape)
            operands.append(Operand(tensor, places))
            end += tensor.size
        outputs = tuple(self.network.tensors[k] for k in operator.outputs)
        moved = rule.function(Call(operator, tuple(operands), outputs, self.choices))
        found = np.zeros(end)
        parts = moved if isinstance(moved, tuple) else (moved,)
        for places, each in zip(parts, wanted, strict=True):
            if each is not None:
                inside = np.asarray(places).reshape(-1) >= CONSTANTS
                np.add.at(found, np.asarray(places).reshape(-1)[inside], each[inside])
        for k, begin in begins.items():
            yield k, found[begin : begin + self.network.tensors[k].size]


def _weights(network: Network, operator: Operator) -> Wanted:
    """Weights less their zero point."""
    tensor = network.tensors[operator.inputs[1]]
    assert tensor.constant is not None
    return tensor.constant.astype(np.float64) - float(tensor.zero_point[0])


def _operand(
    network: Network, operator: Operator, terms: SumTerms, found: TermDifference
) -> int | None:
    """Which of the terms differs; None if it is none of them."""
    tensor = network.tensors[operator.inputs[1]]
    if found.constant != tensor.name or not found.place:
        return None
    place = np.ravel_multi_index(found.place, tensor.shape)
    return int(np.flatnonzero(terms.weights == place)[0])


def _driven(tensor: NetworkTensor, wanted: Wanted, strength: float, others: Wanted) -> Wanted:
    """The tensor as far from the middle as it can be where more or less is ``wanted``; elsewhere as
    far as ``strength`` says of what is wanted of ``others``."""
    low, high = _ends(tensor)
    towards = np.where(wanted != 0, np.sign(wanted), strength * np.sign(others))
    return np.asarray(np.rint((low + high + towards * (high - low)) / 2), np.float64)


def _ends(tensor: NetworkTensor) -> tuple[float, float]:
    limits = np.iinfo(tensor.dtype)
    return float(limits.min), float(limits.max)


# --- the sum itself ------------------------------------------------------------------------------


def _solved(
    network: Network,
    operator: Operator,
    terms: SumTerms,
    operand: int | None,
    found: TermDifference,
) -> Iterator[Wanted]:
    """Values of an operator's first input for which its element is rounded apart."""
    source = network.tensors[operator.inputs[0]]
    weights = _weights(network, operator).reshape(-1)[terms.weights]
    low, high = (end - float(source.zero_point[0]) for end in _ends(source))
    extremes = [low, high] if operand is not None else [0.0]
    for extreme in sorted(extremes, key=abs, reverse=True):
        operands = np.zeros(len(weights))
        fixed = _bias(network, operator, found)
        if operand is not None:
            operands[operand] = extreme
            fixed += extreme * weights[operand]
        driven = 1.0 if operand is None else extreme
        for total in _apart(network, operator, found, fixed, driven):
            _bring(operands, weights, operand, total - fixed, (low, high))
            values = np.full(source.size, float(source.zero_point[0]))
            values[terms.sources] += operands
            yield values


def _bias(network: Network, operator: Operator, found: TermDifference) -> float:
    for tensor in (network.tensors[k] for k in operator.inputs[2:3] if k >= 0):
        if (
            tensor.constant is not None
            and tensor.size == network.tensors[operator.outputs[0]].shape[-1]
        ):
            return float(tensor.constant.reshape(-1)[found.element[-1]])
    return 0.0


def _apart(
    network: Network, operator: Operator, found: TermDifference, near: float, operand: float
) -> list[float]:
    """Sums of the network for which the chip's result is another one, the nearest first."""
    output = network.tensors[operator.outputs[0]]
    activation = str(operator.options.get("fused_activation_function", "NONE"))
    low, high = map(float, clip_bounds(output, activation))
    factor = found.factor or 1.0
    if found.here is None or found.there is None:
        change = 0.0
    elif not found.constant:
        # Another factor: the larger the sum, the further apart.
        larger = max(found.here, found.there)
        return [(high - 0.6) / larger, (low + 0.6) / larger]
    else:
        change = (found.there - found.here) * operand
    boundaries = (np.arange(ceil(low), floor(high)) + 0.5) / factor - change / 2
    return sorted(boundaries.tolist(), key=lambda each: abs(each - near))[:_MOST_BOUNDARIES]


def _bring(
    operands: Wanted,
    weights: Wanted,
    fixed: int | None,
    rest: float,
    ends: tuple[float, float],
) -> None:
    """Have the sum of the other operands times their weights come as near to ``rest`` as can be."""
    for k in np.argsort(-np.abs(weights), kind="stable").tolist():
        if k == fixed:
            continue
        operands[k] = 0.0
        if weights[k]:
            operands[k] = min(max(np.trunc(rest / weights[k]), ends[0]), ends[1])
            rest -= operands[k] * weights[k]
