"""Wide-to-narrow of the RTL's tile: random instructions against the slow model."""

from __future__ import annotations

from typing import Any

from functional_coverage import Coverage
from slow_model import wide_to_narrow as slow
from stimulus import Walk
from tile_units import TileAndModel, check_unit, nightly_too
from traversal_coverage import bins
from traversal_coverage import cover as cover_traversal
from unit_cases.wide_to_narrow import BINS, LOOPS, NAME, TRAVERSALS, cases, cover


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
        pair.run()
        assert pair.rtl.idle == done
        for traversal in TRAVERSALS:
            cover_traversal(coverage, fields, traversal)
        words = bytes(pair.slow.narrow) + bytes(pair.slow.scale_bias) != before
        cover(coverage, fields, half, done, words)

    check_unit(coverage, TRAVERSALS, cases, check, nightly=nightly)


def test_a_word_takes_a_cycle_and_a_row_none() -> None:
    """docs/rtl.md: the next row is taken in the cycle of its first word."""
    cycles = []
    for words in (64, 128):
        pair = TileAndModel({})
        read = Walk((words // 64, 1, 1, 1), (1, 0, 0, 0)).fields(NAME, "wide_read")
        write = Walk((words, 1, 1, 1, 1, 1), (1, 0, 0, 0, 0, 0)).fields(NAME, "narrow_write")
        fields = read | write | {"row_loop": LOOPS, "scale_bias": 0}
        fields |= {"producer_increment": 1, "producer_depth": 1}
        slow.run(pair.slow, fields)
        pair.give(NAME, fields)
        cycles.append(pair.run())
    assert cycles[1] - cycles[0] == 64
