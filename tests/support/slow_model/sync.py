"""Slow sync: watchers and producers of one instruction, on plain lists of flags (docs/isa.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def at_least(flag: int, expected: int) -> bool:
    """Compare 16-bit counters by their signed difference."""
    difference = (flag - expected) % 65536
    return difference < 32768


class Watchers:
    """The watchers of an instruction; they count for themselves how often they have let pass."""

    def __init__(self, fields: Mapping[str, Any], side: int | None = None) -> None:
        self.watchers: list[dict[str, int]] = []
        valid = _many(fields.get("watcher_valid", 0))
        for k, on in enumerate(valid):
            if not on:
                continue
            watcher = {
                part: _many(fields.get(f"watcher_{part}", [0] * len(valid)))[k]
                for part in ("flag", "depth", "expected", "stride", "side")
            }
            if side is None or watcher["side"] == side:
                self.watchers.append({**watcher, "iteration": 0})

    def expected(self, watcher: Mapping[str, int]) -> int:
        """What the watcher waits for next."""
        return watcher["expected"] + watcher["iteration"] * watcher["stride"]

    def passes(self, flags: list[int], begins: set[int]) -> bool:
        """Whether the blocks that begin may go on; if so, each watcher counts one iteration."""
        concerned = [w for w in self.watchers if w["depth"] in begins]
        if not all(at_least(flags[w["flag"]], self.expected(w)) for w in concerned):
            return False
        for watcher in concerned:
            watcher["iteration"] += 1
        return True


def produce(fields: Mapping[str, Any], name: str, ends: set[int]) -> int:
    """What producer ``name`` adds to its flag after an element that ends these blocks."""
    if not fields[f"{name}_increment"]:
        return 0
    return int(fields[f"{name}_depth"] in ends)


def _many(value: Any) -> list[int]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
