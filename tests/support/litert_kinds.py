"""Operators of each kind that LiteRT and the rules compute, with inputs that reach every value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from darwinn_formats import tflite
from darwinn_formats.tflite import BuiltinOperator as Name
from darwinn_formats.tflite import options
from darwinn_reference.tflite.graph import NetworkTensor
from one_operator import Array, f32, tensor
from tiny_models import tiny_model

NONE = tflite.ActivationFunctionType.NONE
RELU6 = tflite.ActivationFunctionType.RELU6


def image(*shape: int, kind: str = "i1", seed: int = 1) -> Array:
    limits = np.iinfo(kind)
    random = np.random.default_rng(seed)
    return random.integers(limits.min, limits.max, shape, kind, endpoint=True)


def whole(index: int, values: Any) -> NetworkTensor:
    held = np.array(values, np.int32)
    return tensor(index, held.shape, "i4", constant=held)


def weights(*shape: int, axis: int = 0, kind: str = "i1") -> NetworkTensor:
    scales = np.linspace(0.004, 0.012, shape[axis] if kind == "i1" else 1)
    points = np.full(len(scales), 0 if kind == "i1" else 119, np.int64)
    values = image(*shape, kind=kind, seed=4)
    return NetworkTensor(1, "t1", shape, np.dtype(kind), scales.astype(f32), points, axis, values)


def biases(channels: int) -> NetworkTensor:
    values = np.random.default_rng(5).integers(-4000, 4000, channels).astype(np.int32)
    return tensor(2, (channels,), "i4", 0.001, 0, values)


@dataclass(frozen=True)
class Kind:
    """An operator: its tensors, which of them it reads, and its options."""

    name: Name
    tensors: tuple[NetworkTensor, ...]
    options: Any = None

    @property
    def output(self) -> int:
        return len(self.tensors) - 1

    @property
    def model(self) -> bytes:
        return tiny_model(self.name, self.tensors, range(self.output), (self.output,), self.options)

    @property
    def given(self) -> list[Array]:
        fed = [each for each in self.tensors[:-1] if each.constant is None]
        return [image(*each.shape, kind=each.dtype.str[1:], seed=k) for k, each in enumerate(fed)]


SOURCE = tensor(0, (1, 6, 7, 3), "i1", 0.5, -9)
UNSIGNED = tensor(0, (1, 6, 7, 3), "u1", 0.5, 119)
CONVOLUTION = tflite.Conv2DOptions(tflite.Padding.SAME, 2, 2, RELU6)
DILATED = tflite.Conv2DOptions(tflite.Padding.SAME, 1, 1, NONE, 2, 2)
DEPTHWISE = options.DepthwiseConv2DOptions(tflite.Padding.SAME, 2, 2, 2, NONE)
POOL = options.Pool2DOptions(tflite.Padding.SAME, 2, 2, 3, 3, NONE)

KINDS: Mapping[str, Kind] = {
    "convolution": Kind(
        Name.CONV_2D,
        (
            tensor(0, (1, 6, 7, 3), "i1", 0.02, -9),
            weights(4, 3, 3, 3),
            biases(4),
            tensor(3, (1, 3, 4, 4), "i1", 0.04, -100),
        ),
        CONVOLUTION,
    ),
    "dilated": Kind(
        Name.CONV_2D,
        (SOURCE, weights(4, 3, 3, 3), biases(4), tensor(3, (1, 6, 7, 4), "i1", 1.5, 3)),
        DILATED,
    ),
    "unsigned": Kind(
        Name.CONV_2D,
        (
            UNSIGNED,
            weights(4, 3, 3, 3, kind="u1"),
            biases(4),
            tensor(3, (1, 3, 4, 4), "u1", 1.5, 100),
        ),
        replace(CONVOLUTION, fused_activation_function=NONE),
    ),
    "depthwise": Kind(
        Name.DEPTHWISE_CONV_2D,
        (SOURCE, weights(1, 3, 3, 6, axis=3), biases(6), tensor(3, (1, 3, 4, 6), "i1", 1.5, 3)),
        DEPTHWISE,
    ),
    "dense": Kind(
        Name.FULLY_CONNECTED,
        (
            tensor(0, (2, 5), "i1", 0.5, -9),
            tensor(1, (5, 5), "i1", 0.01, 0, image(5, 5, seed=4)),
            biases(5),
            tensor(3, (2, 5), "i1", 1.0, 3),
        ),
        tflite.FullyConnectedOptions(NONE),
    ),
    "transposed": Kind(
        Name.TRANSPOSE_CONV,
        (
            whole(0, [1, 12, 14, 4]),
            weights(4, 3, 3, 3),
            replace(SOURCE, index=2),
            replace(biases(4), index=3),
            tensor(4, (1, 12, 14, 4), "i1", 1.5, 3),
        ),
        tflite.TransposeConvOptions(tflite.Padding.SAME, 2, 2),
    ),
    "average pool": Kind(
        Name.AVERAGE_POOL_2D, (SOURCE, tensor(1, (1, 3, 4, 3), "i1", 0.5, -9)), POOL
    ),
    "max pool": Kind(Name.MAX_POOL_2D, (SOURCE, tensor(1, (1, 3, 4, 3), "i1", 0.5, -9)), POOL),
    "mean": Kind(
        Name.MEAN,
        (tensor(0, (1, 4, 4, 3), "i1", 0.5, -9), whole(1, [1]), tensor(2, (1, 4, 3), "i1", 0.3, 7)),
        tflite.ReducerOptions(),
    ),
    "greatest": Kind(
        Name.REDUCE_MAX,
        (tensor(0, (1, 4, 4, 3), "i1", 0.5), whole(1, [1]), tensor(2, (1, 4, 3), "i1", 0.5)),
        tflite.ReducerOptions(),
    ),
    "addition": Kind(
        Name.ADD,
        (SOURCE, tensor(1, (1, 6, 7, 3), "i1", 0.2, 30), tensor(2, (1, 6, 7, 3), "i1", 0.6, 3)),
        options.AddOptions(NONE),
    ),
    "difference": Kind(
        Name.SUB,
        (SOURCE, tensor(1, (1, 6, 7, 3), "i1", 0.2, 30), tensor(2, (1, 6, 7, 3), "i1", 0.6, 3)),
        options.SubOptions(NONE),
    ),
    "product": Kind(
        Name.MUL,
        (SOURCE, tensor(1, (1, 6, 7, 3), "i1", 0.2, 30), tensor(2, (1, 6, 7, 3), "i1", 20.0, 3)),
        options.MulOptions(NONE),
    ),
    "constant term": Kind(
        Name.ADD,
        (
            SOURCE,
            tensor(1, (3,), "i1", 0.2, 30, np.array([-90, 3, 88], np.int8)),
            tensor(2, (1, 6, 7, 3), "i1", 0.6, 3),
        ),
        options.AddOptions(NONE),
    ),
    "concatenation": Kind(
        Name.CONCATENATION,
        (
            tensor(0, (1, 4, 4, 4), "i1", 0.5, -9),
            tensor(1, (1, 4, 4, 4), "i1", 0.5, -9),
            tensor(2, (1, 4, 8, 4), "i1", 0.5, -9),
        ),
        options.ConcatenationOptions(2, NONE),
    ),
    "padding": Kind(
        Name.PAD,
        (
            tensor(0, (2, 3), "i1", 0.5, -9),
            whole(1, [[1, 0], [0, 2]]),
            tensor(2, (3, 5), "i1", 0.5, -9),
        ),
        tflite.PadOptions(),
    ),
    "bilinear": Kind(
        Name.RESIZE_BILINEAR,
        (SOURCE, whole(1, [12, 14]), tensor(2, (1, 12, 14, 3), "i1", 0.5, -9)),
        tflite.ResizeBilinearOptions(half_pixel_centers=True),
    ),
    "nearest": Kind(
        Name.RESIZE_NEAREST_NEIGHBOR,
        (SOURCE, whole(1, [12, 14]), tensor(2, (1, 12, 14, 3), "i1", 0.5, -9)),
        tflite.ResizeNearestNeighborOptions(),
    ),
    "quantisation": Kind(Name.QUANTIZE, (SOURCE, tensor(1, (1, 6, 7, 3), "i1", 0.9, 30))),
}
