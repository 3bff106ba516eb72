"""Ring bus between tiles: random producers and consumers, for the model and for the RTL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from darwinn_sim import chip
from functional_coverage import Coverage
from hypothesis import strategies as st
from slow_model.traversal import walk as walk_elements
from stimulus import NO_AIMS, Aims, near_edges, producer, walk, watchers
from unit_bench import sufficient

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
TRAVERSALS = ("wide_read", "wide_write")
LAST_ROW = chip.WIDE_ROWS - 1
MIDDLE = chip.WIDE_ROWS // 2


@st.composite
def cases(
    draw: Any, aims: Aims = NO_AIMS
) -> tuple[dict[str, Any], dict[str, Any], int, dict[int, int]]:
    """Fields of a producer and of the consumers of its rows, the sender, and flags."""
    channel = draw(st.integers(0, 1))
    consumer = ("RingConsumerA", "RingConsumerB")[channel]
    kind = aims.get("wide_read")
    read = walk(draw, "RingProducer", "wide_read", low=0, high=MIDDLE - 1, kind=kind)
    count = len(read.elements("RingProducer", "wide_read")) if kind else None
    kind = aims.get("wide_write")
    write = walk(
        draw, consumer, "wide_write", low=MIDDLE, high=LAST_ROW, most=16, count=count, kind=kind
    )
    if count is None and draw(st.booleans()):
        base = draw(near_edges(MIDDLE, LAST_ROW - 8))
        step = draw(st.integers(0, 2))
        loop = draw(st.integers(0, LOOPS - 1))
        write = replace(write, prologue=(loop, base, draw(st.integers(1, 4)), base + step, step))
    receiving = write.fields(consumer, "wide_write") | producer(draw, "producer", LOOPS)
    receiving |= watchers(draw, consumer, (1, 11, 12), LOOPS, most=1)
    rows = len(walk_elements(receiving, "wide_write"))
    if count is None:
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
