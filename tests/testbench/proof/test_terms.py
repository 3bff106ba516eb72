"""Numbers of an operator's elements are equal exactly where the elements are the same function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from darwinn_sim.numbering.run import Sets
from darwinn_testbench.proof.maxima import Maxima
from darwinn_testbench.proof.terms import Elements, NoTerms, outputs_of
from darwinn_testbench.proof.unsigned import unsigned
from darwinn_testbench.reference.tflite.call import CompilerChoices
from darwinn_testbench.reference.tflite.graph import Network, NetworkTensor
from hypothesis import given, settings
from hypothesis import strategies as st
from one_operator import byte_types
from operator_cases import CASES
from slow_forms import Key, Operands

EMPTY = Sets(*(np.zeros(0, kind) for kind in (np.uint64, np.int64, np.int64, np.uint64)))
MODULUS = (1 << 61) - 1


def drawn_numbers(network: Network, random: np.random.Generator) -> dict[int, Elements]:
    """Numbers of the inputs: of few bytes that are not known, and of some that are."""
    few = random.integers(256, MODULUS, 30, np.uint64)
    found = {}
    for index in network.inputs:
        shape = network.tensors[index].shape
        numbers = random.choice(few, shape)
        known = random.random(shape) < random.choice([0, 0.2])
        found[index] = np.where(known, random.integers(0, 256, shape, np.uint64), numbers)
    return found


def numbers_of(network: Network, numbers: dict[int, Elements]) -> list[int]:
    """The numbers of all outputs, one after another."""
    raised = unsigned(network)
    maxima = Maxima(lambda each: np.zeros(each.shape, np.bool_), EMPTY)
    found = outputs_of(raised, raised.operators[0], numbers, CompilerChoices(), maxima)
    return [int(each) for index in network.outputs for each in found[index].reshape(-1)]


def assert_same_classes(numbers: list[int], keys: list[Key]) -> None:
    """Equal numbers where keys are equal, and nowhere else; constants and bytes are themselves."""
    assert len(numbers) == len(keys)
    pairs = set(zip(numbers, keys, strict=True))
    for number, key in pairs:
        kind, *rest = key if isinstance(key, tuple) else ("", None)
        if kind in ("constant", "byte"):
            assert number == rest[0]
        else:
            assert number >= 256
    assert len(pairs) == len(set(numbers)) == len(set(keys))


def changed(network: Network, random: np.random.Generator) -> Iterator[Network]:
    """The network with one constant, one scale or one zero point changed."""
    for each in network.tensors:
        if each.constant is not None and each.constant.size:
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
@settings(max_examples=settings.default.max_examples // 4)
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
        except (ValueError, IndexError):
            # An axis, size or begin that is none any more.
            continue
        if any(other.tensors[k] is not network.tensors[k] and other.tensors[k].dtype == np.int32
               for k in operands_of_shape(network)):
            continue
        more_keys = list(slow(Operands(other, numbers)))
        assert_same_classes(found + more, keys + more_keys)


def operands_of_shape(network: Network) -> list[int]:
    """Constants of plain integers that are no bias."""
    biases = [each for each in network.operators[0].inputs[2:] if each >= 0]
    named = network.operators[0].name
    if "CONV" in named or named == "FULLY_CONNECTED":
        return [k for k in network.operators[0].inputs if k >= 0 and k not in biases]
    return list(range(len(network.tensors)))
