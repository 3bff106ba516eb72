"""A tile whose memories are block RAM beside one of arrays: the same bytes in the same cycles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from darwinn_rtl.tile.bench import LINKS, RingRow, TileBench
from darwinn_sim import chip
from darwinn_sim.isa.builder import build
from hypothesis import strategies as st
from nightly import check_cases, nightly_too
from stimulus import Walk
from tensor_stimulus import tables
from tile_runs import rtl_tile
from unit_cases import mesh_bus, narrow_to_wide, ring_bus, tensor_unit, wide_to_narrow

LIMIT = 3000
"""Cycles of a case: who waits for a flag for good is compared as well."""

RATIO = 7
"""The least for memories of six ports that read."""

Instruction = tuple[str, dict[str, Any], dict[int, int]]


def instructions() -> st.SearchStrategy[list[Instruction]]:
    """One or two instructions of a unit, with flags that let them pass, or not."""
    return st.one_of(
        *(tensor_unit.operations(name) for name in ("TensorMac", "TensorMax", "TensorSum")),
        mesh_bus.cases().map(lambda case: (case[0], case[1], case[3])),
        narrow_to_wide.cases().map(lambda case: ("NarrowToWide", *case[:2])),
        wide_to_narrow.cases().map(lambda case: ("WideToNarrow", *case[:2])),
    ).map(lambda case: [case]) | ring_bus.cases().map(
        lambda case: [
            (("RingConsumerA", "RingConsumerB")[case[0]["consumer_b"]], case[1], case[3]),
            ("RingProducer", case[0], {}),
        ]
    )


@st.composite
def programs(draw: Any) -> tuple[dict[str, Any], list[Instruction], int, int]:
    """A table, instructions that several units execute at once, what is drawn besides, stalls."""
    groups = draw(st.lists(instructions(), min_size=1, max_size=6))
    together = [each for group in groups for each in group]
    return draw(tables()), together, draw(st.integers(0, 99)), draw(st.sampled_from([0, 64, 200]))


def outcome(tile: TileBench, program: tuple[dict[str, Any], list[Instruction], int, int]) -> Any:
    """All that can be seen of the program: cycles, memories, flags, words, rows, what is left."""
    table, together, seed, share = program
    random = np.random.default_rng(seed)
    tile.reset()
    tile.stall(seed, share)
    for memory in (tile.narrow, tile.wide, tile.scale_bias):
        memory.view(np.uint8)[:] = random.integers(0, 256, memory.nbytes, np.uint8)
    flags: dict[int, int] = {}
    for _, _, wanted in together:
        flags |= wanted
    tile.flags[:] = [flags.get(flag, 0) & 0xFFFF for flag in range(chip.TILE_FLAGS)]
    for link in range(LINKS):
        for word in random.integers(0, 1 << 32, 40).tolist():
            tile.send_word(link, word)
    for channel in range(2):
        for _ in range(4):
            words = tuple(random.integers(0, 1 << 32, random.integers(1, 65)).tolist())
            tile.send_row(RingRow(words, channel))
    tile.give(build([("CoefficientTable", {**table, "tiles": 1})]))
    for name, fields, _ in together:
        tile.give(build([(name, {**fields, "tiles": 1})]))
    return {
        "cycles": tile.run(LIMIT),
        "units idle": tile.units_idle,
        "narrow": tile.narrow.tobytes(),
        "wide": tile.wide.tobytes(),
        "scale and bias": tile.scale_bias.tobytes(),
        "flags": tile.flags.tolist(),
        "words": [tile.words_out(link) for link in range(LINKS)],
        "words left": [tile.words_left(link) for link in range(LINKS)],
        "rows": tile.rows_out(),
        "rows left": [tile.rows_left(channel) for channel in range(2)],
    }


@pytest.mark.parametrize("ratio", [RATIO, pytest.param(RATIO + 3, marks=pytest.mark.nightly)])
@nightly_too
def test_units_at_once_see_the_same_memories_in_every_cycle(nightly: bool, ratio: int) -> None:
    def check(program: tuple[dict[str, Any], list[Instruction], int, int]) -> None:
        plain, banked = rtl_tile(1), rtl_tile(ratio)
        expected, actual = outcome(plain, program), outcome(banked, program)
        assert [name for name in expected if actual[name] != expected[name]] == []

    check_cases(f"tile in block RAM, ratio {ratio}", programs(), check, 60, nightly=nightly)


@pytest.mark.parametrize("channel", [0, 1])
def test_of_two_ports_that_write_a_row_the_higher_one_has_it_all(channel: int) -> None:
    """Its row ends behind its last word, though the other one's is longer."""
    place, size, longer = 100, 2, 6
    found = []
    for tile in (rtl_tile(1), rtl_tile(RATIO)):
        tile.reset()
        tile.stall(0, 0)
        tile.narrow[:], tile.wide[:] = 1, 2
        # One that writes this row in each cycle, and one that waits at another until that is over.
        for number, rows in ((channel, 200), (1 - channel, 1)):
            name = ("RingConsumerA", "RingConsumerB")[number]
            walk = Walk((rows, 1, 1, 1), (0, 0, 0, 0), base=place + (number != channel))
            tile.give(build([(name, {**walk.fields(name, "wide_write"), "tiles": 1})]))
            for _ in range(rows):
                tile.send_row(RingRow((3,) * size, number))
        read = Walk((longer, 4, 1, 1, 1, 1), (1, 0, 0, 0, 0, 0))
        fields = read.fields("NarrowToWide", "narrow_read") | {"row_loop": 1, "tiles": 1}
        fields |= Walk((4, 1, 1, 1), (0, 0, 0, 0), base=place).fields("NarrowToWide", "wide_write")
        tile.give(build([("NarrowToWide", fields)]))
        found.append((tile.run(LIMIT), tile.wide.tobytes()))
        assert tile.units_idle
        first = place * chip.ROW_WORDS
        row = tile.wide[first : first + chip.ROW_WORDS].tolist()
        assert row == [3] * size + [2] * (chip.ROW_WORDS - size)
    assert found[0] == found[1]
