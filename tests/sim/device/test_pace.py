"""Completions by the clock of a test: none comes early, each comes in its order and in time."""

from __future__ import annotations

from collections.abc import Callable

import averaging_program as sample
import pytest
from darwinn_formats.darwinn import Buffer, Description, link
from darwinn_sim.device import pace as device_pace
from darwinn_sim.device.chip import Chip, Waits, behind_usb
from darwinn_sim.device.pace import Pace, PredictedPace
from darwinn_sim.errors import SimulationError
from darwinn_sim.host.driver import Driver
from darwinn_sim.host.interface import HostInterface
from darwinn_sim.host.interrupts import InterruptSource
from darwinn_sim.host.memory import HostMemory
from darwinn_sim.host.registers import register
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.machine.lowering import LoweredProgram

SECONDS = 5.0
IMAGES = sample.images()
INTERRUPT = DescriptorTag.INTERRUPT_0


class Clock:
    """A clock that stands unless it is set on; and what a pace was asked and told."""

    def __init__(self, seconds: float | None = SECONDS) -> None:
        self.now = 100.0
        self.seconds = seconds
        self.chunks: list[int] = []
        self.told: list[tuple[float, float | None]] = []
        self.pace = PredictedPace(self._predict, self._tell, lambda: self.now)

    def _predict(self, program: LoweredProgram, chunks: int) -> float | None:
        assert len(program.chunks) >= chunks
        self.chunks.append(chunks)
        return self.seconds

    def _tell(self, took: float, seconds: float | None) -> None:
        self.told.append((took, seconds))


def settle(chip: Chip) -> Waits:
    while chip.advance():
        pass
    return chip.waits


class UsbBench:
    """A chip behind USB that runs, with what it has sent."""

    def __init__(self, pace: Pace) -> None:
        self.outputs = b""
        self.events: list[int] = []
        self.chip, self.usb = behind_usb(self, pace=pace)
        self.chip.write(0x1A318, 0x0085025C, 32)
        self.chip.write(register("scalar_core_run_control").offset, 1, 64)

    def take_output(self, data: bytes) -> None:
        self.outputs += data

    def take_event(self, tag: int, address: int, size: int) -> None:
        self.events.append(tag)

    def request(self, image: bytes) -> None:
        buffers = (
            Buffer(Description.BASE_ADDRESS_INPUT_ACTIVATION, "image", 0),
            Buffer(Description.BASE_ADDRESS_OUTPUT_ACTIVATION, "averages", 0),
        )
        for chunk in link(sample.executable(), dict.fromkeys(buffers, 0x5555_0000_0000)):
            self.usb.push_chunk(chunk)
        self.usb.push_data(DescriptorTag.INPUT, image)


def test_by_usb_outputs_and_the_interrupt_come_in_time() -> None:
    clock = Clock()
    bench = UsbBench(clock.pace)
    assert clock.pace.left() is None
    image = IMAGES()
    bench.request(image)
    assert settle(bench.chip) is Waits.CHUNK
    assert clock.pace.left() == SECONDS
    clock.now += 0.99 * SECONDS
    settle(bench.chip)
    assert bench.outputs == b""
    assert INTERRUPT not in bench.events
    assert not bench.chip.read(register("sc_host_int_count").offset, 64)
    clock.now += clock.pace.left() or 0.0
    settle(bench.chip)
    assert bench.outputs == sample.expected(image)
    assert bench.events[-1] == INTERRUPT
    assert clock.pace.left() is None
    assert clock.told == [(0.0, SECONDS)]


def test_requests_follow_each_other_as_on_the_chip() -> None:
    clock = Clock()
    bench = UsbBench(clock.pace)
    images = [IMAGES() for _ in range(3)]
    for image in images:
        bench.request(image)
    settle(bench.chip)
    for number in range(3):
        assert bench.events.count(INTERRUPT) == number
        assert clock.pace.left() == SECONDS
        clock.now += SECONDS
        settle(bench.chip)
        assert bench.outputs == b"".join(map(sample.expected, images[: number + 1]))
    assert clock.chunks == [1, 1, 1]


def test_by_pcie_the_interrupt_comes_in_time() -> None:
    clock = Clock()
    memory = HostMemory()
    sources: list[InterruptSource] = []
    host = HostInterface(memory, lambda message: sources.append(message.source))
    chip = Chip(host, pace=clock.pace)
    driver = Driver(host, memory)
    driver.open()
    image = IMAGES()
    request = driver.prepare(sample.executable(), {"image": image})
    driver.submit(request)
    settle(chip)
    assert InterruptSource.SCALAR_CORE not in sources
    count = register("sc_host_int_count").offset
    assert not chip.read(count, 64)
    clock.now += SECONDS
    settle(chip)
    assert sources[-1] is InterruptSource.SCALAR_CORE
    assert chip.read(count, 64) == 1
    assert driver.finish(request)["averages"] == sample.expected(image)


@pytest.mark.parametrize("seconds", [0.0, None])
def test_what_cannot_be_held_back_comes_at_once(seconds: float | None) -> None:
    clock = Clock(seconds)
    bench = UsbBench(clock.pace)
    image = IMAGES()
    bench.request(image)
    settle(bench.chip)
    assert bench.outputs == sample.expected(image)
    assert bench.events[-1] == INTERRUPT
    assert clock.told == [(0.0, seconds)]


def test_a_host_that_is_awaited_gets_what_there_is() -> None:
    """Half of the input: what the program has given by then may be what the host waits for."""
    clock = Clock()
    bench = UsbBench(clock.pace)
    image = IMAGES()
    bench.request(image[: len(image) // 2])
    assert settle(bench.chip) is Waits.BYTES
    assert clock.pace.left() is None
    clock.now += 2 * SECONDS
    bench.usb.push_data(DescriptorTag.INPUT, image[len(image) // 2 :])
    settle(bench.chip)
    assert bench.outputs == sample.expected(image)
    assert clock.told == [(2 * SECONDS, SECONDS)]


def test_a_reset_drops_what_is_held_back() -> None:
    clock = Clock()
    bench = UsbBench(clock.pace)
    bench.request(IMAGES())
    settle(bench.chip)
    bench.chip.reset()
    clock.now += 2 * SECONDS
    settle(bench.chip)
    assert (bench.outputs, clock.pace.left()) == (b"", None)


def test_outputs_that_are_too_many_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_pace, "MAX_HELD_BYTES", 10)
    done: list[int] = []
    pace = Clock().pace

    def act(number: int) -> Callable[[], None]:
        return lambda: done.append(number)

    pace.begin()
    for number in range(3):
        pace.hold(act(number), 5)
    assert done == [0, 1, 2]
    pace.hold(act(3), 5)
    assert done == [0, 1, 2]


def test_as_many_bytes_as_may_be_held_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tells the host no bytes, as an interrupt, counts for nothing."""
    monkeypatch.setattr(device_pace, "MAX_HELD_BYTES", 10)
    done: list[str] = []
    pace = Clock().pace
    pace.begin()
    pace.hold(lambda: done.append("output"), 10)
    for _ in range(3):
        pace.hold(lambda: done.append("interrupt"))
    assert not done
    pace.hold(lambda: done.append("more"), 1)
    assert done == ["output", *["interrupt"] * 3, "more"]


def test_without_a_prediction_nothing_is_held() -> None:
    done: list[int] = []
    pace = Pace()
    pace.begin()
    pace.hold(lambda: done.append(1), 7)
    pace.hold(lambda: done.append(2))
    assert done == [1, 2] and pace.left() is None
    for call in (pace.clear, pace.let_go, pace.release):
        call()
    assert done == [1, 2]


def test_what_a_host_does_not_take_later_is_a_fault() -> None:
    clock = Clock()
    bench = UsbBench(clock.pace)
    bench.request(IMAGES())
    settle(bench.chip)

    def refuse(data: bytes) -> None:
        raise SimulationError("nobody takes it")

    # What is held back is for this host, whoever it is then.
    held = clock.pace._held
    held[0].act = lambda: refuse(b"")
    clock.now += SECONDS
    with pytest.raises(SimulationError, match="nobody takes it"):
        bench.chip.advance()
    assert bench.chip.waits is Waits.RESET


def test_what_is_due_waits_no_longer() -> None:
    """The seconds that are left, and never fewer than none."""
    clock = Clock()
    clock.pace.begin()
    clock.pace.hold(lambda: None)
    assert clock.pace.left() is None
    clock.pace._let_go(clock.now + 3)
    for passed, left in ((0.0, 3.0), (2.5, 0.5), (3.0, 0.0), (8.0, 0.0)):
        clock.now = 100.0 + passed
        assert clock.pace.left() == left


class Spy(Pace):
    """What the chip says, in order; nothing is held back."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def clear(self) -> None:
        self.said.append("clear")

    def begin(self) -> None:
        self.said.append("begin")

    def hold(self, act: Callable[[], None], size: int = 0) -> None:
        self.said.append(f"hold {size}")
        act()

    def end(self, program: LoweredProgram, chunks: int) -> None:
        self.said.append(f"end {chunks}")

    def let_go(self) -> None:
        self.said.append("let go")

    def release(self) -> None:
        self.said.append("release")


def test_a_chip_says_what_it_does() -> None:
    """What is due leaves at each moment of its work; what is held for the host, when it waits."""
    spy = Spy()
    bench = UsbBench(spy)
    assert spy.said == ["clear"], "as it is made"
    seen: list[str] = []
    for moment in range(3):
        if moment:
            bench.request(IMAGES())
        while True:
            spy.said.clear()
            goes_on = bench.chip.advance()
            assert spy.said[0] == "release"
            assert spy.said[-1] == "let go" if not goes_on else "let go" not in spy.said
            assert spy.said.count("release") == 1
            seen += [each for each in spy.said if each not in ("release", "let go")]
            if not goes_on:
                break
        outputs = [each for each in seen if each.startswith("hold") and each != "hold 0"]
        octets = sum(int(each.split()[1]) for each in outputs)
        assert octets == moment * sample.OUTPUT_BYTES == len(bench.outputs)
        assert (seen.count("begin"), seen.count("end 1")) == (moment, moment)
        assert seen.count("hold 0") == bench.events.count(INTERRUPT)
    spy.said.clear()
    bench.chip.reset()
    assert set(spy.said) == {"clear"}
