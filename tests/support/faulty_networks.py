"""A dense network, and the same with wrong weights in layers of choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from darwinn_formats import tflite
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_testbench.compiler import uncompiled
from darwinn_testbench.compiler.network import DenseNetwork, random_dense

NETWORK = random_dense([64, 48, 40, 32], 3)
LAYERS = ("layer_0", "layer_1", "output")
INPUT = np.random.default_rng(4).integers(-128, 128, (1, 64), np.int8)


def with_wrong_weights(network: DenseNetwork, wrong: Sequence[int]) -> DenseNetwork:
    """The network with one byte of the weights changed in each of these layers."""
    model = tflite.load(uncompiled(network))
    values = ChipArithmetic(model).run([INPUT])
    by_name = {
        tensor.name: values[k] for k, tensor in enumerate(model.subgraphs[0].tensors) if k in values
    }
    layers = list(network.layers)
    for number in wrong:
        layer = layers[number]
        source = network.source if number == 0 else LAYERS[number - 1]
        before = network.input if number == 0 else layers[number - 1].output
        activations = by_name[source].ravel().astype(int) - before.zero_point
        result = by_name[LAYERS[number]].ravel().astype(int)
        # An output that neither a ReLU nor saturation can hide, and the input that weighs most.
        output = int(np.argmin(np.abs(result - 20)))
        column = int(np.argmax(np.abs(activations * layer.weights[output].astype(int))))
        weights = layer.weights.copy()
        weights[output, column] = -weights[output, column]
        layers[number] = replace(layer, weights=weights)
    return replace(network, layers=tuple(layers))
