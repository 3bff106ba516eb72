"""Operators that reduce dimensions, and normalisations, which start with a reduction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from darwinn_testbench.policy import AnyArray
from darwinn_testbench.reference.executorch.promotion import floating

Kernel = Callable[..., Any]
Axes = tuple[int, ...] | None


def _axes(dimensions: Sequence[int] | int | None) -> Axes:
    """Axes of a reduction: no list, and an empty one, stand for all."""
    if isinstance(dimensions, int):
        return (dimensions,)
    return tuple(dimensions) if dimensions else None


def total(x: AnyArray, dimensions: Any = None, keep: bool = False, dtype: object = None) -> Any:
    """Sum; integers add up to int64."""
    wide = floating(x) if x.dtype.kind == "f" else x.astype(np.int64)
    return wide.sum(axis=_axes(dimensions), keepdims=keep)


def mean(x: AnyArray, dimensions: Any = None, keep: bool = False, dtype: object = None) -> Any:
    """Mean as a float."""
    return floating(x).mean(axis=_axes(dimensions), keepdims=keep)


def product(x: AnyArray, dimension: int, keep: bool = False, dtype: object = None) -> Any:
    """Product along a dimension; integers become int64."""
    wide = floating(x) if x.dtype.kind == "f" else x.astype(np.int64)
    return wide.prod(axis=dimension, keepdims=keep)


def product_of_all(x: AnyArray, dtype: object = None) -> Any:
    """Product of all elements."""
    return product(x.reshape(-1), 0)


def variance(x: AnyArray, dimensions: Any, correction: float | None, keep: bool = False) -> Any:
    """Variance with ``correction`` (1 if absent) taken from the number of elements."""
    degrees = 1.0 if correction is None else float(correction)
    wide = floating(x).astype(np.float64)
    return wide.var(axis=_axes(dimensions), ddof=degrees, keepdims=keep)


def greatest(x: AnyArray, dimensions: Any = (), keep: bool = False) -> Any:
    """Greatest element."""
    return x.max(axis=_axes(dimensions), keepdims=keep)


def least(x: AnyArray, dimensions: Any = (), keep: bool = False) -> Any:
    """Least element."""
    return x.min(axis=_axes(dimensions), keepdims=keep)


def any_of(x: AnyArray, dimensions: Any = None, keep: bool = False) -> Any:
    """Whether any element is not zero."""
    return x.astype(bool).any(axis=_axes(dimensions), keepdims=keep)


def argument_of_greatest(x: AnyArray, dimension: int | None = None, keep: bool = False) -> Any:
    """Index of the first greatest element."""
    return np.argmax(x, axis=dimension, keepdims=keep)


def argument_of_least(x: AnyArray, dimension: int | None = None, keep: bool = False) -> Any:
    """Index of the first least element."""
    return np.argmin(x, axis=dimension, keepdims=keep)


def greatest_with_index(x: AnyArray, dimension: int, keep: bool = False) -> tuple[Any, Any]:
    """Greatest elements along a dimension and the index of the first of them."""
    return greatest(x, dimension, keep), argument_of_greatest(x, dimension, keep)


def least_with_index(x: AnyArray, dimension: int, keep: bool = False) -> tuple[Any, Any]:
    """Least elements along a dimension and the index of the first of them."""
    return least(x, dimension, keep), argument_of_least(x, dimension, keep)


def running_total(x: AnyArray, dimension: int, dtype: object = None) -> Any:
    """Sums of the elements up to each along a dimension."""
    wide = floating(x) if x.dtype.kind == "f" else x.astype(np.int64)
    return wide.cumsum(axis=dimension) if x.ndim else wide


def top(
    x: AnyArray, count: int, dimension: int = -1, largest: bool = True, in_order: bool = True
) -> tuple[AnyArray, AnyArray]:
    """Greatest (or least) elements along a dimension in order, and their indices."""
    if not x.ndim:
        return x, np.zeros((), np.int64)
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
    powers = np.exp(wide - wide.max(axis=dimension, keepdims=True))
    return np.asarray(powers / powers.sum(axis=dimension, keepdims=True)).reshape(x.shape)


def log_softmax(x: AnyArray, dimension: int, half_to_float: bool = False) -> AnyArray:
    """Logarithm of the softmax."""
    wide = np.atleast_1d(floating(x))
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
    grouped = x.reshape(batch, groups, -1)
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
    "aten::_native_batch_norm_legit.no_stats_out": batch_norm_of_batch,
    "aten::_native_batch_norm_legit_no_training.out": batch_norm_inference,
    "aten::_softmax.out": softmax,
    "aten::amax.out": greatest,
    "aten::amin.out": least,
    "aten::any.all_out": any_of,
    "aten::any.dims_out": any_of,
    "aten::any.out": any_of,
    "aten::argmax.out": argument_of_greatest,
    "aten::argmin.out": argument_of_least,
    "aten::cumsum.out": running_total,
    "aten::max.dim_max": greatest_with_index,
    "aten::max.unary_out": greatest,
    "aten::mean.dtype_out": lambda x, dtype: mean(x),
    "aten::mean.out": mean,
    "aten::min.dim_min": least_with_index,
    "aten::min.unary_out": least,
    "aten::native_group_norm.out": group_norm,
    "aten::native_layer_norm.out": layer_norm,
    "aten::prod.int_out": product,
    "aten::prod.out": product_of_all,
    "aten::sum.IntList_out": total,
    "aten::topk.values": top,
    "aten::var.correction_out": variance,
    "aten::var.out": lambda x, dimensions, unbiased, keep: variance(
        x, dimensions, float(unbiased), keep
    ),
}
