"""Every unit of the RTL's tile: flags that it waits for, instructions one after another, reset."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from darwinn_sim import chip
from darwinn_sim.isa.builder import build
from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.isa.table import BY_NAME
from stimulus import Walk, line
from tile_runs import rtl_tile
from unit_cases.tile_fence import UNITS

TWO_SIDED = ("WideToNarrow", "NarrowToWide", "MeshSouth", "MeshWest", "MeshNorth", "MeshEast")
"""Units whose watchers hold back one of two sides."""

VALUES = (
    *((5, 5, True), (5, 6, False), (4, 5, False), (3, 7, False), (-5, -5, True), (-5, -4, False)),
    *((5, 5 - 0x7FFF, True), (5, 5 - 0x8000, False)),
)
"""What a flag holds, what is awaited, and whether that is enough; up to half a turn."""


def _tile() -> Any:
    """The tile, with neighbours that never let it wait."""
    tile = rtl_tile()
    tile.stall(0, 0)
    return tile


def _instruction(name: str, flag: int, slot: int, side: int, awaited: int) -> dict[str, Any]:
    """One element or two, behind one watcher; the others name the same flag and are off."""
    count = BY_NAME[name].field("watcher_flag").count
    fields: dict[str, Any] = {
        "watcher_flag": [flag] * count,
        "watcher_expected": [awaited if k == slot else awaited + 1 for k in range(count)],
        "watcher_valid": [int(k == slot) for k in range(count)],
    }
    if name in TWO_SIDED:
        fields["watcher_side"] = [side] * count
    if name.startswith("Mesh"):
        fields |= Walk((2, 1, 1, 1), (1, 0, 0, 0)).fields(name, "narrow_read")
        fields |= {"immediate_valid": 1}
    if name == "TensorMac":
        fields |= {"partial_sum_read": 3}
    return fields | {"tiles": 1}


def _send_rows(tile: Any, name: str, count: int) -> None:
    """What ring consumers take."""
    from darwinn_rtl.tile.bench import RingRow

    for _ in range(count if name.startswith("RingConsumer") else 0):
        tile.send_row(RingRow((1,) * chip.ROW_WORDS, channel=int(name.endswith("B"))))


def _counting(name: str) -> dict[str, int]:
    """Every producer of an instruction counts, once at the end."""
    names = {field.name for field in BY_NAME[name].fields}
    ends = ("producer_increment", "producer_depth")
    counting = {
        each: 1 if each.endswith("_increment") else 7 for each in names if each.endswith(ends)
    }
    return counting | ({"row_loop": 3} if "row_loop" in names else {})


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_waits_for_each_flag_with_each_watcher(name: str) -> None:
    slots = BY_NAME[name].field("watcher_flag").count
    tile, sides = _tile(), (0, 1) if name in TWO_SIDED else (0,)
    for flag, side, (value, awaited, passes) in product(range(chip.TILE_FLAGS), sides, VALUES):
        slot = (flag + awaited) % slots
        tile.reset()
        tile.flags[:] = (awaited - 1) % 65536
        tile.flags[flag] = value % 65536
        _send_rows(tile, name, 1)
        tile.give(build([(name, _instruction(name, flag, slot, side, awaited))]))
        tile.run(40)
        assert tile.idle == passes, (flag, slot, side, value, awaited)


WAITS_FOR = 10


@pytest.mark.parametrize("instructions", [1, 2, 5])
@pytest.mark.parametrize("name", UNITS)
def test_an_instruction_waits_for_the_one_before(name: str, instructions: int) -> None:
    """The first of several in a unit's queue is held back for a while; each counts once."""
    tile = _tile()
    counts = []
    for given in (1, instructions):
        tile.reset()
        tile.flags[:] = 0
        _send_rows(tile, name, given)
        for number in range(given):
            fields = _instruction(name, WAITS_FOR, 0, 0, 1) | _counting(name)
            if name in TWO_SIDED:  # both of them
                both = {"watcher_valid": [1, 1, 0, 0, 0, 0], "watcher_expected": [1] * 6}
                fields |= both | {"watcher_side": [0, 1, 0, 0, 0, 0]}
            off = {"watcher_valid": [0] * len(fields["watcher_valid"])} if number else {}
            tile.give(build([(name, fields | off)]))
        for _ in range(20):
            tile.give(build([("TileFence", {"tiles": 1})]))  # a cycle each
        tile.run(15)
        assert not tile.flags.any(), "it has not waited"
        loads = {"reset_flags": 1 << WAITS_FOR, "reset_value": 1}
        tile.give(build([("TileFence", loads | {"tiles": 1})]))
        tile.run(200)
        assert tile.idle
        counts.append(tile.flags.copy())
        counts[-1][WAITS_FOR] = 0
    assert counts[0].any()
    assert (counts[1] == instructions * counts[0]).all()


def _work(tile: Any, instructions: int) -> None:
    """So many instructions for each unit, and what they take."""
    for _, name in product(range(instructions), UNITS):
        _send_rows(tile, name, 1)
        fields = _instruction(name, 0, 0, 0, 0) | _counting(name)
        off = {"watcher_valid": [0] * len(fields["watcher_valid"])}
        tile.give(build([(name, fields | off)]))


def test_a_reset_at_any_moment_leaves_nothing() -> None:
    """Flags are 0, nothing is executed, and what comes next takes as long as in a new tile."""
    tile = _tile()
    tile.reset()
    _work(tile, 1)
    cycles, flags = tile.run(300), tile.flags.copy()
    assert tile.idle
    for moment in range(1, 50):
        tile.reset()
        _work(tile, 6)
        for fence in ({}, {"wait_idle": 0x3FF}, {"increment": 1}):
            tile.give(build([("TileFence", fence | {"tiles": 1})]))
        tile.run(moment)
        assert not tile.idle
        tile.reset()
        assert tile.idle
        assert not tile.flags.any()
        _work(tile, 1)
        assert tile.run(300) == cycles
        assert tile.idle
        assert (tile.flags == flags).all()


PASSED, HELD = TileFlag.RING_PRODUCER_A, TileFlag.RING_PRODUCER_B
"""Flags of the guard that an element passes, and of a row's that it has to wait for then; no unit
counts them here."""

WAITS_BEHIND_ITS_GUARD = {
    "RingProducer": "wide_read",
    "RingConsumerA": "wide_write",
    "RingConsumerB": "wide_write",
    "WideToNarrow": "narrow_write",
    **dict.fromkeys(("MeshSouth", "MeshWest", "MeshNorth", "MeshEast"), "narrow_read"),
}
"""Units that may have to wait for the ring, a neighbour or a row when a guard has let them pass,
and the traversals that do."""


def _passing(name: str) -> dict[str, Any]:
    """Two elements, each of which is counted and waits for a count of its own before it can go."""
    rest = [0] * (BY_NAME[name].field("watcher_flag").count - 2)
    row = int(name == "WideToNarrow")  # the second watcher is that of the row
    fields: dict[str, Any] = {
        "watcher_flag": [int(PASSED), int(HELD), *rest],
        "watcher_valid": [1, row, *rest],
        "watcher_expected": [1, 1, *rest],
        "watcher_stride": [1, 0, *rest],
        "watcher_side": [row, 0, *rest],
        "targets": 1,
        "row_loop": 7,
    }
    fields = {key: value for key, value in fields.items() if key in _names(name)}
    counts = {key: 1 for key in _names(name) if key.endswith("producer_increment")}
    moved = line(name, WAITS_BEHIND_ITS_GUARD[name], 2, 100)
    return fields | counts | moved | {"tiles": 1}


def _names(name: str) -> set[str]:
    return {field.name for field in BY_NAME[name].fields}


@pytest.mark.parametrize("name", WAITS_BEHIND_ITS_GUARD)
@pytest.mark.parametrize("meanwhile", [0, 0xFFFF, 0x9000])
def test_who_has_passed_a_guard_is_not_asked_again(name: str, meanwhile: int) -> None:
    """An element that waits for the ring, a neighbour or a row goes when these let it, though a
    fence has loaded the flag meanwhile; the next one waits for its own count."""
    tile = _tile()

    def load(flag: int, value: int) -> None:
        loads = {"reset_flags": 1 << flag, "reset_value": value}
        tile.give(build([("TileFence", loads | {"tiles": 1})]))
        tile.run(20)

    def state() -> tuple[int, bool]:
        """How many elements have been counted, and whether that was all."""
        counted = tile.flags.astype(int)
        counted[[PASSED, HELD]] = 0
        return int(counted.sum()), tile.idle

    tile.reset()
    tile.stall(0, 256)  # neither ring nor neighbour takes anything
    tile.flags[:] = 0
    tile.flags[PASSED] = 1
    tile.give(build([(name, _passing(name))]))
    tile.run(20)
    load(PASSED, meanwhile)
    assert state() == (0, False)
    tile.stall(0, 0)
    _send_rows(tile, name, 2)
    load(HELD, 1)
    assert state() == (1, False)
    load(PASSED, 2)
    assert state() == (2, True)


SILENT = (
    *("tiles", "tag", "gate", "predicate", "polarity", "trace", "base_register"),
    *("tiles_register", "tiles_override", "narrow_sleep", "wide_sleep"),
)
"""Fields that say nothing to a tile: they are for the core, or have no effect (docs/isa.md)."""


@pytest.mark.parametrize("name", [*UNITS, "TileFence"])
def test_what_says_nothing_to_a_tile_changes_nothing(name: str) -> None:
    """Each such field by itself, all of its bits; neither what comes of it nor when."""
    tile = _tile()
    widths = {field.name: field.width for field in BY_NAME[name].fields}
    plain: dict[str, Any] = {"reset_flags": 1 << HELD, "reset_value": 7, "increment": 1}
    if name != "TileFence":
        plain = _instruction(name, 0, 0, 0, 0) | _counting(name)
    outcomes = []
    for silent in (None, *(each for each in SILENT if each in widths)):
        fields = plain | {"tiles": 1}
        if silent:
            fields |= {silent: (1 << widths[silent]) - 1}
        tile.reset()
        tile.wide[:], tile.narrow[:] = 3, 5
        for _ in range(2):
            _send_rows(tile, name, 1)
            tile.give(build([(name, fields)]))
        cycles = tile.run(200)
        assert tile.idle, silent
        memories = tile.wide.tobytes(), tile.narrow.tobytes(), tile.flags.tolist()
        outcomes.append((cycles, tile.fences, memories, tile.rows_out(), tile.words_out(0)))
        assert outcomes[-1] == outcomes[0], silent
