"""Operators that public executables seldom have: slow rules, and LiteRT on small files of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from darwinn_formats import tflite
from darwinn_formats.tflite import BuiltinOperator as Name
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.factors import difference_weights
from darwinn_reference.tflite.graph import NetworkTensor
from darwinn_reference.tflite.rules import RULES
from darwinn_testbench.comparison.compare import compare
from darwinn_testbench.policy import LITERT_LAYER
from hypothesis import given
from hypothesis import strategies as st
from one_operator import (
    Array,
    byte_arrays,
    compute,
    f32,
    scales,
    single,
    slow_factor,
    slow_output,
    tensor,
    zero_points,
)
from tiny_models import both, tiny_model

LAYERS = tflite.ActivationFunctionType


def whole(index: int, values: Sequence[Any]) -> NetworkTensor:
    """A constant of int32."""
    array = np.array(values, np.int32)
    return tensor(index, array.shape, "i4", constant=array)


def image(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


# --- moves: every byte as LiteRT ----------------------------------------------------------------

MOVES: list[tuple[Name, tuple[int, ...], list[Any], list[tuple[int, ...]], Any]] = [
    (Name.TRANSPOSE, (2, 3, 4, 5), [[0, 3, 1, 2]], [(2, 5, 3, 4)], tflite.TransposeOptions()),
    (Name.SLICE, (4, 6), [[1, 2], [2, -1]], [(2, 4)], tflite.SliceOptions()),
    (
        Name.STRIDED_SLICE,
        (1, 6, 7, 4),
        [[0, 1, -2, 0], [1, 6, 0, 3], [1, 2, -1, 1]],
        [(1, 3, 5, 3)],
        tflite.StridedSliceOptions(),
    ),
    (
        Name.STRIDED_SLICE,
        (3, 6, 4),
        [[2, 1, 0], [9, 4, 9], [1, 1, 2]],
        [(3, 2)],
        tflite.StridedSliceOptions(begin_mask=4, end_mask=4, shrink_axis_mask=1),
    ),
    (
        Name.PAD,
        (1, 2, 3, 2),
        [[[0, 0], [1, 2], [0, 1], [0, 0]]],
        [(1, 5, 4, 2)],
        tflite.PadOptions(),
    ),
    (
        Name.MIRROR_PAD,
        (1, 4, 3, 2),
        [[[0, 0], [1, 2], [2, 1], [0, 0]]],
        [(1, 7, 6, 2)],
        tflite.MirrorPadOptions(tflite.MirrorPadMode.REFLECT),
    ),
    (
        Name.MIRROR_PAD,
        (1, 4, 3, 2),
        [[[0, 0], [1, 2], [3, 1], [0, 0]]],
        [(1, 7, 7, 2)],
        tflite.MirrorPadOptions(tflite.MirrorPadMode.SYMMETRIC),
    ),
    (Name.SPLIT_V, (2, 7), [[2, -1, 1], 1], [(2, 2), (2, 4), (2, 1)], tflite.SplitVOptions(3)),
    (Name.UNPACK, (2, 3, 4), [], [(2, 4)] * 3, tflite.UnpackOptions(3, 1)),
    (Name.SPACE_TO_DEPTH, (1, 4, 6, 3), [], [(1, 2, 3, 12)], tflite.SpaceToDepthOptions(2)),
    (Name.DEPTH_TO_SPACE, (1, 2, 3, 12), [], [(1, 4, 6, 3)], tflite.DepthToSpaceOptions(2)),
    (
        Name.RESIZE_NEAREST_NEIGHBOR,
        (1, 5, 4, 2),
        [[10, 16]],
        [(1, 10, 16, 2)],
        tflite.ResizeNearestNeighborOptions(),
    ),
    (
        Name.RESIZE_NEAREST_NEIGHBOR,
        (1, 5, 4, 2),
        [[7, 9]],
        [(1, 7, 9, 2)],
        tflite.ResizeNearestNeighborOptions(half_pixel_centers=True),
    ),
    (
        Name.RESIZE_NEAREST_NEIGHBOR,
        (1, 5, 4, 2),
        [[9, 10]],
        [(1, 9, 10, 2)],
        tflite.ResizeNearestNeighborOptions(align_corners=True),
    ),
    (Name.REDUCE_MAX, (1, 4, 5, 3), [[1, 2]], [(1, 3)], tflite.ReducerOptions()),
    (Name.REDUCE_MIN, (1, 4, 5, 3), [[3]], [(1, 4, 5, 1)], tflite.ReducerOptions(keep_dims=True)),
]


@pytest.mark.parametrize(("name", "shape", "parameters", "outputs", "options"), MOVES)
def test_moves_give_the_bytes_of_litert(
    name: Name,
    shape: tuple[int, ...],
    parameters: list[Any],
    outputs: list[tuple[int, ...]],
    options: Any,
) -> None:
    tensors = [tensor(0, shape, "i1", 0.5, 9)]
    tensors += [whole(1 + k, each) for k, each in enumerate(parameters)]
    first = len(tensors)
    tensors += [tensor(first + k, each, "i1", 0.5, 9) for k, each in enumerate(outputs)]
    places = range(first, len(tensors))
    model = tiny_model(name, tensors, range(first), places, options)
    chip, litert = both(model, image(*shape))
    for place in places:
        assert np.array_equal(chip[place], litert[place])


def test_pack_and_pad_with_a_constant_give_the_bytes_of_litert() -> None:
    parts = [tensor(k, (2, 3), "i1", 0.5, 9) for k in range(2)]
    model = tiny_model(
        Name.PACK,
        [*parts, tensor(2, (2, 2, 3), "i1", 0.5, 9)],
        (0, 1),
        (2,),
        tflite.PackOptions(2, 1),
    )
    chip, litert = both(model, image(2, 3), image(2, 3, seed=2))
    assert np.array_equal(chip[2], litert[2])
    value = tensor(2, (1,), "i1", 0.5, 9, np.array([-77], np.int8))
    tensors = [parts[0], whole(1, [[1, 0], [0, 2]]), value, tensor(3, (3, 5), "i1", 0.5, 9)]
    model = tiny_model(Name.PADV2, tensors, (0, 1, 2), (3,), tflite.PadV2Options())
    chip, litert = both(model, image(2, 3))
    assert np.array_equal(chip[3], litert[3])


# --- arithmetic: LiteRT within its policy -------------------------------------------------------


def conv_weights(*shape: int) -> NetworkTensor:
    return tensor(1, shape, "i1", 0.01, 0, image(*shape, seed=4))


BIAS = tensor(2, (4,), "i4", 0.005, 0, np.array([500, -300, 0, 77], np.int32))
SLOPE = tensor(1, (1, 1, 3), "i1", 0.004, -5, image(1, 1, 3, seed=7))

# SUM is not among them: LiteRT's reference kernel gives 1 and -1 for sums of 20 bytes.
ARITHMETIC: list[tuple[Name, list[NetworkTensor], NetworkTensor, Any]] = [
    (
        Name.SQUARED_DIFFERENCE,
        [tensor(1, (1, 4, 5, 3), "i1", 0.5, -3)],
        tensor(2, (1, 4, 5, 3), "i1", 30.0, -100),
        tflite.SquaredDifferenceOptions(),
    ),
    (
        Name.MAXIMUM,
        [tensor(1, (1, 4, 5, 3), "i1", 0.5, 9)],
        tensor(2, (1, 4, 5, 3), "i1", 0.5, 9),
        tflite.MaximumMinimumOptions(),
    ),
    (
        Name.MINIMUM,
        [tensor(1, (1, 1, 1, 3), "i1", 0.5, 9)],
        tensor(2, (1, 4, 5, 3), "i1", 0.5, 9),
        tflite.MaximumMinimumOptions(),
    ),
    (Name.PRELU, [SLOPE], tensor(2, (1, 4, 5, 3), "i1", 0.6, 3), None),
    (Name.LEAKY_RELU, [], tensor(1, (1, 4, 5, 3), "i1", 0.6, 3), tflite.LeakyReluOptions(0.2)),
    (Name.RELU6, [], tensor(1, (1, 4, 5, 3), "i1", 0.03, -100), None),
    (Name.RELU_0_TO_1, [], tensor(1, (1, 4, 5, 3), "i1", 0.01, -100), None),
    (Name.L2_NORMALIZATION, [], tensor(1, (1, 4, 5, 3), "i1", 1 / 128, 0), tflite.L2NormOptions()),
    (
        Name.RESIZE_BILINEAR,
        [whole(1, [8, 10])],
        tensor(2, (1, 8, 10, 3), "i1", 0.5, 9),
        tflite.ResizeBilinearOptions(half_pixel_centers=True),
    ),
    (
        Name.CONV_2D,
        [conv_weights(4, 2, 3, 3), BIAS],
        tensor(3, (1, 2, 3, 4), "i1", 1.5, 3),
        tflite.Conv2DOptions(tflite.Padding.SAME, 2, 2, LAYERS.RELU),
    ),
]


@pytest.mark.parametrize(("name", "parameters", "output", "options"), ARITHMETIC)
def test_arithmetic_is_within_litert_s_policy(
    name: Name, parameters: list[NetworkTensor], output: NetworkTensor, options: Any
) -> None:
    tensors = [tensor(0, (1, 4, 5, 3), "i1", 0.5, 9), *parameters, output]
    model = tiny_model(name, tensors, range(len(tensors) - 1), (output.index,), options)
    fed = [each for each in tensors[:-1] if each.constant is None]
    inputs = [image(*each.shape, seed=k) for k, each in enumerate(fed)]
    chip, litert = both(model, *inputs)
    found = compare(chip[output.index], litert[output.index], LITERT_LAYER)
    assert found.passed, found.reason
    assert len(np.unique(chip[output.index])) > 2


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("stride", "kernel"), [(2, 3), (1, 2), (3, 2)])
def test_transpose_conv(padding: str, stride: int, kernel: int) -> None:
    rows, columns = 3, 4
    grown = [stride * rows, stride * columns]
    if padding == "VALID":
        grown = [(n - 1) * stride + max(kernel, stride) for n in (rows, columns)]
    weights = conv_weights(4, kernel, kernel, 3)
    tensors = [
        whole(0, [1, *grown, 4]),
        weights,
        tensor(2, (1, rows, columns, 3), "i1", 0.5, 9),
        tensor(3, (4,), "i4", 0.005, 0, BIAS.constant),
        tensor(4, (1, *grown, 4), "i1", 1.5, 3),
    ]
    options = tflite.TransposeConvOptions(tflite.Padding[padding], stride, stride)
    model = tiny_model(Name.TRANSPOSE_CONV, tensors, range(4), (4,), options)
    given = image(1, rows, columns, 3)
    chip, litert = both(model, given)
    assert compare(chip[4], litert[4], LITERT_LAYER).passed
    assert weights.constant is not None
    sums = np.zeros((*grown, 4), np.int64) + np.array(BIAS.constant)
    before = [0, 0]
    if padding == "SAME":
        before = [
            max((n - 1) * stride + kernel - size, 0) // 2
            for n, size in zip((rows, columns), grown, strict=True)
        ]
    for y, x, ky, kx in np.ndindex(rows, columns, kernel, kernel):
        row, column = y * stride + ky - before[0], x * stride + kx - before[1]
        if 0 <= row < grown[0] and 0 <= column < grown[1]:
            sums[row, column] += weights.constant[:, ky, kx].astype(int) @ (
                given[0, y, x].astype(int) - 9
            )
    factor = slow_factor(0.5, float(weights.scale[0]), tensors[4])
    expected = [slow_output(int(total), factor, tensors[4]) for total in sums.reshape(-1)]
    assert chip[4].reshape(-1).tolist() == expected
    assert chip.assumed[0]


def test_a_grouped_convolution_is_a_layer_for_each_group() -> None:
    weights = image(4, 2, 2, 3, seed=3)
    tensors = [
        tensor(0, (1, 4, 5, 6), "i1", 0.5, 9),
        tensor(1, weights.shape, "i1", 0.01, 0, weights),
        tensor(2, (1, 4, 5, 4), "i1", 1.5, 3),
    ]
    options = {"stride_h": 1, "stride_w": 1}
    given = image(1, 4, 5, 6)
    values = ChipArithmetic(single("CONV_2D", tensors, (0, 1), (2,), **options)).run([given])
    assert "groups" in values.assumed[0]
    for group in range(2):
        one = [
            tensor(0, (1, 4, 5, 3), "i1", 0.5, 9),
            tensor(1, (2, 2, 2, 3), "i1", 0.01, 0, weights[2 * group : 2 * group + 2]),
            tensor(2, (1, 4, 5, 2), "i1", 1.5, 3),
        ]
        alone = compute(
            single("CONV_2D", one, (0, 1), (2,), **options), given[..., 3 * group :][..., :3]
        )
        assert np.array_equal(values[2][..., 2 * group : 2 * group + 2], alone)


# --- slow rules ---------------------------------------------------------------------------------


@given(st.data(), scales, scales, st.booleans())
def test_extremes_are_of_requantised_bytes(
    data: st.DataObject, first: float, second: float, greater: bool
) -> None:
    output = tensor(2, (6,), "u1", second, 7)
    tensors = [tensor(0, (6,), "u1", first, 3), tensor(1, (6,), "u1", second, 7), output]
    left, right = (data.draw(byte_arrays((6,), "u1")) for _ in range(2))
    name, choose = ("MAXIMUM", max) if greater else ("MINIMUM", min)
    values = ChipArithmetic(single(name, tensors, (0, 1), (2,))).run([left, right])
    one = f32(1) if f32(first) == f32(second) else slow_factor(first, 1.0, output)
    expected = [
        choose(slow_output(a - 3, one, output), b)
        for a, b in zip(left.tolist(), right.tolist(), strict=True)
    ]
    assert values[2].tolist() == expected
    assert "brought to" in values.assumed[0]


def test_a_number_without_axes_is_a_bound() -> None:
    """It has no axis, and the factor that brings it to the output's scale has one."""
    number = tensor(1, (), "u1", 0.5, 3, np.array(9, np.uint8))
    tensors = [tensor(0, (4,), "u1", 0.25, 3), number, tensor(2, (4,), "u1", 0.25, 3)]
    values = np.array([0, 14, 15, 16], np.uint8)
    found = compute(single("MAXIMUM", tensors, (0, 1), (2,)), values)
    assert found.tolist() == [15, 15, 15, 16]


@given(st.data(), scales, scales, zero_points("i1"))
def test_sums_and_squared_differences(
    data: st.DataObject, scale: float, out: float, zero_point: int
) -> None:
    values, others = (data.draw(byte_arrays((2, 5), "i1")) for _ in range(2))
    output = tensor(2, (2,), "i1", out, 4)
    tensors = [tensor(0, (2, 5), "i1", scale, zero_point), whole(1, [1]), output]
    found = compute(single("SUM", tensors, (0, 1), (2,)), values)
    factor = slow_factor(scale, 1.0, output)
    totals = (values.astype(int) - zero_point).sum(axis=1)
    assert found.tolist() == [slow_output(int(each), factor, output) for each in totals]
    output = tensor(2, (2, 5), "i1", out, 4)
    tensors = [tensor(k, (2, 5), "i1", scale, zero_point) for k in range(2)]
    found = compute(single("SQUARED_DIFFERENCE", [*tensors, output], (0, 1), (2,)), values, others)
    expected = []
    for one, other in zip(values.reshape(-1).tolist(), others.reshape(-1).tolist(), strict=True):
        real = f32(f32(one - other) * f32(scale))
        squared = f32(f32(f32(f32(1) / f32(out)) * real) * real)
        expected.append(min(round(float(squared)) + 4, 127))
    assert found.reshape(-1).tolist() == expected


def test_a_squared_difference_without_bounds_keeps_the_low_byte() -> None:
    """A public transformer writes no bound for it: 16 * 16 is 256, and 17 * 17 is 289."""
    tensors = [tensor(k, (4,), "i1", 1.0) for k in range(2)]
    network = single(
        "SQUARED_DIFFERENCE", [*tensors, tensor(2, (4,), "i1", 1.0, -128)], (0, 1), (2,)
    )
    sides = np.array([0, 15, 16, 17], np.int8), np.zeros(4, np.int8)
    assert (compute(network, *sides).astype(int) + 128).tolist() == [0, 225, 255, 255]
    _, _, unit = difference_weights(np.float32(1), np.float32(1), network.tensors[2])
    found = compute(network, *sides, unclipped=frozenset({float(unit)}))
    assert (found.astype(int) + 128).tolist() == [0, 225, 0, 33]


@given(byte_arrays((9,), "u1"), scales, st.sampled_from([0, 3]))
def test_the_inverse_root_is_rounded_once(values: Array, scale: float, zero_point: int) -> None:
    tensors = [tensor(0, (9,), "u1", scale, zero_point), tensor(1, (9,), "u1", 0.02, 5)]
    network = single("RSQRT", tensors, (0,), (1,))
    for value, found in zip(values.tolist(), compute(network, values).tolist(), strict=True):
        x = (value - zero_point) * float(f32(scale))
        ideal = 1 / math.sqrt(x) / float(f32(0.02)) + 5 if x > 0 else math.inf
        assert abs(found - min(ideal, 255)) <= 0.5 + 1e-4


def test_vectors_without_length_stay_nothing() -> None:
    tensors = [tensor(0, (2, 2), "u1", 0.5, 9), tensor(1, (2, 2), "u1", 1 / 128, 128)]
    values = np.array([[9, 9], [9, 19]], np.uint8)
    assert compute(single("L2_NORMALIZATION", tensors, (0,), (1,)), values).tolist() == [
        [128, 128],
        [128, 255],
    ]


def test_what_a_program_steps_by_is_taken() -> None:
    tensors = [
        tensor(0, (1, 3, 1, 1), "u1", 1, 0),
        whole(1, [7, 1]),
        tensor(2, (1, 7, 1, 1), "u1", 1, 0),
    ]
    network = single("RESIZE_BILINEAR", tensors, (0, 1), (2,))
    given = np.array([0, 128, 255], np.uint8).reshape(1, 3, 1, 1)
    # 3 / 7 of a pixel are 54.86 of its 128 parts.
    assert compute(network, given).reshape(-1)[:3].tolist() == [0, 55, 110]
    taken = compute(network, given, steps=frozenset({54}))
    assert taken.reshape(-1)[:3].tolist() == [0, 54, 108]


def test_a_constant_may_have_more_dimensions_than_what_it_multiplies() -> None:
    constant = np.array([[[2]]], np.int8)
    tensors = [
        tensor(0, (3,), "i1", 0.5, 1),
        tensor(1, (1, 1, 1), "i1", 0.5, 0, constant),
        tensor(2, (1, 1, 3), "i1", 0.5, 1),
    ]
    for name, expected in (("MUL", [0, 1, 8]), ("ADD", [2, 3, 10])):
        found = compute(single(name, tensors, (0, 1), (2,)), np.array([0, 1, 8], np.int8))
        assert found.tolist() == [[expected]]


def test_sixteen_bits_are_refused_by_name() -> None:
    tensors = [tensor(k, (2,), "i2", 0.5) for k in range(2)]
    values = ChipArithmetic(single("RELU", tensors, (0,), (1,))).run([np.zeros(2, np.int16)])
    assert "16-bit activations" in values.missing[1]


def test_every_rule_is_shown_by_a_file_or_says_what_it_assumes() -> None:
    assert all(bool(rule.shown_by) != bool(rule.assumption) for rule in RULES.values())
