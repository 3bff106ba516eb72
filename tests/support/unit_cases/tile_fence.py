"""Tile fences: random fences, with busy units and counted tokens when they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from darwinn_sim.isa.codes import TileFlag
from functional_coverage import Coverage
from hypothesis import strategies as st
from stimulus import Walk

UNITS = (
    "TensorMac",
    "RingProducer",
    "RingConsumerA",
    "RingConsumerB",
    "WideToNarrow",
    "NarrowToWide",
    "MeshSouth",
    "MeshWest",
    "MeshNorth",
    "MeshEast",
)
"""An instruction of each unit, in the order of TileFence.wait_idle."""

TILE_BINS = (
    *(f"waits for {name}" for name in UNITS),
    "waits for none of the busy units",
    "loads flags",
    "loads a value other than 0",
    "counts",
    *(
        f"{flag}: {what}"
        for flag in ("ring_producer_a", "ring_producer_b")
        for what in ("as many tokens as awaited", "too few tokens", "too many tokens")
    ),
    "tokens of both channels",
    "tokens that are not awaited",
    "as many tokens as awaited, and a busy unit",
    "more than half a turn of tokens",
)
MASKS = st.one_of(st.sampled_from([0, (1 << 19) - 1]), st.integers(0, (1 << 19) - 1))


Operation = tuple[str, dict[str, Any]]


Case = tuple[dict[str, Any], list[str], dict[int, int]]
"""A fence, the units that are busy when it comes, and the flags of ring producers."""

TOKENS = (17, 18)
"""Flags that count tokens of ring producers, in the order of TileFence.producer_count_valid."""

AFTER: Operation = ("TileFence", {"tiles": 1, "increment": 1})
"""A fence that counts, to be put behind the one under test."""


def never(name: str) -> Operation:
    """An instruction that waits for a flag that never comes."""
    watcher = {"watcher_valid": 1, "watcher_expected": 9, "watcher_flag": 10}
    count = 3 if name.startswith("Ring") else 6
    fields: dict[str, Any] = {part: [value] + [0] * (count - 1) for part, value in watcher.items()}
    if name.startswith("Mesh"):
        fields |= Walk((2, 1, 1, 1), (1, 0, 0, 0)).fields(name, "narrow_read")
    if name == "RingProducer":
        fields |= {"targets": 1}
    if name == "TensorMac":
        fields |= {"partial_sum_read": 3}
    return name, fields | {"tiles": 1}


@st.composite
def tile_cases(draw: Any) -> Case:
    """A tile fence, with what it finds."""
    count = draw(st.one_of(st.sampled_from([0, 1, 0x8000, 0xFFFF]), st.integers(0, 0xFFFF)))
    away = st.sampled_from([0, 0, 0, 1, -1, 0x7FFF, 0x8000])
    tokens = {flag: (count + draw(away)) % 65536 for flag in TOKENS}
    fields = {
        "tiles": 1,
        "reset_flags": draw(MASKS) & ~(1 << 10),
        "reset_value": draw(st.sampled_from([0, 0, 5, 0xFFFF])),
        "wait_idle": draw(st.one_of(st.sampled_from([0, 0x3FF]), st.integers(0, 0x3FF))),
        "increment": draw(st.integers(0, 1)),
        "producer_count_valid": draw(st.sampled_from([0, 0, 1, 2, 3])),
        "producer_count": count,
    }
    return fields, draw(st.lists(st.sampled_from(UNITS), max_size=3, unique=True)), tokens


def busy(names: Sequence[str]) -> int:
    """The bits of ``TileFence.wait_idle`` of some units."""
    return sum(1 << UNITS.index(name) for name in names)


def cover(coverage: Coverage, case: Case, passed: bool) -> None:
    """Count what a case has shown."""
    fields, busy_units, tokens = case
    held = [name for name in busy_units if fields["wait_idle"] >> UNITS.index(name) & 1]
    coverage.hit(*(f"waits for {name}" for name in held))
    coverage.hit("waits for none of the busy units", when=busy_units and passed)
    coverage.hit("loads flags", when=passed and fields["reset_flags"])
    coverage.hit("loads a value other than 0", when=passed and fields["reset_value"])
    coverage.hit("counts", when=passed and fields["increment"])
    _cover_tokens(coverage, fields, tokens, held=bool(held), passed=passed)


def _cover_tokens(
    coverage: Coverage,
    fields: dict[str, Any],
    tokens: dict[int, int],
    *,
    held: bool,
    passed: bool,
) -> None:
    missing = {flag: fields["producer_count"] - value for flag, value in tokens.items()}
    awaited = [f for k, f in enumerate(TOKENS) if fields["producer_count_valid"] >> k & 1]
    for flag in awaited if not held else ():
        name = TileFlag(flag).label
        coverage.hit(f"{name}: as many tokens as awaited", when=passed)
        coverage.hit(f"{name}: too few tokens", when=missing[flag] > 0)
        coverage.hit(f"{name}: too many tokens", when=missing[flag] < 0)
        coverage.hit("more than half a turn of tokens", when=abs(missing[flag]) >= 0x8000)
    coverage.hit("tokens of both channels", when=passed and len(awaited) == 2)
    coverage.hit("tokens that are not awaited", when=passed and any(missing.values()))
    equal = awaited and not any(missing[flag] for flag in awaited)
    coverage.hit("as many tokens as awaited, and a busy unit", when=equal and held)
