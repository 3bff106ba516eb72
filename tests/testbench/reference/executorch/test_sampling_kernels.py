"""Distances, resampling, gradients and quantised weights, against loops over single elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from darwinn_reference.executorch import OPERATORS
from darwinn_reference.executorch.kernels import windows
from executorch_cases import floats, integers
from hypothesis import given
from hypothesis import strategies as st

few = st.integers(0, 3)


def kernel(name: str) -> Any:
    return OPERATORS[name if "::" in name else f"aten::{name}"].kernel


# --- distances ------------------------------------------------------------------------------------

powers = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, math.inf])


def distance(a: np.ndarray, b: np.ndarray, power: float) -> float:
    differences = [abs(float(x) - float(y)) for x, y in zip(a, b, strict=True)]
    if power == 0:
        return sum(entry != 0 for entry in differences)
    if power == math.inf:
        return max(differences, default=0)
    return float(sum(entry**power for entry in differences) ** (1 / power))


@given(
    few, few, few, powers, st.sampled_from([(), (1,), (2,), (2, 1)]), st.sampled_from([(), (2,)])
)
def test_distances_are_norms_of_differences(
    rows: int,
    others: int,
    width: int,
    power: float,
    batch: tuple[int, ...],
    second: tuple[int, ...],
) -> None:
    x, y = integers(*batch, rows, width), integers(*second, others, width, seed=1)
    left, right = x.astype(np.float32), y.astype(np.float32)
    result = kernel("_cdist_forward.out")(left, right, power, None)
    common = np.broadcast_shapes(batch, second)
    assert result.shape == (*common, rows, others)
    left = np.broadcast_to(left, (*common, rows, width))
    right = np.broadcast_to(right, (*common, others, width))
    for place in np.ndindex(result.shape):
        expected = distance(left[place[:-1]], right[(*place[:-2], place[-1])], power)
        assert result[place] == pytest.approx(expected, rel=1e-5)


@given(few, few, powers, st.sampled_from(["f4", "f8"]))
def test_distances_of_pairs_are_the_upper_triangle(
    rows: int, width: int, power: float, dtype: str
) -> None:
    x = integers(rows, width).astype(dtype)
    result = kernel("_pdist_forward.out")(x, power)
    pairs = itertools.combinations(range(rows), 2)
    assert result.tolist() == pytest.approx(
        [distance(x[i], x[j], power) for i, j in pairs], rel=1e-5
    )


# --- resampling -----------------------------------------------------------------------------------


def tent_weights(size: int, output: int, scale: float) -> np.ndarray:
    """Weights (output, size) of a triangle around each place, as wide as what it stands for."""
    spread = max(scale, 1.0)
    weights = np.zeros((output, size))
    for place in range(output):
        centre = scale * (place + 0.5)
        for at in range(size):
            weights[place, at] = max(0.0, 1 - abs(at + 0.5 - centre) / spread)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    st.booleans(),
)
def test_antialiased_images_are_weighted_means(
    height: int, width: int, output: tuple[int, int], align: bool
) -> None:
    x = floats(1, 2, height, width)

    def scale(size: int, count: int) -> float:
        if align:
            return (size - 1) / (count - 1) if count > 1 else 0
        return size / count

    result = kernel("_upsample_bilinear2d_aa.out")(x, list(output), align, None, None)
    rows = tent_weights(height, output[0], scale(height, output[0]))
    columns = tent_weights(width, output[1], scale(width, output[1]))
    expected = np.zeros((1, 2, *output))
    for channel, row, column in np.ndindex(2, *output):
        for at, beside in np.ndindex(height, width):
            share = rows[row, at] * columns[column, beside]
            expected[0, channel, row, column] += x[0, channel, at, beside] * share
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_an_infinite_element_has_no_part_where_it_has_no_weight() -> None:
    x = np.array([[[[1, 2, 3, np.inf]]]], np.float32)
    result = kernel("_upsample_bilinear2d_aa.out")(x, [1, 4], False, None, None)
    assert result.reshape(-1).tolist() == [1, 2, 3, np.inf]
    # Factors lead beside the image: its last element stands for what is there.
    far = kernel("_upsample_bilinear2d_aa.out")(x[..., :3], [1, 9], False, 1.0, 0.5)
    assert far.reshape(-1).tolist()[-5:] == [3] * 5


def sample(
    plane: np.ndarray, x: float, y: float, interpolation: int, padding: int, align: bool
) -> float:
    """One place of a plane by the definition of PyTorch's grid_sample."""
    height, width = plane.shape

    def place(coordinate: float, size: int) -> float:
        return (coordinate + 1) / 2 * (size - 1) if align else ((coordinate + 1) * size - 1) / 2

    def folded(at: float, size: int) -> float:
        """Mirrored at the centres, or edges, of the outer elements until it is between them."""
        low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
        if high <= low:
            return 0.0
        while not low <= at <= high:
            at = 2 * low - at if at < low else 2 * high - at
        return at

    def within(at: float, size: int) -> float:
        if padding == 2:
            at = folded(at, size)
        return at if padding == 0 else min(max(at, 0.0), size - 1.0)

    def element(row: int, column: int) -> float:
        if padding == 0:
            inside = 0 <= row < height and 0 <= column < width
            return float(plane[row, column]) if inside else 0.0
        return float(plane[int(within(row, height)), int(within(column, width))])

    down, right = place(y, height), place(x, width)
    if interpolation != 2:
        down, right = within(down, height), within(right, width)
    if interpolation == 1:
        return element(round(down), round(right))
    top, left = math.floor(down), math.floor(right)

    def weight(distance: float) -> float:
        t = abs(distance)
        if interpolation == 0:
            return max(0.0, 1 - t)
        a = -0.75
        if t <= 1:
            return (a + 2) * t**3 - (a + 3) * t**2 + 1
        return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0.0

    offsets = (0, 1) if interpolation == 0 else (-1, 0, 1, 2)
    return sum(
        element(top + i, left + j) * weight(top + i - down) * weight(left + j - right)
        for i, j in itertools.product(offsets, offsets)
    )


@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from([0, 1, 2]),
    st.sampled_from([0, 1, 2]),
    st.booleans(),
    st.integers(0, 99),
)
def test_grids_sample_images_as_defined(
    height: int, width: int, interpolation: int, padding: int, align: bool, seed: int
) -> None:
    x = floats(2, 1, height, width, seed=seed)
    # Away from the places where float32 and float64 round to different elements.
    grid = floats(2, 2, 3, 2, seed=seed, low=-2.5, high=2.5) + np.float32(0.00317)
    result = kernel("grid_sampler_2d.out")(x, grid, interpolation, padding, align)
    assert result.shape == (2, 1, 2, 3)
    for batch, row, column in np.ndindex(2, 2, 3):
        across, down = map(float, grid[batch, row, column])
        expected = sample(x[batch, 0], across, down, interpolation, padding, align)
        assert result[batch, 0, row, column] == pytest.approx(expected, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("interpolation", [0, 1, 2])
def test_places_that_are_no_numbers_are_within_memory(interpolation: int, padding: int) -> None:
    grid = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30], np.float32)
    pairs = np.stack(np.meshgrid(grid, grid), axis=-1)[np.newaxis]
    with np.errstate(all="ignore"):
        result = kernel("grid_sampler_2d.out")(
            floats(1, 1, 3, 4), pairs, interpolation, padding, True
        )
    assert result.shape == (1, 1, 5, 5)
    if padding == 0 and interpolation != 2:
        assert not result.any()


# --- gradients ------------------------------------------------------------------------------------


def by_differences(
    function: Callable[[np.ndarray], np.ndarray], x: np.ndarray, gradient: np.ndarray
) -> np.ndarray:
    """Gradient of a linear function: what each element of x adds to <gradient, function(x)>."""
    result = np.zeros(x.shape)
    for place in np.ndindex(x.shape):
        unit = np.zeros_like(x)
        unit[place] = 1
        result[place] = np.sum(function(unit) * gradient)
    return result


@given(
    st.sampled_from([1, 2]),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.tuples(st.integers(2, 4), st.integers(2, 5)),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.tuples(st.integers(1, 3), st.integers(1, 2)),
    st.tuples(st.integers(0, 2), st.integers(0, 1)),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_gradients_of_convolutions(
    groups: int,
    channels: tuple[int, int],
    size: tuple[int, int],
    kernel_size: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    wanted: list[bool],
) -> None:
    x = integers(2, groups * channels[0], *size).astype(np.float64)
    weight = integers(groups * channels[1], channels[0], *kernel_size, seed=1).astype(np.float64)
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel_size, strict=True)]
    if any(s + 2 * p < span for s, p, span in zip(size, padding, spans, strict=True)):
        return

    def forward(image: np.ndarray, factors: np.ndarray) -> np.ndarray:
        return windows.convolve(image, factors, stride, padding, dilation, groups)

    gradient = integers(*forward(x, weight).shape, seed=2).astype(np.float64)
    options = (list(stride), list(padding), list(dilation), False, [0, 0], groups)
    results = kernel("convolution_backward.out")(
        gradient, x, weight, [len(weight)], *options, wanted
    )
    expected = (
        by_differences(lambda image: forward(image, weight), x, gradient),
        by_differences(lambda factors: forward(x, factors), weight, gradient),
        gradient.sum(axis=(0, 2, 3)),
    )
    for is_wanted, result, each in zip(wanted, results, expected, strict=True):
        if is_wanted:
            np.testing.assert_array_equal(result, each)
        else:
            assert result is None


@given(
    st.tuples(st.integers(2, 5), st.integers(2, 5)),
    st.tuples(st.integers(1, 2), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 2)),
    st.booleans(),
)
def test_gradients_of_maxima_go_to_the_greatest(
    size: tuple[int, int], kernel_size: tuple[int, int], stride: tuple[int, int], has_batch: bool
) -> None:
    if size[1] < kernel_size[1]:
        return
    x = floats(*((2, 2) if has_batch else (3,)), *size)
    options = (list(kernel_size), list(stride), [0, 0], [1, 1], False)
    best, index = windows.max_pool(x, *options)
    gradient = integers(*best.shape).astype(np.float32)
    dropped = index.copy()
    dropped[..., 0, 0] = -1
    result = kernel("max_pool2d_with_indices_backward.grad_input")(gradient, x, *options, dropped)
    expected = np.zeros_like(x)
    for place in np.ndindex(best.shape):
        if place[-2:] != (0, 0):
            row, column = divmod(int(index[place]), size[1])
            expected[(*place[:-2], row, column)] += gradient[place]
    np.testing.assert_array_equal(result, expected)


X = floats(1, 2, 4, 4)
POOL = ([2, 2], [2, 2], [0, 0], [1, 1], False)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"indices": np.full((1, 2, 2, 2), 16)}, IndexError),
        ({"indices": np.full((1, 2, 2, 2), -2)}, IndexError),
        ({"indices": np.zeros((1, 2, 2, 1), np.int64)}, ValueError),
        ({"gradient": floats(1, 2, 3, 3)}, ValueError),
    ],
)
def test_gradients_of_maxima_have_the_sizes_of_the_pool(
    change: dict[str, np.ndarray], error: type[Exception]
) -> None:
    arguments = {"gradient": floats(1, 2, 2, 2), "indices": np.zeros((1, 2, 2, 2), np.int64)}
    arguments |= change
    call = kernel("max_pool2d_with_indices_backward.grad_input")
    with pytest.raises(error):
        call(arguments["gradient"], X, *POOL, arguments["indices"])


@pytest.mark.parametrize(
    "change",
    [
        {"gradient": floats(1, 2, 2, 2)},
        {"x": floats(1, 3, 4, 4)},
        {"weight": floats(2, 2, 3)},
        {"stride": [0, 1]},
        {"stride": [-1, 1]},
        {"padding": [-1, 0]},
        {"dilation": [2**62, 1]},
        {"transposed": True},
        {"groups": 0},
        {"groups": 3},
    ],
    ids=str,
)
def test_gradients_of_convolutions_have_the_sizes_of_the_convolution(
    change: dict[str, Any],
) -> None:
    arguments = {
        "gradient": floats(1, 2, 3, 3),
        "x": X,
        "weight": floats(2, 2, 2, 2),
        "bias": None,
        "stride": [1, 1],
        "padding": [0, 0],
        "dilation": [1, 1],
        "transposed": False,
        "output_padding": [0, 0],
        "groups": 1,
        "wanted": [True, True, True],
    }
    assert kernel("convolution_backward.out")(*arguments.values())[0].shape == X.shape
    with pytest.raises((ValueError, TypeError)):
        kernel("convolution_backward.out")(*(arguments | change).values())


# --- quantised weights, and rows ------------------------------------------------------------------


def weight_at(row: np.ndarray, column: int, bits: int) -> int:
    if bits == 8:
        return int(row[column])
    if bits == 4:
        byte = int(row[column // 2])
        return (byte % 16 if column % 2 else byte // 16) - 8
    return (int(row[column // 4]) >> 2 * (column % 4)) % 4 - 2


@given(
    st.sampled_from([("byte", 8, "u1"), ("byte", 8, "i1"), ("4bit", 4, "u1"), ("2bit", 2, "u1")]),
    st.sampled_from(["out", "dtype_out"]),
    st.sampled_from([None, 1, 2]),
    st.booleans(),
    st.lists(st.integers(-1, 3), max_size=4),
    st.sampled_from(["f4", "f2"]),
)
def test_embeddings_are_rows_of_scaled_weights(
    kind: tuple[str, int, str],
    overload: str,
    groups: int | None,
    has_points: bool,
    found: list[int],
    dtype: str,
) -> None:
    name, bits, weight_type = kind
    weight = integers(3, 2, low=-128, high=128).astype(weight_type)
    shape = (3,) if groups is None else (3, groups)
    scales = floats(*shape, low=0.1, high=2).astype(dtype)
    points = integers(*shape).astype(dtype) if has_points else None
    indices = np.array(found, np.int64).reshape(-1, 1)
    call = kernel(f"quantized_decomposed::embedding_{name}.{overload}")
    if any(not 0 <= entry < 3 for entry in found):
        with pytest.raises(IndexError):
            call(weight, scales, points, 0, 255, indices)
        return
    result = call(weight, scales, points, 0, 255, indices)
    width = 2 * (8 // bits)
    assert result.shape == (len(found), 1, width)
    for at, column in np.ndindex(len(found), width):
        row = found[at]
        group = (row,) if groups is None else (row, column // (width // groups))
        point = 0 if points is None else float(points[group])
        exact = (weight_at(weight[row], column, bits) - point) * float(scales[group])
        assert result[at, 0, column] == np.float32(exact)


@given(few, few, st.integers(1, 6), st.sampled_from([None, 1, 2, 3]), st.sampled_from(["f4", "f2"]))
def test_products_with_quantised_weights(
    rows: int, outputs: int, width: int, groups: int | None, dtype: str
) -> None:
    x = integers(rows, width).astype(dtype)
    weight = integers(outputs, width, low=-128, high=127, seed=1).astype(np.int8)
    scales = floats(*((outputs,) if groups is None else (outputs, groups))).astype(dtype)
    linear = kernel("quantized_decomposed::mixed_linear.out")
    size = -(-width // (groups or 1))
    if -(-width // size) != (groups or 1):
        with pytest.raises(ValueError, match="groups"):
            linear(x, weight, scales, None, None)
        return
    result = linear(x, weight, scales, None, None)
    for row, output in np.ndindex(rows, outputs):
        expected = sum(
            float(x[row, at])
            * int(weight[output, at])
            * float(scales[output] if groups is None else scales[output, at // size])
            for at in range(width)
        )
        assert result[row, output] == pytest.approx(expected, rel=1e-4, abs=1e-2)
    if groups is None and outputs:
        by_row = floats(width).astype(dtype)
        product = kernel("quantized_decomposed::mixed_mm.out")(x, weight.T, by_row, None)
        exact = (x.astype(float) * by_row.astype(float)) @ weight.T.astype(float)
        np.testing.assert_allclose(product, exact, rtol=1e-4, atol=1e-2)
    with pytest.raises(ValueError, match="zero points"):
        linear(x, weight, scales, scales, None)


@given(st.lists(few, max_size=2).map(tuple), st.integers(1, 4), st.integers(-60, 3))
def test_parameters_of_rows_are_those_of_each_row(
    batch: tuple[int, ...], width: int, exponent: int
) -> None:
    x = floats(*batch, width) * np.float32(2.0**exponent)
    namespace = "quantized_decomposed::"
    scales, points = kernel(f"{namespace}choose_qparams_per_token_asymmetric.out")(x, 1)
    quantised = kernel(f"{namespace}quantize_per_token.out")(x, scales, points, -128, 127, 1)
    back = kernel(f"{namespace}dequantize_per_token.out")(
        quantised.astype(np.int8), scales, points, -128, 127, 1, 6
    )
    assert scales.shape == points.shape == (*batch, 1)
    assert quantised.shape == back.shape == x.shape
    whole = kernel(f"{namespace}choose_qparams.Tensor_out")
    for place in np.ndindex(batch):
        scale, point = whole(x[place], -128, 127, 0.0, 1)
        assert (scales[place], points[place]) == (scale, point)
        one = kernel(f"{namespace}quantize_per_tensor.Tensor_out")
        np.testing.assert_array_equal(quantised[place], one(x[place], scale, point, -128, 127, 1))
        # Half a step of what can be told apart, and the rounding of float32.
        np.testing.assert_allclose(back[place], x[place], rtol=1e-5, atol=0.51 * float(scale[0]))


@given(
    st.lists(few, max_size=3).map(tuple),
    st.sampled_from(["u1", "i1"]),
    st.floats(0.01, 2),
    st.floats(0.01, 2),
    st.integers(0, 127),
)
def test_quantised_sums_are_sums_of_numbers_quantised(
    shape: tuple[int, ...], dtype: str, first: float, second: float, point: int
) -> None:
    a, b = (integers(*shape, low=0, high=127, seed=seed).astype(dtype) for seed in (0, 1))
    call = kernel("quantized_decomposed::add.out")
    result = call(a, first, 3, 0, 127, b, second, 5, 0, 127, 0.5, point, 0, 127)
    for place in np.ndindex(shape):
        total = (int(a[place]) - 3) * first + (int(b[place]) - 5) * second
        exact = total / 0.5 + point
        assert abs(int(result[place]) - min(max(exact, 0), 127)) <= 0.5 + 1e-3
    with pytest.raises(ValueError, match="ranges"):
        call(a, first, 3, -1, 127, b, second, 5, 0, 127, 0.5, point, 0, 127)
    with pytest.raises(ValueError):
        call(a[..., np.newaxis], first, 3, 0, 127, b, second, 5, 0, 127, 0.5, point, 0, 127)
