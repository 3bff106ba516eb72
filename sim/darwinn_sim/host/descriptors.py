"""Descriptors that the scalar core issues, as every attachment takes them.

A descriptor is a tag, a device address and a size. Outputs and interrupts leave in the order of
their descriptors; inputs and parameters are streams of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from darwinn_sim.errors import SimulationError
from darwinn_sim.host.dma_trace import TransferKind
from darwinn_sim.host.interrupts import HOST_INTERRUPTS, InterruptController
from darwinn_sim.isa.codes import DescriptorTag

STREAMS = (DescriptorTag.INPUT, DescriptorTag.PARAMETERS)
"""Tags of the streams of data from the host."""

KIND_OF_TAG = {
    DescriptorTag.INPUT: TransferKind.INPUT,
    DescriptorTag.PARAMETERS: TransferKind.PARAMETER,
    DescriptorTag.OUTPUT: TransferKind.OUTPUT,
}


class Refusal(Enum):
    """Why the chip cannot carry out a descriptor."""

    UNKNOWN_TAG = "unknown tag"
    LENGTH_0 = "length 0"
    NO_PLAIN_INTERRUPT = "an interrupt has neither address nor size"


class DescriptorFault(SimulationError):
    """A descriptor that the chip cannot carry out."""

    def __init__(self, tag: int, address: int, size: int, reason: str) -> None:
        super().__init__(f"descriptor tag {tag} address {address:#x} size {size}: {reason}")
        self.tag = tag
        self.address = address
        self.size = size
        self.reason = reason


def refusal(tag: int, address: int, size: int) -> Refusal | None:
    """Why the chip cannot carry out a descriptor; None if it can."""
    if DescriptorTag.INTERRUPT_0 <= tag < DescriptorTag.INTERRUPT_0 + HOST_INTERRUPTS:
        return Refusal.NO_PLAIN_INTERRUPT if address or size else None
    if tag not in KIND_OF_TAG:
        return Refusal.UNKNOWN_TAG
    return None if size else Refusal.LENGTH_0


def check(interrupts: InterruptController, tag: int, address: int, size: int) -> None:
    """Raise ``DescriptorFault`` if the chip cannot carry out a descriptor."""
    reason = refusal(tag, address, size)
    if reason is Refusal.LENGTH_0:
        refuse_length_0(interrupts, tag, address)
    if reason is not None:
        raise DescriptorFault(tag, address, size, reason.value)


def refuse_length_0(interrupts: InterruptController, tag: int, address: int) -> NoReturn:
    """Tell the host of a transfer without bytes, which has an error bit; ``DescriptorFault``."""
    interrupts.report_error("length_0_dma")
    raise DescriptorFault(tag, address, 0, Refusal.LENGTH_0.value)


@dataclass(slots=True)
class Owed:
    """What is left of a descriptor: bytes not yet moved; ``interrupt`` stands in the order."""

    address: int
    size: int
    interrupt: int | None = None

    @classmethod
    def of(cls, tag: int, address: int, size: int) -> Owed:
        """All of a descriptor of an output or an interrupt."""
        number = tag - DescriptorTag.INTERRUPT_0
        return cls(0, 0, number) if number >= 0 else cls(address, size)

    def advance(self, count: int) -> None:
        """``count`` bytes have been moved."""
        self.address += count
        self.size -= count


def waiting_texts(
    wanted: Mapping[DescriptorTag, int], unclaimed: int, owed: Collection[Owed]
) -> tuple[str, ...]:
    """What an attachment waits for, one text each; empty when it is idle.

    Args:
        wanted: bytes of each input stream that issued descriptors ask for.
        unclaimed: bytes of the output stream that no descriptor asks for.
        owed: outputs and interrupts that have not left.
    """
    undelivered = sum(each.size for each in owed)
    held = sum(each.interrupt is not None for each in owed)
    texts = [
        (size, f"{KIND_OF_TAG[tag].value} stream: {size} bytes of issued descriptors not taken")
        for tag, size in wanted.items()
    ]
    texts += [
        (unclaimed, f"output stream: {unclaimed} bytes wait for a descriptor"),
        (undelivered, f"output descriptors: {undelivered} bytes not delivered"),
        (held, f"{held} interrupts held behind output descriptors"),
    ]
    return tuple(text for count, text in texts if count)
