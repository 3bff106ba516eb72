"""The chip as a device: nobody tells it what it runs, and its host comes late or goes away."""

from __future__ import annotations

import threading
from itertools import count

import averaging_program as sample
import numpy as np
import pytest
from averaging_program import Operation
from darwinn_formats.darwinn import Buffer, Description, Executable, link
from darwinn_sim.device import chip as device_chip
from darwinn_sim.device.chip import Chip, Waits, behind_pcie, behind_usb
from darwinn_sim.errors import (
    ChipFault,
    Deadlock,
    ProgramFault,
    SimulationError,
    UnsupportedInstruction,
)
from darwinn_sim.host.driver import Driver
from darwinn_sim.host.interface import HostInterface
from darwinn_sim.host.memory import BusMemory, HostMemory
from darwinn_sim.host.registers import register
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.machine import schedule
from numpy.typing import NDArray

IMAGES = sample.images()
RUN = register("scalar_core_run_control").offset
ERRORS = register("hib_error_status").offset
PAUSE = register("dma_pause").offset
SCU_CTRL_3 = 0x1A318
INTERRUPT = DescriptorTag.INTERRUPT_0


def settle(chip: Chip) -> Waits:
    """Let the chip go on until it waits."""
    while chip.advance():
        pass
    return chip.waits


class UsbBench:
    """A chip behind USB that runs, with what it has sent."""

    def __init__(self, *, start: bool = True) -> None:
        self.outputs = b""
        self.events: list[int] = []
        self.addresses = count(0x5555_0000_0000, 0x1_2345_6780)
        self.chip, self.usb = behind_usb(self)
        if start:
            self.start()

    def start(self) -> None:
        """Wake the core and let it run."""
        self.chip.write(SCU_CTRL_3, 0x0085025C, 32)
        self.chip.write(RUN, 1, 64)

    def take_output(self, data: bytes) -> None:
        self.outputs += data

    def take_event(self, tag: int, address: int, size: int) -> None:
        self.events.append(tag)

    def chunks(self, executable: Executable) -> tuple[bytes, ...]:
        """The chunks as a client sends them, with addresses that no other request has."""
        buffers = (
            Buffer(Description.BASE_ADDRESS_INPUT_ACTIVATION, "image", 0),
            Buffer(Description.BASE_ADDRESS_OUTPUT_ACTIVATION, "averages", 0),
        )
        return link(executable, {buffer: next(self.addresses) for buffer in buffers})

    def request(self, image: bytes, program: list[Operation] | None = None) -> None:
        """All that a client sends for an inference, at once."""
        for chunk in self.chunks(sample.executable(program)):
            self.usb.push_chunk(chunk)
        self.usb.push_data(DescriptorTag.INPUT, image)

    def settle(self) -> Waits:
        """Let the chip go on until it waits."""
        return settle(self.chip)

    def assert_works(self) -> None:
        self.outputs, self.events = b"", []
        image = IMAGES()
        self.request(image)
        assert self.settle() is Waits.CHUNK
        assert self.outputs == sample.expected(image)
        assert self.events[-1] == INTERRUPT


def test_a_program_is_recognised_by_its_chunks_whatever_addresses_they_hold() -> None:
    bench = UsbBench()
    for _ in range(3):
        bench.assert_works()
    assert bench.chip.programs.lowered == 1
    bench.request(IMAGES(), sample.changed("TensorSum", output_zero_point=100))
    bench.settle()
    assert bench.chip.programs.lowered == 2
    bench.assert_works()
    assert bench.chip.programs.lowered == 2


def test_requests_are_not_separated_by_waiting() -> None:
    bench = UsbBench()
    images = [IMAGES() for _ in range(4)]
    for image in images:
        bench.request(image)
    assert bench.settle() is Waits.CHUNK
    assert bench.outputs == b"".join(map(sample.expected, images))
    assert bench.events.count(INTERRUPT) == 4


@pytest.mark.parametrize("pieces", [1, 7, 100, 256])
def test_a_late_host_is_no_deadlock(pieces: int) -> None:
    bench = UsbBench(start=False)
    assert bench.settle() is Waits.HOST
    (chunk,) = bench.chunks(sample.executable())
    bench.usb.push_chunk(chunk)
    assert bench.settle() is Waits.HOST
    bench.start()
    image = IMAGES()
    for start in range(0, len(image), pieces):
        assert bench.settle() is Waits.BYTES
        assert not bench.outputs
        bench.usb.push_data(DescriptorTag.INPUT, image[start : start + pieces])
    assert bench.settle() is Waits.CHUNK
    assert bench.outputs == sample.expected(image)


@pytest.mark.parametrize("split", [4, 14, 20, 30])
def test_a_program_goes_on_chunk_by_chunk(split: int) -> None:
    bench = UsbBench()
    for number in range(1, 4):
        first, second = bench.chunks(sample.executable(split=split))
        image = IMAGES()
        bench.usb.push_chunk(first)
        bench.usb.push_data(DescriptorTag.INPUT, image)
        assert bench.settle() is Waits.CHUNK
        bench.usb.push_chunk(second)
        assert bench.settle() is Waits.CHUNK
        assert bench.outputs == sample.expected(image)
        assert bench.events.count(INTERRUPT) == number
        bench.outputs = b""
    # Once its beginning, once all of it.
    assert bench.chip.programs.lowered == 2


FAULTS: dict[str, tuple[list[Operation], type[SimulationError]]] = {
    "a flag that never comes": (
        sample.changed("TensorSum", **sample.watch(6, 14, 2, None)),
        Deadlock,
    ),
    "output that is short": (
        sample.changed("RingOutfeed", **sample.line("buffer", 3, 7, 0)),
        Deadlock,
    ),
    "output that nothing asks for": (
        [op for op in sample.operations() if op != ("Scalar", {"store_op": 6})][:-1],
        SimulationError,
    ),
    "a row outside the memory": (sample.changed("RingConsumerA", wide_write_base=4000), ChipFault),
    "a value that is refused": ([("Branch", {"reserved_32": 1})], UnsupportedInstruction),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_once_and_lasts_until_a_reset(name: str) -> None:
    program, error = FAULTS[name]
    bench = UsbBench()
    chunks = bench.chunks(sample.executable([*sample.operations()[:4], *program]))
    for chunk in chunks:
        bench.usb.push_chunk(chunk)
    bench.usb.push_data(DescriptorTag.INPUT, IMAGES())
    with pytest.raises(error):
        bench.settle()
    assert isinstance(bench.chip.fault, error)
    assert bench.chip.read(ERRORS, 64)
    assert bench.settle() is Waits.RESET
    bench.chip.reset()
    assert not bench.chip.read(ERRORS, 64)
    bench.start()
    bench.assert_works()


def test_what_is_no_chunk_is_a_fault() -> None:
    bench = UsbBench()
    bench.usb.push_chunk(bytes(40))
    with pytest.raises(ProgramFault, match="instruction chunk 0"):
        bench.settle()


@pytest.mark.parametrize(("name", "limit"), [("MAX_CHUNKS", 4), ("MAX_PROGRAM_BYTES", 4300)])
def test_a_program_without_end_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, name: str, limit: int
) -> None:
    monkeypatch.setattr(device_chip, name, limit)
    bench = UsbBench()
    endless = frame(build([("Scalar", {})] * 60), last=False)
    for _ in range(4):
        bench.usb.push_chunk(endless)
    assert bench.settle() is Waits.CHUNK
    bench.usb.push_chunk(endless)
    with pytest.raises(ProgramFault, match="instruction chunk 4: more than"):
        bench.settle()


@pytest.mark.parametrize("moments", [0, 1, 2, 5, 9, 14])
def test_a_reset_at_any_moment_leaves_a_clean_chip(moments: int) -> None:
    bench = UsbBench()
    bench.request(IMAGES())
    for _ in range(moments):
        bench.chip.advance()
    asleep = bench.chip.read(SCU_CTRL_3, 32) | 3 << 22
    bench.chip.write(SCU_CTRL_3, asleep, 32)
    assert bench.chip.read(RUN, 64) == 0
    assert bench.settle() is Waits.HOST
    bench.start()
    bench.assert_works()


def with_driver() -> tuple[HostInterface, Chip, Driver]:
    """A chip behind PCIe that runs, with who uses it."""
    memory = HostMemory()
    host = HostInterface(memory)
    chip = Chip(host)
    driver = Driver(host, memory)
    driver.open()
    return host, chip, driver


def test_nothing_grows_with_what_a_chip_has_run() -> None:
    host, chip, driver = with_driver()
    sizes = set()
    for _ in range(6):
        image = IMAGES()
        request = driver.prepare(sample.executable(), {"image": image})
        driver.submit(request)
        assert settle(chip) is Waits.CHUNK
        assert driver.finish(request)["averages"] == sample.expected(image)
        interrupts = host.interrupts
        sizes.add((len(host.transfers), len(interrupts.raised), len(interrupts.messages)))
    assert len(sizes) <= 2
    assert chip.programs.lowered == 1


def test_a_paused_chip_waits_for_its_host() -> None:
    host, chip, driver = with_driver()
    image = IMAGES()
    request = driver.prepare(sample.executable(), {"image": image})
    driver.submit(request)
    # Behind the fetch, and the descriptor of the input.
    while not any(transfer.is_descriptor for transfer in host.transfers):
        assert chip.advance()
    chip.write(PAUSE, 1, 64)
    assert settle(chip) is Waits.BYTES
    woken: list[bool] = []
    chip.wake = lambda: woken.append(True)
    chip.write(PAUSE, 0, 64)
    assert woken
    settle(chip)
    assert driver.finish(request)["averages"] == sample.expected(image)


def test_a_chip_may_be_paused_at_any_moment() -> None:
    """Its output, too, waits for the host; and what waits for that goes on with it."""
    moments = 0
    while True:
        _, chip, driver = with_driver()
        image = IMAGES()
        request = driver.prepare(sample.executable(), {"image": image})
        driver.submit(request)
        over = not all(chip.advance() for _ in range(moments))
        chip.write(PAUSE, 1, 64)
        settle(chip)
        chip.write(PAUSE, 0, 64)
        settle(chip)
        assert driver.finish(request)["averages"] == sample.expected(image)
        if over:
            break
        moments += 1
    assert moments > 5


class _Absent(BusMemory):
    """A host that answers nothing."""

    def read(self, address: int, size: int) -> NDArray[np.uint8]:
        raise SimulationError("nobody answers")

    def write(
        self, address: int, data: NDArray[np.uint8], known: NDArray[np.bool_] | None = None
    ) -> None:
        raise SimulationError("nobody answers")


def test_a_page_fault_is_told_by_pcie() -> None:
    vectors: list[int] = []
    chip = behind_pcie(_Absent(), vectors.append)
    for name, value in (
        ("instruction_queue_size", 16),
        ("instruction_queue_control", 1),
        ("fatal_err_int_vector", 12),
        ("fatal_err_int_control", 1),
        ("scalar_core_run_control", 1),
        ("instruction_queue_tail", 1),
    ):
        chip.write(register(name).offset, value, 64)
    with pytest.raises(SimulationError, match="page fault"):
        chip.advance()
    assert vectors == [12]
    assert register("hib_error_status").field("inbound_page_fault").extract(chip.read(ERRORS, 64))


def test_other_threads_run_while_the_kernels_compute() -> None:
    bench = UsbBench()
    spin: list[Operation] = [("Branch", {"relative": 1, "offset": 0})]
    for chunk in bench.chunks(sample.executable([*sample.operations()[:4], *spin])):
        bench.usb.push_chunk(chunk)
    assert bench.chip.advance()
    bench.chip.work_of_a_turn = 1 << 28
    turn = threading.Thread(target=bench.chip.advance)
    turn.start()
    counted = 0
    while turn.is_alive():
        counted += 1
    assert counted > 1000


def test_kernels_give_the_lock_back() -> None:
    options = schedule.run.targetoptions  # type: ignore[attr-defined]
    assert options["nogil"]


def test_what_a_chip_draws_follows_from_its_seed() -> None:
    first, same, other = (
        Chip(HostInterface(HostMemory()), seed=seed).random.integers(0, 256, 32).tolist()
        for seed in (3, 3, 4)
    )
    assert first == same != other
    for seed, drawn in ((0, 1), (3, 7), (1 << 62, (1 << 63) + 1), ((1 << 64) + 5, 11)):
        assert int(Chip(HostInterface(HostMemory()), seed=seed).core["random"]) == drawn
    given = np.random.default_rng(4)
    assert Chip(HostInterface(HostMemory()), random=given).random is given


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("dma_only", [False, True])
def test_a_chip_without_tiles_is_not_strict(strict: bool, dma_only: bool) -> None:
    """What they would have written is missing everywhere; so it is after a reset."""
    interface = HostInterface(HostMemory())
    chip = Chip(interface, strict=strict, dma_only=dma_only, hazards=True)
    assert chip.hazards is not dma_only
    for _ in range(2):
        assert bool(chip.core["strict"]) is (strict and not dma_only)
        chip.core["strict"] = 7
        chip.reset()
