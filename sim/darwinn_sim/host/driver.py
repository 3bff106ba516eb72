"""The host's side of the PCIe attachment: what user-space and kernel driver do, in small.

It opens the device by the register sequence of the real driver, maps buffers through both kinds of
device address, links an executable to them, submits one descriptor for each instruction chunk, and
recognises completion by the interrupt count and the completed head. Facts: docs/host-interface.md,
section "Driver".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from darwinn_formats.darwinn import (
    Buffer,
    Description,
    Executable,
    Layer,
    link,
)
from darwinn_formats.errors import FormatError
from numpy.typing import NDArray

from darwinn_sim.errors import SimulationError
from darwinn_sim.host.buffers import (
    BUFFER_ALIGNMENT,
    PARAMETERS,
    AddressSpace,
    DriverError,
    MappedBuffer,
    Request,
    batches_of,
    buffer_sizes,
    layer_bytes,
)
from darwinn_sim.host.dma_trace import KIND_OF_DESCRIPTION, TransferKind
from darwinn_sim.host.interface import (
    DESCRIPTOR_BYTES,
    STATUS_BLOCK_BYTES,
    AddressMapping,
    HostInterface,
)
from darwinn_sim.host.interrupts import set_up_vectors
from darwinn_sim.host.memory import PAGE_BYTES, HostMemory, Region, pages_of
from darwinn_sim.host.mmu import EXTENDED_BIT, PAGE_SHIFT, SECOND_LEVEL_ENTRIES, VALID, by_table
from darwinn_sim.host.registers import PAGE_TABLE_ENTRIES, RUN_CONTROLS, register
from darwinn_sim.host.run_controls import HALT, RUN

SIMPLE_ENTRIES = 6144
"""Entries of the page table that the real driver gives to simple addresses."""

QUEUE_ENTRIES = 256
"""Descriptors in the ring of the instruction queue."""

QUEUE_ADDRESS = 0x0100_0000
"""Device address of the ring (simple); the status block is in the page after it."""
STATUS_BLOCK_ADDRESS = QUEUE_ADDRESS + PAGE_BYTES

EXTENDED_BYTES = 1 << 32
"""The real driver keeps extended addresses within 4 GiB."""

ALL_TILES = 0x7F
_ALL_HOST_INTERRUPTS = 0xF
_COUNTER_MODULUS = 1 << 16

Placement = Callable[[Buffer, int], int | None]
"""Chooses a device address for a buffer of a size in bytes; None leaves it to the driver."""


class Driver:
    """Opens the device behind ``host`` and runs requests on it, one after another or queued.

    Args:
        host: the device.
        memory: the host's, which the device reaches.
        seed: contents of destinations before the run, page orders and page offsets of buffers.
        scatter: put the pages of a buffer in any order on the bus, as a kernel finds them.
        simple_entries: page table entries for simple addresses.
        place: device addresses for chosen buffers, e.g. across a 4 GiB boundary.
    """

    def __init__(
        self,
        host: HostInterface,
        memory: HostMemory,
        *,
        seed: int = 0,
        scatter: bool = True,
        simple_entries: int = SIMPLE_ENTRIES,
        place: Placement | None = None,
    ) -> None:
        self._host = host
        self._memory = memory
        self._random = np.random.default_rng(seed)
        self._scatter = scatter
        self._simple_entries = simple_entries
        self._place = place
        self._tables: dict[int, Region] = {}
        self._rings: tuple[Region, Region] | None = None
        """The ring of descriptors and the status block, while the device is open."""
        self._interrupts_left = 0
        self._in_flight: list[Request] = []

    # Registers.

    def _read(self, name: str) -> int:
        return self._host.registers.read(register(name).offset)

    def _write(self, name: str, value: int) -> None:
        self._host.registers.write(register(name).offset, value)

    def _expect(self, name: str, value: int) -> None:
        """Poll a register; the model answers at once, so another value would never change."""
        found = self._read(name)
        if found != value:
            raise DriverError(f"{name} is {found:#x} where the driver waits for {value:#x}")

    def _control_units(self, command: int) -> None:
        core = [unit for unit, run in RUN_CONTROLS.items() if run.status is not None]
        tiles = [unit for unit, run in RUN_CONTROLS.items() if run.status is None]
        for unit in core:
            self._write(f"{unit}_run_control", command)
        self._write("tileconfig0", ALL_TILES)
        self._expect("tileconfig0", ALL_TILES)
        for unit in tiles:
            self._write(f"{unit}_run_control", command)

    # Open and close.

    def open(self) -> None:
        """Reset the device and bring it up; raises ``DriverError`` if it does not behave."""
        if self._rings is not None:
            raise DriverError("the device is open already")
        self._host.reset()
        set_up_vectors(self._write)
        self._expect("hib_error_status", 0)
        self._write("dma_burst_limiter", 0)
        self._partition()
        self._expect("instruction_queue_descriptor_size", DESCRIPTOR_BYTES)
        self._set_up_queue()
        self._interrupt_count = self._read("sc_host_int_count") % _COUNTER_MODULUS
        self._control_units(RUN)
        self._write("status_block_update", 0)
        self._write("sc_host_int_control", _ALL_HOST_INTERRUPTS)
        self._write("instruction_queue_int_control", 1)
        self._write("fatal_err_int_control", 1)

    def _partition(self) -> None:
        self._write("extended_table", self._simple_entries)
        extended = (PAGE_TABLE_ENTRIES - self._simple_entries) * SECOND_LEVEL_ENTRIES * PAGE_BYTES
        # Beyond the real driver's 4 GiB only if the partition was widened to get there.
        widened = self._simple_entries < SIMPLE_ENTRIES
        self._space = AddressSpace(extended if widened else min(extended, EXTENDED_BYTES))

    def _set_up_queue(self) -> None:
        queue = self._memory.allocate("instruction queue", QUEUE_ENTRIES * DESCRIPTOR_BYTES)
        status = self._memory.allocate("status block", STATUS_BLOCK_BYTES)
        self._rings = queue, status
        for region, address in ((queue, QUEUE_ADDRESS), (status, STATUS_BLOCK_ADDRESS)):
            region.store(bytes(region.size))
            self._write_entry(address >> PAGE_SHIFT, int(region.page_addresses[0]) | VALID)
        self._tail = self._completed_head = 0
        self._write("instruction_queue_base", QUEUE_ADDRESS)
        self._write("instruction_queue_status_block_base", STATUS_BLOCK_ADDRESS)
        self._write("instruction_queue_size", QUEUE_ENTRIES)
        control = register("instruction_queue_control")
        self._write(
            "instruction_queue_control",
            control.field("enable").mask | control.field("status_block_enable").mask,
        )
        self._expect("instruction_queue_status", 1)

    def close(self) -> None:
        """Stop the device and take everything back; requests in flight are given up."""
        queue, status = self._opened()
        self._write("dma_pause", 1)
        self._expect("dma_paused", 1)
        self._control_units(HALT)
        for name in (
            "sc_host_int_control",
            "instruction_queue_int_control",
            "fatal_err_int_control",
            "instruction_queue_control",
        ):
            self._write(name, 0)
        self._expect("instruction_queue_status", 0)
        for name in (
            "instruction_queue_tail",
            "instruction_queue_base",
            "instruction_queue_status_block_base",
        ):
            self._write(name, 0)
        for request in self._in_flight:
            self._unmap_all(request)
        self._in_flight.clear()
        for address in (QUEUE_ADDRESS, STATUS_BLOCK_ADDRESS):
            self._write_entry(address >> PAGE_SHIFT, 0)
        for entry, table in self._tables.items():
            self._write_entry(entry, 0)
            self._memory.release(table)
        self._tables.clear()
        for region in (queue, status):
            region.check_guards()
            self._memory.release(region)
        self._rings = None

    def _opened(self) -> tuple[Region, Region]:
        if self._rings is None:
            raise DriverError("the device is not open")
        return self._rings

    # Page table.

    def _write_entry(self, index: int, value: int) -> None:
        table = register("page_table")
        self._host.registers.write(table.offset + 8 * index, value)

    def _set_pages(self, address: int, entries: NDArray[np.uint64]) -> None:
        """Write the second-level entries of the extended pages from ``address`` on."""
        page = (address & ~EXTENDED_BIT) >> PAGE_SHIFT
        done = 0
        for directory, within, count in by_table(page, entries.size):
            part = entries[done : done + count]
            self._table(directory).store(part.astype("<u8").tobytes(), 8 * within)
            done += count

    def _table(self, directory: int) -> Region:
        """The second-level table number ``directory``, made when it is first needed."""
        entry = self._simple_entries + directory
        if entry not in self._tables:
            table = self._memory.allocate(f"page table {directory}", PAGE_BYTES)
            table.store(bytes(PAGE_BYTES))
            self._tables[entry] = table
            self._write_entry(entry, int(table.page_addresses[0]) | VALID)
        return self._tables[entry]

    # Buffers.

    def _page_order(self, pages: int) -> NDArray[np.intp] | None:
        return self._random.permutation(pages) if self._scatter and pages > 1 else None

    def _map(
        self,
        name: str,
        size: int,
        kind: TransferKind,
        *,
        buffer: Buffer | None = None,
        chunk: int = 0,
        aligned: bool = True,
    ) -> MappedBuffer:
        """Allocate ``size`` bytes and map them at extended addresses."""
        wanted = self._place(buffer, size) if self._place and buffer else None
        if wanted is not None:
            relative = wanted & ~EXTENDED_BIT
            offset = relative % PAGE_BYTES
            self._space.reserve(relative, size)
        else:
            slots = 1 if aligned else PAGE_BYTES // BUFFER_ALIGNMENT
            offset = BUFFER_ALIGNMENT * int(self._random.integers(slots))
            relative = self._space.allocate(offset + size) + offset
        order = self._page_order(pages_of(offset, size))
        region = self._memory.allocate(name, size, page_offset=offset, page_order=order)
        address = EXTENDED_BIT | relative
        self._set_pages(address, region.page_addresses | np.uint64(VALID))
        mapping = AddressMapping(address, size, kind, buffer, chunk)
        self._host.mappings.add(mapping)
        return MappedBuffer(region, address, mapping)

    def _unmap(self, mapped: MappedBuffer) -> None:
        relative = mapped.address & ~EXTENDED_BIT
        self._set_pages(mapped.address, np.zeros(mapped.region.page_addresses.size, np.uint64))
        self._space.release(relative // PAGE_BYTES * PAGE_BYTES)
        self._host.mappings.remove(mapped.mapping)
        self._memory.release(mapped.region)

    def _unmap_all(self, request: Request) -> None:
        for mapped in (*request.buffers.values(), *request.chunks):
            self._unmap(mapped)
        request.buffers.clear()
        request.chunks.clear()

    # Requests.

    def prepare(self, executable: Executable, inputs: Mapping[str, bytes]) -> Request:
        """Map and fill the buffers of one run, and link the program to them.

        ``inputs`` holds for each input layer its bytes in device order, all executions and batches
        one after another. Destinations (outputs, scratch) hold arbitrary bytes from the seed.
        Raises ``DriverError`` for missing, unknown or wrongly sized inputs, and ``FormatError``
        from the linker.
        """
        self._opened()
        sources = _split_inputs(executable, inputs)
        sources[PARAMETERS] = bytes(executable.parameters)
        request = Request(executable)
        try:
            self._map_request(request, sources)
        except (SimulationError, FormatError):
            self._unmap_all(request)
            raise
        return request

    def _map_request(self, request: Request, sources: Mapping[Buffer, bytes]) -> None:
        addresses = {}
        for buffer, size in buffer_sizes(request.executable).items():
            if size:
                request.buffers[buffer] = self._map_buffer(buffer, size, sources.get(buffer))
            addresses[buffer] = request.buffers[buffer].address if size else 0
        for index, chunk in enumerate(link(request.executable, addresses)):
            mapped = self._map(
                f"instruction chunk {index}", len(chunk), TransferKind.INSTRUCTION, chunk=index
            )
            mapped.region.store(chunk)
            request.chunks.append(mapped)

    def _map_buffer(self, buffer: Buffer, size: int, source: bytes | None) -> MappedBuffer:
        kind = KIND_OF_DESCRIPTION[buffer.desc]
        name = f"{kind.value} {buffer.name} {buffer.batch}" if buffer.name else kind.value
        client = buffer.desc == Description.BASE_ADDRESS_INPUT_ACTIVATION
        mapped = self._map(name, size, kind, buffer=buffer, aligned=not client)
        if source is None:
            mapped.region.payload[:] = self._random.integers(0, 256, size, np.uint8)
            if kind is TransferKind.OUTPUT:
                mapped.region.follow()
        else:
            # A program may read a little past the tensor's end: those bytes are there, and 0.
            mapped.region.store(source.ljust(size, b"\0"))
        return mapped

    def submit(self, request: Request) -> None:
        """Queue a descriptor for each chunk of ``request`` and ring the doorbell after each.

        Raises ``DriverError`` if the ring has no room, or the request was submitted before.
        """
        queue, _ = self._opened()
        if request.submitted:
            raise DriverError("the request was submitted before")
        used = (self._tail - self._completed_head) % QUEUE_ENTRIES
        if used + len(request.chunks) >= QUEUE_ENTRIES:
            raise DriverError(f"no room for {len(request.chunks)} chunks in the instruction queue")
        request.submitted = True
        request.chunks_left = len(request.chunks)
        self._in_flight.append(request)
        for chunk in request.chunks:
            descriptor = np.array([chunk.address, chunk.region.size], "<u8")
            queue.store(descriptor.tobytes(), DESCRIPTOR_BYTES * self._tail)
            self._tail = (self._tail + 1) % QUEUE_ENTRIES
            self._write("instruction_queue_tail", self._tail)

    def poll(self) -> bool:
        """Take note of what the device has signalled; True when no request is in flight.

        A request is done when all its chunks have been completed and host interrupt 0 has come.
        Raises ``DriverError`` for an interrupt that no request in flight accounts for.
        """
        _, status = self._opened()
        self._write("instruction_queue_int_status", 0)
        head = int(status.payload[:4].view("<u4")[0])
        chunks = (head - self._completed_head) % QUEUE_ENTRIES
        self._completed_head = head
        # The status is cleared before the count is read, so that no interrupt is lost.
        self._write("sc_host_int_status", _ALL_HOST_INTERRUPTS & ~1)
        count = self._read("sc_host_int_count") % _COUNTER_MODULUS
        self._interrupts_left += (count - self._interrupt_count) % _COUNTER_MODULUS
        self._interrupt_count = count
        for request in self._in_flight:
            taken = min(chunks, request.chunks_left)
            request.chunks_left -= taken
            chunks -= taken
        while self._in_flight and self._interrupts_left and not self._in_flight[0].chunks_left:
            self._interrupts_left -= 1
            self._in_flight.pop(0).done = True
        if self._interrupts_left and not self._in_flight:
            raise DriverError(f"{self._interrupts_left} host interrupts 0 without a request")
        return not self._in_flight

    def finish(self, request: Request) -> dict[str, bytes]:
        """The outputs of a request that is done, by layer name; its buffers are unmapped.

        Each output is in device order: exactly the layer's bytes, executions and batches one after
        another. Raises ``DriverError`` if the request is not done and ``MemoryFault`` if a byte
        around one of its buffers was written.
        """
        self.poll()
        if not request.done:
            waiting = "; ".join(self._host.waiting()) or "nothing is in flight"
            raise DriverError(f"the device has not signalled completion of the request: {waiting}")
        request.check_guards()
        outputs = {
            layer.name: b"".join(
                _output_bytes(request, layer, batch)
                for batch in range(batches_of(request.executable))
            )
            for layer in request.executable.output_layers
        }
        self._unmap_all(request)
        return outputs


def _output_bytes(request: Request, layer: Layer, batch: int) -> bytes:
    buffer = Buffer(Description.BASE_ADDRESS_OUTPUT_ACTIVATION, layer.name, batch)
    if buffer not in request.buffers:
        return b""
    return request.buffers[buffer].region.payload[: layer_bytes(layer)].tobytes()


def _split_inputs(executable: Executable, inputs: Mapping[str, bytes]) -> dict[Buffer, bytes]:
    """The bytes of each input buffer; raises ``DriverError`` for what does not fit the layers, and
    ``FormatError`` as ``batches_of``.
    """
    layers = {layer.name: layer for layer in executable.input_layers}
    wrong = layers.keys() ^ inputs.keys()
    if wrong:
        raise DriverError(
            f"inputs {sorted(inputs)} given where the executable has {sorted(layers)}"
        )
    batches = batches_of(executable)
    parts: dict[Buffer, bytes] = {}
    for name, layer in layers.items():
        size = layer_bytes(layer)
        if len(inputs[name]) != size * batches:
            raise DriverError(
                f"input {name!r} has {len(inputs[name])} bytes, the executable needs "
                f"{size * batches}"
            )
        for batch in range(batches):
            buffer = Buffer(Description.BASE_ADDRESS_INPUT_ACTIVATION, name, batch)
            parts[buffer] = inputs[name][batch * size : (batch + 1) * size]
    return parts
