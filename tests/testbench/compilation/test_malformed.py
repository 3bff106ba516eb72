"""Models whose shapes and operands contradict each other: a sentence says what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from darwinn_formats import tflite
from darwinn_formats.files import Content
from darwinn_formats.tflite import BuiltinOperator
from darwinn_formats.tflite import options as o
from darwinn_testbench.compilation.compile import CompileOptions, compile_model
from darwinn_testbench.compiler.random_networks import RandomNetwork
from darwinn_testbench.compiler.random_networks import _Value as Value
from darwinn_testbench.compiler.stages.build import Asked, build_together
from darwinn_testbench.report import Verdict

Operator = tuple[str, tuple[int, ...], tuple[list[Any], ...], object]
"""A name, the shape of its result, operands that are constant, and options."""


def operated(network: RandomNetwork, source: Value, operator: Operator) -> Value:
    name, shape, numbers, options = operator
    result = network._value(shape, source.scale, source.zero_point)
    constants = [network._constant(np.array(each, np.int32)) for each in numbers]
    kind = BuiltinOperator[name]
    return network._operate(kind, (source.index, *constants), result, options)


def reason(operator: Operator) -> str:
    """Why an operator that reads the result of a convolution stays on the CPU."""
    network = RandomNetwork(7, (1, 6, 6, 4), signed=True)
    operated(network, network.layer(network.values[0], 8, 3), operator)
    (built,) = build_together([Asked(tflite.load(network.finish()), "malformed")])
    assert not built.fates[0].reason
    return built.fates[1].reason


def _pool(size: int) -> o.Pool2DOptions:
    return o.Pool2DOptions(stride_w=2, stride_h=2, filter_width=size, filter_height=size)


@pytest.mark.parametrize(
    ("operator", "text"),
    [
        (("DEPTH_TO_SPACE", (1, 6, 6, 8), (), o.DepthToSpaceOptions(0)), "not blocks of 0"),
        (("DEPTH_TO_SPACE", (1, 18, 18, 1), (), o.DepthToSpaceOptions(3)), "not blocks of 3"),
        (("DEPTH_TO_SPACE", (1, 12, 6, 4), (), o.DepthToSpaceOptions(2)), "(1, 12, 12, 2)"),
        (("SPACE_TO_DEPTH", (1, 6, 6, 8), (), o.SpaceToDepthOptions(-1)), "blocks of -1"),
        (("TRANSPOSE", (1, 6, 6, 8), ([0, 2, 2, 3],), None), "do not fit each other"),
        (("TRANSPOSE", (1, 6, 6, 8), ([0, 2, 1],), None), "do not fit each other"),
        (("PAD", (1, 9, 8, 8), ([[0, 0], [1, 1], [1, 1], [0, 0]],), None), "(1, 8, 8, 8)"),
        (("PAD", (1, 8, 8, 8), ([[0, 0]] * 5,), None), "do not fit each other"),
        (("SLICE", (1, 6, 6, 8), ([0, 4, 0, 0], [1, 6, 6, 8]), o.SliceOptions()), "(1, 2, 6, 8)"),
        (("TILE", (1, 13, 6, 8), ([1, 2, 1, 1],), o.TileOptions()), "(1, 12, 6, 8)"),
        (("MAX_POOL_2D", (1, 4, 3, 8), (), _pool(2)), "(1, 3, 3, 8)"),
        (("AVERAGE_POOL_2D", (1, 3, 3, 9), (), _pool(2)), "(1, 3, 3, 8)"),
        (("LEAKY_RELU", (1, 6, 6, 9), (), o.LeakyReluOptions(0.1)), "(1, 6, 6, 8)"),
        (("MEAN", (1, 6, 6, 8), ([9],), o.ReducerOptions()), "axis 9 of a tensor of 4 axes"),
        (("SUM", (1, 8), ([-5, 2],), o.ReducerOptions()), "axis -5 of a tensor of 4 axes"),
        (("MEAN", (1, 6, 8), ([1, 2],), o.ReducerOptions()), "(1, 1, 1, 8)"),
        (("REDUCE_MAX", (1, 5, 8), ([1],), o.ReducerOptions()), "(1, 1, 6, 8)"),
        (
            ("RESIZE_BILINEAR", (1, 12, 12, 9), ([12, 12],), o.ResizeBilinearOptions()),
            "(1, 12, 12, 8)",
        ),
    ],
)
def test_what_does_not_fit_stays_on_the_cpu(operator: Operator, text: str) -> None:
    assert text in reason(operator)


def test_a_concatenation_of_other_sides_stays_on_the_cpu() -> None:
    network = RandomNetwork(7, (1, 6, 6, 4), signed=True)
    first = network.layer(network.values[0], 8, 3)
    result = network._value((1, 6, 6, 13), first.scale * 2, first.zero_point)
    sources = first.index, network.values[0].index
    kind, options = BuiltinOperator.CONCATENATION, o.ConcatenationOptions(3)
    network._operate(kind, sources, result, options)
    (built,) = build_together([Asked(tflite.load(network.finish()), "malformed")])
    assert "(1, 6, 6, 12)" in built.fates[1].reason


@pytest.mark.parametrize(
    ("first", "shape"),
    [([0, 1], (1, 5, 6, 8)), ([0, -50, 0, 0], (1, 6, 6, 8)), ([0, -2], (1, 2, 6, 8))],
)
def test_a_slice_begins_where_numpys_does(first: list[int], shape: tuple[int, ...]) -> None:
    """Axes that are not named are taken whole; nothing is before the first element."""
    network = RandomNetwork(7, (1, 6, 6, 8), signed=True)
    ends = [1, 6, 6, 8][: len(first)]
    numbers = first, ends, [1] * len(first)
    operator = "STRIDED_SLICE", shape, numbers, o.StridedSliceOptions()
    operated(network, network.values[0], operator)
    report = compile_model(Content(network.finish(), "slice.tflite"), CompileOptions()).report
    assert report.verdict is Verdict.PROVED, report.headline
