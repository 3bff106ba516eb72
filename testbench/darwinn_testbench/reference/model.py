"""The uncompiled model behind an executable: both CPU references, and which layer is which tensor.

The layers of an executable carry the names of the tensors of the model that it was compiled
from, so that inputs and outputs are matched by name; type, size, scale and zero point are
compared, because a file of the same name may be another model.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_formats import tflite
from darwinn_formats.darwinn import DataType, Layer, dtype_of
from darwinn_formats.errors import FormatError

from darwinn_testbench.policy import AnyArray
from darwinn_testbench.reference.chip_arithmetic import ChipArithmetic
from darwinn_testbench.reference.graph import ModelError, Network, Tensor, network
from darwinn_testbench.reference.litert import LiteRtReference

STATE_SUFFIX = "_variable_output"
"""The output layer that returns a variable is named after it, with this suffix."""

_DEVICE_OFFSETS = {DataType.SIGNED_FIXED_POINT8: 1 << 7, DataType.SIGNED_FIXED_POINT16: 1 << 15}
"""What the chip's zero point is above the tensor's: signed types are held unsigned."""


@dataclass(frozen=True, slots=True, eq=False)
class LayerTensor:
    """An input or output layer of an executable and its tensor.

    ``state``: the tensor is a variable, given to and taken from the chip at every inference.
    ``difference`` says how layer and tensor disagree ("" if they agree): the executable was
    compiled from another model.
    """

    layer: Layer
    tensor: Tensor
    state: bool
    difference: str

    @property
    def scale(self) -> float | None:
        """The tensor's scale, None if it has no single one."""
        return float(self.tensor.scale[0]) if self.tensor.quantised else None

    @property
    def zero_point(self) -> int:
        """The tensor's zero point, 0 if it has no single one."""
        return int(self.tensor.zero_point[0]) if self.tensor.quantised else 0

    def from_device(self, array: AnyArray) -> AnyArray:
        """The layer's values, as ``darwinn_formats.darwinn.to_tensor`` gives them, in the
        tensor's shape.

        Raises:
            ModelError: the layer holds another number of elements than the tensor.
        """
        if array.size != self.tensor.size:
            reason = f"{array.size} elements, but the tensor has shape {self.tensor.shape}"
            raise ModelError(f"layer {self.layer.name}", reason)
        return array.reshape(self.tensor.shape)


@dataclass(frozen=True, eq=False)
class CpuModel:
    """An uncompiled model with its references, made when they are first asked for."""

    file: str
    data: bytes
    model: tflite.Model
    network: Network

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CpuModel:
        """Read a TensorFlow Lite model.

        Raises:
            FormatError: the file is no valid model.
            ModelError: the model is of a kind that no reference is made of.
            OSError: the file cannot be read.
        """
        file = os.fspath(path)
        data = Path(path).read_bytes()
        try:
            model = tflite.load(data)
        except FormatError as fault:
            raise fault.with_file(file) from None
        return cls(file, data, model, network(model, file))

    @cached_property
    def chip(self) -> ChipArithmetic:
        """The oracle in the chip's arithmetic."""
        return ChipArithmetic(self.network)

    @cached_property
    def litert(self) -> LiteRtReference:
        """LiteRT with its reference kernels; ModelError if it refuses the model."""
        return LiteRtReference(self.data, file=self.file)

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The model's inputs, without variables."""
        return tuple(self.network.tensors[index] for index in self.network.inputs)

    @property
    def output_tensors(self) -> tuple[Tensor, ...]:
        """The model's outputs."""
        return tuple(self.network.tensors[index] for index in self.network.outputs)

    def match(self, layers: Iterable[Layer]) -> tuple[LayerTensor, ...]:
        """The tensor of each layer, in the order of the layers.

        Raises:
            ModelError: a layer has the name of no tensor.
        """
        return tuple(self._match(layer) for layer in layers)

    def _match(self, layer: Layer) -> LayerTensor:
        tensor = self.network.tensor(layer.name)
        if tensor is None and layer.name.endswith(STATE_SUFFIX):
            tensor = self.network.tensor(layer.name.removesuffix(STATE_SUFFIX))
        if tensor is None:
            raise ModelError(self.file, f"no tensor is called {layer.name!r} as the layer is")
        return LayerTensor(layer, tensor, tensor.variable, _difference(layer, tensor))

    def device_inputs(
        self,
        matched: Sequence[LayerTensor],
        inputs: Sequence[AnyArray],
        states: Mapping[int, AnyArray] | None = None,
    ) -> dict[str, AnyArray]:
        """Value of each matched input layer, by the layer's name.

        ``inputs`` are the model's, in its order; ``states`` are variables by tensor index, which
        otherwise start at their zero point.

        Raises:
            ModelError: a layer is neither an input nor a variable of the model.
        """
        self.network.check_inputs(inputs)
        values = dict(zip(self.network.inputs, inputs, strict=True)) | dict(states or {})
        return {each.layer.name: self._input(each, values) for each in matched}

    def _input(self, each: LayerTensor, values: Mapping[int, AnyArray]) -> AnyArray:
        tensor = each.tensor
        if tensor.index in values:
            return values[tensor.index]
        if not each.state:
            reason = f"layer {each.layer.name!r} is no input of the model"
            raise ModelError(self.file, reason)
        return np.full(tensor.shape, each.zero_point, tensor.dtype)


def _difference(layer: Layer, tensor: Tensor) -> str:
    try:
        dtype: np.dtype[Any] = dtype_of(layer)
    except FormatError as fault:
        return fault.reason
    elements = layer.y_dim * layer.x_dim * layer.z_dim * layer.execution_count_per_inference
    if dtype != tensor.dtype:
        return f"the layer is {dtype}, the tensor {tensor.dtype}"
    if elements != tensor.size:
        return f"the layer has {elements} elements, the tensor {tensor.size}"
    if layer.numerics is None or not tensor.quantised:
        return ""
    scale = np.float32(layer.numerics.dequantization_factor)
    zero_point = layer.numerics.zero_point - _DEVICE_OFFSETS.get(layer.data_type, 0)
    if (scale, zero_point) != (tensor.scale[0], tensor.zero_point[0]):
        return (
            f"the layer has scale {scale} and zero point {zero_point}, "
            f"the tensor {tensor.scale[0]} and {tensor.zero_point[0]}"
        )
    return ""
