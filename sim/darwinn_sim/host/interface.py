"""The host interface of the chip, attached by PCIe: instruction queue, DMA engine, interrupts.

The host fills a ring of descriptors, one for each instruction chunk, and moves the tail. The chip
fetches the chunks through its page table. Everything else is moved because the program says so:
the scalar core issues descriptors of a tag, a device address and a size. Facts and the choices made
where they are silent: docs/host-interface.md.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from darwinn_formats.darwinn import Buffer
from numpy.typing import NDArray

from darwinn_sim.errors import MemoryFault
from darwinn_sim.host.attachment import Hold, at_once
from darwinn_sim.host.descriptors import (
    KIND_OF_TAG,
    STREAMS,
    DescriptorFault,
    Owed,
    check,
    refuse_length_0,
    waiting_texts,
)
from darwinn_sim.host.dma_trace import Transfer, TransferDirection, TransferKind
from darwinn_sim.host.interrupts import InterruptController, InterruptMessage
from darwinn_sim.host.memory import BusMemory
from darwinn_sim.host.mmu import Mmu
from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.registers import RegisterFault, register
from darwinn_sim.host.run_controls import install_run_controls, scalar_core_runs
from darwinn_sim.isa.codes import DescriptorTag

DESCRIPTOR_BYTES = 16
"""Bytes of a descriptor of the instruction queue: u64 address, u32 size, u32 zero."""

STATUS_BLOCK_BYTES = 16
"""Bytes of the status block: u32 completed head, u32 fatal error, u64 zero."""

MAX_FETCHED_BYTES = 1 << 28
"""Bytes of an instruction chunk that are fetched: far above any program."""

_DESCRIPTOR = np.dtype([("address", "<u8"), ("size", "<u4"), ("zero", "<u4")])
_STATUS_BLOCK = np.dtype([("completed_head", "<u4"), ("fatal_error", "<u4"), ("zero", "<u8")])


@dataclass(frozen=True, slots=True, order=True)
class AddressMapping:
    """A range of device addresses that the driver mapped, and what it holds.

    ``buffer`` is None for an instruction chunk, whose index is ``chunk``.
    """

    address: int
    size: int
    kind: TransferKind
    buffer: Buffer | None = None
    chunk: int = 0


class MappingTable:
    """The driver's record of device addresses: attributes a descriptor to a buffer."""

    def __init__(self) -> None:
        self._mappings: list[AddressMapping] = []
        self._addresses: list[int] = []

    def add(self, mapping: AddressMapping) -> None:
        """Enter a mapping."""
        index = bisect_right(self._addresses, mapping.address)
        self._addresses.insert(index, mapping.address)
        self._mappings.insert(index, mapping)

    def remove(self, mapping: AddressMapping) -> None:
        """Take a mapping out; raises ``ValueError`` if it is not there."""
        first = bisect_left(self._addresses, mapping.address)
        index = self._mappings.index(mapping, first)
        del self._mappings[index], self._addresses[index]

    def __iter__(self) -> Iterator[AddressMapping]:
        """All mappings, by device address."""
        return iter(self._mappings)

    def find(self, address: int) -> AddressMapping | None:
        """The mapping that holds ``address``, if any."""
        index = bisect_right(self._addresses, address) - 1
        if index < 0 or address >= self._mappings[index].address + self._mappings[index].size:
            return None
        return self._mappings[index]


class _Sent(NamedTuple):
    """Output bytes on their way to the host; ``known`` as in :meth:`HostInterface.push`."""

    data: NDArray[np.uint8]
    known: NDArray[np.bool_] | None

    def part(self, which: slice) -> _Sent:
        return _Sent(self.data[which], None if self.known is None else self.known[which])


class HostInterface:
    """Moves bytes between host memory and the chip, and signals the host.

    The host's side is ``registers`` (and ``memory``); ``mappings`` is the driver's knowledge of
    which buffer is where and serves the trace only. The chip's side is the methods.

    Args:
        memory: physical memory of the host; its strict mode applies here too: a descriptor that
            reads bytes which nothing has written, or which an earlier output descriptor still
            owes, is refused when it is issued.
        sink: takes interrupts; without it they are listed (``interrupts.messages``).
        registers: those of the host's side, if they have one of their own.
    """

    def __init__(
        self,
        memory: BusMemory,
        sink: Callable[[InterruptMessage], None] | None = None,
        registers: RegisterFile | None = None,
    ) -> None:
        self.memory = memory
        self.registers = registers or RegisterFile()
        self.interrupts = InterruptController(self.registers, sink)
        self.mmu = Mmu(memory, self.registers, self.interrupts)
        self.mappings = MappingTable()
        self.hold: Hold = at_once
        self.transfers: list[Transfer] = []
        self._streams: dict[DescriptorTag, deque[Owed]] = {tag: deque() for tag in STREAMS}
        self._outputs: deque[Owed] = deque()
        self._output_bytes: deque[_Sent] = deque()
        self._install_hooks()

    def reset(self) -> None:
        """Reset of the core: registers as after power-up, nothing in flight; traces are kept."""
        self.registers.reset()
        self.clear()

    def clear(self) -> None:
        """Nothing is in flight any more."""
        for stream in self._streams.values():
            stream.clear()
        self._outputs.clear()
        self._output_bytes.clear()

    def forget(self) -> None:
        """Begin new traces: of transfers, and of interrupts."""
        self.transfers.clear()
        self.interrupts.forget()

    # What the host's register writes do.

    def _install_hooks(self) -> None:
        hooks = {
            "instruction_queue_control": self._control_queue,
            "instruction_queue_tail": self._ring_doorbell,
            "dma_pause": self._pause,
        }
        for name, hook in hooks.items():
            self.registers.on_write(name, hook)
        install_run_controls(self.registers)

    def _control_queue(self, value: int) -> None:
        fields = register("instruction_queue_control")
        if fields.field("sc_desc_select").extract(value):
            raise RegisterFault(fields.offset, "sc_desc_select is not modelled")
        enable = fields.field("enable").extract(value)
        if enable and not self._queue_is_configured():
            self.interrupts.report_error("instruction_queue_bad_configuration")
            return
        self.registers.set("instruction_queue_fetched_head", 0)
        self.registers.set("instruction_queue_completed_head", 0)
        self.registers.set("instruction_queue_status", enable)

    def _queue_is_configured(self) -> bool:
        """A ring has entries and is aligned to a descriptor, and so is the status block."""
        bases = (
            self.registers.get("instruction_queue_base"),
            self.registers.get("instruction_queue_status_block_base"),
        )
        aligned = all(base % DESCRIPTOR_BYTES == 0 for base in bases)
        return aligned and self.registers.get("instruction_queue_size") > 0

    def _ring_doorbell(self, tail: int) -> None:
        enabled = self.registers.get("instruction_queue_status")
        if tail and not (enabled and tail < self.registers.get("instruction_queue_size")):
            self.interrupts.report_error("instruction_queue_invalid")

    def _pause(self, value: int) -> None:
        self.registers.set("dma_paused", value & 1)
        self._deliver_output()

    @property
    def _paused(self) -> bool:
        return bool(self.registers.get("dma_paused"))

    @property
    def _running(self) -> bool:
        """The scalar core runs, and the queue is on and in order."""
        registers = self.registers
        return (
            not self._paused
            and scalar_core_runs(registers)
            and registers.get("instruction_queue_status") == 1
            and registers.get("instruction_queue_tail") < registers.get("instruction_queue_size")
        )

    # Instruction queue.

    def fetch_chunk(self) -> bytes | None:
        """The next instruction chunk, or None if the queue is empty, off or paused.

        Raises ``PageFault``, ``MemoryFault``, and ``DescriptorFault`` for a chunk of length 0.
        """
        registers = self.registers
        head = registers.get("instruction_queue_fetched_head")
        if not self._running or head == registers.get("instruction_queue_tail"):
            return None
        at = registers.get("instruction_queue_base") + DESCRIPTOR_BYTES * head
        descriptor = self.mmu.read(at, DESCRIPTOR_BYTES).view(_DESCRIPTOR)[0]
        address, length = int(descriptor["address"]), int(descriptor["size"])
        if not length:
            refuse_length_0(self.interrupts, DescriptorTag.INSTRUCTIONS, address)
        if length > MAX_FETCHED_BYTES:
            self.interrupts.report_error("instruction_queue_invalid")
            raise DescriptorFault(0, address, length, f"longer than {MAX_FETCHED_BYTES} bytes")
        mapping = self.mappings.find(address)
        chunk = mapping.chunk if mapping and mapping.kind is TransferKind.INSTRUCTION else 0
        self.transfers.append(
            Transfer(
                TransferKind.INSTRUCTION,
                TransferDirection.INFEED,
                size=length,
                address=address,
                number=chunk,
            )
        )
        instructions = self.mmu.read(address, length).tobytes()
        ring_size = registers.get("instruction_queue_size")
        registers.set("instruction_queue_fetched_head", (head + 1) % ring_size)
        return instructions

    def chunk_done(self) -> None:
        """The chip has taken in a chunk: move the completed head and tell the host."""
        registers = self.registers
        size = registers.get("instruction_queue_size")
        head = (registers.get("instruction_queue_completed_head") + 1) % size
        registers.set("instruction_queue_completed_head", head)
        control = register("instruction_queue_control").field("status_block_enable")
        if control.extract(registers.get("instruction_queue_control")):
            block = np.array([(head, 0, 0)], _STATUS_BLOCK)
            self.mmu.write(
                registers.get("instruction_queue_status_block_base"), block.view(np.uint8)
            )
        self.interrupts.raise_instruction_queue()

    # Descriptors that the scalar core issues.

    def issue(self, tag: int, address: int, size: int) -> None:
        """Take a descriptor from the scalar core: 1 input, 2 parameters, 3 output, 4+n interrupt.

        Output bytes and interrupts leave in the order in which their descriptors were issued.
        Raises ``DescriptorFault`` for a length of 0, an unknown tag, or an interrupt with an
        address or a size, and what reading or writing host memory raises.
        """
        self.note(tag, address, size)
        if tag in STREAMS:
            if self.memory.strict:
                self._check_readable(address, size)
            self._streams[DescriptorTag(tag)].append(Owed(address, size))
            return
        self._outputs.append(Owed.of(tag, address, size))
        self._deliver_output()

    def note(self, tag: int, address: int, size: int) -> None:
        """Check and trace a descriptor without performing it; raises as :meth:`issue`."""
        check(self.interrupts, tag, address, size)
        if tag >= DescriptorTag.INTERRUPT_0:
            self._note_interrupt(tag)
            return
        self._record(DescriptorTag(tag), address, size)

    def _note_interrupt(self, tag: int) -> None:
        number = tag - DescriptorTag.INTERRUPT_0
        self.transfers.append(
            Transfer(TransferKind.INTERRUPT, TransferDirection.OUTFEED, number=number)
        )

    def _record(self, tag: DescriptorTag, address: int, size: int) -> None:
        mapping = self.mappings.find(address)
        direction = (
            TransferDirection.OUTFEED if tag == DescriptorTag.OUTPUT else TransferDirection.INFEED
        )
        self.transfers.append(
            Transfer(
                mapping.kind if mapping else KIND_OF_TAG[tag],
                direction,
                mapping.buffer if mapping else None,
                address - mapping.address if mapping else 0,
                size,
                address,
            )
        )

    def _check_readable(self, address: int, size: int) -> None:
        """Strict mode: every byte has been written, and none is about to be written."""
        for owed in self._outputs:
            if owed.address < address + size and address < owed.address + owed.size:
                raise MemoryFault(
                    "host memory",
                    owed.address,
                    owed.size,
                    "read before an output descriptor has written it (no fence between them)",
                )
        for piece in self.mmu.translate(address, size):
            self.memory.check_readable(*piece)

    # Bytes.

    def pull(self, tag: int, limit: int) -> NDArray[np.uint8]:
        """Up to ``limit`` next bytes of the input stream of ``tag`` (1 or 2), shape ``(n,)``.

        Host memory is read now, not when the descriptor was issued. Fewer bytes, or none, come
        when the descriptors issued so far hold no more. Raises ``PageFault``, ``MemoryFault``,
        ``UninitialisedRead``.
        """
        if self._paused:
            return np.empty(0, np.uint8)
        stream = self._streams[DescriptorTag(tag)]
        parts: list[NDArray[np.uint8]] = []
        while limit > 0 and stream:
            count = min(limit, stream[0].size)
            parts.append(self.mmu.read(stream[0].address, count))
            stream[0].advance(count)
            limit -= count
            if not stream[0].size:
                stream.popleft()
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty(0, np.uint8)

    def next_known(self, tag: int, limit: int) -> NDArray[np.bool_] | None:
        """Which bytes that :meth:`pull` would give now follow from written ones.

        None where host memory does not follow them. Raises as :meth:`pull` does.
        """
        if not self.memory.follows or self._paused:
            return None
        parts: list[NDArray[np.bool_]] = []
        for waiting in self._streams[DescriptorTag(tag)]:
            if limit <= 0:
                break
            count = min(limit, waiting.size)
            parts.append(self.mmu.known(waiting.address, count))
            limit -= count
        return np.concatenate(parts) if parts else np.empty(0, np.bool_)

    def push(self, data: NDArray[np.uint8], known: NDArray[np.bool_] | None = None) -> None:
        """Bytes (uint8, one axis) of the output stream, for the output descriptors in order.

        Bytes that no descriptor has asked for yet wait. ``known``: which of them follow from
        written memory of the chip; None: all. Raises ``PageFault``, ``MemoryFault``.
        """
        if data.size:
            self._output_bytes.append(_Sent(data.copy(), None if known is None else known.copy()))
        self._deliver_output()

    def _deliver_output(self) -> None:
        """Move waiting output bytes and interrupts as far as both sides allow."""
        while self._outputs and not self._paused:
            target = self._outputs[0]
            if target.interrupt is not None:
                self.hold(partial(self.interrupts.raise_host_interrupt, target.interrupt), 0)
                self._outputs.popleft()
                continue
            if not self._output_bytes:
                return
            sent = self._output_bytes[0]
            count = min(target.size, sent.data.size)
            now = sent.part(slice(count))
            self.mmu.write(target.address, now.data, now.known)
            target.advance(count)
            if not target.size:
                self._outputs.popleft()
            if count < sent.data.size:
                self._output_bytes[0] = sent.part(slice(count, None))
            else:
                self._output_bytes.popleft()

    @property
    def awaits_host(self) -> bool:
        """DMA is paused, and there are descriptors whose bytes wait for that to end."""
        return self._paused and bool(self._outputs or any(self._streams.values()))

    @property
    def owes_output(self) -> bool:
        """Output descriptors wait for bytes, or interrupts behind them."""
        return bool(self._outputs)

    @property
    def output_pending(self) -> bool:
        """Output bytes wait for a descriptor."""
        return bool(self._output_bytes)

    def waiting(self) -> tuple[str, ...]:
        """What the host interface still waits for, one text each; empty when it is idle."""
        wanted = {tag: sum(each.size for each in stream) for tag, stream in self._streams.items()}
        unclaimed = sum(part.data.size for part in self._output_bytes)
        return waiting_texts(wanted, unclaimed, self._outputs)

    def fence(self) -> None:
        """Record that the scalar core passed a DMA fence."""
        self.transfers.append(Transfer(TransferKind.FENCE, TransferDirection.INFEED))
