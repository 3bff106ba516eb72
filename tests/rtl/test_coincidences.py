"""The records of conditions and handshakes: their names are those of the modules that count, every
reason is needed, and programs are drawn towards what is missing.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from coincidences import Record
from core_coincidences import CORE, small_chip
from harness_runs import require_toolchain
from host_coincidences import HOST, Knobs, small_host
from tile_coincidences import TILE, small_tile

RECORDS = pytest.mark.parametrize("record", [HOST, TILE, CORE], ids=lambda each: each.module)


@pytest.mark.parametrize("make", [small_host, small_tile, small_chip])
def test_lint_of_a_bench_that_counts_is_clean(make: Any) -> None:
    require_toolchain()
    from darwinn_rtl.lint import verilator

    assert verilator(make()) == ""


@RECORDS
def test_every_reason_is_needed_and_every_name_is_one(record: Record) -> None:
    """A pattern that matches nothing argues nothing away; recipes are for names that there are, and
    each name has one."""
    everything = [(each, shake) for each in record.conditions for shake in record.handshakes]
    needed = {record.reason(pair) for pair in everything} - {""}
    assert needed == {why for _, _, why in record.impossible}
    assert len(record.possible) == sum(not record.reason(pair) for pair in everything)
    names = {condition.partition(" ")[0] for condition, _ in everything}
    assert set(record.recipes) <= names | set(record.handshakes)
    for recipe in (*record.recipes.values(), record.anything):
        record.knobs(**recipe)


@RECORDS
def test_the_pairs_that_are_told_have_their_names(record: Record) -> None:
    assert record.pair(0) == (record.conditions[-1], record.handshakes[-1])
    every = len(record.conditions) * len(record.handshakes)
    assert record.pair(every - 1) == (record.conditions[0], record.handshakes[0])
    assert record.conditions[0].endswith(" begins")
    assert len({record.pair(number) for number in range(every)}) == every


def test_programs_are_drawn_towards_what_is_missing() -> None:
    """Of a pair, both recipes are followed, but where one knob serves both or is drawn anew."""
    chosen = [HOST.drawn(Random(seed), [("reset", "register_read")]) for seed in range(40)]
    aimed = [each for each in chosen if each.resets and each.accesses == 0.7]
    assert len(aimed) >= 20
    assert any(not each.resets for each in chosen)
    assert HOST.drawn(Random(1), []) != Knobs()
