"""The host interface driven by hand: queue, descriptors, streams, interrupts, faults."""

from __future__ import annotations

import numpy as np
import pytest
from darwinn_sim.errors import MemoryFault, PageFault, UninitialisedRead
from darwinn_sim.host import interface
from darwinn_sim.host.descriptors import DescriptorFault
from darwinn_sim.host.dma_trace import TransferDirection, TransferKind
from darwinn_sim.host.interface import AddressMapping, HostInterface, MappingTable
from darwinn_sim.host.memory import PAGE_BYTES, HostMemory, Region
from darwinn_sim.host.registers import RegisterFault, register
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

RING, STATUS, CHUNKS, DATA = (page * PAGE_BYTES for page in (100, 101, 110, 200))
ENTRIES = 4


class Bench:
    """A host interface with a ring of four descriptors, a chunk buffer and a data buffer."""

    def __init__(self, *, strict: bool = False, data_bytes: int = 3 * PAGE_BYTES) -> None:
        self.memory = HostMemory(strict=strict)
        self.host = HostInterface(self.memory)
        self.ring = self._map("ring", RING, ENTRIES * 16)
        self.status = self._map("status", STATUS, 16)
        self.chunks = self._map("chunks", CHUNKS, 2 * PAGE_BYTES)
        self.data = self._map("data", DATA, data_bytes)
        for region in (self.ring, self.status, self.chunks):
            region.store(bytes(region.size))

    def _map(self, name: str, address: int, size: int) -> Region:
        region = self.memory.allocate(name, size)
        first = address // PAGE_BYTES
        entries = region.page_addresses | np.uint64(1)
        self.host.registers.array("page_table")[first : first + entries.size] = entries
        return region

    def write(self, name: str, value: int) -> None:
        self.host.registers.write(register(name).offset, value)

    def read(self, name: str) -> int:
        return self.host.registers.read(register(name).offset)

    def start(self) -> Bench:
        for name, value in (
            ("instruction_queue_base", RING),
            ("instruction_queue_status_block_base", STATUS),
            ("instruction_queue_size", ENTRIES),
            ("instruction_queue_control", 5),
            ("scalar_core_run_control", 1),
            ("sc_host_int_control", 0xF),
            ("instruction_queue_int_control", 1),
            ("fatal_err_int_control", 1),
        ):
            self.write(name, value)
        return self

    def fill(self, index: int, address: int, size: int) -> None:
        self.ring.store(np.array([address, size], "<u8").tobytes(), 16 * index)

    def completed_head(self) -> int:
        return int(self.status.payload[:4].view("<u4")[0])


def numbers(count: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, count, np.uint8)


# Instruction queue.


def test_chunks_are_fetched_in_order_and_the_ring_wraps() -> None:
    bench = Bench().start()
    bench.chunks.store(numbers(2 * PAGE_BYTES))
    tail = 0
    for turn in range(2 * ENTRIES):
        assert bench.host.fetch_chunk() is None
        bench.fill(tail, CHUNKS + 16 * turn, 4096 + turn)
        tail = (tail + 1) % ENTRIES
        bench.write("instruction_queue_tail", tail)
        chunk = bench.host.fetch_chunk()
        assert chunk == bench.chunks.payload[16 * turn : 4096 + 17 * turn].tobytes()
        assert bench.read("instruction_queue_fetched_head") == tail
        assert bench.completed_head() == turn % ENTRIES
        bench.host.chunk_done()
        assert bench.completed_head() == tail == bench.read("instruction_queue_completed_head")
        assert bench.read("instruction_queue_int_status") == 1
        bench.write("instruction_queue_int_status", 0)
    assert len(bench.host.interrupts.messages) == 2 * ENTRIES
    kinds = {(entry.kind, entry.direction) for entry in bench.host.transfers}
    assert kinds == {(TransferKind.INSTRUCTION, TransferDirection.INFEED)}


@pytest.mark.parametrize(("more", "faults"), [(0, False), (1, True)])
def test_a_chunk_is_no_longer_than_what_is_fetched(
    monkeypatch: pytest.MonkeyPatch, more: int, faults: bool
) -> None:
    monkeypatch.setattr(interface, "MAX_FETCHED_BYTES", 64)
    bench = Bench().start()
    bench.fill(0, CHUNKS, 64 + more)
    bench.write("instruction_queue_tail", 1)
    if not faults:
        assert bench.host.fetch_chunk() == bytes(64)
        return
    with pytest.raises(DescriptorFault, match="longer than 64 bytes"):
        bench.host.fetch_chunk()
    assert bench.read("fatal_err_int_status") & 1
    assert bench.read("instruction_queue_fetched_head") == 0


def test_status_block_is_only_written_when_enabled() -> None:
    bench = Bench().start()
    bench.write("instruction_queue_control", 1)
    bench.fill(0, CHUNKS, 16)
    bench.write("instruction_queue_tail", 1)
    assert bench.host.fetch_chunk() is not None
    bench.host.chunk_done()
    assert bench.completed_head() == 0
    assert bench.read("instruction_queue_completed_head") == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("instruction_queue_control", 0), ("scalar_core_run_control", 2), ("dma_pause", 1)],
)
def test_nothing_is_fetched_unless_everything_runs(name: str, value: int) -> None:
    bench = Bench().start()
    bench.fill(0, CHUNKS, 16)
    bench.write("instruction_queue_tail", 1)
    bench.write(name, value)
    assert bench.host.fetch_chunk() is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("instruction_queue_size", 0),
        ("instruction_queue_base", RING + 8),
        ("instruction_queue_status_block_base", STATUS + 4),
    ],
)
def test_badly_configured_queue_is_an_error(name: str, value: int) -> None:
    bench = Bench().start()
    bench.write("instruction_queue_control", 0)
    bench.write(name, value)
    bench.write("instruction_queue_control", 5)
    assert bench.read("hib_error_status") == 1 << 5
    assert bench.read("instruction_queue_status") == 0


def test_tail_outside_the_ring_is_an_error() -> None:
    bench = Bench().start()
    bench.write("instruction_queue_tail", ENTRIES)
    assert bench.read("hib_error_status") == 1 << 9
    assert bench.host.fetch_chunk() is None


def test_queue_descriptor_of_length_0() -> None:
    bench = Bench().start()
    bench.fill(0, CHUNKS, 0)
    bench.write("instruction_queue_tail", 1)
    with pytest.raises(DescriptorFault, match="length 0"):
        bench.host.fetch_chunk()
    assert bench.read("hib_error_status") == 1 << 13


def test_unknown_meanings_are_refused() -> None:
    bench = Bench().start()
    with pytest.raises(RegisterFault, match="sc_desc_select"):
        bench.write("instruction_queue_control", 7)
    with pytest.raises(RegisterFault, match="command 3"):
        bench.write("infeed_run_control", 3)


def test_run_control_shows_in_run_status() -> None:
    bench = Bench()
    states = []
    for command in (0, 1, 2):
        bench.write("outfeed_run_control", command)
        states.append(bench.read("outfeed_run_status"))
    assert states == [0, 1, 4]


# Streams.


@given(
    cuts=st.lists(st.integers(1, 5000), min_size=1, max_size=4),
    pulls=st.lists(st.integers(0, 6000), max_size=8),
)
def test_input_bytes_come_in_descriptor_order(cuts: list[int], pulls: list[int]) -> None:
    bench = Bench(data_bytes=5 * PAGE_BYTES)
    data = numbers(sum(cuts))
    bench.data.store(data)
    position = 0
    for size in cuts:
        bench.host.issue(1, DATA + position, size)
        position += size
    received = [bench.host.pull(1, limit) for limit in (*pulls, sum(cuts))]
    assert all(part.size <= limit for part, limit in zip(received, pulls, strict=False))
    assert np.array_equal(np.concatenate(received), data)
    assert bench.host.pull(1, 1).size == 0
    assert not bench.host.waiting()


def test_input_and_parameter_streams_are_separate() -> None:
    bench = Bench()
    bench.data.store(numbers(300))
    bench.host.issue(2, DATA, 100)
    bench.host.issue(1, DATA + 100, 100)
    bench.host.issue(2, DATA + 200, 100)
    payload = bench.data.payload
    assert np.array_equal(bench.host.pull(1, 500), payload[100:200])
    expected = np.concatenate((payload[:100], payload[200:300]))
    assert np.array_equal(bench.host.pull(2, 500), expected)


def test_host_memory_is_read_when_the_bytes_are_pulled() -> None:
    bench = Bench()
    bench.host.issue(1, DATA, 4)
    bench.data.store(b"late")
    assert bench.host.pull(1, 4).tobytes() == b"late"


@given(
    sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=4),
    pushes=st.lists(st.integers(0, 4000), max_size=6),
    early=st.booleans(),
)
def test_output_bytes_fill_descriptors_in_order(
    sizes: list[int], pushes: list[int], early: bool
) -> None:
    bench = Bench(data_bytes=5 * PAGE_BYTES)
    data = numbers(sum(sizes))
    cuts = [cut for cut in np.cumsum(pushes) if cut < data.size]
    parts = np.split(data, cuts)
    if early:
        for part in parts:
            bench.host.push(part)
        assert bench.host.output_pending
    # Destinations in reverse: the order is that of the descriptors, not of the addresses.
    ends = np.cumsum(sizes[::-1])[::-1].tolist()
    for size, end in zip(sizes, ends, strict=True):
        bench.host.issue(3, DATA + end - size, size)
    if not early:
        for part in parts:
            bench.host.push(part)
    assert not bench.host.output_pending
    starts = np.cumsum([0, *sizes]).tolist()
    for size, end, start in zip(sizes, ends, starts[:-1], strict=True):
        assert np.array_equal(bench.data.payload[end - size : end], data[start : start + size])
    bench.data.check_guards()


def test_pushed_bytes_are_the_callers_to_reuse() -> None:
    bench = Bench()
    data = numbers(10)
    kept = data.copy()
    bench.host.push(data)
    data[:] = 0
    bench.host.issue(3, DATA, 10)
    assert np.array_equal(bench.data.payload[:10], kept)


def test_interrupt_waits_for_the_output_before_it() -> None:
    bench = Bench().start()
    bench.host.issue(3, DATA, 8)
    bench.host.issue(4, 0, 0)
    bench.host.push(numbers(7))
    assert bench.host.interrupts.raised == []
    assert len(bench.host.waiting()) == 2
    bench.host.push(numbers(1))
    assert bench.host.interrupts.raised == [0]
    assert bench.read("sc_host_int_count") == 1
    assert not bench.host.waiting()


def test_interrupts_of_all_numbers() -> None:
    bench = Bench().start()
    for tag in (7, 4, 6, 5):
        bench.host.issue(tag, 0, 0)
    assert bench.host.interrupts.raised == [3, 0, 2, 1]
    assert [entry.number for entry in bench.host.transfers] == [3, 0, 2, 1]


def test_pause_holds_both_directions() -> None:
    bench = Bench().start()
    bench.data.store(numbers(10))
    bench.host.issue(1, DATA, 10)
    bench.host.issue(3, DATA + 20, 10)
    bench.write("dma_pause", 1)
    assert bench.read("dma_paused") == 1
    bench.host.push(numbers(10, seed=1))
    assert bench.host.pull(1, 10).size == 0
    assert not bench.data.payload[20:30].any()
    bench.write("dma_pause", 0)
    assert bench.host.pull(1, 10).size == 10
    assert np.array_equal(bench.data.payload[20:30], numbers(10, seed=1))


def test_reset_forgets_what_was_in_flight() -> None:
    bench = Bench().start()
    bench.host.issue(1, DATA, 10)
    bench.host.issue(3, DATA, 10)
    bench.host.push(numbers(5))
    bench.host.reset()
    assert not bench.host.waiting()
    assert bench.read("instruction_queue_status") == 0


# Faults.


@pytest.mark.parametrize(
    ("tag", "address", "size", "reason", "errors"),
    [
        (1, DATA, 0, "length 0", 1 << 13),
        (3, DATA, 0, "length 0", 1 << 13),
        (0, DATA, 1, "unknown tag", 0),
        (8, 0, 0, "unknown tag", 0),
        (4, DATA, 0, "neither address nor size", 0),
        (5, 0, 1, "neither address nor size", 0),
    ],
)
def test_impossible_descriptors(
    tag: int, address: int, size: int, reason: str, errors: int
) -> None:
    bench = Bench().start()
    with pytest.raises(DescriptorFault, match=reason):
        bench.host.issue(tag, address, size)
    assert bench.read("hib_error_status") == errors
    assert not bench.host.transfers


def test_page_faults_surface_where_the_bytes_move() -> None:
    bench = Bench(data_bytes=PAGE_BYTES)
    end = DATA + PAGE_BYTES
    bench.host.issue(1, end - 4, 8)
    assert bench.host.pull(1, 4).size == 4
    with pytest.raises(PageFault) as caught:
        bench.host.pull(1, 4)
    assert (caught.value.address, caught.value.size) == (end, 4)
    bench.host.issue(3, end, 4)
    with pytest.raises(PageFault):
        bench.host.push(numbers(1))
    assert bench.read("hib_error_status") == 1
    assert bench.read("fatal_err_int_status") == 1
    assert bench.read("page_fault_address") == end


def test_output_past_its_buffer_damages_the_guard() -> None:
    bench = Bench(data_bytes=100)
    bench.host.issue(3, DATA, 101)
    bench.host.push(np.full(101, 77, np.uint8))
    with pytest.raises(MemoryFault, match="data: write outside the buffer of 100 bytes"):
        bench.data.check_guards()


# Strict mode.


def test_scratch_must_be_written_before_it_is_read() -> None:
    bench = Bench(strict=True)
    bench.host.issue(3, DATA, 100)
    bench.host.push(numbers(100))
    bench.host.issue(1, DATA, 100)
    with pytest.raises(UninitialisedRead, match="data") as caught:
        bench.host.issue(1, DATA + 50, 60)
    assert (caught.value.address, caught.value.size) == (100, 10)


def test_read_that_overtakes_a_write_is_found() -> None:
    bench = Bench(strict=True)
    bench.data.store(numbers(200))
    bench.host.issue(3, DATA, 100)
    bench.host.push(numbers(60))
    bench.host.issue(1, DATA, 60)
    bench.host.issue(1, DATA + 100, 10)
    with pytest.raises(MemoryFault, match="no fence"):
        bench.host.issue(1, DATA, 61)


@pytest.mark.parametrize("first", range(92, 128, 3))
@pytest.mark.parametrize("size", [1, 5, 24])
def test_reads_that_meet_a_byte_that_is_owed_are_found_and_no_others(first: int, size: int) -> None:
    bench = Bench(strict=True)
    bench.data.store(numbers(200))
    owed = range(100, 116)
    bench.host.issue(3, DATA + owed.start, len(owed))
    if set(owed) & set(range(first, first + size)):
        with pytest.raises(MemoryFault, match="no fence"):
            bench.host.issue(1, DATA + first, size)
    else:
        bench.host.issue(1, DATA + first, size)


# Trace.


def test_transfers_are_attributed_to_mapped_buffers() -> None:
    bench = Bench()
    bench.data.store(numbers(500))
    bench.host.mappings.add(AddressMapping(DATA, 200, TransferKind.INPUT))
    bench.host.mappings.add(AddressMapping(DATA + 200, 300, TransferKind.SCRATCH))
    bench.host.issue(1, DATA + 10, 20)
    bench.host.issue(3, DATA + 200, 8)
    bench.host.fence()
    bench.host.issue(1, DATA + 208, 8)
    bench.host.issue(2, DATA + 500, 4)
    assert [
        (entry.kind.value, entry.direction.value, entry.offset, entry.size, entry.address)
        for entry in bench.host.transfers
    ] == [
        ("input", "infeed", 10, 20, DATA + 10),
        ("scratch", "outfeed", 0, 8, DATA + 200),
        ("fence", "infeed", 0, 0, 0),
        ("scratch", "infeed", 8, 8, DATA + 208),
        ("parameter", "infeed", 0, 4, DATA + 500),
    ]


@given(order=st.permutations(range(6)), probe=st.integers(-5, 65))
def test_mapping_table_finds_the_range_of_an_address(order: list[int], probe: int) -> None:
    table = MappingTable()
    mappings = [AddressMapping(10 * k, 7, TransferKind.INPUT, chunk=k) for k in range(6)]
    for index in order:
        table.add(mappings[index])
    table.remove(mappings[3])
    expected = [m for m in mappings if m.address <= probe < m.address + m.size and m.chunk != 3]
    assert table.find(probe) == (expected[0] if expected else None)
    with pytest.raises(ValueError):
        table.remove(mappings[3])
