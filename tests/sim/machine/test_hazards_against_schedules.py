"""A program without hazards gives the same bytes in every order; random programs of all units.

So each order that gives other bytes is a hazard, too. Programs are random, and most lack one of
their fences or a watcher; memories begin with random bytes, so that it shows who comes first.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from chip_programs import FROM_RESET, Operation, counted_turns, programs
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.kernel import order, state
from darwinn_sim.kernel.structure import Records
from darwinn_sim.machine import random_schedule, schedule
from darwinn_sim.machine.lowering import LoweredProgram, lower
from darwinn_sim.units import scalar_core
from darwinn_sim.units.observation import new_observation
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

SCHEDULES = 5
_WORK = 1 << 20
_TILE_MEMORIES = ("narrow", "wide", "scale_bias")

_found: Counter[str] = Counter()


def _random_memories() -> tuple[Records[state.Tile], Records[state.Core]]:
    """Tiles and a core with random bytes in their memories."""
    random = np.random.default_rng(0)
    tiles, core = state.new_tiles(), state.new_core()
    for memory in (*(tiles[name] for name in _TILE_MEMORIES), core["memory"]):
        memory[:] = random.integers(0, 1 << 32, memory.shape, np.uint32)
    for name in ("activations", "parameters"):
        core[name] = random.integers(0, 1 << 8, core[name].shape, np.uint8)
    return tiles, core


_TILES, _CORE = _random_memories()


def powered_up(
    program: LoweredProgram, core: Records[state.Core]
) -> tuple[state.Core, Records[state.Tile]]:
    """A chip that is about to begin a program, with random bytes in its memories."""
    for name in ("memory", "activations", "parameters"):
        core[name] = _CORE[name]
    core["pc"] = program.entries[0]
    core["end_pc"] = program.chunks[0].bundles
    core["work_limit"] = _WORK
    return core[0], _TILES.copy()


def differing(a: tuple[Any, ...], b: tuple[Any, ...]) -> list[str]:
    """The memories of two chips that are not the same."""
    (core, tiles), (other_core, other_tiles) = a, b
    found = [name for name in _TILE_MEMORIES if not np.array_equal(tiles[name], other_tiles[name])]
    same = np.array_equal(core["memory"], other_core["memory"])
    return found + ([] if same else ["scalar memory"])


def run(program: LoweredProgram, number: int) -> tuple[int, tuple[Any, ...]]:
    """Why it ended in a random order, and the chip."""
    core, tiles = powered_up(program, state.new_core())
    drawn = random_schedule.RandomOrder(number).record
    reason = random_schedule.run(core, tiles, program.tables, new_observation(), drawn)
    return reason, (core, tiles)


def check(operations: list[Operation]) -> None:
    program = lower((frame(build(operations)),))
    core, tiles = powered_up(program, order.new_core())
    reason = schedule.run(core, tiles, program.tables, new_observation())
    if reason != scalar_core.HALTED:
        # It is stuck, or fails.
        return
    found = core["clocks"]["found"][: int(core["clocks"]["pairs"])]
    if any(not each["same"] for each in found):
        _found["hazards"] += 1
        return
    _found["none"] += 1
    for number in range(SCHEDULES):
        again, chip = run(program, number)
        assert (again, differing((core, tiles), chip)) == (reason, []), f"schedule {number}"


def without(operations: list[Operation], dropped: int, watcher: int) -> list[Operation]:
    """A program that has lost one of its fences, or a watcher."""
    kept = list(operations)
    place = len(FROM_RESET) + dropped % max(len(kept) - len(FROM_RESET), 1)
    if place >= len(kept):
        return kept
    name, fields = kept[place]
    if "Fence" in name:
        kept[place] = (name, {**fields, "wait_idle": 0})
    elif "watcher_valid" in fields:
        valid = list(fields["watcher_valid"])
        valid[watcher % len(valid)] = 0
        kept[place] = (name, {**fields, "watcher_valid": valid})
    return kept


@seed(14)
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(
    st.one_of(programs(), counted_turns().map(lambda drawn: [*FROM_RESET, *drawn])),
    st.integers(0, 100),
    st.integers(0, 5),
)
def check_random_programs(program: list[Operation], dropped: int, watcher: int) -> None:
    check(without(program, dropped, watcher))


def test_without_hazards_every_order_gives_the_same_bytes() -> None:
    _found.clear()
    check_random_programs()
    assert _found["hazards"] >= 5 and _found["none"] >= 20, _found
