"""The PCIe function: registers by offset, memory of the host by bus address, MSI-X vectors.

Register accesses may come from any thread; what the chip computes, it computes in
:meth:`PcieFunction.work`. The chip itself is any
:class:`~darwinn_sim.host.attachment.AttachedChip`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.device.turns import Turns
from darwinn_sim.errors import SimulationError, defect
from darwinn_sim.host.attachment import AttachedChip
from darwinn_sim.host.memory import BusMemory

BAR_BYTES = 1 << 20
"""Bytes of base address register 2, where all registers are."""

WIDTHS = (4, 8)
"""Bytes of a register access: registers of the SoC have 4, all others 8."""


class HostFault(SimulationError):
    """The host does not answer an access of the chip to its memory, or answers wrongly."""


class Host(Protocol):
    """The other end of the bus."""

    def read(self, address: int, size: int) -> bytes:
        """``size`` bytes of memory at a bus address; raises ``HostFault``."""

    def write(self, address: int, data: bytes) -> None:
        """Write memory at a bus address; raises ``HostFault``."""

    def interrupt(self, vector: int) -> None:
        """Take a message-signalled interrupt; raises ``HostFault``."""


class Watcher:
    """Sees what passes on the bus, by the thread that makes it pass; this one looks away."""

    def register_read(self, offset: int, size: int, value: int) -> None:
        """The host has read a register of ``size`` bytes."""

    def register_written(self, offset: int, size: int, value: int) -> None:
        """The host writes one."""

    def memory_read(self, address: int, data: bytes) -> None:
        """The chip has read memory of the host at a bus address."""

    def memory_written(self, address: int, data: bytes) -> None:
        """The chip writes it."""

    def interrupted(self, vector: int) -> None:
        """The chip sends an interrupt by its MSI-X vector."""

    def fault(self, error: SimulationError) -> None:
        """The chip can do no more until it is reset, for a reason of its own."""


class Memory(BusMemory):
    """Memory of the host as the chip reaches it: whatever host there is answers."""

    def __init__(self, watchers: tuple[Watcher, ...]) -> None:
        self.host: Host | None = None
        self._watchers = watchers

    def _answering(self) -> Host:
        if self.host is None:
            raise HostFault("there is no host on the bus")
        return self.host

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        """``size`` bytes at a bus address, shape ``(size,)``; raises ``HostFault``."""
        data = self._answering().read(address, size)
        for watcher in self._watchers:
            watcher.memory_read(address, data)
        return np.frombuffer(data, np.uint8)

    def write(
        self, address: int, data: NDArray[np.uint8], known: NDArray[np.bool_] | None = None
    ) -> None:
        """Write ``data`` (uint8, one axis) at a bus address; raises ``HostFault``."""
        octets = data.tobytes()
        for watcher in self._watchers:
            watcher.memory_written(address, octets)
        self._answering().write(address, octets)

    def interrupt(self, vector: int) -> None:
        """Send an interrupt to the host; raises ``HostFault``."""
        for watcher in self._watchers:
            watcher.interrupted(vector)
        self._answering().interrupt(vector)


class PcieFunction:
    """The device on the bus.

    Args:
        make_chip: makes the chip, given the host's memory, and whom its interrupts go to.
        watchers: see what passes, in this order.
    """

    def __init__(
        self,
        make_chip: Callable[[Memory, Callable[[int], None]], AttachedChip],
        *,
        watchers: tuple[Watcher, ...] = (),
    ) -> None:
        self._watchers = watchers
        self.wake: Callable[[], None] = lambda: None
        """Called when there may be work."""
        self.patience: Callable[[], float | None] = lambda: None
        """Seconds after which there is work by itself; None: not before ``wake`` is called."""
        self.failed: Callable[[SimulationError], None] = lambda _: None
        """Called with what ended the chip's work; with ``HostFault`` if the host did."""
        self._turns = Turns()
        self.memory = Memory(watchers)
        self.chip = make_chip(self.memory, self.memory.interrupt)

    def attach(self, host: Host | None) -> None:
        """Another host is on the bus from now on; None: nobody answers."""
        with self._turns:
            self.memory.host = host

    def read(self, offset: int, size: int) -> int:
        """Host read of ``size`` bytes at ``offset``: 4 or 8, aligned; raises ``ValueError``."""
        _check(offset, size)
        with self._turns:
            value = self.chip.read(offset, 8 * size)
            for watcher in self._watchers:
                watcher.register_read(offset, size, value)
        return value

    def write(self, offset: int, value: int, size: int) -> None:
        """Host write of ``size`` bytes at ``offset``: 4 or 8, aligned; raises ``ValueError``."""
        _check(offset, size)
        if value >> 8 * size:
            raise ValueError(f"{value:#x} has more than {size} bytes")

        def access() -> None:
            for watcher in self._watchers:
                watcher.register_written(offset, size, value)
            self.chip.write(offset, value, 8 * size)

        self._carried_out(access)
        self.wake()

    def work(self) -> bool:
        """Let the chip go on for a moment; False if there is nothing that it can do now."""
        return bool(self._carried_out(self.chip.advance))

    def _carried_out(self, what: Callable[[], bool | None]) -> bool | None:
        """Have the chip do something; what it gives, or None where that ends its work."""
        with self._turns:
            try:
                return what()
            except SimulationError as error:
                fault = error
            except Exception as error:
                fault = self.chip.fault = defect(error)
            if not isinstance(fault, HostFault):
                for watcher in self._watchers:
                    watcher.fault(fault)
        self.failed(fault)
        return None


def _check(offset: int, size: int) -> None:
    if size not in WIDTHS or offset % size or not 0 <= offset < BAR_BYTES:
        raise ValueError(f"{size} bytes at {offset:#x} are no register of base address register 2")
