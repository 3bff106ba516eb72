"""Queue and fence of the RTL's tile: random fences against the slow model, order, and depth."""

from __future__ import annotations

from itertools import product

import pytest
from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.timing.description import chip_description
from functional_coverage import ROUNDS, Coverage
from nightly import check_cases, nightly_too
from slow_model import tile_fence as slow
from stimulus import Walk
from tile_units import LIMIT, TileAndModel
from unit_cases.tile_fence import AFTER, TILE_BINS, Case, busy, cover, never, tile_cases


@nightly_too
def test_fences_wait_load_and_count(nightly: bool) -> None:
    """A fence holds back what follows until its units are idle and all its tokens there."""
    coverage = Coverage("RTL tile fence", TILE_BINS)

    def check(case: Case) -> None:
        fields, busy_units, tokens = case
        pair = TileAndModel(tokens)
        for name, values in (*map(never, busy_units), ("TileFence", fields), AFTER):
            pair.give(name, values)
        passed = slow.tile_fence(pair.slow, fields, busy(busy_units))
        pair.run(limit=200)
        assert pair.rtl.fences == passed * (fields["increment"] + 1)
        assert pair.rtl.units_idle == 0x3FF & ~busy(busy_units)
        cover(coverage, case, passed)

    for added in range(ROUNDS):
        check_cases(coverage.unit, tile_cases(), check, 100, nightly=nightly, added=added)
        if not coverage.missed():
            break
    coverage.finish()


@pytest.mark.parametrize("channel", [0, 1])
def test_a_fence_looks_at_every_bit_of_a_count(channel: int) -> None:
    """Of so many tokens; those of the other channel are not asked for."""
    flags = (int(TileFlag.RING_PRODUCER_A), int(TileFlag.RING_PRODUCER_B))
    for bit, count in product(range(16), (0, 0x5A3C, 0xFFFF)):
        for tokens, passes in ((count ^ 1 << bit, 0), (count, 1)):
            pair = TileAndModel({flags[channel]: tokens, flags[1 - channel]: count ^ 1 << bit})
            asked = {"producer_count_valid": 1 << channel, "producer_count": count}
            pair.give("TileFence", asked | {"increment": 1})
            pair.rtl.run(20)
            assert pair.rtl.fences == passes, (bit, count)


def test_a_full_unit_queue_holds_back_other_units() -> None:
    """Instructions leave in order: behind a full queue waits what another unit could execute."""
    name, waiting = never("WideToNarrow")
    # One is executed, the others stand in the unit's queue and at its exit.
    most = 1 + int(chip_description("harness").unit_queue.value)
    for count, passed in ((most, 1), (most + 1, 0)):
        pair = TileAndModel({})
        for _ in range(count):
            pair.give(name, waiting)
        pair.give(*AFTER)
        pair.run(limit=200)
        assert pair.rtl.fences == passed


def test_a_load_takes_the_place_of_an_increment_in_its_cycle() -> None:
    """A unit counts in every cycle; the flag goes on from the value that a fence loads."""
    words, loaded, flag = 100, 1000, int(TileFlag.MESH_INBOUND_FROM_NORTH)
    pair = TileAndModel({})
    write = Walk((words, 1, 1, 1), (1, 0, 0, 0)).fields("MeshSouth", "narrow_write")
    pair.give("MeshSouth", write | {"immediate_valid": 1, "write_producer_increment": 1})
    for value in (5000, loaded):
        pair.give("TileFence", {"reset_flags": 1 << flag, "reset_value": value})
        for _ in range(5):
            pair.give("TileFence", {})  # a cycle each
    for place in range(words):
        pair.slow.write_narrow_word(place, bytes(4))
    pair.rtl.run(LIMIT)
    # The fence that loads this leaves the queue seven cycles behind the mesh's instruction, whose
    # first word is written after three: with the fifth.
    lost = 5
    pair.slow.flags[flag] = loaded + words - lost
    pair.run()
