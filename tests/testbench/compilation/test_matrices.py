"""Dense layers whose weights are computed, as attention has them, and roots of variances."""

from __future__ import annotations

import numpy as np
import pytest
from darwinn_formats.files import Content
from darwinn_formats.tflite import BuiltinOperator
from darwinn_formats.tflite import options as o
from darwinn_reference.tflite.graph import ABSENT
from darwinn_testbench.compilation.compile import Compiled, CompileOptions, compile_model
from darwinn_testbench.compiler.random_networks import RandomNetwork
from darwinn_testbench.explain.placement import Place
from darwinn_testbench.report import Verdict


def attended(vectors: int, keys: int, depth: int) -> Compiled:
    """Each of some vectors times each of some keys, both computed."""
    network = RandomNetwork(3, (1, vectors, depth), signed=True)
    left = network.function(network.values[0])
    right = network.leaky(network.add_input((keys, depth)))
    scale = left.scale * right.scale * np.sqrt(depth) * 30
    result = network._value((vectors, keys), scale, 3)
    inputs = (left.index, right.index, ABSENT)
    network._operate(BuiltinOperator.FULLY_CONNECTED, inputs, result, o.FullyConnectedOptions())
    network.leaky(result)
    return compile_model(Content(network.finish(), "model.tflite"), CompileOptions(check=True))


@pytest.mark.parametrize(("vectors", "keys", "depth"), [(5, 7, 8), (9, 130, 12), (5, 9, 7)])
def test_products_of_computed_matrices_are_right(vectors: int, keys: int, depth: int) -> None:
    """Keys that do not fill a word, and several blocks of lanes."""
    result = attended(vectors, keys, depth)
    assert all(row.place is Place.CHIP for row in result.report.rows)
    assert result.report.verdict is Verdict.PASS, result.report.headline
    assert "its weights are computed" in result.report.headline


def test_products_of_a_single_vector_stay_on_the_cpu() -> None:
    (product,) = (row for row in attended(1, 6, 8).report.rows if row.operator == "FULLY_CONNECTED")
    assert product.place is Place.CPU
    assert product.reason
