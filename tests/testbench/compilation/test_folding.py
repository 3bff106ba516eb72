"""Integers that follow from the shapes of a model: nothing computes them, and nothing waits."""

from __future__ import annotations

import numpy as np
from darwinn_formats import tflite
from darwinn_formats.files import Content
from darwinn_formats.tflite import BuiltinOperator, TensorType
from darwinn_formats.tflite import options as o
from darwinn_testbench.compilation.compile import CompileOptions, compile_model
from darwinn_testbench.compiler.random_networks import RandomNetwork, _Value
from darwinn_testbench.compiler.stages.build import FOLDED
from darwinn_testbench.explain.placement import Place
from darwinn_testbench.report import Verdict


class Shaped(RandomNetwork):
    """A network with tensors of plain integers."""

    def integers(
        self,
        kind: BuiltinOperator,
        inputs: tuple[int, ...],
        shape: tuple[int, ...],
        options: object,
    ) -> _Value:
        """An operator of integers."""
        tensor = tflite.Tensor(shape, TensorType.INT32, 0, f"i{len(self._tensors)}")
        return self._operate(kind, inputs, _Value(self._add(tensor), shape, 0, 0), options)

    def number(self, value: int | list[int]) -> int:
        """A constant of plain integers."""
        return self._constant(np.array(value, np.int32))


def flattened() -> bytes:
    """What Keras exports of a layer that flattens: the batch comes from the input's shape."""
    network = Shaped(3, (1, 8, 8, 4), signed=True)
    image = network.layer(network.values[0], 12, 1)
    shape = network.integers(
        BuiltinOperator.SHAPE, (image.index,), (4,), o.ShapeOptions(TensorType.INT32)
    )
    ends = tuple(network.number([each]) for each in (0, 1, 1))
    batch = network.integers(
        BuiltinOperator.STRIDED_SLICE,
        (shape.index, *ends),
        (),
        o.StridedSliceOptions(shrink_axis_mask=1),
    )
    sizes = network.integers(
        BuiltinOperator.PACK, (batch.index, network.number(768)), (2,), o.PackOptions(2, 0)
    )
    flat = network._value((1, 768), image.scale, image.zero_point)
    network._operate(BuiltinOperator.RESHAPE, (image.index, sizes.index), flat)
    network.dense(flat)
    return network.finish()


def test_shapes_are_constants_and_their_operators_go() -> None:
    result = compile_model(Content(flattened(), "model.tflite"), CompileOptions(check=True))
    assert result.report.verdict is Verdict.PROVED, result.report.headline
    found = {(row.operator, row.place, row.reason) for row in result.report.rows}
    assert found == {
        ("CONV_2D", Place.CHIP, ""),
        ("SHAPE", Place.CPU, FOLDED),
        ("STRIDED_SLICE", Place.CPU, FOLDED),
        ("PACK", Place.CPU, FOLDED),
        ("RESHAPE", Place.CHIP, ""),
        ("FULLY_CONNECTED", Place.CHIP, ""),
    }
    written = tflite.load(result.data)
    (custom,) = written.subgraphs[0].operators
    assert written.code(custom).operator is BuiltinOperator.CUSTOM
    assert custom.inputs == written.subgraphs[0].inputs
