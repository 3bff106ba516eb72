"""The sample networks as ordinary TensorFlow Lite models: what a compiler would be given.

These files are what the CPU references compute; nothing in them knows of the chip.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from darwinn_formats import flatbuffer, tflite
from darwinn_formats.tflite import (
    ActivationFunctionType,
    BuiltinOperator,
    Conv2DOptions,
    FullyConnectedOptions,
    Padding,
    QuantizationParameters,
    TensorType,
)
from numpy.typing import NDArray

from darwinn_testbench.compiler.network import Convolution, DenseNetwork, Quantisation, Sample

_SCHEMA_VERSION = 3
_DESCRIPTION = "darwinn-testbench sample"
_TYPES = {np.dtype("i1"): TensorType.INT8, np.dtype("u1"): TensorType.UINT8}
_OPERATOR_VERSIONS = {
    BuiltinOperator.FULLY_CONNECTED: 4,
    BuiltinOperator.CONV_2D: 3,
    BuiltinOperator.RESIZE_BILINEAR: 3,
    BuiltinOperator.DEQUANTIZE: 2,
    BuiltinOperator.SOFTMAX: 1,
}
"""Version of each operator at which all kinds of quantisation used here had come in."""


def uncompiled(network: Sample) -> bytes:
    """The ``.tflite`` file of a network."""
    writer = GraphWriter()
    if isinstance(network, DenseNetwork):
        add_dense(writer, network, *add_activations(writer, network))
    else:
        _add_convolution(writer, network)
    return writer.finish()


class GraphWriter:
    """Collects tensors, buffers and operators of a graph with one input and one output."""

    def __init__(self) -> None:
        # Buffer 0 is the empty one by convention.
        self._buffers = [tflite.Buffer(memoryview(b""))]
        self._tensors: list[tflite.Tensor] = []
        self._operators: list[tflite.Operator] = []
        self._codes: list[tflite.OperatorCode] = []

    def activation(
        self, name: str, shape: tuple[int, ...], dtype: Any, quantisation: Quantisation
    ) -> int:
        """Add a tensor that is computed; return its index."""
        parameters = QuantizationParameters(
            scale=(float(quantisation.scale),), zero_point=(quantisation.zero_point,)
        )
        return self._add(tflite.Tensor(shape, _TYPES[np.dtype(dtype)], 0, name, parameters))

    def floats(self, name: str, shape: tuple[int, ...]) -> int:
        """Add a float32 tensor that is computed; return its index."""
        return self._add(tflite.Tensor(shape, TensorType.FLOAT32, 0, name))

    def constant(
        self, name: str, values: NDArray[Any], scales: NDArray[np.float32], zero_point: int = 0
    ) -> int:
        """Add a constant tensor with one scale, or one for each slice along axis 0."""
        kind = _TYPES.get(values.dtype, TensorType.INT32)
        parameters = QuantizationParameters(
            scale=tuple(float(scale) for scale in scales), zero_point=(zero_point,) * len(scales)
        )
        self._buffers.append(tflite.Buffer(memoryview(values.tobytes())))
        return self._add(
            tflite.Tensor(values.shape, kind, len(self._buffers) - 1, name, parameters)
        )

    def operator(
        self, builtin: BuiltinOperator, inputs: tuple[int, ...], output: int, options: Any
    ) -> None:
        """Add a builtin operator."""
        code = self._code(builtin, "", _OPERATOR_VERSIONS[builtin])
        self._operators.append(tflite.Operator(code, inputs, (output,), options))

    def custom_operator(
        self, name: str, inputs: tuple[int, ...], output: int, options: bytes
    ) -> None:
        """Add a custom operator."""
        code = self._code(BuiltinOperator.CUSTOM, name, 1)
        span = flatbuffer.Span(memoryview(options))
        self._operators.append(tflite.Operator(code, inputs, (output,), custom_options=span))

    def finish(self) -> bytes:
        """The file. The first tensor is the graph's input, the last operator gives its output."""
        graph = tflite.SubGraph(
            tuple(self._tensors), (0,), self._operators[-1].outputs, tuple(self._operators), "main"
        )
        model = tflite.Model(
            _SCHEMA_VERSION, tuple(self._codes), (graph,), _DESCRIPTION, tuple(self._buffers)
        )
        return flatbuffer.write(model)

    def _code(self, builtin: BuiltinOperator, name: str, version: int) -> int:
        code = tflite.OperatorCode(int(builtin), name, version, int(builtin))
        if code not in self._codes:
            self._codes.append(code)
        return self._codes.index(code)

    def _add(self, tensor: tflite.Tensor) -> int:
        self._tensors.append(tensor)
        return len(self._tensors) - 1


def add_activations(writer: GraphWriter, network: Sample) -> tuple[int, int]:
    """Add the input and the output tensor of a network; return their indices."""
    if isinstance(network, DenseNetwork):
        first, last = network.layers[0], network.layers[-1]
        return (
            writer.activation(network.source, (1, first.inputs), np.int8, network.input),
            writer.activation(network.result, (1, last.outputs), np.int8, last.output),
        )
    size, dtype = (1, network.height, network.width), network.weights.dtype
    return (
        writer.activation(network.source, (*size, network.inputs), dtype, network.input),
        writer.activation(network.result, (*size, network.outputs), dtype, network.output),
    )


def add_dense(writer: GraphWriter, network: DenseNetwork, source: int, result: int) -> None:
    """Add the layers of a network between two tensors."""
    quantisation = network.input
    for number, layer in enumerate(network.layers):
        name = network.tensor_name(number)
        last = name == network.result
        scales = quantisation.scale * layer.weight_scales
        weights = writer.constant(f"{name}/weights", layer.weights, layer.weight_scales)
        bias = writer.constant(f"{name}/bias", layer.bias, scales)
        output = (
            result if last else writer.activation(name, (1, layer.outputs), np.int8, layer.output)
        )
        activation = ActivationFunctionType.RELU if layer.relu else ActivationFunctionType.NONE
        options = FullyConnectedOptions(activation)
        inputs = (source, weights, bias)
        writer.operator(BuiltinOperator.FULLY_CONNECTED, inputs, output, options)
        source, quantisation = output, layer.output


def _add_convolution(writer: GraphWriter, network: Convolution) -> None:
    source, result = add_activations(writer, network)
    weight_scale = np.array([network.weight.scale])
    weights = writer.constant("weights", network.weights, weight_scale, network.weight.zero_point)
    bias = writer.constant("bias", network.bias, network.input.scale * weight_scale)
    kind = ActivationFunctionType
    options = Conv2DOptions(Padding.SAME, 1, 1, kind.RELU6 if network.relu6 else kind.NONE)
    writer.operator(BuiltinOperator.CONV_2D, (source, weights, bias), result, options)
