"""Random descriptor programs through the DMA engine, on buses of several widths.

Those on C++ memory are compared to the cycle; those on the AXI bus model meet a memory that
answers in more ways, and their functional coverage is complete.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from darwinn_rtl.harness import HarnessDescription
from harness_runs import design, require_toolchain, run
from nightly import nightly_seed, note

NIGHTLY_HARNESSES = (
    HarnessDescription(),
    HarnessDescription(data_bytes=4, memory_latency=1, outstanding_reads=1),
    HarnessDescription(data_bytes=16, memory_latency=23, buffer_words=64, outstanding_reads=9),
    HarnessDescription(data_bytes=32, memory_latency=9, queue_depth=2, outstanding_writes=1),
)
"""Harnesses that differ in everything that decides their timing."""


def perform(
    harness: HarnessDescription,
    programs: int,
    seed: int,
    work: Path,
    test: str = "random_programs",
) -> None:
    require_toolchain()
    from darwinn_rtl.dma.runs import workload_design

    run(
        workload_design(harness),
        "workload_tests",
        test,
        work,
        seed=seed,
        DARWINN_HARNESS=json.dumps(asdict(harness)),
        DARWINN_PROGRAMS=programs,
    )


def test_random_programs_equal_the_models_to_the_cycle(tmp_path: Path) -> None:
    perform(HarnessDescription(), 500, 1, tmp_path)


ODD = HarnessDescription(
    data_bytes=32,
    memory_latency=2,
    buffer_words=21,
    queue_depth=3,
    outstanding_reads=3,
    outstanding_writes=3,
)
"""Queues whose sizes are no powers of two, on the widest bus."""


def test_random_programs_equal_the_models_with_odd_sizes(tmp_path: Path) -> None:
    perform(ODD, 200, 2, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_ten_thousand_random_programs_equal_the_models(seed: int, tmp_path: Path) -> None:
    harness, programs, chosen = NIGHTLY_HARNESSES[seed % 4], 500, nightly_seed() + seed
    perform(harness, programs, chosen, tmp_path)
    note(f"DMA programs, C++ memory, {8 * harness.data_bytes}-bit bus", programs, chosen)


def test_programs_over_all_of_memory_equal_the_models_to_the_cycle(tmp_path: Path) -> None:
    """Addresses of 40 bits, sizes of more than 16, and as many pending as queues hold."""
    perform(HarnessDescription(), 16, 1, tmp_path, "far_programs")


@pytest.mark.parametrize("test", ["any_size", "any_burst_limit"])
def test_every_bit_counts(test: str, tmp_path: Path) -> None:
    perform(HarnessDescription(), 0, 1, tmp_path, test)


def test_whatever_is_wrong_is_reported(tmp_path: Path) -> None:
    perform(HarnessDescription(), 0, 1, tmp_path, "any_refusal")


@pytest.mark.parametrize("test", ["long_program", "many_interrupts"])
def test_more_descriptors_than_16_bits_count(test: str, tmp_path: Path) -> None:
    perform(HarnessDescription(), (1 << 16) + 50, 1, tmp_path, test)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_programs_over_all_of_memory(seed: int, tmp_path: Path) -> None:
    harness, programs, chosen = NIGHTLY_HARNESSES[seed], 250, nightly_seed() + seed
    perform(harness, programs, chosen, tmp_path, "far_programs")
    note(f"DMA programs over all of memory, {8 * harness.data_bytes}-bit bus", programs, chosen)


def perform_unruly(data_bytes: int, programs: int, seed: int, work: Path) -> None:
    """Random programs on a memory that does whatever AXI4 lets it."""
    require_toolchain()
    from darwinn_rtl.dma.runs import workload_design

    run(
        workload_design(HarnessDescription(data_bytes=data_bytes), unruly=True),
        "workload_tests",
        "unruly_programs",
        work,
        seed=seed,
        DARWINN_DATA_BYTES=data_bytes,
        DARWINN_PROGRAMS=programs,
    )


def test_an_unruly_memory_changes_no_byte(tmp_path: Path) -> None:
    perform_unruly(8, 60, 1, tmp_path)


@pytest.mark.parametrize("test", ["memory_of_what_breaks_off", "memory_that_ends_with_python"])
def test_memory_stays_while_the_rtl_may_work_in_it(test: str, tmp_path: Path) -> None:
    perform(HarnessDescription(), 0, 1, tmp_path, test)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(8))
def test_unruly_memories_change_no_byte(seed: int, tmp_path: Path) -> None:
    width, programs, chosen = (8, 16, 4, 32)[seed % 4], 1000, nightly_seed() + seed
    perform_unruly(width, programs, chosen, tmp_path)
    note(f"DMA programs, unruly memory, {8 * width}-bit bus", programs, chosen)


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
