"""A device that ran anything at all then gives what a new one gives, by PCIe and by USB."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

import averaging_program as sample
import endless
import numpy as np
import pytest
from averaging_program import Operation
from darwinn_formats.darwinn import Buffer, Description, Executable, InstructionBitstream, link
from darwinn_formats.errors import FormatError
from darwinn_sim.accelerator import Accelerator, RunResult
from darwinn_sim.device.chip import Chip, Waits, behind_usb
from darwinn_sim.errors import Deadlock, SimulationError
from darwinn_sim.host.registers import register
from darwinn_sim.isa.codec import DecodeError
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.timing.event_model import simulate

SEEDS = range(12)
BAD_IN_A_ROW = 5
WORK = 1 << 20
RUN = register("scalar_core_run_control").offset
WAKE = (0x1A318, 0x0085025C, 32)
"""What a client writes to wake the core."""

GOOD = (sample.executable(), sample.executable(split=12))
SPIN: Operation = ("Branch", {"relative": 1, "offset": 0})
ROW = sample.line("buffer", 3, 64, 0) | {"fifo": 2, "row_words": 63}


def after(name: str, *added: Operation) -> list[Operation]:
    """The sample with instructions after its first one called ``name``."""
    program = sample.operations()
    place = [operation for operation, _ in program].index(name) + 1
    return [*program[:place], *added, *program[place:]]


def input_twice() -> list[Operation]:
    program = sample.operations()
    pop = [operation for operation, _ in program].index("PopInput")
    return [*program[:pop], *program[pop - 8 : pop], *program[pop:]]


LEFT: dict[str, tuple[list[Operation], str]] = {
    "input": (input_twice(), "256 bytes of input stream"),
    "rows for a tile": (
        after("RingInfeed", ("RingInfeed", ROW | {"targets": 1 << sample.TILE, "consumer_b": 1})),
        "1 rows of the ring for tile 5, channel B",
    ),
    "rows for the outfeed": (
        after("NarrowToWide", ("RingInfeed", ROW | {"targets": 1 << 16})),
        "rows of the ring for the outfeed",
    ),
}


def mutant(draw: random.Random) -> Executable:
    """The sample, or a program without end, with up to three bits changed."""
    name = draw.choice([*endless.BODIES, *["sample"] * 20])
    changed = sample.executable() if name == "sample" else endless.executable(name)
    (stream,) = changed.instruction_bitstreams
    octets = bytearray(stream.bitstream)
    for _ in range(draw.randrange(1, 4)):
        # Not the bundles around the program: they would only be refused.
        bit = draw.randrange(128, 8 * len(octets) - 128)
        octets[bit // 8] ^= 1 << bit % 8
    return replace(
        changed,
        instruction_bitstreams=(InstructionBitstream(bytes(octets), stream.field_offsets),),
    )


def told(result: RunResult) -> tuple[Any, ...]:
    """What is seen of a run, without the places of its buffers."""
    moved = [(each.kind, each.direction, each.size, each.number) for each in result.transfers]
    return result.outputs, result.interrupts, moved, result.statistics, result.warnings


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_by_pcie(seed: int, strict: bool) -> None:
    draw = random.Random(seed)
    used = Accelerator(strict=strict, work_limit=WORK)
    for executable in GOOD:
        for _ in range(BAD_IN_A_ROW):
            bad, image = mutant(draw), draw.randbytes(sample.INPUT_BYTES)
            with suppress(SimulationError, FormatError, DecodeError):
                used.run(bad, {"image": image})
        inputs = {"image": draw.randbytes(sample.INPUT_BYTES)}
        new = Accelerator(strict=strict).run(executable, inputs)
        assert told(used.run(executable, inputs)) == told(new), f"seed {seed}"


class Host:
    """A host at the other end of a cable, with what it was sent."""

    def __init__(self) -> None:
        self.sent: list[bytes | tuple[int, int, int]] = []
        self.chip, self.usb = behind_usb(self)
        self.chip.work_limit = WORK
        self.addresses = count(0x5555_0000_0000, 0x1_0000_0000)
        self.start()

    def start(self) -> None:
        self.chip.write(*WAKE)
        self.chip.write(RUN, 1, 64)

    def take_output(self, data: bytes) -> None:
        self.sent.append(data)

    def take_event(self, tag: int, address: int, size: int) -> None:
        self.sent.append((tag, address, size))

    def run(self, executable: Executable, image: bytes) -> list[bytes | tuple[int, int, int]]:
        self.sent = []
        buffers = {
            Buffer(Description.BASE_ADDRESS_INPUT_ACTIVATION, "image", 0): 0x5555_0000_0000,
            Buffer(Description.BASE_ADDRESS_OUTPUT_ACTIVATION, "averages", 0): 0x6666_0000_0000,
        }
        for chunk in link(executable, buffers):
            self.usb.push_chunk(chunk)
        self.usb.push_data(DescriptorTag.INPUT, image)
        settle(self.chip)
        return self.sent


def settle(chip: Chip) -> None:
    while chip.advance():
        pass


@pytest.mark.parametrize("seed", SEEDS)
def test_by_usb_after_a_reset(seed: int) -> None:
    draw = random.Random(seed)
    used = Host()
    for executable in GOOD:
        for _ in range(BAD_IN_A_ROW):
            with suppress(SimulationError, FormatError, DecodeError):
                used.run(mutant(draw), draw.randbytes(sample.INPUT_BYTES))
            # As the driver does where a request has not ended well.
            used.chip.reset()
            used.start()
        image = draw.randbytes(sample.INPUT_BYTES)
        sent = used.run(executable, image)
        assert sent == Host().run(executable, image) and sample.expected(image) in sent
        assert used.chip.waits is Waits.CHUNK


@pytest.mark.parametrize("name", LEFT)
def test_what_a_program_leaves_in_fifos_is_its_fault(name: str) -> None:
    """It ended well, and the next one had a row too many: other outputs, without a word."""
    program, what = LEFT[name]
    image = bytes(sample.INPUT_BYTES)
    used = Accelerator()
    with pytest.raises(Deadlock, match=what):
        used.run(sample.executable(program), {"image": image})
    other = bytes(range(256))
    assert used.run(GOOD[0], {"image": other}).outputs["averages"] == sample.expected(other)
    with pytest.raises(Deadlock, match=what):
        simulate(sample.executable(program))


def test_random_data_of_the_scalar_core_begins_again_with_the_chip() -> None:
    used, new = (Accelerator(dma_only=True, seed=3, work_limit=WORK) for _ in range(2))
    inputs = {"image": bytes(sample.INPUT_BYTES)}
    with pytest.raises(SimulationError):
        used.run(sample.executable([*sample.operations(), SPIN]), inputs)
    first, second = (each.run(GOOD[0], inputs).outputs["averages"] for each in (used, new))
    assert first == second and len(np.unique(np.frombuffer(first, np.uint8))) > 8


def test_an_interrupt_of_the_user_leaves_a_usable_device() -> None:
    used = Accelerator()

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        used.run(GOOD[0], {"image": bytes(sample.INPUT_BYTES)}, progress=stop)
    image = bytes(range(256))
    new = Accelerator().run(GOOD[0], {"image": image})
    assert told(used.run(GOOD[0], {"image": image})) == told(new)
