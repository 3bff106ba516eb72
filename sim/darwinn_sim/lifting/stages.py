"""Stages of a lifted program: runs of sums that are alike and may be made at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.lifting.runs import Found, joined, planes_of, weights_of, words_of, working
from darwinn_sim.lifting.stage import Made, Stage
from darwinn_sim.lifting.tape import CONSTANTS
from darwinn_sim.lifting.walk import NO_TABLE, NotLifted
from darwinn_sim.units.output_stage import OUTPUT_16BIT, TABLE
from darwinn_sim.units.tensor_cells import INTERPOLATE, MAC, MAXIMUM
from darwinn_sim.units.tensor_records import Parameters

Numbers32 = NDArray[np.int32]
Numbers = NDArray[np.int64]
Members = NDArray[np.intp]
"""Runs, by their numbers."""

EXACT = 1 << 24
"""Sums of products below this are exact in float32, in whatever order they are made."""

_COEFFICIENTS = chip.TABLE_SEGMENTS * chip.TABLE_COEFFICIENTS
_MOST_PARTS = 4
_OCTET = 255
_SPAN = 1 << 31
_LEAST_MAXIMUM = 1 << 30
"""A maximum of nothing, without its sign."""


def stages(found: Found) -> list[Stage]:
    """All stages, in an order in which they can be made.

    Raises:
        NotLifted: sums are made in a way that has no stage.
    """
    parts = [*_of_operations(found), *_merged(list(_all(found)))]
    return sorted(parts, key=lambda stage: stage.level)


def _of_operations(found: Found) -> Iterator[Stage]:
    """What the scalar core computes of each level, which goes before what tiles do."""
    tape, level = found.walked.tape, found.operation_level
    for each in np.unique(level[found.operation_needed]):
        which = found.operation_needed & (level == each)
        yield Stage(
            level=int(each),
            row=-1,
            how=Made.OPERATIONS,
            operands=tape.operands[which],
            operations=tape.operation[which],
            weights=np.zeros((0, 1), np.int32),
            zero=0,
            offset=np.zeros(1, np.int32),
            scale=np.ones(1, np.float32),
            made=tape.identity[which, None],
            blocks=(1,),
            size=4,
        )


def _all(found: Found) -> Iterator[Stage]:
    chain = _chains(found)
    for stored in (True, False):
        wanted = _wanted(found, stored)
        if not len(wanted):
            continue
        key = _key(found, chain, wanted, stored)
        order = np.argsort(key, kind="stable")
        bounds = np.flatnonzero(np.diff(key[order])) + 1
        for members in np.split(wanted[order], bounds):
            yield _stage(found, members, stored)


def _wanted(found: Found, stored: bool) -> Members:
    """Runs of whose stored sums, or results, something is needed."""
    runs = found.runs
    first = runs.identity if stored else runs.identity + found.stored
    count = found.stored if stored else runs.made - found.stored
    makes = np.flatnonzero(count > 0)
    if not len(makes):
        return makes
    # Of every other one of these spans: what lies between two runs is theirs neither.
    spans = np.stack([first[makes], (first + count)[makes]], axis=1).ravel()
    return makes[np.logical_or.reduceat(found.needed, spans)[::2]]


def _chains(found: Found) -> Numbers:
    """A number for each run, alike for runs that go on from runs that are alike, and so on."""
    before = found.runs.before
    going = before >= 0
    row = np.where(going, -1, found.runs.sums)
    chain = joined(found.like, np.where((row >= 0) & found.varies[row], -2, row))
    depth = np.zeros(len(chain), np.int64)
    while True:
        deeper = np.where(going, depth[before] + 1, 0)
        if np.array_equal(deeper, depth):
            break
        depth = deeper
    for k in range(1, int(depth.max(initial=0)) + 1):
        now = depth == k
        chain[now] = joined(chain[before[now]], chain[now])
    return joined(chain, depth)


def _key(found: Found, chain: Numbers, wanted: Members, stored: bool) -> Numbers:
    """A number for each run that is wanted, alike for those of one stage."""
    columns: list[NDArray[np.integer]] = [chain[wanted], found.level[wanted]]
    if not stored:
        biases = found.biases[wanted]
        columns.append(np.where((biases >= 0) & found.varies[biases], -2, biases))
        columns += [found.scales[wanted], found.table[wanted]]
    return joined(*columns)


def _links(found: Found, members: Members) -> list[Members]:
    """The runs that members go on from, the first ones first, and members."""
    links: list[Members] = [members]
    while found.runs.before[links[0][0]] >= 0:
        links.insert(0, found.runs.before[links[0]])
    return links


def _iterations_of(found: Found, runs: Members) -> Numbers:
    """Iterations of each of some runs, which have the same number: (runs, iterations)."""
    begin, end = found.runs.begin[runs], found.runs.end[runs]
    which: Numbers = begin[:, None] + np.arange(end[0] - begin[0])
    return which


def _stage(found: Found, members: Members, stored: bool) -> Stage:
    tensor = found.walked.program.tables.tensor
    links = _links(found, members)
    if (found.runs.sums[members] >= 0).any() and tensor["opcode"][found.row[members[0]]] == MAXIMUM:
        raise NotLifted("a maximum begins from a row of sums")
    if any(found.runs.data[link[0]] for link in links):
        if len(links) > 1:
            raise NotLifted("sums over data in wide memory go on in other instructions")
        return _of_data(found, members, stored)
    lanes = int(found.lanes[members[0]])
    operands: list[Numbers32] = []
    weights: list[Numbers] = []
    zeros: list[Numbers] = []
    offset, computed = _added(found, found.runs.sums[links[0]], lanes)
    if computed is not None:
        operands.append(computed.reshape(len(members), -1))
        weights.append(_assembled(lanes))
        zeros.append(np.zeros(4 * lanes, np.int64))
    for link in links:
        parameters = tensor[found.row[link[0]]]
        zero_row = found.zero_points[link[0]]
        row_of_zeros = found.walked.distinct[zero_row] if zero_row >= 0 else None
        which = slice(int(found.runs.begin[link[0]]), int(found.runs.end[link[0]]))
        each = weights_of(found.walked, found.iterations, which, parameters, lanes, row_of_zeros)
        taken = found.walked.operands[found.iterations.operand[_iterations_of(found, link)]]
        used = (each != 0).any(axis=2).ravel()
        taken = taken.reshape(len(link), -1)
        operands.append(taken if used.all() else taken[:, used])
        weights.append(each.reshape(-1, lanes)[used])
        point = int(parameters["activation_zero_point"])
        if parameters["activation_16bit"]:
            # Bytes are taken as they are: the zero point belongs to both.
            low = each.reshape(len(each), 2, 2, lanes)[:, :, 0]
            offset -= point * low.sum(axis=(0, 1))
            point = 0
        zeros.append(np.full(int(used.sum()), point, np.int64))
    zero = int(zeros[-1][0]) if len(zeros[-1]) else 0
    joined, weight, points = (
        np.concatenate(operands, axis=1),
        np.concatenate(weights),
        np.concatenate(zeros),
    )
    # All bytes of a stage have one zero point; what is left is a constant.
    offset -= (points - zero) @ weight
    bias, computed = _added(found, _biases(found, members, stored), lanes)
    of_bias = 0 if computed is None else 4 * lanes
    if computed is not None:
        joined = np.concatenate([joined, computed.reshape(len(members), -1)], axis=1)
        weight = np.concatenate([weight, _assembled(lanes)])
    return _finished(
        *(found, members, stored, Made.PRODUCTS, joined, weight, zero, offset, bias),
        of_bias=of_bias,
    )


def _biases(found: Found, members: Members, stored: bool) -> NDArray[np.integer]:
    """Distinct rows of biases of each run, -1 without."""
    row = found.row[members[0]]
    applied = not stored and found.walked.program.tables.tensor["apply_bias"][row]
    return found.biases[members] if applied else np.full(len(members), -1)


def _added(
    found: Found, numbers: NDArray[np.integer], lanes: int
) -> tuple[Numbers, Numbers32 | None]:
    """What rows of int32 add to the sums of each lane: a constant, or 0 and the bytes that they are
    computed from (runs, lanes, 4)."""
    if numbers[0] < 0:
        return np.zeros(lanes, np.int64), None
    if not found.varies[numbers].any():
        return words_of(found.walked.distinct[numbers[0]])[:lanes].astype(np.int64), None
    rows = found.walked.distinct[numbers][:, : 4 * lanes]
    return np.zeros(lanes, np.int64), rows.reshape(len(numbers), lanes, 4)


def _assembled(lanes: int) -> Numbers:
    """Weights that put int32 sums together from the four bytes of each lane."""
    weights = np.zeros((4 * lanes, lanes), np.int64)
    for k in range(4):
        weights[4 * np.arange(lanes) + k, np.arange(lanes)] = np.int64(1) << 8 * k
    return weights


def _wrapped(values: Numbers) -> Numbers32:
    """As int32, modulo 2^32."""
    wrapped: Numbers32 = (values & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    return wrapped


def _finished(
    found: Found,
    members: Members,
    stored: bool,
    how: Made,
    operands: Numbers32,
    weights: Numbers,
    zero: int,
    offset: Numbers,
    bias: Numbers,
    of_bias: int = 0,
    **more: Any,
) -> Stage:
    """With what becomes of the sums, which are put aside, or are results."""
    lanes = int(found.lanes[members[0]])
    row = int(found.kind[members[0]])
    parameters = found.walked.program.tables.tensor[row]
    made = found.runs.identity[members]
    scale = np.full(lanes, parameters["output_scale"], np.float32)
    table = None
    size = 4
    if not stored:
        made = made + found.stored[members]
        size = 2 if parameters["function"] & OUTPUT_16BIT else 1
        if not parameters["apply_bias"]:
            bias = bias + int(parameters["immediate_bias"])
        if parameters["use_scales"]:
            scales = _constant_row(found, found.scales[members[0]]).view(np.float32)[:lanes]
            with np.errstate(all="ignore"):
                scale = (scales * np.float32(parameters["output_scale"])).astype(np.float32)
        if parameters["function"] & TABLE:
            table = _constant_row(found, found.table[members[0]])
            if (table[:_COEFFICIENTS] == NO_TABLE).all():
                raise NotLifted("a function has no table of this program")
    # Where nothing saturates, the bias is a part of the sum.
    reach = _reach(how, weights, zero) + np.abs(offset) + np.abs(bias)
    whole = not of_bias and (not bias.any() or bool((reach < _SPAN).all()))
    return Stage(
        level=int(found.level[members[0]]),
        row=-1 if stored else row,
        how=how,
        operands=np.ascontiguousarray(operands, np.int32),
        weights=_wrapped(weights),
        zero=zero,
        offset=_wrapped(offset + bias if whole else offset),
        bias=None if whole else _wrapped(bias),
        of_bias=of_bias,
        scale=scale,
        made=made[:, None],
        blocks=(lanes,),
        size=size,
        table=table,
        **more,
    )


def _reach(how: Made, weights: Numbers, zero: int) -> Numbers | int:
    """The greatest magnitude that sums can have, of each lane."""
    if how is Made.PRODUCTS:
        reach: Numbers = np.abs(weights).sum(axis=0) * max(abs(zero), abs(_OCTET - zero))
        return reach
    return _LEAST_MAXIMUM if how is Made.MAXIMUM else _SPAN


def _constant_row(found: Found, number: int) -> Numbers32:
    """Words of a distinct row, which has to be constant."""
    numbers = found.walked.distinct[number]
    if (numbers >= CONSTANTS).any():
        raise NotLifted("scales, biases or tables are computed")
    return words_of(numbers)


def _of_data(found: Found, members: Members, stored: bool) -> Stage:
    """A stage whose rows are data: each lane is a position of its own."""
    lanes = int(found.lanes[members[0]])
    parameters = found.walked.program.tables.tensor[found.row[members[0]]]
    which = _iterations_of(found, members)
    if parameters["opcode"] == INTERPOLATE:
        rows = found.walked.rows[found.iterations.row[which]]
        taken = found.walked.distinct[rows][:, :, :lanes].transpose(0, 2, 1)
        weights = found.iterations.place[which[0]].astype(np.int64)
        return _by_lanes(found, members, stored, Made.PRODUCTS, taken, weights[:, None], 0)
    width = 2 if parameters["parameter_16bit"] else 1
    if parameters["opcode"] != MAC:
        taken = _values(found, parameters, which, lanes)
        if parameters["opcode"] == MAXIMUM:
            return _by_lanes(found, members, stored, Made.MAXIMUM, taken, None, 0, width=width)
        weights = np.tile(256 ** np.arange(width), taken.shape[2] // width)
        offset = -int(parameters["parameter_zero_point"]) * (taken.shape[2] // width)
        return _by_lanes(found, members, stored, Made.PRODUCTS, taken, weights[:, None], offset)
    taken = planes_of(
        found.walked, found.iterations, which.ravel(), parameters, working(parameters)
    )
    taken = taken[:, :, :lanes].reshape(*which.shape, -1, lanes)
    taken = taken.transpose(0, 3, 1, 2).reshape(len(which), lanes, -1)
    if found.zero_points[members[0]] >= 0:
        raise NotLifted("data in wide memory have zero points of each lane")
    if not found.constant[members[0]]:
        first = _working_bytes(found, parameters, which)
        first = np.repeat(first.reshape(len(which), 1, -1), lanes, axis=1)
        return _by_lanes(
            *(found, members, stored, Made.PAIRS, first, None, 0),
            others=np.ascontiguousarray(taken.reshape(len(which) * lanes, -1), np.int32),
            width=2 if parameters["activation_16bit"] else 1,
            other_width=width,
            zeros=(
                int(parameters["activation_zero_point"]),
                int(parameters["parameter_zero_point"]),
            ),
        )
    factors = _activations(found, parameters, which[0])
    weights = np.multiply.outer(factors, 256 ** np.arange(width)).ravel()
    offset = -int(parameters["parameter_zero_point"]) * int(factors.sum())
    return _by_lanes(found, members, stored, Made.PRODUCTS, taken, weights[:, None], offset)


def _working_bytes(found: Found, parameters: Parameters, which: Numbers) -> Numbers32:
    """Bytes of the activations of the products that are made: (runs, iterations, bytes)."""
    octets = found.walked.operands[found.iterations.operand[which]]
    if parameters["activation_16bit"]:
        octets = octets.reshape(*which.shape, 2, 2)[:, :, working(parameters)]
        return octets.reshape(*which.shape, -1)
    return octets[:, :, working(parameters)]


def _activations(found: Found, parameters: Parameters, which: Numbers) -> Numbers:
    """Constant activations minus their zero point, of each product of each iteration."""
    octets = found.walked.operands[found.iterations.operand[which]].astype(np.int64)
    if parameters["activation_16bit"]:
        octets = octets[:, 0::2] + 256 * octets[:, 1::2]
    return octets[:, working(parameters)].ravel() - int(parameters["activation_zero_point"])


def _values(found: Found, parameters: Parameters, which: Numbers, lanes: int) -> Numbers32:
    """Bytes of the values that maxima and sums take: (runs, lanes, bytes)."""
    taken = []
    places = found.iterations.place[which[0]]
    for i, place in enumerate(places.tolist()):
        values = [k for k in working(parameters) if not k or not place & 3]
        each = planes_of(found.walked, found.iterations, which[:, i], parameters, values)
        taken.append(each[:, :, :lanes].transpose(0, 2, 1))
    return np.concatenate(taken, axis=2)


def _by_lanes(
    found: Found,
    members: Members,
    stored: bool,
    how: Made,
    taken: Numbers32,
    weights: Numbers | None,
    offset: int,
    **more: Any,
) -> Stage:
    """Each lane of each run becomes a position of one lane."""
    runs, lanes, count = taken.shape
    if weights is None:
        weights = np.zeros((count, 1), np.int64)
    begins, ends = found.runs.sums[members], _biases(found, members, stored)
    (more_offset, sums), (bias, biases) = (_added(found, each, lanes) for each in (begins, ends))
    for computed in (sums, biases):
        if computed is None:
            continue
        if how is not Made.PRODUCTS:
            raise NotLifted("sums or biases that are computed are added to maxima or data products")
        taken = np.concatenate([taken, computed], axis=2)
        weights = np.concatenate([weights, _assembled(1)])
    count = taken.shape[2]
    stage = _finished(
        *(found, members, stored, how, taken.reshape(runs * lanes, count), weights, 0),
        *(more_offset + offset, bias),
        of_bias=0 if biases is None else 4,
        **more,
    )
    each_lane = (stage.offset, stage.scale, *(() if stage.bias is None else (stage.bias,)))
    if any(len(np.unique(each)) > 1 for each in each_lane):
        raise NotLifted("sums over data in wide memory have biases or scales of each lane")
    stage.offset, stage.scale = stage.offset[:1], stage.scale[:1]
    stage.bias = None if stage.bias is None else stage.bias[:1]
    stage.made = (stage.made + stage.size * np.arange(lanes)).reshape(-1, 1)
    stage.blocks = (1,)
    return stage


def _merged(stages: list[Stage]) -> Iterator[Stage]:
    """Blocks of lanes that are made of the same operands, as one stage."""
    alike: dict[tuple[object, ...], list[Stage]] = {}
    for stage in stages:
        digest = blake2b(stage.operands.data, digest_size=16).digest()
        table = None if stage.table is None else stage.table.tobytes()
        key: tuple[object, ...] = (stage.level, stage.row, stage.how, stage.zero, stage.size)
        key = (*key, stage.operands.shape, table, stage.of_bias)
        if stage.how is not Made.PRODUCTS or stage.blocks == (1,):
            key = (*key, id(stage))
        alike.setdefault((*key, digest), []).append(stage)
    for group in alike.values():
        first = group[0]
        if len(group) > 1:
            first.weights = np.concatenate([each.weights for each in group], axis=1)
            first.bias = _joined_biases(group)
            first.offset = np.concatenate([each.offset for each in group])
            first.scale = np.concatenate([each.scale for each in group])
            first.made = np.concatenate([each.made for each in group], axis=1)
            first.blocks = tuple(block for each in group for block in each.blocks)
        yield first


def _joined_biases(group: list[Stage]) -> Numbers32 | None:
    """Those of all lanes of some stages; None if none of them has any."""
    if all(each.bias is None for each in group):
        return None
    biases = [np.zeros_like(each.offset) if each.bias is None else each.bias for each in group]
    return np.concatenate(biases)


def split(stage: Stage) -> tuple[int, ...] | None:
    """Where the columns of a stage are divided, so that the sums of each part are exact in float32;
    None if they are too large."""
    greatest = max(abs(stage.zero), abs(_OCTET - stage.zero))
    each = np.abs(stage.weights.astype(np.int64)) * greatest
    if each.max(initial=0) >= EXACT:
        return None
    ends: list[int] = []
    total = np.zeros(stage.lanes, np.int64)
    for k, row in enumerate(each):
        if (total + row >= EXACT).any():
            ends.append(k)
            total[:] = 0
        total += row
    ends.append(len(each))
    return tuple(ends) if len(ends) <= _MOST_PARTS else None
