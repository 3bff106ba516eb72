"""Regions of host memory: bounds, guards, page orders, bytes that nothing has written."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from darwinn_sim.errors import MemoryFault, UninitialisedRead
from darwinn_sim.host.memory import PAGE_BYTES, BusMemory, HostMemory, Region
from hypothesis import given
from hypothesis import strategies as st


def bus_addresses(region: Region) -> list[int]:
    """Bus address of each payload byte, one after another: the slow way."""
    offset = region.lead % PAGE_BYTES
    pages = region.page_addresses
    return [
        int(pages[position // PAGE_BYTES]) + position % PAGE_BYTES
        for position in range(offset, offset + region.size)
    ]


@given(
    size=st.integers(1, 3 * PAGE_BYTES),
    page_offset=st.integers(0, PAGE_BYTES - 1),
    seed=st.none() | st.integers(0, 9),
)
def test_payload_is_what_the_bus_sees(size: int, page_offset: int, seed: int | None) -> None:
    memory = HostMemory()
    pages = -(-(page_offset + size) // PAGE_BYTES)
    order = None if seed is None else np.random.default_rng(seed).permutation(pages)
    region = memory.allocate("buffer", size, page_offset=page_offset, page_order=order)
    region.store(np.random.default_rng(1).integers(0, 256, size, np.uint8))
    addresses = bus_addresses(region)
    for position in {0, size // 2, size - 1}:
        assert memory.read(addresses[position], 1)[0] == region.payload[position]
        memory.write(addresses[position], np.array([position % 251], np.uint8))
        assert region.payload[position] == position % 251
    region.check_guards()


def test_access_across_scattered_pages_follows_the_bus() -> None:
    memory = HostMemory()
    region = memory.allocate("buffer", 3 * PAGE_BYTES, page_order=np.array([2, 0, 1]))
    first = int(region.page_addresses.min())
    data = np.random.default_rng(0).integers(0, 256, 3 * PAGE_BYTES, np.uint8)
    memory.write(first, data)
    assert np.array_equal(memory.read(first, data.size), data)
    # Bus page 2 is the program's page 0, 0 is 1, 1 is 2.
    pages = data.reshape(3, PAGE_BYTES)
    assert np.array_equal(region.payload.reshape(3, PAGE_BYTES), pages[[2, 0, 1]])


def test_regions_do_not_touch() -> None:
    memory = HostMemory()
    regions = [memory.allocate("buffer", size) for size in (1, PAGE_BYTES, 5 * PAGE_BYTES)]
    for before, after in pairwise(regions):
        assert before.end < after.base
        with pytest.raises(MemoryFault, match="no memory"):
            memory.read(before.end - 1, 2)
        with pytest.raises(MemoryFault, match="no memory"):
            memory.write(before.end, np.zeros(1, np.uint8))


def test_released_region_is_gone() -> None:
    memory = HostMemory()
    region = memory.allocate("buffer", 10)
    kept = memory.allocate("kept", 10)
    memory.release(region)
    with pytest.raises(MemoryFault):
        memory.read(region.base, 1)
    assert memory.read(kept.base + kept.lead, 10).tolist() == [0] * 10


@pytest.mark.parametrize("pages", range(13, 19))
@pytest.mark.parametrize("size", [1, PAGE_BYTES - 1, PAGE_BYTES])
def test_guards_are_alike_in_small_and_large_buffers(pages: int, size: int) -> None:
    """Each byte follows from its address in the buffer, below 64 KiB and beyond."""
    payload = pages * PAGE_BYTES + size
    region = HostMemory().allocate("large", payload)
    address = np.r_[0 : region.lead, region.lead + payload : region.storage.size]
    expected = (address.astype(np.uint64) * 2654435761 & 0xFFFF_FFFF) >> 23 & 0xFF
    assert np.array_equal(region.storage[address], expected.astype(np.uint8))
    region.check_guards()


@pytest.mark.parametrize(("at", "offset"), [(-1, -1), (100, 100), (100 + 4096, 100 + 4096)])
def test_write_outside_the_payload_damages_a_guard(at: int, offset: int) -> None:
    memory = HostMemory()
    region = memory.allocate("buffer", 100, page_offset=64)
    start = region.base + region.lead
    address = start + at
    memory.write(address, memory.read(address, 1) ^ np.uint8(1))
    with pytest.raises(MemoryFault, match="buffer: write outside the buffer of 100") as caught:
        region.check_guards()
    assert (caught.value.address, caught.value.size) == (offset, 1)


def test_strict_mode_reads_only_what_was_written() -> None:
    memory = HostMemory(strict=True)
    region = memory.allocate("scratch", 100)
    start = region.base + region.lead
    with pytest.raises(UninitialisedRead):
        memory.read(start, 1)
    memory.write(start + 10, np.arange(20, dtype=np.uint8))
    region.store(b"x" * 10, 30)
    assert memory.read(start + 10, 30)[-1] == ord("x")
    with pytest.raises(UninitialisedRead, match="scratch") as caught:
        memory.read(start + 5, 40)
    assert (caught.value.address, caught.value.size) == (5, 10)
    with pytest.raises(UninitialisedRead):
        memory.check_readable(start + 39, 2)


def test_bad_arguments_are_refused() -> None:
    memory = HostMemory()
    with pytest.raises(ValueError, match="no region"):
        memory.allocate("empty", 0)
    with pytest.raises(ValueError, match="no region"):
        memory.allocate("far", 1, page_offset=PAGE_BYTES)
    with pytest.raises(ValueError, match="not an order"):
        memory.allocate("order", 2 * PAGE_BYTES, page_order=np.array([0, 0]))
    with pytest.raises(ValueError, match="do not fit"):
        memory.allocate("small", 4).store(b"12345")


def test_what_follows_from_written_bytes_is_marked() -> None:
    """All of a run that is written, or those that are said to."""
    region = HostMemory(strict=True).allocate("scratch", 16)
    first = int(region.payload.ctypes.data - region.storage.ctypes.data)
    assert region.known is not None and region.written is not None
    region.known[:], region.written[:] = False, False
    region.mark(first + 2, 3, None)
    region.mark(first + 8, 4, np.array([True, False, False, True]))
    marked = np.flatnonzero(region.known[first : first + 16]).tolist()
    assert marked == [2, 3, 4, 8, 11]
    assert np.flatnonzero(region.written).tolist() == [first + k for k in (2, 3, 4, 8, 9, 10, 11)]


@pytest.mark.parametrize("size", [1, 3, 5000])
def test_all_bytes_follow_from_written_ones_where_nobody_looks(size: int) -> None:
    plain = HostMemory()
    region = plain.allocate("plain", size)
    assert plain.known(region.base + PAGE_BYTES, size).tolist() == [True] * size
    assert BusMemory().known(0, size).tolist() == [True] * size
