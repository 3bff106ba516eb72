"""Wide-to-narrow: random instructions on the engine against a slow model of the unit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from darwinn_sim import chip
from darwinn_sim.kernel import state
from functional_coverage import Coverage
from hypothesis import given
from slow_model import wide_to_narrow as slow
from stimulus import Walk, constrained_random
from unit_bench import Bench
from unit_cases.wide_to_narrow import BINS, LOOPS, NAME, SCALE_STEPS, cases, cover


def test_random_instructions_move_the_words_of_the_slow_model() -> None:
    """Memories and flags agree, also where a watcher stops the unit, and after it goes on."""
    coverage = Coverage("wide-to-narrow", BINS)

    @constrained_random(200)
    @given(cases())
    def check(case: tuple[dict[str, Any], dict[int, int], int]) -> None:
        fields, flags, number = case
        bench = Bench([(NAME, fields | {"tiles": 1 << number})])
        for flag, value in flags.items():
            bench.tiles[number]["flags"][flag] = value
        tile = bench.tile(number)
        before = bytes(tile.narrow) + bytes(tile.scale_bias)
        half = tile.flags[slow.SCALE_FLAG] & 1
        done = slow.run(tile, fields)
        bench.run()
        assert bench.fault is None
        bench.assert_tiles([tile])
        assert (bench.waiting == ()) == done
        if not done:
            assert all(f"tile {number} wide-to-narrow" in line for line in bench.waiting)
        words = bytes(tile.narrow) + bytes(tile.scale_bias) != before
        cover(coverage, fields, half, done, words)

    coverage.close(check)


@pytest.mark.parametrize(
    ("base", "memory"),
    [(chip.NARROW_BYTES // 4, "narrow memory"), (65535, "narrow memory")],
)
def test_a_word_beyond_narrow_memory_is_a_fault(base: int, memory: str) -> None:
    fields = {"narrow_write_base": base, "tiles": 1}
    bench = Bench([(NAME, fields)])
    bench.run()
    assert bench.fault == (memory, "address outside the memory")
    assert int(bench.core["fault_address"]) == 4 * base
    assert (int(bench.core["fault_pc"]), int(bench.core["fault_tile"])) == (1, 0)


def test_a_row_beyond_wide_memory_is_a_fault() -> None:
    bench = Bench([(NAME, {"wide_read_base": chip.WIDE_ROWS, "tiles": 1 << 7})])
    bench.run()
    assert bench.fault == ("wide memory", "row outside the memory")
    assert int(bench.core["fault_tile"]) == 7


def test_a_step_beyond_the_scale_bias_buffer_is_a_fault() -> None:
    fields = {"scale_bias": 1, "narrow_write_base": SCALE_STEPS, "tiles": 1}
    bench = Bench([(NAME, fields)])
    bench.run()
    assert bench.fault == ("scale/bias buffer", "address outside the buffer")


@pytest.mark.parametrize(("rows", "words"), [(1, 2), (2, 1)])
def test_rows_and_words_that_do_not_match_are_a_fault(rows: int, words: int) -> None:
    """Each word closes its row, so that words need as many rows."""
    read = Walk((rows, 1, 1, 1), (1, 0, 0, 0)).fields(NAME, "wide_read")
    write = Walk((words, 1, 1, 1, 1, 1), (1, 0, 0, 0, 0, 0)).fields(NAME, "narrow_write")
    bench = Bench([(NAME, read | write | {"row_loop": 0, "tiles": 1})])
    bench.run()
    assert bench.fault == (
        "wide-to-narrow",
        "the rows that are read are not those that are written",
    )


def test_a_copy_carries_the_mark_of_what_nothing_has_written() -> None:
    """Words that were never written stay so at their new place, and the copy itself is no error."""
    four_words = Walk((4, 1, 1, 1, 1, 1), (1, 0, 0, 0, 0, 0)).fields(NAME, "narrow_write")
    bench = Bench([(NAME, four_words | {"row_loop": LOOPS, "tiles": 1})], strict=True)
    bench.tiles[0]["wide_written"][1] = 0
    bench.tiles[0]["wide_written"][2] = 0x0100
    bench.run()
    assert bench.fault is None
    shadow = bench.tiles[0]["narrow_written"][:5].tolist()
    written = int(state.WRITTEN)
    assert shadow == [written, 0, 0x0100, written, written]
    assert np.array_equal(bench.tiles[0]["narrow"][:4], bench.tiles[0]["wide"][:4])
