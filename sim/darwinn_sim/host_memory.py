"""Physical memory of the host, as the chip's bus accesses see it.

Memory consists of regions of whole pages at bus addresses; between two regions there is nothing.
Each region has a guard page and the slack of its first and last page around its payload, filled
with a pattern; ``Region.check_guards`` finds out whether anybody wrote there. In strict mode every
region remembers which of its bytes have been written, and reading another one is an error.
"""

from __future__ import annotations

from bisect import bisect_right, insort

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.errors import MemoryFault, UninitialisedRead

PAGE_BYTES = 4096
"""Bytes in a page, of the host as of the chip's page table."""

FIRST_BUS_ADDRESS = 0x1_2345_6000
"""Where regions begin: above 4 GiB, so that both halves of an address matter."""


def _guard_pattern(start: int, size: int) -> NDArray[np.uint8]:
    """Bytes that depend on their address, so that a copy of other guard bytes is noticed."""
    positions = np.arange(start, start + size, dtype=np.uint32)
    return ((positions * np.uint32(2654435761)) >> np.uint32(23)).astype(np.uint8)


class Region:
    """A buffer in host memory, with guards around it.

    ``address`` is the bus address of the payload's first byte, ``size`` its bytes. ``base`` is the
    bus address of the region's first page (a guard page), ``storage`` all bytes from there on.
    """

    def __init__(self, name: str, base: int, page_offset: int, size: int, track: bool) -> None:
        self.name = name
        self.base = base
        self.size = size
        self.lead = PAGE_BYTES + page_offset
        pages = -(-(page_offset + size) // PAGE_BYTES) + 2
        self.storage = _guard_pattern(0, pages * PAGE_BYTES)
        self.storage[self.lead : self.lead + size] = 0
        self.written = np.zeros(self.storage.size, np.bool_) if track else None

    @property
    def address(self) -> int:
        """Bus address of the first byte of the payload."""
        return self.base + self.lead

    @property
    def end(self) -> int:
        """Bus address behind the last byte of the region, guards included."""
        return self.base + self.storage.size

    @property
    def first_page(self) -> int:
        """Bus address of the page that holds the payload's first byte."""
        return self.base + PAGE_BYTES

    @property
    def pages(self) -> int:
        """Pages that hold payload."""
        return self.storage.size // PAGE_BYTES - 2

    def check_guards(self) -> None:
        """Raise ``MemoryFault`` if a byte around the payload has been changed."""
        for start, end in ((0, self.lead), (self.lead + self.size, self.storage.size)):
            changed = np.flatnonzero(self.storage[start:end] != _guard_pattern(start, end - start))
            if changed.size:
                offset = start + int(changed[0]) - self.lead
                raise MemoryFault(
                    f"host memory {self.name}",
                    offset,
                    int(changed.size),
                    f"write outside the buffer of {self.size} bytes, first",
                )

    def forget_writes(self) -> None:
        """Strict mode: treat the payload as never written from here on."""
        if self.written is not None:
            self.written[:] = False


class HostMemory:
    """All regions of host memory.

    Args:
        strict: remember which bytes were written, and refuse to read others.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self._next = FIRST_BUS_ADDRESS
        self._bases: list[int] = []
        self._regions: dict[int, Region] = {}

    def allocate(self, name: str, size: int, *, page_offset: int = 0) -> Region:
        """Make a region of ``size`` bytes that begins ``page_offset`` bytes into a page.

        Raises ``ValueError`` if the size is not positive or the offset not within a page.
        """
        if size <= 0 or not 0 <= page_offset < PAGE_BYTES:
            raise ValueError(f"{name}: no region of {size} bytes at page offset {page_offset}")
        region = Region(name, self._next, page_offset, size, self.strict)
        # One page of nothing between regions: running off a guard page hits no memory at all.
        self._next = region.end + PAGE_BYTES
        insort(self._bases, region.base)
        self._regions[region.base] = region
        return region

    def release(self, region: Region) -> None:
        """Take ``region`` away; its bus addresses are not used again."""
        self._bases.remove(region.base)
        del self._regions[region.base]

    def _locate(self, address: int, size: int) -> tuple[Region, int]:
        index = bisect_right(self._bases, address) - 1
        if index >= 0:
            region = self._regions[self._bases[index]]
            if address + size <= region.end:
                return region, address - region.base
        raise MemoryFault("host memory", address, size, "no memory at bus address")

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        """The ``size`` bytes at bus address ``address``: a read-only view, shape ``(size,)``.

        Raises ``MemoryFault`` outside the regions and, in strict mode, ``UninitialisedRead``.
        """
        region, start = self._locate(address, size)
        if region.written is not None and not region.written[start : start + size].all():
            missing = np.flatnonzero(~region.written[start : start + size])
            raise UninitialisedRead(
                f"host memory {region.name}",
                start + int(missing[0]) - region.lead,
                int(missing.size),
            )
        view = region.storage[start : start + size]
        view.flags.writeable = False
        return view

    def write(self, address: int, data: NDArray[np.uint8]) -> None:
        """Write ``data`` (uint8, one axis) at bus address ``address``; raises ``MemoryFault``."""
        region, start = self._locate(address, data.size)
        region.storage[start : start + data.size] = data
        if region.written is not None:
            region.written[start : start + data.size] = True
