"""Value numbers of the tensor unit: which function of the inputs each sum and each result is.

A sum of bytes times weights is a linear form, whose element is kept in two parts (``field``). A
product of two bytes that are not known is a variable of its own. A maximum is the set of its
values. What becomes of a sum follows from its element, the factor, the bounds and the zero point,
and is a hash of these; a byte that is the same for each value of the one byte it depends on is that
byte, and one that depends on none is a constant.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.kernel import field, numbering, origins, state
from darwinn_sim.kernel.compiled import inner, unchecked
from darwinn_sim.kernel.numbering import NumberedCore, Numbering, SumOfByte
from darwinn_sim.units.memories import NARROW_MASK
from darwinn_sim.units.output_stage import (
    OUTPUT_16BIT,
    RANGE_REDUCTION,
    TABLE,
    biased,
    clip,
    function,
    saturate,
    scale_half,
)
from darwinn_sim.units.tensor_cells import INTERPOLATE, MAC, MAXIMUM, row_base, values_of, works
from darwinn_sim.units.tensor_records import Parameters, Segment

MANY = 2
"""Of bytes that a sum has: more than one."""

_PAIR, _SET, _HIGH_BYTE, _TABLE, _BYTE_FUNCTION, _SUM_BYTE, _BEYOND = (
    np.uint64(0x5061697200 + k) for k in range(7)
)
"""What is hashed, so that no two kinds of numbers meet."""

_TABLE_WORDS = chip.TABLE_SEGMENTS * chip.TABLE_COEFFICIENTS
_WIDE_WORDS = chip.WIDE_ROWS * chip.ROW_WORDS
_OCTETS = field.CONSTANTS
_LARGEST_BYTE = 255
_LARGEST_WORD = 0xFFFF
_MOST_ZERO = 1 << 17
"""Zero points that a program loads are less: what they are subtracted from has 16 bits."""
_LEAST = -(1 << 30)
"""The greatest of no values."""
_GREAT = 1 << 30
"""Where a constant is as great, a sum may go beyond 32 bits; one without it and with fewer than
2^30 / 255 units of weight does not."""
_BLANK = -(1 << 31)
"""The bias with which programs blank what lies beside a tensor: no layer has it."""
_LARGEST_BLOCK = 4096
"""Iterations whose products of two parts with weights of 16 bits add up to 64 bits."""


# --- sums ----------------------------------------------------------------------------------------


@numbering.hook
@inner
def adds(
    core: NumberedCore,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    segment: Segment,
    operands: NDArray[np.int32],
    granules: NDArray[np.int16],
) -> None:
    """A segment has been added up; before its sums are put aside."""
    n, t, lanes = core.numbering, tile.number, segment.lanes
    if segment.starts:
        _start(core, tile, parameters, segment)
    if parameters.opcode == MAC:
        _multiply(core, tile, parameters, segment, operands, granules)
    elif parameters.opcode == INTERPOLATE:
        _interpolate(n, tile, lanes, operands, granules)
    else:
        _reduce(core, tile, parameters, lanes, granules)
    for lane in range(lanes):
        # The parts stay small, whatever is added to them later.
        total = field.of_parts(n.low[t, lane], n.high[t, lane])
        n.low[t, lane], n.high[t, lane] = field.low_part(total), field.high_part(total)
        if total == 0:
            # The bytes cancel: the sum is of none.
            n.varying[t, lane] = n.weights[t, lane] = 0
        unit.lane_written[lane] = np.uint32(0) if _varies(n, t, lane) else state.WRITTEN


@inner
def _varies(n: Numbering, t: int, lane: int) -> bool:
    """The sum or maximum of a lane is of a byte that is not known."""
    count = n.count[t, lane]
    unknown = count > 1 or (count == 1 and n.values[t, lane, 0] >= np.uint64(field.CONSTANTS))
    return bool(n.varying[t, lane] > 0 or unknown)


@inner
def _start(core: NumberedCore, tile: state.Tile, parameters: Parameters, segment: Segment) -> None:
    n, t = core.numbering, tile.number
    origins.begins_sum(n, t)
    for lane in range(segment.lanes):
        n.low[t, lane] = n.high[t, lane] = n.constant[t, lane] = n.reach[t, lane] = 0
        n.varying[t, lane] = n.weights[t, lane] = n.count[t, lane] = 0
        n.operand[t, lane] = 0
    if not segment.continues:
        return
    base = row_base(core, tile, parameters, segment.sum_row)
    origins.goes_on(n, tile, base, segment.lanes)
    for lane in range(segment.lanes):
        word = base + lane
        number = _value(tile.wide[word], tile.wide_written[word], n.wide[t, word])
        if parameters.opcode == MAXIMUM:
            n.reach[t, lane] = numbering.UNBOUNDED
            _take_value(n, t, lane, number)
        elif _is_whole(tile.wide_written[word]):
            n.constant[t, lane] = np.int64(np.int32(tile.wide[word]))
        else:
            _go_on(n, t, lane, number, n.aside[_WIDE_WORDS * t + word])


@inner
def _go_on(n: Numbering, t: int, lane: int, number: np.uint64, aside: SumOfByte) -> None:
    """Go on from a sum that was put aside. If it was of one byte, it is again."""
    if aside.weight == 0 or aside.total != number:
        _add_many(n, t, lane, number)
        return
    unknown = field.subtracted(number, field.of_integer(aside.constant))
    n.low[t, lane], n.high[t, lane] = field.low_part(unknown), field.high_part(unknown)
    n.constant[t, lane], n.weights[t, lane] = aside.constant, aside.weight
    n.operand[t, lane] = field.multiplied(unknown, _inverse(n, aside.weight))
    n.varying[t, lane], n.reach[t, lane] = 1, numbering.UNBOUNDED


@inner
def _is_whole(written: np.uint32) -> bool:
    """All four bytes of a word are known."""
    return (
        numbering.is_known(written, 0)
        and numbering.is_known(written, 1)
        and numbering.is_known(written, 2)
        and numbering.is_known(written, 3)
    )


@inner
def _value(word: np.uint32, written: np.uint32, numbers: NDArray[np.uint64]) -> np.uint64:
    """The element of a word."""
    total = np.uint64(0)
    for k in range(3, -1, -1):
        total = field.multiplied(total, np.uint64(256))
        total = field.added(total, numbering.number_of(word, written, numbers, k))
    return total


@inner
def _add(
    n: Numbering, t: int, lane: int, number: np.uint64, weight: int | np.int64, most: int
) -> None:
    """Add a value that is not known times a weight. The same one again is no other. ``most``: the
    greatest that it can be, or 0 where nobody asks for the reach of the sum."""
    if weight:
        if most:
            n.reach[t, lane] += weight * most if weight > 0 else numbering.UNBOUNDED
        n.low[t, lane] += field.low_part(number) * weight
        n.high[t, lane] += field.high_part(number) * weight
        n.weights[t, lane] += weight
        if n.varying[t, lane] == 0:
            n.operand[t, lane], n.varying[t, lane] = number, 1
        elif n.operand[t, lane] != number:
            n.varying[t, lane] = MANY


@inner
def _add_many(n: Numbering, t: int, lane: int, number: np.uint64) -> None:
    """Add what may be any number, and follows from more than one byte."""
    _add(n, t, lane, number, 1, numbering.UNBOUNDED)
    n.varying[t, lane] = MANY


@inner
def _has_bytes(n: Numbering, t: int, lane: int, width: int) -> None:
    """A value of so many bytes is in a sum. Of one of 16 bits not all is tried that it may be."""
    if width > 1:
        n.varying[t, lane] = MANY


@inner
def _most(width: int) -> int:
    """The greatest value of so many bytes."""
    return _LARGEST_WORD if width > 1 else _LARGEST_BYTE


@inner
def _keeps_reach(parameters: Parameters) -> bool:
    """A sum may come out as a value of 16 bits: its reach is asked for."""
    return bool(parameters.function & OUTPUT_16BIT and not parameters.function & TABLE)


@inner
def _narrow_value(
    n: Numbering, tile: state.Tile, address: int, width: int
) -> tuple[np.uint64, bool]:
    """The element of one or two bytes of narrow memory, and whether it is known."""
    total, known = np.uint64(0), True
    for k in range(width - 1, -1, -1):
        at = (address + k) & NARROW_MASK
        word, written = tile.narrow[at >> 2], tile.narrow_written[at >> 2]
        known = known and numbering.is_known(written, at & 3)
        number = numbering.number_of(word, written, n.narrow[tile.number, at >> 2], at & 3)
        total = field.added(field.multiplied(total, np.uint64(256)), number)
    return total, known


@inner
def _wide_value(
    core: NumberedCore, tile: state.Tile, parameters: Parameters, plane: int, lane: int
) -> tuple[np.uint64, bool]:
    """The element of a parameter of a lane, of one byte or two, and whether it is known."""
    n, total, known = core.numbering, np.uint64(0), True
    width = 2 if parameters.parameter_16bit else 1
    for k in range(width - 1, -1, -1):
        at = plane + k
        index = row_base(core, tile, parameters, at >> 2) + lane
        written = tile.wide_written[index]
        known = known and numbering.is_known(written, at & 3)
        numbers = n.wide[tile.number, index]
        number = numbering.number_of(tile.wide[index], written, numbers, at & 3)
        total = field.added(field.multiplied(total, np.uint64(256)), number)
    return total, known


@inner
def _multiply(
    core: NumberedCore,
    tile: state.Tile,
    parameters: Parameters,
    segment: Segment,
    operands: NDArray[np.int32],
    granules: NDArray[np.int16],
) -> None:
    n, t, lanes = core.numbering, tile.number, segment.lanes
    if n.traces and parameters.load_parameter_zero_point:
        base = row_base(core, tile, parameters, segment.zero_point_row)
        for k in range(4):
            origins.uses_row(n, tile, base, k, lanes, numbering.ZERO_POINT, np.uint64(k))
    bytes_alone = not (parameters.activation_16bit or parameters.parameter_16bit)
    plain = bytes_alone and not parameters.load_parameter_zero_point
    plain = plain and not _keeps_reach(parameters)
    for i in range(len(operands)):
        base = row_base(core, tile, parameters, granules[i] >> 2)
        if plain and granules[i] & 3 == 0 and _are_known(tile.wide_written, base, lanes):
            _multiply_known(core, tile, parameters, lanes, operands[i], base)
        else:
            _multiply_each(core, tile, parameters, segment, operands[i], granules[i])
        if i % _LARGEST_BLOCK == _LARGEST_BLOCK - 1:
            for lane in range(lanes):
                total = field.of_parts(n.low[t, lane], n.high[t, lane])
                n.low[t, lane], n.high[t, lane] = field.low_part(total), field.high_part(total)


@unchecked
def _are_known(written: NDArray[np.uint32], base: int, lanes: int) -> bool:
    """All words of a row that exists are, as of parameters; in whatever way they are marked."""
    missing = np.uint32(0)
    for lane in range(lanes):
        word = written[base + lane]
        # A byte that is 0 borrows from the one above it.
        missing |= (word - np.uint32(0x01010101)) & ~word & np.uint32(0x80808080)
    return bool(missing == 0)


@inner
def _multiply_known(
    core: NumberedCore,
    tile: state.Tile,
    parameters: Parameters,
    lanes: int,
    operand: int,
    base: int,
) -> None:
    """Products of four bytes of narrow memory with bytes of a row that are known."""
    n, t = core.numbering, tile.number
    zero = np.int64(parameters.activation_zero_point)
    point = np.int32(parameters.parameter_zero_point)
    for k in range(parameters.products):
        if not works(parameters, k):
            continue
        at = (operand + k) & NARROW_MASK
        word, written = tile.narrow[at >> 2], tile.narrow_written[at >> 2]
        shift = np.uint32(8 * k)
        row = tile.wide[base : base + lanes]
        if numbering.is_known(written, at & 3):
            octet = np.int64((word >> np.uint32(8 * (at & 3))) & np.uint32(0xFF))
            _add_known(n.constant[t], row, shift, point, octet - zero, lanes)
            number = np.uint64(octet)
        else:
            number = n.narrow[t, at >> 2, at & 3]
            _add_unknown(
                n.low[t], n.high[t], n.constant[t], n.varying[t], n.weights[t], n.operand[t],
                row, shift, point, number,
                np.int32(field.low_part(number)), np.int32(field.high_part(number)), zero, lanes,
            )  # fmt: skip
        origins.uses_row(n, tile, base, k, lanes, numbering.WEIGHT, number)


@unchecked
def _add_known(
    constant: NDArray[np.int64],
    row: NDArray[np.uint32],
    shift: np.uint32,
    point: np.int32,
    value: np.int64,
    lanes: int,
) -> None:
    for lane in range(lanes):
        weight = np.int32((row[lane] >> shift) & np.uint32(0xFF)) - point
        constant[lane] += value * np.int64(weight)


@unchecked
def _add_unknown(
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    constant: NDArray[np.int64],
    varying: NDArray[np.int64],
    weights: NDArray[np.int64],
    operand: NDArray[np.uint64],
    row: NDArray[np.uint32],
    shift: np.uint32,
    point: np.int32,
    number: np.uint64,
    low_part: np.int32,
    high_part: np.int32,
    zero: np.int64,
    lanes: int,
) -> None:
    for lane in range(lanes):
        weight = np.int64(np.int32((row[lane] >> shift) & np.uint32(0xFF)) - point)
        low[lane] += weight * np.int64(low_part)
        high[lane] += weight * np.int64(high_part)
        constant[lane] -= weight * zero
        weights[lane] += weight
        # The same byte again is no other. Without branches, so that lanes are taken together.
        used, first = weight != 0, varying[lane] == 0
        operand[lane] = number if used and first else operand[lane]
        others = np.int64(1) if operand[lane] == number and varying[lane] < MANY else np.int64(MANY)
        varying[lane] = others if used else varying[lane]


@inner
def _multiply_each(
    core: NumberedCore,
    tile: state.Tile,
    parameters: Parameters,
    segment: Segment,
    operand: int,
    granule: int,
) -> None:
    """Products of any kind, one by one."""
    n, t = core.numbering, tile.number
    width = 2 if parameters.activation_16bit else 1
    planes = 2 if parameters.parameter_16bit else 1
    most_activation = _most(width) if _keeps_reach(parameters) else 0
    most_weight = _most(planes) if _keeps_reach(parameters) else 0
    zero = np.int64(parameters.activation_zero_point)
    for k in range(parameters.products):
        if not works(parameters, k):
            continue
        activation, known = _narrow_value(n, tile, operand + width * k, width)
        _trace(core, tile, parameters, segment, operand, granule, k, activation)
        for lane in range(segment.lanes):
            point = np.int64(parameters.parameter_zero_point)
            if parameters.load_parameter_zero_point:
                at = row_base(core, tile, parameters, segment.zero_point_row) + lane
                point = np.int64(np.int32(tile.wide[at]))
                if not _is_whole(tile.wide_written[at]) or abs(point) >= _MOST_ZERO:
                    core.uninitialised += 1
                    point = np.int64(0)
            weight, is_constant = _wide_value(core, tile, parameters, granule + planes * k, lane)
            if known and is_constant:
                value = np.int64(activation) - zero
                n.constant[t, lane] += value * (np.int64(weight) - point)
            elif is_constant:
                factor = np.int64(weight) - point
                _add(n, t, lane, activation, factor, most_activation)
                _has_bytes(n, t, lane, width if factor else 0)
                n.constant[t, lane] -= factor * zero
            elif known:
                factor = np.int64(activation) - zero
                _add(n, t, lane, weight, factor, most_weight)
                _has_bytes(n, t, lane, planes if factor else 0)
                n.constant[t, lane] -= factor * point
            else:
                one = field.subtracted(activation, field.of_integer(zero))
                other = field.subtracted(weight, field.of_integer(point))
                _add_many(n, t, lane, product_of(one, other))


@inner
def _trace(
    core: NumberedCore,
    tile: state.Tile,
    parameters: Parameters,
    segment: Segment,
    operand: int,
    granule: int,
    k: int,
    activation: np.uint64,
) -> None:
    """What products number ``k`` of an iteration take of the parameters."""
    n, t, lanes = core.numbering, tile.number, segment.lanes
    if not n.traces:
        return
    planes = 2 if parameters.parameter_16bit else 1
    for at in range(granule + planes * k, granule + planes * (k + 1)):
        base = row_base(core, tile, parameters, at >> 2)
        origins.uses_row(n, tile, base, at & 3, lanes, numbering.WEIGHT, activation)
    width = 2 if parameters.activation_16bit else 1
    for at in range(operand + width * k, operand + width * (k + 1)):
        word = (at & NARROW_MASK) >> 2
        written, numbers = tile.narrow_written[word], n.narrow[t, word]
        if origins.is_origin(written, at & 3):
            for lane in range(lanes):
                value, _ = _wide_value(core, tile, parameters, granule + planes * k, lane)
                origins.uses_byte(n, t, lane, written, numbers, at & 3, numbering.WEIGHT, value)


@inner
def product_of(one: np.uint64, other: np.uint64) -> np.uint64:
    """The variable that the product of two values is, in either order."""
    low, high = min(one, other), max(one, other)
    return field.mixed(field.mixed(_PAIR, low), high)


@inner
def _interpolate(
    n: Numbering,
    tile: state.Tile,
    lanes: int,
    operands: NDArray[np.int32],
    weights: NDArray[np.int16],
) -> None:
    for i in range(len(operands)):
        for lane in range(lanes):
            number, known = _narrow_value(n, tile, operands[i] + lane, 1)
            at = (operands[i] + lane) & NARROW_MASK
            written, numbers = tile.narrow_written[at >> 2], n.narrow[tile.number, at >> 2]
            value = np.uint64(i)
            origins.uses_byte(
                n, tile.number, lane, written, numbers, at & 3, numbering.OTHER, value
            )
            if known:
                n.constant[tile.number, lane] += np.int64(number) * weights[i]
            else:
                _add(n, tile.number, lane, number, np.int64(weights[i]), _LARGEST_BYTE)


@inner
def _reduce(
    core: NumberedCore,
    tile: state.Tile,
    parameters: Parameters,
    lanes: int,
    granules: NDArray[np.int16],
) -> None:
    n, t = core.numbering, tile.number
    planes = 2 if parameters.parameter_16bit else 1
    zero = np.int64(parameters.parameter_zero_point)
    for i in range(len(granules)):
        for k in range(values_of(parameters, granules[i])):
            if not works(parameters, k):
                continue
            for at in range(granules[i] + planes * k, granules[i] + planes * (k + 1)):
                base = row_base(core, tile, parameters, at >> 2)
                origins.uses_row(n, tile, base, at & 3, lanes, numbering.OTHER, np.uint64(i))
            for lane in range(lanes):
                number, known = _wide_value(core, tile, parameters, granules[i] + planes * k, lane)
                if parameters.opcode == MAXIMUM:
                    n.reach[t, lane] = max(n.reach[t, lane], _most(planes))
                    _take_value(n, t, lane, number)
                elif known:
                    n.constant[t, lane] += np.int64(number) - zero
                else:
                    n.constant[t, lane] -= zero
                    _add(n, t, lane, number, 1, _most(planes))
                    _has_bytes(n, t, lane, planes)


# --- maxima --------------------------------------------------------------------------------------


@inner
def _take_value(n: Numbering, t: int, lane: int, number: np.uint64) -> None:
    """A maximum is of this value, too; of those that are constants the greatest counts."""
    slot = _slot_of(n, number)
    count = n.set_count[slot]
    known = n.set_number[slot] == number and number >= np.uint64(field.CONSTANTS)
    if known and count <= numbering.MOST_EXPANDED:
        for k in range(count):
            _insert(n, t, lane, n.pool[n.set_first[slot] + k])
    else:
        _insert(n, t, lane, number)


@inner
def _insert(n: Numbering, t: int, lane: int, number: np.uint64) -> None:
    """Keep the values of a maximum in order. A constant stands first."""
    values, count = n.values[t, lane], n.count[t, lane]
    if number < np.uint64(field.CONSTANTS) and count and values[0] < np.uint64(field.CONSTANTS):
        values[0] = max(values[0], number)
        return
    at = count
    while at > 0 and values[at - 1] > number:
        at -= 1
    if at > 0 and values[at - 1] == number:
        return
    if count == numbering.MOST_VALUES:
        n.lost += 1
        return
    for k in range(count, at, -1):
        values[k] = values[k - 1]
    values[at] = number
    n.count[t, lane] = count + 1


@inner
def set_number(values: NDArray[np.uint64], count: int) -> np.uint64:
    """The number of the greatest of several values, which are in order, each once."""
    number = field.mixed(_SET, np.uint64(count))
    for k in range(count):
        number = field.mixed(number, values[k])
    return number


@inner
def _slot_of(n: Numbering, number: np.uint64) -> int:
    """Where a maximum is remembered, or would be."""
    slot = int(np.int64(number & np.uint64(numbering.SETS - 1)))
    while n.set_count[slot] and n.set_number[slot] != number:
        slot = (slot + 1) & (numbering.SETS - 1)
    return slot


@inner
def _remember(n: Numbering, number: np.uint64, values: NDArray[np.uint64], count: int) -> None:
    slot = _slot_of(n, number)
    if n.set_count[slot]:
        return
    if n.pooled + count > numbering.POOL or 2 * n.sets > numbering.SETS:
        n.lost += 1
        return
    n.set_number[slot], n.set_first[slot], n.set_count[slot] = number, n.pooled, count
    for k in range(count):
        n.pool[n.pooled + k] = values[k]
    n.pooled += count
    n.sets += 1


@inner
def _maximum(n: Numbering, t: int, lane: int) -> np.uint64:
    """The number of the maximum of a lane."""
    values, count = n.values[t, lane], n.count[t, lane]
    if count == 0:
        return field.of_integer(_LEAST)
    if count > 1 and values[0] == 0 and n.reach[t, lane] < numbering.UNBOUNDED:
        # Nothing is less.
        values, count = values[1:], count - 1
    if count == 1:
        return np.uint64(values[0])
    number = set_number(values, count)
    _remember(n, number, values, count)
    return number


# --- results -------------------------------------------------------------------------------------


@numbering.hook
@inner
def loads_table(core: NumberedCore, tile: state.Tile) -> None:
    """A tile has got a table of coefficients."""
    core.numbering.table[tile.number] = table_number(
        tile.coefficient.view(np.uint32), tile.lower_bound.view(np.uint32)
    )


@inner
def table_number(coefficients: NDArray[np.uint32], bounds: NDArray[np.uint32]) -> np.uint64:
    """A hash of a table, by the words of its coefficients and of its lower bounds."""
    key = _TABLE
    for k in range(_TABLE_WORDS):
        key = field.mixed(key, np.uint64(coefficients[k]))
    for k in range(chip.TABLE_SEGMENTS - 1):
        key = field.mixed(key, np.uint64(bounds[k]))
    return key


@numbering.hook
@inner
def stores(core: NumberedCore, tile: state.Tile, parameters: Parameters, segment: Segment) -> None:
    """The sums are put aside: four bytes each, which make up the element of the sum."""
    n, t = core.numbering, tile.number
    base = row_base(core, tile, parameters, segment.sum_row)
    numbering.overwrites(n, t, base, n.sum[t])
    for lane in range(segment.lanes):
        if _is_whole(tile.wide_written[base + lane]):
            continue
        if parameters.opcode == MAXIMUM:
            total = _maximum(n, t, lane)
        else:
            total = field.of_parts(n.low[t, lane], n.high[t, lane])
            total = field.added(total, field.of_integer(n.constant[t, lane]))
            if n.varying[t, lane] == 1:
                aside = n.aside[_WIDE_WORDS * t + base + lane]
                aside.total, aside.weight = total, n.weights[t, lane]
                aside.constant = n.constant[t, lane]
        target = n.wide[t, base + lane]
        rest = total
        for k in range(3, 0, -1):
            target[k] = field.mixed(field.mixed(_SUM_BYTE, total), np.uint64(k))
            part = field.multiplied(target[k], np.uint64(1) << np.uint64(8 * k))
            rest = field.subtracted(rest, part)
        target[0] = rest


@numbering.hook
@inner
def gives_results(
    core: NumberedCore, tile: state.Tile, unit: state.Unit, parameters: Parameters, lanes: int
) -> None:
    """Results leave the output stage; those that follow from nothing unknown are as they are."""
    n, t = core.numbering, tile.number
    half = scale_half(unit, parameters)
    form = _form(n, tile, parameters)
    if parameters.function & TABLE and not tile.table_written:
        state.uninitialised(core, parameters.pc, tile.number, 0)
    for lane in range(lanes):
        unit.lane_written[lane] = state.WRITTEN
        if parameters.apply_bias:
            _uses_word(n, tile, chip.LANES * (2 + half) + lane, lane, numbering.BIAS)
        if parameters.use_scales:
            _uses_word(n, tile, chip.LANES * half + lane, lane, numbering.SCALE)
        if parameters.apply_bias:
            _add_computed(n, tile, chip.LANES * (2 + half) + lane, lane)
        if not _varies(n, t, lane):
            if parameters.use_scales and not _is_nothing(tile, unit, parameters, half, lane):
                _require_known(core, tile, parameters, chip.LANES * half + lane)
            continue
        scale = np.float32(parameters.output_scale)
        if parameters.use_scales:
            _require_known(core, tile, parameters, chip.LANES * half + lane)
            word = tile.scale_bias[chip.LANES * half + lane]
            scale = np.float32(np.float32(np.uint32(word).view(np.float32)) * scale)
        if scale == np.float32(0):
            # So programs blank what lies beside a tensor.
            continue
        unit.lane_written[lane] = np.uint32(0)
        bias = np.int64(parameters.immediate_bias)
        if parameters.apply_bias:
            at = chip.LANES * (2 + half) + lane
            known = _is_whole(tile.scale_bias_written[at])
            bias = np.int64(np.int32(tile.scale_bias[at])) if known else np.int64(0)
        _give(core, tile, unit, parameters, lane, scale, bias, form)


@inner
def _uses_word(n: Numbering, tile: state.Tile, at: int, lane: int, role: int) -> None:
    """A word of the scale/bias buffer is used."""
    written, numbers = tile.scale_bias_written[at], n.scale_bias[tile.number, at]
    for k in range(4):
        origins.uses_byte(n, tile.number, lane, written, numbers, k, role, np.uint64(k))


@inner
def _add_computed(n: Numbering, tile: state.Tile, at: int, lane: int) -> None:
    """A bias that a program computes is a part of the sum."""
    written = tile.scale_bias_written[at]
    if not _is_whole(written):
        number = _value(tile.scale_bias[at], written, n.scale_bias[tile.number, at])
        _add_many(n, tile.number, lane, number)


@inner
def _is_nothing(
    tile: state.Tile, unit: state.Unit, parameters: Parameters, half: int, lane: int
) -> bool:
    """The sum of a lane is 0 with its bias: so it is whatever scale it has, which lanes beside a
    tensor lack."""
    bias = np.int32(parameters.immediate_bias)
    if parameters.apply_bias:
        bias = np.int32(tile.scale_bias[chip.LANES * (2 + half) + lane])
    bounds = parameters.low_clip <= np.float32(0) and parameters.high_clip >= np.float32(0)
    plain = bounds and not parameters.function & TABLE
    return bool(plain and biased(unit.accumulator[lane], bias) == 0)


@inner
def _require_known(core: NumberedCore, tile: state.Tile, parameters: Parameters, at: int) -> None:
    """A scale has to be known."""
    if not _is_whole(tile.scale_bias_written[at]):
        state.originates(core, parameters.pc, tile.number, state.SCALE_BIAS, at)
        state.uninitialised(core, parameters.pc, tile.number, at)


@inner
def _form(n: Numbering, tile: state.Tile, parameters: Parameters) -> np.uint64:
    """What an instruction makes of its sums, but for the factor. An interpolation has no bounds but
    those of the result."""
    bounded = parameters.opcode != INTERPOLATE
    if parameters.function & (TABLE | RANGE_REDUCTION):
        return table_form(
            n.table[tile.number],
            parameters.function,
            np.float32(parameters.low_clip),
            np.float32(parameters.high_clip),
            2 * (parameters.odd_function != 0)
            + (parameters.symmetric_function != 0)
            + 4 * (not bounded),
            parameters.output_zero_point,
        )
    highest = _LARGEST_WORD if parameters.function & OUTPUT_16BIT else _LARGEST_BYTE
    if np.isinf(parameters.high_clip) and highest == _LARGEST_BYTE:
        form = form_of(-1, highest, parameters.output_zero_point)
        if bounded and not (parameters.high_clip > 0 and parameters.low_clip == -np.inf):
            form = field.mixed(form, np.uint64(np.float32(parameters.high_clip).view(np.uint32)))
            form = field.mixed(form, np.uint64(np.float32(parameters.low_clip).view(np.uint32)))
        return form
    low, high = 0, highest
    if bounded:
        low = _bound(parameters.low_clip, parameters.output_zero_point, highest)
        high = _bound(parameters.high_clip, parameters.output_zero_point, highest)
    return form_of(low, high, parameters.output_zero_point)


@inner
def table_form(
    table: np.uint64,
    function: int,
    low: np.float32,
    high: np.float32,
    symmetry: int,
    zero_point: int,
) -> np.uint64:
    """A function by the hash of its table (:func:`table_number`), its bounds and its symmetry."""
    key = field.mixed(table, np.uint64(function))
    key = field.mixed(key, np.uint64(np.float32(low).view(np.uint32)))
    key = field.mixed(key, np.uint64(np.float32(high).view(np.uint32)))
    return field.mixed(field.mixed(key, np.uint64(symmetry)), np.uint64(zero_point))


@inner
def form_of(low: int, high: int, zero_point: int) -> np.uint64:
    """Bounds of a result, as bytes, and its zero point. Without bounds (``low`` of -1), of a result
    beyond a byte the lower one is left."""
    key = field.mixed(np.uint64(low + 1), np.uint64(high + 1))
    return field.mixed(key, np.uint64(zero_point))


@inner
def _bound(bound: np.float32, zero_point: int, highest: int) -> int:
    """A bound before the zero point is added, as a value of the result."""
    limited = max(np.float32(-(1 << 20)), min(np.float32(1 << 20), np.float32(bound)))
    return max(0, min(highest, int(np.rint(limited)) + zero_point))


@inner
def result_number(total: np.uint64, scale: np.float32, form: np.uint64) -> np.uint64:
    """The number of what an output stage makes of a sum."""
    return field.mixed(field.mixed(form, np.uint64(np.float32(scale).view(np.uint32))), total)


@inner
def _give(
    core: NumberedCore,
    tile: state.Tile,
    unit: state.Unit,
    parameters: Parameters,
    lane: int,
    scale: np.float32,
    bias: np.int64,
    form: np.uint64,
) -> None:
    n, t = core.numbering, tile.number
    constant = n.constant[t, lane] + bias
    unknown = field.of_parts(n.low[t, lane], n.high[t, lane])
    single, weight = n.varying[t, lane] == 1, n.weights[t, lane]
    if parameters.opcode == MAXIMUM:
        single, weight = n.varying[t, lane] == 0 and n.reach[t, lane] <= _LARGEST_BYTE, 1
        unknown = field.added(unknown, _maximum(n, t, lane))
    total = field.added(unknown, field.of_integer(constant))
    number = result_number(total, scale, form)
    if bias and abs(n.constant[t, lane]) >= _GREAT:
        # The sum may wrap before its bias saturates: it is no function of their total.
        number = field.mixed(field.mixed(_BEYOND, number), field.of_integer(bias))
    tabled, wide = parameters.function & TABLE, parameters.function & OUTPUT_16BIT
    blanks = bias == _BLANK
    if wide and not tabled:
        if n.reach[t, lane] <= _LARGEST_WORD and _keeps_16_bits(parameters, scale, constant):
            number = unknown
    elif single and (tabled or blanks or _may_keep(scale, weight)):
        argument = field.multiplied(unknown, _inverse(n, weight))
        key = _function_of_byte(
            n, tile, parameters, scale, weight, n.constant[t, lane], np.int32(bias), form
        )
        if key == 0:
            number = argument
        elif (tabled or blanks) and is_constant(key):
            # Whatever the byte is: no other lane needs to know it.
            unit.lane_written[lane] = state.WRITTEN
            unit.rounded[lane] = constant_of(key)
            return
        elif tabled:
            number = field.mixed(key, argument)
    entry = n.made[n.results_made]
    entry.number, entry.total, entry.scale = number, total, np.float32(scale).view(np.uint32)
    entry.instruction, entry.tile, entry.lane = unit.current, np.uint8(t), np.uint8(lane)
    entry.sum = n.sum[t]
    n.results_made += 1
    if wide:
        high = field.mixed(_HIGH_BYTE, number)
        n.results[t, 2 * lane + 1] = high
        n.results[t, 2 * lane] = field.subtracted(number, field.multiplied(high, np.uint64(256)))
    else:
        n.results[t, lane] = number


@inner
def _may_keep(scale: np.float32, weight: int) -> bool:
    """A byte may come out as it went in."""
    return bool(abs(np.float64(scale) * weight - 1) < 1 / 128)


@inner
def _keeps_16_bits(parameters: Parameters, scale: np.float32, constant: np.int64) -> bool:
    """A value of 16 bits comes out as it went in."""
    point = parameters.output_zero_point
    whole = parameters.high_clip >= np.float32(0xFFFF) and parameters.low_clip <= np.float32(-point)
    return bool(whole and constant == -point and abs(np.float64(scale) - 1) < 2.0**-18)


@inner
def _inverse(n: Numbering, weight: int) -> np.uint64:
    magnitude = abs(weight)
    if magnitude >= numbering.INVERSES:
        return field.inverse(field.of_integer(weight))
    if n.inverses[magnitude] == 0:
        n.inverses[magnitude] = field.inverse(field.of_integer(magnitude))
    found = n.inverses[magnitude]
    return field.subtracted(np.uint64(0), found) if weight < 0 else found


@inner
def _function_of_byte(
    n: Numbering,
    tile: state.Tile,
    parameters: Parameters,
    scale: np.float32,
    weight: int,
    constant: np.int64,
    bias: np.int32,
    form: np.uint64,
) -> np.uint64:
    """The number of the function of a byte that the output stage is, by its 256 values; 0: a byte
    comes out as it went in."""
    key = field.mixed(form, np.uint64(np.float32(scale).view(np.uint32)))
    key = field.mixed(field.mixed(key, field.of_integer(weight)), field.of_integer(constant))
    key = field.mixed(key, field.of_integer(np.int64(bias)))
    # Numbers of forms do not tell the low byte from saturation beyond the factor's sign.
    key = field.mixed(key, np.uint64(parameters.opcode))
    slot = np.int64(key & np.uint64(numbering.FUNCTIONS - 1))
    if n.function_key[slot] == key:
        return np.uint64(n.function_number[slot])
    for octet in range(_OCTETS):
        total = np.int32(np.int64(octet) * weight + constant)
        n.scaled[octet] = np.float32(biased(total, bias)) * scale
    if parameters.opcode != INTERPOLATE:
        clip(n.scaled, parameters.low_clip, parameters.high_clip, _OCTETS)
    if parameters.function & TABLE:
        for octet in range(_OCTETS):
            n.scaled[octet] = function(
                tile.coefficient, tile.lower_bound, parameters, n.scaled[octet]
            )
    wide = parameters.function & OUTPUT_16BIT
    if np.isinf(parameters.high_clip) and not wide:
        for octet in range(_OCTETS):
            whole = np.int64(np.rint(n.scaled[octet])) + parameters.output_zero_point
            n.rounded[octet] = np.int32(whole & 0xFF)
    else:
        saturate(
            n.scaled,
            np.float32(parameters.output_zero_point),
            np.float32(0xFFFF) if wide else np.float32(0xFF),
            n.rounded,
            _OCTETS,
        )
    n.function_key[slot] = key
    n.function_number[slot] = function_number(n.rounded)
    return np.uint64(n.function_number[slot])


@inner
def function_number(values: NDArray[np.int32]) -> np.uint64:
    """The number of a function of a byte by its values; 0 of the one that changes nothing, and one
    of the next (:func:`is_constant`) of one whose values are all the same."""
    same, constant, key = True, True, _BYTE_FUNCTION
    for octet in range(_OCTETS):
        same = same and values[octet] == octet
        constant = constant and values[octet] == values[0]
        key = field.mixed(key, np.uint64(values[octet]))
    if constant:
        return np.uint64(values[0]) + np.uint64(1)
    return np.uint64(0) if same else key


@inner
def is_constant(function: np.uint64) -> bool:
    """A function of a byte has the same value of each; a hash is as small by a chance of 2^-44."""
    return bool(np.uint64(0) < function <= np.uint64(_LARGEST_WORD + 1))


@inner
def constant_of(function: np.uint64) -> np.uint32:
    """The only value of a function that is constant."""
    return np.uint32(function - np.uint64(1))


@numbering.hook
@inner
def writes_word(core: NumberedCore, tile: state.Tile, number: int, address: int) -> None:
    """A word of results goes to narrow memory, from a byte address on."""
    n = core.numbering
    for k in range(4):
        at = address + k
        n.narrow[tile.number, at >> 2, at & 3] = n.results[tile.number, 4 * number + k]
