"""Scales at the ends of what float32 holds: a sentence says why an operator stays on the CPU."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest
from darwinn_formats import tflite
from darwinn_formats.files import Content
from darwinn_formats.flatbuffer import write
from darwinn_testbench.compilation.compile import CompileOptions, compile_model
from darwinn_testbench.compiler.random_networks import RandomNetwork


def model(scale: float, kind: str) -> bytes:
    """A convolution, and another one or a table of two lines, whose result has a scale."""
    network = RandomNetwork(1, (1, 4, 4, 4), signed=True)
    first = network.layer(network.values[0], 8, 3)
    network.leaky(first) if kind == "LEAKY_RELU" else network.layer(first, 8, 1)
    read = tflite.load(network.finish())
    (graph,) = read.subgraphs
    last = graph.operators[-1].outputs[0]
    tensors = list(graph.tensors)
    quantization = tensors[last].quantization
    assert quantization is not None
    tensors[last] = replace(tensors[last], quantization=replace(quantization, scale=(scale,)))
    return write(replace(read, subgraphs=(replace(graph, tensors=tuple(tensors)),)))


@pytest.mark.parametrize("kind", ["LEAKY_RELU", "CONV_2D"])
def test_a_ratio_beyond_float32_is_the_reason(kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = compile_model(Content(model(1e-45, kind), "m.tflite"), CompileOptions(check=False))
    assert [row.piece for row in result.report.rows] == [0, None]
    reason = result.report.rows[1].reason
    assert kind == "LEAKY_RELU" or reason == "scales whose ratio is no finite float32"


@pytest.mark.parametrize("kind", ["LEAKY_RELU", "CONV_2D"])
def test_a_small_ratio_is_compiled(kind: str) -> None:
    result = compile_model(Content(model(1e30, kind), "m.tflite"), CompileOptions())
    assert [row.piece for row in result.report.rows] == [0, 0]
    assert not result.report.verdict.failed, result.report.headline
