"""Wide-to-narrow of the RTL's tile: random instructions against the slow model."""

from __future__ import annotations

from typing import Any

import pytest
from functional_coverage import Coverage
from nightly import nightly_too
from slow_model import wide_to_narrow as slow
from slow_model.traversal import walk
from stimulus import Walk
from tile_units import LIMIT, TileAndModel, check_unit
from traversal_coverage import bins
from traversal_coverage import cover as cover_traversal
from unit_cases.wide_to_narrow import BINS, HALF, NAME, TRAVERSALS, cases, cover


@nightly_too
def test_random_instructions_move_the_words_of_the_slow_model(nightly: bool) -> None:
    """Memories and flags agree, also where a watcher stops the unit."""
    coverage = Coverage("RTL wide-to-narrow", (*bins(*TRAVERSALS), *BINS))

    def check(case: tuple[dict[str, Any], dict[int, int], int]) -> None:
        fields, flags, _ = case
        pair = TileAndModel(flags)
        before = bytes(pair.slow.narrow) + bytes(pair.slow.scale_bias)
        half = pair.slow.flags[slow.SCALE_FLAG] & 1
        done = slow.run(pair.slow, fields)
        pair.give(NAME, fields)
        # A prologue before each block can make many words of a few.
        pair.run(LIMIT + len(walk(fields, "narrow_write")))
        assert pair.rtl.idle == done, "end of the instruction"
        for traversal in TRAVERSALS:
            cover_traversal(coverage, fields, traversal)
        words = bytes(pair.slow.narrow) + bytes(pair.slow.scale_bias) != before
        cover(coverage, fields, half, done, words)

    check_unit(coverage, TRAVERSALS, cases, check, nightly=nightly)


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("counted", [0, 1, 2, 7])
def test_a_load_of_scales_begins_at_the_half_that_is_free(counted: int, start: int) -> None:
    """docs/chip-facts.md: the half follows the blocks that flag 12 has counted, wherever the
    traversal says that it starts."""
    pair = TileAndModel({slow.SCALE_FLAG: counted})
    write = Walk((HALF, 1, 1, 1, 1, 1), (1, 0, 0, 0, 0, 0), double=(1, HALF, start))
    read = Walk((1, 1, 1, 1), (0, 0, 0, 0), base=20)
    fields = write.fields(NAME, "narrow_write") | read.fields(NAME, "wide_read")
    fields |= {"scale_bias": 1, "row_loop": 1, "producer_increment": 1, "producer_depth": 1}
    slow.run(pair.slow, fields)
    pair.give(NAME, fields)
    pair.run()
    loaded = pair.slow.row(20)
    first = 2 * HALF * (counted & 1)
    assert [int(word).to_bytes(4, "little") for word in pair.rtl.scale_bias[first:][:64]] == loaded


@pytest.mark.parametrize("busy", [1, 2, 30])
def test_a_guard_is_asked_once_for_a_word_that_waits_for_its_row(busy: int) -> None:
    """The write side has passed its guard; the row may be read only when another unit is done.

    Each row's first word has a guard that counts rows: asked again it would wait for a row more.
    """
    pair, rows = TileAndModel({11: 2}), 2
    constant = Walk((busy, 1, 1, 1), (1, 0, 0, 0), base=500).fields("MeshSouth", "narrow_write")
    at_end = {"write_producer_increment": 1, "write_producer_depth": 7}
    pair.give("MeshSouth", constant | at_end | {"immediate_valid": 1, "immediate": 5})
    write = Walk((64, rows, 1, 1, 1, 1), (1, 64, 0, 0, 0, 0)).fields(NAME, "narrow_write")
    read = Walk((rows, 1, 1, 1), (1, 0, 0, 0), base=20).fields(NAME, "wide_read")
    watchers = {
        "watcher_valid": [1, 1, 0, 0, 0, 0],
        "watcher_side": [1, 0, 0, 0, 0, 0],
        "watcher_flag": [11, 3, 0, 0, 0, 0],
        "watcher_depth": [1, 7, 0, 0, 0, 0],
        "watcher_expected": [1, 1, 0, 0, 0, 0],
        "watcher_stride": [1, 0, 0, 0, 0, 0],
    }
    pair.give(NAME, write | read | watchers | {"row_loop": 1})
    for place in range(busy):
        pair.slow.write_narrow_word(500 + place, bytes([5, 0, 0, 0]))
    for row in range(rows):
        for place, word in enumerate(pair.slow.row(20 + row)):
            pair.slow.write_narrow_word(64 * row + place, word)
    pair.slow.flags[3] = 1
    pair.run()
    assert pair.rtl.idle
