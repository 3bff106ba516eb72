"""Transfers between host and chip that overlap: does the program order them?

A descriptor is carried out some time after the scalar core has issued it. What one writes to memory
of the host is there when a scalar fence has waited for the output (a DMA fence, bit 4); what one
reads has been read when a scalar fence has waited for what takes the input, or sends it on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from darwinn_sim.isa.codes import DescriptorTag

_MOST_OPEN = 1024
"""Transfers that nothing has waited for yet; further ones take the places of the oldest."""


class Transfer(NamedTuple):
    """A descriptor: what instruction issued it, the addresses, and how many fences came before."""

    instruction: int
    reads: bool
    first: int
    end: int
    fences: int


class Overlap(NamedTuple):
    """Two transfers of the same bytes, from ``address`` on, one of which writes them."""

    first: Transfer
    second: Transfer
    address: int


class HostOrder:
    """The transfers of a run that may still be under way."""

    def __init__(self) -> None:
        self._open: list[Transfer] = []
        self.found: dict[tuple[int, int], Overlap] = {}
        """By instructions."""

    def issue(
        self, instruction: int, tag: int, address: int, size: int, *, drained: int, taken: int
    ) -> None:
        """A descriptor is issued; fences have waited so often for output and for input."""
        if tag >= DescriptorTag.INTERRUPT_0:
            return
        reads = tag != DescriptorTag.OUTPUT
        self._open = [each for each in self._open if not _is_over(each, drained, taken)]
        new = Transfer(instruction, reads, address, address + size, taken if reads else drained)
        for overlap in self._overlaps(new):
            self.found.setdefault((overlap.first.instruction, instruction), overlap)
        self._open = [*self._open[1 - _MOST_OPEN :], new]

    def _overlaps(self, new: Transfer) -> Iterator[Overlap]:
        """Two that read do no harm; two that write leave in the order of their descriptors."""
        for each in self._open:
            address = max(each.first, new.first)
            if each.reads != new.reads and address < min(each.end, new.end):
                yield Overlap(each, new, address)


def _is_over(transfer: Transfer, drained: int, taken: int) -> bool:
    return (taken if transfer.reads else drained) > transfer.fences
