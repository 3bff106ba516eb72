"""What passes on the bus, in lines for people: registers by name, bytes, interrupts."""

from __future__ import annotations

from collections.abc import Callable

from darwinn_sim.pcie.function import Seen

from darwinn_testbench.device.shown import named, octets


class Log:
    """A watcher that writes a line for each thing that passes.

    Args:
        write: takes a line.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def __call__(self, seen: Seen) -> None:
        """Write a line."""
        match seen:
            case ("rd", offset, _, value):
                self._write(f"read {named(offset)} -> {value:X}")
            case ("wr", offset, _, value):
                self._write(f"write {named(offset)} <- {value:X}")
            case ("dr", address, data):
                self._write(f"DMA read {address:#x}: {octets(data)}")
            case ("dw", address, data):
                self._write(f"DMA write {address:#x}: {octets(data)}")
            case ("irq", vector):
                self._write(f"interrupt {vector}")
