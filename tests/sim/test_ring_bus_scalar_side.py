"""Ring infeed and outfeed: random instructions against slow models of buffers and rows."""

from __future__ import annotations

from typing import Any

from darwinn_sim import chip
from functional_coverage import Coverage
from hypothesis import given
from hypothesis import strategies as st
from slow_model import ring_bus as slow
from slow_model.traversal import walk as walk_elements
from stimulus import Walk, constrained_random, near_edges, producer, walk, watchers
from unit_bench import Bench, Operations, sufficient

INFEED_BINS = (
    "from parameters",
    "from activations",
    "from scalar memory",
    "addresses around the end of the buffer",
    "full rows of 64 words",
    "rows of fewer words",
    "last row shorter",
    "channel B",
    "token producer",
    "producer",
    "increment above 1",
    "watcher",
    "held back",
)
OUTFEED_BINS = (
    "to the host",
    "to scalar memory",
    "whole rows",
    "rest of a row dropped",
    "several rows",
    "rows of fewer words",
    "producer",
    "watcher",
    "held back",
)
LOOPS = 3


@st.composite
def infeeds(draw: Any) -> tuple[dict[str, Any], dict[int, int]]:
    """Fields of an infeed, and values of scalar flags."""
    fifo = draw(st.integers(0, 2))
    unit = slow.UNIT_BYTES[fifo] // 4
    fields: dict[str, Any] = {"fifo": fifo}
    fields["row_words"] = unit * draw(near_edges(1, 64 // unit)) - 1
    last = slow.BUFFER_UNITS[fifo] - 1
    high = last + draw(st.sampled_from([0, 40]))
    most = 200 if unit == 1 else 40
    fields |= walk(draw, "RingInfeed", "buffer", low=high - last, high=high, most=most).fields(
        "RingInfeed", "buffer"
    )
    fields |= producer(draw, "producer", LOOPS) | producer(draw, "token_producer", LOOPS)
    fields |= watchers(draw, "RingInfeed", (0, 1, 5, 6, 7), LOOPS)
    fields["sync_increment"] = draw(st.sampled_from([1, 1, 3]))
    fields |= {"targets": draw(st.integers(1, 0xFFFF)), "consumer_b": draw(st.integers(0, 1))}
    elements = len(walk_elements(fields, "buffer"))
    flags = sufficient(fields, elements, chip.SCALAR_FLAGS)
    if flags and draw(st.booleans()):
        flags[draw(st.sampled_from(sorted(flags)))] -= draw(near_edges(1, elements))
    return fields, flags


def cover_infeed(
    coverage: Coverage, fields: dict[str, Any], rows: list[slow.Row], ended: bool
) -> None:
    fifo = fields["fifo"]
    coverage.hit(("from parameters", "from activations", "from scalar memory")[fifo])
    beyond = any(e.address >= slow.BUFFER_UNITS[fifo] for e in walk_elements(fields, "buffer"))
    coverage.hit("addresses around the end of the buffer", when=beyond)
    sizes = [len(row) for row in rows]
    coverage.hit("full rows of 64 words", when=64 in sizes)
    coverage.hit("rows of fewer words", when=sizes.count(fields["row_words"] + 1) > 1)
    coverage.hit("last row shorter", when=len(sizes) > 1 and sizes[-1] < sizes[0])
    coverage.hit("channel B", when=fields["consumer_b"])
    coverage.hit("token producer", when=fields["token_producer_increment"])
    coverage.hit("producer", when=fields["producer_increment"])
    coverage.hit("increment above 1", when=fields["sync_increment"] > 1)
    coverage.hit("watcher", when=any(fields["watcher_valid"]))
    coverage.hit("held back", when=not ended)


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


@st.composite
def outfeeds(draw: Any) -> tuple[dict[str, Any], int, dict[int, int]]:
    """Fields of an outfeed, the rows that a tile sends for it, and values of scalar flags."""
    to_host = draw(st.integers(0, 1))
    per_unit = 1 + to_host
    fields: dict[str, Any] = {"to_host": to_host}
    fields["row_words"] = draw(st.sampled_from([63, 63, 15, 3, per_unit - 1]))
    last = chip.SCALAR_MEMORY_WORDS - 1
    drawn = walk(draw, "RingOutfeed", "buffer", low=0, high=last, most=150)
    fields |= drawn.fields("RingOutfeed", "buffer") | producer(draw, "producer", LOOPS)
    fields |= watchers(draw, "RingOutfeed", (2, 3, 4), LOOPS)
    units = len(walk_elements(fields, "buffer"))
    rows = -(-units * per_unit // (fields["row_words"] + 1))
    flags = sufficient(fields, units, chip.SCALAR_FLAGS)
    if flags and draw(st.booleans()):
        flags[draw(st.sampled_from(sorted(flags)))] -= draw(near_edges(1, units))
    return fields, rows, flags


def cover_outfeed(coverage: Coverage, fields: dict[str, Any], rows: int, ended: bool) -> None:
    coverage.hit("to the host" if fields["to_host"] else "to scalar memory")
    words = (1 + fields["to_host"]) * len(walk_elements(fields, "buffer"))
    whole = words % (fields["row_words"] + 1) == 0
    coverage.hit("whole rows" if whole else "rest of a row dropped")
    coverage.hit("several rows", when=rows > 1)
    coverage.hit("rows of fewer words", when=fields["row_words"] < 63)
    coverage.hit("producer", when=fields["producer_increment"])
    coverage.hit("watcher", when=fields["watcher_valid"])
    coverage.hit("held back", when=not ended)


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


def test_a_row_with_words_that_nothing_has_written_does_not_leave_the_chip() -> None:
    """Strict mode: the outfeed to the host is a use; the outfeed to scalar memory is a copy."""
    read = Walk((1, 1, 1, 1), (0, 0, 0, 0), base=3).fields("RingProducer", "wide_read")
    sender = ("RingProducer", read | {"tiles": 1, "targets": 1 << 16})
    for to_host in (1, 0):
        units = Walk((4, 1, 1), (1, 0, 0), base=50).fields("RingOutfeed", "buffer")
        outfeed = ("RingOutfeed", units | {"row_words": 63, "to_host": to_host})
        bench = Bench([outfeed, sender], strict=True)
        bench.tiles[0]["wide_written"][3 * 64 + 2] = 0
        bench.run()
        if to_host:
            assert bench.fault == ("strict mode", "read of memory that nothing has written")
        else:
            assert bench.fault is None
            assert bench.core["memory_written"][50:54].tolist() == [
                *[0x01010101] * 2,
                0,
                0x01010101,
            ]
