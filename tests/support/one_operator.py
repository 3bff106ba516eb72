"""Networks of one operator for tests, and the output stage as a slow scalar rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from darwinn_reference.tflite.call import CompilerChoices
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.graph import ABSENT, Network, NetworkTensor, Operator
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import ArrayLike, NDArray

f32 = np.float32
Array = NDArray[Any]

scales = st.floats(2**-9, 4, width=32, exclude_min=True)
activations = st.sampled_from(["NONE", "RELU", "RELU6", "RELU_N1_TO_1"])
byte_types = st.sampled_from(["u1", "i1"])
sides = st.integers(1, 5)


def tensor(
    index: int,
    shape: Sequence[int],
    dtype: str,
    scale: ArrayLike = (),
    zero_point: int = 0,
    constant: Array | None = None,
    **more: Any,
) -> NetworkTensor:
    every = np.atleast_1d(np.asarray(scale, f32))
    zero_points = np.full(len(every), zero_point, np.int64)
    kind = np.dtype(dtype)
    return NetworkTensor(
        index, f"t{index}", tuple(shape), kind, every, zero_points, 0, constant, **more
    )


def single(
    name: str,
    tensors: Sequence[NetworkTensor],
    inputs: Sequence[int],
    outputs: Sequence[int],
    **options: Any,
) -> Network:
    """A network of one operator; its inputs are the tensors that have no constant value."""
    operator = Operator(0, name, tuple(inputs), tuple(outputs), options)
    fed = [k for k in inputs if k != ABSENT and tensors[k].constant is None]
    fed = [k for k in dict.fromkeys(fed) if not tensors[k].variable]
    return Network("test", tuple(tensors), (operator,), tuple(fed), tuple(outputs))


def compute(network: Network, *inputs: Array, **choices: Any) -> Array:
    values = ChipArithmetic(network, CompilerChoices(**choices)).run(inputs)
    assert not values.missing
    return values[network.outputs[0]]


def byte_arrays(shape: Sequence[int], dtype: str) -> st.SearchStrategy[Array]:
    return hnp.arrays(dtype, tuple(shape), elements=hnp.from_dtype(np.dtype(dtype)))


def zero_points(dtype: str) -> st.SearchStrategy[int]:
    limits = np.iinfo(dtype)
    return st.integers(int(limits.min), int(limits.max))


def slow_output(
    total: int, factor: np.float32, output: NetworkTensor, activation: str = "NONE"
) -> int:
    """One value of the output stage: float32 product, clip, half to even, offset."""
    scale, zero_point = output.scale[0], int(output.zero_point[0])
    limits = np.iinfo(output.dtype)
    scaled = float(f32(f32(total) * factor))
    inverse = f32(1) / scale
    low = {"RELU": 0.0, "RELU6": 0.0, "RELU_N1_TO_1": float(-inverse)}.get(activation, -math.inf)
    high = {"RELU6": float(f32(6) * inverse), "RELU_N1_TO_1": float(inverse)}.get(
        activation, math.inf
    )
    low, high = max(low, limits.min - zero_point), min(high, limits.max - zero_point)
    return round(min(max(scaled, low), high)) + zero_point


def slow_factor(first: float, second: float, output: NetworkTensor) -> np.float32:
    return f32(f32(f32(first) * f32(second)) * f32(f32(1) / output.scale[0]))
