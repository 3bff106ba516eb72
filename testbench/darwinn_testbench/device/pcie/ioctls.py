"""What a program asks of the kernel driver by ioctl; structures are words of 64 bits."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections.abc import Callable, Mapping

import numpy as np
from darwinn_sim.host.memory import PAGE_BYTES
from darwinn_sim.host.registers import PAGE_TABLE_ENTRIES
from darwinn_sim.pcie.kernel_driver import MAX_COHERENT_BYTES, KernelDriver

from darwinn_testbench.device.pcie.messages import CoherentWords, Ioctl, MapWords

_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
"""The size stays: memory that a program took away would end this process."""

Words = tuple[int, ...]
Answer = tuple[Words, int | None]
"""Words of the structure, and a file descriptor for the program, which is then closed here."""


def carry_out(driver: KernelDriver, kind: int, words: Words) -> Answer:
    """Carry out an ioctl, by its number in :class:`Ioctl`; raises ``OSError``."""
    handler = _HANDLERS.get(kind)
    if handler is None:
        raise OSError(errno.ENOTTY, f"there is no ioctl {kind >> 8:02X},{kind & 0xFF}")
    return handler(driver, words)


def _check_table(table: int) -> None:
    if table:
        raise OSError(errno.EINVAL, f"there is no page table {table}")


def _reset(driver: KernelDriver, words: Words) -> Answer:
    driver.reset()
    return words, None


def _tables(driver: KernelDriver, words: Words) -> Answer:
    return (1, *words[1:]), None


def _entries(driver: KernelDriver, words: Words) -> Answer:
    _check_table(words[0])
    return (words[0], PAGE_TABLE_ENTRIES, *words[2:]), None


def _simple_entries(driver: KernelDriver, words: Words) -> Answer:
    _check_table(words[0])
    return (words[0], driver.simple_entries, *words[2:]), None


def _partition(driver: KernelDriver, words: Words) -> Answer:
    _check_table(words[0])
    driver.partition(words[1])
    return words, None


def _map(driver: KernelDriver, words: Words) -> Answer:
    asked = MapWords(*words[:4])
    _check_table(asked.table)
    driver.map(asked.host, asked.device, asked.size)
    return words, None


def _unmap(driver: KernelDriver, words: Words) -> Answer:
    asked = MapWords(*words[:4])
    _check_table(asked.table)
    driver.unmap(asked.device, asked.size)
    return words, None


def _nothing(driver: KernelDriver, words: Words) -> Answer:
    return words, None


def _coherent(driver: KernelDriver, words: Words) -> Answer:
    asked = CoherentWords(*words[:4])
    _check_table(asked.table)
    if not asked.enable:
        driver.release_coherent()
        return words, None
    descriptor, storage = shared_pages(asked.size)
    try:
        address = driver.give_coherent(storage)
    except OSError:
        os.close(descriptor)
        raise
    return (*words[:3], address, *words[4:]), descriptor


def shared_pages(size: int) -> tuple[int, np.ndarray[tuple[int], np.dtype[np.uint8]]]:
    """Memory that a program can share, and not change the size of; raises ``OSError``."""
    if not 0 < size <= MAX_COHERENT_BYTES or size % PAGE_BYTES:
        raise OSError(errno.EINVAL, f"a coherent buffer of {size} bytes")
    descriptor = os.memfd_create("apex", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
    return descriptor, np.frombuffer(mmap.mmap(descriptor, size), np.uint8)


def _expect_performance(driver: KernelDriver, words: Words) -> Answer:
    driver.expect_performance(words[0] & 0xFFFF_FFFF)
    return words, None


_HANDLERS: Mapping[int, Callable[[KernelDriver, Words], Answer]] = {
    Ioctl.RESET: _reset,
    Ioctl.TABLES: _tables,
    Ioctl.ENTRIES: _entries,
    Ioctl.SIMPLE_ENTRIES: _simple_entries,
    Ioctl.PARTITION: _partition,
    Ioctl.MAP: _map,
    Ioctl.UNMAP: _unmap,
    Ioctl.CLEAR_COUNTS: _nothing,
    Ioctl.COHERENT: _coherent,
    Ioctl.MAP_FLAGS: _map,
    Ioctl.CLOCK_GATING: _nothing,
    Ioctl.PERFORMANCE: _expect_performance,
}
