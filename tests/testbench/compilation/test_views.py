"""Operators that only give bytes another shape, which are no operations of the chip."""

from __future__ import annotations

from darwinn_formats.files import Content
from darwinn_formats.tflite import BuiltinOperator
from darwinn_testbench.compilation.compile import CompileOptions, compile_model
from darwinn_testbench.compiler.random_networks import RandomNetwork
from darwinn_testbench.report import Verdict


def test_two_shapes_of_an_input_are_compiled_beside_an_operator_on_the_cpu() -> None:
    """One of them has another one behind it, but the input has a second reader as well."""
    network = RandomNetwork(1, (1, 1, 1, 8), signed=True)
    (source,) = network.values
    first, second = (network.in_shape(source, shape) for shape in ((1, 1, 8), (1, 8, 1)))
    pixels = network.in_shape(second, (1, 4, 2))
    result = network._value(pixels.shape, pixels.scale, pixels.zero_point)
    network._operate(BuiltinOperator.ABS, (pixels.index,), result)
    network.function(first)
    compiled = compile_model(Content(network.finish(), "views.tflite"), CompileOptions())
    places = {row.operator: row.piece for row in compiled.report.rows}
    assert places["ABS"] is None
    assert places["LOGISTIC"] == 0
    assert compiled.report.verdict is Verdict.PROVED, compiled.report.headline
