"""Relocation: the base addresses that a driver writes into the instructions before it runs them.

A field offset names a 32-bit field of a chunk, the buffer whose address goes there, and which
half of the address. The rules are those that the runtime's linker keeps, see
docs/formats-darwinn.md, "Relocation".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from darwinn_formats.darwinn.bundle import IMMEDIATE_BIT, relocation_fault
from darwinn_formats.darwinn.schema import (
    Description,
    DmaDescriptorHint,
    Executable,
    FieldOffset,
    InstructionBitstream,
    Layer,
    Meta,
    Position,
)
from darwinn_formats.errors import FormatError

_FIELD_BITS = 32
_ADDRESS_LIMIT = 1 << 64


class Buffer(NamedTuple):
    """A buffer in host memory; ``name`` is that of the layer.

    Parameters and scratch have the name "" and the batch 0.
    """

    desc: Description
    name: str
    batch: int


def required_buffers(executable: Executable) -> dict[Buffer, int]:
    """Sizes in bytes of all buffers that the instructions or the DMA hints name.

    An activation has the padded size of its layer, for all executions of one inference.

    Raises:
        FormatError: when a name is not that of a layer, or a batch not of the executable.
    """
    named = [(f"{path}.meta", field.meta, field.file_offset) for path, field in _fields(executable)]
    named += [
        (f"dma_hints.hints[{index}].any_hint.meta", hint.any_hint.meta, hint.file_offset)
        for index, hint in enumerate(executable.dma_hints.hints)
        if isinstance(hint.any_hint, DmaDescriptorHint)
    ]
    sizes: dict[Buffer, int] = {}
    for path, meta, offset in named:
        try:
            buffer = buffer_of(meta)
            if buffer not in sizes:
                sizes[buffer] = _size(executable, buffer)
        except FormatError as error:
            error.offset = offset
            raise error.within(f"Executable.{path}") from None
    return sizes


def buffer_of(meta: Meta) -> Buffer:
    """The buffer that linker metadata name.

    Raises:
        FormatError: when parameters or scratch have a name or a batch.
    """
    if meta.desc in _LAYERS:
        return Buffer(meta.desc, meta.name or "", meta.batch)
    if meta.name:
        raise FormatError("name", f"{meta.desc.name} has the name {meta.name!r}")
    if meta.batch:
        raise FormatError("batch", f"{meta.desc.name} has the batch {meta.batch}")
    return Buffer(meta.desc, "", 0)


def link(executable: Executable, addresses: Mapping[Buffer, int]) -> tuple[bytes, ...]:
    """Instruction chunks with the base addresses in their fields.

    Args:
        executable: the program.
        addresses: address of each buffer, 64 bits; a buffer of size 0 needs none and takes 0.

    Raises:
        FormatError: when a field is not the zero immediate of a scalar move, when two fields are
            the same, or when an address is missing or too large.
    """
    sizes = required_buffers(executable)
    return tuple(
        _link_chunk(f"Executable.instruction_bitstreams[{index}]", chunk, sizes, addresses)
        for index, chunk in enumerate(executable.instruction_bitstreams)
    )


def _link_chunk(
    path: str,
    chunk: InstructionBitstream,
    sizes: Mapping[Buffer, int],
    addresses: Mapping[Buffer, int],
) -> bytes:
    patched = bytearray(chunk.bitstream)
    seen: set[int] = set()
    for number, field in enumerate(chunk.field_offsets):
        reason = relocation_fault(chunk.bitstream, field.offset_bit)
        if field.offset_bit in seen:
            reason = f"bit {field.offset_bit} is patched twice"
        if reason is not None:
            raise FormatError(
                f"{path}.field_offsets[{number}].offset_bit", reason, offset=field.file_offset
            )
        seen.add(field.offset_bit)
        address = _address(buffer_of(field.meta), sizes, addresses)
        if field.meta.position is Position.UPPER_32BIT:
            address >>= _FIELD_BITS
        _patch(patched, field.offset_bit, address & (1 << _FIELD_BITS) - 1)
    return bytes(patched)


def _address(buffer: Buffer, sizes: Mapping[Buffer, int], addresses: Mapping[Buffer, int]) -> int:
    address = addresses.get(buffer)
    if address is None and not sizes[buffer]:
        return 0
    if address is None:
        raise FormatError("addresses", f"no address is given for {buffer}")
    if not 0 <= address < _ADDRESS_LIMIT:
        raise FormatError("addresses", f"{address:#x} of {buffer} has not 64 bits")
    return address


_LAYERS = (
    Description.BASE_ADDRESS_INPUT_ACTIVATION,
    Description.BASE_ADDRESS_OUTPUT_ACTIVATION,
)


def _fields(executable: Executable) -> Iterator[tuple[str, FieldOffset]]:
    for index, chunk in enumerate(executable.instruction_bitstreams):
        for number, field in enumerate(chunk.field_offsets):
            yield f"instruction_bitstreams[{index}].field_offsets[{number}]", field


def _size(executable: Executable, buffer: Buffer) -> int:
    if buffer.desc is Description.BASE_ADDRESS_PARAMETER:
        return len(executable.parameters)
    if buffer.desc is Description.BASE_ADDRESS_SCRATCH:
        return executable.scratch_size_bytes
    if not 0 <= buffer.batch < max(executable.batch_size, 1):
        raise FormatError("batch", f"batch {buffer.batch} of {executable.batch_size}")
    is_input = buffer.desc is Description.BASE_ADDRESS_INPUT_ACTIVATION
    layers: tuple[Layer, ...] = executable.input_layers if is_input else executable.output_layers
    for layer in layers:
        if layer.name == buffer.name:
            return layer.size_bytes * layer.execution_count_per_inference
    what = "input" if is_input else "output"
    raise FormatError("name", f"the executable has no {what} layer {buffer.name!r}")


def _patch(chunk: bytearray, offset_bit: int, value: int) -> None:
    """Write 32 bits into a field that holds zeros."""
    shift = IMMEDIATE_BIT % 8
    start = offset_bit // 8
    held = int.from_bytes(chunk[start : start + 5], "little")
    chunk[start : start + 5] = (held | value << shift).to_bytes(5, "little")
