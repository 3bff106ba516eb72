"""The descriptor model that the RTL is compared with, and the random programs made for it."""

from __future__ import annotations

from random import Random

import pytest
from darwinn_rtl.dma.descriptor_model import (
    Descriptor,
    DescriptorModel,
    Outcome,
    Window,
)
from darwinn_rtl.dma.programs import (
    GUARD_BYTES,
    MEMORY_BYTES,
    ProgramGenerator,
    alignment,
    size_class,
)
from darwinn_sim.isa.codes import DescriptorTag

WINDOW = Window(1 << 63, 64)


@pytest.mark.parametrize(
    ("descriptor", "outcome"),
    [
        (Descriptor(DescriptorTag.INPUT, WINDOW.base, 64), Outcome.STARTED),
        (Descriptor(DescriptorTag.OUTPUT, WINDOW.base + 63, 1), Outcome.STARTED),
        (Descriptor(DescriptorTag.INTERRUPT_0 + 3), Outcome.STARTED),
        (Descriptor(fence=True), Outcome.STARTED),
        (Descriptor(DescriptorTag.INSTRUCTIONS, WINDOW.base, 0), Outcome.LENGTH_0),
        (Descriptor(DescriptorTag.INPUT, WINDOW.base + 1, 64), Outcome.EXTENDED_FAULT),
        (Descriptor(DescriptorTag.INPUT, WINDOW.base - 1, 2), Outcome.INBOUND_FAULT),
        (Descriptor(8), Outcome.MALFORMED),
        (Descriptor(DescriptorTag.INTERRUPT_0, 0, 1), Outcome.MALFORMED),
        (Descriptor(1, fence=True), Outcome.MALFORMED),
    ],
)
def test_outcome_of_a_descriptor(descriptor: Descriptor, outcome: Outcome) -> None:
    assert WINDOW.outcome(descriptor) is outcome


def test_bytes_go_from_memory_to_streams_and_from_the_output_to_memory() -> None:
    model = DescriptorModel(bytearray(range(64)), WINDOW, 8)
    model.perform(Descriptor(DescriptorTag.INPUT, WINDOW.base + 3, 4))
    model.perform(Descriptor(DescriptorTag.OUTPUT, WINDOW.base + 62, 2), b"\xaa\xbb")
    model.perform(Descriptor(DescriptorTag.INPUT, WINDOW.base + 61, 3))
    assert model.streams[DescriptorTag.INPUT] == bytes((3, 4, 5, 6, 61, 0xAA, 0xBB))
    assert model.status()["harness_dma_completed"] == 3
    assert model.status()["fatal_err_int_status"] == 0


def test_a_bad_word_reads_zeros_and_keeps_its_bytes() -> None:
    model = DescriptorModel(bytearray(range(1, 65)), WINDOW, 8, frozenset((1,)))
    model.perform(Descriptor(DescriptorTag.PARAMETERS, WINDOW.base + 6, 4))
    model.perform(Descriptor(DescriptorTag.OUTPUT, WINDOW.base + 15, 2), b"\xaa\xbb")
    assert model.streams[DescriptorTag.PARAMETERS] == bytes((7, 8, 0, 0))
    assert model.memory[15:17] == bytes((16, 0xBB))
    assert model.status()["harness_dma_error"] == 0b110


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_have_no_races(seed: int) -> None:
    """Without a fence between, no word is written that is read or was to be read."""
    program = ProgramGenerator(Random(seed), 8, 16).program(longest=40)
    reads: set[int] = set()
    writes: set[int] = set()
    for descriptor in program.descriptors:
        if program.window.outcome(descriptor) is not Outcome.STARTED:
            continue
        if descriptor.fence:
            reads, writes = set(), set()
        elif descriptor.is_data:
            start = descriptor.address - program.window.base
            assert start + descriptor.size <= MEMORY_BYTES - GUARD_BYTES
            words = set(range(start // 8, (start + descriptor.size - 1) // 8 + 1))
            write = descriptor.tag == DescriptorTag.OUTPUT
            assert not words & (reads if write else writes), descriptor
            (writes if write else reads).update(words)
    assert len(program.output) == sum(map(len, program.output_of()))


def test_classes_of_transfers() -> None:
    assert [size_class(size, 8, 16).name for size in (1, 7, 8, 128, 129)] == [
        "BYTE",
        "BELOW_WORD",
        "WORD",
        "WITHIN_BURST",
        "SEVERAL_BURSTS",
    ]
    assert [alignment(start, 16, 8).name for start in (8, 9, 4091)] == [
        "ALIGNED",
        "UNALIGNED",
        "ACROSS_BOUNDARY",
    ]
