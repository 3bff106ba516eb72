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

from darwinn_testbench.sample.network import (
    Convolution,
    DenseLayer,
    DenseNetwork,
    Quantisation,
    Sample,
)

INPUT, OUTPUT = "input", "output"
"""Names of the first and the last tensor of every sample; the executable's layers carry them."""

_SCHEMA_VERSION = 3
_TYPES = {np.dtype("i1"): TensorType.INT8, np.dtype("u1"): TensorType.UINT8}
_OPERATOR_VERSIONS = {BuiltinOperator.FULLY_CONNECTED: 4, BuiltinOperator.CONV_2D: 1}
"""Version of each operator at which the kind of quantisation used here came in."""


def uncompiled(network: Sample) -> bytes:
    """The ``.tflite`` file of a network."""
    writer = GraphWriter()
    add = _add_dense if isinstance(network, DenseNetwork) else _add_convolution
    add(writer, network)  # type: ignore[arg-type]
    return writer.finish()


class GraphWriter:
    """Collects tensors, buffers and operators of a graph with one input and one output."""

    def __init__(self) -> None:
        # Buffer 0 is the empty one by convention.
        self._buffers = [tflite.Buffer(memoryview(b""))]
        self._tensors: list[tflite.Tensor] = []
        self._operators: list[tflite.Operator] = []
        self._codes: dict[BuiltinOperator, int] = {}

    def activation(
        self, name: str, shape: tuple[int, ...], dtype: Any, quantisation: Quantisation
    ) -> int:
        """Add a tensor that is computed; return its index."""
        parameters = QuantizationParameters(
            scale=(float(quantisation.scale),), zero_point=(quantisation.zero_point,)
        )
        return self._add(tflite.Tensor(shape, _TYPES[np.dtype(dtype)], 0, name, parameters))

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
        """Add an operator."""
        code = self._codes.setdefault(builtin, len(self._codes))
        self._operators.append(tflite.Operator(code, inputs, (output,), options))

    def finish(self) -> bytes:
        """The file. The first tensor is the graph's input, the last operator gives its output."""
        graph = tflite.SubGraph(
            tuple(self._tensors), (0,), self._operators[-1].outputs, tuple(self._operators), "main"
        )
        codes = tuple(
            tflite.OperatorCode(int(code), "", _OPERATOR_VERSIONS[code], int(code))
            for code in self._codes
        )
        model = tflite.Model(
            _SCHEMA_VERSION, codes, (graph,), "darwinn-testbench sample", tuple(self._buffers)
        )
        return flatbuffer.write(model)

    def _add(self, tensor: tflite.Tensor) -> int:
        self._tensors.append(tensor)
        return len(self._tensors) - 1


def _add_dense(writer: GraphWriter, network: DenseNetwork) -> None:
    source, quantisation = _dense_input(writer, network), network.input
    for number, layer in enumerate(network.layers):
        last = number == len(network.layers) - 1
        prefix = f"layer_{number}"
        scales = quantisation.scale * layer.weight_scales
        weights = writer.constant(f"{prefix}/weights", layer.weights, layer.weight_scales)
        bias = writer.constant(f"{prefix}/bias", layer.bias, scales)
        output = writer.activation(
            OUTPUT if last else prefix, (1, layer.outputs), np.int8, layer.output
        )
        writer.operator(
            BuiltinOperator.FULLY_CONNECTED,
            (source, weights, bias),
            output,
            FullyConnectedOptions(_dense_activation(layer)),
        )
        source, quantisation = output, layer.output


def _dense_input(writer: GraphWriter, network: DenseNetwork) -> int:
    return writer.activation(INPUT, (1, network.layers[0].inputs), np.int8, network.input)


def _dense_activation(layer: DenseLayer) -> ActivationFunctionType:
    return ActivationFunctionType.RELU if layer.relu else ActivationFunctionType.NONE


def _add_convolution(writer: GraphWriter, network: Convolution) -> None:
    size = (1, network.height, network.width)
    source = writer.activation(INPUT, (*size, network.inputs), np.uint8, network.input)
    weight_scale = np.array([network.weight.scale])
    weights = writer.constant(
        "weights", network.weights, weight_scale, network.weight.zero_point
    )
    bias = writer.constant("bias", network.bias, network.input.scale * weight_scale)
    output = writer.activation(OUTPUT, (*size, network.outputs), np.uint8, network.output)
    options = Conv2DOptions(Padding.SAME, 1, 1, ActivationFunctionType.RELU6)
    writer.operator(BuiltinOperator.CONV_2D, (source, weights, bias), output, options)
