"""What the kernel driver does: reset, interrupt vectors, page table, coherent memory.

A program's user-space driver asks for it by ioctl, and by opening and closing the device file.
Facts: docs/host-interface.md, section "Kernel driver"; what goes wrong is an ``OSError``, as a
system call's would be.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.chips.register_map import Register
from darwinn_sim.host.interrupts import set_up_vectors
from darwinn_sim.host.memory import PAGE_BYTES, pages_of
from darwinn_sim.host.mmu import EXTENDED_BIT, PAGE_SHIFT, SECOND_LEVEL_ENTRIES, VALID, by_table
from darwinn_sim.host.registers import PAGE_TABLE_ENTRIES, register
from darwinn_sim.pcie.function import Host, PcieFunction
from darwinn_sim.pcie.kernel_memory import FIRST_ADDRESS, KernelMemory

MAX_COHERENT_BYTES = 1 << 20
"""The largest coherent buffer; a ring of 256 descriptors and a status block need 16 KiB."""

_SCU_CTRL_2, _SCU_CTRL_3 = register("scu_ctrl_2"), register("scu_ctrl_3")
_FORCED = 3
_NEVER_IDLE = 1 << 31
_SLOWEST = 3
_POLLS = 100


def _refuse(number: int, reason: str) -> OSError:
    return OSError(number, reason)


class KernelDriver:
    """The driver of one device, which a program may have open; it outlives the program.

    Args:
        function: the device.
    """

    def __init__(self, function: PcieFunction) -> None:
        self._function = function
        self._memory: KernelMemory | None = None
        self._forget()
        self._expect("page_table_init", 1)
        self._expect("msix_table_init", 1)

    def _forget(self) -> None:
        self.simple_entries = PAGE_TABLE_ENTRIES
        self._tables: dict[int, tuple[int, NDArray[np.uint64]]] = {}
        self._simple: set[int] = set()
        self._coherent: tuple[int, int] | None = None

    # Registers.

    def _write(self, name: str, value: int) -> None:
        self._function.write(register(name).offset, value, 8)

    def _expect(self, name: str, value: int) -> None:
        """Poll a register."""
        self._await(register(name), lambda found: found == value)

    def _await(self, entry: Register, reached: Callable[[int], bool]) -> None:
        for _ in range(_POLLS):
            if reached(self._function.read(entry.offset, entry.width // 8)):
                return
        raise _refuse(errno.ETIMEDOUT, f"{entry.name} does not become what it should")

    def _await_power(self, field: str, value: int) -> None:
        state = _SCU_CTRL_3.field(field)
        self._await(_SCU_CTRL_3, lambda found: state.extract(found) == value)

    def _change(self, entry: Register, **values: int) -> None:
        """Write fields of a register of 32 bits."""
        found = self._function.read(entry.offset, 4)
        for name, value in values.items():
            field = entry.field(name)
            found = found & ~field.mask | value << field.low
        self._function.write(entry.offset, found, 4)

    # Open and close.

    def open(self, program: Host) -> None:
        """The first open: reset, vectors, a page table without entries.

        Args:
            program: answers for the memory of the program that opens the device.
        """
        self._memory = KernelMemory(program)
        self._function.attach(self._memory)
        self.reset()

    def close(self) -> None:
        """The last close: the core stays in reset, and nothing of the program is mapped."""
        self._enter_reset()
        self._function.attach(None)
        self._memory = None
        self._forget()

    def reset(self) -> None:
        """Reset of the core; what was mapped is lost."""
        if not _SCU_CTRL_3.field("cur_rst_gcb").extract(self._function.read(_SCU_CTRL_3.offset, 4)):
            self._enter_reset()
        self._opened().clear()
        self._forget()
        self._leave_reset()
        self._write("extended_table", PAGE_TABLE_ENTRIES)
        set_up_vectors(self._write)

    def _enter_reset(self) -> None:
        self._write("idle_register", _NEVER_IDLE)
        self._write("dma_pause", 1)
        self._expect("dma_paused", 1)
        self._change(_SCU_CTRL_2, rg_rst_gcb=1)
        self._change(_SCU_CTRL_2, rg_gated_gcb=1)
        self._change(_SCU_CTRL_3, rg_force_ram_sd=_FORCED)
        self._await_power("cur_ram_sd", 1)

    def _leave_reset(self) -> None:
        self._change(_SCU_CTRL_3, rg_force_ram_sd=0)
        self._change(_SCU_CTRL_2, rg_gated_gcb=0)
        self._change(_SCU_CTRL_2, rg_rst_gcb=2)
        self._await_power("cur_ram_sd", 0)
        self._await_power("cur_rst_gcb", 0)
        self._change(_SCU_CTRL_3, released=2)

    def expect_performance(self, level: int) -> None:
        """Divide the clocks for a level from 0 (lowest) to 3."""
        if not 0 <= level <= _SLOWEST:
            raise _refuse(errno.EINVAL, f"there is no level {level}")
        self._change(_SCU_CTRL_3, gcb_clkdiv=_SLOWEST - level, axi_125=0, mcu_250=1)

    # Page table.

    def partition(self, simple_entries: int) -> None:
        """Give the first entries of the page table to simple addresses, the others to extended."""
        if self._tables or self._simple:
            raise _refuse(errno.EBUSY, "pages are mapped")
        if not 0 <= simple_entries <= PAGE_TABLE_ENTRIES:
            raise _refuse(errno.EINVAL, f"{simple_entries} entries")
        self.simple_entries = simple_entries
        self._write("extended_table", simple_entries)

    def map(self, host: int, device: int, size: int) -> None:
        """Map ``size`` bytes of memory at bus address ``host`` to device address ``device``.

        The memory is the program's, or in the coherent buffer. Whole pages are mapped, and none if
        one of them is mapped already.
        """
        bus, page, count = self._pages(device, size, host)
        if not self._reaches(bus, bus + count * PAGE_BYTES):
            raise _refuse(errno.EFAULT, f"no program has memory at {host:#x}")
        simple = not device & EXTENDED_BIT
        if any(self._mapped(page, count, simple)):
            raise _refuse(errno.EBUSY, f"device address {device:#x} is mapped")
        entries = np.uint64(bus) + np.arange(count, dtype=np.uint64) * np.uint64(PAGE_BYTES)
        self._enter(page, entries | np.uint64(VALID), simple)

    def _reaches(self, begin: int, end: int) -> bool:
        """The addresses are a program's, or lie in the coherent buffer."""
        first, size = self._coherent or (0, 0)
        return end <= FIRST_ADDRESS or (first <= begin and end <= first + size)

    def unmap(self, device: int, size: int) -> None:
        """Undo :meth:`map`."""
        _, page, count = self._pages(device, size)
        self._enter(page, np.zeros(count, np.uint64), not device & EXTENDED_BIT)

    def _pages(self, device: int, size: int, host: int | None = None) -> tuple[int, int, int]:
        """Bus address of the first page, its number among simple or extended ones, and how many."""
        within = device % PAGE_BYTES
        if host is not None and host % PAGE_BYTES != within:
            raise _refuse(errno.EINVAL, "host and device address are not alike within their pages")
        limit = self.simple_entries
        if device & EXTENDED_BIT:
            limit = (PAGE_TABLE_ENTRIES - limit) * SECOND_LEVEL_ENTRIES
        page = (device & ~EXTENDED_BIT) >> PAGE_SHIFT
        if not 0 < size <= limit * PAGE_BYTES or page + pages_of(within, size) > limit:
            raise _refuse(errno.EINVAL, f"{size} bytes at device address {device:#x}")
        return (host or 0) - within, page, pages_of(within, size)

    def _mapped(self, page: int, count: int, simple: bool) -> Iterator[bool]:
        if simple:
            yield not self._simple.isdisjoint(range(page, page + count))
            return
        for table, within, part in by_table(page, count):
            if table in self._tables:
                yield bool(self._tables[table][1][within : within + part].any())

    def _enter(self, page: int, entries: NDArray[np.uint64], simple: bool) -> None:
        if simple:
            self._enter_simple(page, entries)
            return
        done = 0
        for table, within, part in by_table(page, entries.size):
            values = entries[done : done + part]
            if table in self._tables or values.any():
                self._table(table)[within : within + part] = values
            done += part

    def _enter_simple(self, page: int, entries: NDArray[np.uint64]) -> None:
        for number, entry in enumerate(entries.tolist(), page):
            self._write_entry(number, entry)
        numbers = range(page, page + entries.size)
        if entries.any():
            self._simple.update(numbers)
        else:
            self._simple.difference_update(numbers)

    def _table(self, number: int) -> NDArray[np.uint64]:
        """The second-level table ``number``, made when it is first needed."""
        if number not in self._tables:
            entries = np.zeros(SECOND_LEVEL_ENTRIES, np.uint64)
            address = self._opened().give(entries.view(np.uint8))
            self._tables[number] = address, entries
            self._write_entry(self.simple_entries + number, address | VALID)
        return self._tables[number][1]

    def _write_entry(self, index: int, value: int) -> None:
        self._function.write(register("page_table").offset + 8 * index, value, 8)

    def _opened(self) -> KernelMemory:
        if self._memory is None:
            raise _refuse(errno.EBADF, "the device is not open")
        return self._memory

    # Coherent memory.

    def give_coherent(self, storage: NDArray[np.uint8]) -> int:
        """Put whole pages (uint8, one axis) that the program shares on the bus; their address."""
        if self._coherent is not None:
            raise _refuse(errno.EBUSY, "there is a coherent buffer")
        if storage.size not in range(PAGE_BYTES, MAX_COHERENT_BYTES + 1, PAGE_BYTES):
            raise _refuse(errno.EINVAL, f"a coherent buffer of {storage.size} bytes")
        address = self._opened().give(storage)
        self._coherent = address, storage.size
        return address

    def release_coherent(self) -> None:
        """Take the coherent buffer off the bus, if there is one."""
        if self._coherent is not None:
            self._opened().take_back(*self._coherent)
            self._coherent = None
