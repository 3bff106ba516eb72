"""Operators on floats with quantised weights: embeddings, and matrix products."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from darwinn_reference.arrays import AnyArray
from darwinn_reference.executorch.promotion import accumulating

Kernel = Callable[..., Any]


def _unpacked(packed: AnyArray, bits: int) -> AnyArray:
    """Weights of 2 or 4 bits, less their middle, from bytes (..., bytes).

    Those of 4 bits begin with the upper half of a byte, those of 2 bits with the lowest bits.
    """
    if packed.dtype != np.uint8:
        raise TypeError(f"packed weights of type {packed.dtype}")
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    ordered = shifts[::-1] if bits == 4 else shifts
    fields = packed[..., np.newaxis] >> ordered & np.uint8(2**bits - 1)
    shape = (*packed.shape[:-1], packed.shape[-1] * len(ordered))
    return fields.reshape(shape).astype(np.float32) - np.float32(2 ** (bits - 1))


def _embedding(bits: int) -> Kernel:
    """Rows of a table (rows, bytes) of weights of so many bits, by number, as floats.

    Scales, and zero points if there are any, are (rows) or (rows, groups of columns).
    """

    def kernel(
        weight: AnyArray,
        scales: AnyArray,
        points: AnyArray | None,
        low: int,
        high: int,
        indices: AnyArray,
        dtype: int | None = None,
    ) -> AnyArray:
        rows = len(weight)
        if indices.size and not 0 <= indices.min() <= indices.max() < rows:
            raise IndexError(f"row {indices.min()} or {indices.max()} of {rows}")
        if weight.ndim != 2 or scales.ndim not in (1, 2) or len(scales) != rows or low > high:
            raise ValueError(f"weights {weight.shape} with scales {scales.shape}, {low} to {high}")
        if points is not None and (points.shape, points.dtype) != (scales.shape, scales.dtype):
            described = f"{scales.shape} {scales.dtype}, zero points {points.shape} {points.dtype}"
            raise ValueError(f"scales {described}")
        taken = weight[indices]
        values = taken.astype(np.float32) if bits == 8 else _unpacked(taken, bits)
        groups = scales.shape[1] if scales.ndim == 2 else 1
        width = values.shape[-1]
        if not groups or width % groups:
            raise ValueError(f"{groups} groups of {width} columns")
        grouped = values.reshape(*indices.shape, groups, width // groups)
        if points is not None:
            grouped = grouped - _of_groups(points, indices, groups)
        return (grouped * _of_groups(scales, indices, groups)).reshape(values.shape)

    return kernel


def _of_groups(values: AnyArray, indices: AnyArray, groups: int) -> AnyArray:
    """Values of the groups of each row, shaped to go with (..., groups, columns)."""
    return values[indices].astype(np.float32).reshape(*indices.shape, groups, 1)


def mixed_product(
    x: AnyArray, weight: AnyArray, scales: AnyArray, points: AnyArray | None
) -> AnyArray:
    """x @ weight with a scale for each row of the weights (int8)."""
    _refuse_mixed(x, weight, scales, points)
    if scales.shape != weight.shape[:1]:
        raise ValueError(f"weights {weight.shape} with scales {scales.shape}")
    wide = accumulating(x)
    return np.asarray((wide * accumulating(scales)) @ weight.astype(wide.dtype))


def mixed_linear(
    x: AnyArray,
    weight: AnyArray,
    scales: AnyArray,
    points: AnyArray | None,
    dtype: int | None = None,
) -> AnyArray:
    """x @ weight, transposed, with scales (outputs) or (outputs, groups of inputs)."""
    _refuse_mixed(x, weight, scales, points)
    if scales.ndim not in (1, 2) or len(scales) != len(weight) or 0 in scales.shape[1:]:
        raise ValueError(f"weights {weight.shape} with scales {scales.shape}")
    wide = accumulating(x)
    width = weight.shape[1]
    groups = scales.shape[1] if scales.ndim == 2 else 1
    size = max(-(-width // groups), 1)
    # The last group may have fewer elements, but none has none.
    if groups != max(-(-width // size), 1):
        raise ValueError(f"{groups} groups of {width} columns")
    factors = accumulating(scales).reshape(len(weight), groups)[:, np.arange(width) // size]
    return np.asarray(wide @ (weight.astype(wide.dtype) * factors).T)


def _refuse_mixed(x: AnyArray, weight: AnyArray, scales: AnyArray, points: AnyArray | None) -> None:
    if weight.dtype != np.int8 or x.dtype != scales.dtype or x.ndim != 2 or weight.ndim != 2:
        raise ValueError(f"{x.dtype} {x.shape} with {weight.dtype} {weight.shape}")
    if points is not None:
        raise ValueError("zero points, which the original runtime does not take either")


KERNELS: Mapping[str, Kernel] = {
    **{
        f"quantized_decomposed::embedding_{name}.{overload}": _embedding(bits)
        for name, bits in (("byte", 8), ("4bit", 4), ("2bit", 2))
        for overload in ("out", "dtype_out")
    },
    "quantized_decomposed::mixed_linear.out": mixed_linear,
    "quantized_decomposed::mixed_mm.out": mixed_product,
}
