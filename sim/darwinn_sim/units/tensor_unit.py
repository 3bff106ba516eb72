"""Tensor unit: 64 cells that multiply and add, then scale, clip, round and offset the sums.

Each main iteration reads one group of activations from narrow memory and one granule of parameters
(64 lanes) from wide memory. A run of iterations ends when the partial-sum traversal moves on; the
64 int32 sums then leave through the output stage (docs/chip-facts.md, "Numerics"). Which addresses
that are, iteration by iteration, stands in the plan (``tensor_plan``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import OutputFunction, TileFlag
from darwinn_sim.kernel import state, sync, traversal
from darwinn_sim.kernel.compiled import Record, copy, inner
from darwinn_sim.units import observation
from darwinn_sim.units.tensor_plan import TensorPlan

MAC, MAXIMUM, SUM, INTERPOLATE = 1, 2, 3, 5
"""Operations, numbered as their opcodes."""

TABLE, RANGE_REDUCTION, OUTPUT_16BIT = (1 << bit for bit in OutputFunction)
"""Bits of the field ``function``."""

KEEP_SUMS = 2
"""Bit of ``partial_sum_read``: sums stay in the accumulator, and none goes to wide memory."""

BESIDES = (
    ("main", traversal.PARAMETERS),
    ("working", "i8"),
    ("products", "i8"),
    ("scale_watcher", "i8"),
)
"""What a record has besides the fields: the main loops as a traversal; the products that an
iteration makes (bit k: product k), and the places of products up to the last of those; the index of
the watcher of flag 12, whose count selects the half of the scale/bias buffer (-1: none)."""

_MULTIPLIERS = 4

_NARROW_MASK = chip.NARROW_ADDRESS_BYTES - 1
_LEAST = np.int32(-(1 << 30))


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
def start(unit: Record) -> None:
    """Begin an instruction."""
    unit.position = 0
    unit.results = 0


@inner
def load_table(tile: Record, table: Record) -> None:
    """Execute a CoefficientTable instruction."""
    copy(tile.coefficient, 0, table.coefficient, 0, len(table.coefficient))
    copy(tile.lower_bound, 0, table.lower_bound, 0, len(table.lower_bound))
    tile.table_written = 1


@inner
def advance(
    core: Record,
    tile: Record,
    unit: Record,
    parameters: Record,
    plan: TensorPlan,
    row: int,
    tap: NDArray[np.void],
) -> bool:
    """Run segments until a watcher blocks or the instruction ends; True if any has run.

    ``row`` is the instruction's row in the plan.
    """
    place = plan.place[row]
    tapped = core.tap_begin <= unit.current < core.tap_end
    moved = False
    while unit.position < place.segments:
        if tapped and tap_is_full(core, tap):
            return moved
        segment = plan.segment[place.segment + unit.position]
        if not unit.ready:
            if segment.waits and not sync.passes(
                parameters.watchers, unit.waited, tile.flags, segment.waits
            ):
                return moved
            if segment.observed and observation.is_due(tile, unit, parameters, plan, row):
                unit.ready = 1
                core.observed_tile = tile.number
                core.until_left = 0
                return True
        unit.ready = 0
        _run_segment(core, tile, unit, parameters, segment, plan, place.iteration)
        if segment.outputs:
            _output(core, tile, unit, parameters, segment.lanes, plan, place, tap, tapped)
        unit.position += 1
        moved = True
        if state.paused(core):
            return True
    if unit.results != place.writes:
        state.fail(core, state.FAULT_RESULT_COUNT, parameters.pc, tile.number, unit.results)
    if core.until_left > 0 and core.until_first <= unit.current <= core.until_last:
        core.until_left -= 1
    unit.current = state.IDLE
    return True


@inner
def tap_is_full(core: Record, tap: NDArray[np.void]) -> bool:
    """True if words are tapped and those of one more run of sums may not fit."""
    tapping = core.tap_begin < core.tap_end
    return tapping and core.tap_length + chip.LANES > len(tap)  # type: ignore[no-any-return]


@inner
def _run_segment(
    core: Record,
    tile: Record,
    unit: Record,
    parameters: Record,
    segment: Record,
    plan: TensorPlan,
    base: int,
) -> None:
    """The iterations of one segment, and what they tell others by flags 1 and 2."""
    begin = base + segment.first
    operands = plan.operand[begin : begin + segment.count]
    granules = plan.granule[begin : begin + segment.count]
    core.iterations += segment.count
    core.work += segment.count
    if segment.starts:
        _start_sum(core, tile, unit, parameters, segment)
    if core.strict:
        _check_operands(core, tile, unit, parameters, segment.lanes, operands, granules)
    if parameters.opcode == MAC:
        _multiply_accumulate(core, tile, unit, parameters, segment, operands, granules)
    elif parameters.opcode == INTERPOLATE:
        _interpolate(tile, unit, segment.lanes, operands, granules)
    else:
        _reduce(core, tile, unit, parameters, segment.lanes, granules)
    tile.flags[TileFlag.PARAMETER_READ] += segment.parameter_reads
    tile.flags[TileFlag.PARTIAL_SUM_WRITE] += segment.sum_writes
    if segment.ends and not parameters.partial_sum_read & KEEP_SUMS:
        _store_sum(core, tile, unit, parameters, segment)


@inner
def _scale_half(unit: Record, parameters: Record) -> int:
    """Half of the scale/bias buffer that holds the present block's values.

    It is the parity of the block number that flag 12 has counted, so it goes on across
    instructions and starts again when a fence resets the flag.
    """
    k = parameters.scale_watcher
    if k < 0:
        return 0
    watchers = parameters.watchers
    block = watchers.expected[k] + (unit.waited[k] - 1) * watchers.stride[k]
    return (block - 1) & 1  # type: ignore[no-any-return]


@inner
def _start_sum(
    core: Record, tile: Record, unit: Record, parameters: Record, segment: Record
) -> None:
    """Start a run: from the least value, from zero, or from the row in wide memory."""
    lanes = segment.lanes
    if segment.continues:
        base = _row_base(core, tile, parameters, segment.sum_row)
        for lane in range(lanes):
            unit.accumulator[lane] = np.int32(tile.wide[base + lane])
            unit.lane_written[lane] = tile.wide_written[base + lane]
        return
    unit.accumulator[:lanes] = _LEAST if parameters.opcode == MAXIMUM else np.int32(0)
    unit.lane_written[:lanes] = state.WRITTEN


@inner
def _store_sum(
    core: Record, tile: Record, unit: Record, parameters: Record, segment: Record
) -> None:
    base = _row_base(core, tile, parameters, segment.sum_row)
    for lane in range(segment.lanes):
        tile.wide[base + lane] = np.uint32(unit.accumulator[lane])
        tile.wide_written[base + lane] = unit.lane_written[lane]


@inner
def _row_base(core: Record, tile: Record, parameters: Record, row: int) -> int:
    """Word index of a wide-memory row; outside the memory: a fault, and row 0."""
    if row < 0 or row >= chip.WIDE_ROWS:
        state.fail(core, state.FAULT_WIDE_ADDRESS, parameters.pc, tile.number, row)
        return 0
    return row * chip.ROW_WORDS


@inner
def _check_operands(
    core: Record,
    tile: Record,
    unit: Record,
    parameters: Record,
    lanes: int,
    operands: NDArray[np.int32],
    granules: NDArray[np.int16],
) -> None:
    """Strict mode: mark the lanes whose results follow from memory that nothing has written.

    An operand does not matter if the other one equals its zero point: programs pad channels that
    way. Programs also compute lanes that they never use, so a marked result is no fault by itself.
    """
    planes = 2 if parameters.parameter_16bit else 1
    for i in range(len(operands)):
        if parameters.opcode == INTERPOLATE:
            for lane in range(lanes if granules[i] else 0):
                address = (operands[i] + lane) & _NARROW_MASK
                if not tile.narrow_written.view(np.uint8)[address]:
                    _mark(core, tile, unit, parameters, lane, address)
            continue
        if parameters.opcode != MAC:
            for k in range(values_of(parameters, granules[i])):
                for plane in range(planes * k, planes * (k + 1) if works(parameters, k) else 0):
                    for lane in range(lanes):
                        _check_wide(core, tile, unit, parameters, granules[i] + plane, lane)
            continue
        for k in range(parameters.products):
            if works(parameters, k):
                granule = granules[i] + planes * k
                _check_product(core, tile, unit, parameters, lanes, operands[i], granule, k)


@inner
def _check_product(
    core: Record,
    tile: Record,
    unit: Record,
    parameters: Record,
    lanes: int,
    operand: int,
    granule: int,
    k: int,
) -> None:
    narrow = tile.narrow_written.view(np.uint8)
    values = tile.wide.view(np.uint8)
    planes = 2 if parameters.parameter_16bit else 1
    size = 2 if parameters.activation_16bit else 1
    written = True
    for byte in range(size):
        written &= narrow[(operand + size * k + byte) & _NARROW_MASK] != 0
    if not written or _activation(tile, parameters, operand, k) != 0:
        for plane in range(granule, granule + planes):
            for lane in range(lanes):
                _check_wide(core, tile, unit, parameters, plane, lane)
    if written:
        return
    for plane in range(granule, granule + planes):
        zero_point = parameters.parameter_zero_point >> (8 * (plane - granule)) & 0xFF
        base = 4 * _row_base(core, tile, parameters, plane >> 2) + (plane & 3)
        for lane in range(lanes):
            if parameters.load_parameter_zero_point or values[base + 4 * lane] != zero_point:
                _mark(core, tile, unit, parameters, lane, operand + size * k)


@inner
def _check_wide(
    core: Record, tile: Record, unit: Record, parameters: Record, plane: int, lane: int
) -> None:
    where = 4 * _row_base(core, tile, parameters, plane >> 2) + (plane & 3) + 4 * lane
    if not tile.wide_written.view(np.uint8)[where]:
        _mark(core, tile, unit, parameters, lane, where)


@inner
def _mark(
    core: Record, tile: Record, unit: Record, parameters: Record, lane: int, address: int
) -> None:
    """Mark a lane's result as unwritten, and remember the first operand that led to one."""
    unit.lane_written[lane] = 0
    state.originates(core, parameters.pc, tile.number, address)


@inner
def _multiply_accumulate(
    core: Record,
    tile: Record,
    unit: Record,
    parameters: Record,
    segment: Record,
    operands: NDArray[np.int32],
    granules: NDArray[np.int16],
) -> None:
    """Add activations times parameters to the sums, modulo 2^32 as the chip's accumulators do."""
    simple = (
        parameters.working == 15
        and not parameters.load_parameter_zero_point
        and not parameters.activation_16bit
        and not parameters.parameter_16bit
    )
    for i in range(len(operands)):
        if simple and granules[i] & 3 == 0:
            _multiply_row(core, tile, unit, parameters, segment.lanes, operands[i], granules[i])
        else:
            for k in range(parameters.products):
                if works(parameters, k):
                    _multiply_plane(
                        core, tile, unit, parameters, segment, operands[i], granules[i], k
                    )


@inner
def _multiply_row(
    core: Record,
    tile: Record,
    unit: Record,
    parameters: Record,
    lanes: int,
    operand: int,
    granule: int,
) -> None:
    """Four 8-bit activations times the four bytes of each lane: the case that takes the time."""
    octets = tile.narrow.view(np.uint8)
    zero_point = np.int32(parameters.activation_zero_point)
    a0 = np.int32(octets[operand & _NARROW_MASK]) - zero_point
    a1 = np.int32(octets[(operand + 1) & _NARROW_MASK]) - zero_point
    a2 = np.int32(octets[(operand + 2) & _NARROW_MASK]) - zero_point
    a3 = np.int32(octets[(operand + 3) & _NARROW_MASK]) - zero_point
    offset = np.int32((a0 + a1 + a2 + a3) * np.int32(parameters.parameter_zero_point))
    base = 4 * _row_base(core, tile, parameters, granule >> 2)
    weights = tile.wide.view(np.uint8)[base : base + chip.ROW_BYTES]
    sums = unit.accumulator
    for lane in range(lanes):
        sums[lane] += np.int32(
            a0 * np.int32(weights[4 * lane])
            + a1 * np.int32(weights[4 * lane + 1])
            + a2 * np.int32(weights[4 * lane + 2])
            + a3 * np.int32(weights[4 * lane + 3])
            - offset
        )


@inner
def _activation(tile: Record, parameters: Record, address: int, k: int) -> np.int32:
    """Activation ``k`` of the group at byte ``address``, minus the zero point."""
    octets = tile.narrow.view(np.uint8)
    if parameters.activation_16bit:
        low = np.int32(octets[(address + 2 * k) & _NARROW_MASK])
        high = np.int32(octets[(address + 2 * k + 1) & _NARROW_MASK])
        return np.int32((low | high << 8) - parameters.activation_zero_point)
    return np.int32(octets[(address + k) & _NARROW_MASK] - parameters.activation_zero_point)


@inner
def _multiply_plane(
    core: Record,
    tile: Record,
    unit: Record,
    parameters: Record,
    segment: Record,
    operand: int,
    granule: int,
    k: int,
) -> None:
    """One activation times one 8-bit or 16-bit parameter of each lane."""
    activation = _activation(tile, parameters, operand, k)
    planes = 2 if parameters.parameter_16bit else 1
    plane = granule + planes * k
    base = 4 * _row_base(core, tile, parameters, plane >> 2) + (plane & 3)
    weights = tile.wide.view(np.uint8)[base:]
    zero = np.int32(parameters.parameter_zero_point)
    sums = unit.accumulator
    if parameters.load_parameter_zero_point:
        row = _row_base(core, tile, parameters, segment.zero_point_row)
        zeros = tile.wide[row : row + chip.LANES].view(np.int32)
        for lane in range(segment.lanes):
            weight = np.int32(weights[4 * lane])
            if planes == 2:
                weight |= np.int32(weights[4 * lane + 1]) << 8
            sums[lane] += np.int32(activation * (weight - zeros[lane]))
    elif planes == 2:
        for lane in range(segment.lanes):
            weight = np.int32(weights[4 * lane]) | np.int32(weights[4 * lane + 1]) << 8
            sums[lane] += np.int32(activation * (weight - zero))
    else:
        for lane in range(segment.lanes):
            sums[lane] += np.int32(activation * (np.int32(weights[4 * lane]) - zero))


@inner
def works(parameters: Record, k: int) -> bool:
    """True if product ``k`` of an iteration is made: its multipliers do not stand still."""
    return bool((parameters.working >> k) & 1)


@inner
def values_of(parameters: Record, granule: int) -> int:
    """Values of a lane that an iteration of a maximum or sum can take: as many as multipliers make,
    where the granule begins a row, and one elsewhere. Those whose multipliers :func:`works` count.
    """
    return 1 if granule & 3 else parameters.products


@inner
def _reduce(
    core: Record,
    tile: Record,
    unit: Record,
    parameters: Record,
    lanes: int,
    granules: NDArray[np.int16],
) -> None:
    """Maximum or sum over the raw values that an iteration takes (:func:`values_of`)."""
    sums = unit.accumulator
    planes = 2 if parameters.parameter_16bit else 1
    for i in range(len(granules)):
        for k in range(values_of(parameters, granules[i])):
            if not works(parameters, k):
                continue
            plane = granules[i] + planes * k
            base = 4 * _row_base(core, tile, parameters, plane >> 2) + (plane & 3)
            values = tile.wide.view(np.uint8)[base:]
            for lane in range(lanes):
                value = np.int32(values[4 * lane])
                if planes == 2:
                    value |= np.int32(values[4 * lane + 1]) << 8
                if parameters.opcode == MAXIMUM:
                    sums[lane] = max(sums[lane], value)
                else:
                    sums[lane] += value


@inner
def _interpolate(
    tile: Record,
    unit: Record,
    lanes: int,
    operands: NDArray[np.int32],
    weights: NDArray[np.int16],
) -> None:
    """Add taps: lane j takes activation byte j times the tap's weight."""
    octets = tile.narrow.view(np.uint8)
    for i in range(len(operands)):
        for lane in range(lanes):
            value = np.int32(octets[(operands[i] + lane) & _NARROW_MASK])
            unit.accumulator[lane] += np.int32(value * weights[i])


@inner
def polynomial(tile: Record, y: np.float32) -> np.float32:
    """Value of the tile's coefficient table at ``y``, by Horner's rule in float32."""
    segment = 0
    while segment < chip.TABLE_SEGMENTS - 1 and tile.lower_bound[segment] <= y:
        segment += 1
    base = segment * chip.TABLE_COEFFICIENTS
    value = np.float32(tile.coefficient[base + 4])
    for k in range(3, -1, -1):
        value = np.float32(np.float32(value * y) + tile.coefficient[base + k])
    return value


@inner
def _function(tile: Record, parameters: Record, y: np.float32) -> np.float32:
    """The non-linear function: the coefficient table, with range reduction or symmetry."""
    negates = parameters.odd_function and y < 0
    if parameters.symmetric_function:
        y = abs(y)
    factor = np.float32(1)
    if parameters.function & RANGE_REDUCTION and y > 0 and y < np.float32(np.inf):
        # y = m * 4^k with 1 <= m < 4; the result is table(m) * 2^-k. Powers of 2 are exact.
        while y >= np.float32(4):
            y *= np.float32(0.25)
            factor *= np.float32(0.5)
        while y < np.float32(1):
            y *= np.float32(4)
            factor *= np.float32(2)
    value = np.float32(polynomial(tile, y) * factor)
    return -value if negates else value


@inner
def _scaled_sums(core: Record, tile: Record, unit: Record, parameters: Record, lanes: int) -> None:
    """float32 of the biased int32 sums, times the scales, clipped: into ``unit.scaled``."""
    sums, scaled = unit.accumulator, unit.scaled
    half = _scale_half(unit, parameters)
    if parameters.apply_bias:
        first = chip.LANES * (2 + half)
        biases = tile.scale_bias[first : first + chip.LANES].view(np.int32)
        _check_scale_bias(core, tile, unit, parameters, first, lanes)
        for lane in range(lanes):
            scaled[lane] = np.float32(np.int32(sums[lane] + biases[lane]))
    else:
        bias = np.int32(parameters.immediate_bias)
        for lane in range(lanes):
            scaled[lane] = np.float32(np.int32(sums[lane] + bias))
    if parameters.use_scales:
        first = chip.LANES * half
        scales = tile.scale_bias[first : first + chip.LANES].view(np.float32)
        _check_scale_bias(core, tile, unit, parameters, first, lanes)
        for lane in range(lanes):
            scaled[lane] *= np.float32(scales[lane] * parameters.output_scale)
    else:
        for lane in range(lanes):
            scaled[lane] *= parameters.output_scale
    if parameters.opcode == INTERPOLATE:
        return
    high, low = parameters.high_clip, parameters.low_clip
    for lane in range(lanes):
        value = scaled[lane]
        value = high if value > high else value
        scaled[lane] = low if value < low else value


@inner
def _check_scale_bias(
    core: Record, tile: Record, unit: Record, parameters: Record, first: int, lanes: int
) -> None:
    if core.strict:
        for lane in range(lanes):
            if tile.scale_bias_written[first + lane] != state.WRITTEN:
                _mark(core, tile, unit, parameters, lane, 4 * (first + lane))


@inner
def _round(unit: Record, parameters: Record, lanes: int) -> None:
    """Round half to even, add the offset and saturate: into ``unit.rounded``."""
    scaled, rounded = unit.scaled, unit.rounded
    if np.isinf(parameters.high_clip) and not parameters.function & OUTPUT_16BIT:
        # The low byte of the sum is the output.
        zero_point = parameters.output_zero_point
        for lane in range(lanes):
            rounded[lane] = np.uint32((np.int64(np.rint(scaled[lane])) + zero_point) & 0xFF)
        return
    highest = np.float32(0xFFFF if parameters.function & OUTPUT_16BIT else 0xFF)
    offset = np.float32(parameters.output_zero_point)
    for lane in range(lanes):
        # Exact in float32: beyond 2^24 the clamp decides.
        value = np.rint(scaled[lane]) + offset
        value = np.float32(0) if value < np.float32(0) else value
        value = highest if value > highest else value
        rounded[lane] = np.uint32(np.int32(value))


@inner
def _output(
    core: Record,
    tile: Record,
    unit: Record,
    parameters: Record,
    lanes: int,
    plan: TensorPlan,
    place: Record,
    tap: NDArray[np.void],
    tapped: bool,
) -> None:
    """Write the results of the run to narrow memory, four bytes an access."""
    _scaled_sums(core, tile, unit, parameters, lanes)
    if parameters.function & TABLE:
        if core.strict and not tile.table_written:
            for lane in range(lanes):
                _mark(core, tile, unit, parameters, lane, 0)
        for lane in range(lanes):
            unit.scaled[lane] = _function(tile, parameters, unit.scaled[lane])
    _round(unit, parameters, lanes)
    size = 2 if parameters.function & OUTPUT_16BIT else 1
    per_word = 4 // size
    octets = tile.narrow.view(np.uint8)
    written = tile.narrow_written.view(np.uint8)
    for first in range(0, lanes, per_word):
        if unit.results >= place.writes:
            state.fail(core, state.FAULT_RESULT_COUNT, parameters.pc, tile.number, unit.results)
            return
        count = min(per_word, lanes - first)
        word = np.uint32(0)
        for k in range(count):
            word |= unit.rounded[first + k] << np.uint32(8 * size * k)
        at = place.write + unit.results
        address = plan.write_address[at] & _NARROW_MASK
        if address + 4 > chip.NARROW_BYTES:
            state.fail(core, state.FAULT_NARROW_ADDRESS, parameters.pc, tile.number, address)
            return
        for k in range(4):
            octets[address + k] = (word >> np.uint32(8 * k)) & np.uint32(0xFF)
            # Bytes beyond the last lane are zeros of the unit's own.
            lane = first + k // size
            written[address + k] = lane >= lanes or unit.lane_written[lane] != 0
        tile.flags[TileFlag.ACTIVATION_WRITE] += plan.write_flag[at]
        unit.results += 1
        if tapped:
            _record(core, tile, tap, unit.current, address, word, count * size)


@inner
def _record(
    core: Record,
    tile: Record,
    tap: NDArray[np.void],
    instruction: int,
    address: int,
    word: np.uint32,
    count: int,
) -> None:
    """Copy a result word out for the tap."""
    entry = tap[core.tap_length]
    entry.instruction = instruction
    entry.tile = tile.number
    entry.address = address
    entry.word = word
    entry.count = count
    core.tap_length += 1
