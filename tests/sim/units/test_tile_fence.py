"""Tile and scalar fences: random fences against slow ones, and order that only fences give."""

from __future__ import annotations

from typing import Any

import pytest
from darwinn_sim import chip
from darwinn_sim.isa.codes import TileUnit
from darwinn_sim.units import scalar_core
from functional_coverage import Coverage
from hypothesis import given
from hypothesis import strategies as st
from slow_model import tile_fence as slow
from stimulus import Walk, constrained_random
from unit_bench import Bench
from unit_cases.tile_fence import (
    AFTER,
    TILE_BINS,
    Case,
    Operation,
    busy,
    cover,
    never,
    tile_cases,
)

SCALAR_BINS = (
    "one flag short",
    "flags reached",
    "flag around the turn",
    "tile late",
    "tiles in time",
    "clears fence counts",
    "loads flags",
    "unit busy",
    "DMA fence for 0 of flag 6",
    "DMA fence for another value of flag 6",
)


def test_tile_fences_wait_load_and_count() -> None:
    """A fence holds back what follows until its units are idle and all its tokens there."""
    coverage = Coverage("tile fence", TILE_BINS)

    @constrained_random(200)
    @given(tile_cases())
    def check(case: Case) -> None:
        fields, busy_units, tokens = case
        bench = Bench([*map(never, busy_units), ("TileFence", fields), AFTER])
        for flag, value in tokens.items():
            bench.tiles[0]["flags"][flag] = value
        tile = bench.tile(0)
        passed = slow.tile_fence(tile, fields, busy(busy_units))
        bench.run()
        bench.assert_tiles([tile])
        assert int(bench.tiles[0]["fence_count"]) == passed * (fields["increment"] + 1)
        cover(coverage, case, passed)

    coverage.close(check)


@st.composite
def scalar_cases(draw: Any) -> tuple[dict[str, Any], list[int], list[int], int]:
    """A scalar fence, scalar flags, fence counts of the tiles, and busy scalar units."""
    aspect = draw(st.sampled_from(["flags", "one flag", "tiles", "units", "DMA", "all"]))
    expected = [draw(st.sampled_from([0, 1, 5, 0x7FFF, 0xFFFF])) for _ in range(9)]
    late = draw(st.sampled_from([0, -1, -0x8000]))
    flags = [(value + draw(st.sampled_from([0, 1, 100, late]))) % 65536 for value in expected]
    tiles = st.sampled_from([0, 0xFFFF, 1 << draw(st.integers(0, 15))])
    count = draw(st.integers(0, 3))
    fields = {
        "reset_tile_fences": draw(tiles),
        "reset_flags": draw(st.sampled_from([0, 0x1FF, 1 << 2])),
        "reset_value": draw(st.sampled_from([0, 32764])),
        "tile_fence_count": count,
        "tile_fence_valid": draw(tiles) if aspect in ("tiles", "all") else 0,
        "expected": expected,
        "expected_valid": 0x1FF if aspect in ("flags", "all") else 0,
        "wait_idle": draw(st.sampled_from([0, 1, 2, 4, 8, 31]))
        if aspect in ("units", "all")
        else 0,
    }
    if aspect == "one flag":
        flag = draw(st.integers(0, 8))
        fields["expected_valid"] = 1 << flag
        flags[flag] = (expected[flag] - draw(st.integers(0, 1))) % 65536
    if aspect == "DMA":
        # The awaited value tells nothing: YOLOv8's fences await 365 and 6461.
        fields |= {"expected_valid": 1 << 6, "wait_idle": 16}
    counts = [count + draw(st.sampled_from([0, 0, 0, 0, 0, 0, 1, -1])) for _ in range(16)]
    return fields, flags, [max(0, c) for c in counts], draw(st.sampled_from([0, 0, 1, 2, 4, 8]))


BUSY: dict[int, Operation] = {
    1: ("PopInput", {"fifo": 1}),
    2: ("PopInput", {"fifo": 0}),
    4: ("RingInfeed", {"fifo": 2, "watcher_valid": [1, 0], "watcher_flag": [8, 0]}),
    8: ("RingOutfeed", {}),
}
"""Bit of ScalarFence.wait_idle: an instruction that keeps the unit waiting."""


def test_scalar_fences_wait_and_load() -> None:
    """A scalar fence passes when flags, fence counts and units say so, and then loads."""
    coverage = Coverage("scalar fence", SCALAR_BINS)

    @constrained_random(300)
    @given(scalar_cases())
    def check(case: tuple[dict[str, Any], list[int], list[int], int]) -> None:
        fields, flags, counts, busy = case
        operations = [BUSY[busy]] if busy else []
        bench = Bench([*operations, ("ScalarFence", fields)])
        if busy == 4:
            flags = [*flags[:8], 0xFFFF]
        bench.core["flags"][:] = flags
        bench.tiles["fence_count"] = counts
        # Bit 4, the host's output, includes the outfeed.
        pending = busy | (16 if busy == 8 else 0)
        passed, after = slow.scalar_fence(flags, counts, fields, pending)
        reason = bench.run()
        assert (reason == scalar_core.HALTED) == passed
        assert [int(flag) for flag in bench.core["flags"]] == flags
        assert bench.tiles["fence_count"].tolist() == after
        valid = [f for f in range(9) if fields["expected_valid"] >> f & 1]
        dma = valid == [6] and fields["wait_idle"] == 16
        assert bench.fences == (dma and passed)
        _cover_scalar(coverage, case, passed, dma, valid)

    coverage.close(check)


def _cover_scalar(
    coverage: Coverage,
    case: tuple[dict[str, Any], list[int], list[int], int],
    passed: bool,
    dma: bool,
    valid: list[int],
) -> None:
    fields, _, counts, busy = case
    loaded = passed and fields["reset_flags"]
    coverage.hit("loads flags", when=loaded)
    coverage.hit("clears fence counts", when=passed and fields["reset_tile_fences"])
    value = "0" if not fields["expected"][6] else "another value"
    coverage.hit(f"DMA fence for {value} of flag 6", when=dma and passed)
    coverage.hit("flags reached", when=passed and len(valid) == 9)
    coverage.hit(
        "flag around the turn", when=passed and any(fields["expected"][f] > 32767 for f in valid)
    )
    awaited = [t for t in range(16) if fields["tile_fence_valid"] >> t & 1]
    late = [t for t in awaited if counts[t] < fields["tile_fence_count"]]
    coverage.hit("tile late", when=bool(late))
    coverage.hit("tiles in time", when=bool(awaited) and passed)
    coverage.hit("unit busy", when=bool(fields["wait_idle"] & busy))
    if not passed and not late and not fields["wait_idle"] & busy and len(valid) == 1:
        coverage.hit("one flag short")


@pytest.mark.parametrize("flag", range(chip.SCALAR_FLAGS))
def test_a_scalar_fence_awaits_each_flag(flag: int) -> None:
    fields: dict[str, Any] = {
        "expected_valid": 1 << flag,
        "expected": [0] * flag + [3] + [0] * (8 - flag),
    }
    bench = Bench([("ScalarFence", fields)])
    bench.core["flags"][flag] = 2
    assert bench.run() == scalar_core.BLOCKED
    (line,) = bench.waiting
    assert "is 2, expected 3" in line
    bench.core["flags"][flag] = 3
    assert bench.run() == scalar_core.HALTED


def test_a_fence_orders_two_units_of_a_tile() -> None:
    """The mesh writes late; without a fence narrow-to-wide reads first, with a fence never."""
    first = [1] + [0] * 5
    fill: dict[str, Any] = {
        "tiles": 1,
        "immediate_valid": 1,
        "immediate": 0x1234,
        "watcher_valid": first,
    }
    fill |= {"watcher_expected": first, "watcher_flag": [13] + [0] * 5, "watcher_side": first}
    late: Operation = ("MeshSouth", fill)
    counted = {"tiles": 1, "wide_write_base": 8, "producer_increment": 1}
    release: Operation = ("NarrowToWide", counted)
    copy: Operation = ("NarrowToWide", {"tiles": 1, "wide_write_base": 9})
    fence: Operation = ("TileFence", {"tiles": 1, "wait_idle": 1 << TileUnit.MESH_SOUTH})
    for operations, expected in (
        ([late, copy, release], False),
        ([late, release, fence, copy], True),
    ):
        bench = Bench(operations)
        before = int(bench.tiles[0]["narrow"][0])
        bench.run()
        bench.assert_idle()
        assert int(bench.tiles[0]["wide"][9 * 64]) == (0x1234 if expected else before)


@pytest.mark.parametrize("tiles", [1, 0x8001, 0xFFFF])
def test_a_tile_fence_counts_on_its_tiles_only(tiles: int) -> None:
    bench = Bench([("TileFence", {"tiles": tiles, "increment": 1})] * 3)
    bench.run()
    counts = bench.tiles["fence_count"].tolist()
    assert counts == [3 * (tiles >> t & 1) for t in range(chip.TILES)]


def test_more_instructions_than_the_queues_hold_wait_their_turn() -> None:
    """A blocked unit holds back its queue, the tile's queue, and at last the scalar core."""
    fills: list[Operation] = [("MeshSouth", {"tiles": 1, "immediate_valid": 1})] * 200
    bench = Bench([never("MeshSouth"), *fills])
    assert bench.run() == scalar_core.BLOCKED
    bench.tiles[0]["flags"][10] = 9
    bench.run()
    bench.assert_idle()


def turns(count: int, channel: int) -> Operation:
    """An infeed of so many units that passes the turn with each, all within one row."""
    fields = Walk((count, 1, 1), (1, 0, 0)).fields("RingInfeed", "buffer")
    fields |= {"fifo": 2, "row_words": 63, "targets": 0, "consumer_b": channel}
    return "RingInfeed", fields | {"token_producer_increment": 1}


def awaiting(count: int, channel: int = 0, **fields: int) -> Operation:
    """A fence of tile 3 that awaits so many tokens."""
    valid = {"producer_count_valid": 1 << channel, "producer_count": count}
    return "TileFence", {"tiles": 1 << 3, "increment": 1} | valid | fields


@pytest.mark.parametrize("channel", [0, 1])
def test_a_fence_sees_every_number_of_tokens(channel: int) -> None:
    """Turns come one by one, however fast: fences for 1, 2 and 4 of them pass one after another."""
    loads = {"reset_flags": 1 << 17 + channel, "reset_value": 0}
    fences = [awaiting(1, channel), awaiting(2, channel, **loads), awaiting(2, channel, **loads)]
    bench = Bench([*fences, turns(7, channel)])
    bench.run()
    bench.assert_idle()
    assert int(bench.tiles[3]["fence_count"]) == 3
    assert int(bench.tiles[3]["flags"][17 + channel]) == 3
    assert int(bench.tiles[4]["flags"][17 + channel]) == 7


@pytest.mark.parametrize(
    ("tokens", "channel", "text"),
    [
        (4, 0, "ring_producer_a (flag 17) is 4, awaited at 5"),
        (6, 1, "ring_producer_b (flag 18) is 6, awaited at 5, which has been passed"),
    ],
)
def test_a_fence_names_the_tokens_that_it_awaits(tokens: int, channel: int, text: str) -> None:
    """Too few, or one too many while a unit was busy: the fence stays, and says what it missed."""
    stays_busy = [("MeshSouth", never("MeshSouth")[1] | {"tiles": 1 << 3})]
    busy_unit = stays_busy if tokens > 5 else []
    fence = awaiting(5, channel, wait_idle=1 << TileUnit.MESH_SOUTH)
    bench = Bench([*busy_unit, fence, turns(tokens, channel)])
    bench.run()
    assert int(bench.tiles[3]["fence_count"]) == 0
    line = next(each for each in bench.waiting if "TileFence" in each)
    assert line.startswith("tile 3: 1 instructions queued, the first is TileFence")
    assert line.endswith(text)
    assert ("mesh south is not idle" in line) == bool(busy_unit)
