"""Steps of lifted programs, against a loop over positions, lanes and bytes that says what they are.

Operands are drawn so that columns have spans of all kinds: of one position, of many, of any stride,
forwards and backwards, of constants.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from darwinn_sim.lifting import kernels, program
from darwinn_sim.lifting.kernels import Span, find_spans
from darwinn_sim.lifting.program import LiftedProgram
from darwinn_sim.lifting.slots import Slots
from darwinn_sim.lifting.stage import Made, Stage
from darwinn_sim.lifting.tape import CONSTANTS
from darwinn_sim.units.identities import BLOCK
from darwinn_sim.units.output_stage import OUTPUT_16BIT
from darwinn_sim.units.tensor_records import Parameters
from hypothesis import given
from hypothesis import strategies as st

SEEDS = st.integers(0, 2**32 - 1)
STORED = -1
OCTETS, WORDS, LOW_OCTETS = range(3)
"""Tensor instructions: results of a byte, or two; the low byte of sums."""


def instructions() -> Any:
    tensor = Parameters.zeros(3)
    tensor["low_clip"], tensor["high_clip"] = (-50, -3000, -np.inf), (90, 40_000, np.inf)
    tensor["output_zero_point"] = 40, 1000, 3
    tensor["function"][WORDS] = OUTPUT_16BIT
    return tensor


def columns_of(random: np.random.Generator, positions: int, count: int, known: Any) -> Any:
    """Numbers of bytes (positions, count): some of those that are ``known``, and constants."""
    found = []
    for _ in range(count):
        column = np.empty(0, np.int64)
        while len(column) < positions:
            stride, size = random.integers(-3, 4), random.integers(1, 9)
            column = np.append(column, random.integers(len(known)) + stride * np.arange(size))
        found.append(known[np.clip(column[:positions], 0, len(known) - 1)])
        padded = random.random(positions) < random.choice([0, 0, 0.2, 1])
        found[-1][padded] = random.integers(CONSTANTS)
    return np.array(found, np.int32).reshape(count, positions).T


def stage(random: np.random.Generator, known: Any, begin: int) -> Stage:
    """Makes identities from ``begin`` on of bytes that are known."""
    how = Made(random.choice(3, p=[0.7, 0.15, 0.15]))
    by_lanes = how is not Made.PRODUCTS or not random.integers(4)
    row = int(random.choice([STORED, OCTETS, WORDS, LOW_OCTETS]))
    size = (4, 1, 2, 1)[row + 1]
    positions = int(random.integers(1, 40))
    blocks = (1,) if by_lanes else tuple(random.integers(2, 9, random.integers(1, 3)).tolist())
    width, other_width = random.integers(1, 3, 2).tolist()
    values = int(random.integers(0 if how is Made.PRODUCTS else 1, 6))
    width = 1 if how is Made.PRODUCTS else width
    lanes = sum(blocks)
    others = np.zeros((0, 0), np.int32)
    if how is Made.PAIRS:
        others = columns_of(random, positions, other_width * values, known)
    if by_lanes:
        made = begin + size * np.arange(positions)[:, None]
    else:
        each = [-(-count * size // BLOCK) * BLOCK for count in blocks]
        begins = begin + sum(each) * random.permutation(positions)
        made = begins[:, None] + np.append(0, np.cumsum(each)[:-1])
    few = random.random((width * values, lanes)) < random.choice([0.1, 1])
    weights = few * random.integers(-(1 << int(random.integers(1, 26))), 1 << 8, few.shape)
    biased = random.random() < 0.3
    limit = 1 << int(random.choice([8, 31]))
    return Stage(
        level=0,
        row=row,
        how=how,
        operands=columns_of(random, positions, width * values, known),
        weights=weights.astype(np.int32),
        zero=int(random.integers(0, 256)) if how is Made.PRODUCTS else 0,
        offset=random.integers(-9000, 9000, lanes).astype(np.int32),
        scale=(random.random(lanes) / 50).astype(np.float32),
        made=made,
        blocks=blocks,
        size=size,
        others=others,
        width=width,
        other_width=other_width,
        zeros=tuple(random.integers(0, 256, 2).tolist()) if how is Made.PAIRS else (0, 0),
        bias=random.integers(-limit, limit, lanes).astype(np.int32) if biased else None,
        of_bias=int(random.integers(0, values + 1)) if biased and how is Made.PRODUCTS else 0,
    )


def end_of(each: Stage) -> int:
    return -(-int(each.made.max() + each.size * max(each.blocks)) // BLOCK) * BLOCK


def value(octets: Any, numbers: Any) -> int:
    return sum(int(octets[number]) << 8 * k for k, number in enumerate(numbers))


def sum_of(each: Stage, octets: Any, p: int, lane: int) -> int:
    taken, width = each.operands[p].tolist(), each.width
    values = [value(octets, taken[k : k + width]) for k in range(0, len(taken), width)]
    if each.how is Made.MAXIMUM:
        return max(values)
    if each.how is Made.PRODUCTS:
        weights = each.weights[: len(values) - each.of_bias, lane].tolist()
        return sum(w * (v - each.zero) for w, v in zip(weights, values, strict=False))
    taken, width = each.others[p].tolist(), each.other_width
    factors = [value(octets, taken[k : k + width]) for k in range(0, len(taken), width)]
    one, other = each.zeros
    return sum((v - one) * (f - other) for v, f in zip(values, factors, strict=True))


def bias_of(each: Stage, octets: Any, p: int, lane: int) -> int:
    """What is added at last."""
    assert each.bias is not None
    first = each.operands.shape[1] - each.of_bias
    places = range(first, each.operands.shape[1])
    more = sum(int(each.weights[k, lane]) * int(octets[each.operands[p, k]]) for k in places)
    return word(int(each.bias[lane]) + more)


def word(total: int) -> int:
    return (total + (1 << 31)) % (1 << 32) - (1 << 31)


def result(each: Stage, tensor: Any, total: int, bias: int, lane: int) -> int:
    total = max(-(1 << 31), min((1 << 31) - 1, word(total + int(each.offset[lane])) + bias))
    if each.row == STORED:
        return total & 0xFFFFFFFF
    parameters = tensor[each.row]
    scaled = np.float32(total) * each.scale[lane]
    scaled = max(min(scaled, parameters["high_clip"]), parameters["low_clip"])
    rounded = int(np.rint(scaled)) + int(parameters["output_zero_point"])
    if each.row == LOW_OCTETS:
        return rounded & 0xFF
    return min(max(rounded, 0), 0xFFFF if each.row == WORDS else 0xFF)


def slow(parts: list[Stage], tensor: Any, given: bytes, identities: int) -> Any:
    octets = np.zeros(CONSTANTS + identities, np.int64)
    octets[:CONSTANTS] = np.arange(CONSTANTS)
    octets[CONSTANTS:][: len(given)] = np.frombuffer(given, np.uint8)
    for each in parts:
        for p in range(each.positions):
            lane = 0
            for first, count in zip(each.made[p], each.blocks, strict=True):
                for k in range(count):
                    bias = 0 if each.bias is None else bias_of(each, octets, p, lane)
                    found = result(each, tensor, sum_of(each, octets, p, lane), bias, lane)
                    begin = CONSTANTS + first + each.size * k
                    octets[begin : begin + each.size] = [
                        found >> 8 * n & 0xFF for n in range(each.size)
                    ]
                    lane += 1
    return octets


def results_of(each: Stage) -> Any:
    """Numbers of the bytes that it makes."""
    return np.concatenate(
        [
            (CONSTANTS + first[:, None] + np.arange(each.size * count)).ravel()
            for first, count in zip(each.made.T, each.blocks, strict=True)
        ]
    ).astype(np.int32)


@given(SEEDS)
def test_steps_give_what_their_stages_say(seed: int) -> None:
    """For one input and for some, however many sums are made at once."""
    random = np.random.default_rng(seed)
    size = end = int(random.integers(1, 9)) * BLOCK
    known = np.arange(CONSTANTS, CONSTANTS + size, dtype=np.int32)
    parts = []
    for _ in range(int(random.integers(1, 5))):
        parts.append(stage(random, known, end))
        known = np.append(known, results_of(parts[-1]))
        end = end_of(parts[-1])
    tensor = instructions()
    outputs = np.concatenate([results_of(parts[-1]), results_of(parts[0]), [0, CONSTANTS - 1]])
    walked = SimpleNamespace(
        identities=end + CONSTANTS,
        inputs={"in": np.arange(CONSTANTS, CONSTANTS + size, dtype=np.int32)},
        outputs={"out": outputs.astype(np.int32)},
        program=SimpleNamespace(tables=SimpleNamespace(tensor=tensor)),
        foundation=None,
    )
    lifted = LiftedProgram(cast("Any", walked), parts)
    inputs = [{"in": random.bytes(size)} for _ in range(3)]
    expected = [slow(parts, tensor, each["in"], end)[outputs].tolist() for each in inputs]
    for count in (1, 3):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "AT_ONCE", int(random.choice([1, 5, 4096])))
            patch.setattr(program, "_GATHERED", int(random.choice([1, 300, 1 << 20])))
            found = lifted.run(inputs[:count])
        assert [list(each["out"]) for each in found] == expected[:count]


@given(SEEDS, st.integers(0, 3), st.integers(1, 60))
def test_spans_of_columns(seed: int, count: int, positions: int) -> None:
    """They are the column, in fewer spans than it has positions where it is even."""
    random = np.random.default_rng(seed)
    slots = np.ascontiguousarray(columns_of(random, positions, count, np.arange(1 << 12)).T)
    spans, ends = Span.zeros(slots.size), np.empty(count, np.int32)
    find_spans(slots, spans, ends)
    begin = 0
    for row, end in zip(slots, ends.tolist(), strict=True):
        found: list[int] = []
        for span in spans[begin:end]:
            found += [
                int(span["origin"] + span["stride"] * p) for p in range(len(found), span["end"])
            ]
        assert found == row.tolist()
        begin = end
    even = np.arange(5, 5 + 7 * positions, 7, dtype=np.int32)[None]
    find_spans(even, spans := Span.zeros(positions), ends := np.empty(1, np.int32))
    assert ends.tolist() == [1]
    assert (int(spans["end"][0]), int(spans["stride"][0])) == (positions, 7 if positions > 1 else 1)


def test_a_padded_window_is_in_the_order_of_its_middle() -> None:
    """Positions that were made in another order are a row of a picture again."""
    slots = Slots(128)
    slots.reserve(np.arange(CONSTANTS, CONSTANTS + 16, dtype=np.int32))
    random = np.random.default_rng(0)
    order = random.permutation(16)
    row = np.concatenate([[0], CONSTANTS + np.arange(16), [0]])
    window = np.stack([row[:-2], row[1:-1], row[2:]], axis=1)[order]
    each = stage_of(window.astype(np.int32), 16 + 4 * order[:, None])
    (placed,) = slots.placed([each], np.zeros(0, np.int32))
    assert placed.operands[:, 1].tolist() == list(range(CONSTANTS, CONSTANTS + 16))
    made = slots.of((CONSTANTS + 16 + 4 * np.arange(16)).astype(np.int32))
    assert made.tolist() == list(range(placed.slot, placed.slot + 16))


def stage_of(operands: Any, made: Any) -> Stage:
    return Stage(
        level=0,
        row=OCTETS,
        how=Made.PRODUCTS,
        operands=operands,
        weights=np.ones((operands.shape[1], 2), np.int32),
        zero=0,
        offset=np.zeros(2, np.int32),
        scale=np.ones(2, np.float32),
        made=made,
        blocks=(2,),
        size=1,
    )
