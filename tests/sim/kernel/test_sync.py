"""Sync flags: watchers and producers alone, around the turn of their 16-bit counters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from darwinn_sim.isa.builder import build
from darwinn_sim.isa.codec import decode
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS
from darwinn_sim.kernel import sync
from hypothesis import given
from hypothesis import strategies as st
from slow_model import sync as slow
from stimulus import constrained_random, near_edges, watchers
from unit_bench import Bench

WATCHED = tuple(i.name for i in INSTRUCTIONS.values() if i.watchers)


@pytest.mark.parametrize(
    ("flag", "expected", "reached"),
    [
        (0, 0, True),
        (0, 1, False),
        (5, -3, True),
        (0x7FFF, 0, True),
        (0x8000, 0, False),
        (0, 0xFFFF, True),
        (0xFFFF, 0, False),
        (2, 0xFFFE, True),
        (70_000, 4464, True),
    ],
)
def test_flags_are_compared_by_their_signed_difference(
    flag: int, expected: int, reached: bool
) -> None:
    assert sync.reached(flag, expected) == reached == slow.at_least(flag, expected)


@constrained_random(500)
@given(near_edges(-(1 << 20), 1 << 20), near_edges(-(1 << 20), 1 << 20))
def test_flags_wrap_at_16_bits(flag: int, expected: int) -> None:
    assert sync.reached(flag, expected) == slow.at_least(flag, expected)
    assert sync.reached(flag + 65536, expected) == sync.reached(flag, expected)


@st.composite
def cases(draw: Any) -> tuple[str, dict[str, Any], list[list[int]], list[int]]:
    """Watchers of an instruction, and a history of flags and of blocks that begin."""
    name = draw(st.sampled_from(WATCHED))
    flag = BY_NAME[name].field("watcher_flag")
    assert flag.codes is not None
    known = [int(code) for code in flag.codes]
    fields = watchers(draw, name, known, 7)
    steps = draw(st.integers(1, 12))
    value = st.sampled_from([0, 1, 2, 40, 0x7FFF, 0x8000, 0xFFFF])
    flags = [[draw(value) for _ in known] for _ in range(steps)]
    begins = [draw(st.integers(0, 255)) | 1 for _ in range(steps)]
    return name, fields, flags, begins


@constrained_random(300)
@given(cases())
def test_watchers_pass_and_count_as_the_slow_ones(
    case: tuple[str, dict[str, Any], list[list[int]], list[int]],
) -> None:
    """Each watcher counts the blocks that it let pass; one that fails keeps all from counting."""
    name, fields, history, begins = case
    entry = BY_NAME[name]
    columns = decode(build([(name, fields)])).columns[entry.opcode]
    table: Any = sync.lower_watchers(columns, 1)[0]
    sides = (0, 1, -1) if "watcher_side" in columns else (-1,)
    for side in sides:
        waited = np.zeros(sync.MAX_WATCHERS, np.int64)
        slow_watchers = slow.Watchers(fields, None if side < 0 else side)
        for flags, bits in zip(history, begins, strict=True):
            padded = np.zeros(19, np.int64)
            padded[: len(flags)] = flags
            blocks = {d for d in range(8) if bits >> d & 1}
            expected = slow_watchers.passes(padded.tolist(), blocks)
            obstacle = sync.obstacle(table, waited, padded, bits, side)
            assert (not obstacle) == expected
            if obstacle:
                assert not sync.is_overcome(obstacle, padded)
                padded[sync.flag_of(obstacle)] = sync.count_of(obstacle)
                assert sync.is_overcome(obstacle, padded)
        counted = [watcher["iteration"] for watcher in slow_watchers.watchers]
        assert sorted(counted) == sorted(
            int(waited[k]) for k in range(table["count"]) if side in (-1, int(table["side"][k]))
        )


@constrained_random(60)
@given(st.lists(cases(), min_size=1, max_size=4), st.integers(0, 18))
def test_which_watchers_wait_for_a_flag(
    drawn: list[tuple[str, dict[str, Any], list[list[int]], list[int]]], flag: int
) -> None:
    """Of those that are valid; what stands in the place of the others does not count."""
    name = drawn[0][0]
    fields = [case[1] for case in drawn if case[0] == name]
    columns = decode(build([(name, each) for each in fields])).columns[BY_NAME[name].opcode]
    records = np.zeros(len(fields), [("watchers", sync.Watchers.dtype)])
    records["watchers"] = sync.lower_watchers(columns, len(fields))
    found = sync.watching(records, flag)
    for row, each in enumerate(fields):
        flags, valid = (np.atleast_1d(each.get(f"watcher_{part}", 0)) for part in ("flag", "valid"))
        waits = [int(f) == flag for f, on in zip(flags, valid, strict=True) if on]
        assert found[row].sum() == sum(waits)
        assert found[row][: len(waits)].tolist() == waits


@pytest.mark.parametrize("name", sorted({i.name for i in INSTRUCTIONS.values() if i.producers}))
def test_every_producer_counts_once_per_block(name: str) -> None:
    entry = BY_NAME[name]
    for producer in entry.producers:
        for depth in range(1 << entry.field(f"{producer}_depth").width):
            fields = {f"{producer}_increment": 1, f"{producer}_depth": depth}
            columns = decode(build([(name, fields)])).columns[entry.opcode]
            record: Any = sync.lower_producer(producer, columns, 1)[0]
            for ended in range(1 << 9):
                assert sync.produce(record, ended) == ended >> depth & 1
            assert sync.produce(record, -1) == 1


@pytest.mark.parametrize("value", [0, 7, 0xFFFF])
def test_relays_start_from_the_value_that_a_fence_loads(value: int) -> None:
    """A fence loads, it does not clear: what waits for a number relies on it."""
    fields: dict[str, Any] = {"tiles": 1, "immediate_valid": 1, "write_producer_increment": 1}
    rest = [0] * 5
    waits = {"watcher_flag": [3, *rest], "watcher_valid": [1, *rest], "watcher_side": [1, *rest]}
    signed = value - 65536 if value > 0x7FFF else value
    bench = Bench(
        [
            ("TileFence", {"tiles": 1, "reset_flags": 1 << 3, "reset_value": value}),
            ("MeshSouth", fields | waits | {"watcher_expected": [signed, *rest]}),
            ("MeshSouth", fields | waits | {"watcher_expected": [signed + 1, *rest]}),
            ("MeshSouth", fields | waits | {"watcher_expected": [signed + 3, *rest]}),
        ]
    )
    bench.run()
    assert int(bench.tiles[0]["flags"][3]) % 65536 == (value + 2) % 65536
    (line,) = bench.waiting
    assert line.startswith("tile 0 mesh south, MeshSouth at chunk 0, pc 14")
