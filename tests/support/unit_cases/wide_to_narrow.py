"""Wide-to-narrow: random valid instructions and what they cover, for the model and for the RTL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from darwinn_sim import chip
from functional_coverage import Coverage
from hypothesis import strategies as st
from slow_model import wide_to_narrow as slow
from slow_model.traversal import walk as walk_elements
from stimulus import NO_AIMS, Aims, near_edges, producer, walk, watchers
from unit_bench import sufficient

BINS = (
    "to narrow memory",
    "to the scale/bias buffer",
    "first half of the scale/bias buffer",
    "second half of the scale/bias buffer",
    "row used up",
    "row closed by a block",
    "row of 64 words and another",
    "prologue",
    "prologue longer than a row",
    "alternate limit",
    "double-buffered read",
    "double-buffered write",
    "watcher of the read",
    "watcher of the write",
    "held back",
    "held back after some words",
    "producer",
)
NAME = "WideToNarrow"
TRAVERSALS = ("wide_read", "narrow_write")
LOOPS = 6
LAST_ROW = chip.WIDE_ROWS - 1
SCALE_STEPS = chip.SCALE_BIAS_WORDS // 2
HALF = SCALE_STEPS // 4
"""Steps from the first half of the scales (or of the biases) to the second."""

WATCHED = (11, 12, 13, 14, 15)


@st.composite
def instructions(draw: Any, aims: Aims) -> dict[str, Any]:
    """Fields of a valid instruction: the read has as many rows as the write uses."""
    kind = aims.get("narrow_write")
    # The flag decides in which half of the scale/bias buffer a double buffer begins.
    scale_bias = not (kind and kind.double) and draw(st.booleans())
    high = SCALE_STEPS - HALF - 1 if scale_bias else chip.NARROW_BYTES // 4 - 1
    if "wide_read" in aims:
        # Each word takes a row.
        read = walk(draw, NAME, "wide_read", low=0, high=LAST_ROW, kind=aims["wide_read"])
        words = len(read.elements(NAME, "wide_read"))
        write = walk(
            draw, NAME, "narrow_write", low=0, high=high, count=words, double=not scale_bias
        )
        fields = read.fields(NAME, "wide_read") | write.fields(NAME, "narrow_write")
        fields |= {"scale_bias": int(scale_bias), "row_loop": 0}
        fields |= producer(draw, "producer", LOOPS)
        return fields | watchers(draw, NAME, WATCHED, LOOPS, most=3)
    write = walk(
        draw, NAME, "narrow_write", low=0, high=high, most=200, double=not scale_bias, kind=kind
    )
    if scale_bias and not kind and draw(st.booleans()):
        write = replace(write, double=(draw(st.integers(0, LOOPS - 1)), HALF, 0))
    if draw(st.booleans()):
        elements = draw(st.one_of(near_edges(1, 30), near_edges(60, 70)))
        base = draw(near_edges(0, high + 1 - min(elements, high + 1)))
        loop = draw(st.integers(0, LOOPS - 1))
        step = draw(st.integers(0, 3)) if base + elements + 6 <= high else 0
        elements = min(elements, high + 1 - base)
        write = replace(write, prologue=(loop, base, elements, base + 2 * step, step))
    fields = write.fields(NAME, "narrow_write") | producer(draw, "producer", LOOPS)
    fields |= {"scale_bias": int(scale_bias), "row_loop": draw(st.integers(0, LOOPS))}
    count = slow.rows_needed(fields)
    read = walk(draw, NAME, "wide_read", low=0, high=LAST_ROW, count=count)
    return fields | read.fields(NAME, "wide_read") | watchers(draw, NAME, WATCHED, LOOPS, most=3)


@st.composite
def cases(draw: Any, aims: Aims = NO_AIMS) -> tuple[dict[str, Any], dict[int, int], int]:
    """An instruction, values of flags, and the tile that executes it."""
    fields = draw(instructions(aims))
    elements = len(walk_elements(fields, "narrow_write"))
    flags = sufficient(fields, elements, chip.TILE_FLAGS)
    if flags and draw(st.booleans()):
        flag = draw(st.sampled_from(sorted(flags)))
        flags[flag] -= draw(near_edges(1, elements))
    if draw(st.booleans()):
        flags.setdefault(slow.SCALE_FLAG, draw(st.integers(0, 3)))
    return fields, flags, draw(st.integers(0, chip.TILES - 1))


def cover(coverage: Coverage, fields: dict[str, Any], half: int, done: bool, words: int) -> None:
    rows = slow.rows_needed(fields)
    body = walk_elements(fields, "narrow_write")
    coverage.hit("to the scale/bias buffer" if fields["scale_bias"] else "to narrow memory")
    if fields["scale_bias"]:
        coverage.hit(f"{('first', 'second')[half]} half of the scale/bias buffer")
    full = -(-len(body) // (32 if fields["scale_bias"] else 64))
    coverage.hit("row of 64 words and another", when=rows == full > 1)
    coverage.hit("row closed by a block", when=rows > full)
    coverage.hit("row used up", when=len(body) % 64 == 0)
    prologue = fields["narrow_write_prologue_enable"]
    coverage.hit("prologue", when=prologue)
    coverage.hit(
        "prologue longer than a row",
        when=prologue and fields["narrow_write_prologue_inner_limit"] >= 64,
    )
    alternate = fields["narrow_write_alternate_loop"]
    coverage.hit(
        "alternate limit",
        when=alternate and fields["narrow_write_alternate_limit"] < fields["narrow_write_limit"][0],
    )
    coverage.hit("double-buffered read", when=fields["wide_read_double_offset"])
    coverage.hit("double-buffered write", when=fields["narrow_write_double_offset"])
    sides = [s for s, v in zip(fields["watcher_side"], fields["watcher_valid"], strict=True) if v]
    coverage.hit("watcher of the read", when=0 in sides)
    coverage.hit("watcher of the write", when=1 in sides)
    coverage.hit("held back", when=not done)
    coverage.hit("held back after some words", when=not done and words > 0)
    coverage.hit("producer", when=fields["producer_increment"])
