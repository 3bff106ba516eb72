"""What the chip did on the bus: the record of one transfer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from darwinn_formats.darwinn import Buffer


class TransferKind(Enum):
    """What a transfer moves, or which event stands in its place in the order."""

    INSTRUCTION = "instruction"
    INPUT = "input"
    PARAMETER = "parameter"
    OUTPUT = "output"
    SCRATCH = "scratch"
    INTERRUPT = "interrupt"
    FENCE = "fence"


class TransferDirection(Enum):
    """Which way the bytes go."""

    INFEED = "infeed"
    OUTFEED = "outfeed"


@dataclass(frozen=True, slots=True)
class Transfer:
    """One entry of the trace, in the order in which the chip issued it.

    ``address`` is the device address and ``size`` the bytes (both 0 for interrupts and fences).
    ``buffer`` is the buffer that the driver mapped there, ``offset`` the byte offset within it;
    an address that the driver did not map has no buffer. ``number`` is the index of the chunk for
    an instruction transfer, the number of the interrupt for an interrupt, else 0.
    """

    kind: TransferKind
    direction: TransferDirection
    buffer: Buffer | None = None
    offset: int = 0
    size: int = 0
    address: int = 0
    number: int = 0

    @property
    def is_interrupt(self) -> bool:
        """True for a host interrupt."""
        return self.kind is TransferKind.INTERRUPT
