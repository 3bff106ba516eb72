"""Mesh bus: random valid instructions and what they cover, for the model and for the RTL."""

from __future__ import annotations

from typing import Any

from darwinn_sim import chip
from functional_coverage import Coverage
from hypothesis import strategies as st
from slow_model import mesh_bus as slow
from slow_model.traversal import walk as walk_elements
from stimulus import NO_AIMS, Aims, Walk, near_edges, producer, walk, watchers
from unit_bench import sufficient

INSTRUCTION_BINS = (
    *slow.DIRECTIONS,
    "immediate",
    "immediate while sending",
    "only sending",
    "neither side",
    "more words than a link holds",
    "alternate limit",
    "double buffer",
    "watcher of the read",
    "watcher of the write",
    "producers",
)
BINS = (
    *INSTRUCTION_BINS,
    "all tiles",
    "one tile",
    "over the edge of the grid",
    "held back",
    "words that nobody sends",
)
LOOPS = 4
TRAVERSALS = ("narrow_read", "narrow_write")
MIDDLE = chip.NARROW_BYTES // 8
"""Reads stay below this word address and writes above it: both sides run side by side."""

OFF = Walk((1, 1, 1, 1), (0, 0, 0, 0))
NO_WATCHERS = {"watcher_valid": [0] * 6, "watcher_side": [0] * 6}


@st.composite
def instructions(draw: Any, count: int | None, aims: Aims = NO_AIMS) -> dict[str, Any]:
    """Fields of a valid instruction: as many words (``count``) are written as are sent."""
    name = "MeshSouth"
    sends, receives = (
        draw(st.booleans()) or count is not None or side in aims for side in TRAVERSALS
    )
    kinds = {side: aims.get(side) for side in TRAVERSALS}
    read = OFF
    if sends and "narrow_write" not in aims:
        kind = kinds["narrow_read"]
        read = walk(
            draw, name, "narrow_read", low=0, high=MIDDLE - 1, most=60, count=count, kind=kind
        )
    fields = read.fields(name, "narrow_read")
    immediate = int(receives and (not sends or (count is None and draw(st.booleans()))))
    write = OFF
    last = chip.NARROW_BYTES // 4 - 1
    if receives:
        words = None if immediate else len(walk_elements(fields, "narrow_read"))
        kind = kinds["narrow_write"]
        write = walk(
            draw, name, "narrow_write", low=MIDDLE, high=last, most=60, count=words, kind=kind
        )
    if sends and "narrow_write" in aims:
        words = None if immediate else len(write.elements(name, "narrow_write"))
        read = walk(draw, name, "narrow_read", low=0, high=MIDDLE - 1, most=60, count=words)
        fields |= read.fields(name, "narrow_read")
    fields |= write.fields(name, "narrow_write")
    fields |= {"immediate_valid": immediate, "immediate": draw(st.integers(0, (1 << 32) - 1))}
    return fields | producer(draw, "read_producer", LOOPS) | producer(draw, "write_producer", LOOPS)


@st.composite
def cases(draw: Any, aims: Aims = NO_AIMS) -> tuple[str, dict[str, Any], int, dict[int, int]]:
    """Direction, fields, tile set, and values of flags that let all watchers pass or not."""
    name = draw(st.sampled_from(list(slow.DIRECTIONS)))
    if not aims and draw(st.integers(0, 9)) == 0:
        # More words than a link holds: they have to be taken while they are sent.
        return name, draw(instructions(draw(near_edges(257, 600)))) | NO_WATCHERS, 0xFFFF, {}
    fields = draw(instructions(None, aims))
    fields |= NO_WATCHERS if draw(st.booleans()) else watchers(draw, name, (0, 11, 13), LOOPS)
    elements = max(len(walk_elements(fields, side)) for side in ("narrow_read", "narrow_write"))
    flags = sufficient(fields, elements, chip.TILE_FLAGS)
    if flags and draw(st.booleans()):
        flag = draw(st.sampled_from(sorted(flags)))
        flags[flag] -= draw(near_edges(1, elements))
    few = st.sampled_from([1, 8, 1 << 15])
    tiles = draw(st.one_of(st.just(0xFFFF), st.integers(1, 0xFFFF), few))
    return name, fields, tiles, flags


def cover(
    coverage: Coverage, name: str, fields: dict[str, Any], tiles: list[int], held: set[int]
) -> None:
    cover_instruction(coverage, name, fields)
    sends, receives = (not slow.off(fields, side) for side in TRAVERSALS)
    coverage.hit("all tiles", when=len(tiles) == 16)
    coverage.hit("one tile", when=len(tiles) == 1)
    wraps = any(abs(slow.neighbour(t, name) - t) in (3, 12) for t in tiles)
    coverage.hit("over the edge of the grid", when=wraps and sends and receives)
    coverage.hit("held back", when=bool(held) and any(fields["watcher_valid"]))
    alone = any(slow.neighbour(t, name) not in tiles for t in tiles)
    silent = bool(held) and not any(fields["watcher_valid"])
    coverage.hit("words that nobody sends", when=silent and alone)


def cover_instruction(coverage: Coverage, name: str, fields: dict[str, Any]) -> None:
    """What an instruction covers by itself, whichever tiles execute it."""
    sends, receives = (not slow.off(fields, side) for side in TRAVERSALS)
    constant = fields["immediate_valid"]
    coverage.hit(name)
    coverage.hit("immediate", when=constant and not sends)
    coverage.hit("immediate while sending", when=constant and sends)
    coverage.hit("only sending", when=sends and not receives and not constant)
    coverage.hit("neither side", when=not sends and not receives and not constant)
    words = len(walk_elements(fields, "narrow_read"))
    coverage.hit("more words than a link holds", when=sends and words > chip.MESH_FIFO_WORDS)
    for side in TRAVERSALS:
        alternate = fields[f"{side}_alternate_loop"]
        shorter = fields[f"{side}_alternate_limit"] < fields[f"{side}_limit"][0]
        coverage.hit("alternate limit", when=alternate and shorter)
        coverage.hit("double buffer", when=fields[f"{side}_double_offset"])
    sides = [s for s, v in zip(fields["watcher_side"], fields["watcher_valid"], strict=True) if v]
    coverage.hit("watcher of the read", when=0 in sides)
    coverage.hit("watcher of the write", when=1 in sides)
    coverage.hit(
        "producers", when=fields["read_producer_increment"] and fields["write_producer_increment"]
    )
