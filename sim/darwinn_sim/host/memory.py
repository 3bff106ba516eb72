"""Physical memory of the host, as the chip's bus accesses see it.

Memory consists of regions of whole pages at bus addresses; between two regions there is nothing.
Each region has a guard page and the slack of its first and last page around its payload, filled
with a pattern; ``Region.check_guards`` finds out whether anybody wrote there. In strict mode every
region remembers which of its bytes have been written, and reading another one is an error; and
which of them the chip made of memory that nothing had written, which they carry back to it.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.errors import MemoryFault, UninitialisedRead

PAGE_BYTES = 4096
"""Bytes in a page, of the host as of the chip's page table."""

FIRST_BUS_ADDRESS = 0x1_2345_6000
"""Where regions begin: above 4 GiB, so that both halves of an address matter."""


def pages_of(page_offset: int, size: int) -> int:
    """Pages that ``size`` bytes touch which begin ``page_offset`` bytes into a page."""
    return -(-(page_offset + size) // PAGE_BYTES)


def _guard_pattern(start: int, size: int) -> NDArray[np.uint8]:
    """Bytes that depend on their address, so that a copy of other guard bytes is noticed."""
    if start + size <= _SMALL_REGION:
        return _first_pattern()[start : start + size]
    return _pattern(start, size)


def _pattern(start: int, size: int) -> NDArray[np.uint8]:
    positions = np.arange(start, start + size, dtype=np.uint32)
    return ((positions * np.uint32(2654435761)) >> np.uint32(23)).astype(np.uint8)


_SMALL_REGION = 1 << 16
"""Bytes of which the pattern is kept: small models make their buffers for each inference."""


@cache
def _first_pattern() -> NDArray[np.uint8]:
    return _pattern(0, _SMALL_REGION)


class Region:
    """A buffer in host memory, with guards around it.

    ``size`` is the payload's bytes, ``storage`` all bytes of the region in the order in which the
    host's program sees them: a guard page, the pages that hold payload, a guard page. On the bus
    the region covers the addresses from ``base`` up to ``end``; ``page_order`` says where there
    each payload page stands, since the pages of a program's buffer lie anywhere in physical memory.
    """

    def __init__(
        self,
        name: str,
        base: int,
        page_offset: int,
        size: int,
        page_order: NDArray[np.intp] | None,
        track: bool,
    ) -> None:
        self.name = name
        self.base = base
        self.size = size
        self.lead = PAGE_BYTES + page_offset
        self.storage = np.zeros((pages_of(page_offset, size) + 2) * PAGE_BYTES, np.uint8)
        for start, end in self._guards():
            self.storage[start:end] = _guard_pattern(start, end - start)
        self.written = np.zeros(self.storage.size, np.bool_) if track else None
        self.known: NDArray[Any] | None = None
        self._bus_page: NDArray[np.intp] | None = None
        self._storage_page: NDArray[np.intp] | None = None
        if page_order is not None:
            last = page_order.size + 1
            self._bus_page = np.concatenate(([0], page_order + 1, [last])).astype(np.intp)
            self._storage_page = np.argsort(self._bus_page)

    @property
    def end(self) -> int:
        """Bus address behind the last byte of the region, guards included."""
        return self.base + self.storage.size

    @property
    def payload(self) -> NDArray[np.uint8]:
        """The buffer as the host's program sees it, shape ``(size,)``: a view, not a copy."""
        return self.storage[self.lead : self.lead + self.size]

    @property
    def page_addresses(self) -> NDArray[np.uint64]:
        """Bus addresses of the pages that hold payload, in the program's order."""
        pages = self.storage.size // PAGE_BYTES
        order = np.arange(pages) if self._bus_page is None else self._bus_page
        addresses: NDArray[np.uint64] = np.uint64(self.base) + order[1:-1].astype(
            np.uint64
        ) * np.uint64(PAGE_BYTES)
        return addresses

    def store(self, data: bytes | NDArray[np.uint8], offset: int = 0) -> None:
        """The host's program writes ``data`` at byte ``offset`` of the payload.

        Raises ``ValueError`` if it does not fit.
        """
        values = np.frombuffer(data, np.uint8)
        start = self.lead + offset
        if offset < 0 or offset + values.size > self.size:
            raise ValueError(f"{self.name}: {values.size} bytes at {offset} do not fit")
        self.storage[start : start + values.size] = values
        self.mark(start, values.size, None)

    def mark(self, start: int, size: int, known: NDArray[np.bool_] | None) -> None:
        """Remember that a run of storage has been written, of which ``known`` bytes (None: all)
        follow from what had been written.
        """
        if self.written is not None:
            self.written[start : start + size] = True
        if self.known is not None:
            self.known[start : start + size] = True if known is None else known

    def follow(self, kind: type[np.bool_ | np.uint64] = np.bool_) -> None:
        """Remember from now on which bytes follow from written ones, in plain mode too; of which
        ``kind`` that is: with numbers of 64 bits, 1 of bytes that are known and else their number.
        """
        self.known = np.ones(self.storage.size, kind)

    @property
    def payload_known(self) -> NDArray[Any] | None:
        """Bytes of the payload that follow from what has been written; None: not followed."""
        return None if self.known is None else self.known[self.lead : self.lead + self.size]

    def runs(self, start: int, size: int) -> Iterator[tuple[int, int]]:
        """Storage offset and bytes of each run behind ``size`` bytes at bus offset ``start``."""
        if self._storage_page is None:
            yield start, size
            return
        end = start + size
        while start < end:
            page, within = divmod(start, PAGE_BYTES)
            count = min(PAGE_BYTES - within, end - start)
            yield int(self._storage_page[page]) * PAGE_BYTES + within, count
            start += count

    def _guards(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Begin and end, in ``storage``, of what lies before and behind the payload."""
        return (0, self.lead), (self.lead + self.size, self.storage.size)

    def check_guards(self) -> None:
        """Raise ``MemoryFault`` if a byte around the payload has been changed."""
        for start, end in self._guards():
            differs = self.storage[start:end] != _guard_pattern(start, end - start)
            if differs.any():
                changed = np.flatnonzero(differs)
                raise MemoryFault(
                    f"host memory {self.name}",
                    start + int(changed[0]) - self.lead,
                    int(changed.size),
                    f"write outside the buffer of {self.size} bytes, first",
                )


class BusMemory:
    """Memory of a host as a chip reaches it, by bus addresses.

    One who stands for a host defines ``read`` and ``write``. ``strict`` memory knows, besides,
    which of its bytes have been written; memory that ``follows``, which of them follow from written
    ones.
    """

    strict = False
    follows = False

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        """The ``size`` bytes at bus address ``address``, shape ``(size,)``."""
        raise NotImplementedError

    def write(
        self, address: int, data: NDArray[np.uint8], known: NDArray[np.bool_] | None = None
    ) -> None:
        """Write ``data`` (uint8, one axis) at bus address ``address``.

        ``known``: which bytes follow from written ones; None: all.
        """
        raise NotImplementedError

    def check_readable(self, address: int, size: int) -> None:
        """Raise what reading ``size`` bytes at bus address ``address`` would raise."""

    def known(self, address: int, size: int) -> NDArray[np.bool_]:
        """Which of ``size`` bytes at bus address ``address`` follow from written ones."""
        return np.ones(size, np.bool_)


class HostMemory(BusMemory):
    """All regions of host memory.

    Args:
        strict: remember which bytes were written, and refuse to read others.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = self.follows = strict
        self._kind: type[np.bool_ | np.uint64] = np.bool_
        self._next = FIRST_BUS_ADDRESS
        self._bases: list[int] = []
        self._regions: dict[int, Region] = {}

    def follow(self, kind: type[np.bool_ | np.uint64] = np.bool_) -> None:
        """Remember of all regions that are made from now on which of their bytes follow from
        written ones, in plain mode too; ``kind`` as of :meth:`Region.follow`.
        """
        self.follows, self._kind = True, kind

    def allocate(
        self,
        name: str,
        size: int,
        *,
        page_offset: int = 0,
        page_order: NDArray[np.intp] | None = None,
    ) -> Region:
        """Make a region of ``size`` bytes that begins ``page_offset`` bytes into a page.

        ``page_order`` is a permutation of the payload's pages: where each of them stands on the
        bus (None: in order). Raises ``ValueError`` if the size is not positive, the offset is not
        within a page, or the order is not one of all pages.
        """
        if size <= 0 or not 0 <= page_offset < PAGE_BYTES:
            raise ValueError(f"{name}: no region of {size} bytes at page offset {page_offset}")
        pages = pages_of(page_offset, size)
        if page_order is not None and not np.array_equal(np.sort(page_order), np.arange(pages)):
            raise ValueError(f"{name}: not an order of {pages} pages")
        region = Region(name, self._next, page_offset, size, page_order, self.strict)
        if self.follows:
            region.follow(self._kind)
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
        """The region that holds ``size`` bytes at bus address ``address``, and where in it."""
        index = bisect_right(self._bases, address) - 1
        if index >= 0:
            region = self._regions[self._bases[index]]
            if address + size <= region.end:
                return region, address - region.base
        raise MemoryFault("host memory", address, size, "no memory at bus address")

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        """A copy of the ``size`` bytes at bus address ``address``, shape ``(size,)``.

        Raises ``MemoryFault`` outside the regions and, in strict mode, ``UninitialisedRead``.
        """
        region, bus_start = self._locate(address, size)
        data = np.empty(size, np.uint8)
        position = 0
        for start, count in region.runs(bus_start, size):
            _check_written(region, start, count)
            data[position : position + count] = region.storage[start : start + count]
            position += count
        return data

    def views(self, address: int, size: int) -> Iterator[NDArray[np.uint8]]:
        """The ``size`` bytes at bus address ``address`` themselves, run by run: no copies.

        Raises ``MemoryFault`` outside the regions.
        """
        region, bus_start = self._locate(address, size)
        for start, count in region.runs(bus_start, size):
            yield region.storage[start : start + count]

    def check_readable(self, address: int, size: int) -> None:
        """Raise what reading ``size`` bytes at bus address ``address`` would raise."""
        region, bus_start = self._locate(address, size)
        for start, count in region.runs(bus_start, size):
            _check_written(region, start, count)

    def known(self, address: int, size: int) -> NDArray[np.bool_]:
        """Which of ``size`` bytes at bus address ``address`` follow from written ones.

        Raises ``MemoryFault`` outside the regions.
        """
        region, bus_start = self._locate(address, size)
        runs = region.runs(bus_start, size)
        if region.known is None:
            return np.ones(size, self._kind)
        return np.concatenate([region.known[start : start + count] for start, count in runs])

    def write(
        self, address: int, data: NDArray[np.uint8], known: NDArray[np.bool_] | None = None
    ) -> None:
        """Write ``data`` (uint8, one axis) at bus address ``address``; raises ``MemoryFault``.

        ``known``: which bytes follow from written ones; None: all.
        """
        region, bus_start = self._locate(address, data.size)
        position = 0
        for start, count in region.runs(bus_start, data.size):
            region.storage[start : start + count] = data[position : position + count]
            part = slice(position, position + count)
            region.mark(start, count, None if known is None else known[part])
            position += count


def _check_written(region: Region, start: int, size: int) -> None:
    """Strict mode: raise ``UninitialisedRead`` if a byte of a run of storage was never written."""
    if region.written is None or region.written[start : start + size].all():
        return
    missing = np.flatnonzero(~region.written[start : start + size])
    raise UninitialisedRead(
        f"host memory {region.name}", start + int(missing[0]) - region.lead, int(missing.size)
    )
