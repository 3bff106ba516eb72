"""The driver against a chip that the test plays: it reads the linked addresses and moves bytes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from darwinn_formats.darwinn import (
    Buffer,
    Description,
    Direction,
    DmaDescriptorHint,
    DmaHint,
    DmaHints,
    Executable,
    FieldOffset,
    InstructionBitstream,
    Layer,
    Meta,
    OutputLayer,
    Position,
)
from darwinn_formats.errors import FormatError
from darwinn_sim.errors import MemoryFault, PageFault, UninitialisedRead
from darwinn_sim.host.buffers import (
    MAX_BUFFERS,
    AddressSpace,
    DriverError,
    batches_of,
    buffer_sizes,
)
from darwinn_sim.host.dma_trace import TransferKind
from darwinn_sim.host.driver import Driver, Placement
from darwinn_sim.host.interface import AddressMapping, HostInterface, MappingTable
from darwinn_sim.host.interrupts import InterruptSource
from darwinn_sim.host.memory import PAGE_BYTES, HostMemory
from darwinn_sim.host.mmu import EXTENDED_BIT
from darwinn_sim.host.registers import register
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.timing.host_buffers import HostBuffers
from hypothesis import given
from hypothesis import strategies as st

OUTPUT = Description.BASE_ADDRESS_OUTPUT_ACTIVATION
INPUT = Description.BASE_ADDRESS_INPUT_ACTIVATION
PARAMETER = Buffer(Description.BASE_ADDRESS_PARAMETER, "", 0)
SCRATCH = Buffer(Description.BASE_ADDRESS_SCRATCH, "", 0)
IMAGE, LOGITS = Buffer(INPUT, "image", 0), Buffer(OUTPUT, "logits", 0)
ALL = (IMAGE, LOGITS, PARAMETER, SCRATCH)

MOVE = ("Scalar", {"alu_op": 15, "alu_immediate": 1})


def meta(buffer: Buffer, position: Position = Position.LOWER_32BIT) -> Meta:
    return Meta(buffer.desc, buffer.batch, buffer.name or None, position)


def chunk(buffers: tuple[Buffer, ...] = ALL, *, last: bool = True) -> InstructionBitstream:
    """A chunk that moves both halves of each buffer's address into registers, and ends."""
    fields = tuple(
        FieldOffset(meta(buffer, position), 128 * (1 + 2 * index + int(position)) + 70)
        for index, buffer in enumerate(buffers)
        for position in Position
    )
    return InstructionBitstream(frame(build([MOVE] * len(fields)), last=last), fields)


def executable(**changes: Any) -> Executable:
    fields: dict[str, Any] = {
        "batch_size": 1,
        "scratch_size_bytes": 9000,
        "instruction_bitstreams": (chunk(),),
        "parameters": bytes(range(256)) * 40,
        "input_layers": (Layer(name="image", size_bytes=5000),),
        "output_layers": (Layer(name="logits", size_bytes=3000, any_layer=OutputLayer()),),
    }
    return Executable(**(fields | changes))


IMAGE_BYTES = np.random.default_rng(5).integers(0, 256, 5000, np.uint8).tobytes()


class Bench:
    """A driver, its device, and what the test does in the chip's place."""

    def __init__(
        self,
        *,
        strict: bool = False,
        scatter: bool = True,
        simple_entries: int = 6144,
        place: Placement | None = None,
    ) -> None:
        self.memory = HostMemory(strict=strict)
        self.host = HostInterface(self.memory)
        self.driver = Driver(
            self.host, self.memory, scatter=scatter, simple_entries=simple_entries, place=place
        )
        self.driver.open()

    def register(self, name: str) -> int:
        return self.host.registers.read(register(name).offset)

    def fetch(self, program: Executable, index: int = 0) -> dict[Buffer, int]:
        """Take in a chunk; the addresses that it moves."""
        data = self.host.fetch_chunk()
        assert data is not None
        self.host.chunk_done()
        addresses: dict[Buffer, int] = {}
        for field in program.instruction_bitstreams[index].field_offsets:
            start = field.offset_bit // 8 - field.offset_bit // 8 % 16
            bundle = int.from_bytes(data[start : start + 16], "little")
            half = bundle >> field.offset_bit % 128 & 0xFFFF_FFFF
            buffer = Buffer(field.meta.desc, field.meta.name or "", field.meta.batch)
            addresses[buffer] = addresses.get(buffer, 0) | half << 32 * int(field.meta.position)
        return addresses

    def infer(self, addresses: dict[Buffer, int]) -> None:
        """Add the parameters to the input, by way of scratch; then the interrupt."""
        host = self.host
        host.issue(2, addresses[PARAMETER], 5000)
        host.issue(1, addresses[IMAGE], 5000)
        sums = host.pull(1, 5000) + host.pull(2, 5000)
        host.issue(3, addresses[SCRATCH] + 4000, 5000)
        host.push(sums)
        host.fence()
        host.issue(1, addresses[SCRATCH] + 4000, 3000)
        host.issue(3, addresses[LOGITS], 3000)
        host.push(host.pull(1, 3000))
        host.issue(4, 0, 0)


def expected(program: Executable) -> bytes:
    image = np.frombuffer(IMAGE_BYTES, np.uint8)
    return (image + np.frombuffer(program.parameters, np.uint8)[:5000])[:3000].tobytes()


# Open and close.


def test_open_leaves_the_registers_as_the_real_driver_does() -> None:
    bench = Bench()
    assert {
        name: bench.register(name)
        for name in (
            "extended_table",
            "instruction_queue_base",
            "instruction_queue_status_block_base",
            "instruction_queue_size",
            "instruction_queue_control",
            "instruction_queue_status",
            "tileconfig0",
            "ring_bus_producer_run_control",
            "scalar_core_run_status",
            "sc_host_int_control",
            "sc_host_int_vector",
            "top_level_int_vector",
            "fatal_err_int_vector",
        )
    } == {
        "extended_table": 6144,
        "instruction_queue_base": 0x0100_0000,
        "instruction_queue_status_block_base": 0x0100_1000,
        "instruction_queue_size": 256,
        "instruction_queue_control": 5,
        "instruction_queue_status": 1,
        "tileconfig0": 0x7F,
        "ring_bus_producer_run_control": 1,
        "scalar_core_run_status": 1,
        "sc_host_int_control": 0xF,
        "sc_host_int_vector": 4 | 5 << 7 | 6 << 14 | 7 << 21,
        "top_level_int_vector": 8 | 9 << 7 | 10 << 14 | 11 << 21,
        "fatal_err_int_vector": 12,
    }


def test_open_clears_the_queue_and_the_status_block() -> None:
    """Nothing that the host's memory held before is a descriptor, or a place in the queue."""
    bench = Bench()
    for address, size in ((0x0100_0000, 256 * 16), (0x0100_1000, 16)):
        page = int(bench.host.registers.array("page_table")[address >> 12]) & ~0xFFF
        assert not bench.memory.read(page, size).any()


def test_close_gives_everything_back_and_the_device_opens_again() -> None:
    bench = Bench()
    request = bench.driver.prepare(executable(), {"image": IMAGE_BYTES})
    bench.driver.submit(request)
    bench.driver.close()
    assert bench.register("instruction_queue_status") == 0
    assert bench.register("scalar_core_run_status") == 4
    assert not bench.host.registers.array("page_table").any()
    with pytest.raises(DriverError, match="not open"):
        bench.driver.poll()
    bench.driver.open()
    with pytest.raises(DriverError, match="open already"):
        bench.driver.open()


# Runs.


@pytest.mark.parametrize("scatter", [True, False])
@pytest.mark.parametrize("strict", [True, False])
def test_a_run_from_submission_to_outputs(strict: bool, scatter: bool) -> None:
    bench = Bench(strict=strict, scatter=scatter)
    program = executable()
    for _ in range(3):
        request = bench.driver.prepare(program, {"image": IMAGE_BYTES})
        bench.driver.submit(request)
        assert not bench.driver.poll()
        bench.infer(bench.fetch(program))
        assert bench.driver.poll()
        assert bench.driver.finish(request) == {"logits": expected(program)}
    sources = [message.source for message in bench.host.interrupts.messages]
    assert sources == [InterruptSource.INSTRUCTION_QUEUE, InterruptSource.SCALAR_CORE] * 3
    assert [(entry.kind, entry.buffer, entry.offset) for entry in bench.host.transfers[:8]] == [
        (TransferKind.INSTRUCTION, None, 0),
        (TransferKind.PARAMETER, PARAMETER, 0),
        (TransferKind.INPUT, IMAGE, 0),
        (TransferKind.SCRATCH, SCRATCH, 4000),
        (TransferKind.FENCE, None, 0),
        (TransferKind.SCRATCH, SCRATCH, 4000),
        (TransferKind.OUTPUT, LOGITS, 0),
        (TransferKind.INTERRUPT, None, 0),
    ]


@pytest.mark.parametrize("scatter", [True, False])
def test_pages_of_a_buffer_are_scattered_or_in_their_order(scatter: bool) -> None:
    """As those of a program that has them from an operating system are, or as one block."""
    bench = Bench(scatter=scatter)
    request = bench.driver.prepare(executable(), {"image": IMAGE_BYTES})
    pages = [each.region.page_addresses.tolist() for each in request.buffers.values()]
    assert max(map(len, pages)) > 2
    blocks = [[min(each) + PAGE_BYTES * k for k in range(len(each))] for each in pages]
    assert [sorted(each) for each in pages] == blocks
    assert (pages == blocks) is not scatter


def test_two_requests_may_be_queued() -> None:
    bench = Bench()
    program = executable()
    requests = [bench.driver.prepare(program, {"image": IMAGE_BYTES}) for _ in range(2)]
    for request in requests:
        bench.driver.submit(request)
    bench.infer(bench.fetch(program))
    assert not bench.driver.poll()
    assert bench.driver.finish(requests[0]) == {"logits": expected(program)}
    with pytest.raises(DriverError, match="not signalled"):
        bench.driver.finish(requests[1])
    bench.infer(bench.fetch(program))
    assert bench.driver.finish(requests[1]) == {"logits": expected(program)}


def test_completion_needs_every_chunk_and_the_interrupt() -> None:
    bench = Bench()
    program = executable(instruction_bitstreams=(chunk((), last=False), chunk()))
    request = bench.driver.prepare(program, {"image": IMAGE_BYTES})
    bench.driver.submit(request)
    bench.fetch(program)
    bench.host.issue(4, 0, 0)
    assert not bench.driver.poll()
    bench.fetch(program, 1)
    assert bench.driver.poll()
    assert [t.number for t in bench.host.transfers if t.kind is TransferKind.INSTRUCTION] == [0, 1]


def test_ring_and_interrupt_counter_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.driver.close()
    bench.host.reset()
    bench.host.registers.set("sc_host_int_count", 0xFFFE)
    monkeypatch.setattr(bench.host, "reset", lambda: None)
    bench.driver.open()
    program = executable(
        instruction_bitstreams=(chunk((), last=False),) * 99 + (chunk(),),
    )
    for _ in range(3):
        request = bench.driver.prepare(program, {"image": IMAGE_BYTES})
        bench.driver.submit(request)
        for index in range(99):
            bench.fetch(program, index)
        bench.infer(bench.fetch(program, 99))
        assert bench.driver.finish(request) == {"logits": expected(program)}


def test_an_interrupt_too_many_is_found() -> None:
    bench = Bench()
    program = executable()
    request = bench.driver.prepare(program, {"image": IMAGE_BYTES})
    bench.driver.submit(request)
    bench.infer(bench.fetch(program))
    bench.host.issue(4, 0, 0)
    with pytest.raises(DriverError, match="1 host interrupts 0 without a request"):
        bench.driver.finish(request)


def test_a_full_ring_and_a_second_submission_are_refused() -> None:
    bench = Bench()
    program = executable(instruction_bitstreams=(chunk(),) * 200)
    request, another = (bench.driver.prepare(program, {"image": IMAGE_BYTES}) for _ in range(2))
    bench.driver.submit(request)
    with pytest.raises(DriverError, match="submitted before"):
        bench.driver.submit(request)
    with pytest.raises(DriverError, match="no room for 200 chunks"):
        bench.driver.submit(another)


# Addresses.


@pytest.mark.parametrize("buffer", ALL)
@pytest.mark.parametrize("boundary", [1 << 31, 1 << 32])
def test_buffers_across_a_word_boundary(buffer: Buffer, boundary: int) -> None:
    start = EXTENDED_BIT | boundary - 2048

    def place(wanted: Buffer, _: int) -> int | None:
        return start if wanted == buffer else None

    bench = Bench(simple_entries=4608, place=place)
    program = executable()
    request = bench.driver.prepare(program, {"image": IMAGE_BYTES})
    bench.driver.submit(request)
    addresses = bench.fetch(program)
    assert addresses[buffer] == start
    bench.infer(addresses)
    assert bench.driver.finish(request) == {"logits": expected(program)}


def test_no_more_than_4_gib_with_the_real_partition() -> None:
    bench = Bench(place=lambda *_: EXTENDED_BIT | (1 << 32) - 100)
    with pytest.raises(DriverError, match="not free"):
        bench.driver.prepare(executable(), {"image": IMAGE_BYTES})


def test_unused_base_addresses_are_linked_as_zero() -> None:
    bench = Bench()
    program = executable(scratch_size_bytes=0, parameters=b"")
    bench.driver.submit(bench.driver.prepare(program, {"image": IMAGE_BYTES}))
    addresses = bench.fetch(program)
    assert addresses[PARAMETER] == addresses[SCRATCH] == 0
    assert addresses[IMAGE] % 64 == 0
    assert addresses[LOGITS] % PAGE_BYTES == 0


def test_finished_buffers_are_out_of_reach() -> None:
    bench = Bench()
    program = executable()
    request = bench.driver.prepare(program, {"image": IMAGE_BYTES})
    bench.driver.submit(request)
    addresses = bench.fetch(program)
    bench.infer(addresses)
    bench.driver.finish(request)
    assert not request.buffers and not request.chunks
    for address in addresses.values():
        with pytest.raises(PageFault):
            bench.host.mmu.translate(address, 1)


@given(sizes=st.lists(st.integers(1, 1 << 20), max_size=12), freed=st.integers(0, 11))
def test_blocks_are_aligned_to_their_size_and_do_not_overlap(sizes: list[int], freed: int) -> None:
    space = AddressSpace(1 << 28)
    blocks = [(space.allocate(size), size) for size in sizes]
    if freed < len(blocks):
        start, size = blocks.pop(freed)
        space.release(start)
        blocks.append((space.allocate(size), size))
        assert blocks[-1][0] <= start
    ordered = sorted(blocks)
    for (start, size), (following, _) in pairwise(ordered):
        assert start + size <= following
    for start, size in blocks:
        assert start % max(PAGE_BYTES, 1 << (size - 1).bit_length()) == 0


def test_exhausted_address_space() -> None:
    space = AddressSpace(3 * PAGE_BYTES)
    space.allocate(2 * PAGE_BYTES)
    with pytest.raises(DriverError, match="no 8192 bytes"):
        space.allocate(PAGE_BYTES + 1)
    space.reserve(2 * PAGE_BYTES + 5, 10)
    with pytest.raises(DriverError, match="not free"):
        space.reserve(2 * PAGE_BYTES, 1)


# Buffers.


@pytest.mark.parametrize("batches", [MAX_BUFFERS // 2 + 1, 179_343, (1 << 31) - 1])
def test_any_number_of_inferences_in_a_run_is_refused_at_once(batches: int) -> None:
    """Each has buffers: they took a time by the square of their number, and memory."""
    program = executable(batch_size=batches)
    for act in (buffer_sizes, batches_of, HostBuffers):
        with pytest.raises(FormatError, match=f"{batches} inferences of 2 layers in a run need"):
            act(program)


def test_as_many_inferences_as_there_can_be_buffers() -> None:
    assert batches_of(executable(batch_size=MAX_BUFFERS // 2)) == MAX_BUFFERS // 2
    layers = executable().input_layers * MAX_BUFFERS
    with pytest.raises(FormatError, match=f"1 inferences of {MAX_BUFFERS + 1} layers"):
        batches_of(executable(input_layers=layers))


def test_mappings_of_many_buffers_are_taken_out() -> None:
    table = MappingTable()
    mappings = [AddressMapping(64 * (k // 2), 0, TransferKind.INPUT, chunk=k) for k in range(200)]
    for each in mappings:
        table.add(each)
    for each in mappings[::3]:
        table.remove(each)
    assert set(table) == set(mappings) - set(mappings[::3])
    with pytest.raises(ValueError):
        table.remove(mappings[0])


def test_sizes_come_from_layers_hints_parameters_and_scratch() -> None:
    hint = DmaHint(DmaDescriptorHint(meta(IMAGE), 4000, 1005), Direction.INFEED)
    program = executable(
        dma_hints=DmaHints((hint,), True),
        batch_size=2,
        output_layers=(
            Layer(name="logits", size_bytes=30, execution_count_per_inference=3),
            Layer(name="state", size_bytes=8),
        ),
    )
    assert buffer_sizes(program) == {
        IMAGE: 5005,
        Buffer(INPUT, "image", 1): 5000,
        LOGITS: 90,
        Buffer(OUTPUT, "logits", 1): 90,
        Buffer(OUTPUT, "state", 0): 8,
        Buffer(OUTPUT, "state", 1): 8,
        PARAMETER: 10240,
        SCRATCH: 9000,
    }


def test_batches_have_buffers_of_their_own() -> None:
    bench = Bench()
    buffers = tuple(
        Buffer(desc, name, b)
        for desc, name in ((INPUT, "image"), (OUTPUT, "logits"))
        for b in range(2)
    )
    program = executable(
        batch_size=2,
        instruction_bitstreams=(chunk(buffers),),
        input_layers=(Layer(name="image", size_bytes=4),),
        output_layers=(Layer(name="logits", size_bytes=4),),
    )
    request = bench.driver.prepare(program, {"image": b"abcdefgh"})
    bench.driver.submit(request)
    addresses = bench.fetch(program)
    for batch in (1, 0):
        bench.host.issue(1, addresses[Buffer(INPUT, "image", batch)], 4)
        bench.host.issue(3, addresses[Buffer(OUTPUT, "logits", batch)], 4)
        bench.host.push(bench.host.pull(1, 4))
    bench.host.issue(4, 0, 0)
    assert bench.driver.finish(request) == {"logits": b"abcdefgh"}


def test_destinations_do_not_look_finished_before_the_run() -> None:
    first, second = (
        [Bench(strict=strict).driver.prepare(executable(), {"image": IMAGE_BYTES}) for _ in "ab"]
        for strict in (True, False)
    )
    contents = [r.buffers[LOGITS].region.payload.tobytes() for r in (*first, *second)]
    assert len(set(contents)) == 1, "the same seed gives the same bytes"
    assert len(set(contents[0])) > 200


def test_a_run_that_leaves_a_buffer_is_found() -> None:
    bench = Bench()
    program = executable()
    request = bench.driver.prepare(program, {"image": IMAGE_BYTES})
    bench.driver.submit(request)
    addresses = bench.fetch(program)
    bench.host.issue(3, addresses[LOGITS], 3001)
    bench.host.push(np.full(3001, 99, np.uint8))
    bench.infer(addresses)
    with pytest.raises(MemoryFault, match="output logits 0: write outside the buffer of 3000"):
        bench.driver.finish(request)


def test_scratch_of_one_run_is_not_written_for_the_next() -> None:
    bench = Bench(strict=True)
    program = executable()
    for _ in range(2):
        request = bench.driver.prepare(program, {"image": IMAGE_BYTES})
        bench.driver.submit(request)
        addresses = bench.fetch(program)
        with pytest.raises(UninitialisedRead, match="scratch"):
            bench.host.issue(1, addresses[SCRATCH] + 4000, 1)
        bench.infer(addresses)
        bench.driver.finish(request)


# Refusals.


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({}, "given where the executable has"),
        ({"image": IMAGE_BYTES, "mask": b""}, "given where the executable has"),
        ({"image": IMAGE_BYTES[:-1]}, "has 4999 bytes, the executable needs 5000"),
    ],
)
def test_inputs_that_do_not_fit(inputs: dict[str, bytes], reason: str) -> None:
    with pytest.raises(DriverError, match=reason):
        Bench().driver.prepare(executable(), inputs)


def test_what_cannot_be_linked_leaves_nothing_mapped() -> None:
    bench = Bench()
    good = chunk()
    bad = InstructionBitstream(good.bitstream, (FieldOffset(meta(IMAGE), 71),))
    before = len(bench.memory._regions)
    with pytest.raises(FormatError):
        bench.driver.prepare(executable(instruction_bitstreams=(bad,)), {"image": IMAGE_BYTES})
    tables = len(bench.driver._tables)
    assert len(bench.memory._regions) == before + tables


def test_negative_size_is_refused() -> None:
    with pytest.raises(FormatError, match="'image' has -1 bytes"):
        buffer_sizes(executable(input_layers=(Layer(name="image", size_bytes=-1),)))


@pytest.mark.parametrize(
    "changes",
    [
        {"scratch_size_bytes": 2**31 - 1},
        {"input_layers": (Layer(name="image", size_bytes=2**31 - 1),)},
        {"batch_size": 2**31 - 1},
    ],
    ids=["scratch", "layer", "batch"],
)
def test_a_small_file_cannot_ask_for_much_memory(changes: dict[str, object]) -> None:
    with pytest.raises(FormatError, match=r"2147483647 (bytes|inferences)"):
        buffer_sizes(executable(**changes))


def test_a_device_with_an_error_does_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = HostMemory()
    host = HostInterface(memory)
    monkeypatch.setattr(
        host, "reset", lambda: host.interrupts.report_error("instruction_queue_invalid")
    )
    with pytest.raises(DriverError, match="hib_error_status is 0x200"):
        Driver(host, memory).open()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("hib_error_status", 1, 0),
        ("instruction_queue_descriptor_size", 17, 16),
        ("instruction_queue_status", 0, 1),
        ("tileconfig0", 0, 0x7F),
    ],
)
def test_a_register_that_does_not_follow_is_named(
    name: str, value: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each register that the driver looks at while it opens the device."""
    memory = HostMemory()
    driver = Driver(HostInterface(memory), memory)
    read, polled = driver._read, []

    def other(which: str) -> int:
        polled.append(which)
        return value if which == name else read(which)

    monkeypatch.setattr(driver, "_read", other)
    text = f"{name} is {value:#x} where the driver waits for {expected:#x}"
    with pytest.raises(DriverError, match=f"^{text}$"):
        driver.open()
    assert polled[-1] == name


def test_a_device_that_is_not_open_cannot_be_closed_and_one_that_is_not_opened_again() -> None:
    memory = HostMemory()
    driver = Driver(HostInterface(memory), memory)
    with pytest.raises(DriverError, match="not open"):
        driver.close()
    driver.open()
    with pytest.raises(DriverError, match="open already"):
        driver.open()


UNITS = (
    "scalar_core",
    "av_data_pop",
    "parameter_pop",
    "infeed",
    "outfeed",
    "op",
    "narrow_to_wide",
    "wide_to_narrow",
    *(f"mesh_bus_{k}" for k in range(4)),
    "ring_bus_consumer_0",
    "ring_bus_consumer_1",
    "ring_bus_producer",
)
"""Those that run and halt, in the order in which the driver tells them; the first five are of the
scalar core, before the others all tiles are chosen."""


def commands(value: int) -> list[tuple[str, int]]:
    told = [(f"{unit}_run_control", value) for unit in UNITS]
    return [*told[:5], ("tileconfig0", 0x7F), *told[5:]]


def test_the_driver_writes_what_it_writes_in_this_order(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = HostMemory()
    driver = Driver(HostInterface(memory), memory)
    write, written = driver._write, []

    def note(name: str, value: int) -> None:
        written.append((name, value))
        write(name, value)

    monkeypatch.setattr(driver, "_write", note)
    driver.open()
    opened = [each for each in written if "_vector" not in each[0]]
    assert opened == [
        ("dma_burst_limiter", 0),
        ("extended_table", 6144),
        ("instruction_queue_base", 0x0100_0000),
        ("instruction_queue_status_block_base", 0x0100_1000),
        ("instruction_queue_size", 256),
        ("instruction_queue_control", 5),
        *commands(1),
        ("status_block_update", 0),
        ("sc_host_int_control", 0xF),
        ("instruction_queue_int_control", 1),
        ("fatal_err_int_control", 1),
    ]
    written.clear()
    driver.close()
    assert written[: 1 + len(commands(2))] == [("dma_pause", 1), *commands(2)]
    closed = dict(written[1 + len(commands(2)) :])
    for name in ("sc_host_int", "instruction_queue_int", "fatal_err_int", "instruction_queue"):
        assert closed[f"{name}_control"] == 0


def test_a_request_that_is_not_done_says_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    request = bench.driver.prepare(executable(), {"image": IMAGE_BYTES})
    with pytest.raises(DriverError, match=r"completion of the request: nothing is in flight$"):
        bench.driver.finish(request)
    monkeypatch.setattr(bench.host, "waiting", lambda: ("8 bytes of input", "an output"))
    with pytest.raises(DriverError, match=r"of the request: 8 bytes of input; an output$"):
        bench.driver.finish(request)


@pytest.mark.parametrize(
    ("name", "value", "expected"), [("dma_paused", 0, 1), ("instruction_queue_status", 1, 0)]
)
def test_a_register_that_does_not_follow_while_it_closes_is_named(
    name: str, value: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Bench().driver
    read = driver._read
    monkeypatch.setattr(driver, "_read", lambda which: value if which == name else read(which))
    text = f"{name} is {value:#x} where the driver waits for {expected:#x}"
    with pytest.raises(DriverError, match=f"^{text}$"):
        driver.close()
