"""Ring bus between tiles: random producers and consumers against a slow model of rows."""

from __future__ import annotations

from typing import Any

import pytest
from darwinn_sim import chip
from functional_coverage import Coverage
from hypothesis import given
from slow_model import ring_bus as slow
from stimulus import Walk, constrained_random
from unit_bench import Bench
from unit_cases.ring_bus import BINS, cases, cover


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
