"""Tensor unit: 64 cells that multiply and add, then scale, clip, round and offset the sums.

Each main iteration reads one group of activations from narrow memory and one granule of parameters
(64 lanes) from wide memory. A run of iterations ends when the partial-sum traversal moves on; the
64 int32 sums then leave through the output stage (docs/chip-facts.md, "Numerics"). Which addresses
that are, iteration by iteration, stands in the plan (``tensor_plan``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.isa.codes import TileFlag, TileUnit
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.kernel import clocks, holds, order, state, sync, traversal
from darwinn_sim.kernel.compiled import copy, inner, part
from darwinn_sim.kernel.hooks import either
from darwinn_sim.kernel.instructions import CoefficientTable
from darwinn_sim.units import (
    memories,
    numbered_sums,
    observation,
    tensor_notes,
    tensor_products,
)
from darwinn_sim.units.any_function import any_results, is_exact
from darwinn_sim.units.memories import NARROW_MASK
from darwinn_sim.units.observation import Observation, Seen
from darwinn_sim.units.output_stage import (
    OUTPUT_16BIT,
    OUTPUT_WORK,
    TABLE,
    clip,
    function,
    pack_results,
    result_words,
    round_results,
    scaled_sums,
)
from darwinn_sim.units.tensor_bounds import are_plain
from darwinn_sim.units.tensor_cells import (
    INTERPOLATE,
    MAC,
    interpolate,
    multiply_accumulate,
    reduce,
    start_sum,
    store_sum,
)
from darwinn_sim.units.tensor_order import reads_operands, writes_result
from darwinn_sim.units.tensor_plan import TensorPlan
from darwinn_sim.units.tensor_records import KEEP_SUMS, Parameters, Place, Segment
from darwinn_sim.units.tensor_shadow import check_operands, mark

FUNCTION_TABLE = BY_NAME["CoefficientTable"].opcode
"""The instruction that computes nothing: it loads a table into the output stage."""

_MULTIPLIERS = 4


def derive(records: NDArray[np.void]) -> None:
    """Fill in what follows from the fields."""
    main = records["main"]
    main["loops"] = traversal.MAX_LOOPS
    for name in ("limit", "alternate_limit", "alternate_loop"):
        main[name] = records[f"main_{name}"]
    records["working"] = _working(records)
    records["products"] = np.frexp(records["working"])[1]
    counts_blocks = sync.watching(records, TileFlag.WIDE_TO_SCALING)
    records["scale_watcher"] = np.where(counts_blocks.any(axis=1), counts_blocks.argmax(axis=1), -1)
    records["plain"] = _plain(records)


def _plain(records: NDArray[np.void]) -> NDArray[np.int64]:
    """Which iterations of a TensorMac are added up in vectors: ``NONE``, ``SOME`` or ``ALL``."""
    # Operands of 16 bits take several multipliers for a product: four are made of bytes alone.
    by_bytes = (
        (records["working"] == (1 << _MULTIPLIERS) - 1)
        & (records["load_parameter_zero_point"] == 0)
        & (records["activation_zero_point"] <= tensor_products.MOST_ZERO)
        & (records["parameter_zero_point"] <= tensor_products.MOST_ZERO)
    )
    iterations = np.where(are_plain(records), tensor_products.ALL, tensor_products.SOME)
    return np.where(by_bytes, iterations, tensor_products.NONE)


def _working(records: NDArray[np.void]) -> NDArray[np.int64]:
    """Products of an iteration that are made (bit k: product k), of those of four multipliers.

    A 16-bit operand takes two multipliers for a product, two of them all four; a maximum or a sum
    has no activations. A product is made if all of its multipliers work. An interpolation makes
    one.
    """
    works = ~records["mac_disable"] & (1 << _MULTIPLIERS) - 1
    pairs = (works & works >> 1) & 1 | ((works >> 2 & works >> 3) & 1) << 1
    wide = records["parameter_16bit"] + (records["opcode"] == MAC) * records["activation_16bit"]
    made: NDArray[np.int64] = np.select([wide == 0, wide == 1], [works, pairs], works == 15)
    return np.where(records["opcode"] == INTERPOLATE, 1, made)


@inner
def obstacle_of(
    unit: sync.TwoSided, parameters: Parameters, segment: Segment, flags: NDArray[np.int64]
) -> int:
    """What keeps the next segment from its begin (``sync.obstacle``); 0 if the watchers pass."""
    waits = segment.waits
    return sync.obstacle(parameters.watchers, unit.waited, flags, waits, -1) if waits else 0


@inner
def lacks_place(unit: sync.TwoSided, place: Place) -> bool:
    """There is a word of results, and no place for it: a fault."""
    return bool(unit.words == place.writes)


@inner
def step_result(unit: sync.TwoSided, plan: TensorPlan, place: Place) -> int:
    """A word of results goes to its place; what flag 0 grows by when it is there."""
    at = place.write + unit.words
    unit.words += 1
    return int(plan.write_flag[at])


@inner
def step(unit: sync.TwoSided, segment: Segment) -> tuple[int, int]:
    """A segment is over; what flags 1 and 2 grow by."""
    unit.position += 1
    return segment.parameter_reads, segment.sum_writes


@inner
def has_ended(unit: sync.TwoSided, place: Place) -> bool:
    """All segments are over."""
    return bool(unit.position == place.segments)


@inner
def lacks_results(unit: sync.TwoSided, place: Place) -> bool:
    """At the end a place has been left without results: a fault."""
    return bool(unit.words < place.writes)


@inner
def load_table(core: state.Core, tile: state.Tile, table: CoefficientTable) -> None:
    """Execute a CoefficientTable instruction."""
    copy(tile.coefficient, 0, table.coefficient, 0, len(table.coefficient))
    copy(tile.lower_bound, 0, table.lower_bound, 0, len(table.lower_bound))
    tile.table_written = 1
    numbered_sums.loads_table(core, tile)


@inner
def advance(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    plan: TensorPlan,
    row: int,
    seen: Seen,
) -> bool:
    """Run segments until a watcher blocks or the instruction ends; True if any has run.

    ``row`` is the instruction's row in the plan.
    """
    place = plan.place[row]
    thread = clocks.unit(tile.number, TileUnit.TENSOR)
    moved = False
    while not has_ended(unit, place):
        if observation.is_full(seen):
            return moved
        segment = plan.segment[place.segment + unit.position]
        obstacle = obstacle_of(unit, parameters, segment, tile.flags)
        if obstacle:
            holds.wait(tile, TileUnit.TENSOR, obstacle)
            return moved
        order.passes(
            core,
            thread,
            tile.number,
            tile.flags,
            parameters.watchers,
            unit.waited,
            segment.waits,
            -1,
        )
        has_results = _take(seen, core, tile, unit, parameters, segment, plan, row)
        if unit.late:
            _land(core, tile, unit, parameters, plan, place, seen)
        if has_results:
            _output(core, tile, unit, parameters, segment, plan, row, seen)
        parameter_reads, sum_writes = _step(seen, unit, segment, plan, row)
        order.counts(
            core, thread, clocks.tile_flag(tile.number, TileFlag.PARAMETER_READ), parameter_reads
        )
        order.counts(
            core, thread, clocks.tile_flag(tile.number, TileFlag.PARTIAL_SUM_WRITE), sum_writes
        )
        holds.grow(tile, TileFlag.PARAMETER_READ, parameter_reads)
        holds.grow(tile, TileFlag.PARTIAL_SUM_WRITE, sum_writes)
        moved = True
        if state.paused(core):
            return True
    if lacks_results(unit, place):
        state.fail(core, state.FAULT_RESULT_COUNT, parameters.pc, tile.number, unit.words)
    observation.count_execution(core, unit.current, seen)
    unit.current = state.IDLE
    return True


@inner
def _run_segment(
    seen: Observation,
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    segment: Segment,
    plan: TensorPlan,
    row: int,
) -> bool:
    """The iterations of one segment; True if it has results, which are left to do."""
    core.iterations += segment.count
    core.work += segment.count
    begin = plan.place[row].iteration + segment.first
    operands = plan.operand[begin : begin + segment.count]
    granules = plan.granule[begin : begin + segment.count]
    if segment.starts:
        start_sum(core, tile, unit, parameters, segment)
    reads_operands(core, tile.number, parameters, segment, operands, granules)
    if core.strict:
        check_operands(core, tile, unit, parameters, segment.lanes, operands, granules)
    if parameters.opcode == MAC:
        multiply_accumulate(core, tile, unit, parameters, segment, operands, granules)
    elif parameters.opcode == INTERPOLATE:
        interpolate(tile, unit, segment.lanes, operands, granules)
    else:
        reduce(core, tile, unit, parameters, segment.lanes, granules)
    numbered_sums.adds(core, tile, unit, parameters, segment, operands, granules)
    if segment.ends and not parameters.partial_sum_read & KEEP_SUMS:
        store_sum(core, tile, unit, parameters, segment)
        numbered_sums.stores(core, tile, parameters, segment)
    return bool(segment.outputs)


@inner
def _run_step(
    seen: Observation, unit: state.Unit, segment: Segment, plan: TensorPlan, row: int
) -> tuple[int, int]:
    return step(unit, segment)


@inner
def _may_be_late(seen: Observation) -> bool:
    return True


@inner
def _give_results(
    seen: Observation,
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    row: int,
    lanes: int,
) -> None:
    _compute_results(core, tile, unit, parameters, lanes)
    numbered_sums.gives_results(core, tile, unit, parameters, lanes)


# What a run on data does, and one on identities or marks in its place.
_take = either("notes", tensor_notes.take, _run_segment)
_step = either("notes", tensor_notes.step, _run_step)
_results = either("notes", tensor_notes.give_results, _give_results)
_late = either("notes", tensor_notes.may_be_late, _may_be_late)
_tap = either("words", observation.tap, None)


@part
def _compute_results(
    core: state.Core, tile: state.Tile, unit: state.Unit, parameters: Parameters, lanes: int
) -> None:
    """Results of the sums: into ``unit.rounded``."""
    scaled_sums(core, tile, unit, parameters, lanes)
    if core.any_input and not is_exact(parameters):
        any_results(tile, unit, parameters, lanes)
        return
    if parameters.opcode != INTERPOLATE:
        clip(unit.scaled, parameters.low_clip, parameters.high_clip, lanes)
    if parameters.function & TABLE:
        if core.strict and not tile.table_written:
            for lane in range(lanes):
                mark(core, tile, unit, parameters, lane, state.TABLE, 0)
        for lane in range(lanes):
            unit.scaled[lane] = function(
                tile.coefficient, tile.lower_bound, parameters, unit.scaled[lane]
            )
    round_results(unit, parameters, lanes)


@inner
def _output(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    segment: Segment,
    plan: TensorPlan,
    row: int,
    seen: Seen,
) -> None:
    """Write the results of the run to narrow memory, four bytes an access."""
    lanes = segment.lanes
    place = plan.place[row]
    core.work += OUTPUT_WORK
    if parameters.function & TABLE:
        core.work += OUTPUT_WORK
    _results(seen, core, tile, unit, parameters, row, lanes)
    size = 2 if parameters.function & OUTPUT_16BIT else 1
    pack_results(unit, lanes, size)
    words = result_words(parameters, segment)
    if segment.late and _late(seen):
        unit.late = words
        words -= 1
    for number in range(words):
        if lacks_place(unit, place):
            state.fail(core, state.FAULT_RESULT_COUNT, parameters.pc, tile.number, unit.words)
            return
        if not _write(core, tile, unit, parameters, lanes, plan, place, number, seen):
            return


@inner
def _land(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    plan: TensorPlan,
    place: Place,
    seen: Seen,
) -> None:
    """The late word of the segment before goes to its place."""
    number, unit.late = unit.late - 1, 0
    lanes = plan.segment[place.segment + unit.position - 1].lanes
    _write(core, tile, unit, parameters, lanes, plan, place, number, seen)


@inner
def _write(
    core: state.Core,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    lanes: int,
    plan: TensorPlan,
    place: Place,
    number: int,
    seen: Seen,
) -> bool:
    """Write a word of the results of some lanes to narrow memory; False if it has no such place."""
    word = unit.row.data[number]
    address = plan.write_address[place.write + unit.words] & NARROW_MASK
    if memories.lacks_bytes(address):
        state.fail(core, state.FAULT_NARROW_ADDRESS, parameters.pc, tile.number, address)
        return False
    writes_result(core, tile, address, word)
    _put(tile.narrow, address, word)
    _put(tile.narrow_written, address, unit.row.written[number])
    numbered_sums.writes_word(core, tile, number, address)
    grown = step_result(unit, plan, place)
    order.counts(
        core,
        clocks.unit(tile.number, TileUnit.TENSOR),
        clocks.tile_flag(tile.number, TileFlag.ACTIVATION_WRITE),
        grown,
    )
    holds.grow(tile, TileFlag.ACTIVATION_WRITE, grown)
    _tap(seen, tile, unit, parameters, lanes, number, address)
    return True


@inner
def _put(memory: NDArray[np.uint32], address: int, word: np.uint32) -> None:
    """Four bytes from a byte address on."""
    if address & 3 == 0:
        memory[address >> 2] = word
        return
    octets = memory.view(np.uint8)
    for k in range(4):
        octets[address + k] = (word >> np.uint32(8 * k)) & np.uint32(0xFF)
