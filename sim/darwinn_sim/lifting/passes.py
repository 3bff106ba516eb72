"""Passes over all iterations of a walk: who is like whom, who follows whom, who is needed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel.compiled import compiled, inner
from darwinn_sim.kernel.structure import Records
from darwinn_sim.lifting import tape
from darwinn_sim.lifting.tape import Tape, level_of, need
from darwinn_sim.units.identities import Execution, last_granule
from darwinn_sim.units.tensor_cells import INTERPOLATE, MAC
from darwinn_sim.units.tensor_plan import TensorPlan
from darwinn_sim.units.tensor_records import Parameters

EVERY_BYTE = -1
"""Of a row, as an interpolation takes it."""

_BLOCK = 4


class Iterations(NamedTuple):
    """Iterations in the order of runs of sums: where the four bytes of their activations are in the
    notes (-1: nowhere), where their rows begin in the notes, how many those are, and what tells
    them from others: the plane in the row, or the weight of an interpolation.
    """

    operand: NDArray[np.int32]
    row: NDArray[np.int32]
    rows: NDArray[np.uint8]
    place: NDArray[np.int16]


class Runs(NamedTuple):
    """Runs of sums: their iterations ``begin`` to ``end``; the run that they go on from (-1: none),
    or a row of sums (-1: none); where the masks begin that say which bytes of activations matter;
    whether their rows are data, and which planes from an iteration's own on are taken of them (bit
    k: that k further; all: ``EVERY_BYTE``); the row of biases (-1: none); how many lanes they
    have, and bytes of sums that are put aside; the first identity of what they make, and how many
    there are with those; when they were over.
    """

    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    before: NDArray[np.int64]
    sums: NDArray[np.int32]
    mask: NDArray[np.int64]
    data: NDArray[np.bool_]
    planes: NDArray[np.int64]
    biases: NDArray[np.int32]
    lanes: NDArray[np.int64]
    stored: NDArray[np.int64]
    identity: NDArray[np.int64]
    made: NDArray[np.int64]
    time: NDArray[np.int64]


@compiled
def find_iterations(
    notes: Records[Execution],
    kinds: NDArray[np.int64],
    tensor: Records[Parameters],
    plan: TensorPlan,
    begins: NDArray[np.int64],
    found: Iterations,
) -> None:
    """Fill in the iterations of the segments of ``notes``, whose instructions are ``kinds``."""
    count = 0
    for n in range(len(notes)):
        note = notes[n]
        parameters = tensor[kinds[n]]
        place = plan.place[kinds[n]]
        segment = plan.segment[place.segment + note.position]
        begins[n] = count
        operand, row = note.operands, note.rows
        for k in range(segment.count):
            granule = plan.granule[place.iteration + segment.first + k]
            rows = 1
            found.place[count] = granule
            found.operand[count] = -1
            if parameters.opcode != INTERPOLATE:
                rows = (last_granule(parameters, granule) >> 2) - (granule >> 2) + 1
                found.place[count] = granule & 3
            if parameters.opcode == MAC:
                found.operand[count] = operand
                operand += 1
            found.row[count] = row
            found.rows[count] = rows
            row += rows
            count += 1
    begins[len(notes)] = count


@inner
def _mixed(key: np.uint64, value: int) -> np.uint64:
    key = (key ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    return np.uint64(key ^ (key >> np.uint64(29)))


@compiled
def keys(
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    seeds: NDArray[np.int64],
    by_rows: NDArray[np.bool_],
    by_operands: NDArray[np.bool_],
    iterations: Iterations,
    rows: NDArray[np.int32],
    operands: NDArray[np.int32],
    found: NDArray[np.uint64],
) -> None:
    """A number for each run, alike for those that are: by their places, and by rows or operands."""
    for r in range(len(begin)):
        # One after the other: a seed that is the size would cancel it, and leave a key of 0.
        key = _mixed(_mixed(np.uint64(0), seeds[r]), end[r] - begin[r])
        for i in range(begin[r], end[r]):
            key = _mixed(key, iterations.place[i])
            if by_rows[r]:
                for k in range(iterations.rows[i]):
                    key = _mixed(key, rows[iterations.row[i] + k])
            if by_operands[r]:
                for k in range(_BLOCK):
                    key = _mixed(key, operands[iterations.operand[i], k])
        found[r] = key


@compiled
def differ(
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    like: NDArray[np.int64],
    by_rows: NDArray[np.bool_],
    by_operands: NDArray[np.bool_],
    iterations: Iterations,
    rows: NDArray[np.int32],
    operands: NDArray[np.int32],
) -> bool:
    """Whether any run differs from the one that it is said to be like: keys are no proof."""
    for r in range(len(begin)):
        shift = begin[like[r]] - begin[r]
        if end[like[r]] - begin[like[r]] != end[r] - begin[r]:
            return True
        for i in range(begin[r], end[r] if shift else begin[r]):
            j = i + shift
            if (
                iterations.place[i] != iterations.place[j]
                or iterations.rows[i] != iterations.rows[j]
            ):
                return True
            if by_rows[r]:
                for k in range(iterations.rows[i]):
                    if rows[iterations.row[i] + k] != rows[iterations.row[j] + k]:
                        return True
            if by_operands[r]:
                for k in range(_BLOCK):
                    one = operands[iterations.operand[i], k]
                    if one != operands[iterations.operand[j], k]:
                        return True
    return False


@inner
def _taken(planes: int, place: int, byte: int, row: int) -> bool:
    """Whether a byte of an iteration's row, the first or a further one, is taken."""
    if planes == EVERY_BYTE:
        return True
    further = 4 * row + (byte & 3) - place
    return bool(further >= 0 and planes >> further & 1)


@inner
def _level_of_row(
    row: NDArray[np.int32], planes: int, place: int, further: int, levels: NDArray[np.int32]
) -> int:
    level = 0
    for byte in range(len(row)):
        if _taken(planes, place, byte, further):
            level = max(level, level_of(row[byte], levels))
    return level


@compiled
def find_levels(
    order: NDArray[np.int64],
    runs: Runs,
    iterations: Iterations,
    masks: NDArray[np.uint8],
    rows: NDArray[np.int32],
    operands: NDArray[np.int32],
    distinct: NDArray[np.int32],
    operations: Tape,
    levels: NDArray[np.int32],
    found: NDArray[np.int32],
    found_operations: NDArray[np.int32],
) -> None:
    """How many runs, one after another, each run and operation follows from: in the order of time.
    ``levels``: of blocks of identities.
    """
    done = 0
    for r in order:
        done = tape.find_levels(operations, done, runs.identity[r], levels, found_operations)
        level = 0
        if runs.before[r] >= 0:
            level = int(found[runs.before[r]])
        elif runs.sums[r] >= 0:
            for number in distinct[runs.sums[r]]:
                level = max(level, level_of(number, levels))
        if runs.biases[r] >= 0:
            for number in distinct[runs.biases[r]]:
                level = max(level, level_of(number, levels))
        for i in range(runs.begin[r], runs.end[r]):
            mask = masks[runs.mask[r] + i - runs.begin[r]]
            for k in range(_BLOCK):
                if mask >> k & 1:
                    number = operands[iterations.operand[i], k]
                    level = max(level, level_of(number, levels))
            if runs.data[r]:
                for k in range(iterations.rows[i]):
                    row = distinct[rows[iterations.row[i] + k]]
                    planes, place = runs.planes[r], iterations.place[i]
                    level = max(level, _level_of_row(row, planes, place, k, levels))
        found[r] = level
        after = level + 1
        first = runs.identity[r] // _BLOCK
        for block in range(first, first + (runs.made[r] + _BLOCK - 1) // _BLOCK):
            levels[block] = after
    tape.find_levels(operations, done, _NEVER, levels, found_operations)


@inner
def _is_needed(runs: Runs, r: int, needed: NDArray[np.bool_]) -> bool:
    for identity in range(runs.identity[r], runs.identity[r] + runs.made[r]):
        if needed[identity]:
            return True
    return False


@inner
def _lane_is_needed(runs: Runs, r: int, lane: int, needed: NDArray[np.bool_]) -> bool:
    """Something of a lane of a run is needed: of its sums, or of its result."""
    if lane >= runs.lanes[r]:
        return False
    results = runs.identity[r] + runs.stored[r]
    size = (runs.made[r] - runs.stored[r]) // runs.lanes[r]
    found = False
    for k in range(size):
        found = found or needed[results + size * lane + k]
    for k in range(4 if runs.stored[r] else 0):
        found = found or needed[runs.identity[r] + 4 * lane + k]
    return found


@inner
def _need_row(
    row: NDArray[np.int32],
    runs: Runs,
    r: int,
    planes: int,
    place: int,
    further: int,
    needed: NDArray[np.bool_],
) -> None:
    """What of a row a run takes for the lanes that are needed; where weights are constant, all."""
    for byte in range(len(row)):
        lane = byte if planes == EVERY_BYTE and runs.data[r] else byte >> 2
        if runs.data[r] and not _lane_is_needed(runs, r, lane, needed):
            continue
        if _taken(planes, place, byte, further):
            need(row[byte], needed)


_NEVER = 1 << 62
"""More than any identity."""

_WHOLE_WORDS = 0b1111
"""Planes of a row of int32."""


@compiled
def find_needed(
    order: NDArray[np.int64],
    runs: Runs,
    iterations: Iterations,
    masks: NDArray[np.uint8],
    rows: NDArray[np.int32],
    operands: NDArray[np.int32],
    distinct: NDArray[np.int32],
    operations: Tape,
    needed: NDArray[np.bool_],
    continued: NDArray[np.bool_],
    needed_operations: NDArray[np.bool_],
) -> None:
    """Which identities, and operations, are needed for those that are: backwards in time.
    ``continued``: runs whose sums another one goes on from. What is needed of lanes that nobody
    uses does not count where rows are data.
    """
    left = len(operations.identity)
    for n in range(len(order) - 1, -1, -1):
        r = order[n]
        left = tape.find_needed(operations, left, runs.identity[r], needed, needed_operations)
        if not continued[r] and not _is_needed(runs, r, needed):
            continue
        if runs.before[r] >= 0:
            continued[runs.before[r]] = True
        elif runs.sums[r] >= 0:
            _need_row(distinct[runs.sums[r]], runs, r, _WHOLE_WORDS, 0, 0, needed)
        if runs.biases[r] >= 0:
            _need_row(distinct[runs.biases[r]], runs, r, _WHOLE_WORDS, 0, 0, needed)
        for i in range(runs.begin[r], runs.end[r]):
            mask = masks[runs.mask[r] + i - runs.begin[r]]
            for k in range(_BLOCK):
                if mask >> k & 1:
                    need(operands[iterations.operand[i], k], needed)
            for k in range(iterations.rows[i] if runs.data[r] else 0):
                row = distinct[rows[iterations.row[i] + k]]
                _need_row(row, runs, r, runs.planes[r], iterations.place[i], k, needed)
    tape.find_needed(operations, left, 0, needed, needed_operations)
