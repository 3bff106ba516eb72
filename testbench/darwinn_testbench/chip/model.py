"""A compiled model bound to tensors: which tensor each input and output layer of the chip is.

In an Edge TPU ``.tflite`` the layers carry the names of the graph's tensors, which give shape,
dtype and quantisation; constants that the graph feeds to the chip come with it. In a bare package
the layers themselves say it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from darwinn_formats import tflite
from darwinn_formats.brief import brief
from darwinn_formats.darwinn import (
    CompiledModel,
    DarwinnFile,
    DataType,
    Executable,
    Layer,
    check_size,
    dtype_of,
    load,
    pair,
    to_device_input,
    to_tensor,
)
from darwinn_formats.files import Source
from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.graph import STATE_SUFFIX
from darwinn_sim import bare_stream
from darwinn_sim.host.buffers import batches_of

from darwinn_testbench.chip.cpu_operators import CpuOperator, cpu_operators, named_operators
from darwinn_testbench.chip.inputs import TensorMap, TensorPort, require_set
from darwinn_testbench.chip.inspection import check_number, chunks_of
from darwinn_testbench.errors import InputError

_SIGNED_OFFSET = {DataType.SIGNED_FIXED_POINT8: 1 << 7, DataType.SIGNED_FIXED_POINT16: 1 << 15}
"""The chip holds signed values with this added, and its zero points likewise."""


@brief
@dataclass(frozen=True)
class BoundLayer:
    """A layer of an executable and the tensor that it is.

    ``constant`` is the tensor's value where the graph, not the caller, supplies it. ``batch`` is
    the number of inferences that one run of the executable does.
    """

    layer: Layer
    port: TensorPort
    batch: int = 1
    constant: AnyArray | None = None

    def to_device(self, tensor: AnyArray) -> bytes:
        """The bytes that the chip receives for ``tensor``, which fits the port."""
        parts = tensor.reshape(self.batch, *_layer_shape(self.layer))
        return b"".join(to_device_input(self.layer, part) for part in parts)

    def from_device(self, data: bytes) -> AnyArray:
        """The tensor that the chip sent as ``data``: shape and dtype of the port."""
        size = len(data) // self.batch
        parts = [to_tensor(self.layer, data[k * size : (k + 1) * size]) for k in range(self.batch)]
        return np.stack(parts).reshape(self.port.shape)


@brief
@dataclass(frozen=True)
class BoundTensor:
    """A tensor beside the custom operator: its port, and its value where the file holds one."""

    port: TensorPort
    constant: AnyArray | None


@brief
@dataclass(frozen=True)
class BoundModel:
    """A compiled model with its layers bound to tensors.

    ``number`` is its place among the ``count`` models of the file. ``on_cpu`` are the operators
    beside those of the chip, which the CPU runs.
    """

    file: str
    number: int
    compiled: CompiledModel
    inputs: tuple[BoundLayer, ...]
    outputs: tuple[BoundLayer, ...]
    count: int = 1
    on_cpu: tuple[CpuOperator, ...] = ()

    def figure(self) -> str:
        """What the bytes of its executables are, as SVG."""
        return self.compiled.figure()

    @property
    def alone(self) -> str:
        """What is said where the chip's part alone is looked at; empty if that is the whole."""
        names = named_operators(self.on_cpu)
        return f"the chip's part alone, without {names}" if names else ""

    @property
    def note(self) -> str:
        """Which of several models this is, for summaries; empty of the only one."""
        if self.count == 1:
            return ""
        others = [str(k) for k in range(self.count) if k != self.number]
        which = "is the other" if len(others) == 1 else "are the others"
        return f"model {self.number} of {self.count} (--model {', '.join(others)} {which})"

    @property
    def ports(self) -> tuple[TensorPort, ...]:
        """The tensors that a caller must supply."""
        return tuple(item.port for item in self.inputs if item.constant is None)

    @property
    def tensor_ports(self) -> tuple[TensorPort, ...]:
        """The tensors of all inputs and outputs."""
        return tuple(item.port for item in (*self.inputs, *self.outputs))

    @cached_property
    def states(self) -> dict[str, BoundLayer]:
        """Variables that a run returns: each by the name of the output that is its next value."""
        inputs = {item.port.name: item for item in self.inputs}
        outputs = (item.port.name for item in self.outputs if item.port.name.endswith(STATE_SUFFIX))
        named = ((name, inputs.get(name.removesuffix(STATE_SUFFIX))) for name in outputs)
        return {name: item for name, item in named if item is not None}

    @cached_property
    def _supplied(self) -> tuple[TensorPort, ...]:
        """The tensors that the graph supplies where a caller does not."""
        return tuple(item.port for item in self.inputs if item.constant is not None)

    def require(self, tensors: object) -> TensorMap:
        """``tensors``, if they are a set of inputs: an array by the name of each port, as it is.

        Raises:
            InputError: they are none (:func:`inputs.require_set`).
        """
        return require_set(tensors, self.ports, self._supplied)

    def to_device(self, tensors: TensorMap) -> dict[str, bytes]:
        """Device bytes by layer name: ``tensors`` by port name, and the graph's constants.

        A variable is what ``tensors`` has for it, or else its initial value.

        Raises:
            InputError: as :meth:`require`.
        """
        self.require(tensors)
        return {
            item.layer.name: item.to_device(
                tensors[item.port.name]
                if item.constant is None or item.port.name in tensors
                else item.constant
            )
            for item in self.inputs
        }

    def from_device(self, outputs: Mapping[str, bytes]) -> dict[str, AnyArray]:
        """Tensors by port name from device bytes by layer name."""
        return {
            item.port.name: item.from_device(outputs[item.layer.name])
            for item in self.outputs
            if item.layer.name in outputs
        }


def open_models(source: Source, companions: Sequence[Source] = ()) -> tuple[BoundModel, ...]:
    """Every compiled model of a file, bound to its tensors.

    ``companions`` are files that were compiled together with it: one of them may hold the
    executable that caches the parameters of a model. A bare instruction stream is a model whose
    inputs and outputs are the buffers of its descriptors (:mod:`darwinn_sim.bare_stream`).

    Raises:
        FormatError: a file is not valid, or no executable caches a model's parameters.
        InputError: layers that do not fit the graph around them, or a bare instruction stream
            whose inputs and outputs cannot be told.
        SimulationError: the scalar core of a bare stream fails.
        OSError: a file cannot be read.
    """
    return bind_file(load(source), companions)


def bind_file(file: DarwinnFile, companions: Sequence[Source] = ()) -> tuple[BoundModel, ...]:
    """``open_models`` of a file that is loaded."""
    if file.stream is not None:
        return (bind_model(CompiledModel(executable_of_stream(file), None, file.file), {}),)
    paired = pair([file, *map(load, companions)])[: len(file.models)]
    tensors = dict(_graph_tensors(file, file.shell)) if file.shell is not None else {}
    on_cpu = cpu_operators(file)
    return tuple(
        replace(bind_model(model, tensors, number, len(paired)), on_cpu=on_cpu)
        for number, model in enumerate(paired)
    )


def choose_model(models: Sequence[BoundModel], number: int) -> BoundModel:
    """The model of that number; InputError if there is none."""
    check_number("model", number, len(models), models[0].file if models else "the file")
    return models[number]


def bind_model(
    model: CompiledModel, tensors: Mapping[str, BoundTensor], number: int = 0, count: int = 1
) -> BoundModel:
    """A compiled model with its layers bound to the ``tensors`` beside it, by name.

    A layer whose name no tensor has is a tensor of its own. ``number`` is the model's place among
    the ``count`` models of its file.

    Raises:
        InputError: layers that do not fit the tensors, or several of one name.
        FormatError: more layers than a run may have.
    """
    executable = model.inference
    batch = batches_of(executable)
    return BoundModel(
        file=model.file,
        number=number,
        compiled=model,
        inputs=_bind_layers(executable.input_layers, batch, tensors),
        outputs=_bind_layers(executable.output_layers, batch, tensors),
        count=count,
    )


def executable_of_stream(file: DarwinnFile) -> Executable:
    """The executable that a bare instruction stream is; InputError if that cannot be told."""
    try:
        return bare_stream.executable_of([stream for _, _, stream in chunks_of(file)])
    except bare_stream.StreamError as error:
        raise InputError(f"{file.file}: a bare instruction stream: {error}") from error


def port_of(tensor: tflite.Tensor) -> TensorPort:
    """The port of a tensor of a TensorFlow Lite graph; InputError if NumPy lacks its type."""
    dtype = tflite.DTYPES.get(tensor.type)
    if dtype is None:
        raise InputError(f"tensor {tensor.name}: {tensor.type.name} tensors cannot be used")
    quantisation = tensor.quantization or tflite.QuantizationParameters()
    return TensorPort(
        name=tensor.name,
        shape=tensor.shape,
        dtype=dtype,
        scale=quantisation.scale[0] if quantisation.scale else 0.0,
        zero_point=quantisation.zero_point[0] if quantisation.zero_point else 0,
    )


def initial_value(port: TensorPort) -> AnyArray:
    """The value of a variable before the first inference."""
    return np.full(port.shape, port.zero_point, port.dtype)


def _bind_layers(
    layers: Sequence[Layer], batch: int, tensors: Mapping[str, BoundTensor]
) -> tuple[BoundLayer, ...]:
    names = [layer.name for layer in layers]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise InputError(f"several layers have the name {', '.join(twice)}")
    return tuple(_bind_layer(layer, batch, tensors) for layer in layers)


def _bind_layer(layer: Layer, batch: int, tensors: Mapping[str, BoundTensor]) -> BoundLayer:
    own = _port_of_layer(layer, batch)
    bound = tensors.get(layer.name)
    if bound is None:
        return BoundLayer(layer, own, batch)
    if (bound.port.dtype, bound.port.elements) != (own.dtype, own.elements):
        raise InputError(f"{bound.port}: the executable has {own} in its place")
    return BoundLayer(layer, bound.port, batch, bound.constant)


def _port_of_layer(layer: Layer, batch: int) -> TensorPort:
    check_size(layer, batch)
    shape = _layer_shape(layer)
    numerics = layer.numerics
    scale, zero_point = 0.0, 0
    if numerics is not None:
        scale = numerics.dequantization_factor
        zero_point = numerics.zero_point - _SIGNED_OFFSET.get(layer.data_type, 0)
    return TensorPort(
        name=layer.name,
        shape=(batch, *shape) if batch > 1 else shape,
        dtype=dtype_of(layer),
        scale=scale,
        zero_point=zero_point,
    )


def _layer_shape(layer: Layer) -> tuple[int, ...]:
    """(y, x, z) of a layer, with the executions first if it has several in one inference."""
    shape = (layer.y_dim, layer.x_dim, layer.z_dim)
    executions = layer.execution_count_per_inference
    return (executions, *shape) if executions > 1 else shape


def _graph_tensors(file: DarwinnFile, shell: tflite.Model) -> Iterator[tuple[str, BoundTensor]]:
    """Tensors beside the custom operators of a compiled graph, with their names."""
    for place in file.operators:
        graph = shell.subgraphs[place.subgraph]
        operator = graph.operators[place.operator]
        for index in (*operator.inputs, *operator.outputs):
            if index < 0:
                continue
            tensor = graph.tensors[index]
            port = port_of(tensor)
            yield port.name, BoundTensor(port, _constant(shell, tensor, port))


def _constant(model: tflite.Model, tensor: tflite.Tensor, port: TensorPort) -> AnyArray | None:
    """The value that the graph supplies: a constant, or a variable's value before the first run."""
    return initial_value(port) if tensor.is_variable else model.constant(tensor)
