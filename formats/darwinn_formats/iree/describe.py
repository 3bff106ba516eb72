"""What is in a module, as data that JSON can hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

from darwinn_formats.iree.elf import read_elf
from darwinn_formats.iree.listing import feature_names
from darwinn_formats.iree.loader import VmfbFile
from darwinn_formats.iree.module import Function, Module


def describe(file: VmfbFile) -> dict[str, Any]:
    """What is in a loaded file, nested modules within the segment that holds them."""
    return {
        "format": "iree-vmfb",
        "file": file.file,
        "size": file.size,
        "sha256": file.sha256,
        "module": _module(file.module),
    }


def _module(module: Module) -> dict[str, Any]:
    definition, state = module.definition, module.definition.module_state
    major, minor = module.bytecode_version
    return {
        "name": module.name,
        "version": definition.version,
        "container": module.container.kind,
        "bytecode_version": f"{major}.{minor}",
        "requirements": feature_names(definition.requirements),
        "attributes": {entry.key: entry.value for entry in definition.attributes},
        "types": [entry.full_name for entry in definition.types],
        "dependencies": [
            {"name": entry.name, "minimum_version": entry.minimum_version, "flags": entry.flags}
            for entry in definition.dependencies
        ],
        "imports": [
            {
                "name": entry.full_name,
                "convention": entry.signature.calling_convention if entry.signature else "",
                "optional": entry.optional,
            }
            for entry in definition.imported_functions
        ],
        "exports": [
            {"name": name, **_function(function)} for name, function in module.exports.items()
        ],
        "globals": {
            "bytes": 0 if state is None else state.global_bytes_capacity,
            "references": 0 if state is None else state.global_ref_count,
        },
        "rodata": [_segment(module, ordinal) for ordinal in range(len(module.rodata))],
        "rwdata": [entry.byte_size for entry in definition.rwdata_segments],
        "debug_database": _debug_database(module),
        "functions": [
            {"name": function.name, **_function(function)} for function in module.functions
        ],
        "operations": dict(sorted(_operations(module).items())),
    }


def _function(function: Function) -> dict[str, Any]:
    descriptor = function.descriptor
    return {
        "ordinal": function.ordinal,
        "convention": None if function.convention is None else function.convention.text,
        "attributes": dict(function.attributes),
        "bytes": len(function.body),
        "offset": function.body.offset,
        "blocks": descriptor.block_count,
        "registers": descriptor.i32_register_count,
        "reference_registers": descriptor.ref_register_count,
        "requirements": feature_names(descriptor.requirements),
    }


def _segment(module: Module, ordinal: int) -> dict[str, Any]:
    data = module.rodata[ordinal]
    stored = module.definition.rodata_segments[ordinal]
    told: dict[str, Any] = {
        "ordinal": ordinal,
        "bytes": len(data),
        "offset": data.offset,
        "external": stored.embedded_data is None,
    }
    if ordinal in module.nested:
        told["module"] = _module(module.nested[ordinal])
    elif (elf := read_elf(data.data)) is not None:
        told["elf"] = {"machine": elf.machine, "type": elf.type, "bits": elf.bits}
    return told


def _debug_database(module: Module) -> dict[str, Any] | None:
    database = module.definition.debug_database
    if database is None:
        return None
    return {
        "locations": len(database.location_table),
        "source_maps": {entry.local_name: len(entry.locations) for entry in database.functions},
    }


def _operations(module: Module) -> Counter[str]:
    return Counter(
        instruction.mnemonic
        for function in module.functions
        for instruction in function.instructions()
    )
