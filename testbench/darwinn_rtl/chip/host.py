"""The host's side of a chip in RTL: registers by its bus, descriptors by its DMA engine.

The model's registers run beside the RTL's and give the expected values. After each program both are
compared, and so are the interrupt lines and the status block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from darwinn_sim.host.interface import DESCRIPTOR_BYTES, STATUS_BLOCK_BYTES, HostInterface
from darwinn_sim.host.interrupts import InterruptMessage
from darwinn_sim.host.memory import PAGE_BYTES, BusMemory, HostMemory
from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.registers import register
from darwinn_sim.isa.codes import DescriptorTag
from numpy.typing import NDArray

from darwinn_rtl.chip import player
from darwinn_rtl.player import RtlFailure

WINDOW_BASE = 1 << 63
"""Device address of bus address 0, as the harness's window has it after reset."""

CHECKED = (
    "instruction_queue_status",
    "instruction_queue_fetched_head",
    "instruction_queue_completed_head",
    "instruction_queue_int_status",
    "sc_host_int_status",
    "sc_host_int_count",
    "fatal_err_int_status",
    "hib_error_status",
    "hib_first_error_status",
)
"""Registers that are compared with the model's after each program."""

_QUEUE_LINE, _FATAL_LINE = 4, 5
_STATUS_BLOCK = register("instruction_queue_control").field("status_block_enable").mask


class Player(Protocol):
    """A player of a chip in RTL: ``player.ChipPlayer``, or the agents of a pyuvm environment.

    Every method may raise ``RtlTimeout`` and ``RtlFailure``. ``quiet``: cycles in which a program
    can be at work and nothing shows it.
    """

    quiet: int

    def reset(self) -> None:
        """Reset the chip; memories keep their contents."""

    def write_register(self, offset: int, value: int) -> None:
        """Write a register of 64 bits, as the host does."""

    def read_register(self, offset: int) -> int:
        """The value of a register of 64 bits, as the host reads it."""

    def unmap_all(self) -> None:
        """Forget all host memory."""

    def map(self, address: int, place: int, size: int) -> None:
        """Let bytes of this process be those from a bus address on."""

    def take_chunk(self) -> int:
        """Request the next chunk of the instruction queue; return its size in bytes."""

    def fetch(self, size: int) -> bytes:
        """The next bytes of the instruction stream."""

    def hand_over(self, name: str, bits: bytes, tiles: int = 0, base: int | None = None) -> None:
        """Give an instruction to its unit, or to the set ``tiles``."""

    def descriptor(self, tag: int, address: int, size: int, *, fence: bool = False) -> None:
        """Give a descriptor, or a fence, to the DMA engine."""

    def push(self, word: int) -> None:
        """Send a word of the scalar core to the host."""

    def settle(self) -> None:
        """Wait until all units are idle, and outputs and interrupts have left."""

    def take_events(self) -> list[tuple[int, int]]:
        """(kind, index) of the events since the last call."""

    @property
    def cycle(self) -> int:
        """Cycles since the last reset."""

    @property
    def rows(self) -> int:
        """Rows that the ring bus has carried."""

    @property
    def scalar_memory(self) -> NDArray[np.uint32]:
        """Words of scalar memory, in place."""


class RtlRegisters(RegisterFile):
    """Registers whose host side is the RTL's; the chip's side (``get``, ``set``) is the model's.

    ``doorbell`` is called before the host tells the instruction queue of new chunks.
    """

    def __init__(self, played: Player, doorbell: Callable[[], None]) -> None:
        self.player, self._doorbell = played, doorbell
        super().__init__()

    def reset(self) -> None:
        """Reset both."""
        super().reset()
        self.player.reset()

    def read(self, offset: int, width: int = 64) -> int:
        """The RTL's value; raises ``RegisterFault`` if the model does."""
        super().read(offset, width)
        return self.player.read_register(offset)

    def write(self, offset: int, value: int, width: int = 64) -> None:
        """Write the RTL's and the model's; raises ``RegisterFault`` if the model does."""
        if offset == register("instruction_queue_tail").offset:
            self._doorbell()
        super().write(offset, value, width)
        self.player.write_register(offset, value)


class RtlHost(HostInterface):
    """The host's side of an RTL chip: it checks and records descriptors, and the RTL performs them.

    ``chunk`` is the instruction chunk that was fetched last, and ``chunk_cycle`` the cycle in which
    the RTL began to fetch it.
    """

    def __init__(
        self,
        memory: BusMemory,
        played: Player,
        sink: Callable[[InterruptMessage], None] | None = None,
    ) -> None:
        super().__init__(memory, sink, self.make_registers(played))
        self.player = played
        self.chunk = b""
        self.chunk_cycle = 0
        self._lines = 0
        self._issued: list[int] = []

    def make_registers(self, played: Player) -> RtlRegisters:
        """The registers of both."""
        return RtlRegisters(played, self.map_memory)

    def clear(self) -> None:
        """Note that nothing is in flight any more."""
        super().clear()
        self._lines = 0
        self._issued = []

    def map_memory(self) -> None:
        """Show the RTL the ring, the status block, and every mapped buffer with the bytes around it
        on the same pages."""
        self.player.unmap_all()
        get = self.registers.get
        for base, size in (
            (get("instruction_queue_base"), DESCRIPTOR_BYTES * get("instruction_queue_size")),
            (get("instruction_queue_status_block_base"), STATUS_BLOCK_BYTES),
        ):
            for piece in self.mmu.translate(base, size) if base and size else ():
                self._map(piece.address, self._in_place(*piece))
        for mapping in self.mappings:
            first = mapping.address // PAGE_BYTES * PAGE_BYTES
            end = -(-(mapping.address + mapping.size) // PAGE_BYTES) * PAGE_BYTES
            self._map(first - WINDOW_BASE, self._views(first, end - first))

    def _map(self, address: int, views: Iterator[NDArray[np.uint8]]) -> None:
        for place, size in _runs(views):
            self.player.map(address, place, size)
            address += size

    def _views(self, address: int, size: int) -> Iterator[NDArray[np.uint8]]:
        for piece in self.mmu.translate(address, size):
            yield from self._in_place(*piece)

    def _in_place(self, address: int, size: int) -> Iterator[NDArray[np.uint8]]:
        assert isinstance(self.memory, HostMemory), "only memory of this process is mapped in place"
        return self.memory.views(address, size)

    def fetch_chunk(self) -> bytes | None:
        """The next chunk, as the RTL has fetched it; see ``HostInterface.fetch_chunk``."""
        chunk = super().fetch_chunk()
        if chunk is None:
            return None
        size = self.player.take_chunk()
        self.chunk_cycle = self.player.cycle - 1
        if size != len(chunk):
            raise RtlFailure(f"the RTL fetches a chunk of {size} bytes, not of {len(chunk)}")
        self.chunk = self.player.fetch(size)
        # Words that host memory refused are no instructions: nobody should decode them.
        self.take_events()
        return self.chunk

    def chunk_done(self) -> None:
        """Expect the RTL's effects of a fetched chunk, except the status block."""
        size = self.registers.get("instruction_queue_size")
        head = (self.registers.get("instruction_queue_completed_head") + 1) % size
        self.registers.set("instruction_queue_completed_head", head)
        self.interrupts.raise_instruction_queue()

    def issue(self, tag: int, address: int, size: int) -> None:
        """Give a descriptor to the RTL; raises as ``HostInterface.note``."""
        self.note(tag, address, size)
        if tag >= DescriptorTag.INTERRUPT_0:
            self._issued.append(tag - DescriptorTag.INTERRUPT_0)
        self.player.descriptor(tag, address, size)

    def fence(self) -> None:
        """Give a fence to the RTL, and record it."""
        super().fence()
        self.player.descriptor(0, 0, 0, fence=True)

    def take_events(self) -> None:
        """Follow the interrupt lines; raise ``RtlFailure`` for a transfer that failed."""
        for kind, index in self.player.take_events():
            if kind == player.LINES:
                self._lines = index
            elif kind == player.REFUSED:
                raise RtlFailure(f"the DMA engine refused descriptor {index} since power-up")
            else:
                raise RtlFailure("host memory answered a transfer with an error")

    def check(self) -> None:
        """Compare registers, interrupt lines and status block with the model's, once everything has
        left the chip. Raises ``RtlFailure``."""
        # What failed says more than the registers that differ for it.
        self.take_events()
        get = self.registers.get
        if get("instruction_queue_control") & _STATUS_BLOCK:
            block = self.mmu.read(get("instruction_queue_status_block_base"), STATUS_BLOCK_BYTES)
            head = get("instruction_queue_completed_head")
            if block.tobytes() != head.to_bytes(STATUS_BLOCK_BYTES, "little"):
                raise RtlFailure(f"the status block is {block.tobytes().hex()}, its head is {head}")
        while self._issued:
            self.interrupts.raise_host_interrupt(self._issued.pop(0))
        for name in CHECKED:
            found = self.registers.read(register(name).offset)
            if found != get(name):
                raise RtlFailure(f"register {name} of the RTL is {found:#x}, not {get(name):#x}")
        # The lines follow the registers by a cycle.
        self.take_events()
        lines = (
            get("sc_host_int_status") & get("sc_host_int_control")
            | (get("instruction_queue_int_status") & get("instruction_queue_int_control"))
            << _QUEUE_LINE
            | (get("fatal_err_int_status") & get("fatal_err_int_control")) << _FATAL_LINE
        )
        if self._lines != lines:
            raise RtlFailure(f"the interrupt lines are {self._lines:06b}, not {lines:06b}")


def _runs(views: Iterator[NDArray[np.uint8]]) -> list[tuple[int, int]]:
    """Place in this process and size of each run of bytes; adjacent runs become one."""
    runs: list[tuple[int, int]] = []
    for view in views:
        place, size = view.ctypes.data, view.size
        if runs and sum(runs[-1]) == place:
            place, before = runs.pop()
            size += before
        runs.append((place, size))
    return runs
