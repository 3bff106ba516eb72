"""Models with operators on both sides of the chip, made from networks that the sample compiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from darwinn_formats import darwinn, flatbuffer, tflite
from darwinn_formats.darwinn.loader import CUSTOM_OPERATOR
from darwinn_formats.tflite import BuiltinOperator, QuantizationParameters, TensorType
from darwinn_testbench.compiler import compile_network, random_dense
from darwinn_testbench.compiler.network import DenseNetwork, Quantisation
from darwinn_testbench.compiler.package import custom_options
from sample_runs import Array, expected

WIDTH = 24
"""Elements of every tensor."""


def segments(seed: int = 0) -> list[DenseNetwork]:
    """Two networks, of which the second takes as many values as the first gives."""
    return [
        replace(random_dense([WIDTH, WIDTH], seed + k), source=f"into{k}", result=f"from{k}")
        for k in range(2)
    ]


def chained(widths: Sequence[Sequence[int]]) -> list[DenseNetwork]:
    """Networks of these sizes, of which each takes what the one before it gives."""
    return [
        replace(random_dense(sizes, k), source=f"tensor{k}", result=f"tensor{k + 1}")
        for k, sizes in enumerate(widths)
    ]


def whole_model(networks: list[DenseNetwork], *, names: tuple[str, ...] = ()) -> bytes:
    """Float in, float out: each network is a custom operator between QUANTIZE and DEQUANTIZE.

    ``names`` are those of the custom operators, if they are to be other ones.
    """
    codes = [
        tflite.OperatorCode(int(builtin), name, 1, int(builtin))
        for builtin, name in (
            (BuiltinOperator.QUANTIZE, ""),
            (BuiltinOperator.DEQUANTIZE, ""),
            *((BuiltinOperator.CUSTOM, name) for name in names or [CUSTOM_OPERATOR] * 2),
        )
    ]
    tensors = [_tensor("floats0", None)]
    operators: list[tflite.Operator] = []
    for number, network in enumerate(networks):
        first = len(tensors) - 1
        tensors += [
            _tensor(network.source, network.input),
            _tensor(network.result, network.layers[-1].output),
            _tensor(f"floats{number + 1}", None),
        ]
        options = flatbuffer.Span(memoryview(options_of(network)))
        operators += [
            tflite.Operator(0, (first,), (first + 1,)),
            tflite.Operator(2 + number, (first + 1,), (first + 2,), custom_options=options),
            tflite.Operator(1, (first + 2,), (first + 3,)),
        ]
    graph = tflite.SubGraph(tuple(tensors), (0,), (len(tensors) - 1,), tuple(operators), "main")
    empty = tflite.Buffer(memoryview(b""))
    return flatbuffer.write(tflite.Model(3, tuple(codes), (graph,), "test", (empty,)))


def options_of(network: DenseNetwork) -> bytes:
    """Options of the custom operator that computes a network."""
    return custom_options(darwinn.dump(compile_network(network)))


def _tensor(name: str, quantisation: Quantisation | None) -> tflite.Tensor:
    if quantisation is None:
        return tflite.Tensor((1, WIDTH), TensorType.FLOAT32, 0, name)
    parameters = QuantizationParameters(
        scale=(float(quantisation.scale),), zero_point=(quantisation.zero_point,)
    )
    return tflite.Tensor((1, WIDTH), TensorType.INT8, 0, name, parameters)


def random_floats(seed: int) -> Array:
    """An input of :func:`whole_model`."""
    return np.random.default_rng(seed).normal(size=(1, WIDTH)).astype(np.float32)


def whole_expected(networks: list[DenseNetwork], floats: Array) -> Array:
    """What :func:`whole_model` gives: the oracle of each network, and float32 between them."""
    for network in networks:
        scaled = floats / np.float32(network.input.scale)
        rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))
        quantised = np.clip(rounded + network.input.zero_point, -128, 127).astype(np.int8)
        output = network.layers[-1].output
        result = expected(network, quantised).astype(np.int32) - output.zero_point
        floats = (result * np.float32(output.scale)).astype(np.float32).reshape(1, -1)
    return floats


def with_floats(model: bytes, last: BuiltinOperator | None = None) -> bytes:
    """The model between QUANTIZE and DEQUANTIZE, compiled or not, and then ``last``, on floats.

    It has one input and one output.
    """
    read = tflite.load(model)
    (graph,) = read.subgraphs
    (source,), (result,) = graph.inputs, graph.outputs
    floats = ((source, "floats in"), (result, "floats out"), (result, "last"))
    tensors = [
        *graph.tensors,
        *(tflite.Tensor(graph.tensors[k].shape, TensorType.FLOAT32, 0, name) for k, name in floats),
    ]
    given, dequantised, end = range(len(graph.tensors), len(tensors))
    kinds = [
        BuiltinOperator.QUANTIZE,
        BuiltinOperator.DEQUANTIZE,
        *([] if last is None else [last]),
    ]
    codes = [
        *read.operator_codes,
        *(tflite.OperatorCode(int(each), "", 1, int(each)) for each in kinds),
    ]
    first = len(read.operator_codes)
    operators = [
        tflite.Operator(first, (given,), (source,)),
        *graph.operators,
        tflite.Operator(first + 1, (result,), (dequantised,)),
        *([] if last is None else [tflite.Operator(first + 2, (dequantised,), (end,))]),
    ]
    outputs = (dequantised if last is None else end,)
    whole = replace(
        graph, tensors=tuple(tensors), inputs=(given,), outputs=outputs, operators=tuple(operators)
    )
    return flatbuffer.write(replace(read, operator_codes=tuple(codes), subgraphs=(whole,)))


def renamed(model: bytes, names: Mapping[str, str]) -> bytes:
    """The model with tensors of its graph under other names."""
    read = tflite.load(model)
    (graph,) = read.subgraphs
    tensors = tuple(replace(each, name=names.get(each.name, each.name)) for each in graph.tensors)
    return flatbuffer.write(replace(read, subgraphs=(replace(graph, tensors=tensors),)))


STATE = "state"


def stateful_network(seed: int = 5) -> DenseNetwork:
    """A network from a variable to its next value."""
    network = random_dense([WIDTH, WIDTH], seed)
    return replace(network, source=STATE, result=f"{STATE}_variable_output")


def stateful_model(network: DenseNetwork) -> bytes:
    """A graph without inputs whose only operator gives the next value of its variable."""
    state = replace(_tensor(network.source, network.input), is_variable=True)
    result = _tensor(network.result, network.layers[-1].output)
    code = tflite.OperatorCode(int(BuiltinOperator.CUSTOM), CUSTOM_OPERATOR, 1, 32)
    options = flatbuffer.Span(memoryview(options_of(network)))
    operator = tflite.Operator(0, (0,), (1,), custom_options=options)
    graph = tflite.SubGraph((state, result), (), (1,), (operator,), "main")
    empty = tflite.Buffer(memoryview(b""))
    return flatbuffer.write(tflite.Model(3, (code,), (graph,), "test", (empty,)))


def stateful_expected(network: DenseNetwork, count: int) -> list[Array]:
    """Its results in the first inferences, by the oracle."""
    values = [np.full((1, WIDTH), network.input.zero_point, np.int8)]
    for _ in range(count):
        values.append(expected(network, values[-1]).reshape(1, -1))
    return values[1:]
