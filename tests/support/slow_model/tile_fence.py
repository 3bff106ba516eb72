"""Slow fences: what they wait for, and what they load (docs/isa.md, "Sync")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slow_model.memory import Tile
from slow_model.sync import at_least

Fields = Mapping[str, Any]


def tile_fence(tile: Tile, fields: Fields, busy: int) -> bool:
    """Pass a tile fence if its units are idle and its tokens counted; True if it was passed."""
    if fields["wait_idle"] & busy:
        return False
    for flag, counted in ((17, 1), (18, 2)):
        tokens = tile.flags[flag] % 65536
        if fields["producer_count_valid"] & counted and tokens != fields["producer_count"]:
            return False
    for flag in range(19):
        if fields["reset_flags"] >> flag & 1:
            tile.flags[flag] = fields["reset_value"]
    return True


def scalar_fence(
    flags: list[int], counts: Sequence[int], fields: Fields, busy: int
) -> tuple[bool, list[int]]:
    """Pass a scalar fence if all holds that it waits for; (passed, fence counts afterwards)."""
    awaited = [t for t in range(16) if fields["tile_fence_valid"] >> t & 1]
    if any(counts[t] < fields["tile_fence_count"] for t in awaited):
        return False, list(counts)
    expected = fields["expected"]
    watched = [f for f in range(9) if fields["expected_valid"] >> f & 1]
    if not all(at_least(flags[f], expected[f]) for f in watched) or fields["wait_idle"] & busy:
        return False, list(counts)
    for flag in range(9):
        if fields["reset_flags"] >> flag & 1:
            flags[flag] = fields["reset_value"]
    cleared = fields["reset_tile_fences"]
    return True, [0 if cleared >> t & 1 else count for t, count in enumerate(counts)]
