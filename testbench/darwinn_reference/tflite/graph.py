"""The network that CPU references compute: tensors and operators, free of any file format.

The references share this form, so that a network of one operator can be made without a file;
:func:`network` makes it from a TensorFlow Lite model.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Any

import numpy as np
from darwinn_formats import tflite
from darwinn_formats.errors import FormatError
from darwinn_formats.flatbuffer import OpaqueTable
from darwinn_formats.limits import MEMORY, limits
from numpy.typing import NDArray

from darwinn_reference.arrays import AnyArray
from darwinn_reference.errors import ModelError

ABSENT = -1
"""Tensor index of an optional input that an operator goes without."""

STATE_SUFFIX = "_variable_output"
"""The layer in which an executable returns a variable is named after it, with this suffix."""

MAXIMUM_ELEMENTS = 2**28
"""Elements of all tensors of a network together, at most: bounds memory and time."""


@dataclass(frozen=True, slots=True, eq=False)
class NetworkTensor:
    """A tensor of the network.

    ``scale`` (float32) and ``zero_point`` (int64) hold nothing for a tensor without quantisation,
    one element for a whole tensor, or one for each index of axis ``channel_axis``:
    ``real = scale * (value - zero_point)``. ``constant`` is the value of a parameter. A variable
    keeps its value from one inference to the next.
    """

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    scale: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    zero_point: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    channel_axis: int = 0
    constant: AnyArray | None = None
    variable: bool = False

    @property
    def quantised(self) -> bool:
        """True if one scale and zero point apply to the whole tensor."""
        return len(self.scale) == 1 and len(self.zero_point) == 1

    @property
    def quantisation(self) -> tuple[float, int]:
        """Scale and zero point of the whole tensor; 0 and 0 if none apply to all of it."""
        return (float(self.scale[0]), int(self.zero_point[0])) if self.quantised else (0.0, 0)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=object))


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """An operator: ``name`` as in the TFLite schema (CONV_2D ...), or a custom operator's name.

    ``options`` holds the operator's attributes by the schema's names (``stride_w``, ``padding``
    ...), enumerations as their names. ``unread_options`` names a table of options that is not read.
    """

    index: int
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    custom: bool = False
    unread_options: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Tensors by index, operators in execution order, and the indices of inputs and outputs."""

    file: str
    tensors: tuple[NetworkTensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def check(self, index: int, value: AnyArray) -> None:
        """Check that ``value`` can be tensor ``index``.

        Raises:
            ModelError: there is no such tensor, or it has another shape or dtype.
        """
        if not 0 <= index < len(self.tensors):
            raise ModelError(self.file, f"there is no tensor {index}")
        tensor = self.tensors[index]
        if tuple(value.shape) != tensor.shape or value.dtype != tensor.dtype:
            reason = f"is {_described(tensor)}, not {_described(value)}"
            raise ModelError(self.file, f"tensor {index} ({tensor.name}) {reason}")

    def check_inputs(self, inputs: Sequence[AnyArray]) -> None:
        """Check number, shapes and dtypes of inputs.

        Raises:
            ModelError: they are not those of the network.
        """
        if len(inputs) != len(self.inputs):
            raise ModelError(self.file, f"{len(self.inputs)} inputs, not {len(inputs)}")
        for index, value in zip(self.inputs, inputs, strict=True):
            self.check(index, value)

    def check_variable(self, index: int, value: AnyArray) -> None:
        """Check that ``value`` can be the state ``index``.

        Raises:
            ModelError: no variable has this index, or it has another shape or dtype.
        """
        self.check(index, value)
        if not self.tensors[index].variable:
            raise ModelError(self.file, f"tensor {index} is no variable")

    def operators_before(self, index: int) -> list[Operator]:
        """The operators that a tensor depends on, in execution order."""
        needed = {index}
        found = []
        for operator in reversed(self.operators):
            if not needed.isdisjoint(operator.outputs):
                found.append(operator)
                needed.update(operator.inputs)
        return found[::-1]

    def tensor(self, name: str) -> NetworkTensor | None:
        """The tensor called ``name``: of several the last that an operator writes.

        An executable returns the variable ``v`` as the layer ``v_variable_output``, which finds it.
        """
        written = {index for operator in self.operators for index in operator.outputs}
        variable = name.removesuffix(STATE_SUFFIX)
        named = [
            each
            for each in self.tensors
            if each.name == name or (each.variable and each.name == variable)
        ]
        return max(named, key=lambda each: (each.index in written, each.index), default=None)


def _described(values: AnyArray | NetworkTensor) -> str:
    return f"{values.dtype} {tuple(values.shape)}"


class TensorValues(Mapping[int, AnyArray]):
    """Values by tensor index, of every tensor that could be computed.

    ``missing`` names the others, each with the reason: an operator that cannot be computed, and
    every tensor that depends on its outputs. ``assumed`` says of operators, by index, which rule
    they were computed by that no file has shown.
    """

    def __init__(
        self,
        values: Mapping[int, AnyArray],
        missing: Mapping[int, str],
        assumed: Mapping[int, str] | None = None,
    ) -> None:
        computed = {index: value for index, value in values.items() if index not in missing}
        self._values = MappingProxyType(computed)
        self.missing: Mapping[int, str] = MappingProxyType(dict(missing))
        self.assumed: Mapping[int, str] = MappingProxyType(dict(assumed or {}))

    def __getitem__(self, index: int) -> AnyArray:
        if index in self.missing:
            raise KeyError(f"tensor {index}: {self.missing[index]}")
        return self._values[index]

    def __iter__(self) -> Iterator[int]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def network(model: tflite.Model, file: str = "model") -> Network:
    """The network of a TensorFlow Lite model of one graph.

    Raises:
        ModelError: several graphs, a shape that is not static, or more than 2^28 elements.
    """
    if len(model.subgraphs) != 1:
        raise ModelError(file, f"{len(model.subgraphs)} graphs; a reference is made of one")
    graph = model.subgraphs[0]
    check_size(graph, file)
    return Network(
        file,
        tuple(_tensor(model, index, each, file) for index, each in enumerate(graph.tensors)),
        tuple(_operator(model, index, each) for index, each in enumerate(graph.operators)),
        graph.inputs,
        graph.outputs,
    )


def check_size(graph: tflite.SubGraph, file: str) -> None:
    """Refuse a graph (ModelError) with a shape that is not static, or with too many elements."""
    total = 0
    for index, tensor in enumerate(graph.tensors):
        if any(extent < 0 for extent in tensor.shape):
            raise ModelError(file, f"tensor {index} ({tensor.name}) has shape {list(tensor.shape)}")
        total += int(np.prod(tensor.shape, dtype=object))
    if total > MAXIMUM_ELEMENTS:
        raise ModelError(file, f"{total} elements, more than {MAXIMUM_ELEMENTS}")
    if total > limits().memory:
        raise ModelError(file, f"{total} elements, more than {limits().memory} bytes ({MEMORY})")


def _tensor(model: tflite.Model, index: int, tensor: tflite.Tensor, file: str) -> NetworkTensor:
    quantisation = tensor.quantization
    scale = quantisation.scale if quantisation else ()
    zero_point = quantisation.zero_point if quantisation else ()
    for each in scale:
        if not 0 < each < math.inf:
            reason = f"scale {each:g} is not positive and finite"
            raise ModelError(file, f"tensor {index} ({tensor.name}): {reason}")
    dtype = tflite.DTYPES.get(tensor.type, np.dtype(object))
    if dtype.kind in "iu" and not all(each in _values_of(dtype) for each in zero_point):
        raise ModelError(file, f"tensor {index} ({tensor.name}): a zero point is no {dtype}")
    try:
        constant = model.constant(tensor)
    except FormatError as fault:
        raise ModelError(file, f"tensor {index}: {fault}") from None
    return NetworkTensor(
        index,
        tensor.name,
        tensor.shape,
        dtype,
        np.array(scale, np.float32),
        np.array(zero_point or (0,) * len(scale), np.int64),
        quantisation.quantized_dimension if quantisation else 0,
        constant,
        tensor.is_variable,
    )


def _values_of(dtype: np.dtype[Any]) -> range:
    """What an element of an integer type can be."""
    limits = np.iinfo(dtype)
    return range(int(limits.min), int(limits.max) + 1)


def _operator(model: tflite.Model, index: int, operator: tflite.Operator) -> Operator:
    code = model.code(operator)
    custom = code.operator is tflite.BuiltinOperator.CUSTOM
    table = operator.builtin_options
    unread = operator.builtin_options_2 or (table if isinstance(table, OpaqueTable) else None)
    options: dict[str, Any] = {}
    if table is not None and unread is None:
        for entry in dataclasses.fields(table):
            value = getattr(table, entry.name)
            options[entry.name] = value.name if isinstance(value, IntEnum) else value
    return Operator(
        index,
        code.custom_code if custom else code.operator.name,
        operator.inputs,
        operator.outputs,
        options,
        custom,
        unread.name if unread else "",
    )
