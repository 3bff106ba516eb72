"""A chip that is held back at random is so everywhere: a test with stalls shows nothing of a place
that has none."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from darwinn_sim.isa.builder import build
from harness_runs import require_toolchain
from stimulus import line

WORDS, SHARE = 200, 1.2
"""Words that a unit moves, and the least that they take in place of a cycle each: a quarter of the
cycles is held back, so that a third comes to it."""

BOTH_SHARES = 1.42
"""The same where each word has to pass two sides."""

PACK, SPREAD, MESH = "NarrowToWide", "WideToNarrow", "MeshEast"
SIDES: dict[str, tuple[str, dict[str, Any], float]] = {
    "read of the mesh": (MESH, line(MESH, "narrow_read", WORDS), SHARE),
    "write of the mesh": (MESH, line(MESH, "narrow_write", WORDS) | {"immediate_valid": 1}, SHARE),
    "read of words": (
        PACK,
        line(PACK, "narrow_read", WORDS) | line(PACK, "wide_write", 4) | {"row_loop": 7},
        SHARE,
    ),
    "write of rows": (
        PACK,
        line(PACK, "narrow_read", WORDS) | line(PACK, "wide_write", WORDS),
        BOTH_SHARES,
    ),
    "write of words": (
        SPREAD,
        line(SPREAD, "wide_read", 4) | line(SPREAD, "narrow_write", WORDS) | {"row_loop": 7},
        SHARE,
    ),
    "read of rows": (
        SPREAD,
        line(SPREAD, "wide_read", WORDS) | line(SPREAD, "narrow_write", WORDS),
        BOTH_SHARES,
    ),
}


@cache
def _held_back() -> Any:
    require_toolchain()
    from darwinn_rtl.chip.player import ChipPlayer, design

    return ChipPlayer(1, design(stalls=True), stall_seed=1)


def _give(player: Any, name: str, fields: dict[str, Any], tiles: int = 0) -> None:
    player.hand_over(name, build([(name, fields)]), tiles)


@pytest.mark.parametrize("side", SIDES)
def test_each_side_of_a_unit_is_held_back(side: str) -> None:
    name, fields, share = SIDES[side]
    player = _held_back()
    player.reset()
    begin = player.cycle
    _give(player, name, fields, 1)
    player.settle()
    taken = player.cycle - begin
    assert share * WORDS < taken < 2 * WORDS, taken


def test_the_ring_is_held_back() -> None:
    """Rows of two tiles for a third one: there is always one that may go."""
    player, rows, receiver = _held_back(), 12, 1 << 5
    period = player.design.parameters["RingCyclesPerRow"]
    player.reset()
    takes = line("RingConsumerA", "wide_write", 2 * rows, base=100)
    _give(player, "RingConsumerA", takes, receiver)
    sends = line("RingProducer", "wide_read", rows) | {"targets": receiver}
    _give(player, "RingProducer", sends, 0b11)
    arrived: list[int] = []
    first = player.rows
    for _ in range(3 * rows * period):
        player.run(1)
        if player.rows > first + len(arrived):
            arrived.append(player.cycle)
    assert len(arrived) == 2 * rows
    whole = (len(arrived) - 1) * period
    assert whole < arrived[-1] - arrived[0] < 1.1 * whole
