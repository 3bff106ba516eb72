"""The zero points and the factor that a program must hold for each operator of its network.

Each operator of a table below is one instruction that multiplies and accumulates; the scales of its
tensors decide its output stage (docs/comparison.md, "The chip's arithmetic"). Operators that only
move bytes, and operators computed by a table, hold nothing of this kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from darwinn_reference.tflite.call import usable
from darwinn_reference.tflite.factors import (
    addition_weights,
    averaging_factor,
    conversion_factor,
)
from darwinn_reference.tflite.graph import ABSENT, Network, NetworkTensor, Operator
from darwinn_reference.tflite.output_stage import NotComputableError, reciprocal
from numpy.typing import NDArray

from darwinn_testbench.layers.candidates import zero_point_of

Factor = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedStage:
    """What the instruction of an operator holds.

    ``factor`` is one number, or one for each output channel. ``sources`` are the tensors that are
    computed, of which there is one where it has weights (``weighted``).
    """

    operator: Operator
    sources: tuple[NetworkTensor, ...]
    output: NetworkTensor
    factor: Factor
    weighted: bool

    @property
    def tensors(self) -> tuple[NetworkTensor, ...]:
        """All whose quantisation shows in the instruction."""
        return (*self.sources, self.output)


def expected_stages(network: Network, operators: Iterable[Operator]) -> Iterator[ExpectedStage]:
    """The stages of those of ``operators`` of which one is known."""
    for operator in operators:
        form = _FORMS.get(operator.name)
        stage = None if form is None else _stage(network, operator, form)
        if stage is not None:
            yield stage


_Form = Callable[[Operator, tuple[NetworkTensor, ...], tuple[NetworkTensor, ...]], Factor | None]
"""The factor of an operator, from all its inputs and those that are computed, and its output."""


def _stage(network: Network, operator: Operator, form: _Form) -> ExpectedStage | None:
    inputs = tuple(network.tensors[k] for k in operator.inputs if k != ABSENT)
    sources = tuple(each for each in inputs if each.constant is None)
    (output,) = (network.tensors[k] for k in operator.outputs[:1])
    if not sources or not all(map(_in_bytes, (*sources, output))):
        return None
    try:
        factor = form(operator, inputs, (*sources, output))
    except NotComputableError:
        return None
    if factor is None or not usable(factor):
        return None
    return ExpectedStage(operator, sources, output, factor, form is _weighted)


def _in_bytes(tensor: NetworkTensor) -> bool:
    is_byte = tensor.dtype in (np.uint8, np.int8)
    return is_byte and zero_point_of(tensor) is not None and usable(tensor.scale)


def _weighted(
    operator: Operator, inputs: tuple[NetworkTensor, ...], computed: tuple[NetworkTensor, ...]
) -> Factor | None:
    weights = inputs[1] if len(inputs) > 1 else None
    if weights is None or weights.constant is None or not len(weights.scale) or len(computed) != 2:
        return None
    return conversion_factor(computed[0].scale[0], computed[1], weights.scale)


def _sum(
    operator: Operator, inputs: tuple[NetworkTensor, ...], computed: tuple[NetworkTensor, ...]
) -> Factor:
    *sources, output = computed
    if len(sources) == 1:
        return conversion_factor(sources[0].scale[0], output)
    factor = addition_weights(sources[0].scale[0], sources[1].scale[0], output)[2]
    return np.atleast_1d(factor)


def _product(
    operator: Operator, inputs: tuple[NetworkTensor, ...], computed: tuple[NetworkTensor, ...]
) -> Factor | None:
    *sources, output = computed
    if len(sources) != 2:
        return None
    return conversion_factor(sources[0].scale[0], output, sources[1].scale)


def _mean(
    operator: Operator, inputs: tuple[NetworkTensor, ...], computed: tuple[NetworkTensor, ...]
) -> Factor | None:
    source, output = computed[0], computed[-1]
    if not output.size or source.size % output.size:
        return None
    factor = averaging_factor(source.scale[0], output.scale[0], source.size // output.size)
    return np.atleast_1d(factor)


def _pool(
    operator: Operator, inputs: tuple[NetworkTensor, ...], computed: tuple[NetworkTensor, ...]
) -> Factor:
    sides = (int(operator.options.get(f"filter_{name}", 1)) for name in ("height", "width"))
    return np.atleast_1d(reciprocal(np.float32(math.prod(sides))))


def _requantised(
    operator: Operator, inputs: tuple[NetworkTensor, ...], computed: tuple[NetworkTensor, ...]
) -> Factor | None:
    """None of the same scale: these are bytes that are moved."""
    source, output = computed[0], computed[-1]
    return None if source.scale == output.scale else conversion_factor(source.scale[0], output)


_FORMS: Mapping[str, _Form] = {
    "ADD": _sum,
    "AVERAGE_POOL_2D": _pool,
    "CONV_2D": _weighted,
    "DEPTHWISE_CONV_2D": _weighted,
    "FULLY_CONNECTED": _weighted,
    "MEAN": _mean,
    "MUL": _product,
    "QUANTIZE": _requantised,
    "SUB": _sum,
}
