"""Tables of the IREE VM bytecode module schema (file identifier ``IREE``).

The public schema is that of runtime/src/iree/schemas/bytecode_module_def.fbs of IREE; the slots
are the same in all versions that are read here. Version 17 knows two more feature bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag

from darwinn_formats import flatbuffer as fb
from darwinn_formats.signatures import IREE_MODULE
from darwinn_formats.uses import Use, uses


class Feature(IntFlag):
    """What a module, or a function, needs of the virtual machine."""

    EXT_F32 = 1
    EXT_F64 = 2
    YIELD = 4
    UNWIND = 8


class Presence(IntFlag):
    """Whether a dependency or an import has to be there."""

    REQUIRED = 1
    OPTIONAL = 2


@uses("AttrDef")
@dataclass(frozen=True, slots=True)
class Attribute:
    """A key and a value of reflection data."""

    key: str = fb.string()
    value: str = fb.string()


@uses("TypeDef")
@dataclass(frozen=True, slots=True)
class TypeDefinition:
    """A type of the module, for example ``!hal.buffer``."""

    full_name: str = fb.string()
    file_offset: int = fb.file_offset()


@uses("FunctionSignatureDef", names={"attributes": "attrs"})
@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """Calling convention of a function and its reflection attributes."""

    calling_convention: str = fb.string()
    attributes: tuple[Attribute, ...] = fb.table_vector(Attribute)
    file_offset: int = fb.file_offset()

    def attribute(self, key: str) -> str | None:
        """Value of an attribute, or None."""
        return next((entry.value for entry in self.attributes if entry.key == key), None)


@uses("ModuleDependencyDef", shown="name minimum_version flags")
@dataclass(frozen=True, slots=True)
class ModuleDependency:
    """A module whose functions are imported."""

    name: str = fb.string()
    minimum_version: int = fb.uint32()
    flags: int = fb.uint32(Presence.REQUIRED)
    file_offset: int = fb.file_offset()


@uses("ImportFunctionDef")
@dataclass(frozen=True, slots=True)
class ImportFunction:
    """A function of another module, by its name with that of the module before it."""

    full_name: str = fb.string()
    signature: FunctionSignature | None = fb.table(FunctionSignature)
    flags: int = fb.uint32(Presence.REQUIRED)
    file_offset: int = fb.file_offset()

    @property
    def optional(self) -> bool:
        """Whether the module loads without the function."""
        return bool(self.flags & Presence.OPTIONAL)


@uses("ExportFunctionDef")
@dataclass(frozen=True, slots=True)
class ExportFunction:
    """A function that others may call; ``internal_ordinal`` counts the function descriptors."""

    local_name: str = fb.string()
    internal_ordinal: int = fb.int32()
    file_offset: int = fb.file_offset()


@uses("UncompressedDataDef", whole=Use.READ)
@dataclass(frozen=True, slots=True)
class UncompressedData:
    """Data that is stored as it is."""


@uses(
    "RodataSegmentDef",
    read="compression_type",
    unions={"compression_type": "CompressionTypeDef"},
)
@dataclass(frozen=True, slots=True)
class RodataSegment:
    """Read-only data, in the flatbuffer or after it.

    ``external_data_offset`` counts from where external data start (see ``container``);
    ``embedded_data`` is preferred where a file has both.
    """

    compression_type: UncompressedData | None = fb.union({1: UncompressedData})
    embedded_data: fb.Span | None = fb.byte_span(alignment=16)
    external_data_offset: int = fb.uint64()
    external_data_length: int = fb.uint64()
    file_offset: int = fb.file_offset()


@uses("RwdataSegmentDef", shown="byte_size")
@dataclass(frozen=True, slots=True)
class RwdataSegment:
    """A reservation of memory; no module that compilers write today has one."""

    byte_size: int = fb.int32()
    file_offset: int = fb.file_offset()


@uses("ModuleStateDef")
@dataclass(frozen=True, slots=True)
class ModuleState:
    """Size of the globals: bytes of the numbers, and how many references."""

    global_bytes_capacity: int = fb.int32()
    global_ref_count: int = fb.int32()
    file_offset: int = fb.file_offset()


@uses(read="reserved", shown="requirements block_count")
@dataclass(frozen=True, slots=True)
class FunctionDescriptor:
    """Where the bytecode of a function is, in bytes, and how many registers it uses."""

    bytecode_offset: int = fb.int32()
    bytecode_length: int = fb.int32()
    requirements: int = fb.uint32()
    reserved: int = fb.int16()
    block_count: int = fb.int16()
    i32_register_count: int = fb.int16()
    ref_register_count: int = fb.int16()


@uses("CallSiteLocDef")
@dataclass(frozen=True, slots=True)
class CallSiteLocation:
    """A location that was inlined; both are indices into the location table."""

    callee: int = fb.int32()
    caller: int = fb.int32()


@uses("FileLineColLocDef")
@dataclass(frozen=True, slots=True)
class FileLocation:
    """A place in a source file."""

    filename: str = fb.string()
    line: int = fb.int32()
    column: int = fb.int32()


@uses("FusedLocDef")
@dataclass(frozen=True, slots=True)
class FusedLocation:
    """Several locations, by their indices."""

    metadata: str | None = fb.string(optional=True)
    locations: tuple[int, ...] = fb.vector(fb.INT32)


@uses("NameLocDef")
@dataclass(frozen=True, slots=True)
class NameLocation:
    """A name that something has in the source."""

    name: str = fb.string()
    child_location: int = fb.int32()


Location = CallSiteLocation | FileLocation | FusedLocation | NameLocation


@uses("BytecodeLocationDef")
@dataclass(frozen=True, slots=True)
class BytecodeLocation:
    """Location, by its index, of the operation at a byte of a function."""

    bytecode_offset: int = fb.int32()
    location: int = fb.int32()


@uses("FunctionSourceMapDef", shown="local_name")
@dataclass(frozen=True, slots=True)
class FunctionSourceMap:
    """Name of a function in the source, and the locations of its operations."""

    local_name: str = fb.string()
    locations: tuple[BytecodeLocation, ...] = fb.struct_vector(BytecodeLocation)
    file_offset: int = fb.file_offset()


@uses("DebugDatabaseDef", unions={"location_table": "LocationTypeDef"})
@dataclass(frozen=True, slots=True)
class DebugDatabase:
    """Locations, and a map for each function; stripped modules have none.

    A location that is not known is None.
    """

    location_table: tuple[Location | None, ...] = fb.union_vector(Location)
    functions: tuple[FunctionSourceMap, ...] = fb.table_vector(FunctionSourceMap)
    file_offset: int = fb.file_offset()


@uses(
    "BytecodeModuleDef",
    names={"attributes": "attrs"},
    shown="name version requirements attributes dependencies rwdata_segments",
)
@fb.file_identifier(IREE_MODULE)
@dataclass(frozen=True, slots=True)
class BytecodeModule:
    """A module of bytecode, as the file stores it."""

    name: str = fb.string(required=True)
    version: int = fb.uint32()
    requirements: int = fb.uint32()
    attributes: tuple[Attribute, ...] = fb.table_vector(Attribute)
    types: tuple[TypeDefinition, ...] = fb.table_vector(TypeDefinition)
    dependencies: tuple[ModuleDependency, ...] = fb.table_vector(ModuleDependency)
    imported_functions: tuple[ImportFunction, ...] = fb.table_vector(ImportFunction)
    exported_functions: tuple[ExportFunction, ...] = fb.table_vector(ExportFunction)
    function_signatures: tuple[FunctionSignature, ...] = fb.table_vector(FunctionSignature)
    rodata_segments: tuple[RodataSegment, ...] = fb.table_vector(RodataSegment)
    rwdata_segments: tuple[RwdataSegment, ...] = fb.table_vector(RwdataSegment)
    module_state: ModuleState | None = fb.table(ModuleState)
    function_descriptors: tuple[FunctionDescriptor, ...] = fb.struct_vector(FunctionDescriptor)
    bytecode_version: int = fb.uint32()
    bytecode_data: fb.Span | None = fb.byte_span(alignment=16)
    debug_database: DebugDatabase | None = fb.table(DebugDatabase)
    file_offset: int = fb.file_offset()
