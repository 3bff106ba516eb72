"""The sample networks as BEF files: dense host tensors, and a call of a native function a layer.

Weights, biases, factors, zero points and bounds are constants of the file; what a quantised layer
computes from them is a native function, for which the sample brings its own (``natives``). So the
file computes what the chip computes, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from darwinn_formats import tfrt
from darwinn_formats.tfrt import DType
from darwinn_formats.tfrt.encoding import DTYPES
from darwinn_formats.tfrt.text.lexer import quote
from numpy.typing import NDArray

from darwinn_testbench.compiler.natives import CONVOLUTION, FULLY_CONNECTED
from darwinn_testbench.compiler.network import DenseNetwork, Sample
from darwinn_testbench.compiler.parameters import convolution_bounds, dense_bounds, output_factors

_ELEMENTS = {
    np.dtype(np.int8): DType.I8,
    np.dtype(np.uint8): DType.UI8,
    np.dtype(np.int32): DType.I32,
    np.dtype(np.float32): DType.F32,
}
_CHAIN, _TENSOR = "!tfrt.chain", "!tfrt_tensor.tensor"


def bef_file(network: Sample) -> bytes:
    """The BEF file of a network, with a function ``main`` of a tensor.

    The tensor is (1, size) of a dense network, (1, height, width, channels) of a convolution.
    """
    return tfrt.dump(tfrt.from_text(bef_text(network), f"{network.name}.mlir"))


def bef_text(network: Sample) -> str:
    """The text form of the BEF file of a network."""
    native = FULLY_CONNECTED if isinstance(network, DenseNetwork) else CONVOLUTION
    layers = tuple(_layers(network))
    signature = _signature(layers[0])
    lines = ["%start = tfrt.new.chain"]
    value = network.source
    for layer in layers:
        lines += _constants(layer)
        operands = ", ".join(f"%{name}" for name in (layer.filled, value, *layer.constants))
        call = f"tfrt.call @{native}({operands}) : {signature}"
        # What is said of a value says where it is from: here, which layer it is.
        lines.append(f'%{layer.name} = {call} loc("{layer.name}")')
        value = layer.name
    return "\n".join(
        (
            f"func.func private @{native}{signature} attributes {{tfrt.native}}",
            f"func.func @main(%{network.source}: {_TENSOR}) -> {_TENSOR} {{",
            *(f"  {line}" for line in lines),
            f"  tfrt.return %{value} : {_TENSOR}",
            "}",
            "",
        )
    )


@dataclass(frozen=True, eq=False)
class _Layer:
    """A layer as its native function takes it.

    ``tensors`` and ``numbers`` are the arguments behind the values, by name, in their order.
    """

    name: str
    tensors: dict[str, NDArray[Any]]
    numbers: dict[str, np.int32 | np.float32]

    @property
    def filled(self) -> str:
        """Name of the chain that says that all tensors are filled."""
        return f"{self.name}.filled"

    @property
    def constants(self) -> tuple[str, ...]:
        """Names of all constants in the function."""
        return tuple(f"{self.name}.{name}" for name in (*self.tensors, *self.numbers))


def _layers(network: Sample) -> Iterator[_Layer]:
    if not isinstance(network, DenseNetwork):
        factors = output_factors(network.input, np.array([network.weight.scale]), network.output)
        tensors = {"weights": network.weights, "bias": network.bias, "factors": factors}
        yield _Layer(
            network.result,
            tensors,
            _numbers(
                network.input.zero_point,
                network.weight.zero_point,
                convolution_bounds(network),
                network.output.zero_point,
            ),
        )
        return
    source = network.input
    for number, layer in enumerate(network.layers):
        factors = output_factors(source, layer.weight_scales, layer.output)
        tensors = {"weights": layer.weights, "bias": layer.bias, "factors": factors}
        bounds, zero_point = dense_bounds(layer), layer.output.zero_point
        numbers = _numbers(source.zero_point, 0, bounds, zero_point)
        yield _Layer(network.tensor_name(number), tensors, numbers)
        source = layer.output


def _numbers(
    zero_point: int,
    weight_zero_point: int,
    bounds: tuple[np.float32, np.float32],
    output_zero_point: int,
) -> dict[str, np.int32 | np.float32]:
    return {
        "zero_point": np.int32(zero_point),
        "weight_zero_point": np.int32(weight_zero_point),
        "low": bounds[0],
        "high": bounds[1],
        "output_zero_point": np.int32(output_zero_point),
    }


def _signature(layer: _Layer) -> str:
    numbers = map(_type_text, layer.numbers.values())
    types = (_CHAIN, _TENSOR, *(_TENSOR for _ in layer.tensors), *numbers)
    return f"({', '.join(types)}) -> {_TENSOR}"


def _constants(layer: _Layer) -> Iterator[str]:
    """Operations that make the constants of a layer, and the chain that they are filled."""
    chains = []
    for name, array in layer.tensors.items():
        element = _type_text(array)
        tensor, chain = f"%{layer.name}.{name}", f"%{layer.name}.{name}.filled"
        sizes = ", ".join(f"{size} : i64" for size in array.shape)
        # As bytes, for they are thousands: the text of a number each takes a second to parse.
        data = quote(array.astype(array.dtype.newbyteorder("<")).tobytes())
        values = f"#bef.array<{int(_ELEMENTS[array.dtype])}, {data}>"
        kernel = f"tfrt_dht.create_uninitialized_tensor.{element}.{array.ndim}"
        yield f"{tensor} = {kernel} [{sizes}]"
        kernel = f"tfrt_dht.set_tensor_with_constant_values.{element}"
        yield f"{chain} = {kernel} {tensor}, %start {values}"
        chains.append(chain)
    types = ", ".join(_CHAIN for _ in chains)
    yield f"%{layer.filled} = tfrt.merge.chains {', '.join(chains)} : {types}"
    for name, value in layer.numbers.items():
        yield f"%{layer.name}.{name} = tfrt.constant.{_type_text(value)} {_text(value)}"


def _type_text(value: NDArray[Any] | np.number[Any]) -> str:
    return DTYPES[_ELEMENTS[value.dtype]].text


def _text(number: np.number[Any]) -> str:
    """A number in digits that read back as the same bits."""
    if isinstance(number, np.floating):
        return np.format_float_scientific(number, unique=True, trim="0")
    return str(number)
