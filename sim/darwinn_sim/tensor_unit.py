"""Tensor unit: 64 cells that multiply and add, then scale, clip, round and offset the sums.

Each main iteration reads one group of activations from narrow memory and one granule of parameters
(64 lanes) from wide memory. A run of iterations ends when the partial-sum traversal moves on; the
64 int32 sums then leave through the output stage (docs/chip-facts.md, "Numerics").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip, state, sync, traversal
from darwinn_sim.compiled import Record, compiled
from darwinn_sim.isa.codec import Columns
from darwinn_sim.isa.table import BY_NAME

MAC, MAXIMUM, SUM, INTERPOLATE = 1, 2, 3, 5
"""Operations, numbered as their opcodes."""

AXIS = np.dtype([("loop", "i8"), ("start", "i8"), ("step", "i8"), ("pitch", "i8")])
"""One axis of an interpolation: main loop, first position and step in 1/128 pixel, byte pitch."""

PARAMETERS = np.dtype(
    [
        ("pc", "i8"),
        ("operation", "i8"),
        ("main", traversal.PARAMETERS),
        ("narrow_read", traversal.PARAMETERS),
        ("narrow_write", traversal.PARAMETERS),
        ("parameter_read", traversal.PARAMETERS),
        ("partial_sum", traversal.PARAMETERS),
        ("write_producer", sync.PRODUCER),
        ("read_producer", sync.PRODUCER),
        ("sum_producer", sync.PRODUCER),
        ("watchers", sync.WATCHERS),
        ("keeps_sum", "i8"),
        ("activation_16bit", "i8"),
        ("parameter_16bit", "i8"),
        ("products", "i8"),
        ("load_zero_point", "i8"),
        ("parameter_zero_point", "i8"),
        ("activation_zero_point", "i8"),
        ("zero_point_limit", "i8"),
        ("zero_point_stride", "i8"),
        ("zero_point_base", "i8"),
        ("block_loop", "i8"),
        ("reduction_loops", "i8"),
        ("last_block_lanes", "i8"),
        ("block_lanes", "i8"),
        ("table", "i8"),
        ("range_reduction", "i8"),
        ("output_16bit", "i8"),
        ("scale", "f4"),
        ("high_clip", "f4"),
        ("low_clip", "f4"),
        ("raw", "i8"),
        ("bias", "i4"),
        ("offset", "i8"),
        ("apply_bias", "i8"),
        ("use_scales", "i8"),
        ("scale_watcher", "i8"),
        ("symmetric", "i8"),
        ("odd", "i8"),
        ("x", AXIS),
        ("y", AXIS),
    ]
)
"""A tensor instruction. ``keeps_sum``: sums stay in the accumulator; otherwise they start from and
go back to wide memory. ``products`` per iteration. ``scale_watcher``: index of the watcher of flag
12, whose count selects the half of the scale/bias buffer; -1: none. ``raw``: the low byte of the
sum is the output."""

TABLE = np.dtype(
    [
        ("pc", "i8"),
        ("coefficient", "f4", (chip.TABLE_SEGMENTS * chip.TABLE_COEFFICIENTS,)),
        ("lower_bound", "f4", (chip.TABLE_SEGMENTS - 1,)),
    ]
)
"""A CoefficientTable instruction."""

MAC_DISABLE_PRODUCTS = {0: 4, 12: 2, 14: 1}
"""8 x 8 bit products per iteration by the field mac_disable (docs/isa.md)."""

_NAMES = {MAC: "TensorMac", MAXIMUM: "TensorMax", SUM: "TensorSum", INTERPOLATE: "TensorInterpolate"}

_NARROW_MASK = chip.NARROW_ADDRESS_BYTES - 1
_LEAST = np.int32(-(1 << 30))


def lower(opcode: int, columns: Columns, rows: int) -> NDArray[np.void]:
    """Decoded tensor instructions of one opcode as an array of ``PARAMETERS``."""
    out = np.zeros(rows, PARAMETERS)
    out["operation"] = opcode
    for part in BY_NAME[_NAMES[opcode]].traversals:
        out[part.name] = traversal.lower(part, columns, rows)
    out["main"]["loops"] = columns["main_limit"].shape[1]
    out["main"]["limit"] = columns["main_limit"]
    out["main"]["alternate_limit"] = columns["main_alternate_limit"]
    out["main"]["alternate_loop"] = columns["main_alternate_loop"]
    out["write_producer"] = sync.lower_producer("narrow_write_producer", columns, rows)
    out["read_producer"] = sync.lower_producer("parameter_read_producer", columns, rows)
    out["sum_producer"] = sync.lower_producer("partial_sum_producer", columns, rows)
    out["watchers"] = sync.lower_watchers(columns, rows)
    out["keeps_sum"] = columns["partial_sum_read"] == 3
    out["products"] = _products(columns)
    out["load_zero_point"] = columns["load_parameter_zero_point"]
    out["last_block_lanes"] = columns["last_block_lanes"] + 1
    out["block_lanes"] = columns["block_lanes"] + 1
    out["block_loop"] = columns["output_block_loop"]
    out["table"] = columns["function"] & 1
    out["range_reduction"] = columns["function"] >> 1 & 1
    out["output_16bit"] = columns["function"] >> 2
    out["scale"] = _float32(columns["output_scale"])
    for name in (
        "activation_16bit",
        "parameter_16bit",
        "parameter_zero_point",
        "activation_zero_point",
        "zero_point_limit",
        "zero_point_stride",
        "zero_point_base",
        "reduction_loops",
        "apply_bias",
        "use_scales",
    ):
        out[name] = columns[name]
    out["symmetric"] = columns["symmetric_function"]
    out["odd"] = columns["odd_function"]
    out["scale_watcher"] = _scale_watcher(out["watchers"])
    if opcode == INTERPOLATE:
        for axis in ("x", "y"):
            for name in AXIS.names or ():
                out[axis][name] = columns[f"{axis}_{name}"]
    else:
        out["high_clip"] = _float32(columns["high_clip"])
        out["low_clip"] = _float32(columns["low_clip"])
        out["raw"] = np.isinf(out["high_clip"])
        out["bias"] = columns["immediate_bias"]
        out["offset"] = columns["output_zero_point"]
    return out


def lower_table(columns: Columns, rows: int) -> NDArray[np.void]:
    """Decoded CoefficientTable instructions as an array of ``TABLE``."""
    out = np.zeros(rows, TABLE)
    out["coefficient"] = _float32(columns["coefficient"])
    out["lower_bound"] = _float32(columns["lower_bound"])
    return out


def _float32(bits: NDArray[np.int64]) -> NDArray[np.float32]:
    return bits.astype(np.uint32).view(np.float32)


def _products(columns: Columns) -> NDArray[np.int64]:
    """Products per iteration: up to four 8 x 8 multipliers; a 16-bit operand takes two of them."""
    products = np.zeros(len(columns["mac_disable"]), np.int64)
    for field, count in MAC_DISABLE_PRODUCTS.items():
        products[columns["mac_disable"] == field] = count
    for wide in ("activation_16bit", "parameter_16bit"):
        products = np.where(columns[wide] == 1, np.maximum(products // 2, 1), products)
    return products


def _scale_watcher(watchers: NDArray[np.void]) -> NDArray[np.int64]:
    valid = np.arange(sync.MAX_WATCHERS) < watchers["count"][:, None]
    counts_blocks = valid & (watchers["flag"] == sync.SCALE_BIAS_WRITE)
    return np.where(counts_blocks.any(axis=1), counts_blocks.argmax(axis=1), -1)


@compiled
def start(unit: Record, parameters: Record) -> None:
    """Begin an instruction."""
    traversal.start(unit.first, parameters.main)
    traversal.start(unit.second, parameters.narrow_read)
    traversal.start(unit.third, parameters.narrow_write)
    traversal.start(unit.fourth, parameters.parameter_read)
    traversal.start(unit.fifth, parameters.partial_sum)
    unit.run_starts = 1
    unit.zero_point_row = parameters.zero_point_base


@compiled
def load_table(tile: Record, table: Record) -> None:
    """Execute a CoefficientTable instruction."""
    tile.coefficient[:] = table.coefficient
    tile.lower_bound[:] = table.lower_bound
    tile.table_written = 1


@compiled
def advance(
    core: Record,
    tile: Record,
    unit: Record,
    parameters: Record,
    tap: NDArray[np.void],
    instruction: int,
) -> bool:
    """Iterate until a watcher blocks or the instruction ends; True if any iteration ran."""
    main = unit.first
    moved = False
    tapped = core.tap_begin <= instruction < core.tap_end
    watched = parameters.watchers.count > 0
    while not main.done:
        if tapped and core.tap_length + chip.LANES > len(tap):
            return moved
        if watched and not sync.passes(parameters.watchers, unit.waited, tile.flags, main.begins):
            return moved
        moved = True
        _iterate(core, tile, unit, parameters, tap, instruction if tapped else -1)
        if core.fault:
            return moved
    if not unit.third.done:
        state.fail(core, state.FAULT_RESULT_COUNT, parameters.pc, tile.number, 0)
    unit.current = state.IDLE
    return True


@compiled
def _iterate(
    core: Record,
    tile: Record,
    unit: Record,
    parameters: Record,
    tap: NDArray[np.void],
    tapped: int,
) -> None:
    main = unit.first
    core.iterations += 1
    lanes = _lanes(main, parameters)
    first, last = _reduction_edges(main, parameters)
    sum_address = traversal.address(unit.fifth, parameters.partial_sum)
    ended = traversal.step_around(unit.fifth, parameters.partial_sum)
    tile.flags[sync.PARTIAL_SUM_WRITE] += sync.produce(parameters.sum_producer, ended)
    granule = traversal.address(unit.fourth, parameters.parameter_read)
    operand = traversal.address(unit.second, parameters.narrow_read)
    half = _scale_half(unit, parameters)
    if unit.run_starts:
        continues = not parameters.keeps_sum and not first
        _start_sum(core, tile, unit, parameters, lanes, sum_address >> 2, continues)
    if parameters.operation == INTERPOLATE:
        _interpolate(core, tile, unit, parameters, operand, lanes)
    elif parameters.operation == MAC:
        _multiply_accumulate(core, tile, unit, parameters, operand, granule, lanes)
    else:
        _reduce(core, tile, unit, parameters, granule, lanes)

    main_ended = traversal.step(main, parameters.main)
    run_ends = main.done or traversal.address(unit.fifth, parameters.partial_sum) != sum_address
    unit.run_starts = run_ends
    if run_ends and not parameters.keeps_sum:
        _store_sum(core, tile, unit, parameters, lanes, sum_address >> 2)
    if (run_ends and parameters.keeps_sum) or (last and not parameters.keeps_sum):
        _output(core, tile, unit, parameters, lanes, half, tap, tapped)

    traversal.step_around(unit.second, parameters.narrow_read)
    ended = traversal.step_around(unit.fourth, parameters.parameter_read)
    tile.flags[sync.PARAMETER_READ] += sync.produce(parameters.read_producer, ended)
    if parameters.load_zero_point and (main_ended >> parameters.block_loop) & 1:
        unit.zero_point_row += parameters.zero_point_stride
        if unit.zero_point_row > parameters.zero_point_limit:
            unit.zero_point_row = parameters.zero_point_base


@compiled
def _lanes(main: Record, parameters: Record) -> int:
    """Valid lanes of the output block that the iteration belongs to."""
    for loop in range(parameters.block_loop, traversal.MAX_LOOPS):
        if not (parameters.reduction_loops >> loop) & 1 and (
            main.index[loop] != parameters.main.limit[loop]
        ):
            return parameters.block_lanes  # type: ignore[no-any-return]
    return parameters.last_block_lanes  # type: ignore[no-any-return]


@compiled
def _reduction_edges(main: Record, parameters: Record) -> tuple[bool, bool]:
    """Whether the iteration is the first, and the last, of its reduction."""
    first, last = True, True
    if parameters.keeps_sum:
        return first, last
    for loop in range(traversal.MAX_LOOPS):
        if (parameters.reduction_loops >> loop) & 1:
            first &= main.index[loop] == 0
            last &= main.index[loop] == traversal.limit_of(main, parameters.main, loop)
    return first, last


@compiled
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


@compiled
def _start_sum(
    core: Record,
    tile: Record,
    unit: Record,
    parameters: Record,
    lanes: int,
    row: int,
    continues: bool,
) -> None:
    """Start a run: from the least value, from zero, or from the row in wide memory."""
    if parameters.operation == MAXIMUM:
        unit.accumulator[:lanes] = _LEAST
    elif continues:
        base = _row_base(core, tile, parameters, row)
        for lane in range(lanes):
            if tile.wide_written[base + lane] != state.WRITTEN:
                state.uninitialised(core, parameters.pc, tile.number, 4 * (base + lane))
            unit.accumulator[lane] = np.int32(tile.wide[base + lane])
    else:
        unit.accumulator[:lanes] = 0


@compiled
def _store_sum(
    core: Record, tile: Record, unit: Record, parameters: Record, lanes: int, row: int
) -> None:
    base = _row_base(core, tile, parameters, row)
    for lane in range(lanes):
        tile.wide[base + lane] = np.uint32(unit.accumulator[lane])
        tile.wide_written[base + lane] = state.WRITTEN


@compiled
def _row_base(core: Record, tile: Record, parameters: Record, row: int) -> int:
    """Word index of a wide-memory row; outside the memory: a fault, and row 0."""
    if row < 0 or row >= chip.WIDE_ROWS:
        state.fail(core, state.FAULT_WIDE_ADDRESS, parameters.pc, tile.number, row)
        return 0
    return row * chip.ROW_WORDS


@compiled
def _activation(
    core: Record, tile: Record, parameters: Record, address: int, k: int
) -> np.int32:
    """Activation ``k`` of the group at byte ``address``, minus the zero point."""
    octets = tile.narrow.view(np.uint8)
    written = tile.narrow_written.view(np.uint8)
    if parameters.activation_16bit:
        low = (address + 2 * k) & _NARROW_MASK
        high = (low + 1) & _NARROW_MASK
        value = np.int32(octets[low]) | (np.int32(octets[high]) << 8)
        defined = written[low] & written[high]
    else:
        low = (address + k) & _NARROW_MASK
        value = np.int32(octets[low])
        defined = written[low]
    if not defined:
        state.uninitialised(core, parameters.pc, tile.number, low)
    return np.int32(value - parameters.activation_zero_point)


@compiled
def _multiply_accumulate(
    core: Record,
    tile: Record,
    unit: Record,
    parameters: Record,
    operand: int,
    granule: int,
    lanes: int,
) -> None:
    """Add activations times parameters to the sums, modulo 2^32 as the chip's accumulators do."""
    sums = unit.accumulator
    zero = np.int32(parameters.parameter_zero_point)
    if (
        parameters.products == 4
        and granule & 3 == 0
        and not parameters.load_zero_point
        and not parameters.activation_16bit
        and not parameters.parameter_16bit
    ):
        base = 4 * _row_base(core, tile, parameters, granule >> 2)
        weights = tile.wide.view(np.uint8)[base : base + 4 * chip.LANES]
        a0 = _activation(core, tile, parameters, operand, 0)
        a1 = _activation(core, tile, parameters, operand, 1)
        a2 = _activation(core, tile, parameters, operand, 2)
        a3 = _activation(core, tile, parameters, operand, 3)
        offset = np.int32((a0 + a1 + a2 + a3) * zero)
        for lane in range(lanes):
            sums[lane] += np.int32(
                a0 * np.int32(weights[4 * lane])
                + a1 * np.int32(weights[4 * lane + 1])
                + a2 * np.int32(weights[4 * lane + 2])
                + a3 * np.int32(weights[4 * lane + 3])
                - offset
            )
        return
    planes = 2 if parameters.parameter_16bit else 1
    for k in range(parameters.products):
        activation = _activation(core, tile, parameters, operand, k)
        plane = granule + planes * k
        base = 4 * _row_base(core, tile, parameters, plane >> 2) + (plane & 3)
        weights = tile.wide.view(np.uint8)[base:]
        if parameters.load_zero_point:
            row = _row_base(core, tile, parameters, unit.zero_point_row)
            zeros = tile.wide[row : row + chip.LANES].view(np.int32)
            for lane in range(lanes):
                weight = np.int32(weights[4 * lane]) - zeros[lane]
                sums[lane] += np.int32(activation * weight)
        elif planes == 2:
            for lane in range(lanes):
                weight = np.int32(weights[4 * lane]) | (np.int32(weights[4 * lane + 1]) << 8)
                sums[lane] += np.int32(activation * (weight - zero))
        else:
            for lane in range(lanes):
                sums[lane] += np.int32(activation * (np.int32(weights[4 * lane]) - zero))


@compiled
def _reduce(
    core: Record, tile: Record, unit: Record, parameters: Record, granule: int, lanes: int
) -> None:
    """Maximum or sum over the raw values of the granule; of the whole row where it is aligned."""
    sums = unit.accumulator
    planes = 2 if parameters.parameter_16bit else 1
    count = 1 if granule & 3 else 4 // planes
    for k in range(count):
        plane = granule + planes * k
        base = 4 * _row_base(core, tile, parameters, plane >> 2) + (plane & 3)
        values = tile.wide.view(np.uint8)[base:]
        for lane in range(lanes):
            value = np.int32(values[4 * lane])
            if planes == 2:
                value |= np.int32(values[4 * lane + 1]) << 8
            if parameters.operation == MAXIMUM:
                sums[lane] = max(sums[lane], value)
            else:
                sums[lane] += value


@compiled
def _interpolate(
    core: Record, tile: Record, unit: Record, parameters: Record, operand: int, lanes: int
) -> None:
    """Add one of the 2 x 2 taps: main loops 0 and 1 walk them, weights are 1/128 pixel."""
    index = unit.first.index
    x_position = parameters.x.start + parameters.x.step * index[parameters.x.loop]
    y_position = parameters.y.start + parameters.y.step * index[parameters.y.loop]
    x_fraction, y_fraction = x_position & 127, y_position & 127
    weight = np.int32(x_fraction if index[0] else 128 - x_fraction) * np.int32(
        y_fraction if index[1] else 128 - y_fraction
    )
    address = (
        operand
        + (x_position >> 7) * parameters.x.pitch
        + (y_position >> 7) * parameters.y.pitch
    )
    octets = tile.narrow.view(np.uint8)
    written = tile.narrow_written.view(np.uint8)
    for lane in range(lanes):
        source = (address + lane) & _NARROW_MASK
        if weight and not written[source]:
            state.uninitialised(core, parameters.pc, tile.number, source)
        unit.accumulator[lane] += np.int32(octets[source]) * weight


@compiled
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


@compiled
def _function(tile: Record, parameters: Record, y: np.float32) -> np.float32:
    """The non-linear function: the coefficient table, with range reduction or symmetry."""
    if parameters.range_reduction:
        # y = m * 4^k with 1 <= m < 4; the result is table(m) * 2^-k. Powers of 2 are exact.
        factor = np.float32(1)
        if y > 0:
            while y >= np.float32(4):
                y *= np.float32(0.25)
                factor *= np.float32(0.5)
            while y < np.float32(1):
                y *= np.float32(4)
                factor *= np.float32(2)
        return np.float32(polynomial(tile, y) * factor)
    if parameters.symmetric:
        value = polynomial(tile, abs(y))
        return -value if parameters.odd and y < 0 else value
    return polynomial(tile, y)


@compiled
def _result(
    core: Record, tile: Record, parameters: Record, total: np.int32, half: int, lane: int
) -> int:
    """One lane's output: float32 sum times scale, clip, function, round half to even, offset."""
    if parameters.operation == INTERPOLATE:
        return np.int64(np.rint(np.float32(total) * parameters.scale)) & 0xFF  # type: ignore[no-any-return]
    scale = np.float32(parameters.scale)
    bias = np.int32(parameters.bias)
    if parameters.use_scales:
        where = chip.LANES * half + lane
        if not tile.scale_bias_written[where]:
            state.uninitialised(core, parameters.pc, tile.number, where)
        scale = np.float32(tile.scale_bias.view(np.float32)[where] * scale)
    if parameters.apply_bias:
        where = chip.LANES * (2 + half) + lane
        if not tile.scale_bias_written[where]:
            state.uninitialised(core, parameters.pc, tile.number, where)
        bias = np.int32(tile.scale_bias[where])
    y = np.float32(np.float32(np.int32(total + bias)) * scale)
    y = min(y, parameters.high_clip)
    y = max(y, parameters.low_clip)
    if parameters.table:
        y = _function(tile, parameters, y)
    value = np.int64(np.rint(y)) + parameters.offset
    if parameters.output_16bit:
        return min(max(value, 0), 0xFFFF)  # type: ignore[no-any-return]
    if parameters.raw:
        return value & 0xFF  # type: ignore[no-any-return]
    return min(max(value, 0), 0xFF)  # type: ignore[no-any-return]


@compiled
def _output(
    core: Record,
    tile: Record,
    unit: Record,
    parameters: Record,
    lanes: int,
    half: int,
    tap: NDArray[np.void],
    tapped: int,
) -> None:
    """Write the results of the run to narrow memory, four bytes an access."""
    size = 2 if parameters.output_16bit else 1
    per_word = 4 // size
    write = unit.third
    octets = tile.narrow.view(np.uint8)
    written = tile.narrow_written.view(np.uint8)
    for first in range(0, lanes, per_word):
        if write.done:
            state.fail(core, state.FAULT_RESULT_COUNT, parameters.pc, tile.number, 0)
            return
        word = np.uint32(0)
        for k in range(min(per_word, lanes - first)):
            value = _result(
                core, tile, parameters, unit.accumulator[first + k], half, first + k
            )
            word |= np.uint32(value) << np.uint32(8 * size * k)
        address = traversal.address(write, parameters.narrow_write) & _NARROW_MASK
        if address + 4 > chip.NARROW_BYTES:
            state.fail(core, state.FAULT_NARROW_ADDRESS, parameters.pc, tile.number, address)
            return
        for k in range(4):
            octets[address + k] = (word >> np.uint32(8 * k)) & np.uint32(0xFF)
            written[address + k] = 1
        if tapped >= 0:
            entry = tap[core.tap_length]
            entry.instruction = tapped
            entry.tile = tile.number
            entry.address = address
            entry.word = word
            entry.lanes = min(4, (lanes - first) * size)
            core.tap_length += 1
        ended = traversal.step(write, parameters.narrow_write)
        tile.flags[sync.ACTIVATION_WRITE] += sync.produce(parameters.write_producer, ended)
