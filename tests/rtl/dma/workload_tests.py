"""Workloads on the harness, at full speed: C++ memory and units, Python only waits."""

from __future__ import annotations

import ctypes
import json
import os
import weakref
from contextlib import suppress
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import cocotb
import numpy as np
from darwinn_rtl.bench import WaitTimeout
from darwinn_rtl.dma import workload_bench
from darwinn_rtl.dma.descriptor_model import Descriptor, Window
from darwinn_rtl.dma.environment import CYCLES_PER_DESCRIPTOR, MAX_BURST, STATUS_REGISTERS
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
from darwinn_rtl.dma.programs import DescriptorProgram, ProgramGenerator
from darwinn_rtl.dma.timing import Channel
from darwinn_rtl.dma.workload import (
    DEFAULT_WINDOW,
    STALL_CYCLES,
    Workload,
    performed_by_model,
    workload_of,
)
from darwinn_rtl.dma.workload_bench import WorkloadBench
from darwinn_rtl.dma.workload_check import check_bytes, check_timing
from darwinn_rtl.dma.workload_player import WorkloadPlayer
from darwinn_rtl.harness import HarnessDescription
from darwinn_sim.isa.codes import DescriptorTag

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

HEADS = ("fetched", "completed")

REGISTERS = (*STATUS_REGISTERS, "harness_dma_error_descriptor")


@cocotb.test()
async def random_programs(dut: Any) -> None:
    """Bytes, order, status and every cycle of random programs are those of the models."""
    simulation = WorkloadBench(dut)
    bench = simulation.bench
    await simulation.start()
    harness = HarnessDescription(**json.loads(os.environ["DARWINN_HARNESS"]))
    generator = ProgramGenerator(bench.random, harness.data_bytes, MAX_BURST)
    count, cycles = int(os.environ["DARWINN_PROGRAMS"]), 0
    for number in range(count):
        program = generator.program()
        workload = workload_of(program, harness.data_bytes, bench.random.getrandbits(32))
        model, wanted = performed_by_model(program, harness.data_bytes)
        wanted.registers |= model.error_descriptor()
        limit = CYCLES_PER_DESCRIPTOR * (1 + len(program.descriptors))
        try:
            found = await simulation.perform(workload, limit, REGISTERS)
            check_bytes(found, wanted)
            cycles += check_timing(workload, found, harness).cycles_rtl
        except AssertionError as error:
            raise AssertionError(f"program {number} of seed {bench.seed}: {error}") from error
    bench.log.info("%d programs, %d cycles", count, cycles)


@cocotb.test()
async def unruly_programs(dut: Any) -> None:
    """Bytes and status are those of the model whatever memory does within AXI4, also after a reset
    at any moment."""
    simulation = WorkloadBench(dut)
    bench = simulation.bench
    await simulation.start()
    library = ctypes.CDLL(None)
    library.memory_seed(ctypes.c_uint64(bench.seed))
    library.memory_seen_of.restype = ctypes.c_uint64
    data_bytes = int(os.environ["DARWINN_DATA_BYTES"])
    generator = ProgramGenerator(bench.random, data_bytes, MAX_BURST)
    count, broken_off = int(os.environ["DARWINN_PROGRAMS"]), 0
    for number in range(count):
        program = generator.program()
        workload = workload_of(program, data_bytes, bench.random.getrandbits(32))
        _, wanted = performed_by_model(program, data_bytes)
        limit = 4 * CYCLES_PER_DESCRIPTOR * (1 + len(program.descriptors))
        try:
            if number % 3 == 0:
                await simulation.perform(workload, bench.random.randint(5, 300))
        except WaitTimeout:
            broken_off += 1
        try:
            check_bytes(await simulation.perform(workload, limit, STATUS_REGISTERS), wanted)
        except AssertionError as error:
            raise AssertionError(f"program {number} of seed {bench.seed}: {error}") from error
    assert broken_off > count // 6, "hardly a program was broken off by a reset"
    for number, what in enumerate(UNRULY):
        assert library.memory_seen_of(ctypes.c_uint32(number)), f"never seen: {what}"


@cocotb.test()
async def memory_of_what_breaks_off(dut: Any) -> None:
    """The memory of a workload stays until the RTL has that of the next one: before the reset that
    comes first it goes on in it."""
    simulation = WorkloadBench(dut)
    await simulation.start()
    players: list[weakref.ref[WorkloadPlayer]] = []

    def player(workload: Workload) -> WorkloadPlayer:
        made = WorkloadPlayer(workload)
        players.append(weakref.ref(made))
        return made

    with patch.object(workload_bench, "WorkloadPlayer", player):
        with suppress(WaitTimeout):
            await simulation.perform(endless_workload(simulation.bench.random), 100)
        assert players[0]() is not None, "the memory is gone while the RTL works in it"
        await simulation.perform(far_workload(simulation.bench.random, large=False))
    assert players[0]() is None, "the memory stays for good"


@cocotb.test()
async def memory_that_ends_with_python(dut: Any) -> None:
    """The RTL goes on for a moment when Python has ended, and works in nothing that is gone: an
    array of this size is given back to the system at once."""
    simulation = WorkloadBench(dut)
    await simulation.start()
    workload = far_workload(simulation.bench.random, large=False)
    await simulation.perform(replace(workload, stalls=np.zeros(1 << 24, np.uint32)))


@cocotb.test()
async def far_programs(dut: Any) -> None:
    """The same of programs that reach all of memory, and what is too large for it is not done."""
    simulation = WorkloadBench(dut)
    random = simulation.bench.random
    await simulation.start()
    count = int(os.environ["DARWINN_PROGRAMS"])
    workloads = [far_workload(random, large=not number % 8) for number in range(count)]
    workloads += [fenced_workload(random, before) for before in BEFORE_A_FENCE]
    for number, workload in enumerate(workloads):
        limit = 10_000 + 3 * sum(map(len, workload.regions.values()))
        try:
            await equals_the_models(simulation, workload, limit)
        except AssertionError as error:
            seed = simulation.bench.seed
            raise AssertionError(f"far program {number} of seed {seed}: {error}") from error
    for _ in range(4):
        await goes_on(simulation, endless_workload(random))


@cocotb.test()
async def any_size(dut: Any) -> None:
    """Each bit of a size that is too large to be waited for counts."""
    simulation = WorkloadBench(dut)
    await simulation.start()
    for bit in range(15, 32):
        for tag in TAGS:
            await goes_on(simulation, transfer_of(1 << bit, tag, simulation.bench.random))


@cocotb.test()
async def many_interrupts(dut: Any) -> None:
    """The count of an interrupt has 16 bits, and begins anew behind the last of them; the heads of
    the instruction queue have more."""
    simulation = WorkloadBench(dut)
    await simulation.start()
    for block in (False, True):
        await heads_of_a_long_ring(simulation, block=block)
    interrupt = Descriptor(DescriptorTag.INTERRUPT_0 + 1)
    workload = Workload([interrupt] * ((1 << 16) + 3), {}, b"")
    found = await simulation.perform(workload, 1 << 20, ("sc_host_int_count",))
    assert found.registers["sc_host_int_count"] == 3 << 16


async def heads_of_a_long_ring(simulation: WorkloadBench, *, block: bool) -> None:
    """They follow each chunk of a ring that is longer than 16 bits count; so does the status block,
    if it is asked for."""
    chunks, heads = (1 << 16) + 5, [f"instruction_queue_{name}_head" for name in HEADS]
    place, before, last = 16, b"8 bytes!" * 4, 4096
    descriptors = [Descriptor(DescriptorTag.INSTRUCTIONS, DEFAULT_WINDOW.base, 1)] * chunks
    # While this one is read, the last block is written.
    descriptors.append(Descriptor(DescriptorTag.INPUT, DEFAULT_WINDOW.base + last, last))
    workload = Workload(descriptors, {0: before, last: bytes(last)}, b"")
    settings = {
        "instruction_queue_size": 1 << 17,
        "instruction_queue_status_block_base": DEFAULT_WINDOW.base + place,
        "instruction_queue_control": 1 | 4 * block,
    }
    found = await simulation.perform(workload, 1 << 20, tuple(heads), settings)
    assert found.registers == dict.fromkeys(heads, chunks)
    wanted = before[:place] + chunks.to_bytes(16, "little") if block else before
    assert found.regions[0] == wanted


@cocotb.test()
async def any_burst_limit(dut: Any) -> None:
    """Each bit of the limit of bursts counts, also those that make it larger than any burst."""
    simulation = WorkloadBench(dut)
    random = simulation.bench.random
    await simulation.start()
    for bit in range(3, 64):
        workload = transfer_of(2000, random.choice(TAGS), random)
        workload = replace(workload, output=workload.output[:2000], burst_limit=1 << bit | 8)
        await equals_the_models(simulation, workload, 3000)


@cocotb.test()
async def any_refusal(dut: Any) -> None:
    """Each bit of what makes a descriptor bad counts, and each bit of a window's ends; errors that
    come together are all reported."""
    simulation = WorkloadBench(dut)
    random = simulation.bench.random
    await simulation.start()
    await equals_the_models(simulation, refused_workload(random), 3000)
    for bit in range(64):
        for window in (Window(1 << bit, 1 << 12), Window(random.getrandbits(63), 1 << bit)):
            await equals_the_models(simulation, window_workload(random, window), 3000)
    await reports_all_at_once(simulation)


async def reports_all_at_once(simulation: WorkloadBench) -> None:
    """A read and a write that fail, and a descriptor that is refused, each in any cycle around the
    others."""
    random, size = simulation.bench.random, 1 << 12
    tags = (DescriptorTag.INPUT, DescriptorTag.OUTPUT)
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
            check_bytes(await simulation.perform(workload, 3000, STATUS_REGISTERS), wanted)


async def equals_the_models(simulation: WorkloadBench, workload: Workload, limit: int) -> None:
    """A workload without words that answer with an error: bytes, registers and cycles."""
    harness = HarnessDescription(**json.loads(os.environ["DARWINN_HARNESS"]))
    found = await simulation.perform(workload, limit, REGISTERS)
    check_bytes(found, expected(workload, harness.data_bytes))
    check_timing(workload, found, harness)


async def goes_on(simulation: WorkloadBench, workload: Workload) -> None:
    """A transfer of at least 32 KiB is broken off."""
    size = workload.descriptors[0].size
    try:
        await simulation.perform(workload, 3000)
    except WaitTimeout:
        assert _moved() >= len(workload.output), f"{size:#x} bytes: it does not go on"
    else:
        raise AssertionError(f"{size:#x} bytes were moved in 3,000 cycles")


@cocotb.test()
async def long_program(dut: Any) -> None:
    """The number of a descriptor, by which its end and error are told, has more than 16 bits."""
    simulation = WorkloadBench(dut)
    await simulation.start()
    workload = long_workload(simulation.bench.random, int(os.environ["DARWINN_PROGRAMS"]))
    limit = CYCLES_PER_DESCRIPTOR * len(workload.descriptors)
    await equals_the_models(simulation, workload, limit)


def _moved() -> int:
    """Bytes that streams gave and took since a workload began."""
    library = ctypes.CDLL(None)
    library.workload_taken.restype = library.workload_given.restype = ctypes.c_uint64
    taken = sum(library.workload_taken(ctypes.c_uint32(stream)) for stream in range(3))
    return int(taken + library.workload_given())
