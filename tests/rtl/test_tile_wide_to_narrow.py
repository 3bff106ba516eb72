"""Wide-to-narrow of the RTL's tile: random instructions against the slow model."""

from __future__ import annotations

from typing import Any

from functional_coverage import Coverage
from slow_model import wide_to_narrow as slow
from slow_model.traversal import walk
from tile_units import LIMIT, TileAndModel, check_unit, nightly_too
from traversal_coverage import bins
from traversal_coverage import cover as cover_traversal
from unit_cases.wide_to_narrow import BINS, NAME, TRAVERSALS, cases, cover


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
