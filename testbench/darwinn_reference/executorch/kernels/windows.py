"""Operators over windows: convolution and pooling, in one or two dimensions.

Images are (batch, channel, then one or two spatial dimensions). Windows are walked by their
positions: each position is one strided view of the padded image, so that nothing is expanded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.promotion import accumulating, floating
from darwinn_reference.executorch.values import refuse_more, zeros

Kernel = Callable[..., Any]
Sizes = tuple[int, ...]
Rounding = Callable[[AnyArray], AnyArray]
"""Rounds float32 to the numbers of a narrower type."""


def each(values: Sequence[int], rank: int) -> Sizes:
    """One value for each spatial dimension: a single one holds for all."""
    return tuple(values) * rank if len(values) == 1 else tuple(values)


def window_views(
    padded: AnyArray, kernel: Sizes, stride: Sizes, dilation: Sizes, output: Sizes
) -> Iterator[tuple[Sizes, AnyArray]]:
    """Each position of the window, with the elements of all windows at that position."""
    for position in itertools.product(*map(range, kernel)):
        slices: tuple[Any, ...] = tuple(
            slice(at * spread, at * spread + step * (count - 1) + 1, step)
            for at, spread, step, count in zip(position, dilation, stride, output, strict=True)
        )
        yield position, padded[_last(slices)]


def _last(key: Iterable[Any]) -> tuple[Any, ...]:
    """A key for the last dimensions."""
    return (..., *key)


def pad(x: AnyArray, before: Sizes, after: Sizes, value: Any = 0) -> AnyArray:
    """A number around the last dimensions, if there is memory for it: ExecutionError."""
    pairs = [(0, 0)] * (x.ndim - len(before)) + list(zip(before, after, strict=True))
    if not (any(before) or any(after)):
        return x
    sizes = (size + sum(pair) for size, pair in zip(x.shape, pairs, strict=True))
    refuse_more(math.prod(sizes) * x.itemsize, "a padded operand")
    return np.pad(x, pairs, constant_values=value)


# --- convolution ----------------------------------------------------------------------------------


def _result_sizes(padded: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes) -> Sizes:
    """Sizes of the result of a convolution of images with margins."""
    return tuple(
        (size - spread * (width - 1) - 1) // step + 1
        for size, spread, width, step in zip(padded, dilation, kernel, stride, strict=True)
    )


def _full_sizes(
    sizes: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes, output_padding: Sizes
) -> Sizes:
    """Sizes of the result of a transposed convolution before it loses its margins."""
    return tuple(
        (size - 1) * step + spread * (width - 1) + 1 + extra
        for size, step, spread, width, extra in zip(
            sizes, stride, dilation, kernel, output_padding, strict=True
        )
    )


def _cropped(result: AnyArray, margins: Sizes) -> AnyArray:
    """The result of a transposed convolution by groups, without margins and with one dimension of
    channels."""
    together = zip(margins, result.shape[3:], strict=True)
    inner = result[_last(slice(cut, size - cut) for cut, size in together)]
    batch, groups, channels = result.shape[:3]
    return np.asarray(inner.reshape(batch, groups * channels, *inner.shape[3:]))


def convolve(
    x: AnyArray,
    weight: AnyArray,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> AnyArray:
    """Convolution (n, c, ...) with (o, c / groups, ...), in the type of the operands."""
    kernel = weight.shape[2:]
    padded = pad(x, padding, padding)
    output = _result_sizes(padded.shape[2:], kernel, stride, dilation)
    batch, channels = x.shape[:2]
    per_group = channels // groups
    weights = weight.reshape(groups, len(weight) // groups, per_group, *kernel)
    area = math.prod(output)
    result = zeros((batch, groups, weights.shape[1], area), np.result_type(x, weight))
    # A product, and what it is of: a copy of the windows.
    refuse_more(result.nbytes + batch * channels * area * x.itemsize, "windows")
    for position, view in window_views(padded, kernel, stride, dilation, output):
        columns = view.reshape(batch, groups, per_group, area)
        factors = weights[_last(position)]
        # A product of a column and a row is no work for a matrix product.
        result += factors * columns if per_group == 1 else factors @ columns
    return result.reshape(batch, len(weight), *output)


def convolve_transposed(
    x: AnyArray,
    weight: AnyArray,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    output_padding: Sizes,
    groups: int,
) -> AnyArray:
    """Transposed convolution (n, c, ...) with (c, o / groups, ...)."""
    kernel, sizes = weight.shape[2:], x.shape[2:]
    batch, channels = x.shape[:2]
    weights = weight.reshape(groups, channels // groups, weight.shape[1], *kernel)
    full = _full_sizes(sizes, kernel, stride, dilation, output_padding)
    result = zeros((batch, groups, weights.shape[2], *full), x.dtype)
    columns = x.reshape(batch, groups, channels // groups, math.prod(sizes))
    for position, target in window_views(result, kernel, stride, dilation, sizes):
        target += (weights[_last(position)].swapaxes(1, 2) @ columns).reshape(target.shape)
    return _cropped(result, padding)


def _each_group(channel: int, position: Sizes, axis: int) -> tuple[Any, ...]:
    """The key of one channel of dimension ``axis`` in weights by group, channels and position."""
    key: list[Any] = [slice(None)] * 3
    key[axis] = channel
    return (*key, *position)


def _convolve_rounded(
    x: AnyArray,
    weight: AnyArray,
    bias: AnyArray | None,
    steps: tuple[Sizes, Sizes, Sizes],
    groups: int,
    rounded: Rounding,
) -> AnyArray:
    """A convolution whose products and sums are each rounded, as the original's loops do.

    Channels come first, then the positions of the window; the bias is added last. ``steps`` are
    stride, padding and dilation.
    """
    stride, padding, dilation = steps
    kernel = weight.shape[2:]
    padded = pad(x, padding, padding)
    output = _result_sizes(padded.shape[2:], kernel, stride, dilation)
    per_group = weight.shape[1]
    image = padded.reshape(len(x), groups, per_group, *padded.shape[2:])
    weights = weight.reshape(groups, -1, per_group, *kernel)
    result = zeros((len(x), groups, weights.shape[1], *output), np.float32)
    for channel in range(per_group):
        of_channel = image[:, :, channel, np.newaxis]
        for position, view in window_views(of_channel, kernel, stride, dilation, output):
            factors = weights[_each_group(channel, position, 2)]
            product = rounded(factors.reshape(*factors.shape, *[1] * len(kernel)) * view)
            result = rounded(result + product)
    whole = result.reshape(len(x), len(weight), *output)
    return whole if bias is None else whole + bias.reshape(-1, *[1] * len(kernel))


def _convolve_transposed_rounded(
    x: AnyArray,
    weight: AnyArray,
    bias: AnyArray | None,
    steps: tuple[Sizes, Sizes, Sizes, Sizes],
    groups: int,
    rounded: Rounding,
) -> AnyArray:
    """A transposed convolution whose products and sums are each rounded, from the bias on.

    The original walks over the pixels of the input, so that a result meets the last position of
    the window first, of all channels. ``steps`` are stride, padding, dilation and padding of the
    output.
    """
    stride, padding, dilation, output_padding = steps
    kernel, sizes = weight.shape[2:], x.shape[2:]
    full = _full_sizes(sizes, kernel, stride, dilation, output_padding)
    outputs, ones = weight.shape[1], [1] * len(kernel)
    weights = weight.reshape(groups, -1, outputs, *kernel)
    image = x.reshape(len(x), groups, -1, *sizes)
    result = zeros((len(x), groups, outputs, *full), np.float32)
    if bias is not None:
        result += bias.reshape(groups, outputs, *ones)
    views = list(window_views(result, kernel, stride, dilation, sizes))
    for position, target in reversed(views):
        for channel in range(weights.shape[1]):
            pixels = image[:, :, channel, np.newaxis]
            factors = weights[_each_group(channel, position, 1)]
            product = rounded(factors.reshape(*factors.shape, *ones) * pixels)
            target[:] = rounded(target + product)
    return _cropped(result, padding)


def convolution(
    x: AnyArray,
    weight: AnyArray,
    bias: AnyArray | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    *,
    rounded: Rounding | None = None,
) -> AnyArray:
    """Convolution or transposed convolution in one or two dimensions, with or without batch.

    With ``rounded`` every product and every sum is rounded.
    """
    rank = weight.ndim - 2
    x, weight = accumulating(x), accumulating(weight)
    batched = x if x.ndim == rank + 2 else x[np.newaxis]
    steps, margins, spreads = (each(entry, rank) for entry in (stride, padding, dilation))
    extra = each(output_padding, rank) or (0,) * rank
    if rounded is not None:
        if transposed:
            result = _convolve_transposed_rounded(
                batched, weight, bias, (steps, margins, spreads, extra), groups, rounded
            )
        else:
            result = _convolve_rounded(
                batched, weight, bias, (steps, margins, spreads), groups, rounded
            )
        return result if x.ndim == rank + 2 else result[0]
    if transposed:
        result = convolve_transposed(batched, weight, steps, margins, spreads, extra, groups)
    else:
        result = convolve(batched, weight, steps, margins, spreads, groups)
    if bias is not None:
        result = result + bias.reshape(-1, *[1] * rank)
    return result if x.ndim == rank + 2 else result[0]


# --- pooling --------------------------------------------------------------------------------------


def _pooled_size(size: int, width: int, step: int, margin: int, spread: int, round_up: bool) -> int:
    """Number of windows; rounded up, one more that starts within the image or its left margin."""
    room = size + 2 * margin - spread * (width - 1) - 1
    count = -(-room // step) + 1 if round_up else room // step + 1
    return count - 1 if round_up and (count - 1) * step >= size + margin else count


class Pool:
    """Geometry of a two-dimensional pool over an image."""

    def __init__(
        self,
        x: AnyArray,
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        round_up: bool,
    ) -> None:
        self.size: Sizes = x.shape[-2:]
        self.kernel = each(kernel, 2)
        self.stride = each(stride, 2) if stride else self.kernel
        self.padding = each(padding, 2) if padding else (0, 0)
        self.dilation = each(dilation, 2) if dilation else (1, 1)
        self.output: Sizes = tuple(
            _pooled_size(*entry, round_up)
            for entry in zip(
                self.size, self.kernel, self.stride, self.padding, self.dilation, strict=True
            )
        )

    def views(self, x: AnyArray, value: Any) -> Iterator[tuple[Sizes, AnyArray]]:
        """Each position of the window over the image, which ``value`` surrounds."""
        after = tuple(
            max(0, (count - 1) * step + spread * (width - 1) + 1 - size - margin)
            for count, step, spread, width, size, margin in zip(
                self.output,
                self.stride,
                self.dilation,
                self.kernel,
                self.size,
                self.padding,
                strict=True,
            )
        )
        padded = pad(x, self.padding, after, value)
        return window_views(padded, self.kernel, self.stride, self.dilation, self.output)

    def starts(self, dimension: int) -> NDArray[np.int64]:
        """First element of each window; negative in the margin."""
        steps = np.arange(self.output[dimension]) * self.stride[dimension]
        return steps - self.padding[dimension]


def max_pool(
    x: AnyArray,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    round_up: bool = False,
) -> tuple[AnyArray, AnyArray]:
    """Greatest element of each window, and its index in the flattened image."""
    pool = Pool(x, kernel, stride, padding, dilation, round_up)
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    width = pool.size[1]
    rows, columns = (
        start + -(np.minimum(start, 0) // spread) * spread
        for start, spread in zip((pool.starts(0), pool.starts(1)), pool.dilation, strict=True)
    )
    best = zeros((*x.shape[:-2], *pool.output), x.dtype)
    best[...] = lowest
    index = np.broadcast_to(rows[:, np.newaxis] * width + columns, best.shape).copy()
    for (down, right), view in pool.views(x, lowest):
        at = (pool.starts(0) + down * pool.dilation[0])[:, np.newaxis] * width
        at = at + pool.starts(1) + right * pool.dilation[1]
        better = (view > best) | np.isnan(view)
        best = np.where(better, view, best)
        index = np.where(better, at, index)
    return best, index


def average_pool(
    x: AnyArray,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    round_up: bool = False,
    count_padding: bool = True,
    divisor: int | None = None,
) -> AnyArray:
    """Mean of each window; the margin counts as zeros or not at all."""
    sums, counts = window_sums(floating(x), kernel, stride, padding, round_up, count_padding)
    return sums / (counts if divisor is None else divisor)


def window_sums(
    x: AnyArray,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    round_up: bool,
    count_padding: bool,
) -> tuple[AnyArray, AnyArray]:
    """Sum of each window and the number of elements in it, as an integer of its type."""
    pool = Pool(x, kernel, stride, padding, (), round_up)
    sums = zeros((*x.shape[:-2], *pool.output), x.dtype)
    for _, view in pool.views(x, 0):
        sums += view
    rows, columns = (
        _counted(pool.starts(entry), pool.kernel[entry], pool.size[entry], margin)
        for entry, margin in enumerate(pool.padding if count_padding else (0, 0))
    )
    return sums, (rows[:, np.newaxis] * columns).astype(x.dtype)


def _counted(starts: NDArray[np.int64], width: int, size: int, margin: int) -> NDArray[np.int64]:
    """Elements of windows of ``width`` between ``-margin`` and ``size + margin``."""
    return np.minimum(starts + width, size + margin) - np.maximum(starts, -margin)


MOST_WINDOWS = 2**20
"""Windows along a dimension, which are made one after another."""


def adaptive_average_pool(x: AnyArray, output: Sequence[int]) -> AnyArray:
    """Mean over windows that divide the image into ``output`` rows and columns."""
    if max(output, default=0) > MOST_WINDOWS:
        raise ValueError(f"{list(output)} windows are more than {MOST_WINDOWS}")
    result = floating(x)
    for axis, count in zip((-2, -1), output, strict=True):
        size = result.shape[axis]
        pieces = [
            np.take(result, range(at * size // count, -(-(at + 1) * size // count)), axis)
            for at in range(count)
        ]
        result = np.stack([piece.mean(axis=axis) for piece in pieces], axis)
    return result


KERNELS: Mapping[str, Kernel] = {
    "aten::_adaptive_avg_pool2d.out": adaptive_average_pool,
    "aten::avg_pool2d.out": average_pool,
    "aten::convolution.out": convolution,
    "aten::max_pool2d_with_indices.out": max_pool,
}
