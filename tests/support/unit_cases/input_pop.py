"""PopInput: random valid instructions and what they cover, for the model and for the RTL."""

from __future__ import annotations

from typing import Any

import numpy as np
from darwinn_sim import chip
from functional_coverage import Coverage
from hypothesis import strategies as st
from slow_model import input_pop as slow
from slow_model.traversal import walk as walk_elements
from stimulus import near_edges, producer, walk, watchers
from unit_bench import sufficient

BINS = (
    "parameters",
    "activations",
    "addresses around the end of the buffer",
    "double buffer",
    "alternate limit",
    "producer",
    "watcher",
    "held back by a watcher",
    "stream too short",
    "stream ends inside a unit",
    "stream longer than wanted",
)
LOOPS = 3


@st.composite
def cases(draw: Any) -> tuple[dict[str, Any], dict[int, int], bytes]:
    """Fields of a pop, values of scalar flags, and what the host has sent."""
    fifo = draw(st.integers(0, 1))
    last = slow.UNITS[fifo] - 1
    high = min(last + draw(st.sampled_from([0, 30])), (1 << 15) - 1)
    drawn = walk(draw, "PopInput", "buffer", low=high - last, high=high, most=60)
    fields = {"fifo": fifo} | drawn.fields("PopInput", "buffer")
    fields |= producer(draw, "producer", LOOPS) | watchers(draw, "PopInput", (2, 3), LOOPS)
    elements = len(walk_elements(fields, "buffer"))
    flags = sufficient(fields, elements, chip.SCALAR_FLAGS)
    if flags and draw(st.booleans()):
        flags[draw(st.sampled_from(sorted(flags)))] -= draw(near_edges(1, elements))
    size = slow.UNIT_BYTES[fifo]
    count = size * elements + draw(st.sampled_from([0, 0, size, -size, -1, 5]))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    return fields, flags, random.bytes(max(count, 0))


def cover(coverage: Coverage, fields: dict[str, Any], sent: int, left: int, ended: bool) -> None:
    fifo = fields["fifo"]
    size = slow.UNIT_BYTES[fifo]
    wanted = size * len(walk_elements(fields, "buffer"))
    coverage.hit(("parameters", "activations")[fifo])
    beyond = any(e.address >= slow.UNITS[fifo] for e in walk_elements(fields, "buffer"))
    coverage.hit("addresses around the end of the buffer", when=beyond)
    coverage.hit("double buffer", when=fields["buffer_double_offset"])
    shorter = fields["buffer_alternate_limit"] < fields["buffer_limit"][0]
    coverage.hit("alternate limit", when=fields["buffer_alternate_loop"] and shorter)
    coverage.hit("producer", when=fields["producer_increment"])
    coverage.hit("watcher", when=fields["watcher_valid"])
    coverage.hit("held back by a watcher", when=not ended and left >= size)
    coverage.hit("stream too short", when=sent < wanted and sent % size == 0)
    coverage.hit("stream ends inside a unit", when=sent < wanted and sent % size > 0)
    coverage.hit("stream longer than wanted", when=sent > wanted and ended)
