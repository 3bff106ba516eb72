"""Random descriptor programs through the DMA engine, on buses of several widths.

Those on C++ memory are compared to the cycle; those on the AXI bus model meet a memory that
answers in more ways, and their functional coverage is complete.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from darwinn_rtl.dma.descriptor_model import Descriptor, Window
from darwinn_rtl.dma.far_programs import (
    BEFORE_A_FENCE,
    TAGS,
    endless_workload,
    expected,
    far_workload,
    fenced_workload,
    long_workload,
    refused_workload,
    transfer_of,
    window_workload,
)
from darwinn_rtl.dma.programs import (
    CYCLES_PER_DESCRIPTOR,
    STATUS_REGISTERS,
    DescriptorProgram,
    ProgramGenerator,
)
from darwinn_rtl.dma.timing import Channel
from darwinn_rtl.dma.workload import (
    DEFAULT_WINDOW,
    STALL_CYCLES,
    Workload,
    performed_by_model,
    workload_of,
)
from darwinn_rtl.dma.workload_check import check_bytes, check_timing
from darwinn_rtl.harness import HarnessDescription
from darwinn_sim.isa.codes import DescriptorTag
from harness_runs import design, require_toolchain, run
from nightly import nightly_seed, note

if TYPE_CHECKING:
    from darwinn_rtl.dma.player import WorkloadPlayer

HARNESS = HarnessDescription()

NIGHTLY_HARNESSES = (
    HARNESS,
    HarnessDescription(data_bytes=4, memory_latency=1, outstanding_reads=1),
    HarnessDescription(data_bytes=16, memory_latency=23, buffer_words=64, outstanding_reads=9),
    HarnessDescription(data_bytes=32, memory_latency=9, queue_depth=2, outstanding_writes=1),
)
"""Harnesses that differ in everything that decides their timing."""

ODD = HarnessDescription(
    data_bytes=32,
    memory_latency=2,
    buffer_words=21,
    queue_depth=3,
    outstanding_reads=3,
    outstanding_writes=3,
)
"""Queues whose sizes are no powers of two, on the widest bus."""

REGISTERS = (*STATUS_REGISTERS, "harness_dma_error_descriptor")

CHANNELS = ("AR", "R", "AW", "W", "B")

UNRULY = (
    "words of two bursts in turn",
    "a word before its address",
    "an error of a slave",
    "an error of decoding",
    "an error of a slave to a write",
    "an error of decoding to a write",
    *(f"a {length} pause of {channel}" for length in ("short", "long") for channel in CHANNELS),
)
"""What unruly_memory.sv counts."""


def harness_player(
    harness: HarnessDescription = HARNESS, *, seed: int = 1, unruly: bool = False
) -> WorkloadPlayer:
    require_toolchain()
    from darwinn_rtl.dma.player import WorkloadPlayer, workload_design

    return WorkloadPlayer(seed, workload_design(harness, unruly=unruly))


@contextmanager
def said_of(program: str) -> Iterator[None]:
    """What is raised says which program it was."""
    try:
        yield
    except Exception as error:
        error.add_note(program)
        raise


def broken_off(player: WorkloadPlayer, workload: Workload, limit: int) -> bool:
    """Whether a workload is not done after so many cycles."""
    from darwinn_rtl.player import RtlTimeout

    try:
        player.perform(workload, limit)
    except RtlTimeout:
        return True
    return False


def equals_the_models(
    player: WorkloadPlayer, workload: Workload, limit: int, harness: HarnessDescription = HARNESS
) -> None:
    """A workload without words that answer with an error: bytes, registers and cycles."""
    found = player.perform(workload, limit, REGISTERS)
    check_bytes(found, expected(workload, harness.data_bytes))
    check_timing(workload, found, harness)


def goes_on(player: WorkloadPlayer, workload: Workload) -> None:
    """A transfer of at least 32 KiB is broken off."""
    size = workload.descriptors[0].size
    assert broken_off(player, workload, 3000), f"{size:#x} bytes were moved in 3,000 cycles"
    assert player.moved >= len(workload.output), f"{size:#x} bytes: it does not go on"


def perform(harness: HarnessDescription, programs: int, seed: int) -> None:
    """Bytes, order, status and every cycle of random programs are those of the models."""
    player, random = harness_player(harness, seed=seed), Random(seed)
    generator = ProgramGenerator(random, harness.data_bytes, HARNESS.burst_words)
    for number in range(programs):
        program = generator.program()
        workload = workload_of(program, harness.data_bytes, random.getrandbits(32))
        model, wanted = performed_by_model(program, harness.data_bytes)
        wanted.registers |= model.error_descriptor()
        limit = CYCLES_PER_DESCRIPTOR * (1 + len(program.descriptors))
        with said_of(f"program {number} of seed {seed}"):
            found = player.perform(workload, limit, REGISTERS)
            check_bytes(found, wanted)
            check_timing(workload, found, harness)


def test_random_programs_equal_the_models_to_the_cycle() -> None:
    perform(HARNESS, 500, 1)


def test_random_programs_equal_the_models_with_odd_sizes() -> None:
    perform(ODD, 200, 2)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_ten_thousand_random_programs_equal_the_models(seed: int) -> None:
    harness, programs, chosen = NIGHTLY_HARNESSES[seed % 4], 500, nightly_seed() + seed
    perform(harness, programs, chosen)
    note(f"DMA programs, C++ memory, {8 * harness.data_bytes}-bit bus", programs, chosen)


def perform_far(harness: HarnessDescription, programs: int, seed: int) -> None:
    """The same of programs that reach all of memory, and what is too large for it is not done."""
    player, random = harness_player(harness, seed=seed), Random(seed)
    workloads = [far_workload(random, large=not number % 8) for number in range(programs)]
    workloads += [fenced_workload(random, before) for before in BEFORE_A_FENCE]
    for number, workload in enumerate(workloads):
        limit = 10_000 + 3 * sum(map(len, workload.regions.values()))
        with said_of(f"far program {number} of seed {seed}"):
            equals_the_models(player, workload, limit, harness)
    for _ in range(4):
        goes_on(player, endless_workload(random))


def test_programs_over_all_of_memory_equal_the_models_to_the_cycle() -> None:
    """Addresses of 40 bits, sizes of more than 16, and as many pending as queues hold."""
    perform_far(HARNESS, 16, 1)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_programs_over_all_of_memory(seed: int) -> None:
    harness, programs, chosen = NIGHTLY_HARNESSES[seed], 250, nightly_seed() + seed
    perform_far(harness, programs, chosen)
    note(f"DMA programs over all of memory, {8 * harness.data_bytes}-bit bus", programs, chosen)


def test_every_bit_of_a_size_counts() -> None:
    """Also of one that is too large to be waited for."""
    player, random = harness_player(), Random(1)
    for bit in range(15, 32):
        for tag, more in product(TAGS, (0, 4096)):
            # Without its highest bit the one has no byte, and the other ends.
            goes_on(player, transfer_of((1 << bit) + more, tag, random))


def test_every_bit_of_the_burst_limit_counts() -> None:
    """Also those that make it larger than any burst; and each around the longest burst."""
    player, random = harness_player(), Random(1)
    longest = HARNESS.burst_words
    limits = [1 << bit | 8 for bit in range(3, 64)]
    limits += [limit for limit in range(longest - 2, longest + 3) for _ in TAGS]
    for number, limit in enumerate(limits):
        workload = transfer_of(2000, TAGS[number % len(TAGS)], random)
        workload = replace(workload, output=workload.output[:2000], burst_limit=limit)
        equals_the_models(player, workload, 3000)


def test_whatever_is_wrong_is_reported() -> None:
    """Each bit of what makes a descriptor bad counts, and each bit of a window's ends; errors that
    come together are all reported."""
    player, random = harness_player(), Random(1)
    equals_the_models(player, refused_workload(random), 3000)
    for bit in range(64):
        for window in (Window(1 << bit, 1 << 12), Window(random.getrandbits(63), 1 << bit)):
            equals_the_models(player, window_workload(random, window), 3000)
    reports_all_at_once(player, random)


def reports_all_at_once(player: WorkloadPlayer, random: Random) -> None:
    """A read and a write that fail, and a descriptor that is refused, each in any cycle around the
    others."""
    size, tags = 1 << 12, (DescriptorTag.INPUT, DescriptorTag.OUTPUT)
    descriptors = [Descriptor(tag, 64 * place, 8) for place, tag in enumerate(tags)]
    descriptors += [Descriptor(DescriptorTag.PARAMETERS, 128, 1)] * 8 + [Descriptor(9)]
    memory, output = random.randbytes(size), random.randbytes(8)
    program = DescriptorProgram(descriptors, Window(0, size), memory, output, frozenset((0, 8)))
    _, wanted = performed_by_model(program, 8)
    for channel in (Channel.READ_DATA, Channel.WRITE_RESPONSE):
        for held in range(1, 30):
            stalls = np.zeros(STALL_CYCLES, np.uint32)
            stalls[1:held] = 1 << channel
            workload = replace(workload_of(program, 8, 0), stalls=stalls)
            check_bytes(player.perform(workload, 3000, STATUS_REGISTERS), wanted)


def test_the_number_of_a_descriptor_has_more_than_16_bits() -> None:
    """By it its end and its error are told."""
    workload = long_workload(Random(1), (1 << 16) + 50)
    equals_the_models(harness_player(), workload, CYCLES_PER_DESCRIPTOR * len(workload.descriptors))


def test_the_count_of_completed_descriptors_has_more_than_20_bits() -> None:
    """Fences behind nothing complete one a cycle. The bits above are proved by night."""
    fences = (1 << 20) + 3
    workload = Workload([Descriptor(fence=True)] * fences, {}, b"")
    found = harness_player().perform(workload, 1 << 22, ("harness_dma_completed",))
    assert found.registers["harness_dma_completed"] == fences


def test_the_count_of_an_interrupt_begins_anew_behind_16_bits() -> None:
    interrupt = Descriptor(DescriptorTag.INTERRUPT_0 + 1)
    workload = Workload([interrupt] * ((1 << 16) + 3), {}, b"")
    found = harness_player().perform(workload, 1 << 20, ("sc_host_int_count",))
    assert found.registers["sc_host_int_count"] == 3 << 16


@pytest.mark.parametrize("block", [False, True])
def test_the_heads_of_a_ring_have_more_than_16_bits(block: bool) -> None:
    """They follow each chunk; so does the status block, if it is asked for."""
    heads = [f"instruction_queue_{name}_head" for name in ("fetched", "completed")]
    chunks, place, before, last = (1 << 16) + 5, 16, b"8 bytes!" * 4, 4096
    descriptors = [Descriptor(DescriptorTag.INSTRUCTIONS, DEFAULT_WINDOW.base, 1)] * chunks
    # While this one is read, the last block is written.
    descriptors.append(Descriptor(DescriptorTag.INPUT, DEFAULT_WINDOW.base + last, last))
    workload = Workload(descriptors, {0: before, last: bytes(last)}, b"")
    settings = {
        "instruction_queue_size": 1 << 17,
        "instruction_queue_status_block_base": DEFAULT_WINDOW.base + place,
        "instruction_queue_control": 1 | 4 * block,
    }
    found = harness_player().perform(workload, 1 << 20, tuple(heads), settings)
    assert found.registers == dict.fromkeys(heads, chunks)
    wanted = before[:place] + chunks.to_bytes(16, "little") if block else before
    assert found.regions[0] == wanted


def perform_unruly(data_bytes: int, programs: int, seed: int) -> None:
    """Bytes and status are those of the model whatever memory does within AXI4, also after a reset
    at any moment."""
    harness, random = HarnessDescription(data_bytes=data_bytes), Random(seed)
    player, resets = harness_player(harness, seed=seed, unruly=True), 0
    generator = ProgramGenerator(random, data_bytes, HARNESS.burst_words)
    for number in range(programs):
        program = generator.program()
        workload = workload_of(program, data_bytes, random.getrandbits(32))
        _, wanted = performed_by_model(program, data_bytes)
        limit = 4 * CYCLES_PER_DESCRIPTOR * (1 + len(program.descriptors))
        with said_of(f"program {number} of seed {seed}"):
            if number % 3 == 0:
                resets += broken_off(player, workload, random.randint(5, 300))
            check_bytes(player.perform(workload, limit, STATUS_REGISTERS), wanted)
    assert resets > programs // 6, "hardly a program was broken off by a reset"
    for number, what in enumerate(UNRULY):
        assert player.memory_saw(number), f"never seen: {what}"


def test_an_unruly_memory_changes_no_byte() -> None:
    perform_unruly(8, 60, 1)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(8))
def test_unruly_memories_change_no_byte(seed: int) -> None:
    width, programs, chosen = (8, 16, 4, 32)[seed % 4], 1000, nightly_seed() + seed
    perform_unruly(width, programs, chosen)
    note(f"DMA programs, unruly memory, {8 * width}-bit bus", programs, chosen)


def test_memory_stays_while_the_rtl_may_work_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of a workload that is broken off stays until the RTL has that of the next one:
    before the reset that comes first it goes on in it."""
    player, random = harness_player(), Random(1)
    from darwinn_rtl.dma.player import Placed

    placed: list[weakref.ref[Any]] = []
    place = Placed.__init__

    def noted(made: Any, workload: Workload) -> None:
        place(made, workload)
        placed.append(weakref.ref(made))

    monkeypatch.setattr(Placed, "__init__", noted)
    assert broken_off(player, endless_workload(random), 100)
    assert placed[0]() is not None, "the memory is gone while the RTL works in it"
    player.perform(far_workload(random, large=False))
    assert placed[0]() is None, "the memory stays for good"


def perform_on_bus_model(
    data_bytes: int, programs: int, seed: int, work: Path, **parameters: int
) -> None:
    run(
        design(DataBytes=data_bytes, **parameters),
        "dma_programs_tests",
        "RandomPrograms",
        work,
        seed=seed,
        DARWINN_PROGRAMS=programs,
        DARWINN_COMPLETE_COVERAGE=1 if data_bytes == 8 else "",
    )


@pytest.mark.parametrize(
    ("data_bytes", "programs", "seed"),
    [(8, 80, 1), pytest.param(32, 40, 2, marks=pytest.mark.nightly)],
)
def test_random_programs_on_the_bus_model(
    data_bytes: int, programs: int, seed: int, tmp_path: Path
) -> None:
    perform_on_bus_model(data_bytes, programs, seed, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_two_thousand_random_programs_on_the_bus_model(seed: int, tmp_path: Path) -> None:
    width, programs, chosen = (8, 16, 4, 32)[seed % 4], 100, nightly_seed() + seed
    perform_on_bus_model(width, programs, chosen, tmp_path, OutstandingReads=1 + seed % 5)
    note(f"DMA programs, AXI bus model, {8 * width}-bit bus", programs, chosen)
