"""A summary of a DarwiNN file that a person, or a program that reads JSON, can use."""

from __future__ import annotations

import math
from typing import Any

from darwinn_formats.darwinn.bundle import BUNDLE_BITS, BUNDLE_BYTES, chunk_bytes
from darwinn_formats.darwinn.link import required_buffers
from darwinn_formats.darwinn.loader import CustomOperator, DarwinnFile
from darwinn_formats.darwinn.schema import (
    DmaDescriptorHint,
    DmaHint,
    Executable,
    FenceHint,
    FieldOffset,
    InstructionBitstream,
    InstructionHint,
    InterruptHint,
    Layer,
    Meta,
    OutputLayer,
    Package,
    TensorShape,
)
from darwinn_formats.errors import FormatError

Summary = dict[str, Any]
"""JSON-able: texts, numbers, truth values, None, lists and dictionaries of these."""


def describe(file: DarwinnFile) -> Summary:
    """Packages, executables, layers, DMA hints and relocations of a file, without the data.

    Sizes are in bytes, tokens and digests in hexadecimal; bit and bundle numbers count from the
    start of a chunk. Models name their executables by index in ``executables``, the order of
    ``DarwinnFile.executables``.
    """
    executables = file.executables
    index = {id(executable): number for number, executable in enumerate(executables)}
    return {
        "file": file.file,
        "kind": file.kind,
        "sha256": file.sha256,
        "size": file.size,
        "operators": [_operator(operator) for operator in file.operators],
        "packages": [_package(package, index) for package in file.packages],
        "executables": [_executable(executable) for executable in executables],
        "models": [
            {
                "inference": index[id(model.inference)],
                "caching": None if model.caching is None else index[id(model.caching)],
                "token": f"{model.token:#018x}",
            }
            for model in file.models
        ],
        "stream": None if file.stream is None else _stream(file.stream),
    }


def _operator(operator: CustomOperator) -> Summary:
    return {
        "subgraph": operator.subgraph,
        "operator": operator.operator,
        "version": operator.version,
        "execution_preference": operator.execution_preference,
        "chip_versions": list(operator.chip_versions),
        "packages": len(operator.packages),
        "deprecated_chip_name": operator.deprecated_chip_name,
        "deprecated_bytes": operator.deprecated_bytes,
    }


def _package(package: Package, index: dict[int, int]) -> Summary:
    return {
        "min_runtime_version": package.min_runtime_version,
        "compiler_version": package.compiler_version,
        "keypair_version": package.keypair_version,
        "virtual_chip_id": package.virtual_chip_id,
        "model_identifier": package.model_identifier,
        "signature_bytes": len(package.signature),
        "executables": [index[id(executable)] for executable in package.executables],
        "multi_chip": [_package(inner, index) for inner in package.multi_chip],
    }


def _executable(executable: Executable) -> Summary:
    return {
        "name": executable.name,
        "type": executable.type.name,
        "version": executable.version,
        "chip": executable.chip,
        "token": f"{executable.parameter_caching_token:#018x}",
        "batch_size": executable.batch_size,
        "parameter_bytes": len(executable.parameters),
        "scratch_bytes": executable.scratch_size_bytes,
        "serialized_model_bytes": len(executable.serialized_model),
        "used_narrow_memory_bytes_per_tile": executable.used_narrow_memory_bytes_per_tile,
        "use_tpu_dram_for_parameters": executable.use_tpu_dram_for_parameters,
        "estimated_cycles": executable.estimated_cycles,
        "estimated_cycles_64bit": executable.estimated_cycles_64bit,
        "chunks": [_chunk(chunk) for chunk in executable.instruction_bitstreams],
        "inputs": [_layer(layer) for layer in executable.input_layers],
        "outputs": [_layer(layer) for layer in executable.output_layers],
        "buffers": _buffers(executable),
        "dma_fully_deterministic": executable.dma_hints.fully_deterministic,
        "dma_hints": [_hint(hint) for hint in executable.dma_hints.hints],
    }


def _chunk(chunk: InstructionBitstream) -> Summary:
    return {
        "bytes": len(chunk.bitstream),
        "bundles": len(chunk.bitstream) // BUNDLE_BYTES,
        "relocations": [_relocation(field) for field in chunk.field_offsets],
    }


def _relocation(field: FieldOffset) -> Summary:
    return {
        "bit": field.offset_bit,
        "bundle": field.offset_bit // BUNDLE_BITS,
        "position": field.meta.position.name,
        **_meta(field.meta),
    }


def _meta(meta: Meta) -> Summary:
    return {"base": meta.desc.name, "name": meta.name or "", "batch": meta.batch}


def _layer(layer: Layer) -> Summary:
    numerics = layer.numerics
    output = layer.any_layer if isinstance(layer.any_layer, OutputLayer) else None
    shape_info = None if output is None else output.shape_info
    layout = None if output is None else output.layout
    return {
        "name": layer.name,
        "bytes": layer.size_bytes,
        "dimensions": {"y": layer.y_dim, "x": layer.x_dim, "z": layer.z_dim},
        "shape": _shape(layer.shape),
        "data_type": layer.data_type.name,
        "zero_point": None if numerics is None else numerics.zero_point,
        "scale": None if numerics is None else _number(numerics.dequantization_factor),
        "executions": layer.execution_count_per_inference,
        "cache_on_dram": layer.cache_on_dram,
        "tiles": None if layout is None else len(layout.linearized_tile_byte_offset),
        "slices": None if shape_info is None else len(shape_info.slice_layout),
    }


def _shape(shape: TensorShape | None) -> list[list[int]] | None:
    return None if shape is None else [[entry.start, entry.end] for entry in shape.dimension]


def _number(value: float) -> float | str:
    """A float; JSON has no NaN and no infinity, so these are text."""
    return value if math.isfinite(value) else str(value)


def _buffers(executable: Executable) -> list[Summary]:
    """Host buffers; none when the names of the executable do not fit its layers."""
    try:
        sizes = required_buffers(executable)
    except FormatError:
        return []
    return [
        {"base": buffer.desc.name, "name": buffer.name, "batch": buffer.batch, "bytes": size}
        for buffer, size in sizes.items()
    ]


def _hint(hint: DmaHint) -> Summary:
    held = hint.any_hint
    summary: Summary = {"direction": hint.direction.name, "kind": _KINDS[type(held)]}
    if isinstance(held, DmaDescriptorHint):
        offset, size = held.offset_in_bytes, held.size_in_bytes
        summary |= {**_meta(held.meta), "offset": offset, "bytes": size}
    elif isinstance(held, InstructionHint):
        summary["chunk"] = held.instruction_chunk_index
    elif isinstance(held, InterruptHint):
        summary["interrupt"] = int(held.type)
    return summary


_KINDS: dict[type[Any], str] = {
    DmaDescriptorHint: "descriptor",
    InstructionHint: "instructions",
    InterruptHint: "interrupt",
    FenceHint: "fence",
    type(None): "none",
}


def _stream(stream: bytes) -> Summary:
    chunks, start = [], 0
    while start < len(stream):
        size = chunk_bytes(stream, start) or len(stream) - start
        chunks.append({"offset": start, "bytes": size, "bundles": size // BUNDLE_BYTES})
        start += size
    return {"chunks": chunks}
