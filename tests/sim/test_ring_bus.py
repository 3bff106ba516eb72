"""Ring bus between tiles: random producers and consumers against a slow model of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from darwinn_sim import chip
from functional_coverage import Coverage
from hypothesis import given
from hypothesis import strategies as st
from slow_model import ring_bus as slow
from slow_model.traversal import walk as walk_elements
from stimulus import Walk, constrained_random, near_edges, producer, walk, watchers
from unit_bench import Bench, sufficient

BINS = (
    "channel A",
    "channel B",
    "one target",
    "several targets",
    "all tiles",
    "sender among the targets",
    "outfeed",
    "outfeed on channel B",
    "single row",
    "more rows than a consumer holds",
    "prologue",
    "double-buffered read",
    "double-buffered write",
    "alternate limit",
    "watcher of the producer",
    "watcher of the consumer",
    "producer held back",
    "consumer held back",
    "row producer",
    "token producer",
    "consumer's producer",
)
LOOPS = 4
LAST_ROW = chip.WIDE_ROWS - 1
MIDDLE = chip.WIDE_ROWS // 2


@st.composite
def cases(draw: Any) -> tuple[dict[str, Any], dict[str, Any], int, dict[int, int]]:
    """Fields of a producer and of the consumers of its rows, the sender, and flags."""
    channel = draw(st.integers(0, 1))
    consumer = ("RingConsumerA", "RingConsumerB")[channel]
    write = walk(draw, consumer, "wide_write", low=MIDDLE, high=LAST_ROW, most=16)
    if draw(st.booleans()):
        base = draw(near_edges(MIDDLE, LAST_ROW - 8))
        step = draw(st.integers(0, 2))
        loop = draw(st.integers(0, LOOPS - 1))
        write = replace(write, prologue=(loop, base, draw(st.integers(1, 4)), base + step, step))
    receiving = write.fields(consumer, "wide_write") | producer(draw, "producer", LOOPS)
    receiving |= watchers(draw, consumer, (1, 11, 12), LOOPS, most=1)
    rows = len(walk_elements(receiving, "wide_write"))
    read = walk(draw, "RingProducer", "wide_read", low=0, high=MIDDLE - 1, count=rows)
    sending = read.fields("RingProducer", "wide_read")
    sending |= producer(draw, "row_producer", LOOPS) | producer(draw, "token_producer", LOOPS)
    sending |= watchers(draw, "RingProducer", (13, 17, 18), LOOPS, most=2)
    outfeed = draw(st.booleans()) << 16 if rows <= chip.RING_FIFO_ROWS else 0
    targets = draw(
        st.one_of(st.just(0xFFFF), st.sampled_from([1, 1 << 15]), st.integers(1, 0xFFFF))
    )
    sending |= {"consumer_b": channel, "targets": targets | outfeed}
    flags = sufficient(receiving, rows, chip.TILE_FLAGS) | sufficient(
        sending, rows, chip.TILE_FLAGS
    )
    if flags and draw(st.booleans()):
        flags[draw(st.sampled_from(sorted(flags)))] -= draw(near_edges(1, rows))
    return sending, receiving, draw(st.integers(0, chip.TILES - 1)), flags


def cover(
    coverage: Coverage, sending: dict[str, Any], receiving: dict[str, Any], sender: int
) -> None:
    channel, targets = sending["consumer_b"], sending["targets"]
    tiles = targets & 0xFFFF
    coverage.hit(("channel A", "channel B")[channel])
    coverage.hit("one target", when=tiles.bit_count() == 1)
    coverage.hit("several targets", when=1 < tiles.bit_count() < 16)
    coverage.hit("all tiles", when=tiles == 0xFFFF)
    coverage.hit("sender among the targets", when=tiles >> sender & 1)
    coverage.hit("outfeed", when=targets >> 16)
    coverage.hit("outfeed on channel B", when=targets >> 16 and channel)
    rows = len(walk_elements(receiving, "wide_write"))
    coverage.hit("single row", when=rows == 1)
    coverage.hit("more rows than a consumer holds", when=rows > chip.RING_FIFO_ROWS)
    coverage.hit("prologue", when=receiving["wide_write_prologue_enable"])
    coverage.hit("double-buffered read", when=sending["wide_read_double_offset"])
    coverage.hit("double-buffered write", when=receiving["wide_write_double_offset"])
    alternate = receiving["wide_write_alternate_loop"]
    shorter = receiving["wide_write_alternate_limit"] < receiving["wide_write_limit"][0]
    coverage.hit("alternate limit", when=alternate and shorter)
    coverage.hit("watcher of the producer", when=any(sending["watcher_valid"]))
    coverage.hit("watcher of the consumer", when=any(receiving["watcher_valid"]))
    coverage.hit("row producer", when=sending["row_producer_increment"])
    coverage.hit("token producer", when=sending["token_producer_increment"])
    coverage.hit("consumer's producer", when=receiving["producer_increment"])


def test_rows_arrive_as_in_the_slow_model() -> None:
    """Wide memories and flags of all tiles, and the scalar flags, agree with the slow model."""
    coverage = Coverage("ring bus", BINS)

    @constrained_random(200)
    @given(cases())
    def check(case: tuple[dict[str, Any], dict[str, Any], int, dict[int, int]]) -> None:
        sending, receiving, sender, flags = case
        channel = sending["consumer_b"]
        mask = sending["targets"] & 0xFFFF
        consumer = ("RingConsumerA", "RingConsumerB")[channel]
        bench = Bench(
            [
                (consumer, receiving | {"tiles": mask}),
                ("RingProducer", sending | {"tiles": 1 << sender}),
            ]
        )
        for flag, value in flags.items():
            bench.tiles["flags"][:, flag] = value
        tiles = {number: bench.tile(number) for number in range(chip.TILES)}
        core = bench.slow_core()
        targets = [tiles[number] for number in tiles if mask >> number & 1]
        # Rows that no consumer takes wait in its FIFO, which holds so many.
        room = slow.places(targets[0], receiving) + chip.RING_FIFO_ROWS
        rows, sent = slow.send(tiles[sender], tiles, core, sending, room)
        done = [slow.consume(tile, receiving, channel, rows) for tile in targets]
        bench.run()
        assert bench.fault is None
        bench.assert_tiles(tiles.values())
        bench.assert_core(core)
        assert (bench.waiting == ()) == (sent and all(done))
        cover(coverage, sending, receiving, sender)
        coverage.hit("producer held back", when=not sent)
        coverage.hit("consumer held back", when=sent and not all(done))

    coverage.close(check)


def _sender(tile: int, turn: int, row: int) -> tuple[str, dict[str, Any]]:
    """One row from ``tile`` to tile 9, in its turn on channel A."""
    fields = {
        "tiles": 1 << tile,
        "wide_read_base": row,
        "targets": 1 << 9,
        "token_producer_increment": 1,
        "watcher_flag": [17, 0, 0],
        "watcher_expected": [turn, 0, 0],
        "watcher_valid": [1, 0, 0],
    }
    return "RingProducer", fields


def test_senders_take_turns_by_their_tokens() -> None:
    """Rows arrive in the order of the awaited numbers, not of the program or of the tiles."""
    order = [11, 2, 7, 0]
    operations = [_sender(tile, turn, 5) for turn, tile in enumerate(order)]
    write = Walk((4, 1, 1, 1), (1, 0, 0, 0), base=100).fields("RingConsumerA", "wide_write")
    bench = Bench([("RingConsumerA", write | {"tiles": 1 << 9}), *reversed(operations)])
    bench.run()
    bench.assert_idle()
    arrived = [bench.tile(9).row(100 + k) for k in range(4)]
    assert arrived == [bench.tile(tile).row(5) for tile in order]
    assert bench.tiles["flags"][:, 17].tolist() == [4] * 16
    assert int(bench.core["flags"][5]) == 4


@pytest.mark.parametrize(
    ("reset", "rows"), [(1 << 16, [20, 20]), (1 << 13, [20, 25]), (0, [20, 25])]
)
def test_the_read_side_goes_on_until_a_fence_loads_its_flag(reset: int, rows: list[int]) -> None:
    """docs/chip-facts.md: a producer's double buffer goes on across instructions."""
    one = Walk((1, 1, 1, 1), (0, 0, 0, 0), base=20, double=(1, 5, 0))
    fields = one.fields("RingProducer", "wide_read") | {"tiles": 1, "targets": 1 << 3}
    write = Walk((2, 1, 1, 1), (1, 0, 0, 0), base=100).fields("RingConsumerA", "wide_write")
    fence = {"tiles": 1, "wait_idle": 0x3FF, "reset_flags": reset}
    bench = Bench(
        [
            ("RingConsumerA", write | {"tiles": 1 << 3}),
            ("RingProducer", fields),
            ("TileFence", fence),
            ("RingProducer", fields),
        ]
    )
    bench.run()
    bench.assert_idle()
    assert [bench.tile(3).row(100 + k) for k in range(2)] == [bench.tile(0).row(r) for r in rows]


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("RingProducer", {"wide_read_base": chip.WIDE_ROWS, "targets": 2}),
        ("RingConsumerA", {"wide_write_base": 0xFFFF}),
    ],
)
def test_a_row_outside_wide_memory_is_a_fault(name: str, fields: dict[str, int]) -> None:
    feed = ("RingProducer", {"targets": 1, "tiles": 2})
    bench = Bench([(name, fields | {"tiles": 1}), feed])
    bench.run()
    assert bench.fault == ("wide memory", "row outside the memory")
    assert int(bench.core["fault_tile"]) == 0
