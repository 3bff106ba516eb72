"""The sample networks as ExecuTorch programs, in the form that its exporter gives quantised ones.

What goes in and comes out is float32. Between, each tensor is quantised and dequantised again,
and the operators are those of float: the integers of the network are rounded where the chip
rounds, but the sums are float sums. So an output can be one step off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from darwinn_formats.executorch.builder import (
    Constant,
    MethodBuilder,
    ProgramBuilder,
    Value,
    scalar_type_of,
)
from numpy.typing import DTypeLike, NDArray

from darwinn_testbench.compiler.network import Convolution, DenseNetwork, Quantisation, Sample

_QUANTISE = "quantized_decomposed::quantize_per_tensor.out"
_DEQUANTISE = "quantized_decomposed::dequantize_per_tensor.out"
_DEQUANTISE_CHANNELS = "quantized_decomposed::dequantize_per_channel.out"
_SIX = 6.0


def executorch_program(network: Sample) -> bytes:
    """The ``.pte`` file of a network, with a method ``forward``.

    Input and output are float32 tensors that carry the names of the network's: (1, size) of a
    dense network, (1, channels, height, width) of a convolution.
    """
    program = ProgramBuilder()
    if isinstance(network, DenseNetwork):
        _add_dense(_Graph(program), network)
    else:
        _add_convolution(_Graph(program), network)
    return program.build()


class _Graph:
    """Adds operators to the method ``forward`` whose outputs are float32 tensors of their own."""

    def __init__(self, program: ProgramBuilder) -> None:
        self._program = program
        self.method: MethodBuilder = program.method("forward")

    def constant(self, array: NDArray[Any]) -> Constant:
        """Constant data."""
        return self._program.constant(array)

    def call(self, operator: str, *arguments: Any, sizes: tuple[int, ...], name: str = "") -> Value:
        """Call an operator; return its output."""
        output = self.method.tensor(np.float32, sizes, name=name)
        self.method.call(operator, *arguments, outputs=[output])
        return output

    def requantise(
        self,
        value: Value,
        quantisation: Quantisation,
        dtype: DTypeLike,
        sizes: tuple[int, ...],
        name: str = "",
    ) -> Value:
        """Quantise a float tensor to integers and dequantise these."""
        integers = self.method.tensor(dtype, sizes)
        parameters = _parameters(quantisation, dtype)
        self.method.call(_QUANTISE, value, *parameters, outputs=[integers])
        return self.call(_DEQUANTISE, integers, *parameters, None, sizes=sizes, name=name)


def _parameters(quantisation: Quantisation, dtype: DTypeLike) -> tuple[float, int, int, int, int]:
    """Scale, zero point, limits and element type as the operators take them."""
    limits = np.iinfo(np.dtype(dtype))
    scale, zero_point = float(quantisation.scale), quantisation.zero_point
    return scale, zero_point, int(limits.min), int(limits.max), int(scalar_type_of(dtype))


def _real(
    integers: NDArray[np.int32], scale: NDArray[np.float32] | np.float32
) -> NDArray[np.float32]:
    return (integers * scale).astype(np.float32)


def _add_dense(graph: _Graph, network: DenseNetwork) -> None:
    sizes: tuple[int, ...] = (1, network.layers[0].inputs)
    value = graph.method.input(np.float32, sizes, name=network.source)
    value = graph.requantise(value, network.input, np.int8, sizes)
    source = network.input
    for number, layer in enumerate(network.layers):
        weights = graph.call(
            _DEQUANTISE_CHANNELS,
            graph.constant(layer.weights),
            graph.constant(layer.weight_scales),
            graph.constant(np.zeros(layer.outputs, np.int64)),
            *(0, -127, 127, int(scalar_type_of(np.int8)), None),
            sizes=layer.weights.shape,
        )
        transposed = graph.call(
            "aten::permute_copy.out", weights, [1, 0], sizes=layer.weights.shape[::-1]
        )
        bias = graph.constant(_real(layer.bias, source.scale * layer.weight_scales))
        sizes = (1, layer.outputs)
        value = graph.call("aten::addmm.out", bias, value, transposed, 1, 1, sizes=sizes)
        if layer.relu:
            value = graph.call("aten::relu.out", value, sizes=sizes)
        name = network.tensor_name(number)
        value = graph.requantise(value, layer.output, np.int8, sizes, name)
        source = layer.output
    graph.method.output(value)


def _add_convolution(graph: _Graph, network: Convolution) -> None:
    image = (network.height, network.width)
    dtype = network.weights.dtype
    sizes: tuple[int, ...] = (1, network.inputs, *image)
    value = graph.method.input(np.float32, sizes, name=network.source)
    value = graph.requantise(value, network.input, dtype, sizes)
    # Outputs, inputs, height, width.
    weights = np.ascontiguousarray(network.weights.transpose(0, 3, 1, 2))
    dequantised = graph.call(
        _DEQUANTISE,
        graph.constant(weights),
        *_parameters(network.weight, dtype),
        None,
        sizes=weights.shape,
    )
    bias = graph.constant(_real(network.bias, network.input.scale * network.weight.scale))
    margin = network.kernel // 2
    windows = ([1, 1], [margin, margin], [1, 1], False, [0, 0], 1)
    sizes = (1, network.outputs, *image)
    value = graph.call("aten::convolution.out", value, dequantised, bias, *windows, sizes=sizes)
    if network.relu6:
        value = graph.call("aten::hardtanh.out", value, 0.0, _SIX, sizes=sizes)
    graph.method.output(graph.requantise(value, network.output, dtype, sizes, network.result))
