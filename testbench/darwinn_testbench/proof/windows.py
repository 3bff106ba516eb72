"""The terms of layers with weights: which weight multiplies which element of the input."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from darwinn_reference.tflite.graph import Network, Operator
from darwinn_reference.tflite.layers import Axis, window_axes
from numpy.typing import NDArray

LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
"""Operators whose terms are known."""


@dataclass(frozen=True)
class Window:
    """The terms of all channels of an output at one place (``row``: of the output as rows of
    channels).

    Channels are in groups that have the same ``sources``, flat indices in the input, each group
    with those of its weights in its first channel: (groups, terms). In the next channel of a group
    weights are ``step`` further; there are ``channels`` in each.
    """

    row: int
    sources: NDArray[np.int64]
    weights: NDArray[np.int64]
    step: int
    channels: int


def window(network: Network, operator: Operator, row: int) -> Window:
    """The terms at a row of the output of one of ``LAYERS``."""
    source, weights, output = (
        network.tensors[index] for index in (*operator.inputs[:2], operator.outputs[0])
    )
    if operator.name == "FULLY_CONNECTED":
        channels, depth = weights.shape
        columns = np.arange(depth)[None]
        return Window(row, row * depth + columns, columns, depth, channels)
    place = np.unravel_index(row, output.shape[:-1])
    kernel = weights.shape[1:3]
    axes = window_axes(operator.options, source.shape[1:3], kernel)
    rows, i = _met(axes[0], int(place[1]), source.shape[1])
    columns, j = _met(axes[1], int(place[2]), source.shape[2])
    depth = source.shape[3]
    pixels = (int(place[0]) * source.shape[1] + rows[:, None]) * source.shape[2] + columns
    sources, taps = pixels.reshape(-1, 1) * depth, (i[:, None] * kernel[1] + j).reshape(-1, 1)
    if operator.name == "DEPTHWISE_CONV_2D":
        channels = weights.shape[3] // depth
        each = np.arange(depth)
        first = taps * weights.shape[3] + each * channels
        return Window(row, (sources + each).T, first.T, 1, channels)
    taken = weights.shape[3]
    groups = depth // taken
    channels = weights.shape[0] // groups
    step = kernel[0] * kernel[1] * taken
    each, group = np.arange(taken), np.arange(groups)[:, None]
    return Window(
        row,
        (sources + each).reshape(1, -1) + group * taken,
        (taps * taken + each).reshape(1, -1) + group * channels * step,
        step,
        channels,
    )


def windows(network: Network, operator: Operator) -> list[Window]:
    """Few windows in which all weights are that are in any: one, unless the image is small."""
    if operator.name == "FULLY_CONNECTED":
        return [window(network, operator, 0)]
    source, weights, output = (
        network.tensors[index] for index in (*operator.inputs[:2], operator.outputs[0])
    )
    axes = window_axes(operator.options, source.shape[1:3], weights.shape[1:3])
    lines = (_covering(axis, size) for axis, size in zip(axes, source.shape[1:3], strict=True))
    places = product(*lines)
    rows = (np.ravel_multi_index((0, *place), output.shape[:-1]) for place in places)
    return [window(network, operator, int(row)) for row in rows]


def _met(axis: Axis, place: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places of an image that a window meets along an axis, and those in the kernel."""
    kernel = np.arange(axis.kernel)
    at = place * axis.stride + kernel * axis.dilation - axis.before
    met = (at >= 0) & (at < size)
    return at[met], kernel[met]


def _covering(axis: Axis, size: int) -> list[int]:
    """Outputs along an axis that meet whatever is met of the kernel: the middle one that meets all
    of it, or several."""
    outputs = np.arange(axis.outputs)
    counts = np.array([len(_met(axis, each, size)[0]) for each in outputs.tolist()])
    whole = np.flatnonzero(counts == axis.kernel)
    if len(whole):
        return [int(whole[len(whole) // 2])]
    chosen: list[int] = []
    met: set[int] = set()
    for each in np.argsort(-counts, kind="stable").tolist():
        more = set(_met(axis, each, size)[1].tolist()) - met
        if more:
            chosen.append(each)
            met |= more
    return chosen
