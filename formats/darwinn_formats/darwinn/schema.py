"""DarwiNN packages and executables: the schema as dataclasses.

Every table and field of the public schema (``executable.fbs`` of google-coral/libedgetpu, file
identifier DWN1) is here under its own name; docs/formats-darwinn.md shows the mapping. Absent
text reads as the empty text, absent vectors as empty tuples, absent tables as None unless the
field says otherwise. Buffers that the schema keeps serialized (executables in a package,
packages in a multi-chip package) are parsed in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from darwinn_formats import flatbuffer as fb
from darwinn_formats.brief import brief
from darwinn_formats.figure import Bars, bars
from darwinn_formats.uses import Use, uses

IDENTIFIER = b"DWN1"
"""File identifier of a package."""

MULTIPLE_CHIPS = -1
"""``virtual_chip_id`` of a multi-chip package."""


class Description(IntEnum):
    """Which base address a field of the instruction stream, or a DMA descriptor, refers to."""

    BASE_ADDRESS_OUTPUT_ACTIVATION = 0
    BASE_ADDRESS_INPUT_ACTIVATION = 1
    BASE_ADDRESS_PARAMETER = 2
    BASE_ADDRESS_SCRATCH = 3


class Position(IntEnum):
    """Which half of a 64-bit address a field takes."""

    LOWER_32BIT = 0
    UPPER_32BIT = 1


class InterruptType(IntEnum):
    """Interrupts that the scalar core raises at the host."""

    SCALAR_CORE_INT_0 = 0
    SCALAR_CORE_INT_1 = 1
    SCALAR_CORE_INT_2 = 2
    SCALAR_CORE_INT_3 = 3


class Direction(IntEnum):
    """Direction of a DMA: INFEED from host to device, OUTFEED from device to host."""

    INFEED = 0
    OUTFEED = 1


class DataType(IntEnum):
    """Element type of a layer; the unsigned fixed point types have a zero point."""

    FIXED_POINT8 = 0
    FIXED_POINT16 = 1
    SIGNED_FIXED_POINT32 = 2
    BFLOAT = 3
    HALF = 4
    SINGLE = 5
    SIGNED_FIXED_POINT8 = 8
    SIGNED_FIXED_POINT16 = 9


class ExecutableType(IntEnum):
    """What an executable does: all of an inference, or one of its two parts."""

    STAND_ALONE = 0
    PARAMETER_CACHING = 1
    EXECUTION_ONLY = 2


@uses()
@dataclass(frozen=True, slots=True)
class Meta:
    """Linker metadata; ``name`` is that of the layer, None for parameters and scratch."""

    desc: Description = fb.enumeration(Description.BASE_ADDRESS_OUTPUT_ACTIVATION)
    batch: int = fb.int32()
    name: str | None = fb.string(optional=True)
    position: Position = fb.enumeration(Position.LOWER_32BIT)


@uses()
@dataclass(frozen=True, slots=True)
class FieldOffset:
    """A 32-bit field of an instruction chunk that the driver fills in; ``offset_bit`` in bits."""

    meta: Meta = fb.table(Meta, required=True)
    offset_bit: int = fb.int32()
    file_offset: int = fb.file_offset()


@uses()
@brief
@dataclass(frozen=True, slots=True)
class InstructionBitstream:
    """A chunk of instructions, and the fields in it that the driver fills in."""

    bitstream: bytes = fb.byte_vector(alignment=16)
    field_offsets: tuple[FieldOffset, ...] = fb.table_vector(FieldOffset)
    file_offset: int = fb.file_offset()


@uses()
@dataclass(frozen=True, slots=True)
class DmaDescriptorHint:
    """A transfer between host memory and chip: base by ``meta``, offset and size in bytes."""

    meta: Meta = fb.table(Meta, required=True)
    offset_in_bytes: int = fb.int32()
    size_in_bytes: int = fb.int32()


@uses()
@dataclass(frozen=True, slots=True)
class InterruptHint:
    """An interrupt at the host."""

    type: InterruptType = fb.enumeration(InterruptType.SCALAR_CORE_INT_0)


@uses()
@dataclass(frozen=True, slots=True)
class InstructionHint:
    """The transfer of a whole instruction chunk."""

    instruction_chunk_index: int = fb.int32()


@uses()
@dataclass(frozen=True, slots=True)
class FenceHint:
    """All transfers before it end before any after it starts."""


AnyHint = DmaDescriptorHint | InstructionHint | InterruptHint | FenceHint
"""A hint of any kind."""


@uses(unions={"any_hint": "AnyHint"})
@dataclass(frozen=True, slots=True)
class DmaHint:
    """One step of the expected DMA."""

    any_hint: AnyHint | None = fb.union(AnyHint)
    direction: Direction = fb.enumeration(Direction.INFEED)
    file_offset: int = fb.file_offset()


@uses()
@dataclass(frozen=True, slots=True)
class DmaHints:
    """The DMA that a program is expected to cause; all of it if ``fully_deterministic``."""

    hints: tuple[DmaHint, ...] = fb.table_vector(DmaHint)
    fully_deterministic: bool = fb.boolean()


@uses(
    executed="y_coordinate_to_linear_tile_id_map x_coordinate_to_linear_tile_id_map "
    "x_coordinate_to_local_byte_offset y_coordinate_to_local_y_offset "
    "x_coordinate_to_local_y_row_size"
)
@dataclass(frozen=True, slots=True)
class OutputLayout:
    """Where the tiles leave the elements of a three-dimensional output.

    Element (y, x, z) is at ``linearized_tile_byte_offset[tile] + y_coordinate_to_local_y_offset[y]
    * x_coordinate_to_local_y_row_size[x] + x_coordinate_to_local_byte_offset[x] + z``, where
    ``tile = y_coordinate_to_linear_tile_id_map[y] + x_coordinate_to_linear_tile_id_map[x]``.
    """

    y_coordinate_to_linear_tile_id_map: tuple[int, ...] = fb.vector(fb.INT32)
    x_coordinate_to_linear_tile_id_map: tuple[int, ...] = fb.vector(fb.INT32)
    linearized_tile_byte_offset: tuple[int, ...] = fb.vector(fb.INT32)
    x_coordinate_to_local_byte_offset: tuple[int, ...] = fb.vector(fb.INT32)
    y_coordinate_to_local_y_offset: tuple[int, ...] = fb.vector(fb.INT32)
    x_coordinate_to_local_y_row_size: tuple[int, ...] = fb.vector(fb.INT32)


@uses()
@dataclass(frozen=True, slots=True)
class Range:
    """Indices of a dimension, both ends included."""

    start: int = fb.int32()
    end: int = fb.int32()


@uses()
@dataclass(frozen=True, slots=True)
class TensorShape:
    """Ranges of all dimensions, the slowest first."""

    dimension: tuple[Range, ...] = fb.struct_vector(Range)


@uses(executed="shape stride")
@dataclass(frozen=True, slots=True)
class TensorLayout:
    """A box of elements; ``stride`` is the distance of neighbours, in elements, by dimension."""

    shape: TensorShape | None = fb.table(TensorShape)
    stride: tuple[int, ...] = fb.vector(fb.INT32)


@uses(executed="slice_offset")
@dataclass(frozen=True, slots=True)
class OutputShapeInfo:
    """An output as slices; ``slice_offset`` is where each one's first element is, in bytes."""

    slice_layout: tuple[TensorLayout, ...] = fb.table_vector(TensorLayout)
    slice_offset: tuple[int, ...] = fb.vector(fb.INT32)


@uses(shown="zero_point dequantization_factor")
@dataclass(frozen=True, slots=True)
class NumericsConstants:
    """real value = dequantization_factor * (value - zero_point)."""

    zero_point: int = fb.int32()
    dequantization_factor: float = fb.float32()


@uses(read="data_type")
@dataclass(frozen=True, slots=True)
class OutputLayer:
    """What only outputs have; ``data_type`` is deprecated, that of the layer counts."""

    layout: OutputLayout | None = fb.table(OutputLayout)
    data_type: DataType = fb.enumeration(DataType.FIXED_POINT8)
    shape_info: OutputShapeInfo | None = fb.table(OutputShapeInfo)


@uses(whole=Use.READ)
@dataclass(frozen=True, slots=True)
class InputLayer:
    """What only inputs have: nothing."""


@uses(shown="cache_on_dram numerics", unions={"any_layer": "AnyLayer"})
@brief
@dataclass(frozen=True, slots=True)
class Layer:
    """An input or output; ``size_bytes`` is for one execution and includes padding."""

    name: str = fb.string()
    size_bytes: int = fb.int32()
    y_dim: int = fb.int32()
    x_dim: int = fb.int32()
    z_dim: int = fb.int32()
    numerics: NumericsConstants | None = fb.table(NumericsConstants)
    data_type: DataType = fb.enumeration(DataType.FIXED_POINT8)
    any_layer: OutputLayer | InputLayer | None = fb.union({1: OutputLayer, 2: InputLayer})
    execution_count_per_inference: int = fb.int32(1)
    cache_on_dram: bool = fb.boolean()
    shape: TensorShape | None = fb.table(TensorShape)
    file_offset: int = fb.file_offset()


@uses(
    shown="version serialized_model estimated_cycles used_narrow_memory_bytes_per_tile "
    "use_tpu_dram_for_parameters estimated_cycles_64bit name"
)
@brief
@dataclass(frozen=True, slots=True)
class Executable:
    """A program for the chip, with its parameters, layers and expected DMA.

    Sizes are in bytes. Absent ``dma_hints`` read as no hints, not deterministic.
    """

    version: int = fb.int32()
    name: str = fb.string()
    serialized_model: bytes = fb.byte_vector()
    batch_size: int = fb.int32()
    scratch_size_bytes: int = fb.int32()
    instruction_bitstreams: tuple[InstructionBitstream, ...] = fb.table_vector(InstructionBitstream)
    parameters: bytes = fb.byte_vector(alignment=16)
    dma_hints: DmaHints = fb.table(DmaHints, absent=DmaHints())
    input_layers: tuple[Layer, ...] = fb.table_vector(Layer)
    output_layers: tuple[Layer, ...] = fb.table_vector(Layer)
    chip: str = fb.string()
    estimated_cycles: int = fb.int32()
    used_narrow_memory_bytes_per_tile: int = fb.int32()
    type: ExecutableType = fb.enumeration(ExecutableType.STAND_ALONE)
    parameter_caching_token: int = fb.uint64()
    use_tpu_dram_for_parameters: bool = fb.boolean()
    estimated_cycles_64bit: int = fb.int64()
    file_offset: int = fb.file_offset()

    def figure(self) -> str:
        """What its bytes are, as SVG."""
        return figure_of([self])


def figure_of(executables: Sequence[Executable]) -> str:
    """What the bytes of executables are, as SVG."""
    rows: Bars = [
        (
            executable.type.name,
            {
                "parameters": len(executable.parameters),
                "instructions": sum(
                    len(each.bitstream) for each in executable.instruction_bitstreams
                ),
                "scratch": executable.scratch_size_bytes,
                "inputs": sum(each.size_bytes for each in executable.input_layers),
                "outputs": sum(each.size_bytes for each in executable.output_layers),
            },
        )
        for executable in executables
    ]
    return bars(rows, "bytes")


@uses()
@brief
@dataclass(frozen=True, slots=True)
class MultiExecutable:
    """The executables of a package."""

    serialized_executables: tuple[Executable, ...] = fb.nested_string_vector(lambda: Executable)


@uses()
@dataclass(frozen=True, slots=True)
class SerializedPackage:
    """The package of one chip in a multi-chip package."""

    serialized_package: Package | None = fb.nested(lambda: Package)


@uses(
    shown="min_runtime_version signature keypair_version compiler_version virtual_chip_id "
    "model_identifier"
)
@fb.file_identifier(IDENTIFIER)
@brief
@dataclass(frozen=True, slots=True)
class Package:
    """What the compiler leaves: executables that belong together.

    ``signature`` is over the serialized executables as the file had them.
    """

    min_runtime_version: int = fb.int32()
    serialized_multi_executable: MultiExecutable | None = fb.nested(lambda: MultiExecutable)
    signature: bytes = fb.byte_vector()
    keypair_version: int = fb.int32()
    compiler_version: str = fb.string()
    virtual_chip_id: int = fb.int32()
    multi_chip_package: tuple[SerializedPackage, ...] = fb.table_vector(SerializedPackage)
    model_identifier: str = fb.string()
    file_offset: int = fb.file_offset()

    @classmethod
    def of(cls, *executables: Executable, **fields: Any) -> Package:
        """A package that holds executables; ``fields`` are its other fields."""
        return cls(serialized_multi_executable=MultiExecutable(executables), **fields)

    @property
    def executables(self) -> tuple[Executable, ...]:
        """Executables of this package, without those of its multi-chip packages."""
        held = self.serialized_multi_executable
        return () if held is None else held.serialized_executables

    @property
    def multi_chip(self) -> tuple[Package, ...]:
        """Packages of the single chips of a multi-chip package."""
        return tuple(
            held.serialized_package
            for held in self.multi_chip_package
            if held.serialized_package is not None
        )
