"""The first graph of a ``.tflite`` as conditions look at it: operators with their tensors.

Unlike :func:`darwinn_reference.tflite.graph.network` it takes every graph, dynamic ones,
floating point ones and those with operators that nobody knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darwinn_formats import tflite
from darwinn_formats.errors import FormatError
from numpy.typing import NDArray

from darwinn_testbench.chip.cpu_operators import name_of_operator

EIGHT_BITS = frozenset({"INT8", "UINT8"})
"""Element types of the chip's tensors."""

MOST_ELEMENTS = 2**40
"""Elements of a tensor that are taken for a shape, and no defect of the file."""


@dataclass(frozen=True)
class Value:
    """A tensor: ``type`` is the schema's name, ``signature`` the shape with -1 where it is unknown.

    ``scales`` is the number of its quantisation scales; ``constant`` says that the file has data.
    """

    index: int
    name: str
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    type: str
    scales: int
    constant: bool
    variable: bool

    @property
    def elements(self) -> int:
        """Number of elements, up to a bound; an unknown dimension counts as one."""
        count = 1
        for size in self.shape:
            count *= max(size, 1)
            if count > MOST_ELEMENTS:
                return MOST_ELEMENTS + 1
        return count

    @property
    def bytes(self) -> int:
        """Bytes of its data; of a type of no fixed size the elements."""
        dtype = tflite.DTYPES.get(tflite.TensorType[self.type])
        return self.elements * (dtype.itemsize if dtype else 1)

    @property
    def extent(self) -> tuple[int, ...]:
        """The dimensions of more than one element."""
        return tuple(size for size in self.shape if size > 1)

    @property
    def eight_bits(self) -> bool:
        """Whether it is quantised to a byte."""
        return self.type in EIGHT_BITS and self.scales > 0

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"{self.type.lower()} {shape}".strip()


@dataclass(frozen=True)
class Node:
    """An operator: ``name`` as in the schema (CONV_2D) or of a custom operator.

    ``inputs`` are None where an optional one is left out.
    """

    index: int
    name: str
    custom: bool
    version: int
    options: Any
    inputs: tuple[Value | None, ...]
    outputs: tuple[Value, ...]
    model: tflite.Model

    @property
    def given(self) -> tuple[Value, ...]:
        """The inputs that are there."""
        return tuple(each for each in self.inputs if each is not None)

    @property
    def data(self) -> tuple[Value, ...]:
        """The inputs that are no constants."""
        return tuple(each for each in self.given if not each.constant)

    def option(self, name: str, default: Any = None) -> Any:
        """An attribute, or ``default`` where the file has none."""
        return getattr(self.options, name, default)

    def constant(self, place: int) -> NDArray[Any] | None:
        """The data of an input; None of one that is not there, has none, or cannot be read."""
        value = self.inputs[place] if place < len(self.inputs) else None
        if value is None or not value.constant:
            return None
        try:
            return self.model.constant(self.model.subgraphs[0].tensors[value.index])
        except FormatError:
            return None

    @property
    def parameter_bytes(self) -> int:
        """Bytes of the constants that it takes."""
        return sum(each.bytes for each in self.given if each.constant)

    def __str__(self) -> str:
        return f"{self.index} {self.name}"


@dataclass(frozen=True)
class Graph:
    """Tensors by index, operators in order of execution; ``graphs`` is how many the file has."""

    values: Sequence[Value]
    nodes: Sequence[Node]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    graphs: int
    producers: Mapping[int, Node]
    """The operator that gives a tensor."""


def graph_of(model: tflite.Model) -> Graph:
    """The first graph of a model; an empty one if there is none.

    Raises:
        FormatError: a shape of more elements than any machine holds.
    """
    if not model.subgraphs:
        return Graph((), (), (), (), 0, {})
    graph = model.subgraphs[0]
    values = [_value(model, index, each) for index, each in enumerate(graph.tensors)]
    nodes = [
        Node(
            index,
            name_of_operator(model, each),
            model.code(each).operator is tflite.BuiltinOperator.CUSTOM,
            model.code(each).version,
            each.builtin_options,
            tuple(values[k] if k >= 0 else None for k in each.inputs),
            tuple(values[k] for k in each.outputs if k >= 0),
            model,
        )
        for index, each in enumerate(graph.operators)
    ]
    producers = {value.index: node for node in nodes for value in node.outputs}
    return Graph(values, nodes, graph.inputs, graph.outputs, len(model.subgraphs), producers)


def _value(model: tflite.Model, index: int, tensor: tflite.Tensor) -> Value:
    quantisation = tensor.quantization
    value = Value(
        index,
        tensor.name,
        tensor.shape,
        tensor.shape_signature or tensor.shape,
        tensor.type.name,
        len(quantisation.scale) if quantisation else 0,
        bool(model.buffers[tensor.buffer].data) and not tensor.is_variable,
        tensor.is_variable,
    )
    if value.elements > MOST_ELEMENTS:
        reason = f"more than {MOST_ELEMENTS:,} elements"
        raise FormatError(f"tensor {index}.shape", reason, offset=tensor.file_offset)
    return value
