"""Numbers of an operator's elements are equal exactly where the elements are the same function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from darwinn_reference.tflite.graph import Network, NetworkTensor
from darwinn_testbench.proof.terms import NoTerms
from hypothesis import given, settings
from hypothesis import strategies as st
from one_operator import byte_types
from operator_cases import CASES
from operator_numbers import assert_same_classes, drawn_numbers, numbers_of
from slow_forms import Operands


def changed(network: Network, random: np.random.Generator) -> Iterator[Network]:
    """The network with one constant, one scale or one zero point changed."""
    biased = "CONV" in network.operators[0].name or network.operators[0].name == "FULLY_CONNECTED"
    for each in network.tensors:
        plain = each.dtype == np.int32 and not (biased and each.index > 1)
        if each.constant is not None and each.constant.size and not plain:
            values = each.constant.copy()
            values.reshape(-1)[random.integers(values.size)] ^= 1
            yield _with(network, replace(each, constant=values))
        if len(each.scale):
            scales = each.scale.copy()
            place = random.integers(len(scales))
            scales[place] = np.nextafter(scales[place], np.float32(1))
            yield _with(network, replace(each, scale=scales))
            yield _with(network, replace(each, zero_point=each.zero_point ^ 1))


def _with(network: Network, tensor: NetworkTensor) -> Network:
    tensors = tuple(tensor if each.index == tensor.index else each for each in network.tensors)
    return replace(network, tensors=tensors)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=settings().max_examples // 4)
@given(seed=st.integers(0, 2**32 - 1), kind=byte_types)
def test_equal_numbers_are_equal_functions(name: str, seed: int, kind: str) -> None:
    """Also beside the same operator with one constant, scale or zero point changed."""
    random = np.random.default_rng(seed)
    make, slow = CASES[name]
    network = make(random, kind)
    numbers = drawn_numbers(network, random)
    found, keys = numbers_of(network, numbers), list(slow(Operands(network, numbers)))
    assert_same_classes(found, keys)
    for other in changed(network, random):
        try:
            more = numbers_of(other, numbers)
        except NoTerms:
            continue
        more_keys = list(slow(Operands(other, numbers)))
        assert_same_classes(found + more, keys + more_keys)
