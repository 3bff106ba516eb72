"""Ring infeed and outfeed: random instructions against slow models of buffers and rows."""

from __future__ import annotations

from typing import Any

from darwinn_sim import chip
from functional_coverage import Coverage
from hypothesis import given
from slow_model import ring_bus as slow
from stimulus import Walk, constrained_random
from unit_bench import Bench, Operations
from unit_cases.ring_scalar_side import (
    INFEED_BINS,
    OUTFEED_BINS,
    cover_infeed,
    cover_outfeed,
    infeeds,
    outfeeds,
)


def consumer_of(rows: int, channel: int, targets: int) -> tuple[str, dict[str, Any]]:
    """A ring consumer that writes ``rows`` rows one after another from row 10."""
    name = ("RingConsumerA", "RingConsumerB")[channel]
    write = Walk((max(rows, 1), 1, 1, 1), (1, 0, 0, 0), base=10)
    return name, write.fields(name, "wide_write") | {"tiles": targets, "producer_increment": 1}


def test_infeeds_send_the_rows_of_the_slow_model() -> None:
    """Rows, and flags of tiles and core, agree; also where a watcher stops the infeed."""
    coverage = Coverage("ring infeed", INFEED_BINS)

    @constrained_random(200)
    @given(infeeds())
    def check(case: tuple[dict[str, Any], dict[int, int]]) -> None:
        fields, flags = case
        whole = slow.infeed(Bench([]).slow_core(), {}, fields | {"watcher_valid": [0, 0]})[0]
        consumer = consumer_of(len(whole), fields["consumer_b"], fields["targets"])
        bench = Bench([consumer, ("RingInfeed", fields)])
        for flag, value in flags.items():
            bench.core["flags"][flag] = value
        tiles = {number: bench.tile(number) for number in range(chip.TILES)}
        core = bench.slow_core()
        rows, ended = slow.infeed(core, tiles, fields)
        for number, tile in tiles.items():
            if fields["targets"] >> number & 1:
                slow.consume(tile, full_fields(consumer), fields["consumer_b"], rows)
        bench.run()
        assert bench.fault is None
        bench.assert_tiles(tiles.values())
        bench.assert_core(core)
        assert (bench.waiting == ()) == ended
        cover_infeed(coverage, fields, rows, ended)

    coverage.close(check)


def full_fields(operation: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Fields of a consumer, those that it leaves 0 included."""
    return {"producer_depth": 0, "wide_write_prologue_enable": 0} | operation[1]


def test_outfeeds_take_the_units_of_the_slow_model() -> None:
    """What reaches host or scalar memory agrees, for two outfeeds of one stream of rows."""
    coverage = Coverage("ring outfeed", OUTFEED_BINS)

    @constrained_random(200)
    @given(outfeeds())
    def check(case: tuple[dict[str, Any], int, dict[int, int]]) -> None:
        fields, rows, flags = case
        read = Walk((2 * rows, 1, 1, 1), (1, 0, 0, 0), base=300).fields("RingProducer", "wide_read")
        sender = ("RingProducer", read | {"tiles": 1 << 4, "targets": 1 << 16})
        bench = Bench([sender, ("RingOutfeed", fields), ("RingOutfeed", fields)])
        for flag, value in flags.items():
            bench.core["flags"][flag] = value
        core = bench.slow_core()
        # Each row counts as long as the instruction says; the rest of its words is not taken.
        words = fields["row_words"] + 1
        stream = [bench.tile(4).row(300 + k)[:words] for k in range(2 * rows)]
        ended = slow.outfeed(core, fields, stream) and slow.outfeed(core, fields, stream)
        bench.run()
        assert bench.fault is None
        bench.assert_core(core)
        assert ended != any(line.startswith("ring outfeed") for line in bench.waiting)
        cover_outfeed(coverage, fields, rows, ended)

    coverage.close(check)


def test_more_output_than_the_host_has_taken_waits() -> None:
    """The outfeed stops when the FIFO to the host is full, and goes on when there is room."""
    rows = chip.HOST_FIFO_BYTES // chip.ROW_BYTES + 3
    read = Walk((rows, 1, 1, 1), (1, 0, 0, 0), base=7).fields("RingProducer", "wide_read")
    units = Walk((32 * rows, 1, 1), (0, 0, 0)).fields("RingOutfeed", "buffer")
    operations: Operations = [
        ("RingOutfeed", units | {"row_words": 63, "to_host": 1}),
        ("RingProducer", read | {"tiles": 1, "targets": 1 << 16}),
    ]
    bench = Bench(operations)
    bench.run()
    assert len(bench.output()) == chip.HOST_FIFO_BYTES
    taken = bench.output()
    bench.core["output"]["length"] = 0
    bench.run()
    bench.assert_idle()
    expected = bench.tile(0).wide[7 * 256 : (7 + rows) * 256]
    assert taken + bench.output() == bytes(expected)


def test_what_nothing_has_written_is_marked_where_it_goes() -> None:
    """An outfeed copies the marks too: byte by byte to the host, bit by bit to scalar memory."""
    read = Walk((1, 1, 1, 1), (0, 0, 0, 0), base=3).fields("RingProducer", "wide_read")
    sender = ("RingProducer", read | {"tiles": 1, "targets": 1 << 16})
    for to_host in (1, 0):
        units = Walk((4, 1, 1), (1, 0, 0), base=50).fields("RingOutfeed", "buffer")
        outfeed = ("RingOutfeed", units | {"row_words": 63, "to_host": to_host})
        bench = Bench([outfeed, sender], strict=True)
        bench.tiles[0]["wide_written"][3 * 64 + 2] = 0
        # Whatever is not 0 says that a byte is written; as a number of the host's it is one bit.
        bench.tiles[0]["wide_written"][3 * 64 + 1] = 0x01010101 if to_host else 0x02000102
        bench.run()
        assert bench.fault is None
        if to_host:
            marks = bench.core["output"]["written"][:16].tolist()
            assert marks == [*[1] * 8, *[0] * 4, *[1] * 4]
        else:
            full = 0xFFFFFFFF
            assert bench.core["memory_written"][50:54].tolist() == [full, 0xFF00FFFF, 0, full]
