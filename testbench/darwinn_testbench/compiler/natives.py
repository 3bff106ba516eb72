"""Native functions of the sample's BEF files: quantised layers in the chip's own arithmetic.

A BEF file has no kernels for quantised layers; it calls functions that the host registers. These
are the host's, for ``darwinn verify --natives darwinn_testbench.compiler.natives`` and for
``TfrtReference(file, natives=NATIVES)``. All that belongs to a network is in the file: each
function takes a chain that says that the constants are filled, the values, then

    weights, bias, factors                      dense tensors: 8-bit, int32, float32
    zero points of the values and the weights   numbers
    lowest and highest result, its zero point   numbers; the bounds count from the zero point
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.output_stage import requantise
from darwinn_reference.tfrt import DenseHostTensor, KernelError, dense
from darwinn_reference.tfrt.values import Chain
from numpy.typing import NDArray

FULLY_CONNECTED = "darwinn.fully_connected"
CONVOLUTION = "darwinn.convolution"

_Sums = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]
"""Integer sums from values and weights without zero points; the last axis are the outputs."""


def _native(sums: _Sums) -> Callable[..., DenseHostTensor]:
    def layer(
        _filled: Chain,
        values: DenseHostTensor,
        weights: DenseHostTensor,
        bias: DenseHostTensor,
        factors: DenseHostTensor,
        zero_point: int,
        weight_zero_point: int,
        low: float,
        high: float,
        output_zero_point: int,
    ) -> DenseHostTensor:
        if values.data.dtype != weights.data.dtype:
            raise KernelError(f"values are {values.data.dtype}, not {weights.data.dtype}")
        try:
            total = sums(
                values.data.astype(np.int64) - zero_point,
                weights.data.astype(np.int64) - weight_zero_point,
            )
        except ValueError as error:
            raise KernelError(f"values and weights do not fit: {error}") from None
        bounds = np.float32(low), np.float32(high)
        total += bias.data
        return dense(requantise(total, factors.data, bounds, output_zero_point, values.data.dtype))

    return layer


def _dense_sums(values: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of values (rows, inputs) and weights (outputs, inputs)."""
    return values @ weights.T


def _window_sums(values: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of an image (1, y, x, inputs) and weights (outputs, k, k, inputs), the border being 0."""
    kernel = weights.shape[1:3]
    margins = [(0, 0), *((size // 2, size // 2) for size in kernel), (0, 0)]
    windows: AnyArray = np.lib.stride_tricks.sliding_window_view(
        np.pad(values, margins), kernel, axis=(1, 2)
    )
    # Windows are (1, y, x, inputs, k, k).
    total: NDArray[np.int64] = np.tensordot(windows, weights, ([4, 5, 3], [1, 2, 3]))
    return total


NATIVES: Mapping[str, Callable[..., Any]] = {
    FULLY_CONNECTED: _native(_dense_sums),
    CONVOLUTION: _native(_window_sums),
}
"""Native functions by the names that the files call them by."""
