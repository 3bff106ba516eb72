"""Address translation of the chip's bus accesses: a page table of two levels.

A device address is 64 bits. With bit 63 clear it is *simple*: bits 24:12 number an entry of the
page table on the chip, which holds the page's bus address. With bit 63 set it is *extended*:
bits 33:21 number an entry, counted from register ``extended_table``, which holds the bus address of
a second-level table in host memory; bits 20:12 number an entry there, which holds the page's bus
address. Bit 0 of an entry says that it is valid. Facts: docs/host-interface.md, section
"Address translation".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.errors import PageFault
from darwinn_sim.host.interrupts import InterruptController
from darwinn_sim.host.memory import PAGE_BYTES, BusMemory
from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.registers import PAGE_TABLE_ENTRIES

PAGE_SHIFT = 12
EXTENDED_BIT = 1 << 63
SECOND_LEVEL_ENTRIES = 512
"""Entries of a second-level table: one page of 64-bit words."""

VALID = 1
"""Bit of an entry, of either level, which says that it is valid."""

_ADDRESS_LIMIT = 1 << 64
_PAGE_MASK = np.uint64(_ADDRESS_LIMIT - PAGE_BYTES)


class Piece(NamedTuple):
    """A run of bytes that is contiguous on the bus: ``address`` (bus) and ``size`` in bytes."""

    address: int
    size: int


def by_table(page: int, count: int) -> Iterator[tuple[int, int, int]]:
    """Extended pages by second-level table: its number, the first entry in it, how many."""
    while count:
        table, within = divmod(page, SECOND_LEVEL_ENTRIES)
        part = min(count, SECOND_LEVEL_ENTRIES - within)
        yield table, within, part
        page += part
        count -= part


class Mmu:
    """Walks the page table for every access; keeps no copies of entries.

    A device address with bits set that no table is indexed by does not translate: the chip's
    behaviour is not known, and such an address is a mistake in a program or a driver.
    """

    def __init__(
        self, memory: BusMemory, registers: RegisterFile, interrupts: InterruptController
    ) -> None:
        self._memory = memory
        self._registers = registers
        self._interrupts = interrupts
        self._entries = registers.array("page_table")

    def translate(self, address: int, size: int) -> list[Piece]:
        """The bus addresses behind ``size`` bytes (at least 1) at device address ``address``.

        Neighbouring pages that are contiguous on the bus come as one piece. If a byte has no
        mapping the error registers are set, the fatal interrupt is raised, and ``PageFault``
        names the first such byte.
        """
        offset = address % PAGE_BYTES
        pages = self._pages(address, size)
        if pages.size == 1:
            return [Piece(int(pages[0]) + offset, size)]
        breaks = np.flatnonzero(np.diff(pages) != PAGE_BYTES) + 1
        starts = [0, *breaks.tolist()]
        ends = [*breaks.tolist(), pages.size]
        pieces = []
        for start, end in zip(starts, ends, strict=True):
            first = max(start * PAGE_BYTES, offset)
            last = min(end * PAGE_BYTES, offset + size)
            bus_address = int(pages[start]) + first - start * PAGE_BYTES
            pieces.append(Piece(bus_address, last - first))
        return pieces

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        """A copy of ``size`` bytes at device address ``address``, shape ``(size,)``.

        Raises ``PageFault``, ``MemoryFault`` and, in strict mode, ``UninitialisedRead``.
        """
        pieces = self.translate(address, size)
        if len(pieces) == 1:
            return self._memory.read(*pieces[0])
        data = np.empty(size, np.uint8)
        position = 0
        for piece in pieces:
            data[position : position + piece.size] = self._memory.read(*piece)
            position += piece.size
        return data

    def known(self, address: int, size: int) -> NDArray[np.bool_]:
        """Which of ``size`` bytes at device address ``address`` follow from written ones.

        Raises ``PageFault``, ``MemoryFault``.
        """
        return np.concatenate(
            [self._memory.known(*piece) for piece in self.translate(address, size)]
        )

    def write(
        self, address: int, data: NDArray[np.uint8], known: NDArray[np.bool_] | None = None
    ) -> None:
        """Write ``data`` at device address ``address``; raises ``PageFault``, ``MemoryFault``.

        Nothing is written unless every byte translates. ``known``: see :meth:`BusMemory.write`.
        """
        position = 0
        for piece in self.translate(address, data.size):
            part = slice(position, position + piece.size)
            self._memory.write(piece.address, data[part], None if known is None else known[part])
            position += piece.size

    def _pages(self, address: int, size: int) -> NDArray[np.uint64]:
        """Bus addresses of the pages that ``size`` bytes at ``address`` lie on, in order."""
        if address & EXTENDED_BIT:
            return self._extended_pages(address, size)
        return self._simple_pages(address, size)

    def _simple_pages(self, address: int, size: int) -> NDArray[np.uint64]:
        first = address >> PAGE_SHIFT
        last = (address + size - 1) >> PAGE_SHIFT
        limit = min(self._registers.get("extended_table"), PAGE_TABLE_ENTRIES)
        entries = self._entries[min(first, limit) : min(last + 1, limit)]
        return self._checked(entries, last - first + 1, address, size, "inbound_page_fault")

    def _extended_pages(self, address: int, size: int) -> NDArray[np.uint64]:
        start = address & ~EXTENDED_BIT
        first = start >> PAGE_SHIFT
        last = (start + size - 1) >> PAGE_SHIFT
        base = self._registers.get("extended_table")
        room = (PAGE_TABLE_ENTRIES - base) * SECOND_LEVEL_ENTRIES
        found: list[NDArray[np.uint64]] = []
        page = first
        while page <= last and page < room:
            table = int(self._entries[base + page // SECOND_LEVEL_ENTRIES])
            if not table & VALID:
                break
            low = page % SECOND_LEVEL_ENTRIES
            high = min(SECOND_LEVEL_ENTRIES, low + last + 1 - page)
            words = self._memory.read(int(table & int(_PAGE_MASK)) + 8 * low, 8 * (high - low))
            found.append(words.view("<u8"))
            page += high - low
        entries = np.concatenate(found) if found else np.empty(0, np.uint64)
        # A table that is not valid is a fault of the first level, an invalid word in a table one
        # of the second; the first of them in address order is the one reported.
        complete = page > last
        error = "extended_page_fault" if complete else "inbound_page_fault"
        if not complete and not (entries & VALID).all():
            error = "extended_page_fault"
        return self._checked(entries, last - first + 1, address, size, error)

    def _checked(
        self, entries: NDArray[np.uint64], expected: int, address: int, size: int, error: str
    ) -> NDArray[np.uint64]:
        """Pages of ``entries`` if there are ``expected`` of them, all valid; else the fault."""
        valid = (entries & VALID).astype(np.bool_)
        good = entries.size if valid.all() else int(valid.argmin())
        if good < expected:
            skipped = max(0, good * PAGE_BYTES - address % PAGE_BYTES)
            self._fault(address + skipped, size - skipped, error)
        pages: NDArray[np.uint64] = entries & _PAGE_MASK
        return pages

    def _fault(self, address: int, size: int, error: str) -> NoReturn:
        self._registers.set("page_fault_address", address % _ADDRESS_LIMIT)
        self._interrupts.report_error(error)
        raise PageFault(address, size)
