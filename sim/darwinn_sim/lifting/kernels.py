"""Kernels of lifted programs: sums, and what is made of them, for many inputs at once.

``values`` holds a byte of each input for each slot, the inputs of a slot side by side. What a stage
makes of a lane lies in slots that follow each other from position to position, and so, mostly, does
what a column of operands takes: loops go over positions and inputs together, and one input takes
as little for each of its bytes as many do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel.compiled import entry, inner, unchecked
from darwinn_sim.kernel.structure import Int32, Record, Records
from darwinn_sim.lifting.scalar_steps import WordOperation, perform
from darwinn_sim.units.output_stage import OUTPUT_16BIT, TABLE, biased, clip, function, saturate
from darwinn_sim.units.tensor_cells import INTERPOLATE
from darwinn_sim.units.tensor_records import Parameters

PRODUCTS, MAXIMUM, PAIRS, OPERATIONS = range(4)
"""How sums are made: weights times bytes, the greatest of values, values times values. Or there are
no sums, but operations on words."""

AT_ONCE = 4096
"""Sums that are made at once, of one lane: their numbers are used while they are in a cache."""

_LEAST = np.int32(-(1 << 30))

Values = NDArray[np.uint8]
Numbers32 = NDArray[np.int32]
Reals = NDArray[np.float32]


class Span(Record):
    """Positions before ``end``, up to which the span before goes, of a column of operands: the one
    of position p is in slot ``origin + stride * p``."""

    origin: int
    stride: Int32
    end: Int32


class Step(Record):
    """A stage with slots. ``how`` its sums are made; ``columns`` of operands from ``column`` on,
    behind which PAIRS have ``others``, and values of ``width`` and ``other_width`` bytes that
    ``zero`` and ``other_zero`` are taken from; ``lanes`` from ``lane`` on. Sums that are ``biased``
    get a bias at last, to which the columns from ``bias_column`` on belong. ``parameters``: number
    of the tensor instruction, -1: sums are put aside as they are; ``table`` of its function.
    ``operation``: the first one on words, of which there is one at each position.
    Byte k of lane n at position p goes to ``slot + n * of_lane + k * of_byte + p * of_position``.
    """

    how: Int32
    operation: Int32
    positions: Int32
    column: Int32
    columns: Int32
    others: Int32
    width: Int32
    other_width: Int32
    zero: Int32
    other_zero: Int32
    lane: Int32
    lanes: Int32
    biased: Int32
    bias_column: Int32
    parameters: Int32
    table: Int32
    slot: Int32
    of_lane: Int32
    of_byte: Int32
    of_position: Int32


class StepPlan(NamedTuple):
    """All steps of a program. ``tensor`` instructions; ``columns``: where the spans of each column
    begin, and the last ones end; ``offset``, ``bias``, ``scale`` and ``weights`` of each lane
    (where they begin, and the last ones end), ``weight`` and ``weighted``, the column of its step
    that it is of; ``coefficient`` and ``lower_bound`` of tables, a row each; ``operations`` on
    words.
    """

    tensor: Records[Parameters]
    steps: Records[Step]
    spans: Records[Span]
    columns: Numbers32
    offset: Numbers32
    bias: Numbers32
    scale: Reals
    weights: Numbers32
    weight: Numbers32
    weighted: Numbers32
    coefficient: Reals
    lower_bound: Reals
    operations: Records[WordOperation]


class StepRoom(NamedTuple):
    """``at``: the span of each column of a step that has the next position; ``total`` and
    ``scaled``: sums of a lane; room for values, and the ``greatest`` of them."""

    at: Numbers32
    total: Numbers32
    scaled: Reals
    one: Numbers32
    other: Numbers32
    greatest: Numbers32


def room_of(plan: StepPlan, inputs: int) -> StepRoom:
    """StepRoom for any step of ``plan``, for as many inputs: for whole positions."""
    columns = int((plan.steps["columns"] + plan.steps["others"]).max(initial=0))
    count = max(AT_ONCE // inputs, 1) * inputs
    total, one, other, greatest = (np.zeros(count, np.int32) for _ in range(4))
    scaled = np.zeros(count, np.float32)
    return StepRoom(np.zeros(columns, np.int32), total, scaled, one, other, greatest)


@entry
def find_spans(slots: Numbers32, spans: Records[Span], ends: Numbers32) -> None:
    """Spans of each row of ``slots``, which has room for as many as it has slots; ``ends``: where
    those of each row end."""
    count = 0
    for k in range(len(slots)):
        row = slots[k]
        p = 0
        while p < len(row):
            begin = p
            p += 1
            stride = 1
            if p < len(row):
                stride = row[p] - row[begin]
                p += 1
            while p < len(row) and row[p] - row[p - 1] == stride:
                p += 1
            spans[count].origin = row[begin] - stride * begin
            spans[count].stride = stride
            spans[count].end = p
            count += 1
        ends[k] = count


@entry
def begin(plan: StepPlan, number: int, room: StepRoom) -> None:
    """Begin with the first position of a step."""
    _begin(plan, plan.steps[number], room)


@entry
def gather(
    plan: StepPlan,
    number: int,
    first: int,
    inputs: int,
    room: StepRoom,
    values: Values,
    gathered: Reals,
) -> None:
    """Bytes minus their zero point: (columns, positions * inputs), of the positions from ``first``
    on, before which the ones before were gathered."""
    step = plan.steps[number]
    last = first + gathered.shape[1] // inputs
    for k in range(step.columns):
        s = room.at[k]
        p = first
        while p < last:
            span = plan.spans[s]
            end = min(span.end, last)
            part = gathered[k, (p - first) * inputs : (end - first) * inputs]
            stride = span.stride * inputs
            _convert(part, values, span.origin * inputs + stride * p, stride, inputs, step.zero)
            s += span.end == end
            p = end
        room.at[k] = s


@unchecked
def _convert(
    target: Reals, values: Values, first: int, stride: int, inputs: int, zero: int
) -> None:
    """Bytes of as many positions as ``target`` has room for; the program has numbered the slots."""
    less = np.float32(zero)
    if stride == inputs:
        row = values[first:]
        for k in range(len(target)):
            target[k] = np.float32(row[k]) - less
        return
    for p in range(len(target) // inputs):
        for k in range(inputs):
            target[p * inputs + k] = np.float32(values[first + stride * p + k]) - less


@entry
def finish(
    plan: StepPlan,
    number: int,
    first: int,
    inputs: int,
    room: StepRoom,
    sums: Reals | Numbers32,
    values: Values,
) -> None:
    """Results of sums (lanes, positions * inputs) of the positions from ``first`` on; float32 ones
    are whole numbers below 2^24."""
    step = plan.steps[number]
    for n in range(step.lanes):
        for begin in range(0, sums.shape[1], len(room.total)):
            end = min(begin + len(room.total), sums.shape[1])
            _take(room.total, sums[n, begin:end], plan.offset[step.lane + n])
            if step.biased:
                room.other[: end - begin] = plan.bias[step.lane + n]
                _add_biases(room.total, room.other, end - begin)
            _finish(plan, step, n, first + begin // inputs, end - begin, inputs, room, values)


@unchecked
def _take(total: Numbers32, sums: Reals | Numbers32, offset: np.int32) -> None:
    """As many as there are sums, for which there is room."""
    for k in range(len(sums)):
        total[k] = np.int32(np.int32(sums[k]) + offset)


@entry
def make(
    plan: StepPlan, first: int, last: int, inputs: int, room: StepRoom, values: Values
) -> None:
    """Make the steps from ``first`` on, before ``last``, none of which is a product of matrices."""
    at_once = len(room.total) // inputs
    for number in range(first, last):
        step = plan.steps[number]
        if step.how == OPERATIONS:
            last_operation = step.operation + step.positions
            perform(plan.operations, step.operation, last_operation, inputs, values)
            continue
        _begin(plan, step, room)
        for p in range(0, step.positions, at_once):
            end = min(p + at_once, step.positions)
            count = (end - p) * inputs
            for n in range(step.lanes):
                room.total[:count] = plan.offset[step.lane + n]
                if step.how == PRODUCTS:
                    _add_products(plan, step, n, p, end, inputs, room, values)
                elif step.how == MAXIMUM:
                    _add_maximum(plan, step, p, end, inputs, room, values)
                else:
                    _add_pairs(plan, step, p, end, inputs, room, values)
                if step.biased:
                    _bias(plan, step, n, p, end, inputs, room, values)
                _finish(plan, step, n, p, count, inputs, room, values)
            _advance(plan, step, end, room)


@inner
def _begin(plan: StepPlan, step: Step, room: StepRoom) -> None:
    for k in range(step.columns + step.others):
        room.at[k] = plan.columns[step.column + k]


@inner
def _advance(plan: StepPlan, step: Step, end: int, room: StepRoom) -> None:
    """Positions before ``end`` are over."""
    if end == step.positions:
        return
    for k in range(step.columns + step.others):
        while plan.spans[room.at[k]].end <= end:
            room.at[k] += 1


@inner
def _add_products(
    plan: StepPlan,
    step: Step,
    lane: int,
    first: int,
    last: int,
    inputs: int,
    room: StepRoom,
    values: Values,
) -> None:
    """Sums of few products: of the lane's weights, but for those of the bias."""
    begin = step.lane + lane
    for k in range(plan.weights[begin], plan.weights[begin + 1]):
        if plan.weighted[k] < step.bias_column:
            at = room.at[plan.weighted[k]]
            _add_column(room.total, plan, at, first, last, inputs, plan.weight[k], values)


@inner
def _bias(
    plan: StepPlan,
    step: Step,
    lane: int,
    first: int,
    last: int,
    inputs: int,
    room: StepRoom,
    values: Values,
) -> None:
    """Add the bias of a lane to its sums."""
    begin, count = step.lane + lane, (last - first) * inputs
    room.other[:count] = plan.bias[begin]
    for k in range(plan.weights[begin], plan.weights[begin + 1]):
        if plan.weighted[k] >= step.bias_column:
            at = room.at[plan.weighted[k]]
            _add_column(room.other, plan, at, first, last, inputs, plan.weight[k], values)
    _add_biases(room.total, room.other, count)


@unchecked
def _add_biases(total: Numbers32, biases: Numbers32, count: int) -> None:
    """Both have room for as many."""
    for k in range(count):
        total[k] = biased(total[k], biases[k])


@inner
def _add_maximum(
    plan: StepPlan, step: Step, first: int, last: int, inputs: int, room: StepRoom, values: Values
) -> None:
    """The greatest of values of one byte, or two."""
    count = (last - first) * inputs
    room.greatest[:count] = _LEAST
    for k in range(0, step.columns, step.width):
        _read(room.one, plan, room, k, step.width, 0, first, last, inputs, values)
        _raise(room.greatest, room.one, count)
    _add(room.total, room.greatest, count)


@inner
def _add_pairs(
    plan: StepPlan, step: Step, first: int, last: int, inputs: int, room: StepRoom, values: Values
) -> None:
    """Sums of values times values, of one byte or two each, minus their zero points."""
    for k in range(step.columns // step.width):
        one, other = k * step.width, step.columns + k * step.other_width
        _read(room.one, plan, room, one, step.width, step.zero, first, last, inputs, values)
        _read(
            *(room.other, plan, room, other, step.other_width, step.other_zero),
            *(first, last, inputs, values),
        )
        _add_products_of(room.total, room.one, room.other, (last - first) * inputs)


@inner
def _read(
    target: Numbers32,
    plan: StepPlan,
    room: StepRoom,
    column: int,
    width: int,
    zero: int,
    first: int,
    last: int,
    inputs: int,
    values: Values,
) -> None:
    """Values of the bytes of a column, or two, minus their zero point."""
    target[: (last - first) * inputs] = -zero
    for k in range(width):
        weight = np.int32(1 << 8 * k)
        _add_column(target, plan, room.at[column + k], first, last, inputs, weight, values)


@inner
def _add_column(
    total: Numbers32,
    plan: StepPlan,
    at: int,
    first: int,
    last: int,
    inputs: int,
    weight: np.int32,
    values: Values,
) -> None:
    """Add a weight times the bytes of a column, whose span at the first position is ``at``."""
    p = first
    while p < last:
        span = plan.spans[at]
        end = min(span.end, last)
        part = total[(p - first) * inputs : (end - first) * inputs]
        stride = span.stride * inputs
        _add_bytes(part, values, span.origin * inputs + stride * p, stride, inputs, weight)
        at += 1
        p = end


@unchecked
def _add_bytes(
    total: Numbers32, values: Values, first: int, stride: int, inputs: int, weight: np.int32
) -> None:
    """Of as many positions as there are sums of; the program has numbered the slots."""
    if stride == inputs:
        row = values[first:]
        for k in range(len(total)):
            total[k] += np.int32(weight * np.int32(row[k]))
        return
    for p in range(len(total) // inputs):
        for k in range(inputs):
            value = np.int32(values[first + stride * p + k])
            total[p * inputs + k] += np.int32(weight * value)


@unchecked
def _add(total: Numbers32, more: Numbers32, count: int) -> None:
    """Both have room for as many."""
    for k in range(count):
        total[k] += more[k]


@unchecked
def _raise(greatest: Numbers32, values: Numbers32, count: int) -> None:
    """Both have room for as many."""
    for k in range(count):
        greatest[k] = max(greatest[k], values[k])


@unchecked
def _add_products_of(total: Numbers32, one: Numbers32, other: Numbers32, count: int) -> None:
    """All have room for as many."""
    for k in range(count):
        total[k] += np.int32(one[k] * other[k])


@inner
def _finish(
    plan: StepPlan,
    step: Step,
    lane: int,
    first: int,
    count: int,
    inputs: int,
    room: StepRoom,
    values: Values,
) -> None:
    """What becomes of ``count`` sums of a lane, as in ``output_stage``."""
    begin = (step.slot + lane * step.of_lane + first * step.of_position) * inputs
    of_byte, of_position = step.of_byte * inputs, step.of_position * inputs
    total, scaled = room.total, room.scaled
    if step.parameters < 0:
        for k in range(4):
            _store(total, count, 8 * k, values[begin + k * of_byte :], of_position, inputs)
        return
    parameters = plan.tensor[step.parameters]
    _scale(total, scaled, plan.scale[step.lane + lane], count)
    if parameters.opcode != INTERPOLATE:
        clip(scaled, parameters.low_clip, parameters.high_clip, count)
    if parameters.function & TABLE:
        coefficient, bound = plan.coefficient[step.table], plan.lower_bound[step.table]
        for k in range(count):
            scaled[k] = function(coefficient, bound, parameters, scaled[k])
    offset = np.float32(parameters.output_zero_point)
    octets = 1
    if parameters.function & OUTPUT_16BIT:
        octets = 2
        saturate(scaled, offset, np.float32(0xFFFF), total, count)
    elif np.isinf(parameters.high_clip):
        for k in range(count):
            total[k] = (np.int64(np.rint(scaled[k])) + parameters.output_zero_point) & 0xFF
    else:
        saturate(scaled, offset, np.float32(0xFF), total, count)
    for k in range(octets):
        _store(total, count, 8 * k, values[begin + k * of_byte :], of_position, inputs)


@unchecked
def _scale(total: Numbers32, scaled: Reals, scale: np.float32, count: int) -> None:
    """Both have room for as many."""
    for k in range(count):
        scaled[k] = np.float32(total[k]) * scale


@unchecked
def _store(
    total: Numbers32, count: int, shift: int, values: Values, stride: int, inputs: int
) -> None:
    """A byte of as many results, the inputs of a position next to each other."""
    if stride == inputs:
        for k in range(count):
            values[k] = np.uint8(total[k] >> shift)
        return
    for p in range(count // inputs):
        for k in range(inputs):
            values[stride * p + k] = np.uint8(total[p * inputs + k] >> shift)
