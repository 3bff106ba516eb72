"""Narrow-to-wide: random instructions on the engine against a slow model of the unit."""

from __future__ import annotations

from typing import Any

import pytest
from darwinn_sim import chip, timing
from darwinn_sim.errors import ChipFault
from darwinn_sim.kernel import state
from functional_coverage import Coverage
from hypothesis import given
from slow_model import narrow_to_wide as slow
from stimulus import Walk, constrained_random
from unit_bench import Bench
from unit_cases.narrow_to_wide import (
    BASE_REGISTER,
    BINS,
    LOOPS,
    NAME,
    cases,
    cover,
    with_base_register,
)


def test_random_instructions_pack_the_rows_of_the_slow_model() -> None:
    """Memories and flags agree, also where a watcher stops the unit."""
    coverage = Coverage("narrow-to-wide", BINS)

    @constrained_random(200)
    @given(cases())
    def check(case: tuple[dict[str, Any], dict[int, int], int, bool]) -> None:
        fields, flags, number, from_register = case
        encoded = with_base_register(fields) if from_register else {**fields, "base_override": 0}
        bench = Bench([(NAME, encoded | {"tiles": 1 << number})])
        bench.core["registers"][BASE_REGISTER] = fields["narrow_read_base"]
        for flag, value in flags.items():
            bench.tiles[number]["flags"][flag] = value
        tile = bench.tile(number)
        before = bytes(tile.wide)
        done = slow.run(tile, fields)
        bench.run()
        assert bench.fault is None
        bench.assert_tiles([tile])
        assert (bench.waiting == ()) == done
        cover(coverage, encoded, done, bytes(tile.wide) != before)

    coverage.close(check)


def _one_row(side: int, *, guarded: bool) -> dict[str, Any]:
    write = Walk((1, 1, 1, 1), (0, 0, 0, 0), base=100, double=(0, 10, side))
    fields = write.fields(NAME, "wide_write") | {"tiles": 1, "narrow_read_base": 0}
    if not guarded:
        return fields
    return fields | {
        "watcher_flag": [16, 0, 0, 0, 0, 0],
        "watcher_expected": [0] * 6,
        "watcher_valid": [1, 0, 0, 0, 0, 0],
        "watcher_side": [1, 0, 0, 0, 0, 0],
    }


@pytest.mark.parametrize(
    ("guarded", "between", "rows"),
    [
        (True, [], [100, 110, 100]),
        (False, [], [100, 100, 100]),
        (True, [("TileFence", {"tiles": 1, "reset_flags": 1 << 13})], [100, 100, 100]),
        (True, [("TileFence", {"tiles": 1, "reset_flags": 1 << 16})], [100, 110, 100]),
    ],
    ids=["guarded by flag 16", "not guarded", "fence on flag 13", "fence on another flag"],
)
def test_the_double_buffer_goes_on_across_guarded_instructions(
    guarded: bool, between: list[Any], rows: list[int]
) -> None:
    """docs/chip-facts.md: the side is kept until a fence loads the flag that counts the rows."""
    operations: list[Any] = []
    for k in range(3):
        operations += [
            ("MeshSouth", {"tiles": 1, "immediate_valid": 1, "immediate": 0xA0 + k}),
            ("TileFence", {"tiles": 1, "wait_idle": 0x3FF}),
            (NAME, _one_row(0, guarded=guarded)),
            ("TileFence", {"tiles": 1, "wait_idle": 0x3FF}),
            *between,
        ]
    bench = Bench(operations)
    bench.run()
    bench.assert_idle()
    wide = bench.tiles[0]["wide"]
    last_writer = {row: 0xA0 + k for k, row in enumerate(rows)}
    assert {row: int(wide[64 * row]) for row in last_writer} == last_writer


@pytest.mark.parametrize(("gathered", "places"), [(3, 1), (1, 2)])
def test_rows_and_places_that_do_not_match_are_a_fault(gathered: int, places: int) -> None:
    read = Walk((gathered, 1, 1, 1, 1, 1), (1, 0, 0, 0, 0, 0)).fields(NAME, "narrow_read")
    write = Walk((places, 1, 1, 1), (1, 0, 0, 0)).fields(NAME, "wide_write")
    bench = Bench([(NAME, read | write | {"row_loop": 0, "tiles": 1})])
    bench.run()
    assert bench.fault == (
        "narrow-to-wide",
        "the write traversal ends before or after the rows",
    )
    with pytest.raises(ChipFault, match="ends before or after the rows"):
        timing.simulate_program(bench.program, (16,))


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"narrow_read_base": 0xFFFF}, ("narrow memory", "address outside the memory")),
        ({"wide_write_base": chip.WIDE_ROWS}, ("wide memory", "row outside the memory")),
    ],
)
def test_an_address_outside_a_memory_is_a_fault(
    fields: dict[str, int], fault: tuple[str, str]
) -> None:
    bench = Bench([(NAME, fields | {"tiles": 1 << 3})])
    bench.run()
    assert bench.fault == fault
    assert (int(bench.core["fault_pc"]), int(bench.core["fault_tile"])) == (1, 3)


@pytest.mark.parametrize("transpose_16bit", [0, 1])
def test_a_transposed_copy_carries_the_marks_to_the_right_bytes(transpose_16bit: int) -> None:
    """The shadow of what was written is transposed with the data."""
    block = 2 if transpose_16bit else 4
    read = Walk((block, 1, 1, 1, 1, 1), (1, 0, 0, 0, 0, 0), target=1)
    fields = read.fields(NAME, "narrow_read") | {"transpose": 1, "row_loop": LOOPS, "tiles": 1}
    bench = Bench([(NAME, fields | {"transpose_16bit": transpose_16bit})], strict=True)
    bench.tiles[0]["narrow_written"][0] = 0x01010001 if transpose_16bit == 0 else 0x00000101
    bench.run()
    assert bench.fault is None
    shadow = bench.tiles[0]["wide_written"][:block].tolist()
    full = int(state.WRITTEN)
    if transpose_16bit:
        assert shadow == [full, 0x01010000]
    else:
        assert shadow == [full, 0x01010100, full, full]
