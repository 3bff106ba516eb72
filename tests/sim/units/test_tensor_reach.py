"""Which segments reach beyond the memories: what is marked ahead is what the unit faults at."""

from __future__ import annotations

from typing import Any

from darwinn_sim import chip
from darwinn_sim.kernel import state
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.timing.event_model import _mark_faults
from darwinn_sim.units import tensor_plan
from darwinn_sim.units.tensor_bounds import addresses_may_leave
from functional_coverage import Coverage
from hypothesis import given
from hypothesis import strategies as st
from slow_model import tensor_unit as slow
from stimulus import constrained_random, near_edges
from unit_bench import Bench
from unit_cases.tensor_unit import cases

OPERATIONS = (slow.MAC, slow.MAXIMUM, slow.SUM, slow.INTERPOLATE)
NARROW_END, NARROW_WRAP = chip.NARROW_BYTES, chip.NARROW_ADDRESS_BYTES
GRANULES = 4 * chip.WIDE_ROWS

BINS = (
    *(f"{operation}: nothing is beyond" for operation in OPERATIONS),
    "a result is beyond",
    "a row is beyond",
    "the first segment",
    "another segment",
    "marked without addresses",
)


@st.composite
def far(draw: Any) -> tuple[str, dict[str, Any]]:
    """An instruction that waits for nothing, some of whose bases are near the memories' ends."""
    operation = draw(st.sampled_from(OPERATIONS))
    fields, _, _ = draw(cases(operation))
    fields = fields | {"watcher_valid": [0] * len(fields["watcher_valid"])}
    for name, low, high in (
        ("narrow_write_base", NARROW_END - 64, NARROW_END + 16),
        ("narrow_write_base", NARROW_WRAP - 64, NARROW_WRAP - 4),
        ("narrow_write_base", 0, 12),
        ("parameter_read_base", GRANULES - 24, GRANULES + 8),
        ("partial_sum_base", GRANULES - 16, GRANULES + 8),
        ("zero_point_base", chip.WIDE_ROWS - 4, chip.WIDE_ROWS + 2),
    ):
        if draw(st.integers(0, 3)) == 0:
            step = 4 if name in ("narrow_write_base", "partial_sum_base") else 1
            fields[name] = step * (draw(near_edges(low, high)) // step)
    return operation, fields


def marked(program: LoweredProgram) -> list[int]:
    """Faults of the segments, in their order."""
    _mark_faults(program)
    place = program.tables.tensor_plan.place[0]
    first = int(place["segment"])
    faults: list[int] = program.tables.tensor_plan.segment["fault"].tolist()
    return faults[first : first + int(place["segments"])]


def test_what_is_marked_is_what_the_unit_faults_at() -> None:
    coverage = Coverage("reach of the tensor unit", BINS)

    @constrained_random(200)
    @given(far())
    def check(case: tuple[str, dict[str, Any]]) -> None:
        operation, fields = case
        bench = Bench([(operation, fields | {"tiles": 1})])
        bench.run()
        tables = bench.program.tables
        faults = marked(bench.program)
        # The event model lowers a program without addresses, unless one may be beyond.
        may_leave = bool(addresses_may_leave(tables.tensor).any())
        lean = tensor_plan.plan(tables.tensor, addresses=may_leave)
        assert marked(bench.program._replace(tables=tables._replace(tensor_plan=lean))) == faults
        coverage.hit("marked without addresses", when=not may_leave)
        # The segment with the fault counts: the unit stops behind it.
        reached = int(bench.tiles[0]["units"]["position"].max())
        found = next((k for k, fault in enumerate(faults) if fault), None)
        if found is None:
            assert bench.fault is None
            coverage.hit(f"{operation}: nothing is beyond")
            return
        assert (int(bench.core["fault"]), reached) == (faults[found], found + 1)
        coverage.hit("a result is beyond", when=faults[found] == state.FAULT_NARROW_ADDRESS)
        coverage.hit("a row is beyond", when=faults[found] == state.FAULT_WIDE_ADDRESS)
        coverage.hit("the first segment" if found == 0 else "another segment")

    coverage.close(check)
