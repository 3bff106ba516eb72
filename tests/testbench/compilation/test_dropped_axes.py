"""Slices that drop an axis: the last step of a sequence, as Keras cuts it, or a row."""

from __future__ import annotations

import numpy as np
import pytest
from darwinn_formats.files import Content
from darwinn_formats.tflite import BuiltinOperator
from darwinn_formats.tflite import options as o
from darwinn_testbench.compilation.compile import CompileOptions, compile_models
from darwinn_testbench.compiler.random_networks import RandomNetwork
from darwinn_testbench.report import Verdict


def sliced(axis: int, place: int) -> bytes:
    """A convolution, and of its result one place of an axis, which the shape then lacks."""
    network = RandomNetwork(6, (1, 6, 5, 4), signed=True)
    source = network.layer(network.values[0], 8, 3)
    begin, end = [0] * 4, [*source.shape]
    begin[axis], end[axis] = place, 0
    shape = tuple(size for k, size in enumerate(source.shape) if k != axis)
    result = network._value(shape, source.scale, source.zero_point)
    numbers = (begin, end, [1] * 4)
    inputs = [network._constant(np.array(each, np.int32)) for each in numbers]
    options = o.StridedSliceOptions(shrink_axis_mask=1 << axis)
    network._operate(BuiltinOperator.STRIDED_SLICE, (source.index, *inputs), result, options)
    return network.finish()


@pytest.mark.parametrize("place", [0, 3, -1])
def test_a_row_is_proved(place: int) -> None:
    (result,) = compile_models([Content(sliced(1, place), "row.tflite")], CompileOptions())
    assert [row.piece for row in result.report.rows] == [0, 0]
    assert result.report.verdict is Verdict.PROVED, result.report.headline


def test_an_axis_that_makes_other_pixels_stays_on_the_cpu() -> None:
    (result,) = compile_models([Content(sliced(3, 2), "channel.tflite")], CompileOptions())
    assert [row.piece for row in result.report.rows] == [0, None]
    assert result.report.rows[1].reason == "a slice that drops an axis of pixels"
