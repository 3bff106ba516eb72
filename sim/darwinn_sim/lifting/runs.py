"""Runs of sums of a walk: which are alike, which go on from others, which are needed, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from darwinn_formats.limits import limits
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.kernel.structure import Records
from darwinn_sim.lifting import passes
from darwinn_sim.lifting.passes import Iterations, Runs
from darwinn_sim.lifting.tape import CONSTANTS
from darwinn_sim.lifting.walk import STALE, NotLifted, Walked, require_short
from darwinn_sim.units.identities import BLOCK, Execution
from darwinn_sim.units.output_stage import OUTPUT_16BIT
from darwinn_sim.units.tensor_cells import INTERPOLATE, MAC
from darwinn_sim.units.tensor_records import KEEP_SUMS, Parameters

Numbers = NDArray[np.int64]

_STATIC = (
    *("opcode", "working", "products", "activation_16bit", "parameter_16bit"),
    *("activation_zero_point", "parameter_zero_point", "load_parameter_zero_point"),
    *("apply_bias", "immediate_bias", "use_scales", "output_scale", "high_clip", "low_clip"),
    *("function", "odd_function", "symmetric_function", "output_zero_point"),
)
"""Fields of a tensor instruction that say how it computes."""


_MOST_NUMBERS = 1 << 62
"""What numbers of rows stay below; sorting them anew takes long."""

_BYTES_OF_A_WORD = 4 * (8 + 4)
"""Memory of the four weights of a lane in an iteration, while they are made and afterwards."""

_IN_CACHE = 512
"""Distinct rows that are looked at together."""


class Found(NamedTuple):
    """``runs`` with their ``iterations``. ``row``: the tensor instruction; ``kind``: the first one
    that computes alike; ``like``: a run that is alike, operands apart; ``lanes``; ``stored``: bytes
    of sums that are put aside, before those of results; ``constant``: whether data are multiplied
    with constant activations; ``zero_points``, ``scales``, ``biases``, ``table``: distinct rows;
    ``level``; ``needed``: identities; ``varies``: distinct rows that are not constant; and of
    operations of the scalar core ``operation_level`` and ``operation_needed``.
    """

    walked: Walked
    runs: Runs
    iterations: Iterations
    row: NDArray[np.int64]
    kind: NDArray[np.int64]
    like: NDArray[np.int64]
    lanes: NDArray[np.int64]
    stored: NDArray[np.int64]
    constant: NDArray[np.bool_]
    zero_points: NDArray[np.int32]
    scales: NDArray[np.int32]
    biases: NDArray[np.int32]
    table: NDArray[np.int32]
    level: NDArray[np.int32]
    needed: NDArray[np.bool_]
    varies: NDArray[np.bool_]
    operation_level: NDArray[np.int32]
    operation_needed: NDArray[np.bool_]


class _Reach(NamedTuple):
    """Level of each run, and which identities the outputs need; the same of operations."""

    level: NDArray[np.int32]
    needed: NDArray[np.bool_]
    operation_level: NDArray[np.int32]
    operation_needed: NDArray[np.bool_]


def find(walked: Walked) -> Found:
    """The runs of a walk.

    Raises:
        NotLifted: an output follows from what memories held beforehand.
    """
    tables = walked.program.tables
    plan, tensor = tables.tensor_plan, tables.tensor
    times = np.argsort(walked.executions["tile"], kind="stable")
    notes = walked.executions[times]
    rows_of = tables.row[notes["instruction"]]
    segments = plan.segment[plan.place["segment"][rows_of] + notes["position"]]
    first = np.flatnonzero(segments["starts"])
    if not len(first):
        raise NotLifted("it computes nothing in its tiles")
    last = np.append(first[1:], len(notes)) - 1
    lanes = segments["lanes"].astype(np.int64)
    run_of = np.cumsum(segments["starts"] != 0) - 1
    if not np.array_equal(lanes, lanes[first][run_of]) or not segments["ends"][last].all():
        raise NotLifted("lanes change within a sum")
    if not np.array_equal(notes["zero_points"], notes["zero_points"][first][run_of]):
        raise NotLifted("zero points change within a sum")
    row = rows_of[first]
    iterations, begins = _iterations(walked, notes, rows_of)
    begin, end = begins[first], begins[last + 1]
    require_short(int((end - begin).max()))
    stored = np.where(tensor["partial_sum_read"][row] & KEEP_SUMS, 0, 4 * lanes[first])
    size = np.where(tensor["function"][row] & OUTPUT_16BIT, 2, 1)
    made = stored + np.where(segments["outputs"][last], size * lanes[first], 0)
    mac = tensor["opcode"][row] == MAC
    varies = _varies(walked.distinct)
    data = ~mac | _some(varies[walked.rows], iterations, begin, end)
    constant = data & mac & ~_moves(walked, iterations, begin)
    kind = _kinds(tensor)[row]
    zeros = notes["zero_points"][first]
    seeds = joined(kind, lanes[first], zeros, data, constant)
    like = _alike(walked, iterations, begin, end, seeds, ~data, constant)
    classes = np.unique(like)
    multiplied = classes[~data[classes]]
    _require_room(int(((end - begin)[multiplied] * lanes[first][multiplied]).sum()))
    masks, starts = _masks(walked, iterations, begin, end, classes, row, data, lanes[first], zeros)
    before, sums = _before(walked, notes, first, last, lanes[first], stored)
    runs = Runs(
        *(begin, end, before, sums, starts[like], data, _planes(tensor)[row]),
        *(notes["biases"][last], lanes[first], stored),
        *(notes["identity"][last], made, times[last]),
    )
    reach = _reach(walked, runs, iterations, masks)
    return Found(
        *(walked, runs, iterations, row, kind, like, lanes[first], stored, constant),
        *(zeros, notes["scales"][last], notes["biases"][last], notes["table"][last]),
        *(reach.level, reach.needed, varies),
        *(reach.operation_level, reach.operation_needed),
    )


def _require_room(words: int) -> None:
    """Raise ``NotLifted`` if so many words of weights take more than the limit of memory."""
    if words * _BYTES_OF_A_WORD > limits().memory:
        raise NotLifted(f"{4 * words:,} weights take more than the limit of memory")


def _varies(numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which rows of bytes are not constant."""
    found: NDArray[np.bool_] = np.any(numbers >= CONSTANTS, axis=1)
    return found


def _moves(walked: Walked, iterations: Iterations, begin: Numbers) -> NDArray[np.bool_]:
    """Which runs have activations that are not constant."""
    varying = _varies(walked.operands)
    if not len(varying):
        return np.zeros(len(begin), np.bool_)
    each = varying[np.maximum(iterations.operand, 0)] & (iterations.operand >= 0)
    found: NDArray[np.bool_] = np.logical_or.reduceat(each, begin)
    return found


def _alike(
    walked: Walked,
    iterations: Iterations,
    begin: Numbers,
    end: Numbers,
    seeds: Numbers,
    by_rows: NDArray[np.bool_],
    by_operands: NDArray[np.bool_],
) -> Numbers:
    """For each run the first one that is like it: of equal seeds, with equal rows or operands where
    these count."""
    found = np.empty(len(begin), np.uint64)
    ways = (by_rows, by_operands, iterations, walked.rows, walked.operands)
    passes.keys(begin, end, seeds, *ways, found)
    _, which, inverse = np.unique(found, return_index=True, return_inverse=True)
    like: Numbers = which[inverse]
    if not np.array_equal(seeds, seeds[like]) or passes.differ(begin, end, like, *ways):
        raise NotLifted("runs of sums are not told from each other")
    return like


def _reach(walked: Walked, runs: Runs, iterations: Iterations, masks: NDArray[np.uint8]) -> _Reach:
    order = np.argsort(runs.time)
    levels = np.zeros(walked.identities // BLOCK + 2, np.int32)
    level = np.zeros(len(order), np.int32)
    arrays = (iterations, masks, walked.rows, walked.operands, walked.distinct, walked.tape)
    operation_level = np.zeros(len(walked.tape.identity), np.int32)
    passes.find_levels(order, runs, *arrays, levels, level, operation_level)
    needed = np.zeros(walked.identities, np.bool_)
    for each in walked.outputs.values():
        needed[each[each > STALE] - CONSTANTS] = True
    operation_needed = np.zeros(len(operation_level), np.bool_)
    continued = np.zeros(len(order), np.bool_)
    passes.find_needed(order, runs, *arrays, needed, continued, operation_needed)
    if needed[STALE - CONSTANTS]:
        raise NotLifted("an output follows from what memories held beforehand")
    return _Reach(level, needed, operation_level, operation_needed)


def _iterations(
    walked: Walked, notes: Records[Execution], rows: NDArray[np.int64]
) -> tuple[Iterations, NDArray[np.int64]]:
    """All iterations, in the order of ``notes``, whose tensor instructions are in ``rows``; and
    where those of each segment begin, and the last ones end."""
    tables = walked.program.tables
    plan = tables.tensor_plan
    segments = plan.place["segment"][rows] + notes["position"]
    total = int(plan.segment["count"][segments].sum(dtype=np.int64))
    begins = np.empty(len(notes) + 1, np.int64)
    found = Iterations(
        np.empty(total, np.int32),
        np.empty(total, np.int32),
        np.empty(total, np.uint8),
        np.empty(total, np.int16),
    )
    passes.find_iterations(notes, rows, tables.tensor, plan, begins, found)
    return found, begins


def _some(
    flags: NDArray[np.bool_], iterations: Iterations, begin: Numbers, end: Numbers
) -> NDArray[np.bool_]:
    """Which runs have an iteration with a row that has a flag."""
    each = flags[iterations.row]
    for k in range(1, int(iterations.rows.max(initial=1))):
        more = iterations.rows > k
        each[more] |= flags[iterations.row[more] + k]
    total = np.concatenate([[0], np.cumsum(each)])
    return total[end] > total[begin]


def _kinds(tensor: Records[Parameters]) -> Numbers:
    """For each instruction the first one that computes alike."""
    known: dict[bytes, int] = {}
    static = [
        np.ascontiguousarray(tensor[name]).view(np.uint8).reshape(len(tensor), -1)
        for name in _STATIC
    ]
    table = np.concatenate(static, axis=1)
    return np.array([known.setdefault(each.tobytes(), k) for k, each in enumerate(table)], np.int64)


def _planes(tensor: Records[Parameters]) -> Numbers:
    """Which planes each instruction takes of a row, as ``passes.Runs``."""
    width = 1 + tensor["parameter_16bit"]
    each = np.where(width == 2, 0b11, 0b1)
    planes: Numbers = np.zeros(len(tensor), np.int64)
    for k in range(4):
        planes |= np.where(tensor["working"] >> k & 1, each << width * k, 0)
    return np.where(tensor["opcode"] == INTERPOLATE, passes.EVERY_BYTE, planes)


def joined(*columns: NDArray[Any]) -> Numbers:
    """A number for each row of the columns, alike for equal rows and no others."""
    number, most = np.zeros(len(columns[0]), np.int64), 1
    for each in columns:
        size = int(each.max(initial=0)) - int(each.min(initial=0)) + 1
        if size < _MOST_NUMBERS // most:
            low = each.astype(np.int64) - int(each.min(initial=0))
        else:
            _, low = np.unique(each, return_inverse=True)
            _, number = np.unique(number, return_inverse=True)
            size = most = len(number)
        number = number * size + low
        most *= size
    return number


def _masks(
    walked: Walked,
    iterations: Iterations,
    begin: Numbers,
    end: Numbers,
    which: NDArray[np.intp],
    row: Numbers,
    data: NDArray[np.bool_],
    lanes: Numbers,
    zeros: NDArray[np.int32],
) -> tuple[NDArray[np.uint8], Numbers]:
    """Which bytes of activations matter to each class of runs, a mask an iteration, and where those
    of a class begin, by its run."""
    tensor = walked.program.tables.tensor
    starts = np.zeros(len(begin), np.int64)
    parts = []
    total = 0
    for r in which:
        parameters = tensor[row[r]]
        if parameters["opcode"] != MAC:
            mask = np.zeros(end[r] - begin[r], np.uint8)
        elif data[r]:
            mask = np.full(end[r] - begin[r], _bytes_that_work(parameters), np.uint8)
        else:
            zero = walked.distinct[zeros[r]] if zeros[r] >= 0 else None
            weights = weights_of(
                walked, iterations, slice(begin[r], end[r]), parameters, int(lanes[r]), zero
            )
            mask = np.packbits((weights != 0).any(axis=2), axis=1, bitorder="little")[:, 0]
        starts[r] = total
        total += len(mask)
        parts.append(mask)
    return np.concatenate(parts), starts


def _bytes_that_work(parameters: Parameters) -> int:
    """The mask of the bytes of activations that products are made of."""
    works = [bool(parameters["working"] >> k & 1) for k in range(4)]
    if parameters["activation_16bit"]:
        works = [works[0], works[0], works[1], works[1]]
    return sum(bit << k for k, bit in enumerate(works))


def planes_of(
    walked: Walked,
    iterations: Iterations,
    which: slice | Numbers,
    parameters: Parameters,
    values: Sequence[int],
) -> NDArray[np.int32]:
    """Numbers of the bytes of some of the values of iterations, of all lanes, one plane of each
    value or two: (iterations, planes, 64)."""
    width = 2 if parameters["parameter_16bit"] else 1
    planes = (width * np.array(values, np.int64)[:, None] + np.arange(width)).ravel()
    at = iterations.place[which].astype(np.int64)[:, None] + planes
    row = walked.rows[iterations.row[which][:, None] + (at >> 2)]
    found: NDArray[np.int32] = walked.distinct.reshape(-1, chip.LANES, 4)[
        row[..., None], np.arange(chip.LANES), (at & 3)[..., None]
    ]
    return found


def working(parameters: Parameters) -> list[int]:
    """Products of an iteration that are made."""
    return [k for k in range(int(parameters["products"])) if parameters["working"] >> k & 1]


def weights_of(
    walked: Walked,
    iterations: Iterations,
    which: slice,
    parameters: Parameters,
    lanes: int,
    zero_points: NDArray[np.int32] | None,
) -> Numbers:
    """Weights of the four bytes of each iteration, of each lane: (iterations, 4, lanes), int64.
    ``zero_points``: the bytes of the row of them, if there is one.
    """
    count = which.stop - which.start
    weights = np.zeros((count, 4, lanes), np.int64)
    zero = parameters["parameter_zero_point"]
    if zero_points is not None:
        if (zero_points >= CONSTANTS).any():
            raise NotLifted("zero points are computed")
        zero = words_of(zero_points)[:lanes]
    made = working(parameters)
    value = planes_of(walked, iterations, which, parameters, made)[..., :lanes].astype(np.int64)
    if parameters["parameter_16bit"]:
        value = value[:, 0::2] + 256 * value[:, 1::2]
    value -= zero
    if parameters["activation_16bit"]:
        low = 2 * np.array(made, np.int64)
        weights[:, low], weights[:, low + 1] = value, 256 * value
    else:
        weights[:, made] = value
    return weights


def words_of(numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    """int32 of four constant bytes each."""
    return numbers.astype(np.uint8).view(np.int32)


def _before(
    walked: Walked,
    notes: Records[Execution],
    first: Numbers,
    last: Numbers,
    lanes: Numbers,
    stored: Numbers,
) -> tuple[Numbers, NDArray[np.int32]]:
    """The run that each run goes on from, or its row of sums."""
    sums = notes["sums"][first].copy()
    before = np.full(len(first), -1, np.int64)
    makers = np.flatnonzero(stored)
    makers = makers[np.argsort(notes["identity"][last][makers])]
    going = np.flatnonzero(sums >= 0)
    if not len(makers) or not len(going):
        return before, sums
    numbers, which = np.unique(sums[going], return_inverse=True)
    begins = notes["identity"][last][makers] + CONSTANTS
    at = np.minimum(np.searchsorted(begins, walked.distinct[numbers, 0]), len(begins) - 1)
    made = _follow(walked.distinct, numbers, begins[at], 4 * lanes[makers[at]])
    maker: Numbers = np.where(made, makers[at], -1)[which]
    maker = np.where(lanes[maker] == lanes[going], maker, -1)
    before[going] = maker
    return before, sums


def _follow(
    distinct: NDArray[np.int32], numbers: Numbers, begins: Numbers, sizes: Numbers
) -> NDArray[np.bool_]:
    """Which distinct rows begin with as many bytes as ``sizes``, numbered from ``begins`` on."""
    places = np.arange(chip.ROW_BYTES, dtype=np.int32)
    found = np.empty(len(numbers), np.bool_)
    for first in range(0, len(numbers), _IN_CACHE):
        part = slice(first, first + _IN_CACHE)
        follows = distinct[numbers[part]] - places == begins[part, None]
        follows |= places >= sizes[part, None]
        found[part] = follows.all(axis=1)
    return found
