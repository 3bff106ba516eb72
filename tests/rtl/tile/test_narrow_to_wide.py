"""Narrow-to-wide of the RTL's tile: random instructions against the slow model."""

from __future__ import annotations

from typing import Any

import pytest
from darwinn_sim import chip
from darwinn_sim.isa.codes import TileFlag
from functional_coverage import Coverage
from nightly import nightly_too
from slow_model import narrow_to_wide as slow
from stimulus import Walk, line, nothing
from tile_units import TileAndModel, check_unit
from traversal_coverage import bins
from traversal_coverage import cover as cover_traversal
from unit_cases.narrow_to_wide import (
    BINS,
    NAME,
    TRAVERSALS,
    cases,
    cover,
    with_base_register,
)


@nightly_too
def test_random_instructions_pack_the_rows_of_the_slow_model(nightly: bool) -> None:
    """Memories and flags agree, also where a watcher stops the unit."""
    coverage = Coverage("RTL narrow-to-wide", (*bins(*TRAVERSALS), *BINS))

    def check(case: tuple[dict[str, Any], dict[int, int], int, bool]) -> None:
        fields, flags, _, from_register = case
        pair = TileAndModel(flags)
        before = bytes(pair.slow.wide)
        done = slow.run(pair.slow, fields)
        if from_register:
            pair.give(NAME, with_base_register(fields), fields["narrow_read_base"])
        else:
            pair.give(NAME, fields)
        pair.run()
        assert pair.rtl.idle == done, "end of the instruction"
        cover_traversal(coverage, fields, "narrow_read", target=fields["transpose"])
        cover_traversal(coverage, fields, "wide_write")
        cover(
            coverage,
            fields | {"base_override": from_register},
            done,
            bytes(pair.slow.wide) != before,
        )

    check_unit(coverage, TRAVERSALS, cases, check, nightly=nightly)


WATCHERS = 6


def _one_row(*, guarded: bool, slot: int = 0) -> dict[str, Any]:
    write = Walk((1, 1, 1, 1), (0, 0, 0, 0), base=100, double=(0, 10, 0))
    valid = [int(guarded and k == slot) for k in range(WATCHERS)]
    return write.fields(NAME, "wide_write") | {
        "watcher_flag": [16] * WATCHERS,
        "watcher_valid": valid,
        "watcher_side": valid,
    }


@pytest.mark.parametrize("value", [0, 3])
@pytest.mark.parametrize(
    ("guarded", "reset", "rows"),
    [
        (True, None, [100, 110, 100]),
        (False, None, [100, 100, 100]),
        (True, 13, [100, 100, 100]),
        (True, 16, [100, 110, 100]),
    ],
    ids=["guarded by flag 16", "not guarded", "fence on flag 13", "fence on another flag"],
)
def test_the_double_buffer_goes_on_across_guarded_instructions(
    guarded: bool, reset: int | None, rows: list[int], value: int
) -> None:
    """docs/chip-facts.md: the side is kept until a fence loads the flag that counts the rows."""
    _check_rows(_one_row(guarded=guarded), reset, rows, value)


@pytest.mark.parametrize("slot", range(WATCHERS))
def test_the_double_buffer_goes_on_whichever_watcher_guards(slot: int) -> None:
    _check_rows(_one_row(guarded=True, slot=slot), None, [100, 110, 100])


def test_the_double_buffer_goes_on_while_a_fence_waits() -> None:
    """It starts anew when the fence passes, and not before."""
    pair = TileAndModel({})
    for row in (100, 110):
        pair.slow.write_row(row, [pair.slow.narrow_word(0)])
    pair.let_a_fence_wait(NAME, _one_row(guarded=True), TileFlag.NARROW_TO_WIDE_WRITE)


def _check_rows(fields: dict[str, Any], reset: int | None, rows: list[int], value: int = 0) -> None:
    """Three times the instruction, each with another word, and a fence behind each."""
    pair = TileAndModel({})
    for word in range(3):
        pair.give("MeshSouth", {"immediate_valid": 1, "immediate": 0xA0 + word})
        pair.give("TileFence", {"wait_idle": 0x3FF})
        pair.give(NAME, fields)
        pair.load_flag(reset, value)
        pair.slow.write_row(rows[word], [bytes([0xA0 + word, 0, 0, 0])])
        pair.slow.write_narrow_word(0, bytes([0xA0 + word, 0, 0, 0]))
    pair.run()
    assert pair.rtl.idle


@pytest.mark.parametrize("words", [61, 62, 63, 64, 65, 127, 128])
@pytest.mark.parametrize("block", [1, 2, 4])
def test_rows_of_every_length_around_a_full_one(block: int, words: int) -> None:
    """The last row is full, one block short of it, or one word long; transposed or not."""
    read = Walk((block, -(-words // block), 1, 1, 1, 1), (1, block, 0, 0, 0, 0))
    write = Walk((-(-read.counts[1] * block // 64), 1, 1, 1), (1, 0, 0, 0), base=100)
    fields = nothing(NAME) | read.fields(NAME, "narrow_read") | write.fields(NAME, "wide_write")
    fields |= {"transpose": int(block > 1), "transpose_16bit": int(block == 2), "row_loop": 6}
    pair = TileAndModel({})
    assert slow.run(pair.slow, fields)
    pair.give(NAME, fields)
    pair.run()
    assert pair.rtl.idle


def test_each_instruction_has_its_own_base() -> None:
    """Of several that wait one behind another, some with a base from a register: there the one in
    the instruction means nothing, elsewhere that of the register does not."""
    pair, bases = TileAndModel({}), (1, None, 40_000, 2, None, None, 0x5555)
    waits = {"watcher_valid": [1, *[0] * 5], "watcher_flag": [11] * 6, "watcher_expected": [1] * 6}
    for place, base in enumerate(bases):
        own = 100 + 10 * place
        fields = line(NAME, "narrow_read", 3, own) | line(NAME, "wide_write", 1, 500 + place)
        fields |= waits | {"row_loop": 7, "base_override": int(base is not None)}
        pair.give(NAME, fields, base)
        first = own if base is None else base
        pair.slow.write_row(500 + place, [pair.slow.narrow_word(first + k) for k in range(3)])
    pair.rtl.run(40)
    assert pair.rtl.units_idle != 0x3FF, "they wait"
    pair.give("TileFence", {"reset_flags": 1 << 11, "reset_value": 1})
    pair.slow.flags[11] = 1
    pair.run()
    assert pair.rtl.idle


@pytest.mark.parametrize("other", [*range(chip.TILE_FLAGS), None])
def test_the_double_buffer_starts_anew_whatever_else_a_fence_loads(other: int | None) -> None:
    """Flag 13 alone, with each of the others, and all at once."""
    pair = TileAndModel({})
    every = (1 << chip.TILE_FLAGS) - 1
    loaded = every if other is None else 1 << 13 | 1 << other
    fields = _one_row(guarded=True)
    for _ in range(2):
        pair.give(NAME, fields)
        pair.give("TileFence", {"wait_idle": 0x3FF, "reset_flags": loaded})
    pair.slow.write_row(100, [pair.slow.narrow_word(0)])
    pair.run()
    assert pair.rtl.idle
