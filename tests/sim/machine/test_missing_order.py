"""What would order an access before another one: by whom, where and in which memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from darwinn_sim.isa.codes import ScalarUnit, TileFlag, TileUnit
from darwinn_sim.kernel import clocks
from darwinn_sim.machine.hazards import Access, _missing, _missing_wait

FENCES = "fences of both tiles, and a scalar fence between"


def access(unit: str, tile: int) -> Any:
    return SimpleNamespace(unit=unit, tile=tile)


def thread_of(tile: int, unit: int) -> int:
    return 16 * tile + unit


def scalar_thread(unit: ScalarUnit) -> int:
    return clocks.FIRST_SCALAR_UNIT + 16 * int(unit)


def missing(thread: int, memory: str, first: Any, second: Any, *, reads: bool = True) -> str:
    return _missing(thread, memory, reads, first, second)


@pytest.mark.parametrize("tile", [0, 1, 15])
def test_a_tile_orders_its_own_and_fences_those_of_others(tile: int) -> None:
    thread = thread_of(tile, int(TileUnit.NARROW_TO_WIDE))
    first = access("narrow-to-wide", tile)
    flag = TileFlag.NARROW_TO_WIDE_WRITE
    text = missing(thread, "wide memory", first, access("tensor unit", tile), reads=False)
    assert text == f"flag {int(flag)} ({flag.label})"
    for other in {0, 1, 15} - {tile}:
        assert missing(thread, "wide memory", first, access("tensor unit", other)) == FENCES


@pytest.mark.parametrize("tile", [0, 1, 15])
def test_what_is_loaded_is_ordered_by_a_fence(tile: int) -> None:
    thread = thread_of(tile, int(TileUnit.TENSOR))
    first = access("tensor unit", tile)
    waits = "that waits for tensor unit"
    assert missing(thread, "flag 3", first, access("x", tile)) == f"a tile fence {waits}"
    assert (
        missing(thread, "flag 3", first, access("x", (tile + 1) % 16)) == f"a scalar fence {waits}"
    )
    core = access("scalar core", -1)
    assert missing(thread, "narrow memory", first, core) == f"a scalar fence {waits}"


@pytest.mark.parametrize(
    ("memory", "flag"),
    [
        ("ring channel A of tile 0", TileFlag.RING_PRODUCER_A),
        ("ring channel B of tile 3", TileFlag.RING_PRODUCER_B),
        ("rows for the host", TileFlag.RING_PRODUCER_A),
    ],
)
def test_rows_take_turns(memory: str, flag: TileFlag) -> None:
    text = missing(thread_of(0, 0), memory, access("ring producer", 0), access("ring producer", 1))
    assert text == f"a turn counted by flag {int(flag)} of the tiles"


def test_units_beside_the_tiles_have_flags_of_the_scalar_core() -> None:
    second = access("ring consumer A", 0)
    for unit in ScalarUnit:
        text = missing(scalar_thread(unit), "scalar memory", access("that unit", -1), second)
        assert (
            text.endswith("of the scalar core") or text == "a scalar fence that waits for that unit"
        )
    infeed = scalar_thread(ScalarUnit.RING_INFEED)
    for memory, name in (
        ("scalar memory", "scalar_infeed"),
        ("parameter buffer", "parameter_infeed"),
    ):
        assert f"({name}) of the scalar core" in missing(infeed, memory, access("x", -1), second)


@pytest.mark.parametrize("chunk", [0, 2])
def test_a_fence_that_loads_too_early_has_to_wait(chunk: int) -> None:
    def count(tile: int) -> Access:
        return Access("TensorMac", 0, 0, 5, "tensor unit", tile, 0)

    def load(instruction: str, unit: str, tile: int) -> Access:
        return Access(instruction, 0, chunk, 9, unit, tile, 0)

    place = "pc 9 of chunk 2" if chunk else "pc 9"
    core, tiles = load("ScalarFence", "scalar core", -1), load("TileFence", "tile fence", 3)
    for fence in (core, tiles):
        assert _missing_wait("flag 2 (partial_sum_write) of tile 3", fence, count(3)) == (
            f"a wait of {fence.instruction} at {place} for tensor unit of tile 3, "
            "before it loads the flag,"
        )
    assert _missing_wait("flag 2 (partial_sum_write) of tile 3", tiles, count(4)) == FENCES
    turn = _missing_wait("flag 17 (ring_producer_a) of tile 3", tiles, count(4))
    assert turn == f"a wait of TileFence at {place} for that turn"
