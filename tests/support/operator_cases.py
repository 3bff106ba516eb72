"""Random networks of one operator, of every kind for which there is a rule of proof.

Sizes are small and bytes repeat, so that some elements are the same function. A case is made from
a random generator; its slow forms are in ``slow_forms``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import slow_forms as slow
from darwinn_reference.tflite.graph import ABSENT, Network, NetworkTensor
from one_operator import Array, f32, single, tensor

Random = np.random.Generator
Make = Callable[[Random, str], Network]

_ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")


def _scale(random: Random) -> float:
    """Often one of a few, so that some are equal."""
    return float(f32(random.choice([0.5, 0.02, random.uniform(0.003, 0.9)])))


def _point(random: Random, kind: str) -> int:
    limits = np.iinfo(kind)
    return int(random.choice([limits.min, int(random.integers(limits.min, limits.max + 1))]))


def _bytes(random: Random, shape: tuple[int, ...], kind: str) -> Array:
    """Of few different values."""
    limits = np.iinfo(kind)
    few = random.integers(limits.min, limits.max + 1, 4)
    return random.choice(few, shape).astype(kind)


def _activation(random: Random, index: int, shape: tuple[int, ...], kind: str) -> NetworkTensor:
    return tensor(index, shape, kind, _scale(random), _point(random, kind))


def _like(index: int, other: NetworkTensor, shape: tuple[int, ...]) -> NetworkTensor:
    return tensor(
        index, shape, other.dtype.str[1:], float(other.scale[0]), int(other.zero_point[0])
    )


def _whole(index: int, values: Any) -> NetworkTensor:
    held = np.array(values, np.int32)
    return tensor(index, held.shape, "i4", constant=held)


def _weights(random: Random, shape: tuple[int, ...], kind: str, axis: int) -> NetworkTensor:
    channels = shape[axis]
    several = kind == "i1" and random.random() < 0.5
    scales = [_scale(random) / 8 for _ in range(channels if several else 1)]
    return NetworkTensor(
        1,
        "t1",
        shape,
        np.dtype(kind),
        np.array(scales, f32),
        np.full(len(scales), 0 if kind == "i1" else _point(random, kind), np.int64),
        axis,
        _bytes(random, shape, kind),
    )


def _bias(random: Random, index: int, channels: int) -> NetworkTensor:
    values = random.choice(random.integers(-3000, 3000, 2), channels)
    return tensor(index, (channels,), "i4", constant=values.astype(np.int32))


def _window_options(
    random: Random, kernel: tuple[int, int], size: tuple[int, int]
) -> dict[str, Any]:
    options: dict[str, Any] = {"padding": str(random.choice(["SAME", "VALID"]))}
    for k, name in enumerate("hw"):
        options[f"stride_{name}"] = int(random.integers(1, 3))
        options[f"dilation_{name}_factor"] = int(random.integers(1, 3))
        if options["padding"] == "VALID":
            options[f"dilation_{name}_factor"] = 1
            assert kernel[k] <= size[k]
    return options


def _extents(
    options: Mapping[str, Any], kernel: tuple[int, ...], size: tuple[int, ...]
) -> tuple[int, ...]:
    valid = options["padding"] == "VALID"
    return tuple(
        -(-(size[k] - kernel[k] + 1 if valid else size[k]) // options[f"stride_{name}"])
        for k, name in enumerate("hw")
    )


def _sizes(random: Random) -> tuple[int, int]:
    return int(random.integers(3, 6)), int(random.integers(3, 6))


def convolution(random: Random, kind: str, *, depthwise: bool = False, groups: int = 1) -> Network:
    """CONV_2D or DEPTHWISE_CONV_2D."""
    size, depth = _sizes(random), groups * int(random.integers(1, 3))
    kernel = int(random.integers(1, 4)), int(random.integers(1, 4))
    options = _window_options(random, kernel, size)
    channels = (depth if depthwise else groups) * int(random.integers(1, 3))
    shape = (1, *kernel, channels) if depthwise else (channels, *kernel, depth // groups)
    tensors = [
        _activation(random, 0, (1, *size, depth), kind),
        _weights(random, shape, kind, 3 if depthwise else 0),
        _bias(random, 2, channels),
        _activation(random, 3, (1, *_extents(options, kernel, size), channels), kind),
    ]
    options["fused_activation_function"] = str(random.choice(_ACTIVATIONS))
    inputs = (0, 1, 2 if random.random() < 0.7 else ABSENT)
    name = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    return single(name, tensors, inputs, (3,), **options)


def dense(random: Random, kind: str) -> Network:
    """FULLY_CONNECTED."""
    rows, depth, channels = (int(random.integers(1, k)) for k in (3, 6, 5))
    tensors = [
        _activation(random, 0, (rows, depth), kind),
        _weights(random, (channels, depth), kind, 0),
        _bias(random, 2, channels),
        _activation(random, 3, (rows, channels), kind),
    ]
    activation = str(random.choice(_ACTIVATIONS))
    return single("FULLY_CONNECTED", tensors, (0, 1, 2), (3,), fused_activation_function=activation)


def transposed(random: Random, kind: str) -> Network:
    """TRANSPOSE_CONV."""
    rows, columns, depth, channels = (int(random.integers(1, 4)) for _ in range(4))
    stride, kernel = int(random.integers(1, 3)), int(random.integers(1, 4))
    padding = str(random.choice(["SAME", "VALID"]))
    grown = [
        stride * n if padding == "SAME" else (n - 1) * stride + max(kernel, stride)
        for n in (rows, columns)
    ]
    tensors = [
        _whole(0, [1, *grown, channels]),
        _weights(random, (channels, kernel, kernel, depth), kind, 0),
        _activation(random, 2, (1, rows, columns, depth), kind),
        _bias(random, 3, channels),
        _activation(random, 4, (1, *grown, channels), kind),
    ]
    options = {"padding": padding, "stride_h": stride, "stride_w": stride}
    return single("TRANSPOSE_CONV", tensors, (0, 1, 2, 3), (4,), **options)


def pool(random: Random, kind: str, *, name: str) -> Network:
    """A pool."""
    size, kernel = _sizes(random), (int(random.integers(1, 4)), int(random.integers(1, 4)))
    options = _window_options(random, kernel, size)
    options |= {f"dilation_{axis}_factor": 1 for axis in "hw"}
    options |= {"filter_height": kernel[0], "filter_width": kernel[1]}
    source = _activation(random, 0, (1, *size, 2), kind)
    target = _like(1, source, (1, *_extents(options, kernel, size), 2))
    return single(name, [source, target], (0,), (1,), **options)


def reduction(random: Random, kind: str, *, name: str) -> Network:
    """MEAN, SUM or REDUCE_MAX."""
    shape = (1, *_sizes(random), 2)
    chosen = [[1, 2], [1], [2], [-1], [3, 1]]
    axes = chosen[int(random.integers(len(chosen)))]
    kept = tuple(k for axis, k in enumerate(shape) if axis not in {each % 4 for each in axes})
    source = _activation(random, 0, shape, kind)
    same = name == "REDUCE_MAX"
    target = _like(2, source, kept) if same else _activation(random, 2, kept, kind)
    return single(name, [source, _whole(1, axes), target], (0, 1), (2,), keep_dims=False)


def pair(random: Random, kind: str, *, name: str, constant: str = "") -> Network:
    """ADD, SUB or MUL: of two tensors that are computed, or with a constant.

    ``constant``: empty, of each "channel", or of each "element".
    """
    shape = (1, 2, 3, 2)
    shapes = [shape, shape]
    if not constant and random.random() < 0.4:
        shapes[int(random.integers(2))] = (1, 1, 1, 2)
    tensors = [_activation(random, k, shapes[k], kind) for k in (0, 1)]
    if constant:
        place = int(random.integers(2))
        ends = [(2,), (1,), ()] if constant == "channel" else [shape]
        tensors[place] = tensor(
            place,
            chosen := ends[int(random.integers(len(ends)))],
            kind,
            _scale(random),
            _point(random, kind),
            _bytes(random, chosen, kind),
        )
    tensors.append(_activation(random, 2, shape, kind))
    activation = str(random.choice(_ACTIVATIONS))
    return single(name, tensors, (0, 1), (2,), fused_activation_function=activation)


def squared_difference(random: Random, kind: str) -> Network:
    """SQUARED_DIFFERENCE of two tensors; the least result is the least byte."""
    shape = (1, 2, 3, 2)
    tensors = [_activation(random, k, each, kind) for k, each in enumerate([shape, (1, 1, 1, 2)])]
    tensors.append(tensor(2, shape, kind, _scale(random), int(np.iinfo(kind).min)))
    return single("SQUARED_DIFFERENCE", tensors, (0, 1), (2,))


def unit_vector(random: Random, kind: str) -> Network:
    """L2_NORMALIZATION of some vectors of a few elements."""
    shape = (1, 3, int(random.integers(1, 4)))
    source = _activation(random, 0, shape, kind)
    target = tensor(1, shape, kind, 1 / 128, _point(random, kind))
    return single("L2_NORMALIZATION", [source, target], (0,), (1,))


def extreme(random: Random, kind: str, *, name: str, number: bool = False) -> Network:
    """MAXIMUM or MINIMUM of two tensors, or of one and a number."""
    shape = (1, 2, 3, 2)
    output = _activation(random, 2, shape, kind)
    drawn = [_activation(random, k, shape, kind) for k in (0, 1)]
    tensors = [_like(k, output, shape) if random.random() < 0.6 else drawn[k] for k in (0, 1)]
    if number:
        value = _bytes(random, (1,), kind)
        tensors[1] = tensor(1, (1,), kind, _scale(random), _point(random, kind), value)
    return single(name, [*tensors, output], (0, 1), (2,))


def requantised(random: Random, kind: str, *, name: str) -> Network:
    """QUANTIZE or an activation."""
    tensors = [_activation(random, k, (2, 5), kind) for k in (0, 1)]
    return single(name, tensors, (0,), (1,))


def prelu(random: Random, kind: str) -> Network:
    """PRELU with a slope of each channel, or one."""
    channels = int(random.integers(1, 4))
    slopes = (1, 1, channels) if random.random() < 0.8 else (1, 1, 1)
    source, shape = _activation(random, 0, (1, 2, 3, channels), kind), (1, 2, 3, channels)
    alpha = tensor(
        1, slopes, kind, _scale(random), _point(random, kind), _bytes(random, slopes, kind)
    )
    target = (
        _like(2, source, shape) if random.random() < 0.3 else _activation(random, 2, shape, kind)
    )
    return single("PRELU", [source, alpha, target], (0, 1), (2,))


def concatenation(random: Random, kind: str, *, parts: int = 2, constant: bool = False) -> Network:
    """CONCATENATION along any axis; of a constant if asked for."""
    axis = int(random.integers(0, 3))
    shape = [2, 3, 4]
    tensors = []
    extent = 0
    for k in range(parts):
        shape[axis] = int(random.integers(1, 4))
        extent += shape[axis]
        tensors.append(_activation(random, k, tuple(shape), kind))
    shape[axis] = extent
    output = _activation(random, parts, tuple(shape), kind)
    if random.random() < 0.5:
        tensors[0] = _like(0, output, tensors[0].shape)
    if constant:
        last = tensors[-1]
        tensors[-1] = tensor(
            last.index,
            last.shape,
            kind,
            float(last.scale[0]),
            int(last.zero_point[0]),
            _bytes(random, last.shape, kind),
        )
    return single("CONCATENATION", [*tensors, output], range(parts), (parts,), axis=axis)


def padded(random: Random, kind: str, *, name: str) -> Network:
    """PAD or PADV2."""
    source = _activation(random, 0, (2, 3, 2), kind)
    amounts = random.integers(0, 3, (3, 2))
    grown = tuple(int(k) for k in np.array(source.shape) + amounts.sum(axis=1))
    tensors = [source, _whole(1, amounts)]
    if name == "PADV2":
        value = _like(2, source, (1,))
        filling = _bytes(random, (1,), kind)
        tensors.append(
            tensor(2, (1,), kind, float(value.scale[0]), int(value.zero_point[0]), filling)
        )
    target = _like(len(tensors), source, grown)
    return single(name, [*tensors, target], range(len(tensors)), (target.index,))


def sliced(random: Random, kind: str, *, name: str) -> Network:
    """SLICE or STRIDED_SLICE."""
    source = _activation(random, 0, (4, 5, 3), kind)
    begins = [int(random.integers(0, k)) for k in source.shape]
    strides = [int(random.integers(1, 3)) if name == "STRIDED_SLICE" else 1 for _ in begins]
    ends = [int(random.integers(b + 1, k + 1)) for b, k in zip(begins, source.shape, strict=True)]
    each = list(zip(begins, ends, strides, strict=True))
    target = tuple(-(-(end - begin) // stride) for begin, end, stride in each)
    parameters = [begins, [end - begin for begin, end, _ in each]]
    if name == "STRIDED_SLICE":
        parameters = [begins, ends, strides]
    tensors = [source, *(_whole(1 + k, values) for k, values in enumerate(parameters))]
    output = _like(len(tensors), source, target)
    return single(name, [*tensors, output], range(len(tensors)), (output.index,))


def split(random: Random, kind: str) -> Network:
    """SPLIT into two or three."""
    parts, axis = int(random.integers(2, 4)), int(random.integers(0, 3))
    shape = [2, 2, 2]
    shape[axis] = 2 * parts
    source = _activation(random, 1, tuple(shape), kind)
    shape[axis] = 2
    outputs = [_like(2 + k, source, tuple(shape)) for k in range(parts)]
    tensors = [_whole(0, [axis]), source, *outputs]
    return single("SPLIT", tensors, (0, 1), tuple(range(2, 2 + parts)))


def turned(random: Random, kind: str) -> Network:
    """TRANSPOSE."""
    source = _activation(random, 0, (2, 3, 4), kind)
    order = [int(axis) for axis in random.permutation(3)]
    target = _like(2, source, tuple(source.shape[axis] for axis in order))
    return single("TRANSPOSE", [source, _whole(1, order), target], (0, 1), (2,))


def resized(random: Random, kind: str, *, name: str) -> Network:
    """A resize by powers of two, from the corner."""
    source = _activation(random, 0, (1, 2, 3, 2), kind)
    size = [n * int(random.choice([1, 2, 4])) for n in source.shape[1:3]]
    target = _like(2, source, (1, *size, 2))
    return single(name, [source, _whole(1, size), target], (0, 1), (2,))


CASES: Mapping[str, tuple[Make, slow.Slow]] = {
    "CONV_2D": (convolution, slow.convolution),
    "CONV_2D in groups": (partial(convolution, groups=2), slow.convolution),
    "DEPTHWISE_CONV_2D": (partial(convolution, depthwise=True), slow.depthwise),
    "FULLY_CONNECTED": (dense, slow.dense),
    "TRANSPOSE_CONV": (transposed, slow.transposed),
    "AVERAGE_POOL_2D": (partial(pool, name="AVERAGE_POOL_2D"), slow.average_pool),
    "MAX_POOL_2D": (partial(pool, name="MAX_POOL_2D"), slow.max_pool),
    "MEAN": (partial(reduction, name="MEAN"), slow.mean),
    "SUM": (partial(reduction, name="SUM"), slow.total),
    "REDUCE_MAX": (partial(reduction, name="REDUCE_MAX"), slow.reduced_max),
    "ADD": (partial(pair, name="ADD"), slow.addition),
    "SUB": (partial(pair, name="SUB"), partial(slow.addition, sign=-1)),
    "MUL": (partial(pair, name="MUL"), slow.product),
    "ADD, a tensor of constants": (partial(pair, name="ADD", constant="element"), slow.addition),
    "MUL, a tensor of constants": (partial(pair, name="MUL", constant="element"), slow.product),
    "ADD, constants of channels": (
        partial(pair, name="ADD", constant="channel"),
        slow.constant_term,
    ),
    "SUB, constants of channels": (
        partial(pair, name="SUB", constant="channel"),
        partial(slow.constant_term, sign=-1),
    ),
    "MUL, constants of channels": (
        partial(pair, name="MUL", constant="channel"),
        slow.constant_factor,
    ),
    "QUANTIZE": (partial(requantised, name="QUANTIZE"), slow.requantised),
    "RELU": (partial(requantised, name="RELU"), slow.requantised),
    "RELU6": (partial(requantised, name="RELU6"), slow.requantised),
    "CONCATENATION": (concatenation, slow.concatenation),
    "CONCATENATION of three": (partial(concatenation, parts=3), slow.concatenation),
    "CONCATENATION of a constant": (partial(concatenation, constant=True), slow.concatenation),
    "PRELU": (prelu, slow.prelu),
    "MAXIMUM": (partial(extreme, name="MAXIMUM"), slow.extreme),
    "MINIMUM": (partial(extreme, name="MINIMUM"), slow.extreme),
    "MAXIMUM of a number": (partial(extreme, name="MAXIMUM", number=True), slow.bounded),
    "MINIMUM of a number": (partial(extreme, name="MINIMUM", number=True), slow.bounded),
    "PAD": (partial(padded, name="PAD"), slow.padded),
    "PADV2": (partial(padded, name="PADV2"), slow.padded),
    "SLICE": (partial(sliced, name="SLICE"), slow.sliced),
    "STRIDED_SLICE": (partial(sliced, name="STRIDED_SLICE"), slow.sliced),
    "SPLIT": (split, slow.split),
    "TRANSPOSE": (turned, slow.turned),
    "RESIZE_NEAREST_NEIGHBOR": (partial(resized, name="RESIZE_NEAREST_NEIGHBOR"), slow.nearest),
    "RESIZE_BILINEAR": (partial(resized, name="RESIZE_BILINEAR"), slow.bilinear),
}
"""Of each kind how a network is drawn, and what its elements are."""

UNKNOWN: Mapping[str, tuple[Make, slow.Slow]] = {
    "SQUARED_DIFFERENCE": (squared_difference, slow.squared_difference),
    "L2_NORMALIZATION": (unit_vector, slow.unit_vector),
}
"""The same of those whose rules take no constants."""
