"""Distances between rows of tensors, by any norm."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.promotion import accumulating
from darwinn_reference.executorch.values import refuse_more, zeros

Kernel = Callable[..., Any]


def norm(differences: AnyArray, power: float) -> AnyArray:
    """Norm of the last dimension of absolute differences; of power 0 how many are not 0."""
    if power == 0:
        return np.asarray(np.count_nonzero(differences, axis=-1), differences.dtype)
    if power == 1:
        return np.asarray(differences.sum(axis=-1))
    if power == 2:
        return np.asarray(np.sqrt((differences * differences).sum(axis=-1)))
    if power == math.inf:
        # As the original runtime, whose greatest passes over NaN.
        return np.asarray(np.fmax.reduce(differences, axis=-1, initial=0))
    exponent = differences.dtype.type(power)
    return np.asarray((differences**exponent).sum(axis=-1) ** (1 / exponent))


def between(
    first: AnyArray, second: AnyArray, power: float, compute_mode: int | None = None
) -> AnyArray:
    """Distance of each row of the first from each of the second, (..., p, m) and (..., r, m)."""
    _refuse_power(power)
    batch = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    if min(first.ndim, second.ndim) < 2 or first.shape[-1] != second.shape[-1]:
        raise ValueError(f"rows of {first.shape} and of {second.shape}")
    left, right = accumulating(first), accumulating(second)
    rows, columns = first.shape[-2], second.shape[-2]
    result = zeros((*batch, rows, columns), np.result_type(left, right))
    refuse_more(math.prod(batch) * result.itemsize * columns * first.shape[-1], "distances")
    if result.size and first.shape[-1]:
        for row in range(rows):
            result[..., row, :] = norm(np.abs(left[..., row : row + 1, :] - right), power)
    return result


def within(x: AnyArray, power: float) -> AnyArray:
    """Distance of each pair of rows (n, m), in the order of the upper triangle of their table."""
    _refuse_power(power)
    rows, width = x.shape
    wide = accumulating(x)
    result = zeros((rows * (rows - 1) // 2,), wide.dtype)
    if not width:
        return result
    end = 0
    for row in range(rows - 1):
        start, end = end, end + rows - 1 - row
        result[start:end] = norm(np.abs(wide[row] - wide[row + 1 :]), power)
    return result


def _refuse_power(power: float) -> None:
    if not power >= 0:
        raise ValueError(f"a norm of power {power}")


KERNELS: Mapping[str, Kernel] = {
    "aten::_cdist_forward.out": between,
    "aten::_pdist_forward.out": within,
}
