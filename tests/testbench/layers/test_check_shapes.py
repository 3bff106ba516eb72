"""The layer check takes tensors of any rank: scalars, vectors, sequences of images, and none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any
from unittest import mock

import numpy as np
from darwinn_reference.tflite.graph import Network, NetworkTensor, Operator, TensorValues
from darwinn_sim.machine import layers
from darwinn_sim.machine.examine import Tap, TappedBytes
from darwinn_testbench.layers.candidates import find_candidates
from darwinn_testbench.layers.check import Finding, LayerCheck, TensorRow
from darwinn_testbench.layers.localise import localise_layers
from darwinn_testbench.layers.results import image_shape
from hypothesis import given
from hypothesis import strategies as st
from layer_programs import layer, one_pass_words, program, spread
from one_operator import Array, tensor

ZERO_POINT = 7
NAMES = ("RELU", "RESHAPE", "QUANTIZE", "SQUEEZE", "PAD")
shapes = st.lists(st.integers(0, 4), max_size=5).map(tuple)
reshaped = st.sampled_from([lambda s: s, lambda s: (math.prod(s),), lambda s: (1, *s)])
steps = st.tuples(st.sampled_from(NAMES), reshaped, st.sampled_from(["i1", "u1"]))


def chain(kinds: list[tuple[str, Any, str]], shape: tuple[int, ...]) -> Network:
    """Operators one after another, each giving its input's elements in another shape or type."""
    tensors = [tensor(0, shape, "i1", 0.5, ZERO_POINT - 128)]
    operators: list[Operator] = []
    for number, (name, change, dtype) in enumerate(kinds):
        shape = change(shape)
        zero_point = ZERO_POINT - 128 * (dtype == "i1")
        tensors.append(tensor(number + 1, shape, dtype, 0.5, zero_point))
        operators.append(Operator(number, name, (number,), (number + 1,)))
    return Network("test", tuple(tensors), tuple(operators), (0,), (len(kinds),))


def device(each: NetworkTensor, value: Array) -> Array:
    octets = value.reshape(image_shape(each.shape)).view(np.uint8)
    return octets ^ np.uint8(0x80) if each.dtype == np.int8 else octets


def tapped(number: int, image: Array, generator: np.random.Generator) -> Any:
    rows, columns, _ = image.shape
    parts = spread(image, [rows, 0, 0, 0], [columns, 0, 0, 0])
    writes = [2 * len(parts.get(tile, ())) for tile in range(16)]
    return TappedBytes(Tap(layer=number), one_pass_words(parts, generator)), writes


@given(shapes, st.lists(steps, min_size=1), st.data())
def test_tensors_of_any_rank_are_compared(
    shape: tuple[int, ...], kinds: list[tuple[str, Any, str]], data: st.DataObject
) -> None:
    network = chain(kinds, shape)
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    values = {
        each.index: generator.integers(0, 100, each.shape).astype(each.dtype)
        for each in network.tensors
    }
    held = data.draw(st.sampled_from(network.tensors[1:]))
    image = device(held, values[held.index]).copy()
    wrong = bool(image.size) and data.draw(st.booleans())
    if wrong:
        image.reshape(-1)[data.draw(st.integers(0, image.size - 1))] ^= np.uint8(0x11)
    words, writes = tapped(0, image, generator) if image.size else (None, [1] * 16)
    sent = data.draw(st.sampled_from([{}, {len(kinds): values[len(kinds)]}]))

    def check(given: Mapping[int, Array]) -> tuple[TensorRow, ...]:
        expected = TensorValues({**values, **given}, {})
        with mock.patch.object(layers, "find", lambda _: (layer(0, output_zero_point=ZERO_POINT),)):
            candidates = find_candidates(program(writes), [] if words is None else [words])
            outputs = sent or {len(kinds): values[len(kinds)]}
            return LayerCheck(network, expected, candidates, frozenset({0}), outputs).rows()

    rows = {row.tensor: row for row in check({})}
    assert set(rows) == set(range(1, len(kinds) + 1))
    for row in rows.values():
        if row.finding is Finding.DIFFERS:
            assert row.value is not None
            assert (row.value.shape, str(row.value.dtype)) == (row.shape, row.dtype)
    assert all(each.differing for each in localise_layers(check, 0))


@given(shapes)
def test_an_image_has_all_elements_of_a_tensor(shape: tuple[int, ...]) -> None:
    found = image_shape(shape)
    assert math.prod(found) == math.prod(shape)
    assert found[1:] == (1, 1, *shape)[-2:]
