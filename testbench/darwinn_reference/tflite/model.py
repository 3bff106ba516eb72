"""The uncompiled model behind an executable: both CPU references, and which layer is which tensor.

The layers of an executable carry the names of the tensors of the model that it was compiled
from, so that they are matched by name; type, size, scale and zero point are compared, because a
file of the same name may be another model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from darwinn_formats import tflite
from darwinn_formats.darwinn import DataType, Executable, Layer, dtype_of
from darwinn_formats.errors import FormatError
from darwinn_formats.files import Source, content_of, name_of
from darwinn_formats.remarks import remarks_name

from darwinn_reference.errors import ModelError
from darwinn_reference.tflite.call import CompilerChoices
from darwinn_reference.tflite.chip_arithmetic import ChipArithmetic
from darwinn_reference.tflite.coefficient_tables import compiler_choices
from darwinn_reference.tflite.graph import Network, NetworkTensor, network
from darwinn_reference.tflite.litert import LiteRtReference

_DEVICE_OFFSETS = {DataType.SIGNED_FIXED_POINT8: 1 << 7, DataType.SIGNED_FIXED_POINT16: 1 << 15}
"""What the chip's zero point is above the tensor's: signed types are held unsigned."""


@dataclass(frozen=True, slots=True, eq=False)
class LayerTensor:
    """An input or output layer of an executable and its tensor.

    The tensor of a state is a variable: the chip is given it and returns it at every inference.
    ``difference`` says how layer and tensor disagree ("" if they agree): the executable was then
    compiled from another model. ``comparable`` says whether they can be compared all the same: they
    have the same type and size.
    """

    layer: Layer
    tensor: NetworkTensor
    difference: str
    comparable: bool


@dataclass(frozen=True, eq=False)
class CpuModel:
    """An uncompiled model with its references, made when they are first asked for.

    ``choices`` are what an executable of the model settles (``compiler_choices``).
    """

    file: str
    data: bytes
    network: Network
    choices: CompilerChoices | None = None

    @classmethod
    def load(cls, path: Source, executable: Executable | None = None) -> CpuModel:
        """Read a TensorFlow Lite model; with an executable of it, the oracle uses its functions.

        Raises:
            FormatError: the file is no valid model, or the executable cannot be decoded.
            ModelError: the model is of a kind that no reference is made of.
            OSError: the file cannot be read.
        """
        file, data = name_of(path), content_of(path)
        choices = None if executable is None else compiler_choices(executable)
        try:
            with remarks_name(file):
                return cls(file, data, network(tflite.load(data), file), choices)
        except FormatError as fault:
            raise fault.with_file(file) from None

    @cached_property
    def chip(self) -> ChipArithmetic:
        """The oracle in the chip's arithmetic."""
        return ChipArithmetic(self.network, self.choices)

    @property
    def litert(self) -> LiteRtReference:
        """LiteRT with its reference kernels; ModelError if it refuses the model."""
        found = self._litert
        if isinstance(found, ModelError):
            raise found.with_traceback(None)
        return found

    @cached_property
    def _litert(self) -> LiteRtReference | ModelError:
        """The same, or why it refuses the model: to ask again takes a process each time."""
        try:
            return LiteRtReference(self.data, file=self.file)
        except ModelError as refusal:
            return refusal

    def match(self, layers: Iterable[Layer]) -> tuple[LayerTensor, ...]:
        """The tensor of each layer, in the order of the layers.

        Raises:
            ModelError: a layer has the name of no tensor.
        """
        return tuple(self._match(layer) for layer in layers)

    def _match(self, layer: Layer) -> LayerTensor:
        tensor = self.network.tensor(layer.name)
        if tensor is None:
            raise ModelError(self.file, f"no tensor is called {layer.name!r} as the layer is")
        form = _other_form(layer, tensor)
        return LayerTensor(
            layer, tensor, form or _other_quantisation(layer, tensor), comparable=not form
        )


def _other_form(layer: Layer, tensor: NetworkTensor) -> str:
    try:
        dtype = dtype_of(layer)
    except FormatError as fault:
        return fault.reason
    elements = layer.y_dim * layer.x_dim * layer.z_dim * layer.execution_count_per_inference
    if dtype != tensor.dtype:
        return f"the layer is {dtype}, the tensor {tensor.dtype}"
    if elements != tensor.size:
        return f"the layer has {elements} elements, the tensor {tensor.size}"
    return ""


def _other_quantisation(layer: Layer, tensor: NetworkTensor) -> str:
    if layer.numerics is None or not tensor.quantised:
        return ""
    scale = np.float32(layer.numerics.dequantization_factor)
    zero_point = layer.numerics.zero_point - _DEVICE_OFFSETS.get(layer.data_type, 0)
    if (scale, zero_point) == (tensor.scale[0], tensor.zero_point[0]):
        return ""
    return (
        f"the layer has scale {scale} and zero point {zero_point}, "
        f"the tensor {tensor.scale[0]} and {tensor.zero_point[0]}"
    )
