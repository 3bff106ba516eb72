"""The event model with the harness's description, against cycles of the RTL's tile."""

from __future__ import annotations

from typing import Any

from darwinn_sim import timing
from darwinn_sim.errors import Deadlock
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.machine.lowering import lower
from hypothesis import assume
from hypothesis import strategies as st
from nightly import check_cases, nightly_too
from tensor_stimulus import tables
from tile_runs import rtl_tile
from unit_cases import narrow_to_wide, tensor_unit, wide_to_narrow

Operation = tuple[str, dict[str, Any]]

ALL_UNITS = (1 << 10) - 1
LIMIT = 20_000
_OPERATIONS = ("TensorMac", "TensorMax", "TensorSum")

instructions = st.one_of(
    tables().map(lambda table: ("CoefficientTable", table, {})),
    wide_to_narrow.cases().map(lambda case: ("WideToNarrow", case[0], case[1])),
    narrow_to_wide.cases().map(lambda case: ("NarrowToWide", case[0], case[1])),
    *map(tensor_unit.operations, _OPERATIONS),
)


def program(
    cases: list[tuple[str, dict[str, Any], dict[int, int]]], apart: list[int]
) -> list[Operation]:
    """The instructions, each behind fences that load its flags and wait for some of the units."""
    operations: list[Operation] = []
    for (name, fields, flags), units in zip(cases, apart, strict=True):
        for flag, value in flags.items():
            load = {"tiles": 1, "reset_flags": 1 << flag, "reset_value": value & 0xFFFF}
            operations.append(("TileFence", {**load, "wait_idle": ALL_UNITS}))
        operations.append(("TileFence", {"tiles": 1, "wait_idle": units}))
        operations.append((name, {**fields, "tiles": 1}))
    return operations


def predicted(operations: list[Operation]) -> int:
    """Cycles from the first instruction at the tile's input to the idle tile."""
    chunk = frame(build(operations))
    harness = timing.chip_description("harness")
    result = timing.simulate_program(lower((chunk,)), (len(chunk),), harness)
    # One cycle after the last byte of the chunk the first instruction is there.
    return result.cycles - result.transfers[0].end - 1


@nightly_too
def test_programs_of_a_tile_take_the_predicted_cycles(nightly: bool) -> None:
    check_cases("cycles of tile programs", st.data(), check_cycles, 40, nightly=nightly)


def check_cycles(data: st.DataObject) -> None:
    cases = data.draw(st.lists(instructions, min_size=1, max_size=3))
    masks = st.sampled_from([0, ALL_UNITS, 1, 1 << 4, 1 << 5])
    operations = program(cases, [data.draw(masks) for _ in cases])
    try:
        cycles = predicted(operations)
    except Deadlock:
        # Held back for good: the tile must be, too.
        cycles = LIMIT
    assume(cycles <= LIMIT)
    tile = rtl_tile()
    tile.reset()
    tile.flags[:] = 0
    for operation in operations:
        tile.give(build([operation]))
    taken = tile.run(LIMIT)
    if cycles == LIMIT:
        assert not tile.idle
        return
    assert tile.idle
    assert taken == cycles
