"""Each operator of the chip-arithmetic oracle equals a slow loop that spells its rule out.

Layers with weights and pools have a file of their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from darwinn_reference.errors import ModelError
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.factors import addition_weights
from darwinn_reference.tflite.graph import Network, NetworkTensor, Operator
from darwinn_reference.tflite.rules import HOST, RULES
from hypothesis import assume, given
from hypothesis import strategies as st
from one_operator import (
    Array,
    activations,
    byte_arrays,
    byte_types,
    compute,
    f32,
    scales,
    single,
    slow_factor,
    slow_output,
    tensor,
    zero_points,
)

# --- element by element -------------------------------------------------------------------------


@st.composite
def pairs_of_operands(draw: st.DrawFn) -> tuple[list[NetworkTensor], Array, Array]:
    kind = draw(byte_types)
    tensors = [tensor(k, (6,), kind, draw(scales), draw(zero_points(kind))) for k in range(3)]
    return tensors, draw(byte_arrays((6,), kind)), draw(byte_arrays((6,), kind))


@given(pairs_of_operands(), st.sampled_from(["ADD", "SUB"]), activations)
def test_additions_are_within_one_of_the_real_sum(
    case: tuple[list[NetworkTensor], Array, Array], name: str, activation: str
) -> None:
    tensors, left, right = case
    network = single(name, tensors, (0, 1), (2,), fused_activation_function=activation)
    result = compute(network, left, right)
    real = [
        (v.astype(float) - t.zero_point) * t.scale.astype(float)
        for v, t in zip((left, right), tensors, strict=False)
    ]
    total = real[0] + real[1] if name == "ADD" else real[0] - real[1]
    exact = [
        slow_output(1, f32(t / float(tensors[2].scale[0])), tensors[2], activation) for t in total
    ]
    assert np.abs(result.astype(int) - exact).max() <= 1


@given(scales, scales, scales)
def test_addition_weights_are_the_best_fraction_of_fifteen_bits(
    first: float, second: float, out: float
) -> None:
    output = tensor(0, (), "u1", out)
    left, right, factor = addition_weights(f32(first), f32(second), output)
    assert 1 <= min(left, right) <= max(left, right) <= 32767
    ratio = first / second
    for other in range(1, 300):
        rival = round(ratio * other)
        if 1 <= rival <= 32767:
            assert abs(left / right - ratio) <= abs(rival / other - ratio) + 1e-15 * ratio
    assert factor == f32(f32(f32(first) / f32(left)) * f32(f32(1) / f32(out)))


@given(pairs_of_operands(), st.integers(4000, 9000), st.integers(4000, 9000))
def test_additions_take_the_weights_of_an_elder_program(
    case: tuple[list[NetworkTensor], Array, Array], weight: int, other: int
) -> None:
    """By its factor; one that no such weights have is none of theirs."""
    (one, two, out), left, right = case
    two = replace(two, scale=np.atleast_1d(f32(float(one.scale[0]) * other / weight)))
    by_rule = addition_weights(one.scale[0], two.scale[0], out)
    assume(by_rule[0] != weight)
    factor = f32(float(one.scale[0]) / float(out.scale[0]) / weight)
    network = single("ADD", [one, two, out], (0, 1), (2,))
    for held, (first, second, scale) in (
        (float(factor), (weight, other, factor)),
        (float(factor) * 1.0001, by_rule),
    ):
        result = compute(network, left, right, factors=frozenset({held}))
        for a, b, found in zip(left.tolist(), right.tolist(), result.tolist(), strict=True):
            total = first * (a - int(one.zero_point[0])) + second * (b - int(two.zero_point[0]))
            assert found == slow_output(total, scale, out)


@given(pairs_of_operands(), activations)
def test_multiply(case: tuple[list[NetworkTensor], Array, Array], activation: str) -> None:
    tensors, left, right = case
    network = single("MUL", tensors, (0, 1), (2,), fused_activation_function=activation)
    result = compute(network, left, right)
    factor = slow_factor(float(tensors[0].scale[0]), float(tensors[1].scale[0]), tensors[2])
    zeros = [int(each.zero_point[0]) for each in tensors]
    expected = [
        slow_output((a - zeros[0]) * (b - zeros[1]), factor, tensors[2], activation)
        for a, b in zip(left.tolist(), right.tolist(), strict=True)
    ]
    assert result.tolist() == expected


@given(pairs_of_operands(), st.sampled_from(["QUANTIZE", "RELU", "RELU6", "RELU_N1_TO_1"]))
def test_requantisation(case: tuple[list[NetworkTensor], Array, Array], name: str) -> None:
    tensors, values, _ = case
    result = compute(single(name, tensors, (0,), (2,)), values)
    factor = slow_factor(float(tensors[0].scale[0]), 1.0, tensors[2])
    activation = "NONE" if name == "QUANTIZE" else name
    zero_point = int(tensors[0].zero_point[0])
    expected = [
        slow_output(v - zero_point, factor, tensors[2], activation) for v in values.tolist()
    ]
    assert result.tolist() == expected


def test_a_change_of_sign_keeps_every_byte() -> None:
    every = np.arange(256, dtype=np.uint8)
    tensors = [tensor(0, (256,), "u1", 0.3, 7), tensor(1, (256,), "i1", 0.3, -121)]
    result = compute(single("QUANTIZE", tensors, (0,), (1,)), every)
    assert np.array_equal(result.view(np.uint8), every ^ 0x80)


@given(pairs_of_operands(), st.sampled_from(["LOGISTIC", "TANH"]))
def test_functions_are_rounded_once(
    case: tuple[list[NetworkTensor], Array, Array], name: str
) -> None:
    tensors, values, _ = case
    result = compute(single(name, tensors, (0,), (2,)), values)
    limits = np.iinfo(tensors[2].dtype)
    for value, found in zip(values.tolist(), result.tolist(), strict=True):
        x = (value - int(tensors[0].zero_point[0])) * float(tensors[0].scale[0])
        y = math.tanh(x) if name == "TANH" else 1 / (1 + math.exp(-min(max(x, -700), 700)))
        ideal = y / float(tensors[2].scale[0]) + int(tensors[2].zero_point[0])
        assert abs(found - min(max(ideal, limits.min), limits.max)) <= 0.5 + 1e-9


@given(byte_arrays((2, 5), "u1"), scales, st.floats(0.25, 2, width=32))
def test_softmax_is_256_times_the_share_rounded(values: Array, scale: float, beta: float) -> None:
    tensors = [tensor(0, (2, 5), "u1", scale, 3), tensor(1, (2, 5), "u1", 1 / 256, 0)]
    result = compute(single("SOFTMAX", tensors, (0,), (1,), beta=beta), values)
    for row, found in zip(values.tolist(), result.tolist(), strict=True):
        powers = [math.exp(beta * scale * (value - max(row))) for value in row]
        for power, byte in zip(powers, found, strict=True):
            assert abs(byte - min(256 * power / sum(powers), 255)) <= 0.5 + 1e-9


# --- moves and interpolation --------------------------------------------------------------------


def test_moves() -> None:
    image = np.arange(2 * 4, dtype=np.uint8).reshape(1, 2, 4)
    source = tensor(0, image.shape, "u1", 0.5, 9)

    def move(name: str, parameter: Any, shape: Sequence[int], **options: Any) -> list[Any]:
        constant = np.array(parameter, np.int32)
        tensors = [
            source,
            tensor(1, constant.shape, "i4", constant=constant),
            tensor(2, shape, "u1", 0.5, 9),
            tensor(3, shape, "u1", 0.5, 9),
        ]
        ports = ((1, 0), (2, 3)) if name == "SPLIT" else ((0, 1), (2,))
        values = ChipArithmetic(single(name, tensors, *ports, **options)).run([image])
        return [values[index].tolist() for index in ports[1]]

    assert move("RESHAPE", [8], (8,)) == [list(range(8))]
    assert move("TILE", [1, 1, 2], (1, 2, 8)) == [np.tile(image, 2).tolist()]
    assert move("SPLIT", [2], (1, 2, 2)) == [image[..., :2].tolist(), image[..., 2:].tolist()]
    assert move("PAD", [[0, 0], [1, 0], [0, 1]], (1, 3, 5)) == [
        [[[9] * 5, [0, 1, 2, 3, 9], [4, 5, 6, 7, 9]]]
    ]


@given(pairs_of_operands())
def test_concatenation_requantises_each_part(
    case: tuple[list[NetworkTensor], Array, Array],
) -> None:
    (first, second, out), left, right = case
    kind = str(out.dtype)
    joined = tensor(2, (12,), kind, float(out.scale[0]), int(out.zero_point[0]))
    network = single("CONCATENATION", [first, second, joined], (0, 1), (2,), axis=0)
    parts = [
        compute(single("QUANTIZE", [source, out, out], (0,), (2,)), values)
        for source, values in ((first, left), (second, right))
    ]
    assert np.array_equal(compute(network, left, right), np.concatenate(parts))


@given(
    st.data(),
    st.sampled_from([(2, 4), (4, 8), (3, 5), (5, 5), (1, 4), (4, 2), (3, 9)]),
    st.sampled_from([(False, False), (True, False), (False, True)]),
)
def test_resize_bilinear_interpolates_in_units_of_a_128th(
    data: st.DataObject, sizes: tuple[int, int], modes: tuple[bool, bool]
) -> None:
    size, outputs = sizes
    corners, half = modes
    image = data.draw(byte_arrays((1, size, size, 1), "u1"))
    tensors = [
        tensor(0, image.shape, "u1", 1, 5),
        tensor(1, (2,), "i4"),
        tensor(2, (1, outputs, outputs, 1), "u1", 1, 5),
    ]
    network = single(
        "RESIZE_BILINEAR", tensors, (0,), (2,), align_corners=corners, half_pixel_centers=half
    )
    step = (size - 1) / (outputs - 1) if corners else size / outputs
    start = step / 2 - 0.5 if half else 0.0
    if size > 1 and ((128 * step) % 1 or (128 * start) % 1):
        values = ChipArithmetic(network).run([image])
        assert "1/128 pixel" in values.assumed[0]
        return
    result = compute(network, image)
    for y, x in itertools.product(range(outputs), repeat=2):
        expected = sum(
            wy * wx * int(image[0, ty, tx, 0])
            for (ty, wy), (tx, wx) in itertools.product(
                slow_taps(start + step * y, size), slow_taps(start + step * x, size)
            )
        )
        assert result[0, y, x, 0] == round(expected)


def slow_taps(position: float, size: int) -> list[tuple[int, float]]:
    position = min(max(position, 0.0), size - 1.0)
    first = math.floor(position)
    return [(first, 1 - position + first), (min(first + 1, size - 1), position - first)]


# --- what cannot be computed --------------------------------------------------------------------


def test_an_unknown_operator_is_named_and_poisons_its_dependants() -> None:
    tensors = [tensor(k, (2,), "u1", 1.0, 0) for k in range(5)]
    operators = (
        Operator(0, "EMBEDDING_LOOKUP", (0,), (1,)),
        Operator(1, "RELU", (1,), (2,)),
        Operator(2, "RELU", (2,), (3,)),
        Operator(3, "RELU", (0,), (4,)),
    )
    network = Network("test", tuple(tensors), operators, (0,), (3, 4))
    values = ChipArithmetic(network).run([np.array([1, 2], np.uint8)])
    assert values[4].tolist() == [1, 2]
    assert set(values.missing) == {1, 2, 3}
    assert "EMBEDDING_LOOKUP" in values.missing[1]
    assert 3 not in values
    # What follows from it names it too, and no descendant.
    assert values.missing[1] == values.missing[2] == values.missing[3]
    with pytest.raises(KeyError, match="EMBEDDING_LOOKUP"):
        values[3]


def test_a_tensor_that_cannot_be_computed_may_be_supplied() -> None:
    tensors = [tensor(k, (2,), "u1", 1.0, 0) for k in range(5)]
    operators = (
        Operator(0, "EMBEDDING_LOOKUP", (0,), (1,)),
        Operator(1, "RELU", (1,), (2,)),
        Operator(2, "HASHTABLE_LOOKUP", (2,), (3,)),
        Operator(3, "ADD", (3, 1), (4,)),
    )
    network = Network("test", tuple(tensors), operators, (0,), (4,))
    asked: list[tuple[int, tuple[str, ...]]] = []

    def supply(
        operator: Operator, known: Mapping[int, Array], reasons: tuple[str, ...]
    ) -> dict[int, Array]:
        asked.append((operator.index, reasons))
        return {1: known[0] + np.uint8(4)} if operator.index == 0 else {}

    values = ChipArithmetic(network).run([np.array([1, 2], np.uint8)], supply=supply)
    assert values[2].tolist() == [5, 6]
    assert set(values.missing) == {3, 4}
    assert [index for index, _ in asked] == [0, 2, 3]
    assert asked[1][1] == asked[2][1]
    assert "HASHTABLE_LOOKUP" in values.missing[4]


def test_going_on_from_a_given_tensor() -> None:
    tensors = [tensor(k, (1,), "u1", 1.0, 0) for k in range(3)]
    operators = (Operator(0, "MYSTERY", (0,), (1,), custom=True), Operator(1, "RELU", (1,), (2,)))
    network = Network("test", tuple(tensors), operators, (0,), (2,))
    zero = np.zeros(1, np.uint8)
    values = ChipArithmetic(network).run([zero], given={1: np.array([7], np.uint8)})
    assert values[2].tolist() == [7]
    assert not values.missing


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("MAX_POOL_2D", {"filter_height": 0}, "at least 1"),
        ("MAX_POOL_2D", {"padding": "ODD"}, "padding ODD"),
        ("MAX_POOL_2D", {"filter_height": 3, "padding": "VALID"}, "reaches over 3 of 2"),
        ("MAX_POOL_2D", {"filter_height": 2, "padding": "VALID"}, "gives shape"),
        ("RELU", {}, ""),
        ("CONCATENATION", {"fused_activation_function": "TANH", "axis": 3}, "activation TANH"),
        ("CONCATENATION", {"axis": 9}, "malformed"),
        ("SOFTMAX", {}, "softmax whose output"),
        ("PAD", {}, "input 1 is absent"),
        ("CONV_2D", {}, "input 1 is absent"),
    ],
)
def test_forms_without_known_arithmetic_are_refused_with_the_reason(
    name: str, options: dict[str, Any], reason: str
) -> None:
    tensors = [tensor(0, (1, 2, 1, 1), "u1", 1.0, 0), tensor(1, (1, 2, 1, 1), "u1", 1.0, 0)]
    network = single(name, tensors, (0,), (1,), **options)
    values = ChipArithmetic(network).run([np.zeros((1, 2, 1, 1), np.uint8)])
    assert reason in values.missing.get(1, "")
    assert (1 in values) == (not reason)


def test_inputs_are_checked() -> None:
    network = single("RELU", [tensor(0, (2,), "u1", 1.0), tensor(1, (2,), "u1", 1.0)], (0,), (1,))
    chip = ChipArithmetic(network)
    with pytest.raises(ModelError, match="1 inputs, not 0"):
        chip.run([])
    with pytest.raises(ModelError, match=r"uint8 \(2,\), not int8 \(2,\)"):
        chip.run([np.zeros(2, np.int8)])
    with pytest.raises(ModelError, match="no tensor 9"):
        chip.run([np.zeros(2, np.uint8)], given={9: np.zeros(2, np.uint8)})


def test_every_operator_of_the_table_is_described() -> None:
    assert all(function.__doc__ for function in HOST.values())
    assert all(rule.function.__doc__ for rule in RULES.values())
