"""How a chip is attached to its host, by PCIe or by USB: as the chip sees it, and the other way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.errors import SimulationError
from darwinn_sim.host.interrupts import InterruptController
from darwinn_sim.host.register_file import RegisterFile

Hold = Callable[[Callable[[], None], int], None]
"""Does something that tells the host so many bytes: at once, or when it is time."""


def at_once(act: Callable[[], None], size: int) -> None:
    """A :data:`Hold` that holds nothing back."""
    act()


class Attachment(Protocol):
    """``interface.HostInterface`` or ``usb.UsbInterface``."""

    registers: RegisterFile
    interrupts: InterruptController
    hold: Hold
    """For what tells the host that a program is over."""

    def fetch_chunk(self) -> bytes | None:
        """The next instruction chunk, if there is one and the core may take it."""

    def chunk_done(self) -> None:
        """The chip has taken in a chunk."""

    def issue(self, tag: int, address: int, size: int) -> None:
        """Take a descriptor from the scalar core; raises ``DescriptorFault``."""

    def pull(self, tag: int, limit: int) -> NDArray[np.uint8]:
        """Up to ``limit`` next bytes of an input stream."""

    def next_known(self, tag: int, limit: int) -> NDArray[np.bool_] | None:
        """Which of them follow from written ones; None: that is not known, or all."""

    def push(self, data: NDArray[np.uint8], known: NDArray[np.bool_] | None = None) -> None:
        """Bytes of the output stream."""

    def fence(self) -> None:
        """The scalar core passed a DMA fence."""

    def clear(self) -> None:
        """Nothing is in flight any more."""

    def forget(self) -> None:
        """Begin new traces: a program begins."""

    @property
    def output_pending(self) -> bool:
        """Output bytes wait for a descriptor."""

    @property
    def owes_output(self) -> bool:
        """Output descriptors wait for bytes, or interrupts behind them."""

    def waiting(self) -> tuple[str, ...]:
        """What is not done, one text each."""

    @property
    def awaits_host(self) -> bool:
        """Descriptors wait for what only the host can do."""


class AttachedChip(Protocol):
    """``device.chip.Chip``, the whole of it, as the function on the bus or the cable has it."""

    fault: SimulationError | None
    """What ended its work since the last reset."""

    def read(self, offset: int, width: int) -> int:
        """Host read of a register of ``width`` bits."""

    def write(self, offset: int, value: int, width: int) -> None:
        """Host write of a register of ``width`` bits; raises ``SimulationError`` as ``advance``."""

    def advance(self) -> bool:
        """Compute for a moment; False if it waits for the host.

        Raises ``SimulationError`` for a fault, once; it waits for a reset then.
        """

    def reset(self) -> None:
        """As after power-up."""
