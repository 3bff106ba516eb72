"""What runs and stages of sums are made of, each part against a loop that says what it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from darwinn_sim.lifting import passes, runs, stages, walk
from darwinn_sim.lifting.slots import Slots
from darwinn_sim.lifting.stage import Made, Stage
from darwinn_sim.lifting.stages import EXACT
from darwinn_sim.lifting.tape import CONSTANTS
from darwinn_sim.lifting.walk import NotLifted
from darwinn_sim.units import identities
from darwinn_sim.units.identities import NOTHING, Execution
from darwinn_sim.units.tensor_cells import INTERPOLATE, MAC, MAXIMUM, SUM
from darwinn_sim.units.tensor_records import Parameters
from hypothesis import given
from hypothesis import strategies as st

SEEDS = st.integers(0, 2**32 - 1)
LIMIT = CONSTANTS - 1
"""The greatest number that is a constant."""


def made(**fields: object) -> Any:
    """Stands in for what has these fields."""
    return SimpleNamespace(**fields)


def sizes(random: np.random.Generator, count: int) -> tuple[Any, Any]:
    """Where each of some runs begins and ends, which have one iteration at least."""
    ends = np.cumsum(random.integers(1, 4, count))
    return np.append(0, ends[:-1]), ends


def alike(one: list[Any], other: Any) -> bool:
    """Numbers are alike where and only where what they are of is."""
    other = other.tolist()
    pairs = set(zip(one, other, strict=True))
    return len(pairs) == len(set(one)) == len(set(other))


@given(SEEDS)
def test_runs_with_rows_or_activations_that_vary(seed: int) -> None:
    random = np.random.default_rng(seed)
    begin, end = sizes(random, int(random.integers(1, 6)))
    total = int(end[-1])
    rows = random.integers(1, 4, total)
    # Few flags are set, so that single ones decide, at either end of an iteration's rows.
    flags = random.random(int(rows.sum()) + 3) < 0.15
    iterations = cast(
        passes.Iterations,
        made(
            row=random.integers(0, len(flags) - 3, total),
            rows=rows.astype(np.uint8),
            operand=random.integers(-1, 4, total),
        ),
    )
    slow = [
        any(
            flags[iterations.row[i] + k]
            for i in range(first, last)
            for k in range(iterations.rows[i])
        )
        for first, last in zip(begin, end, strict=True)
    ]
    assert runs._some(flags, iterations, begin, end).tolist() == slow
    walked = made(operands=random.choice([0, LIMIT, CONSTANTS], (4, 4), p=[0.6, 0.3, 0.1]))
    slow = [
        any(
            (walked.operands[iterations.operand[i]] > LIMIT).any()
            for i in range(first, last)
            if iterations.operand[i] >= 0
        )
        for first, last in zip(begin, end, strict=True)
    ]
    assert runs._moves(walked, iterations, begin).tolist() == slow
    assert not runs._moves(made(operands=np.zeros((0, 4), int)), iterations, begin).any()


@given(SEEDS)
def test_numbers_that_are_alike_for_equal_columns(seed: int) -> None:
    random = np.random.default_rng(seed)
    columns = [random.integers(-2, 3, 30) * 7 for _ in range(3)]
    # However far they are from each other.
    columns.append(random.choice([-(1 << 62), 0, 5, 1 << 62], 30))
    columns = [columns[k] for k in random.permutation(4)]
    for _ in range(2):
        assert alike(list(zip(*columns, strict=True)), runs.joined(*columns))
        columns = columns[:2]


def test_no_columns_have_no_numbers() -> None:
    nothing = np.zeros(0, np.int64)
    assert runs.joined(nothing, nothing).shape == (0,)


def instructions(random: np.random.Generator, count: int) -> Any:
    found = Parameters.zeros(count)
    for name, values in {
        "opcode": [MAC, MAXIMUM, SUM, INTERPOLATE],
        "working": range(16),
        "products": range(1, 5),
        "parameter_16bit": [0, 1],
        "activation_16bit": [0, 1],
    }.items():
        found[name] = random.choice(values, count)
    return found


@given(SEEDS)
def test_planes_and_bytes_that_an_instruction_takes(seed: int) -> None:
    tensor = instructions(np.random.default_rng(seed), 20)
    planes = runs._planes(tensor)
    for each, found in zip(tensor, planes, strict=True):
        products = [k for k in range(4) if each["working"] >> k & 1]
        width = 2 if each["parameter_16bit"] else 1
        taken = {width * k + plane for k in products for plane in range(width)}
        slow = passes.EVERY_BYTE if each["opcode"] == INTERPOLATE else sum(1 << k for k in taken)
        assert found == slow
        octets = (
            {2 * k + half for k in products if k < 2 for half in range(2)}
            if each["activation_16bit"]
            else products
        )
        assert runs._bytes_that_work(each) == sum(1 << k for k in octets)
        assert runs.working(each) == [k for k in products if k < each["products"]]


@given(SEEDS)
def test_weights_of_products(seed: int) -> None:
    """Of each product that works the value in its place, a byte or two, minus the zero point; of an
    activation of two bytes for the high one 256 times as much.
    """
    random = np.random.default_rng(seed)
    (parameters,) = instructions(random, 1)
    width = 2 if parameters["parameter_16bit"] else 1
    if parameters["activation_16bit"]:
        parameters["products"] = min(int(parameters["products"]), 2)
    parameters["parameter_zero_point"] = random.integers(0, 256)
    lanes, count = int(random.integers(1, 65)), 5
    walked = made(
        distinct=random.integers(0, 256, (4, 256)).astype(np.int32), rows=np.array([2, 0, 3, 1, 2])
    )
    iterations = cast(
        passes.Iterations,
        made(
            row=random.integers(0, 3, count).astype(np.int32),
            place=(width * random.integers(0, 4 // width, count)).astype(np.int16),
        ),
    )
    zeros = random.integers(0, 256, 256).astype(np.int32) if random.integers(2) else None
    found = runs.weights_of(walked, iterations, slice(1, 4), parameters, lanes, zeros)
    expected = np.zeros((3, 4, lanes), np.int64)
    for i in range(3):
        for k in runs.working(parameters):
            for lane in range(lanes):
                value = 0
                for plane in range(width):
                    at = int(iterations.place[1 + i]) + width * k + plane
                    row = walked.distinct[walked.rows[iterations.row[1 + i] + at // 4]]
                    value += int(row[4 * lane + at % 4]) << 8 * plane
                zero = int(parameters["parameter_zero_point"])
                if zeros is not None:
                    zero = int.from_bytes(bytes(zeros[4 * lane : 4 * lane + 4].tolist()), "little")
                    zero -= (zero >> 31) << 32
                if parameters["activation_16bit"]:
                    expected[i, 2 * k : 2 * k + 2, lane] = value - zero, 256 * (value - zero)
                else:
                    expected[i, k, lane] = value - zero
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(("number", "constant"), [(LIMIT, True), (CONSTANTS, False)])
def test_zero_points_are_constant(number: int, constant: bool) -> None:
    (parameters,) = instructions(np.random.default_rng(0), 1)
    nothing = made(row=np.zeros(0, np.int32), place=np.zeros(0, np.int16))
    row = np.zeros(256, np.int32)
    row[-1] = number
    walked = made(distinct=np.zeros((1, 256), np.int32), rows=np.zeros(4, np.int32))
    given = (walked, cast(passes.Iterations, nothing), slice(0, 0), parameters, 4, row)
    if constant:
        assert runs.weights_of(*given).shape == (0, 4, 4)
        return
    with pytest.raises(NotLifted, match="zero points are computed"):
        runs.weights_of(*given)


@pytest.mark.parametrize("name", runs._STATIC)
def test_instructions_that_compute_alike_are_known_by_the_first(name: str) -> None:
    tensor = Parameters.zeros(4)
    tensor[name][2] = 1
    tensor["narrow_write"]["base"] = range(4)
    assert runs._kinds(tensor).tolist() == [0, 0, 2, 0]


@given(SEEDS)
def test_rows_that_hold_what_a_run_has_put_aside(seed: int) -> None:
    """As many bytes as it has, in their order; what is behind them is anything."""
    random = np.random.default_rng(seed)
    sizes = 4 * random.integers(1, 65, 8)
    begins = CONSTANTS + 4 * random.integers(0, 9, 8)
    distinct = (begins[:, None] + np.arange(256)).astype(np.int32)
    for row, size in zip(distinct, sizes, strict=True):
        # Nothing, or a byte of the last of them or behind it, is another one.
        place = min(int(size) + int(random.integers(-2, 3)), 255)
        row[place] += random.integers(0, 2)
    numbers = random.permutation(8)
    slow = [
        distinct[number, : sizes[k]].tolist() == [*range(begins[k], begins[k] + sizes[k])]
        for k, number in enumerate(numbers)
    ]
    slow_own = [
        distinct[k, : sizes[k]].tolist() == [*range(begins[k], begins[k] + sizes[k])]
        for k in range(8)
    ]
    for at_a_time in (3, 512):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(runs, "_IN_CACHE", at_a_time)
            assert runs._follow(distinct, numbers, begins, sizes).tolist() == slow
            assert runs._follow(distinct, np.arange(8), begins, sizes).tolist() == slow_own


@given(SEEDS)
def test_a_run_goes_on_from_the_one_whose_sums_it_takes(seed: int) -> None:
    """All of them, lane by lane: with a lane less or more, they are a row like any other."""
    random = np.random.default_rng(seed)
    count = 12
    first, ends = sizes(random, count)
    last = ends - 1
    lanes = random.integers(1, 4, count)
    stored = 4 * lanes * random.integers(0, 2, count)
    notes = Execution.zeros(int(ends[-1]))
    # Only the first segment of a run takes sums, and only the last one makes any.
    notes["sums"], notes["identity"] = random.integers(-1, 9, len(notes)), 1 << 20
    identity = np.append(0, np.cumsum(stored + 4)[:-1])[random.permutation(count)]
    notes["identity"][last] = identity
    # Rows that begin where sums do, or a byte beside those; the last byte may be another one.
    begins = CONSTANTS + random.choice(identity, 9) + random.choice([-1, 0, 0, 0, 1], 9)
    distinct = (begins[:, None] + np.arange(256)).astype(np.int32)
    distinct[np.arange(9), random.integers(4, 17, 9)] += 1
    sums = [int(each) for each in notes["sums"][first]]

    def source(k: int) -> int:
        for maker in np.flatnonzero(stored):
            made = range(CONSTANTS + identity[maker], CONSTANTS + identity[maker] + stored[maker])
            takes = sums[k] != NOTHING and distinct[sums[k], : len(made)].tolist() == [*made]
            if takes and lanes[maker] == lanes[k]:
                return int(maker)
        return -1

    before, rows = runs._before(made(distinct=distinct), notes, first, last, lanes, stored)
    assert rows.tolist() == sums
    assert before.tolist() == [source(k) for k in range(count)]


@pytest.mark.parametrize("lanes", [(1, 1), (63, 64), (64, 63), (64, 64)])
def test_sums_of_other_lanes_are_not_gone_on_from(lanes: tuple[int, int]) -> None:
    notes = Execution.zeros(2)
    notes["sums"] = NOTHING, 0
    notes["identity"] = 0, 1 << 20
    row = made(distinct=(CONSTANTS + np.arange(256, dtype=np.int32))[None])
    each = np.arange(2)
    before, _ = runs._before(row, notes, each, each, np.array(lanes), np.array([4 * lanes[0], 0]))
    assert before.tolist() == [-1, 0 if lanes[0] == lanes[1] else -1]


@given(SEEDS)
def test_chains_are_alike_if_all_their_runs_are(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 16))
    # A run goes on from an earlier one, or begins from a row of sums, or from nothing.
    before = np.array([int(random.integers(-1, max(k, 1))) for k in range(count)])
    before[0] = -1
    sums = random.integers(-1, 4, count)
    like = random.integers(0, 3, count)
    varies = np.array([False, False, True, True])
    found = made(like=like, varies=varies, runs=made(before=before, sums=sums))

    def whole(k: int) -> tuple[Any, ...]:
        if before[k] >= 0:
            return (*whole(before[k]), like[k])
        return ("varies" if sums[k] >= 2 else sums[k], like[k])

    assert alike([whole(k) for k in range(count)], stages._chains(found))
    # Those that end in runs of one chain have as many links.
    for k in range(count):
        links = [k]
        while before[links[0]] >= 0:
            links.insert(0, before[links[0]])
        assert [int(each[0]) for each in stages._links(found, np.array([k]))] == links


@given(SEEDS, st.booleans())
def test_runs_of_which_something_is_wanted(seed: int, stored: bool) -> None:
    random = np.random.default_rng(seed)
    aside, results = random.integers(0, 3, (2, 8))
    identity = np.append(0, np.cumsum(aside + results)[:-1])
    needed = random.random(int((aside + results).sum()) + 1) < 0.3
    found = made(runs=made(identity=identity, made=aside + results), stored=aside, needed=needed)
    slow = [
        k
        for k, first in enumerate(identity)
        if (
            needed[first : first + aside[k]]
            if stored
            else needed[first + aside[k] : first + aside[k] + results[k]]
        ).any()
    ]
    assert stages._wanted(found, stored).tolist() == slow


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=9))
def test_sums_wrap_and_are_put_together_from_their_bytes(values: list[int]) -> None:
    wrapped = stages._wrapped(np.array(values)).tolist()
    assert wrapped == [(each + 2**31) % 2**32 - 2**31 for each in values]
    octets = np.frombuffer(np.array(wrapped, "<i4").tobytes(), np.uint8).astype(np.int64)
    found = octets @ stages._assembled(len(values))
    assert found.tolist() == [each % 2**32 for each in values]
    assert runs.words_of(octets.astype(np.int32)).tolist() == wrapped


def stage(weights: Any, zero: int) -> Stage:
    lanes = weights.shape[1]
    return Stage(
        level=0,
        row=0,
        how=Made.PRODUCTS,
        operands=np.zeros((1, len(weights)), np.int32),
        weights=weights,
        zero=zero,
        offset=np.zeros(lanes, np.int32),
        scale=np.ones(lanes, np.float32),
        made=np.zeros((1, 1), np.int64),
        blocks=(lanes,),
        size=1,
    )


@given(SEEDS, st.sampled_from([-300, -1, 0, 1, 100, 127, 128, 200, 255, 256, 300]))
def test_parts_of_a_stage_are_exact_and_as_few_as_can_be(seed: int, zero: int) -> None:
    """Each begins where one column more would make the one before it inexact."""
    random = np.random.default_rng(seed)
    greatest = EXACT >> int(random.integers(7, 12))
    weights = random.integers(-greatest, greatest + 1, (12, 3)).astype(np.int32)
    most = max(abs(octet - zero) for octet in range(256))
    each = [[abs(int(weight)) * most for weight in row] for row in weights]
    ends, total = [], [0, 0, 0]
    for k, row in enumerate(each):
        if max(a + b for a, b in zip(total, row, strict=True)) >= EXACT:
            ends.append(k)
            total = [0, 0, 0]
        total = [a + b for a, b in zip(total, row, strict=True)]
    ends.append(len(each))
    too_large = max(map(max, each)) >= EXACT or len(ends) > 4
    assert stages.split(stage(weights, zero)) == (None if too_large else tuple(ends))


@pytest.mark.parametrize(
    ("rows", "last", "parts"),
    [
        (4, 0, (4,)),
        (5, 0, (4, 5)),
        (16, 0, (4, 8, 12, 16)),
        (17, 0, None),
        (3, 255 * (1 << 14), None),
    ],
)
def test_bounds_of_parts(rows: int, last: int, parts: tuple[int, ...] | None) -> None:
    """Four products of 2^14 with bytes are below 2^24; four parts are the most."""
    weights = np.full((rows, 1), 1 << 14, np.int32)
    if last:
        weights[-1] = last
    assert stages.split(stage(weights, 0)) == parts
    nothing = stage(np.zeros((0, 1), np.int32), 0)
    assert stages.split(nothing) == (0,)


@pytest.mark.parametrize(("number", "constant"), [(LIMIT, True), (CONSTANTS, False)])
def test_rows_of_parameters_are_constant(number: int, constant: bool) -> None:
    row = np.zeros(8, np.int32)
    row[5] = number
    found = made(walked=made(distinct=np.stack([np.ones(8, np.int32), row])))
    assert runs._varies(found.walked.distinct).tolist() == [False, not constant]
    if constant:
        assert stages._constant_row(found, 1).tolist() == [0, LIMIT << 8]
        return
    with pytest.raises(NotLifted, match="scales, biases or tables are computed"):
        stages._constant_row(found, 1)


@pytest.mark.parametrize("most", [1, 7, 400_000])
def test_room_for_distinct_rows(most: int) -> None:
    """A segment takes three rows for each of its iterations, and eight others, at most."""
    notes = identities.new_notes(iterations=3 * most, most=most)
    assert int(notes.walk["shift"][0]) == -1
    assert len(notes.distinct) == len(notes.lengths) < len(notes.slots)
    assert len(notes.executions) == len(notes.operands) >= 3 * most
    full = len(notes.lengths) - (3 * most + 8)
    for distinct, lacks in ((0, False), (full, False), (full + 1, True), (full + 9, True)):
        notes.walk["distinct"] = distinct
        assert identities.lacks_rows(notes) is lacks


@given(SEEDS)
def test_notes_are_put_together_from_parts(seed: int) -> None:
    """Each part counts anew what it takes; distinct rows stay until there is no room for more."""
    random = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(identities, "MAX_DISTINCT", 1)
        notes = identities.new_notes(iterations=20, most=2)
    full = len(notes.lengths) - 14
    recorder = walk._Recorder(notes)
    slow: dict[str, list[Any]] = {name: [] for name in ("operands", "rows", "executions")}
    base = 0
    for part in range(int(random.integers(1, 6))):
        segments, operands, rows = random.integers(0, 5, 3).tolist()
        distinct = int(notes.walk["distinct"][0]) + int(random.integers(1, full))
        distinct = min(distinct, len(notes.lengths))
        base = base if notes.walk["distinct"][0] else 1000 * part
        notes.distinct[:distinct] = np.arange(base, base + distinct)[:, None]
        notes.operands[:operands] = random.integers(0, 99, operands)
        notes.rows[:rows] = random.integers(0, distinct, rows)
        written = notes.executions[:segments]
        for name in walk._ROWS:
            written[name] = random.integers(-1, distinct, segments)
        written["operands"] = random.integers(0, 9, segments)
        written["rows"] = random.integers(0, 9, segments)
        written["instruction"] = random.integers(0, 99, segments)
        content = [-1, *notes.distinct[:distinct, 0].tolist()]
        for each in written:
            slow["executions"].append(
                {
                    **{name: content[int(each[name]) + 1] for name in walk._ROWS},
                    "operands": int(each["operands"]) + len(slow["operands"]),
                    "rows": int(each["rows"]) + len(slow["rows"]),
                    "instruction": int(each["instruction"]),
                }
            )
        slow["operands"] += notes.operands[:operands].tolist()
        slow["rows"] += [content[number + 1] for number in notes.rows[:rows].tolist()]
        counts = (segments, operands, rows, distinct)
        for name, count in zip(("segments", "operands", "rows", "distinct"), counts, strict=True):
            notes.walk[name] = count
        recorder.take()
        if not random.integers(3):
            recorder._take_rows()
    found, distinct_rows = recorder.all()
    first = [-1, *distinct_rows[:, 0].tolist()]
    assert found.operands.tolist() == slow["operands"]
    assert [first[number + 1] for number in found.rows.tolist()] == slow["rows"]
    for each, expected in zip(found.executions, slow["executions"], strict=True):
        for name, value in expected.items():
            number = int(each[name])
            assert (first[number + 1] if name in walk._ROWS else number) == value, name


def test_what_is_forgotten_of_notes() -> None:
    """Distinct rows apart from all else."""
    notes = identities.new_notes(iterations=4, most=2)
    fresh = notes.walk.copy()
    counts = ("segments", "operands", "rows", "distinct", "identity")
    for number, name in enumerate(counts):
        notes.walk[name] = 5 + number
    notes.slots[[0, 3, -1]] = 4
    notes.latest[0, 0] = notes.latest[-1, -1] = 4
    identities.forget(notes)
    assert [int(notes.walk[name][0]) for name in counts] == [0, 0, 0, 8, 9]
    assert (notes.slots >= 0).sum() == 3
    identities.forget_rows(notes)
    assert [int(notes.walk[name][0]) for name in counts] == [0, 0, 0, 0, 9]
    assert (notes.slots == identities.NOTHING).all()
    assert (notes.latest == identities.NOTHING).all()
    assert notes.walk["most"] == fresh["most"] == 2


@pytest.mark.parametrize("pairs", [1 << 16, (1 << 16) + 1, 1 << 18])
def test_pairs_of_numbers_have_numbers(pairs: int) -> None:
    """However many there are; those of equal pairs are equal."""
    random = np.random.default_rng(pairs)
    one = random.permutation(np.append(np.arange(pairs), np.arange(100))).astype(np.int32)
    other = (one // 3).astype(np.int32)
    before = one.copy()
    found = walk._joined(one, other)
    assert found.shape == (pairs, 2)
    assert np.array_equal(found[one], np.stack([before, other], axis=1))


@given(SEEDS)
def test_slots_that_are_free_are_used_again(seed: int) -> None:
    """The first gap that is large enough, or behind all others; next to each other they are one."""
    random = np.random.default_rng(seed)
    slots = Slots(8)
    used = [True] * slots.total
    taken: list[tuple[int, int]] = []
    for _ in range(int(random.integers(1, 25))):
        if taken and random.integers(2):
            first, size = taken.pop(int(random.integers(len(taken))))
            slots._give_back(first, size)
            used[first : first + size] = [False] * size
            continue
        size = int(random.integers(1, 6))
        first = 0
        while any(used[first : first + size]):
            first += 1
        if first + size > len(used):
            first = len(used) - next(k for k in range(len(used)) if used[len(used) - 1 - k])
        assert slots._take(size) == first
        used[first:] = [*used[first:], *[False] * size][: max(len(used) - first, size)]
        used[first : first + size] = [True] * size
        taken.append((first, size))
        assert slots.total == len(used)


def products_of_a_row(opcode: int, varies: bool) -> Any:
    """A run of two lanes that begins from a row of sums, constant or not."""
    tensor = Parameters.zeros(1)
    tensor["opcode"], tensor["output_scale"] = opcode, 0.5
    row = np.arange(256, dtype=np.int32) + (CONSTANTS if varies else 0)
    row[2:4] = row[6:8] = row[:1] if varies else 0
    return made(
        walked=made(program=made(tables=made(tensor=tensor)), distinct=row[None]),
        runs=made(sums=np.zeros(1, int), before=np.array([-1]), identity=np.array([40])),
        row=np.zeros(1, int),
        kind=np.zeros(1, int),
        lanes=np.array([2]),
        level=np.array([3]),
        varies=np.array([varies]),
    )


def test_a_maximum_begins_from_nothing() -> None:
    with pytest.raises(NotLifted, match="a maximum begins from a row of sums"):
        stages._stage(products_of_a_row(MAXIMUM, False), np.array([0]), True)


def test_sums_that_are_computed_are_bytes_of_each_lane() -> None:
    found = products_of_a_row(SUM, True)
    taken = np.array([[[900], [901]]], np.int32)
    given = (found, np.array([0]), True, Made.PRODUCTS, taken, np.array([[7]]), 5)
    stage = stages._by_lanes(*given)
    row = found.walked.distinct[0].tolist()
    assert stage.operands.tolist() == [[900, *row[:4]], [901, *row[4:8]]]
    assert stage.weights.tolist() == [[7], [1], [256], [65536], [1 << 24]]
    assert (stage.offset.tolist(), stage.made.tolist()) == ([5], [[40], [44]])
    assert (stage.level, stage.row, stage.blocks, stage.size) == (3, -1, (1,), 4)
    with pytest.raises(NotLifted, match="are added to maxima or data products"):
        stages._by_lanes(found, np.array([0]), True, Made.MAXIMUM, taken, None, 0)


def test_runs_that_are_not_told_from_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is the same of others would be a wrong program."""
    nothing: Any = None
    walked = made(rows=nothing, operands=nothing)
    zeros, flags = np.zeros(2, np.int64), np.zeros(2, np.bool_)
    for keys, differ, told in (([4, 4], False, True), ([4, 4], True, False)):
        monkeypatch.setattr(
            passes, "keys", lambda *given, k=keys: np.copyto(given[-1], np.uint64(k))
        )
        monkeypatch.setattr(passes, "differ", lambda *_, d=differ: d)
        given = (walked, nothing, zeros, zeros, zeros, flags, flags)
        if told:
            assert runs._alike(*given).tolist() == [0, 0]
            continue
        with pytest.raises(NotLifted, match="runs of sums are not told from each other"):
            runs._alike(*given)
    monkeypatch.setattr(passes, "differ", lambda *_: False)
    with pytest.raises(NotLifted, match="runs of sums are not told"):
        runs._alike(walked, nothing, zeros, zeros, np.arange(2), flags, flags)
