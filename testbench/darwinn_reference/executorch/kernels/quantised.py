"""Quantisation, and the integer operators of the Cortex-M library.

``quantized_decomposed`` computes in float32 with the reciprocal of the scale; the zero point is
added after rounding, ties to even. The Cortex-M operators follow CMSIS-NN: integer accumulators,
a Q31 multiplier and a power of two, rounded twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.kernels.windows import convolve, window_sums
from darwinn_reference.executorch.promotion import floating
from darwinn_reference.executorch.values import zeros

Kernel = Callable[..., Any]

SMALLEST_SCALE = 6.1e-5
"""Least scale that ``choose_qparams`` gives."""

# --- quantised_decomposed -------------------------------------------------------------------------


def quantise(
    x: AnyArray, scale: Any, zero_point: Any, low: int, high: int, dtype: int
) -> NDArray[np.int64]:
    """clamp(round(x * float32(1 / scale)) + zero point)."""
    inverse = np.float32(1) / np.asarray(scale).astype(np.float32)
    steps = np.rint(floating(x).astype(np.float32) * inverse)
    wide = steps.astype(np.float64) + np.asarray(zero_point, np.float64)
    return np.asarray(np.clip(wide, low, high)).astype(np.int64)


def dequantise(
    q: AnyArray,
    scale: Any,
    zero_point: Any,
    low: int,
    high: int,
    dtype: int,
    out_dtype: int | None = None,
) -> AnyArray:
    """float32(q - zero point) * float32(scale)."""
    centred = q.astype(np.int32) - np.asarray(zero_point).astype(np.int32)
    return centred.astype(np.float32) * np.asarray(scale).astype(np.float32)


def _per_channel(values: AnyArray | None, x: AnyArray, axis: int) -> AnyArray:
    """Values of each slice of an axis, shaped to go with x; absent ones are 0."""
    shape = [1] * x.ndim
    shape[axis] = -1
    return (np.zeros(1, np.int64) if values is None else values).reshape(shape)


def quantise_per_channel(
    x: AnyArray,
    scales: AnyArray,
    zero_points: AnyArray | None,
    axis: int,
    low: int,
    high: int,
    dtype: int,
) -> NDArray[np.int64]:
    """As ``quantise``, with a scale and zero point for each slice of an axis."""
    points = _per_channel(zero_points, x, axis)
    return quantise(x, _per_channel(scales, x, axis), points, low, high, dtype)


def dequantise_per_channel(
    q: AnyArray,
    scales: AnyArray,
    zero_points: AnyArray | None,
    axis: int,
    low: int,
    high: int,
    dtype: int,
    out_dtype: int | None = None,
) -> AnyArray:
    """As ``dequantise``, with a scale and zero point for each slice of an axis."""
    points = _per_channel(zero_points, q, axis)
    return dequantise(q, _per_channel(scales, q, axis), points, low, high, dtype)


def choose_parameters_per_row(x: AnyArray, dtype: int) -> tuple[AnyArray, AnyArray]:
    """``choose_parameters`` of each row, the last dimension, for int8; sizes (..., 1)."""
    shape = (*x.shape[:-1], 1)
    scales, points = zeros(shape, np.float64), zeros(shape, np.int64)
    if x.ndim < 1 or not x.shape[-1]:
        raise ValueError(f"rows of a tensor of sizes {x.shape}")
    for at in np.ndindex(shape[:-1]):
        scales[at], points[at] = choose_parameters(x[at], -128, 127, 0.0, dtype)
    return scales, points


def quantise_rows(
    x: AnyArray, scales: AnyArray, points: AnyArray, low: int, high: int, dtype: int
) -> NDArray[np.int64]:
    """As ``quantise``, with a scale and zero point for each row, the last dimension."""
    return quantise(x, _per_row(scales, x), _per_row(points, x), low, high, dtype)


def dequantise_rows(
    q: AnyArray,
    scales: AnyArray,
    points: AnyArray,
    low: int,
    high: int,
    dtype: int,
    out_dtype: int,
) -> AnyArray:
    """As ``dequantise``, with a scale and zero point for each row, the last dimension."""
    return dequantise(q, _per_row(scales, q), _per_row(points, q), low, high, dtype)


def _per_row(values: AnyArray, x: AnyArray) -> AnyArray:
    """Values of each row, shaped to go with x."""
    return values.reshape(*x.shape[:-1], 1)


def add(
    a: AnyArray,
    a_scale: float,
    a_point: int,
    a_low: int,
    a_high: int,
    b: AnyArray,
    b_scale: float,
    b_point: int,
    b_low: int,
    b_high: int,
    scale: float,
    point: int,
    low: int,
    high: int,
) -> NDArray[np.int64]:
    """Sum of two quantised tensors of the same sizes and type, quantised."""
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(f"{a.dtype} {a.shape} and {b.dtype} {b.shape}")
    ranges = ((a_low, a_high), (b_low, b_high), (low, high))
    if any(not 0 <= least <= most <= 255 for least, most in ranges):
        raise ValueError(f"ranges {ranges}, which are not from 0 to 255")
    total = dequantise(a, a_scale, a_point, 0, 0, 0) + dequantise(b, b_scale, b_point, 0, 0, 0)
    return quantise(total, scale, point, low, high, 0)


def choose_parameters(
    x: AnyArray, low: int, high: int, epsilon: float, dtype: int
) -> tuple[AnyArray, AnyArray]:
    """Scale and zero point, one element each, that map the range of x and 0 to low ... high."""
    least = min(0.0, float(x.min(initial=0)))
    greatest = max(0.0, float(x.max(initial=0)))
    scale = (greatest - least) / (high - low)
    if np.float32(scale) == 0 or np.isinf(np.float32(1) / np.float32(scale)):
        scale = 0.1
    if scale < SMALLEST_SCALE:
        least, greatest = _stretch(least, greatest, scale)
        scale = SMALLEST_SCALE
    from_least, from_greatest = low - least / scale, high - greatest / scale
    error_of_least = abs(low) + abs(least / scale)
    error_of_greatest = abs(high) + abs(greatest / scale)
    point = from_least if error_of_least < error_of_greatest else from_greatest
    rounded = np.rint(np.clip(point, low, high))
    return np.array([scale]), np.array([rounded]).astype(np.int64)


def _stretch(least: float, greatest: float, scale: float) -> tuple[float, float]:
    """The range that the smallest scale gives to values of a range of a smaller one."""
    if least == 0:
        return least, SMALLEST_SCALE * (greatest - least) / scale
    if greatest == 0:
        return -SMALLEST_SCALE * (greatest - least) / scale, greatest
    factor = SMALLEST_SCALE / scale
    return least * factor, greatest * factor


# --- Cortex-M -------------------------------------------------------------------------------------


def requantise(accumulator: AnyArray, multiplier: Any, shift: Any) -> NDArray[np.int64]:
    """accumulator * multiplier * 2**(shift - 31), rounded to 2**shift and then to integers."""
    exponent = np.asarray(shift, np.int64)
    right = np.maximum(-exponent, 0)
    value = accumulator.astype(np.int64) << np.maximum(exponent, 0)
    high = (value * np.asarray(multiplier, np.int64) + (1 << 30)) >> 31
    mask = (np.int64(1) << right) - 1
    quotient = high >> right
    # Halves are rounded away from zero.
    threshold = (mask >> 1) + (quotient < 0)
    return np.asarray(quotient + ((high & mask) > threshold))


def _finish(
    accumulator: AnyArray, multipliers: Any, shifts: Any, offset: int, low: int, high: int
) -> NDArray[np.int64]:
    return np.clip(requantise(accumulator, multipliers, shifts) + offset, low, high)


def _channels(values: AnyArray) -> AnyArray:
    return values.reshape(1, -1, 1, 1)


def cortex_convolution(
    x: AnyArray,
    weight: AnyArray,
    bias: AnyArray | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    input_offset: int,
    output_offset: int,
    multipliers: AnyArray,
    shifts: AnyArray,
    low: int,
    high: int,
    scratch: AnyArray,
) -> NDArray[np.int64]:
    """Convolution with weights (o, h, w, i), the input's padding being its zero point."""
    kernel = weight.transpose(0, 3, 1, 2)
    groups = x.shape[1] // kernel.shape[1]
    centred = x.astype(np.float64) + input_offset
    # Sums of products of 9 and 8 bits are exact in float64, and its matrix products are fast.
    exact = convolve(
        centred,
        kernel.astype(np.float64),
        tuple(stride),
        tuple(padding),
        tuple(dilation),
        groups,
    ).astype(np.int64)
    if bias is not None:
        exact = exact + _channels(bias)
    return _finish(exact, _channels(multipliers), _channels(shifts), output_offset, low, high)


def cortex_depthwise_convolution(
    x: AnyArray,
    weight: AnyArray,
    bias: AnyArray | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    depth_multiplier: int,
    *rest: Any,
) -> NDArray[np.int64]:
    """Convolution of each channel by itself, with weights (1, h, w, o)."""
    by_output = weight.transpose(3, 1, 2, 0)
    return cortex_convolution(x, by_output, bias, stride, padding, dilation, *rest)


def cortex_linear(
    x: AnyArray,
    weight: AnyArray,
    bias: AnyArray | None,
    kernel_sum: AnyArray | None,
    input_offset: int,
    filter_offset: int,
    output_offset: int,
    multipliers: Sequence[int],
    shifts: Sequence[int],
    high: int,
    low: int,
) -> NDArray[np.int64]:
    """Product with weights (o, i); ``kernel_sum`` stands for the bias and the input's offset."""
    factors = weight.astype(np.int64)
    values = x.astype(np.int64)
    if kernel_sum is not None:
        sums = values.sum(axis=-1, keepdims=True) * filter_offset
        accumulator = values @ factors.T + sums + kernel_sum
    else:
        accumulator = (values + input_offset) @ (factors + filter_offset).T
        if bias is not None:
            accumulator = accumulator + bias
    return _finish(accumulator, multipliers[0], shifts[0], output_offset, low, high)


def cortex_average_pool(
    x: AnyArray,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    round_up: bool,
    zero_point: int,
    multiplier: int,
    shift: int,
    scratch: AnyArray,
) -> NDArray[np.int64]:
    """Mean of the stored integers of each window, halves away from zero; margins do not count."""
    wide = x.astype(np.int64)
    sums, counts = window_sums(wide, kernel, stride, padding, round_up, False)
    half = np.where(sums > 0, counts // 2, -(counts // 2))
    rounded = np.abs(sums + half) // counts * np.sign(sums + half)
    return np.asarray(np.clip(rounded, -128, 127))


KERNELS: Mapping[str, Kernel] = {
    "cortex_m::dequantize_per_tensor.out": dequantise,
    "cortex_m::quantize_per_tensor.out": quantise,
    "cortex_m::quantized_avg_pool2d.out": cortex_average_pool,
    "cortex_m::quantized_conv2d.out": cortex_convolution,
    "cortex_m::quantized_depthwise_conv2d.out": cortex_depthwise_convolution,
    "cortex_m::quantized_linear.out": cortex_linear,
    "quantized_decomposed::add.out": add,
    "quantized_decomposed::choose_qparams.Tensor_out": choose_parameters,
    "quantized_decomposed::choose_qparams_per_token_asymmetric.out": choose_parameters_per_row,
    "quantized_decomposed::dequantize_per_channel.out": dequantise_per_channel,
    "quantized_decomposed::dequantize_per_tensor.out": dequantise,
    "quantized_decomposed::dequantize_per_tensor.Tensor_out": dequantise,
    "quantized_decomposed::dequantize_per_token.out": dequantise_rows,
    "quantized_decomposed::quantize_per_channel.out": quantise_per_channel,
    "quantized_decomposed::quantize_per_tensor.out": quantise,
    "quantized_decomposed::quantize_per_tensor.Tensor_out": quantise,
    "quantized_decomposed::quantize_per_token.out": quantise_rows,
}
