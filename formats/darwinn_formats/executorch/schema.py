"""ExecuTorch programs, data files and bundled programs: the schemas as dataclasses.

Every table and field of the public schemas (``program.fbs``, file identifier ET12;
``flat_tensor.fbs``, FT01; ``bundled_program_schema.fbs``, BP08) is here under its own name;
docs/formats-executorch.md shows what is checked beyond them. Indices into ``values`` are those of
``ExecutionPlan.values``. Absent vectors read as empty tuples unless the format requires them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from darwinn_formats import flatbuffer as fb
from darwinn_formats.signatures import (
    EXECUTORCH_BUNDLE,
    EXECUTORCH_DATA,
    EXECUTORCH_PROGRAM,
)
from darwinn_formats.uses import uses

TENSOR_ALIGNMENT = 16
"""Bytes to which constant data and delegate payloads are aligned."""


class ScalarType(IntEnum):
    """Element type of a tensor; the same numbers appear as arguments of operators."""

    UINT8 = 0
    INT8 = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    FLOAT16 = 5
    FLOAT32 = 6
    FLOAT64 = 7
    COMPLEX32 = 8
    COMPLEX64 = 9
    COMPLEX128 = 10
    BOOL = 11
    QINT8 = 12
    QUINT8 = 13
    QINT32 = 14
    BFLOAT16 = 15
    QUINT4X2 = 16
    QUINT2X4 = 17
    BITS1X8 = 18
    BITS2X4 = 19
    BITS4X2 = 20
    BITS8 = 21
    BITS16 = 22
    FLOAT8_E5M2 = 23
    FLOAT8_E4M3FN = 24
    FLOAT8_E5M2FNUZ = 25
    FLOAT8_E4M3FNUZ = 26
    UINT16 = 27
    UINT32 = 28
    UINT64 = 29


DTYPES: dict[ScalarType, np.dtype[Any]] = {
    ScalarType[name.upper()]: np.dtype(name).newbyteorder("<")
    for name in (
        *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float16", "float32", "float64", "bool"),
    )
}
"""NumPy types of the element types that have one."""

ITEM_SIZES: dict[ScalarType, int] = {
    **{scalar_type: dtype.itemsize for scalar_type, dtype in DTYPES.items()},
    ScalarType.COMPLEX32: 4,
    ScalarType.COMPLEX64: 8,
    ScalarType.COMPLEX128: 16,
    ScalarType.QINT8: 1,
    ScalarType.QUINT8: 1,
    ScalarType.QINT32: 4,
    ScalarType.BFLOAT16: 2,
    ScalarType.QUINT4X2: 1,
    ScalarType.QUINT2X4: 1,
    ScalarType.BITS16: 2,
    ScalarType.FLOAT8_E5M2: 1,
    ScalarType.FLOAT8_E4M3FN: 1,
    ScalarType.FLOAT8_E5M2FNUZ: 1,
    ScalarType.FLOAT8_E4M3FNUZ: 1,
}
"""Bytes of an element, for the types that a program may hold; the others are reserved."""


class TensorShapeDynamism(IntEnum):
    """Whether sizes are fixed, a capacity, or not known before execution."""

    STATIC = 0
    DYNAMIC_BOUND = 1
    DYNAMIC_UNBOUND = 2


class TensorDataLocation(IntEnum):
    """Where the data of a tensor is: in this file, or in a file of external data."""

    SEGMENT = 0
    EXTERNAL = 1


class DataLocation(IntEnum):
    """Where the payload of a delegate is: in the flatbuffer, or in a segment."""

    INLINE = 0
    SEGMENT = 1


class DeviceType(IntEnum):
    """Device that a tensor or a planned buffer is on."""

    CPU = 0
    CUDA = 1


def _scalar_type() -> Any:
    return fb.enumeration(ScalarType.UINT8, fb.INT8)


def _device() -> Any:
    return fb.enumeration(DeviceType.CPU, fb.INT8)


@uses(read="encoded_inp_str encoded_out_str")
@dataclass(frozen=True, slots=True)
class ContainerMetadata:
    """How nested inputs and outputs were flattened, as a JSON pytree or its older short form."""

    encoded_inp_str: str = fb.string()
    encoded_out_str: str = fb.string()


@uses()
@dataclass(frozen=True, slots=True)
class Null:
    """The absent value."""


@uses()
@dataclass(frozen=True, slots=True)
class AllocationDetails:
    """Place in a planned buffer: buffer ``memory_id``, offset in bytes in two halves."""

    memory_id: int = fb.uint32()
    memory_offset_low: int = fb.uint32()
    memory_offset_high: int = fb.uint32()

    @property
    def memory_offset(self) -> int:
        """Offset in bytes from the start of the planned buffer."""
        return self.memory_offset_high << 32 | self.memory_offset_low


@uses(
    executed="mutable_data_segments_idx device_type",
    read="device_index",
    refused={"device_type": "is not supported"},
    later="location device_type device_index",
)
@dataclass(frozen=True, slots=True)
class ExtraTensorInfo:
    """What few tensors have: initial data, a name, data outside of the file, another device."""

    mutable_data_segments_idx: int = fb.uint64()
    fully_qualified_name: str | None = fb.string(optional=True)
    location: TensorDataLocation = fb.enumeration(TensorDataLocation.SEGMENT, fb.INT8)
    device_type: DeviceType = _device()
    device_index: int = fb.int8()


@uses(read="storage_offset requires_grad layout", refused={"storage_offset": "is not supported"})
@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor: logical ``sizes``, and ``dim_order`` from the outermost dimension inwards.

    Constant: ``data_buffer_idx`` above 0 and no ``allocation_info``. Mutable with initial data:
    both. Mutable: ``allocation_info`` only, or neither when the caller brings the memory.
    """

    scalar_type: ScalarType = _scalar_type()
    storage_offset: int = fb.int32()
    sizes: tuple[int, ...] = fb.vector(fb.INT32, required=True)
    dim_order: tuple[int, ...] = fb.vector(fb.UINT8, required=True)
    requires_grad: bool = fb.boolean()
    data_buffer_idx: int = fb.uint32()
    allocation_info: AllocationDetails | None = fb.table(AllocationDetails)
    layout: int = fb.int8()
    shape_dynamism: TensorShapeDynamism = fb.enumeration(TensorShapeDynamism.STATIC, fb.INT8)
    extra_tensor_info: ExtraTensorInfo | None = fb.table(ExtraTensorInfo)
    file_offset: int = fb.file_offset()

    @property
    def elements(self) -> int:
        """Number of elements, at most, if the sizes are a bound."""
        count = 1
        for size in self.sizes:
            count *= size
        return count

    @property
    def size_bytes(self) -> int:
        """Bytes of the data; KeyError for a reserved element type."""
        return self.elements * ITEM_SIZES[self.scalar_type]

    @property
    def is_external(self) -> bool:
        """Whether the data is in a file of external data."""
        info = self.extra_tensor_info
        return info is not None and info.location is TensorDataLocation.EXTERNAL

    @property
    def name(self) -> str:
        """Fully qualified name, or the empty text."""
        info = self.extra_tensor_info
        return "" if info is None else info.fully_qualified_name or ""


@uses()
@dataclass(frozen=True, slots=True)
class Int:
    """An integer."""

    int_val: int = fb.int64()


@uses()
@dataclass(frozen=True, slots=True)
class Bool:
    """A truth value."""

    bool_val: bool = fb.boolean()


@uses()
@dataclass(frozen=True, slots=True)
class Double:
    """A float."""

    double_val: float = fb.float64()


@uses()
@dataclass(frozen=True, slots=True)
class String:
    """A text."""

    string_val: str = fb.string(required=True)


@uses()
@dataclass(frozen=True, slots=True)
class IntList:
    """Integers: ``items`` are indices of Int values, not the integers themselves."""

    items: tuple[int, ...] = fb.vector(fb.INT64, required=True)


@uses(executed="items")
@dataclass(frozen=True, slots=True)
class DoubleList:
    """Floats; ``items`` are the numbers themselves."""

    items: tuple[float, ...] = fb.vector(fb.FLOAT64, required=True)


@uses(executed="items")
@dataclass(frozen=True, slots=True)
class BoolList:
    """Truth values; ``items`` are the values themselves."""

    items: tuple[bool, ...] = fb.vector(fb.BOOL, required=True)


@uses()
@dataclass(frozen=True, slots=True)
class TensorList:
    """Tensors; ``items`` are indices of Tensor values."""

    items: tuple[int, ...] = fb.vector(fb.INT32, required=True)


@uses()
@dataclass(frozen=True, slots=True)
class OptionalTensorList:
    """Tensors or nothing; ``items`` are indices of Tensor or Null values, or -1 for nothing."""

    items: tuple[int, ...] = fb.vector(fb.INT32, required=True)


KernelType = (
    Null
    | Int
    | Bool
    | Double
    | Tensor
    | String
    | IntList
    | DoubleList
    | BoolList
    | TensorList
    | OptionalTensorList
)
"""What a value can be."""

NULL_TAG = 1
"""Tag of ``Null``, which may stand without a table."""


@uses(unions={"val": "KernelTypes"})
@dataclass(frozen=True, slots=True)
class EValue:
    """A value of an execution plan."""

    val: KernelType | None = fb.union(KernelType, bare=frozenset({NULL_TAG}))
    file_offset: int = fb.file_offset()


@uses()
@dataclass(frozen=True, slots=True)
class Operator:
    """An operator by name and overload."""

    name: str = fb.string()
    overload: str = fb.string()
    file_offset: int = fb.file_offset()

    @property
    def full_name(self) -> str:
        """Name under which kernels are registered: ``aten::add.out``."""
        return f"{self.name}.{self.overload}" if self.overload else self.name


@uses()
@dataclass(frozen=True, slots=True)
class KernelCall:
    """Call operator ``op_index`` with values, those that it returns last."""

    op_index: int = fb.int32()
    args: tuple[int, ...] = fb.vector(fb.INT32)


@uses()
@dataclass(frozen=True, slots=True)
class DelegateCall:
    """Hand values to delegate ``delegate_index``."""

    delegate_index: int = fb.int32()
    args: tuple[int, ...] = fb.vector(fb.INT32)


@uses()
@dataclass(frozen=True, slots=True)
class MoveCall:
    """Let value ``move_to`` be value ``move_from``."""

    move_from: int = fb.int32()
    move_to: int = fb.int32()


@uses()
@dataclass(frozen=True, slots=True)
class JumpFalseCall:
    """Continue at instruction ``destination_instruction`` if a value is false."""

    cond_value_index: int = fb.int32()
    destination_instruction: int = fb.int32()


@uses()
@dataclass(frozen=True, slots=True)
class FreeCall:
    """Drop the data of a tensor value."""

    value_index: int = fb.int32()


InstructionArguments = KernelCall | DelegateCall | MoveCall | JumpFalseCall | FreeCall
"""What an instruction can be."""


@uses(unions={"instr_args": "InstructionArguments"})
@dataclass(frozen=True, slots=True)
class Instruction:
    """One step of a chain."""

    instr_args: InstructionArguments | None = fb.union(InstructionArguments)
    file_offset: int = fb.file_offset()


@uses(shown="filename lineno name", read="context")
@dataclass(frozen=True, slots=True)
class Frame:
    """A line of source from which an instruction comes."""

    filename: str = fb.string()
    lineno: int = fb.int32()
    name: str = fb.string()
    context: str = fb.string()


@uses(shown="items")
@dataclass(frozen=True, slots=True)
class FrameList:
    """Call stack of an instruction, innermost call last."""

    items: tuple[Frame, ...] = fb.table_vector(Frame)


@uses(read="inputs outputs", shown="stacktrace")
@dataclass(frozen=True, slots=True)
class Chain:
    """Instructions in order; ``stacktrace`` has one entry for each, or none at all."""

    inputs: tuple[int, ...] = fb.vector(fb.INT32)
    outputs: tuple[int, ...] = fb.vector(fb.INT32)
    instructions: tuple[Instruction, ...] = fb.table_vector(Instruction, required=True)
    stacktrace: tuple[FrameList, ...] = fb.table_vector(FrameList)
    file_offset: int = fb.file_offset()


@uses()
@dataclass(frozen=True, slots=True)
class BackendDelegateDataReference:
    """Place of a payload: index in ``backend_delegate_data`` or in ``segments``."""

    location: DataLocation = fb.enumeration(DataLocation.INLINE, fb.INT8)
    index: int = fb.uint32()


@uses()
@dataclass(frozen=True, slots=True)
class CompileSpec:
    """An option with which a delegate was compiled."""

    key: str = fb.string()
    value: bytes = fb.byte_vector()


@uses()
@dataclass(frozen=True, slots=True)
class BackendDelegate:
    """A part of the program that a backend executes; ``id`` names the backend."""

    id: str = fb.string(required=True)
    processed: BackendDelegateDataReference | None = fb.table(BackendDelegateDataReference)
    compile_specs: tuple[CompileSpec, ...] = fb.table_vector(CompileSpec)
    file_offset: int = fb.file_offset()


@uses(
    read="buffer_idx device_index",
    executed="device_type",
    refused={"device_type": "is not supported"},
    is_later=True,
)
@dataclass(frozen=True, slots=True)
class NonConstBufferDevice:
    """Device on which a planned buffer has to be."""

    buffer_idx: int = fb.int32()
    device_type: DeviceType = _device()
    device_index: int = fb.int8()


@uses(
    read="container_meta_type", executed="non_const_buffer_device", later="non_const_buffer_device"
)
@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """A method. ``non_const_buffer_sizes`` are bytes by memory id; entry 0 is not used."""

    name: str = fb.string(required=True)
    container_meta_type: ContainerMetadata | None = fb.table(ContainerMetadata)
    values: tuple[EValue, ...] = fb.table_vector(EValue, required=True)
    inputs: tuple[int, ...] = fb.vector(fb.INT32, required=True)
    outputs: tuple[int, ...] = fb.vector(fb.INT32, required=True)
    chains: tuple[Chain, ...] = fb.table_vector(Chain, required=True)
    operators: tuple[Operator, ...] = fb.table_vector(Operator)
    delegates: tuple[BackendDelegate, ...] = fb.table_vector(BackendDelegate, required=True)
    non_const_buffer_sizes: tuple[int, ...] = fb.vector(fb.INT64, required=True)
    non_const_buffer_device: tuple[NonConstBufferDevice, ...] = fb.table_vector(
        NonConstBufferDevice
    )
    file_offset: int = fb.file_offset()


@uses(executed="storage")
@dataclass(frozen=True, slots=True)
class Buffer:
    """Constant data inside the flatbuffer (deprecated)."""

    storage: bytes | memoryview = fb.byte_view(alignment=TENSOR_ALIGNMENT)


@uses()
@dataclass(frozen=True, slots=True)
class BackendDelegateInlineData:
    """Payload of a delegate inside the flatbuffer."""

    data: fb.Span = fb.byte_span(alignment=TENSOR_ALIGNMENT)


@uses()
@dataclass(frozen=True, slots=True)
class DataSegment:
    """Bytes after the flatbuffer; ``offset`` counts from the segment base of the header."""

    offset: int = fb.uint64()
    size: int = fb.uint64()
    file_offset: int = fb.file_offset()


@uses(executed="segment_index")
@dataclass(frozen=True, slots=True)
class SubsegmentOffsets:
    """Where pieces start in a segment, in bytes; entry 0 stands for tensors without data."""

    segment_index: int = fb.uint32()
    offsets: tuple[int, ...] = fb.vector(fb.UINT64)
    file_offset: int = fb.file_offset()


@uses(is_later=True)
@dataclass(frozen=True, slots=True)
class NamedData:
    """A segment that is known by name; delegates ask for it."""

    key: str = fb.string(required=True)
    segment_index: int = fb.uint32()
    file_offset: int = fb.file_offset()


@uses(shown="version", later="named_data")
@fb.file_identifier(EXECUTORCH_PROGRAM)
@dataclass(frozen=True, slots=True)
class Program:
    """Root table of a .pte file."""

    version: int = fb.uint32()
    execution_plan: tuple[ExecutionPlan, ...] = fb.table_vector(ExecutionPlan, required=True)
    constant_buffer: tuple[Buffer, ...] = fb.table_vector(Buffer)
    backend_delegate_data: tuple[BackendDelegateInlineData, ...] = fb.table_vector(
        BackendDelegateInlineData
    )
    segments: tuple[DataSegment, ...] = fb.table_vector(DataSegment)
    constant_segment: SubsegmentOffsets | None = fb.table(SubsegmentOffsets)
    mutable_data_segments: tuple[SubsegmentOffsets, ...] = fb.table_vector(SubsegmentOffsets)
    named_data: tuple[NamedData, ...] = fb.table_vector(NamedData)
    file_offset: int = fb.file_offset()

    @property
    def has_constant_segment(self) -> bool:
        """Whether constants are in a segment: a single offset stands for no constants."""
        return self.constant_segment is not None and len(self.constant_segment.offsets) > 1


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """Element type, sizes and order of dimensions of external data."""

    scalar_type: ScalarType = _scalar_type()
    sizes: tuple[int, ...] = fb.vector(fb.INT32)
    dim_order: tuple[int, ...] = fb.vector(fb.UINT8)

    @property
    def size_bytes(self) -> int:
        """Bytes of the data; KeyError for a reserved element type."""
        count = ITEM_SIZES[self.scalar_type]
        for size in self.sizes:
            count *= size
        return count


@dataclass(frozen=True, slots=True)
class ExternalData:
    """Data by name, with its layout if it is a tensor (``NamedData`` of ``flat_tensor.fbs``)."""

    key: str = fb.string(required=True)
    segment_index: int = fb.uint32()
    tensor_layout: TensorLayout | None = fb.table(TensorLayout)
    file_offset: int = fb.file_offset()


@fb.file_identifier(EXECUTORCH_DATA)
@dataclass(frozen=True, slots=True)
class FlatTensor:
    """Root table of a .ptd file."""

    version: int = fb.uint32()
    segments: tuple[DataSegment, ...] = fb.table_vector(DataSegment)
    named_data: tuple[ExternalData, ...] = fb.table_vector(ExternalData)


@dataclass(frozen=True, slots=True)
class BundledTensor:
    """A stored tensor; ``data`` in the order of ``dim_order``."""

    scalar_type: ScalarType = _scalar_type()
    sizes: tuple[int, ...] = fb.vector(fb.INT32)
    data: bytes | memoryview = fb.byte_view(alignment=TENSOR_ALIGNMENT)
    dim_order: tuple[int, ...] = fb.vector(fb.UINT8)
    file_offset: int = fb.file_offset()


@dataclass(frozen=True, slots=True)
class BundledInt:
    """A stored integer."""

    int_val: int = fb.int64()


@dataclass(frozen=True, slots=True)
class BundledBool:
    """A stored truth value."""

    bool_val: bool = fb.boolean()


@dataclass(frozen=True, slots=True)
class BundledDouble:
    """A stored float."""

    double_val: float = fb.float64()


BundledAny = BundledTensor | BundledInt | BundledBool | BundledDouble
"""What a stored value can be."""


@dataclass(frozen=True, slots=True)
class BundledValue:
    """A stored input or expected output; None is the absent value."""

    val: BundledAny | None = fb.union(BundledAny)


@dataclass(frozen=True, slots=True)
class MethodTestCase:
    """Inputs of one call and what it has to return."""

    inputs: tuple[BundledValue, ...] = fb.table_vector(BundledValue)
    expected_outputs: tuple[BundledValue, ...] = fb.table_vector(BundledValue)
    file_offset: int = fb.file_offset()


@dataclass(frozen=True, slots=True)
class MethodTestSuite:
    """Test cases of one method."""

    method_name: str = fb.string(required=True)
    test_cases: tuple[MethodTestCase, ...] = fb.table_vector(MethodTestCase)
    file_offset: int = fb.file_offset()


@fb.file_identifier(EXECUTORCH_BUNDLE)
@dataclass(frozen=True, slots=True)
class BundledProgram:
    """Root table of a .bpte file; ``program`` is a whole .pte file."""

    version: int = fb.uint32()
    method_test_suites: tuple[MethodTestSuite, ...] = fb.table_vector(MethodTestSuite)
    program: fb.Span | None = fb.byte_span(alignment=32)
