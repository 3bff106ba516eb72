"""Convolutions, dense layers and pools equal slow loops that spell their rule out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.graph import ABSENT, Network, NetworkTensor
from darwinn_reference.tflite.output_stage import NotComputableError, summing_dtype
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from one_operator import (
    Array,
    activations,
    byte_arrays,
    byte_types,
    compute,
    f32,
    scales,
    sides,
    single,
    slow_factor,
    slow_output,
    tensor,
    zero_points,
)

# --- layers with weights ------------------------------------------------------------------------


@st.composite
def convolutions(draw: st.DrawFn, depthwise: bool) -> tuple[Network, Array]:
    kind = draw(byte_types)
    batch, height, width, depth = draw(
        st.tuples(st.integers(1, 2), sides, sides, st.integers(1, 3))
    )
    rows, columns = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    options = {
        "padding": draw(st.sampled_from(["SAME", "VALID"])),
        "stride_h": draw(st.integers(1, 3)),
        "stride_w": draw(st.integers(1, 3)),
        "dilation_h_factor": draw(st.integers(1, 2)),
        "dilation_w_factor": draw(st.integers(1, 2)),
        "fused_activation_function": draw(activations),
    }
    channels = depth * draw(st.integers(1, 2)) if depthwise else draw(st.integers(1, 3))
    out_height = extent(height, rows, options, "h")
    out_width = extent(width, columns, options, "w")
    assume(out_height > 0 and out_width > 0)
    shape = (1, rows, columns, channels) if depthwise else (channels, rows, columns, depth)
    weights = draw(byte_arrays(shape, kind))
    per_channel = draw(st.booleans())
    weight_scale = draw(st.lists(scales, min_size=channels, max_size=channels))
    weight_zero = 0 if per_channel else draw(zero_points(kind))
    bias = draw(hnp.arrays("i4", channels, elements=st.integers(-(2**20), 2**20)))
    tensors = [
        tensor(0, (batch, height, width, depth), kind, draw(scales), draw(zero_points(kind))),
        NetworkTensor(
            1,
            "weights",
            shape,
            np.dtype(kind),
            np.array(weight_scale if per_channel else weight_scale[:1], f32),
            np.full(channels if per_channel else 1, weight_zero, np.int64),
            3 if depthwise else 0,
            weights,
        ),
        tensor(2, (channels,), "i4", constant=bias),
        tensor(
            3, (batch, out_height, out_width, channels), kind, draw(scales), draw(zero_points(kind))
        ),
    ]
    name = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    inputs = (0, 1, 2) if draw(st.booleans()) else (0, 1, ABSENT)
    network = single(name, tensors, inputs, (3,), **options)
    return network, draw(byte_arrays(tensors[0].shape, kind))


def extent(size: int, kernel: int, options: Mapping[str, Any], axis: str) -> int:
    stride: int = options[f"stride_{axis}"]
    if options["padding"] == "SAME":
        return math.ceil(size / stride)
    dilation: int = options[f"dilation_{axis}_factor"]
    reach = (kernel - 1) * dilation + 1
    return max(math.ceil((size - reach + 1) / stride), 0)


def slow_convolution(network: Network, image: Array, depthwise: bool) -> Array:
    source, weights, bias, output = network.tensors
    assert weights.constant is not None and bias.constant is not None
    options = network.operators[0].options
    kernel = weights.shape[1:3]
    before = [padding_before(image.shape[1 + k], kernel[k], options, "hw"[k]) for k in (0, 1)]
    result = np.zeros(output.shape, output.dtype)
    multiplier = output.shape[3] // image.shape[3]
    for n, y, x, c in np.ndindex(*output.shape):
        total = int(bias.constant[c]) if network.operators[0].inputs[2] != ABSENT else 0
        for ky, kx in np.ndindex(*kernel):
            row = y * options["stride_h"] + ky * options["dilation_h_factor"] - before[0]
            column = x * options["stride_w"] + kx * options["dilation_w_factor"] - before[1]
            if not (0 <= row < image.shape[1] and 0 <= column < image.shape[2]):
                continue
            depths = [c // multiplier] if depthwise else range(image.shape[3])
            for depth in depths:
                index = (0, ky, kx, c) if depthwise else (c, ky, kx, depth)
                weight = int(weights.constant[index]) - int(weights.zero_point[0])
                total += weight * (int(image[n, row, column, depth]) - int(source.zero_point[0]))
        scale = float(weights.scale[c if len(weights.scale) > 1 else 0])
        factor = slow_factor(float(source.scale[0]), scale, output)
        result[n, y, x, c] = slow_output(
            total, factor, output, options["fused_activation_function"]
        )
    return result


def padding_before(size: int, kernel: int, options: Mapping[str, Any], axis: str) -> int:
    if options["padding"] == "VALID":
        return 0
    stride: int = options[f"stride_{axis}"]
    dilation: int = options[f"dilation_{axis}_factor"]
    outputs = math.ceil(size / stride)
    return max((outputs - 1) * stride + (kernel - 1) * dilation + 1 - size, 0) // 2


@given(convolutions(depthwise=False))
def test_conv_2d(case: tuple[Network, Array]) -> None:
    network, image = case
    assert np.array_equal(compute(network, image), slow_convolution(network, image, False))


@given(convolutions(depthwise=True))
def test_depthwise_conv_2d(case: tuple[Network, Array]) -> None:
    network, image = case
    assert np.array_equal(compute(network, image), slow_convolution(network, image, True))


@given(convolutions(depthwise=False), convolutions(depthwise=True))
def test_signed_networks_equal_unsigned_ones(
    first: tuple[Network, Array], second: tuple[Network, Array]
) -> None:
    """int8 as byte XOR 0x80 with the zero point raised by 128 changes nothing."""
    for network, image in (first, second):
        assert np.array_equal(
            flipped(compute(network, image)), compute(flipped_network(network), flipped(image))
        )


def flipped(values: Array) -> Array:
    other = np.uint8 if values.dtype == np.int8 else np.int8
    return (values.view(np.uint8) ^ np.uint8(0x80)).view(other)


def flipped_network(network: Network) -> Network:
    tensors = [
        flipped_tensor(each) if each.dtype.itemsize == 1 else each for each in network.tensors
    ]
    return Network("test", tuple(tensors), network.operators, network.inputs, network.outputs)


def flipped_tensor(each: NetworkTensor) -> NetworkTensor:
    shift, kind = (128, "u1") if each.dtype == np.int8 else (-128, "i1")
    constant = None if each.constant is None else flipped(each.constant)
    return NetworkTensor(
        each.index,
        each.name,
        each.shape,
        np.dtype(kind),
        each.scale,
        each.zero_point + shift,
        each.channel_axis,
        constant,
    )


@given(st.data(), st.sampled_from([1, 7, 2000]), activations)
def test_fully_connected_is_exact_however_long_the_sum(
    data: st.DataObject, depth: int, activation: str
) -> None:
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    weights = generator.integers(-128, 128, (3, depth)).astype(np.int8)
    bias = generator.integers(-(2**30), 2**30, 3).astype(np.int32)
    scale = data.draw(st.floats(2**-16, 2**-10, width=32))
    tensors = [
        tensor(0, (2, depth), "i1", 0.5, -128),
        tensor(1, (3, depth), "i1", scale, 0, weights),
        tensor(2, (3,), "i4", constant=bias),
        tensor(3, (2, 3), "i1", 0.25, data.draw(zero_points("i1"))),
    ]
    rows = generator.integers(-128, 128, (2, depth)).astype(np.int8)
    network = single(
        "FULLY_CONNECTED", tensors, (0, 1, 2), (3,), fused_activation_function=activation
    )
    totals = (rows.astype(object) + 128) @ weights.astype(object).T + bias.astype(object)
    factor = slow_factor(0.5, scale, tensors[3])
    expected = [[slow_output(t, factor, tensors[3], activation) for t in row] for row in totals]
    assert compute(network, rows).tolist() == expected


@pytest.mark.parametrize(
    ("kernel", "depth", "stride"),
    [((1, 1), 700, 1), ((1, 1), 2**12, 1), ((3, 3), 100, 1), ((3, 3), 100, 2), ((2, 2), 700, 1)],
    ids=str,
)
@pytest.mark.parametrize("rows", [3, 200])
def test_a_convolution_is_exact_however_long_its_sums(
    kernel: tuple[int, int], depth: int, stride: int, rows: int
) -> None:
    """Sums of a row of the kernel fit into float32, or not; what is left beside the bias is odd."""
    generator = np.random.default_rng(0)
    weights = generator.integers(100, 128, (3, *kernel, depth)).astype(np.int8)
    weights[..., 0] = generator.integers(-3, 4, weights.shape[:-1])
    image = np.full((2, rows, 4, depth), 114, np.int8)
    image[..., 0] += generator.integers(-4, 5, image.shape[:-1], np.int8)
    bias = np.array([-int(each.astype(int).sum()) * (114 + 128) for each in weights], np.int32) | 1
    options = {
        "padding": "VALID",
        "stride_h": stride,
        "stride_w": stride,
        "dilation_h_factor": 1,
        "dilation_w_factor": 1,
    }
    sizes = [extent(size, kernel[k], options, "hw"[k]) for k, size in enumerate((rows, 4))]
    tensors = [
        tensor(0, image.shape, "i1", 0.5, -128),
        tensor(1, weights.shape, "i1", 0.5, 0, weights),
        tensor(2, (3,), "i4", constant=bias),
        tensor(3, (2, *sizes, 3), "i1", 0.25, 0),
    ]
    factor = slow_factor(0.5, 0.5, tensors[3])
    found = compute(single("CONV_2D", tensors, (0, 1, 2), (3,), **options), image)
    for n, y, x in np.ndindex(2, *sizes):
        top, left = y * stride, x * stride
        window = image[n, top : top + kernel[0], left : left + kernel[1]].astype(int) + 128
        totals = (weights.astype(int) * window).sum(axis=(1, 2, 3)) + bias
        expected = [slow_output(total, factor, tensors[3]) for total in totals.tolist()]
        assert found[n, y, x].tolist() == expected


@pytest.mark.parametrize(
    ("bound", "dtype"),
    [(2**24, np.float32), (2**24 + 1, np.float64), (2**31 - 1, np.float64)],
)
def test_the_summing_type_holds_every_partial_sum(bound: int, dtype: type) -> None:
    assert summing_dtype(bound) is dtype
    assert int(dtype(bound)) == bound
    assert int(dtype(bound - 1)) == bound - 1


def test_a_sum_that_no_float_holds_is_refused() -> None:
    with pytest.raises(NotComputableError, match="float64"):
        summing_dtype(2.0**53 + 2)


@pytest.mark.parametrize(
    ("scale", "assumed"),
    [(1e-21, ""), (1e-6, "a sum with its bias beyond 32 bits saturates")],
)
def test_a_sum_beyond_32_bits_saturates_and_says_so_where_it_matters(
    scale: float, assumed: str
) -> None:
    """A channel without weights has a bias of 2^31 - 1, which its factor makes 0 of."""
    weights, bias = np.array([[127]], np.int8), np.array([2**31 - 1], np.int32)
    tensors = [
        tensor(0, (1, 1), "i1", 0.5, -128),
        tensor(1, (1, 1), "i1", scale, 0, weights),
        tensor(2, (1,), "i4", constant=bias),
        tensor(3, (1, 1), "i1", 0.25, -3),
    ]
    network = single("FULLY_CONNECTED", tensors, (0, 1, 2), (3,))
    values = ChipArithmetic(network).run([np.array([[127]], np.int8)])
    expected = slow_output(2**31 - 1, slow_factor(0.5, scale, tensors[3]), tensors[3])
    assert values[3].tolist() == [[expected]]
    assert values.assumed.get(0, "") == assumed


@pytest.mark.parametrize("bias", [0, -5, -(2**31)])
def test_products_beyond_32_bits_wrap_before_the_bias_is_added(bias: int) -> None:
    width, kind = 70_000, np.int8
    tensors = [
        tensor(0, (1, width), "i1", 0.5, -128),
        tensor(1, (1, width), "i1", 1e-8, 0, np.full((1, width), 127, kind)),
        tensor(2, (1,), "i4", constant=np.array([bias], np.int32)),
        tensor(3, (1, 1), "i1", 0.25, -3),
    ]
    network = single("FULLY_CONNECTED", tensors, (0, 1, 2), (3,))
    values = ChipArithmetic(network).run([np.full((1, width), 127, kind)])
    wrapped = (width * 127 * 255 + 2**31) % 2**32 - 2**31
    total = max(wrapped + bias, -(2**31))
    expected = slow_output(total, slow_factor(0.5, 1e-8, tensors[3]), tensors[3])
    assert values[3].tolist() == [[expected]]
    said = values.assumed.get(0, "")
    assert ("a sum of products beyond 32 bits wraps" in said) and (
        ("saturates" in said) == (wrapped + bias < -(2**31))
    )


# --- pools and means ----------------------------------------------------------------------------


@given(st.data(), byte_types, st.sampled_from(["AVERAGE_POOL_2D", "MAX_POOL_2D"]))
def test_pools(data: st.DataObject, kind: str, name: str) -> None:
    height, width, rows, columns = data.draw(st.tuples(sides, sides, sides, sides))
    rows, columns = min(rows, height), min(columns, width)
    options = {
        "padding": "VALID",
        "filter_height": rows,
        "filter_width": columns,
        "stride_h": data.draw(st.integers(1, 2)),
        "stride_w": data.draw(st.integers(1, 2)),
        "dilation_h_factor": 1,
        "dilation_w_factor": 1,
    }
    scale, zero_point = data.draw(scales), data.draw(zero_points(kind))
    shape = (1, extent(height, rows, options, "h"), extent(width, columns, options, "w"), 2)
    tensors = [
        tensor(0, (1, height, width, 2), kind, scale, zero_point),
        tensor(1, shape, kind, scale, zero_point),
    ]
    image = data.draw(byte_arrays(tensors[0].shape, kind))
    result = compute(single(name, tensors, (0,), (1,), **options), image)
    for n, y, x, c in np.ndindex(*shape):
        top, left = y * options["stride_h"], x * options["stride_w"]
        window = image[n, top : top + rows, left : left + columns, c].astype(int)
        if name == "MAX_POOL_2D":
            assert result[n, y, x, c] == window.max()
        else:
            total = int((window - zero_point).sum())
            factor = slow_factor(scale, float(f32(1) / f32(rows * columns)), tensors[1])
            assert result[n, y, x, c] == slow_output(total, factor, tensors[1])


def test_the_factor_of_an_average_pool_holds_the_scale() -> None:
    """0x3CE38E3A in the executable of a MobileNet, one step above float32(1 / 36)."""
    scale = 0.023528477177023888
    tensors = [tensor(0, (1, 6, 6, 1), "u1", scale), tensor(1, (1, 1, 1, 1), "u1", scale)]
    options = {"filter_height": 6, "filter_width": 6, "padding": "VALID"}
    network = single("AVERAGE_POOL_2D", tensors, (0,), (1,), **options)
    # A sum of 36 * 2.5 is a tie for float32(1 / 36), and above it for the factor.
    image = np.array([2, 3] * 18, np.uint8).reshape(1, 6, 6, 1)
    assert compute(network, image).reshape(-1).tolist() == [3]


@given(byte_arrays((1, 2, 3, 2), "i1"))
def test_a_mean_without_bounds_keeps_the_low_byte(image: Array) -> None:
    """Early compilers write no bounds for pools and means."""
    axes = tensor(1, (2,), "i4", constant=np.array([1, 2], np.int32))
    tensors = [tensor(0, image.shape, "i1", 2.0, -128), axes, tensor(2, (1, 2), "i1", 0.5, -128)]
    network = single("MEAN", tensors, (0, 1), (2,), keep_dims=False)
    factor = f32(4) / f32(6)
    totals = (image.astype(int) + 128).sum(axis=(1, 2))[0]
    expected = [(round(float(f32(total) * factor)) % 256) - 128 for total in totals.tolist()]
    found = compute(network, image, unclipped=frozenset({float(factor)}))
    assert found.tolist() == [expected]


@given(byte_arrays((1, 3, 4, 2), "u1"))
def test_windows_over_the_border_are_divided_by_what_they_hold(image: Array) -> None:
    scale = 0.3
    tensors = [tensor(0, image.shape, "u1", scale, 9), tensor(1, image.shape, "u1", scale, 9)]
    network = single("AVERAGE_POOL_2D", tensors, (0,), (1,), filter_height=3, filter_width=3)
    found = compute(network, image)
    # 4, 6 and 9 elements are within the image: weights of 9, 6 and 4 steps of 1 / 36.
    factor = slow_factor(scale, float(f32(1) / f32(36)), tensors[1])
    for _, y, x, c in np.ndindex(*image.shape):
        window = image[0, max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2, c].astype(int)
        total = int((window - 9).sum()) * (36 // window.size)
        assert found[0, y, x, c] == slow_output(total, factor, tensors[1])


def test_windows_with_many_different_numbers_of_elements_are_assumed() -> None:
    """Weights in steps of 1 / 3600 are no bytes."""
    image = np.arange(36, dtype=np.uint8).reshape(1, 6, 6, 1)
    tensors = [tensor(0, image.shape, "u1", 0.3), tensor(1, image.shape, "u1", 0.3)]
    network = single("AVERAGE_POOL_2D", tensors, (0,), (1,), filter_height=5, filter_width=5)
    assert "border" in ChipArithmetic(network).run([image]).assumed[0]


@given(byte_arrays((1, 3, 4, 2), "u1"), scales)
def test_mean_over_the_image(image: Array, scale: float) -> None:
    axes = tensor(1, (2,), "i4", constant=np.array([1, 2], np.int32))
    tensors = [tensor(0, image.shape, "u1", scale, 9), axes, tensor(2, (1, 2), "u1", 0.3, 9)]
    result = compute(single("MEAN", tensors, (0, 1), (2,), keep_dims=False), image)
    totals = (image.astype(int) - 9).sum(axis=(1, 2))
    factor = f32(f32(f32(scale) / f32(0.3)) / f32(12))
    expected = [slow_output(int(t), factor, tensors[2]) for t in totals[0]]
    assert result.tolist() == [expected]


def mean_of(image: Array, scale: float, **choices: Any) -> int:
    """The mean of all pixels of one channel, with the scale and zero point 0 on both sides."""
    axes = tensor(1, (2,), "i4", constant=np.array([1, 2], np.int32))
    tensors = [tensor(0, image.shape, "u1", scale), axes, tensor(2, (1, 1), "u1", scale)]
    network = single("MEAN", tensors, (0, 1), (2,), keep_dims=False)
    return int(compute(network, image, **choices).item())


def image_of(side: int, total: int) -> Array:
    """One channel of ``side`` times ``side`` pixels that add up to ``total``."""
    low, more = divmod(total, side * side)
    return (low + (np.arange(side * side) < more)).astype(np.uint8).reshape(1, side, side, 1)


EQUAL = 0.101815253496170044
"""s * float32(1 / s) is not 1: thermal_face_automl has it around a mean over 6 x 6."""
STAGED = 0.135822430253028870
"""The same network has it around a mean over 24 x 24, which it makes in two stages."""


def test_the_mean_of_equal_scales_is_a_division_by_the_number_of_elements() -> None:
    """The executable holds float32(1 / 36) = 0x3CE38E39: ties go to even, not down."""
    assert f32(EQUAL) * (f32(1) / f32(EQUAL)) != 1
    assert [mean_of(image_of(6, total), EQUAL) for total in (18, 54, 90, 126)] == [0, 2, 2, 4]


def test_a_pool_in_two_stages_has_the_factor_of_a_mean() -> None:
    """0x3A70B84E in the executable of a DeepLab, one step above float32(1 / 1089)."""
    scale = np.array(0x3E33C7B3, np.uint32).view(f32).item()
    tensors = [tensor(0, (1, 33, 33, 1), "u1", scale), tensor(1, (1, 1, 1, 1), "u1", scale)]
    options = {"filter_height": 33, "filter_width": 33, "padding": "VALID"}
    network = single("AVERAGE_POOL_2D", tensors, (0,), (1,), **options)
    second = np.array(0x3A70B84E, np.uint32).view(f32)
    assert second == np.nextafter(f32(1) / f32(1089), f32(1))
    stages = frozenset({(1.0, float(second))})
    # A sum of 1089 * 2.5 or so: near ties, one step of the factor decides.
    ties = [1089 * k // 2 + more for k in range(1, 500, 2) for more in (0, 1)]
    assert all(
        int(compute(network, image_of(33, total), stages=stages).item())
        == round(float(f32(total) * second))
        for total in ties
    )


def test_a_mean_in_two_stages_has_the_factor_of_the_second() -> None:
    """The executable holds the factors 1 and 0x3AE38E38 there, not float32(1 / 576)."""
    second = np.array(0x3AE38E38, np.uint32).view(f32).item()
    image = image_of(24, 864)
    assert mean_of(image, STAGED) == 2
    assert mean_of(image, STAGED, stages=frozenset({(1.0, second)})) == 1
    assert mean_of(image, EQUAL, stages=frozenset({(1.0, second)})) == 2
