"""What real programs hold of the numbers that the oracle rounds, and which rules give it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from darwinn_formats import darwinn
from darwinn_formats.errors import FormatError
from darwinn_reference.errors import ModelError
from darwinn_reference.tflite.coefficient_tables import compiler_choices
from darwinn_reference.tflite.factors import Factors
from darwinn_reference.tflite.graph import Network, NetworkTensor, Operator
from darwinn_reference.tflite.model import CpuModel
from darwinn_reference.tflite.roundings import (
    ACTIVATION_BOUND,
    ADDITION,
    CONSTANT_FACTOR,
    CONSTANT_TERM,
    MEAN,
    POOL,
    PRODUCTS,
    REQUANTISATION,
    STAGED_MEAN,
    Field,
    Quantities,
    Rounding,
    values,
)
from darwinn_sim.isa.codec import decode
from one_operator import Array, f32

Case = tuple[Rounding, Quantities]

_ENOUGH_BIASES = 16
"""Of fewer biases all may be among the parameters by chance."""

_TENSOR_OPCODES = 4
"""Opcodes of tensor instructions begin with 1."""


# --- what a program holds ------------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """Numbers of a program as bits, sorted.

    ``bounds`` are upper bounds with the factor of the same instruction above them; ``stages`` pairs
    of factors of sums in two stages.
    """

    factors: Array
    bounds: Array
    parameters: Array
    stages: frozenset[tuple[float, float]]

    def has(self, kind: Field, numbers: Factors, beside: Factors) -> bool:
        """Whether the program holds what a rule gives, a bound ``beside`` the layer's factor."""
        if kind is Field.STAGES:
            return (float(numbers[0]), float(numbers[1])) in self.stages
        if kind is Field.BIAS:
            return _among(numbers.astype(np.int32).view(np.uint32), self.parameters)
        bits = np.unique(numbers.view(np.uint32))
        if kind is Field.BOUND:
            return _among(_pairs(np.unique(beside.view(np.uint32)), bits), self.bounds)
        # One factor is a field of an instruction, those of channels are parameters.
        return (len(bits) == 1 and _among(bits, self.factors)) or _among(bits, self.parameters)


def _among(bits: Array, held: Array) -> bool:
    if not len(held):
        return False
    places = np.minimum(np.searchsorted(held, bits), len(held) - 1)
    return bool((held[places] == bits).all())


def _pairs(high: Array, low: Array) -> Array:
    return high.astype(np.uint64) << np.uint64(32) | low.astype(np.uint64)


def held(path: Path) -> Held:
    file = darwinn.load(path)
    factors, parameters = [np.zeros(0, np.uint32)], [np.zeros(0, np.uint32)]
    bounds = [np.zeros(0, np.uint64)]
    stages: set[tuple[float, float]] = set()
    for executable in file.executables:
        data = bytes(executable.parameters)
        parameters.append(np.frombuffer(data[: len(data) // 4 * 4], "<u4"))
        stages |= compiler_choices(executable).stages
        for chunk in executable.instruction_bitstreams:
            for opcode, columns in decode(chunk.bitstream).columns.items():
                if 1 <= opcode <= _TENSOR_OPCODES:
                    factors.append(columns["output_scale"].astype(np.uint32))
                    bounds.append(_pairs(factors[-1], columns["high_clip"]))
    return Held(_sorted(factors), _sorted(bounds), _sorted(parameters), frozenset(stages))


def _sorted(parts: list[Array]) -> Array:
    return np.unique(np.concatenate(parts))


# --- what a network asks for ---------------------------------------------------------------------


def cases(network: Network) -> Iterator[tuple[Rounding, Quantities, Factors]]:
    """The roundings of a network's operators, what they start from, and the layer's factor."""
    for operator in network.operators:
        output = network.tensors[operator.outputs[0]]
        inputs = [network.tensors[index] for index in operator.inputs if index >= 0]
        if operator.name not in _CASES or len(output.scale) != 1 or len(inputs[0].scale) != 1:
            continue
        for rounding, given in _CASES[operator.name](operator, inputs, output):
            yield rounding, given, _NOTHING
            activation = operator.options.get("fused_activation_function", "")
            if rounding is PRODUCTS and activation in _BOUNDS and len(given.other) == 1:
                factor = values(rounding.formula, given)
                yield ACTIVATION_BOUND, replace(given, real=_BOUNDS[activation]), factor


_NOTHING = np.zeros(0, np.float32)
_BOUNDS = {"RELU6": 6.0, "RELU_N1_TO_1": 1.0, "RELU_0_TO_1": 1.0}

Tensors = list[NetworkTensor]
Cases = Callable[[Operator, Tensors, NetworkTensor], Iterator[Case]]


def _scale(tensor: NetworkTensor) -> np.float32:
    return f32(tensor.scale[0])


def _layer(operator: Operator, inputs: Tensors, output: NetworkTensor) -> Iterator[Case]:
    yield PRODUCTS, Quantities(_scale(inputs[0]), output, inputs[1].scale.astype(f32))


def _binary(operator: Operator, inputs: Tensors, output: NetworkTensor) -> Iterator[Case]:
    left, right = inputs[:2]
    if not len(right.scale):
        return
    constant = next((each for each in (left, right) if each.constant is not None), None)
    product = operator.name == "MUL"
    if constant is None:
        yield (
            PRODUCTS if product else ADDITION,
            Quantities(_scale(left), output, np.atleast_1d(_scale(right))),
        )
        return
    assert constant.constant is not None
    computed = right if constant is left else left
    channels = output.shape[-1] if output.shape else 1
    if constant.constant.size not in (1, channels):
        return
    levels = constant.constant.astype(np.int64).reshape(-1) - int(constant.zero_point[0])
    given = Quantities(_scale(computed), output, np.atleast_1d(_scale(constant)), levels)
    yield CONSTANT_FACTOR if product else CONSTANT_TERM, given
    if not product:
        yield from _requantised(operator, [computed], output)


def _requantised(operator: Operator, inputs: Tensors, output: NetworkTensor) -> Iterator[Case]:
    for each in inputs:
        if len(each.scale) == 1 and each.scale[0] != output.scale[0]:
            yield REQUANTISATION, Quantities(_scale(each), output)


def _pool(operator: Operator, inputs: Tensors, output: NetworkTensor) -> Iterator[Case]:
    extents = tuple(int(operator.options[f"filter_{axis}"]) for axis in ("height", "width"))
    yield POOL, Quantities(_scale(inputs[0]), output, extents=extents)


def _mean(operator: Operator, inputs: Tensors, output: NetworkTensor) -> Iterator[Case]:
    source, axes = inputs
    assert axes.constant is not None
    extents = tuple(source.shape[int(axis)] for axis in axes.constant.reshape(-1))
    given = Quantities(_scale(source), output, extents=extents)
    yield MEAN, given
    if len(extents) == 2:
        yield STAGED_MEAN, given


def _lstm(operator: Operator, inputs: Tensors, output: NetworkTensor) -> Iterator[Case]:
    """Products with the gates, whose scales docs/comparison.md names."""
    gate, candidate, squashed = (f32(1 / 255), f32(2 / 255), f32(2 / 32767))
    cell = next(each for each in inputs if each.dtype == np.int16)
    wide = replace(cell, scale=np.array([squashed], f32))
    for scale, target in ((candidate, wide), (_scale(cell), cell), (squashed, output)):
        yield PRODUCTS, Quantities(gate, target, np.atleast_1d(scale))
    yield ADDITION, Quantities(squashed, cell, np.atleast_1d(_scale(cell)))
    for source, matrices in ((inputs[0], inputs[1:5]), (output, inputs[5:9])):
        for weights in matrices:
            yield PRODUCTS, Quantities(_scale(source), output, weights.scale.astype(f32))


_CASES: Mapping[str, Cases] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"), _layer),
    **dict.fromkeys(("ADD", "SUB", "MUL"), _binary),
    **dict.fromkeys(("QUANTIZE", "CONCATENATION", "MAXIMUM", "MINIMUM"), _requantised),
    "AVERAGE_POOL_2D": _pool,
    "MEAN": _mean,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
}


# --- which rules survive -------------------------------------------------------------------------


@dataclass
class Tally:
    """Cases of one rounding in one file: whether the program holds what the rule gives.

    ``apart`` counts for each neighbour the cases that rule it out.
    """

    by_rule: int = 0
    by_a_neighbour_only: int = 0
    unseen: int = 0
    apart: Counter[str] = field(default_factory=Counter)


def compare_rules(network: Network, program: Held) -> dict[str, Tally]:
    """What a program holds of each rounding of its network."""
    tallies: dict[str, Tally] = {}
    given_by: dict[str, dict[str, set[bytes]]] = {}
    for rounding, given, beside in cases(network):
        tally = tallies.setdefault(rounding.name, Tally())
        mine = values(rounding.formula, given)
        others = {each.text: values(each.formula, given) for each in rounding.neighbours}
        kept = {t: program.has(rounding.held_as, each, beside) for t, each in others.items()}
        if not program.has(rounding.held_as, mine, beside):
            tally.unseen += not any(kept.values())
            tally.by_a_neighbour_only += any(kept.values())
            continue
        if rounding.held_as is Field.BIAS and len(mine) < _ENOUGH_BIASES:
            continue
        tally.by_rule += 1
        tally.apart.update(text for text, there in kept.items() if not there)
        if rounding.held_as is Field.STAGES:
            for text, each in (("", mine), *others.items()):
                given_by.setdefault(rounding.name, {}).setdefault(text, set()).add(each.tobytes())
    # Numbers that the program holds must come from somewhere.
    for name, by_text in given_by.items():
        tallies[name].apart.update(t for t, found in by_text.items() if by_text[""] - found)
    return tallies


def of_the_same_calibration(tallies: Mapping[str, Tally]) -> bool:
    """False where most factors of layers are not in the program: it has other scales."""
    layers = tallies.get(PRODUCTS.name, Tally())
    return layers.by_rule >= layers.unseen


def twin(folder: Path, name: str) -> Network | None:
    """The network that a file was compiled from, if it is there and can be read."""
    path = folder / "tflite" / f"{name}.tflite"
    if not path.exists():
        return None
    try:
        return CpuModel.load(path).network
    except (FormatError, ModelError):
        return None
