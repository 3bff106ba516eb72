"""Of a network in which one number is another one, a proof names it, and both values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from darwinn_testbench.compiler import compile_network, random_convolution, random_dense, uncompiled
from darwinn_testbench.compiler.network import Convolution, DenseNetwork
from darwinn_testbench.proof.difference import TermDifference
from proofs import bound_sample, proof_of

Array = np.ndarray[Any, Any]

DENSE = random_dense((12, 9, 5), 0)
UNSIGNED = random_convolution(4, 8, 4, 4, 1)
SIGNED = random_convolution(4, 8, 4, 4, 2, signed=True)


def changed(values: Array, place: tuple[int, ...], after: int) -> Array:
    found = values.copy()
    found[place] = after
    return found


def of_layer(network: DenseNetwork, number: int, **values: Any) -> DenseNetwork:
    layers = list(network.layers)
    layers[number] = replace(layers[number], **values)
    return replace(network, layers=tuple(layers))


def named(
    compiled: DenseNetwork | Convolution, network: DenseNetwork | Convolution
) -> TermDifference:
    """What a proof names of a program that was compiled from another network."""
    bound = bound_sample(compiled, compile_network(compiled))
    found = proof_of(bound, uncompiled(network))
    assert not found.proved
    (wrong,) = found.refuted
    assert wrong.difference is not None
    return wrong.difference


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("place", [(0, 0), (4, 8), (3, 5)])
def test_a_weight_of_a_dense_layer(layer: int, place: tuple[int, int]) -> None:
    weights = DENSE.layers[layer].weights
    after = int(weights[place]) ^ 1
    difference = named(of_layer(DENSE, layer, weights=changed(weights, place, after)), DENSE)
    assert difference.operator == layer
    assert difference.constant == f"{DENSE.tensor_name(layer)}/weights"
    assert difference.place == place
    assert (difference.here, difference.there) == (int(weights[place]), after)
    assert f"weight {place} is {weights[place]}" in str(difference)


@pytest.mark.parametrize("layer", [0, 1])
def test_a_bias_of_a_dense_layer(layer: int) -> None:
    bias = DENSE.layers[layer].bias
    after = int(bias[2]) + 1000
    difference = named(of_layer(DENSE, layer, bias=changed(bias, (2,), after)), DENSE)
    assert difference.constant == f"{DENSE.tensor_name(layer)}/bias"
    assert difference.place == (2,)
    assert (difference.here, difference.there) == (int(bias[2]), after)


@pytest.mark.parametrize("network", [UNSIGNED, SIGNED], ids=["unsigned", "signed"])
@pytest.mark.parametrize("place", [(0, 0, 0, 0), (3, 2, 2, 3), (1, 1, 0, 2)])
def test_a_weight_of_a_convolution(network: Convolution, place: tuple[int, ...]) -> None:
    after = int(network.weights[place]) ^ 2
    other = replace(network, weights=changed(network.weights, place, after))
    difference = named(other, network)
    assert difference.constant == "weights"
    assert difference.place == place
    assert (difference.here, difference.there) == (int(network.weights[place]), after)
    assert difference.element[-1] == place[0]


@pytest.mark.parametrize("network", [UNSIGNED, SIGNED], ids=["unsigned", "signed"])
def test_a_bias_of_a_convolution(network: Convolution) -> None:
    after = int(network.bias[3]) - 700
    difference = named(replace(network, bias=changed(network.bias, (3,), after)), network)
    assert (difference.constant, difference.place) == ("bias", (3,))
    assert (difference.here, difference.there) == (int(network.bias[3]), after)


def test_a_factor() -> None:
    scales = DENSE.layers[1].weight_scales.copy()
    scales[4] *= np.float32(1.25)
    difference = named(of_layer(DENSE, 1, weight_scales=scales), DENSE)
    assert difference.element == (0, 4)
    assert difference.here is not None
    assert difference.there == pytest.approx(1.25 * difference.here)
    assert "the factor is" in difference.text


def test_a_zero_point_of_the_result() -> None:
    output = replace(DENSE.layers[1].output, zero_point=DENSE.layers[1].output.zero_point + 1)
    other = of_layer(DENSE, 1)
    layers = (other.layers[0], replace(other.layers[1], output=output))
    difference = named(replace(other, layers=layers), DENSE)
    assert "zero point of the result" in difference.text
