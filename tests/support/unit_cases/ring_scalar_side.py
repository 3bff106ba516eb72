"""Ring infeed and outfeed: random valid instructions and what they cover."""

from __future__ import annotations

from typing import Any

from darwinn_sim import chip
from functional_coverage import Coverage
from hypothesis import strategies as st
from slow_model import ring_bus as slow
from slow_model.traversal import walk as walk_elements
from stimulus import near_edges, producer, walk, watchers
from unit_bench import sufficient

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
