"""Transfers between host and chip that overlap: which are ordered by a fence."""

from __future__ import annotations

import averaging_program as sample
import pytest
from averaging_program import OUTPUT_BYTES, issue, line
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.machine.host_order import HostOrder

IMAGE = sample.images()()
IN, OUT = DescriptorTag.INPUT, DescriptorTag.OUTPUT


def found(*transfers: tuple[int, int, int, int, int]) -> list[tuple[int, int, int]]:
    """Overlaps of descriptors (tag, address, size, fences for output and for input before it)."""
    host = HostOrder()
    for number, (tag, address, size, drained, taken) in enumerate(transfers):
        host.issue(number, tag, address, size, drained=drained, taken=taken)
    return [(*pair, each.address) for pair, each in host.found.items()]


def test_a_read_of_what_was_written_needs_a_dma_fence() -> None:
    assert found((OUT, 0x100, 64, 0, 0), (IN, 0x120, 8, 0, 0)) == [(0, 1, 0x120)]
    assert found((OUT, 0x100, 64, 0, 0), (IN, 0x120, 8, 0, 1)) == [(0, 1, 0x120)]
    assert found((OUT, 0x100, 64, 0, 0), (IN, 0x120, 8, 1, 0)) == []


def test_a_write_of_what_was_read_needs_that_the_input_was_taken() -> None:
    assert found((IN, 0x100, 64, 0, 0), (OUT, 0xF0, 17, 1, 0)) == [(0, 1, 0x100)]
    assert found((IN, 0x100, 64, 0, 0), (OUT, 0xF0, 17, 0, 1)) == []


def test_what_only_touches_does_not_overlap() -> None:
    assert found((OUT, 0x100, 64, 0, 0), (IN, 0x140, 64, 0, 0), (IN, 0xC0, 64, 0, 0)) == []


def test_transfers_in_one_direction_are_streams() -> None:
    assert found((OUT, 0x100, 64, 0, 0), (OUT, 0x100, 64, 0, 0)) == []
    assert found((IN, 0x100, 64, 0, 0), (DescriptorTag.PARAMETERS, 0x100, 64, 0, 0)) == []


def test_interrupts_move_nothing() -> None:
    assert found((OUT, 0, 64, 0, 0), (DescriptorTag.INTERRUPT_0, 0, 64, 0, 0)) == []


@pytest.mark.parametrize("fenced", [True, False])
def test_a_program_that_reads_its_output_back(fenced: bool) -> None:
    program = sample.operations()
    place = max(k for k, (name, _) in enumerate(program) if name == "ScalarFence") + fenced
    read = issue(IN, OUTPUT_BYTES, sample.ADDRESS_REGISTERS[sample.OUTPUT])
    pop = ("PopInput", line("buffer", 3, OUTPUT_BYTES // 8, 100) | {"fifo": 1})
    program[place:place] = [*read, pop]
    accelerator = Accelerator(hazards=True)
    hazards = accelerator.run(sample.executable(program), {"image": IMAGE}).hazards
    assert bool(hazards) is not fenced
    if hazards:
        (hazard,) = hazards
        assert (hazard.kind, hazard.memory) == ("read after write", "host memory")
        assert hazard.missing == "a DMA fence"
        assert hazard.first.pc < hazard.second.pc
