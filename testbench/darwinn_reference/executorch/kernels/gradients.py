"""Gradients of operators over windows, for training on a device."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.kernels.windows import (
    Pool,
    convolve_transposed,
    each,
    pad,
    window_views,
)
from darwinn_reference.executorch.promotion import accumulating
from darwinn_reference.executorch.values import zeros

Kernel = Callable[..., Any]


def convolution_gradients(
    gradient: AnyArray,
    x: AnyArray,
    weight: AnyArray,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> tuple[AnyArray | None, AnyArray | None, AnyArray | None]:
    """Gradients of a convolution in two dimensions by image, weight and bias, if wanted.

    A transposed convolution, or one in another number of dimensions, is refused, as by the
    original runtime.
    """
    if transposed or x.ndim != 4 or weight.ndim != 4 or len(wanted) != 3:
        raise ValueError(f"a gradient of a convolution of {x.shape} with {weight.shape}")
    steps, margins, spreads = (each(entry, 2) for entry in (stride, padding, dilation))
    if min(*steps, *spreads, groups) < 1 or min(margins) < 0:
        raise ValueError(f"stride {steps}, padding {margins}, dilation {spreads}, groups {groups}")
    kernel, output = weight.shape[2:], gradient.shape[2:]
    # What is left of the image, and its margins, behind the last window.
    rest = tuple(
        size + 2 * margin - spread * (width - 1) - 1 - (count - 1) * step
        for size, margin, spread, width, count, step in zip(
            x.shape[2:], margins, spreads, kernel, output, steps, strict=True
        )
    )
    fits = (len(x), len(weight)) == gradient.shape[:2] and not len(weight) % groups
    if not fits or x.shape[1] != weight.shape[1] * groups or min(*kernel, *output) < 1:
        raise ValueError(f"a gradient {gradient.shape} of {x.shape} with {weight.shape}")
    if any(not 0 <= left < step for left, step in zip(rest, steps, strict=True)):
        raise ValueError(f"a gradient of sizes {output}, which the convolution does not give")
    wide, factors = accumulating(gradient), accumulating(weight)
    by_image = by_weight = by_bias = None
    if wanted[0]:
        by_image = convolve_transposed(wide, factors, steps, margins, spreads, rest, groups)
    if wanted[1]:
        by_weight = zeros(weight.shape, factors.dtype)
        padded = pad(accumulating(x), margins, margins)
        area = math.prod(output)
        columns = wide.reshape(len(x), groups, len(weight) // groups, area)
        for (down, right), view in window_views(padded, kernel, steps, spreads, output):
            rows = view.reshape(len(x), groups, weight.shape[1], area).swapaxes(2, 3)
            by_weight[..., down, right] = (columns @ rows).sum(axis=0).reshape(weight.shape[:2])
    if wanted[2]:
        by_bias = wide.sum(axis=(0, 2, 3))
    return by_image, by_weight, by_bias


def max_pool_gradient(
    gradient: AnyArray,
    x: AnyArray,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    round_up: bool,
    indices: AnyArray,
) -> AnyArray:
    """Gradient of a maximum pool by its image; an index of -1 stands for no element."""
    pool = Pool(x, kernel, stride, padding, dilation, round_up)
    shape = (*x.shape[:-2], *pool.output)
    if x.ndim not in (3, 4) or not gradient.shape == indices.shape == shape:
        raise ValueError(f"a gradient {gradient.shape} with {indices.shape} for {shape}")
    area = math.prod(pool.size)
    if indices.size and not -1 <= indices.min() <= indices.max() < area:
        raise IndexError(f"element {indices.min()} or {indices.max()} of {area}")
    wide = accumulating(gradient)
    # An element more takes what belongs to none.
    result = zeros((math.prod(x.shape[:-2]), area + 1), wide.dtype)
    planes = np.arange(len(result))[:, np.newaxis]
    places = indices.reshape(len(result), math.prod(pool.output))
    np.add.at(result, (planes, places), wide.reshape(places.shape))
    return result[:, :area].reshape(x.shape)


KERNELS: Mapping[str, Kernel] = {
    "aten::convolution_backward.out": convolution_gradients,
    "aten::max_pool2d_with_indices_backward.grad_input": max_pool_gradient,
}
