"""What passes on the bus, in lines for people: registers by name, bytes, interrupts."""

from __future__ import annotations

from collections.abc import Callable

from darwinn_sim.pcie.function import Watcher

from darwinn_testbench.device.shown import named, octets


class Log(Watcher):
    """Writes a line for each thing that passes."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def register_read(self, offset: int, size: int, value: int) -> None:
        """As :class:`Watcher`."""
        self._write(f"read {named(offset)} -> {value:X}")

    def register_written(self, offset: int, size: int, value: int) -> None:
        """As :class:`Watcher`."""
        self._write(f"write {named(offset)} <- {value:X}")

    def memory_read(self, address: int, data: bytes) -> None:
        """As :class:`Watcher`."""
        self._write(f"DMA read {address:#x}: {octets(data)}")

    def memory_written(self, address: int, data: bytes) -> None:
        """As :class:`Watcher`."""
        self._write(f"DMA write {address:#x}: {octets(data)}")

    def interrupted(self, vector: int) -> None:
        """As :class:`Watcher`."""
        self._write(f"interrupt {vector}")
