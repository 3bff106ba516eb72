"""Which tests are asked about a mutant of a source, the nearest first: a table.

A simulation of one module costs seconds where one of the whole chip costs a minute, so every source
has its own bench first, then all of its part of the chip, then programs of the whole chip.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath

_DMA, _TILE, _CHIP = "tests/rtl/dma", "tests/rtl/tile", "tests/rtl/chip"

_PROGRAMS = f"{_DMA}/test_programs.py"
_CYCLES = f"{_PROGRAMS}::test_random_programs_equal_the_models_to_the_cycle"
_FAR_AWAY = f"{_PROGRAMS}::test_programs_over_all_of_memory_equal_the_models_to_the_cycle"
_ODD_SIZES = f"{_PROGRAMS}::test_random_programs_equal_the_models_with_odd_sizes"
_ON_THE_BUS = f"{_PROGRAMS}::test_random_programs_on_the_bus_model"
_WRONG = f"{_PROGRAMS}::test_whatever_is_wrong_is_reported"
_EVERY_BIT = (
    f"{_PROGRAMS}::test_every_bit_of_a_size_counts",
    f"{_PROGRAMS}::test_every_bit_of_the_burst_limit_counts",
)
_EVENTS = f"{_DMA}/test_events.py"
_INTERRUPTS = f"{_DMA}/test_interrupts.py"
_REGISTERS = f"{_DMA}/test_registers_block.py"
_QUEUE = f"{_DMA}/test_queue.py::test_queue"
_WIDE_QUEUE = f"{_DMA}/test_queue.py::test_queue_on_a_bus_of_32_bytes"
_BESIDE = f"{_DMA}/test_queue.py::test_transfers_beside_the_queue"
_TOGETHER = f"{_DMA}/test_coincidences.py::test_whatever_comes_together_changes_no_byte"
_MEMORIES = f"{_DMA}/test_memories.py::test_the"
_ENGINE = (_CYCLES, _EVENTS, _ON_THE_BUS)

_SIDE = f"{_CHIP}/test_scalar_side.py"
_TIMING = f"{_CHIP}/test_timing.py"
_TILES = f"{_CHIP}/test_tiles.py"
_MOMENTS = f"{_CHIP}/test_ring_and_dispatch.py"
_SENDERS = f"{_CHIP}/test_coincidences.py"
_OUTPUT = (
    f"{_MOMENTS}::test_words_of_the_core_go_between_units_of_the_outfeed",
    f"{_MOMENTS}::test_the_chip_is_not_done_while_output_waits_for_its_place",
)
_PLAYED = (
    f"{_CHIP}/test_engine.py::test_samples_run_on_the_rtl",
    f"{_CHIP}/test_engine.py::test_random_stalls_change_no_byte",
)
_WHOLE = (_MOMENTS, _SIDE, _TILES, _SENDERS, *_PLAYED, _TIMING)


def _tile(*names: str) -> tuple[str, ...]:
    return tuple(f"{_TILE}/test_{name}.py" for name in names)


_UNITS = _tile(
    *("narrow_to_wide", "wide_to_narrow", "tile_fence", "ring_bus", "tensor_unit", "mesh_bus"),
    *("edges", "in_succession", "coincidences"),
)
_ALL_OF_TILE = (*_UNITS, *_tile("every_unit", "at_once", "arithmetic", "timing", "unit_latency"))

NEAR: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("rtl/tile/mesh_bus.sv", _tile("edges", "mesh_bus")),
    ("rtl/tile/narrow_to_wide.sv", _tile("edges", "narrow_to_wide")),
    ("rtl/tile/wide_to_narrow.sv", _tile("edges", "wide_to_narrow")),
    ("rtl/tile/scale_bias_buffer.sv", _tile("wide_to_narrow", "tensor_unit")),
    ("rtl/tile/tile_[fq]*.sv", _tile("tile_fence")),
    ("rtl/tile/tile_array.sv", (_MOMENTS, _SIDE, _TILES, _SENDERS)),
    ("rtl/tile/sync_flags.sv", _tile("tile_fence")),
    (
        "rtl/tile/*_memory.sv",
        _tile("edges", "ports", "at_once", "wide_to_narrow", "narrow_to_wide", "block_ram"),
    ),
    ("rtl/tile/memory_bank.sv", _tile("block_ram")),
    ("rtl/tile/traversal.sv", _tile("edges", "wide_to_narrow", "narrow_to_wide", "tensor_unit")),
    ("rtl/tile/watchers.sv", _tile("edges", "every_unit", "wide_to_narrow", "mesh_bus")),
    ("rtl/tile/tile.sv", _tile("every_unit", "at_once")),
    ("rtl/tile/tensor_*.sv", _tile("tensor_unit")),
    ("rtl/tile/output_stage.sv", _tile("softfloat", "arithmetic", "tensor_unit")),
    ("rtl/pkg/float32_pkg.sv", _tile("softfloat", "arithmetic", "tensor_unit")),
    ("rtl/ring/ring_consumer.sv", _tile("edges", "ring_bus")),
    ("rtl/ring/ring_producer.sv", _tile("edges", "ring_bus")),
    ("rtl/tile/*.sv", _ALL_OF_TILE),
    ("rtl/pkg/tile_pkg.sv", _ALL_OF_TILE),
    ("rtl/pkg/float32_pkg.sv", _ALL_OF_TILE),
    ("rtl/ring/ring_[cp]*.sv", _ALL_OF_TILE),
    ("rtl/ring/ring_[bio]*.sv", (_MOMENTS, _SIDE, _TILES, _SENDERS)),
    ("rtl/scalar/*.sv", (_MOMENTS, _SIDE, _TILES, _SENDERS)),
    ("rtl/chip.sv", (_MOMENTS, _SIDE, _TILES, _SENDERS)),
    ("rtl/dma/*_check.sv", (f"{_DMA}/test_axi_check.py",)),
    ("rtl/dma/*.sv", (_CYCLES, _FAR_AWAY, _ODD_SIZES)),
    ("rtl/dma/dma_engine.sv", (_EVENTS, _WRONG)),
    ("rtl/host/interrupts.sv", (_INTERRUPTS, _EVENTS)),
    ("rtl/host/registers.sv", (_REGISTERS, _INTERRUPTS, _QUEUE)),
    ("rtl/host/chunk_queue.sv", (_QUEUE, _BESIDE)),
    ("rtl/host/bus_share.sv", (_QUEUE, _BESIDE)),
    ("rtl/bench/host_memory.sv", (f"{_MEMORIES}_memory_in_order_does_as_described",)),
    ("rtl/bench/unruly_memory.sv", (f"{_MEMORIES}_unruly_memory_keeps_the_rules",)),
    ("rtl/plain/plain_memory.v", (f"{_CHIP}/test_plain_memory.py",)),
    ("rtl/plain/*.v", (f"{_CHIP}/test_plain_pins.py", f"{_CHIP}/test_plain_player.py")),
    ("rtl/host/host_interface.sv", (_INTERRUPTS, _QUEUE, _EVENTS, *_OUTPUT, _BESIDE, _CYCLES)),
)
"""Patterns of sources, and tests: all rows that a source matches, in this order."""

FAR: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("rtl/tile/*.sv", _WHOLE),
    ("rtl/pkg/tile_pkg.sv", _WHOLE),
    ("rtl/ring/*.sv", _WHOLE),
    ("rtl/scalar/*.sv", _WHOLE),
    ("rtl/chip.sv", (*_WHOLE, f"{_CHIP}/test_whole_chip.py::test_a_sample_runs_as_on_the_player")),
    ("rtl/dma/*.sv", (*_EVERY_BIT, _EVENTS, _QUEUE, _INTERRUPTS, *_ENGINE, _BESIDE, _TOGETHER)),
    ("rtl/host/*.sv", (_INTERRUPTS, _QUEUE, _REGISTERS, _EVENTS, *_ENGINE, _BESIDE, _TOGETHER)),
    ("rtl/host/host_interface.sv", (_SIDE, *_PLAYED)),
    ("rtl/host/chunk_queue.sv", (_WIDE_QUEUE,)),
)
"""The same of tests that are asked of what those let pass."""


@dataclass(frozen=True)
class Asked:
    """Tests that are asked about a source: the near ones first."""

    near: tuple[str, ...]
    far: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.near, *self.far)


@cache
def asked_about(source: str) -> Asked:
    """Tests that are asked about a source, each once."""
    near = tuple(dict.fromkeys(_rows(NEAR, source)))
    return Asked(near, tuple(each for each in _rows(FAR, source) if each not in near))


def _rows(table: Iterable[tuple[str, tuple[str, ...]]], source: str) -> Iterator[str]:
    for pattern, tests in table:
        if PurePath(source).match(pattern):
            yield from tests
