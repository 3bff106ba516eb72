"""TensorFlow Lite models: the part of the schema that Edge TPU files and CPU oracles need.

Tables are marked open: fields that are not declared are passed over, but a model that uses one
of them in a way that changes its meaning is refused (``loader``). Option tables that are not
declared, and those that only a newer schema explains, read as ``OpaqueTable`` with their name, so
that whoever needs them can refuse the operator by name. Slots and defaults are those of schema
version 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from darwinn_formats import flatbuffer as fb
from darwinn_formats.errors import FormatError
from darwinn_formats.tflite.enums import DTYPES, TensorType
from darwinn_formats.tflite.names import (
    BUILTIN_OPTIONS,
    BUILTIN_OPTIONS_2,
    NUMBERS_ONLY_2,
    WITH_VECTORS,
    BuiltinOperator,
)
from darwinn_formats.tflite.options import OPTION_TABLES, element_type

IDENTIFIER = b"TFL3"
"""File identifier of TensorFlow Lite models."""


def _others(names: tuple[str, ...]) -> dict[int, str]:
    return {tag: name for tag, name in enumerate(names) if tag and tag not in OPTION_TABLES}


_OTHERS = _others(BUILTIN_OPTIONS)
_OTHERS_2 = dict(enumerate(BUILTIN_OPTIONS_2[1:], 1))


@fb.open_table
@dataclass(frozen=True, slots=True)
class SparsityParameters:
    """Marks a tensor that is stored sparse; what it says is not read."""


@fb.open_table
@dataclass(frozen=True, slots=True)
class QuantizationParameters:
    """real value = scale * (value - zero_point), for the whole tensor or along one dimension."""

    min: tuple[float, ...] = fb.vector(fb.FLOAT32)
    max: tuple[float, ...] = fb.vector(fb.FLOAT32)
    scale: tuple[float, ...] = fb.vector(fb.FLOAT32)
    zero_point: tuple[int, ...] = fb.vector(fb.INT64)
    details: fb.OpaqueTable | None = fb.union(
        {}, other={1: "CustomQuantization", 2: "BlockwiseQuantization", 3: "MultiAxisQuantization"}
    )
    quantized_dimension: int = fb.int32()


@fb.open_table
@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor: its shape, type, and the index of the buffer that holds its data."""

    shape: tuple[int, ...] = fb.vector(fb.INT32)
    type: TensorType = element_type()
    buffer: int = fb.uint32()
    name: str = fb.string()
    quantization: QuantizationParameters | None = fb.table(QuantizationParameters)
    is_variable: bool = fb.boolean()
    sparsity: SparsityParameters | None = fb.table(SparsityParameters)
    shape_signature: tuple[int, ...] = fb.vector(fb.INT32)
    has_rank: bool = fb.boolean()
    external_buffer: int = fb.uint32(slot=10)
    file_offset: int = fb.file_offset()


@fb.open_table
@dataclass(frozen=True, slots=True)
class OperatorCode:
    """An operator that the model uses; a builtin number above 126 is only in `builtin_code`."""

    deprecated_builtin_code: int = fb.int8()
    custom_code: str = fb.string()
    version: int = fb.int32(1)
    builtin_code: int = fb.int32()
    file_offset: int = fb.file_offset()

    @property
    def operator(self) -> BuiltinOperator:
        """The builtin operator; CUSTOM is further named by `custom_code`."""
        return BuiltinOperator(max(self.deprecated_builtin_code, self.builtin_code))


@fb.open_table
@dataclass(frozen=True, slots=True)
class Operator:
    """A node of the graph; tensor indices, -1 for an optional input that is left out."""

    opcode_index: int = fb.uint32()
    inputs: tuple[int, ...] = fb.vector(fb.INT32)
    outputs: tuple[int, ...] = fb.vector(fb.INT32)
    builtin_options: Any = fb.union(
        OPTION_TABLES,
        other=_OTHERS,
        numbers={tag for tag, name in _OTHERS.items() if name not in WITH_VECTORS},
        growing=True,
    )
    custom_options: fb.Span | None = fb.byte_span()
    custom_options_format: int = fb.int8()
    mutating_variable_inputs: tuple[bool, ...] = fb.vector(fb.BOOL)
    intermediates: tuple[int, ...] = fb.vector(fb.INT32)
    large_custom_options_offset: int = fb.uint64()
    large_custom_options_size: int = fb.uint64()
    builtin_options_2: fb.OpaqueTable | None = fb.union(
        {},
        other=_OTHERS_2,
        numbers={tag for tag, name in _OTHERS_2.items() if name in NUMBERS_ONLY_2},
        growing=True,
    )
    file_offset: int = fb.file_offset()


@fb.open_table
@dataclass(frozen=True, slots=True)
class SubGraph:
    """A graph: tensors, and operators in execution order."""

    tensors: tuple[Tensor, ...] = fb.table_vector(Tensor)
    inputs: tuple[int, ...] = fb.vector(fb.INT32)
    outputs: tuple[int, ...] = fb.vector(fb.INT32)
    operators: tuple[Operator, ...] = fb.table_vector(Operator)
    name: str = fb.string()
    file_offset: int = fb.file_offset()


@dataclass(frozen=True, slots=True)
class Buffer:
    """Constant data, a view of the file; `offset` and `size` are for data after the flatbuffer."""

    data: memoryview = fb.byte_view(alignment=16)
    offset: int = fb.uint64()
    size: int = fb.uint64()
    file_offset: int = fb.file_offset()


@dataclass(frozen=True, slots=True)
class Metadata:
    """A named buffer."""

    name: str = fb.string()
    buffer: int = fb.uint32()


@fb.open_table
@fb.file_identifier(IDENTIFIER)
@dataclass(frozen=True, slots=True)
class Model:
    """A whole model."""

    version: int = fb.uint32()
    operator_codes: tuple[OperatorCode, ...] = fb.table_vector(OperatorCode)
    subgraphs: tuple[SubGraph, ...] = fb.table_vector(SubGraph)
    description: str = fb.string()
    buffers: tuple[Buffer, ...] = fb.table_vector(Buffer)
    metadata_buffer: tuple[int, ...] = fb.vector(fb.INT32)
    metadata: tuple[Metadata, ...] = fb.table_vector(Metadata)

    def code(self, operator: Operator) -> OperatorCode:
        """The operator code of a node."""
        return self.operator_codes[operator.opcode_index]

    def constant(self, tensor: Tensor) -> NDArray[Any] | None:
        """Data of a constant tensor in its shape, without a copy; None if it has none.

        Raises:
            FormatError: when the data does not fill the shape, is sparse, or has a type without
                a NumPy counterpart.
        """
        data = self.buffers[tensor.buffer].data
        if not data:
            return None
        dtype = DTYPES.get(tensor.type)
        if dtype is None or tensor.sparsity is not None:
            kind = "sparse tensors" if dtype else f"elements of type {tensor.type.name}"
            raise FormatError(tensor.name, f"{kind} are not supported", offset=tensor.file_offset)
        needed = dtype.itemsize * int(np.prod(tensor.shape, dtype=object))
        if min(tensor.shape, default=0) < 0 or needed != len(data):
            reason = f"{len(data)} bytes do not fill the shape {list(tensor.shape)} of {dtype}"
            raise FormatError(tensor.name, reason, offset=tensor.file_offset)
        return np.frombuffer(data, dtype).reshape(tensor.shape)
