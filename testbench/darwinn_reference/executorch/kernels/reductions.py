"""Operators that reduce dimensions, and normalisations, which start with a reduction."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from darwinn_formats.executorch import schema

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.kernels.dimensions import of_any_rank
from darwinn_reference.executorch.promotion import floating

Kernel = Callable[..., Any]
Axes = tuple[int, ...] | None


def _axes(dimensions: Sequence[int] | int | None) -> Axes:
    """Axes of a reduction: no list, and an empty one, stand for all."""
    if isinstance(dimensions, int):
        return (dimensions,)
    return tuple(dimensions) if dimensions else None


def _terms(x: AnyArray, dtype: int | None) -> AnyArray:
    """Elements of the type that is asked for, as they are added up: floats, or int64."""
    if dtype is not None and dtype != schema.ScalarType.BFLOAT16:
        x = x.astype(schema.DTYPES[schema.ScalarType(dtype)])
    return floating(x) if x.dtype.kind == "f" else x.astype(np.int64)


def total(x: AnyArray, dimensions: Any = None, keep: bool = False, dtype: int | None = None) -> Any:
    """Sum; integers add up to int64."""
    return _terms(x, dtype).sum(axis=_axes(dimensions), keepdims=keep)


def mean(x: AnyArray, dimensions: Any = None, keep: bool = False, dtype: object = None) -> Any:
    """Mean as a float."""
    return floating(x).mean(axis=_axes(dimensions), keepdims=keep)


def product(x: AnyArray, dimension: int, keep: bool = False, dtype: int | None = None) -> Any:
    """Product along a dimension; integers become int64."""
    return _terms(x, dtype).prod(axis=dimension, keepdims=keep)


def variance(x: AnyArray, dimensions: Any, correction: float | None, keep: bool = False) -> Any:
    """Variance with ``correction`` (1 if absent) taken from the number of elements.

    NaN where that leaves nothing, as in the original runtime.
    """
    degrees = 1.0 if correction is None else float(correction)
    axes = _axes(dimensions)
    if _count(x, axes) <= degrees:
        return np.full_like(mean(x, dimensions, keep), np.nan)
    wide = floating(x).astype(np.float64)
    return wide.var(axis=axes, ddof=degrees, keepdims=keep)


def _count(x: AnyArray, axes: Axes) -> int:
    """Elements of x for each of its reduction."""
    return math.prod(x.shape if axes is None else (x.shape[axis] for axis in axes))


def variance_and_mean(
    x: AnyArray,
    dimensions: Any = None,
    correction: float | None = None,
    keep: bool = False,
) -> tuple[Any, Any]:
    """Variance and mean; both NaN where the correction leaves nothing."""
    spread, average = variance(x, dimensions, correction, keep), mean(x, dimensions, keep)
    is_empty = _count(x, _axes(dimensions)) <= (1 if correction is None else correction)
    return spread, np.full_like(average, np.nan) if is_empty else average


def _reduced(function: Kernel) -> Kernel:
    """A reduction over a dimension, those of a list, or all."""

    def kernel(x: AnyArray, dimensions: Any = None, keep: bool = False) -> Any:
        return function(x, axis=_axes(dimensions), keepdims=keep)

    return kernel


def _with_index(extreme: Kernel, place: Kernel) -> Kernel:
    """An extreme along a dimension, and the index of the first element that is it."""

    def kernel(x: AnyArray, dimension: int, keep: bool = False) -> tuple[Any, Any]:
        return tuple(each(x, axis=dimension, keepdims=keep) for each in (extreme, place))

    return kernel


def running_total(x: AnyArray, dimension: int, dtype: int | None = None) -> Any:
    """Sums of the elements up to each along a dimension."""
    wide = _terms(x, dtype)
    return wide.cumsum(axis=dimension) if x.ndim else wide


def top(
    x: AnyArray, count: int, dimension: int = -1, largest: bool = True, in_order: bool = True
) -> tuple[AnyArray, AnyArray]:
    """Greatest (or least) elements along a dimension in order, and their indices."""
    if not x.ndim:
        return x, np.zeros((), np.int64)
    if not 0 <= count <= x.shape[dimension]:
        raise IndexError(f"{count} elements of {x.shape[dimension]}")
    # Sorting the reversed elements keeps equal ones in order when the result is reversed again.
    source = np.flip(x, dimension) if largest else x
    order = np.argsort(source, axis=dimension, kind="stable")
    if largest:
        order = x.shape[dimension] - 1 - np.flip(order, dimension)
    order = np.take(order, range(count), axis=dimension)
    return np.take_along_axis(x, order, dimension), order


def softmax(x: AnyArray, dimension: int, half_to_float: bool = False) -> AnyArray:
    """exp(x - max) divided by its sum along a dimension."""
    wide = np.atleast_1d(floating(x))
    if not x.size:
        return x
    powers = np.exp(wide - wide.max(axis=dimension, keepdims=True))
    return np.asarray(powers / powers.sum(axis=dimension, keepdims=True)).reshape(x.shape)


def log_softmax(x: AnyArray, dimension: int, half_to_float: bool = False) -> AnyArray:
    """Logarithm of the softmax."""
    wide = np.atleast_1d(floating(x))
    if not x.size:
        return x
    shifted = wide - wide.max(axis=dimension, keepdims=True)
    powers = np.exp(shifted).sum(axis=dimension, keepdims=True)
    return np.asarray(shifted - np.log(powers)).reshape(x.shape)


def _normalise(x: AnyArray, axes: tuple[int, ...], epsilon: float) -> tuple[Any, Any, Any]:
    """Elements less their mean and divided by their deviation, the mean, and 1 / deviation."""
    wide = floating(x)
    average = wide.mean(axis=axes, keepdims=True, dtype=np.float64)
    deviation = 1 / np.sqrt(wide.var(axis=axes, keepdims=True, dtype=np.float64) + epsilon)
    return (wide - average) * deviation, average, deviation


def _scale(x: AnyArray, weight: AnyArray | None, bias: AnyArray | None) -> AnyArray:
    scaled = x if weight is None else x * weight
    return scaled if bias is None else scaled + bias


def layer_norm(
    x: AnyArray,
    normalized_shape: Sequence[int],
    weight: AnyArray | None,
    bias: AnyArray | None,
    epsilon: float,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Normalisation over the last dimensions; also mean and 1 / deviation."""
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    normal, average, deviation = _normalise(x, axes, epsilon)
    return _scale(normal, weight, bias), average, deviation


def group_norm(
    x: AnyArray,
    weight: AnyArray | None,
    bias: AnyArray | None,
    batch: int,
    channels: int,
    area: int,
    groups: int,
    epsilon: float,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Normalisation over groups of channels; also mean and 1 / deviation by batch and group."""
    grouped = x.reshape(batch, groups, channels // groups * area)
    normal, average, deviation = _normalise(grouped, (2,), epsilon)
    return (
        _scale(normal.reshape(x.shape), _by_channel(weight, x), _by_channel(bias, x)),
        average.reshape(batch, groups),
        deviation.reshape(batch, groups),
    )


def batch_norm_inference(
    x: AnyArray,
    weight: AnyArray | None,
    bias: AnyArray | None,
    average: AnyArray,
    spread: AnyArray,
    momentum: float,
    epsilon: float,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Normalisation by stored statistics of each channel; nothing is saved."""
    deviation = 1 / np.sqrt(floating(spread) + np.float32(epsilon))
    normal = (floating(x) - _by_channel(average, x)) * _by_channel(deviation, x)
    nothing = np.zeros(0, np.float32)
    return _scale(normal, _by_channel(weight, x), _by_channel(bias, x)), nothing, nothing


def batch_norm_legit(
    x: AnyArray,
    weight: AnyArray | None,
    bias: AnyArray | None,
    average: AnyArray,
    spread: AnyArray,
    training: bool,
    momentum: float,
    epsilon: float,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """As ``batch_norm_inference``; training is refused, as by the original runtime."""
    if training:
        raise ValueError("batch normalisation in training")
    return batch_norm_inference(x, weight, bias, average, spread, momentum, epsilon)


def batch_norm_of_batch(
    x: AnyArray,
    weight: AnyArray | None,
    bias: AnyArray | None,
    training: bool,
    momentum: float,
    epsilon: float,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Normalisation by the statistics of the batch itself, which are returned too."""
    axes = (0, *range(2, x.ndim))
    normal, average, deviation = _normalise(x, axes, epsilon)
    scaled = _scale(normal, _by_channel(weight, x), _by_channel(bias, x))
    return scaled, average.reshape(-1), deviation.reshape(-1)


def _by_channel(values: Any, x: AnyArray) -> Any:
    """Values of each channel, shaped to go with x, whose dimension 1 the channels are."""
    return None if values is None else values.reshape(-1, *[1] * (x.ndim - 2))


KERNELS: Mapping[str, Kernel] = {
    "aten::_log_softmax.out": log_softmax,
    "aten::_native_batch_norm_legit.out": batch_norm_legit,
    "aten::_native_batch_norm_legit.no_stats_out": batch_norm_of_batch,
    "aten::_native_batch_norm_legit_no_training.out": batch_norm_inference,
    "aten::_softmax.out": softmax,
    "aten::amax.out": of_any_rank(_reduced(np.max)),
    "aten::amin.out": of_any_rank(_reduced(np.min)),
    "aten::any.all_out": _reduced(np.any),
    "aten::any.dims_out": of_any_rank(_reduced(np.any)),
    "aten::any.out": of_any_rank(_reduced(np.any)),
    "aten::argmax.out": lambda x, axis=None, keep=False: np.argmax(x, axis, keepdims=keep),
    "aten::argmin.out": lambda x, axis=None, keep=False: np.argmin(x, axis, keepdims=keep),
    "aten::cumsum.out": running_total,
    "aten::max.dim_max": _with_index(np.max, np.argmax),
    "aten::max.unary_out": _reduced(np.max),
    "aten::mean.dtype_out": lambda x, dtype: mean(x),
    "aten::mean.out": of_any_rank(mean),
    "aten::min.dim_min": _with_index(np.min, np.argmin),
    "aten::min.unary_out": _reduced(np.min),
    "aten::native_group_norm.out": group_norm,
    "aten::native_layer_norm.out": layer_norm,
    "aten::prod.int_out": product,
    "aten::prod.out": lambda x, dtype=None: product(x.reshape(-1), 0, False, dtype),
    "aten::sum.IntList_out": of_any_rank(total),
    "aten::topk.values": top,
    "aten::var.correction_out": of_any_rank(variance),
    "aten::var.out": lambda x, dimensions, unbiased, keep: variance(
        x, dimensions, float(unbiased), keep
    ),
    "aten::var_mean.correction_out": of_any_rank(variance_and_mean),
}
