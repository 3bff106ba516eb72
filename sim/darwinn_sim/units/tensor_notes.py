"""The tensor unit in a run on identities or marks: it notes what it reads, and computes nothing."""

from __future__ import annotations

from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.kernel import holds, state
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.units import identities, marks
from darwinn_sim.units.marks import Marks, Sweep
from darwinn_sim.units.observation import Notebook
from darwinn_sim.units.output_stage import OUTPUT_WORK
from darwinn_sim.units.tensor_plan import TensorPlan
from darwinn_sim.units.tensor_records import KEEP_SUMS, Parameters, Segment


@inner
def take(
    seen: Notebook,
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    segment: Segment,
    plan: TensorPlan,
    row: int,
) -> bool:
    """Note what the next segment reads, or the next sweep; True if it has results, which are left
    to do.
    """
    if not marks.is_on(seen.marks):
        _take_segment(seen, core, tile, unit, parameters, segment, plan, row)
        return bool(segment.outputs)
    sweep = seen.marks.sweeps[_sweep(seen.marks, unit, plan, row)]
    _take_sweep(core, tile, unit, parameters, sweep, plan, row, seen.marks)
    return bool(segment.outputs and sweep.alone)


@inner
def step(
    seen: Notebook, unit: state.Unit, segment: Segment, plan: TensorPlan, row: int
) -> tuple[int, int]:
    """A segment or sweep is over; what flags 1 and 2 grow by."""
    if marks.is_on(seen.marks):
        sweep = seen.marks.sweeps[_sweep(seen.marks, unit, plan, row)]
        unit.position += sweep.segments
        return sweep.parameter_reads, sweep.sum_writes
    unit.position += 1
    return segment.parameter_reads, segment.sum_writes


@inner
def may_be_late(seen: Notebook) -> bool:
    """A result may still be on its way when the next segment reads. Marks are noted once for
    several segments, whose results are written at the end of them.
    """
    return not marks.is_on(seen.marks)


@inner
def give_results(
    seen: Notebook,
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    row: int,
    lanes: int,
) -> None:
    """What stands for the results: into ``unit.rounded``."""
    if marks.is_on(seen.marks):
        marks.give_results(unit, parameters, row, lanes, seen.marks)
    else:
        identities.give_results(unit, parameters, lanes, seen.notes)


@inner
def _take_segment(
    seen: Notebook,
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    segment: Segment,
    plan: TensorPlan,
    row: int,
) -> None:
    core.iterations += segment.count
    core.work += segment.count
    begin = plan.place[row].iteration + segment.first
    operands = plan.operand[begin : begin + segment.count]
    granules = plan.granule[begin : begin + segment.count]
    identities.note(core, tile, unit, parameters, segment, operands, granules, seen.notes)
    if segment.ends and not parameters.partial_sum_read & KEEP_SUMS:
        identities.store_sums(core, tile, unit, parameters, segment, seen.notes)


@inner
def _sweep(marked: Marks, unit: state.Unit, plan: TensorPlan, row: int) -> int:
    """The number of the sweep that begins where the unit is."""
    return int(marked.at[plan.place[row].segment + unit.position])


@inner
def _take_sweep(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    sweep: Sweep,
    plan: TensorPlan,
    row: int,
    marked: Marks,
) -> None:
    """Several segments of a run on marks; results of one that is alone are left to do."""
    core.iterations += sweep.iterations
    core.work += sweep.iterations
    place = plan.place[row]
    operands = plan.operand[place.iteration : place.iteration + place.iterations]
    marks.note(core, tile, unit, parameters, sweep, row, operands, marked)
    first = place.segment + unit.position
    for number in range(first, first + sweep.segments if sweep.stores else first):
        segment = plan.segment[number]
        if segment.ends:
            marks.store_nothing(core, tile, parameters, segment)
    if not sweep.alone:
        core.work += sweep.outputs * OUTPUT_WORK
        marks.write_results(tile, row, sweep, marked)
        unit.words += sweep.words
        holds.grow(tile, TileFlag.ACTIVATION_WRITE, sweep.grown)
