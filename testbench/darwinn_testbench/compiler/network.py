"""The networks that the sample compiles: quantised, in integers, from a seed.

Two kinds, each small and each a different half of the chip: a stack of fully connected layers
(int8, a scale for each output, ReLU between the layers) and one convolution (uint8 or int8, bias,
clipped at 6 or not). Weights are random; scales are chosen so that outputs spread over their range,
since a network that saturates everywhere would not tell a right program from a wrong one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

INPUT, OUTPUT = "input", "output"
"""Names of the first and the last tensor of a sample; the layers of an executable carry them."""

SPREAD = 60.0
"""Standard deviation that outputs are scaled to, in steps of the 8-bit output."""

_RELU6_BOUND = 6.0
_CONVOLUTION_STEP = np.float32(_RELU6_BOUND / 230)
"""Output scale with which 6 lies within the 8-bit range, so that the clip has something to do."""


@dataclass(frozen=True)
class Quantisation:
    """real value = scale * (value - zero_point), of a whole activation tensor."""

    scale: np.float32
    zero_point: int


@dataclass(frozen=True, eq=False)
class DenseLayer:
    """A fully connected layer, int8.

    Attributes:
        weights: int8, shape (outputs, inputs), zero point 0.
        weight_scales: float32, shape (outputs,): one scale for each output.
        bias: int32, shape (outputs,), in units of input scale times weight scale.
        output: quantisation of the result.
        relu: whether negative results become 0.
    """

    weights: NDArray[np.int8]
    weight_scales: NDArray[np.float32]
    bias: NDArray[np.int32]
    output: Quantisation
    relu: bool

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return int(self.weights.shape[0])

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return int(self.weights.shape[1])


@dataclass(frozen=True, eq=False)
class DenseNetwork:
    """Fully connected layers, one after another.

    ``input`` quantises the int8 input vector; ``source`` and ``result`` are the names of input and
    output.
    """

    name: str
    input: Quantisation
    layers: tuple[DenseLayer, ...]
    source: str = INPUT
    result: str = OUTPUT

    def tensor_name(self, layer: int) -> str:
        """Name of the output of layer number ``layer``."""
        return self.result if layer == len(self.layers) - 1 else f"layer_{layer}"

    def part(self, first: int, end: int) -> DenseNetwork:
        """The network of the layers ``first`` to ``end - 1`` alone."""
        before = first - 1
        return DenseNetwork(
            f"{self.name}_{first}",
            self.layers[before].output if first else self.input,
            self.layers[first:end],
            self.tensor_name(before) if first else self.source,
            self.tensor_name(end - 1),
        )


@dataclass(frozen=True, eq=False)
class Convolution:
    """A convolution with stride 1 and "same" padding.

    Attributes:
        name: of the network.
        height, width: of image and result, in pixels.
        weights: uint8 or int8, shape (outputs, kernel, kernel, inputs); the kernel is odd. Image
            and result are of the same type.
        weight: scale and zero point of all weights; the zero point of int8 weights is 0.
        bias: int32, shape (outputs,), in units of input scale times weight scale.
        input, output: quantisation of image and result.
        relu6: whether the result is clipped to 0..6.
        source, result: names of image and result.
    """

    name: str
    height: int
    width: int
    weights: NDArray[np.uint8] | NDArray[np.int8]
    weight: Quantisation
    bias: NDArray[np.int32]
    input: Quantisation
    output: Quantisation
    relu6: bool = True
    source: str = INPUT
    result: str = OUTPUT

    @property
    def outputs(self) -> int:
        """Channels of the result."""
        return int(self.weights.shape[0])

    @property
    def kernel(self) -> int:
        """Height and width of the kernel, in pixels."""
        return int(self.weights.shape[1])

    @property
    def inputs(self) -> int:
        """Channels of the image."""
        return int(self.weights.shape[3])

    @property
    def is_signed(self) -> bool:
        """Whether weights, image and result are int8."""
        return self.weights.dtype == np.int8


Sample = DenseNetwork | Convolution
"""A network that the sample can compile."""


def random_dense(sizes: Sequence[int], seed: int, name: str = "dense") -> DenseNetwork:
    """A network of ``len(sizes) - 1`` layers; ``sizes`` are the inputs and the outputs of each.

    All layers but the last have a ReLU.
    """
    random = np.random.default_rng(seed)
    first = quantisation = Quantisation(np.float32(1 / 128), int(random.integers(-20, 21)))
    layers: list[DenseLayer] = []
    for number, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        relu = number < len(sizes) - 2
        layers.append(_random_layer(random, quantisation, inputs, outputs, relu))
        quantisation = layers[-1].output
    return DenseNetwork(name, first, tuple(layers))


def _random_layer(
    random: np.random.Generator, source: Quantisation, inputs: int, outputs: int, relu: bool
) -> DenseLayer:
    weights = random.integers(-127, 128, (outputs, inputs), np.int8)
    scales = random.uniform(0.005, 0.015, outputs).astype(np.float32)
    bias = random.integers(-4000, 4001, outputs, np.int32)
    spread = _sum_spread(inputs, weights.std(), 74.0) * float(source.scale) * 0.01
    zero_point = -128 if relu else int(random.integers(-10, 11))
    return DenseLayer(
        weights, scales, bias, Quantisation(np.float32(spread / SPREAD), zero_point), relu
    )


def random_convolution(
    height: int,
    width: int,
    inputs: int,
    outputs: int,
    seed: int,
    *,
    kernel: int = 3,
    signed: bool = False,
    name: str = "convolution",
) -> Convolution:
    """A convolution; an image has a multiple of 4 ``inputs``, as far as the sample can place it.

    It is uint8 with ReLU6, or int8 without if ``signed``.
    """
    random = np.random.default_rng(seed)
    weights = random.integers(0, 256, (outputs, kernel, kernel, inputs), np.uint8)
    spread = _sum_spread(kernel * kernel * inputs, 74.0, 74.0)
    bias = random.integers(0, max(1, int(spread)), outputs, np.int32)
    image = Quantisation(np.float32(1 / 128), int(random.integers(118, 139)))
    weight_scale = np.float32(SPREAD * _CONVOLUTION_STEP / (spread * float(image.scale)))
    weight = Quantisation(weight_scale, int(random.integers(118, 139)))
    output = Quantisation(_CONVOLUTION_STEP, 0)
    unsigned = Convolution(name, height, width, weights, weight, bias, image, output)
    return _signed(unsigned, int(random.integers(-10, 11))) if signed else unsigned


def _signed(network: Convolution, zero_point: int) -> Convolution:
    """The int8 network with the same weights less 128, without clip and bias in the middle."""
    middle = Quantisation(network.input.scale, network.input.zero_point - 128)
    return replace(
        network,
        weights=(network.weights ^ np.uint8(128)).view(np.int8),
        weight=Quantisation(network.weight.scale, 0),
        bias=network.bias - network.bias.mean(dtype=np.int32),
        input=middle,
        output=Quantisation(network.output.scale, zero_point),
        relu6=False,
    )


def _sum_spread(terms: int, weight_spread: float, activation_spread: float) -> float:
    """Standard deviation of a sum of products of independent weights and activations."""
    return max(1.0, math.sqrt(terms) * float(weight_spread) * activation_spread)
