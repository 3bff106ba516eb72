"""Two units that write one place of a tile's memory in the same cycles: that with the higher port
has it, whichever two they are, in arrays and in block RAM (narrow_memory.sv, wide_memory.sv)."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from darwinn_rtl.tile.bench import RingRow
from darwinn_sim import chip
from darwinn_sim.isa.builder import build
from stimulus import Walk, line
from tile_runs import rtl_tile

RATIOS = pytest.mark.parametrize("ratio", [1, 7], ids=["array", "block RAM"])
MAC, SPREAD, PACK, CONSUME_A, CONSUME_B = (
    *("TensorMac", "WideToNarrow", "NarrowToWide", "RingConsumerA", "RingConsumerB"),
)
NARROW = (MAC, SPREAD, "MeshSouth", "MeshWest", "MeshNorth", "MeshEast")
WIDE = (MAC, PACK, CONSUME_A, CONSUME_B)
"""Units that write a memory, by their ports."""

TIMES, BEFORE, BOTH = 200, 30, 8
"""How often each writes; cycles that the first has for itself; cycles in which both write."""

PLACE = 1000


def _there(name: str, traversal: str, base: int, count: int = TIMES) -> dict[str, Any]:
    """The same place again and again."""
    return line(name, traversal, count, base, 0)


def _results(value: int, **more: Any) -> dict[str, Any]:
    """A word of results in each iteration, all bytes of which are a value."""
    limits = {"main_limit": [TIMES - 1, *[0] * 7], "block_lanes": 3, "last_block_lanes": 3}
    scaled = {"output_zero_point": value, "high_clip": 255.0, "partial_sum_read": 3}
    return limits | scaled | line(MAC, "partial_sum", TIMES, step=4) | more


def _to_narrow(name: str, value: int) -> dict[str, Any]:
    if name == MAC:
        return _results(value) | _there(MAC, "narrow_write", 4 * PLACE)
    if name == SPREAD:
        rows = _there(SPREAD, "wide_read", value, -(-TIMES // chip.ROW_WORDS))
        return rows | _there(SPREAD, "narrow_write", PLACE) | {"row_loop": 7}
    constant = {"immediate_valid": 1, "immediate": 0x01010101 * value}
    return constant | _there(name, "narrow_write", PLACE)


@RATIOS
def test_a_word_is_that_of_the_higher_port(ratio: int) -> None:
    tile = rtl_tile(ratio)
    tile.stall(0, 0)
    for first, second in (pair[::turn] for pair in combinations(range(6), 2) for turn in (1, -1)):
        tile.reset()
        for port in (first, second):
            value = port + 1
            tile.wide.reshape(-1, chip.ROW_WORDS)[value] = 0x01010101 * value
            tile.give(build([(NARROW[port], {**_to_narrow(NARROW[port], value), "tiles": 1})]))
            tile.run(BEFORE)
        for _ in range(BOTH):
            tile.run(1)
            found = tile.narrow[4 * PLACE : 4 * PLACE + 4].tolist()
            assert found == [max(first, second) + 1] * 4, (NARROW[first], NARROW[second])
        assert not tile.idle


def _to_wide(name: str, size: int) -> dict[str, Any]:
    """Rows of so many words; every other one of the tensor unit's is at this place."""
    if name == MAC:
        lanes = {"block_lanes": size - 1, "last_block_lanes": size - 1, "partial_sum_read": 1}
        two = Walk((2, TIMES // 2, *[1] * 6), (4, *[0] * 7), base=4 * PLACE)
        sums = two.fields(MAC, "partial_sum") | _there(MAC, "narrow_write", 4 * PLACE)
        return _results(0, **lanes) | sums
    if name == PACK:
        words = Walk((size, TIMES, *[1] * 4), (0,) * 6).fields(PACK, "narrow_read")
        return words | _there(PACK, "wide_write", PLACE) | {"row_loop": 1}
    return _there(name, "wide_write", PLACE)


def _row(tile: Any) -> list[int]:
    found: list[int] = tile.wide[PLACE * chip.ROW_WORDS :][: chip.ROW_WORDS].tolist()
    return found


def _higher_one(size: int) -> list[int]:
    """Ones, and behind them what was there before, whatever the other unit has written."""
    return [1] * size + [9] * (chip.ROW_WORDS - size)


@RATIOS
@pytest.mark.parametrize("higher", WIDE[1:])
def test_a_row_is_that_of_the_higher_port(higher: str, ratio: int) -> None:
    """All of it, in each cycle: the other one's rows are longer."""
    tile, size = rtl_tile(ratio), 1
    for lower in WIDE[: min(WIDE.index(higher), 2)]:
        tile.reset()
        tile.stall(0, 0)
        tile.narrow.view("<u4")[0] = 1
        tile.wide[:] = 9
        for name, words in ((higher, size), (lower, 6)):
            for _ in range(TIMES if name.startswith("Ring") else 0):
                tile.send_row(RingRow((1,) * words, int(name == CONSUME_B)))
            tile.give(build([(name, {**_to_wide(name, words), "tiles": 1})]))
            tile.run(BEFORE)
        for _ in range(BOTH):
            tile.run(1)
            assert _row(tile) == _higher_one(size), lower
        assert not tile.idle


@RATIOS
def test_of_rows_of_both_channels_that_wait_for_one_flag_the_second_has_the_place(
    ratio: int,
) -> None:
    tile, flag, size = rtl_tile(ratio), 10, 1
    tile.reset()
    tile.flags[flag] = 0
    tile.wide[:] = 9
    waits = {"watcher_flag": [flag] * 3, "watcher_expected": [1] * 3, "watcher_valid": [1, 0, 0]}
    for channel, (name, words) in enumerate(((CONSUME_A, 6), (CONSUME_B, size))):
        tile.send_row(RingRow((1,) * words, channel))
        tile.give(build([(name, {**line(name, "wide_write", 1, PLACE), **waits, "tiles": 1})]))
    tile.run(BEFORE)
    tile.give(build([("TileFence", {"reset_flags": 1 << flag, "reset_value": 1, "tiles": 1})]))
    tile.run(BEFORE)
    assert tile.idle
    assert _row(tile) == _higher_one(size)
