"""A chip in RTL for a host at the other end of the bus: another driver, or a recorded session.

The host's memory is not in this process, or not in place. So each word that the RTL reads or writes
is a request to the host, through the page table that the driver has set up. Bus addresses of the
RTL have 40 bits, those of a host up to 64. So the RTL gets other addresses, which stand for device
addresses: extended ones in the window, simple ones after it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from darwinn_sim.device.chip import Chip
from darwinn_sim.device.run import ProgramRun
from darwinn_sim.errors import SimulationError
from darwinn_sim.host.memory import BusMemory
from darwinn_sim.host.mmu import PAGE_SHIFT, VALID
from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.registers import register
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.machine.observer import Wanted

from darwinn_rtl.chip.engine import RtlRun
from darwinn_rtl.chip.host import WINDOW_BASE, Player, RtlHost, RtlRegisters
from darwinn_rtl.chip.player import ChipPlayer

WINDOW_BYTES = 1 << 32
"""Bytes of the harness's window after reset."""

_TABLE = register("page_table")


class _Registers(RtlRegisters):
    """The RTL's page table maps simple addresses to the RTL's own bus addresses; the host sees its
    own table."""

    def read(self, offset: int, width: int = 64) -> int:
        """What the RTL answers, but for the page table."""
        if _TABLE.offset <= offset < _TABLE.end:
            return RegisterFile.read(self, offset, width)
        return super().read(offset, width)

    def write(self, offset: int, value: int, width: int = 64) -> None:
        """Write both."""
        if _TABLE.offset <= offset < _TABLE.end:
            RegisterFile.write(self, offset, value, width)
            page = (offset - _TABLE.offset) // 8
            self.player.write_register(offset, WINDOW_BYTES + (page << PAGE_SHIFT) | value & VALID)
        else:
            super().write(offset, value, width)


class BusRtlHost(RtlHost):
    """The host's side of an RTL chip whose host is elsewhere."""

    played: ChipPlayer

    def __init__(
        self, memory: BusMemory, played: ChipPlayer, interrupt: Callable[[int], None]
    ) -> None:
        self.played = played
        self._failed: SimulationError | None = None
        super().__init__(memory, played, lambda message: interrupt(message.vector))

    def map_memory(self) -> None:
        """Let the RTL request every word."""
        self.played.unmap_all()
        self.played.map_elsewhere(self._read, self._write)

    def make_registers(self, played: Player) -> RtlRegisters:
        """The registers of both."""
        return _Registers(played, self.map_memory)

    def _place(self, address: int) -> int:
        """The host's bus address behind one of the RTL's."""
        simple = address >= WINDOW_BYTES
        device_address = address - WINDOW_BYTES if simple else WINDOW_BASE + address
        return self.mmu.translate(device_address, 1)[0].address

    def _read(self, address: int, size: int) -> bytes | None:
        """A word; bytes that the host does not give are 0, if it gives any."""
        try:
            return self.memory.read(self._place(address), size).tobytes()
        except SimulationError as error:
            octets = [self._byte(address + k) for k in range(size)] if size > 1 else [None]
            if all(octet is None for octet in octets):
                self._failed = self._failed or error
                return None
            return bytes(octet or 0 for octet in octets)

    def _byte(self, address: int) -> int | None:
        try:
            return int(self.memory.read(self._place(address), 1)[0])
        except SimulationError:
            return None

    def _write(self, address: int, data: bytes, strobes: int) -> bool:
        """The bytes whose strobes are set, in runs."""
        first = 0
        try:
            while first < len(data):
                count = 0
                while first + count < len(data) and strobes >> first + count & 1:
                    count += 1
                if count:
                    octets = np.frombuffer(data[first : first + count], np.uint8)
                    self.memory.write(self._place(address) + first, octets)
                first += count + 1
        except SimulationError as error:
            self._failed = self._failed or error
            return False
        return True

    def take_events(self) -> None:
        """Like any host of the RTL; also raises the errors of the host's memory."""
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        super().take_events()


def on_bus(played: ChipPlayer, memory: BusMemory, interrupt: Callable[[int], None]) -> Chip:
    """A chip in RTL behind PCIe, as ``darwinn_sim.device.chip.behind_pcie`` makes one of the model.

    Args:
        played: plays it.
        memory: the host's.
        interrupt: takes the vectors of its interrupts.
    """
    host = BusRtlHost(memory, played, interrupt)

    def new_run(chip: Chip, program: LoweredProgram) -> ProgramRun:
        return RtlRun(host, chip, program, Wanted(), recognised=True)

    chip = Chip(host)
    chip.new_run = new_run
    return chip
