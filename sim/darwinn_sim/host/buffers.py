"""The buffers of a run: how large they are, and where the chip finds them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from darwinn_formats.darwinn import (
    Buffer,
    Description,
    DmaDescriptorHint,
    Executable,
    Layer,
    buffer_of,
    required_buffers,
)
from darwinn_formats.errors import FormatError
from darwinn_formats.limits import MEMORY, limits

from darwinn_sim.errors import SimulationError
from darwinn_sim.host.interface import AddressMapping
from darwinn_sim.host.memory import PAGE_BYTES, Region
from darwinn_sim.host.registers import PAGE_TABLE_ENTRIES

BUFFER_ALIGNMENT = 64
"""Alignment of the buffers that a client passes in."""

MAX_BUFFER_BYTES = 1 << 28
"""Bytes of all buffers of a run together: far above any model, far below a host's memory."""

MAX_BUFFERS = PAGE_TABLE_ENTRIES
"""Layers of all inferences of a run: each has pages of its own, and the table so many entries."""

PARAMETERS = Buffer(Description.BASE_ADDRESS_PARAMETER, "", 0)


class DriverError(SimulationError):
    """The device or the request is not as the driver needs it."""


class AddressSpace:
    """Extended device addresses, handed out in blocks aligned to their size (a power of two).

    Addresses are relative: bit 63 is added by the driver.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._blocks: list[tuple[int, int]] = []

    def allocate(self, size: int) -> int:
        """The lowest free block for ``size`` bytes; raises ``DriverError`` if none is free."""
        block = PAGE_BYTES
        while block < size:
            block *= 2
        start = 0
        for first, end in self._blocks:
            if start + block <= first:
                break
            start = max(start, -(-end // block) * block)
        if start + block > self._limit:
            raise DriverError(f"no {block} bytes of device address space left")
        self._blocks.insert(bisect_left(self._blocks, (start, 0)), (start, start + block))
        return start

    def reserve(self, start: int, size: int) -> None:
        """Take the pages of exactly ``size`` bytes at ``start``; raises ``DriverError``."""
        first = start // PAGE_BYTES * PAGE_BYTES
        end = -(-(start + size) // PAGE_BYTES) * PAGE_BYTES
        taken = any(low < end and first < high for low, high in self._blocks)
        if taken or end > self._limit:
            raise DriverError(f"device addresses {first:#x} to {end:#x} are not free")
        self._blocks.insert(bisect_left(self._blocks, (first, 0)), (first, end))

    def release(self, start: int) -> None:
        """Give back the block that begins at ``start``."""
        self._blocks = [block for block in self._blocks if block[0] != start]


@dataclass(slots=True)
class MappedBuffer:
    """A host buffer that the chip can reach: ``address`` is the device address of its payload."""

    region: Region
    address: int
    mapping: AddressMapping


@dataclass(slots=True)
class Request:
    """One run of an executable: its buffers, and how many chunks the chip has not completed."""

    executable: Executable
    buffers: dict[Buffer, MappedBuffer] = field(default_factory=dict)
    chunks: list[MappedBuffer] = field(default_factory=list)
    chunks_left: int = 0
    submitted: bool = False
    done: bool = False

    def check_guards(self) -> None:
        """Raise ``MemoryFault`` if a byte around one of its buffers has been written."""
        for mapped in (*self.buffers.values(), *self.chunks):
            mapped.region.check_guards()


def layer_bytes(layer: Layer) -> int:
    """Bytes of a layer's buffer for one inference: all its executions."""
    return layer.size_bytes * max(1, layer.execution_count_per_inference)


def batches_of(executable: Executable) -> int:
    """Inferences in one run of ``executable``, each with buffers of its own.

    Raises:
        FormatError: they need more than ``MAX_BUFFERS``; a few bytes of a file could ask for any
            number.
    """
    batches = max(1, executable.batch_size)
    layers = len(executable.input_layers) + len(executable.output_layers)
    if batches * max(1, layers) > MAX_BUFFERS:
        raise FormatError(
            "Executable.batch_size",
            f"{batches} inferences of {layers} layers in a run need more than "
            f"{MAX_BUFFERS} buffers",
        )
    return batches


def buffer_sizes(executable: Executable) -> dict[Buffer, int]:
    """Bytes of each buffer that a run of ``executable`` needs, for all batches.

    Field offsets, hints, layers, parameters and the scratch size are all asked, since none of them
    alone names everything: hints may cover the run in part, and a hint may read past a layer's end.
    Raises ``FormatError`` as ``batches_of``, for a negative size, and for more than
    ``MAX_BUFFER_BYTES``, or the limit of memory, in all.
    """
    batches = batches_of(executable)
    sizes = required_buffers(executable)
    declared = {
        PARAMETERS: len(executable.parameters),
        Buffer(Description.BASE_ADDRESS_SCRATCH, "", 0): executable.scratch_size_bytes,
    }
    for batch in range(batches):
        for description, layers in (
            (Description.BASE_ADDRESS_INPUT_ACTIVATION, executable.input_layers),
            (Description.BASE_ADDRESS_OUTPUT_ACTIVATION, executable.output_layers),
        ):
            declared |= {
                Buffer(description, layer.name, batch): layer_bytes(layer) for layer in layers
            }
    needs = [*declared.items(), *_hinted(executable)]
    for buffer, size in needs:
        if size < 0:
            raise FormatError(buffer.desc.name, f"buffer {buffer.name!r} has {size} bytes")
        sizes[buffer] = max(size, sizes.get(buffer, 0))
    total = sum(sizes.values())
    allowed, option = MAX_BUFFER_BYTES, ""
    if limits().memory < allowed:
        allowed, option = limits().memory, f" ({MEMORY})"
    if total > allowed:
        largest = max(sizes, key=sizes.__getitem__)
        raise FormatError(
            largest.desc.name,
            f"buffer {largest.name!r} has {sizes[largest]} bytes; all buffers of a run together "
            f"may have {allowed}{option}",
        )
    return sizes


def _hinted(executable: Executable) -> Iterator[tuple[Buffer, int]]:
    """The buffer of each hint, and where in it the hinted transfer ends."""
    for hint in executable.dma_hints.hints:
        what = hint.any_hint
        if isinstance(what, DmaDescriptorHint):
            yield buffer_of(what.meta), what.offset_in_bytes + what.size_in_bytes
