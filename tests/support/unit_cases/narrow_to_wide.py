"""Narrow-to-wide: random valid instructions and what they cover, for the model and for the RTL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from darwinn_sim import chip
from functional_coverage import Coverage
from hypothesis import assume
from hypothesis import strategies as st
from slow_model import narrow_to_wide as slow
from stimulus import NO_AIMS, Aims, near_edges, producer, walk, watchers
from unit_bench import sufficient

BINS = (
    "no transpose",
    "transpose 4 x 4 bytes",
    "transpose 2 x 2 halves",
    "unfinished block",
    "full row",
    "part of a row",
    "several rows",
    "row closed by a block",
    "alternate limit",
    "alternate limit of loop 1",
    "double-buffered read",
    "double-buffered write",
    "base from a register",
    "watcher of the read",
    "watcher of the write",
    "held back",
    "held back after some rows",
    "producer",
)
NAME = "NarrowToWide"
TRAVERSALS = ("narrow_read", "wide_write")
LOOPS = 6
WATCHED = (0, 3, 5, 11, 13, 16)
BASE_REGISTER = 9
LAST_ROW = chip.WIDE_ROWS - 1


@st.composite
def instructions(draw: Any, aims: Aims) -> dict[str, Any]:
    """Fields of a valid instruction: rows of whole blocks, as many as the write traversal has."""
    transpose = draw(st.sampled_from([0, 0, 4, 2]))
    fields: dict[str, Any] = {
        "transpose": int(transpose > 0),
        # Without `transpose` it has no effect.
        "transpose_16bit": int(transpose == 2 or (not transpose and draw(st.booleans()))),
        "row_loop": draw(st.integers(0, LOOPS)),
    }
    last, target = chip.NARROW_BYTES // 4 - 1, int(transpose > 0)
    if "wide_write" in aims:
        # Each word closes a row.
        fields["row_loop"] = 0
        write = walk(draw, NAME, "wide_write", low=0, high=LAST_ROW, kind=aims["wide_write"])
        rows = len(write.elements(NAME, "wide_write"))
        read = walk(draw, NAME, "narrow_read", low=0, high=last, count=rows, target=target)
        fields |= read.fields(NAME, "narrow_read") | write.fields(NAME, "wide_write")
        return fields | producer(draw, "producer", 4) | watchers(draw, NAME, WATCHED, LOOPS, most=3)
    kind = aims.get("narrow_read")
    read = walk(draw, NAME, "narrow_read", low=0, high=last, most=200, target=target, kind=kind)
    if transpose and not kind and draw(st.booleans()):
        # Whole blocks, as programs have them: the short side is loop 0.
        counts = (transpose, *read.counts[1:-1], 1)
        read = replace(read, counts=counts, double=(0, 0, 0))
        offsets = [e.address - read.base for e in read.elements(NAME, "narrow_read")]
        read = replace(read, base=-min(offsets))
        assume(max(offsets) - min(offsets) <= last)
        fields["row_loop"] = draw(st.integers(1, LOOPS))
    fields |= read.fields(NAME, "narrow_read")
    rows = len(slow.row_sizes(fields))
    write = walk(draw, NAME, "wide_write", low=0, high=LAST_ROW, count=rows)
    fields |= write.fields(NAME, "wide_write") | producer(draw, "producer", 4)
    return fields | watchers(draw, NAME, WATCHED, LOOPS, most=3)


@st.composite
def cases(draw: Any, aims: Aims = NO_AIMS) -> tuple[dict[str, Any], dict[int, int], int, bool]:
    """An instruction, values of flags, its tile, and whether its base comes from a register."""
    fields = draw(instructions(aims))
    elements = len(slow.row_sizes(fields))
    flags = sufficient(fields, elements + 20, chip.TILE_FLAGS)
    if flags and draw(st.booleans()):
        flag = draw(st.sampled_from(sorted(flags)))
        flags[flag] -= draw(near_edges(1, elements + 20))
    return fields, flags, draw(st.integers(0, chip.TILES - 1)), draw(st.booleans())


def cover(coverage: Coverage, fields: dict[str, Any], done: bool, rows: int) -> None:
    sizes = slow.row_sizes(fields)
    kinds = ("no transpose", "transpose 4 x 4 bytes", "transpose 2 x 2 halves")
    coverage.hit(kinds[fields["transpose"] * (1 + fields["transpose_16bit"])])
    block = 0 if not fields["transpose"] else 2 if fields["transpose_16bit"] else 4
    coverage.hit("unfinished block", when=block and any(size % block for size in sizes))
    coverage.hit("full row", when=64 in sizes)
    coverage.hit("part of a row", when=any(size < 64 for size in sizes))
    coverage.hit("several rows", when=len(sizes) > 1)
    coverage.hit("row closed by a block", when=any(size < 64 for size in sizes[:-1]))
    loop = 1 if fields["transpose"] else 0
    shorter = fields["narrow_read_alternate_loop"] and (
        fields["narrow_read_alternate_limit"] < fields["narrow_read_limit"][loop]
    )
    coverage.hit("alternate limit of loop 1" if loop else "alternate limit", when=shorter)
    coverage.hit("double-buffered read", when=fields["narrow_read_double_offset"])
    coverage.hit("double-buffered write", when=fields["wide_write_double_offset"])
    sides = [s for s, v in zip(fields["watcher_side"], fields["watcher_valid"], strict=True) if v]
    coverage.hit("watcher of the read", when=0 in sides)
    coverage.hit("watcher of the write", when=1 in sides)
    coverage.hit("held back", when=not done)
    coverage.hit("held back after some rows", when=not done and rows > 0)
    coverage.hit("producer", when=fields["producer_increment"])
    coverage.hit("base from a register", when=fields["base_override"])


def with_base_register(fields: dict[str, Any]) -> dict[str, Any]:
    """The same instruction with its read base in a register and another one in its field."""
    other = 4711 if fields["narrow_read_base"] != 4711 else 0
    override = {"base_override": 1, "base_register": BASE_REGISTER, "narrow_read_base": other}
    return fields | override
