"""Tensor unit of the RTL's tile: random instructions of every operation against the slow model."""

from __future__ import annotations

from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from darwinn_sim import chip
from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.isa.table import BY_NAME
from functional_coverage import Coverage
from hypothesis import strategies as st
from nightly import check_cases, nightly_too
from slow_model import tensor_unit as slow
from stimulus import Walk, around_powers, line, nothing, signed_powers
from tensor_stimulus import scale_bias
from tile_units import TileAndModel, check_unit
from traversal_coverage import bins
from traversal_coverage import cover as cover_traversal
from unit_cases.tensor_unit import SATURATING, TRAVERSALS, Case, biased, cases, in_place

DEFAULTS = nothing(slow.MAC)


def _check(operation: str, case: Case) -> None:
    fields, table, flags = case
    pair = TileAndModel(flags)
    words = scale_bias(7)
    pair.rtl.scale_bias[:] = words
    pair.slow.scale_bias[:] = words.tobytes()
    pair.slow.coefficient = [np.float32(value) for value in table["coefficient"]]
    pair.slow.lower_bound = [np.float32(value) for value in table["lower_bound"]]
    pair.give("CoefficientTable", table)
    pair.give(operation, fields)
    done = slow.run(pair.slow, operation, fields)
    pair.run()
    assert pair.rtl.idle == done


@nightly_too
def test_multiply_accumulate(nightly: bool) -> None:
    """Results, partial sums and flags agree, over all kinds of parameter traversals."""
    coverage = Coverage("RTL tensor unit", bins(*TRAVERSALS))

    def check(case: Case) -> None:
        _check(slow.MAC, case)
        for name in TRAVERSALS:
            cover_traversal(coverage, case[0], name)

    check_unit(coverage, TRAVERSALS, partial(cases, slow.MAC), check, nightly=nightly)


PLAIN = DEFAULTS | {
    "partial_sum_read": 3,
    "mac_disable": 14,
    "last_block_lanes": 3,
    "output_scale": 0.5,
    "high_clip": 255.0,
    "narrow_write_base": 4096,
}
"""One product of the byte at address 0 with four lanes of row 0, into 4096."""


def test_ties_round_to_even() -> None:
    """Halves of 1, 3, 5 and 7."""
    pair = TileAndModel({})
    lanes = np.array([1, 3, 5, 7], np.uint32)
    pair.rtl.narrow[0] = pair.slow.narrow[0] = 1
    pair.rtl.wide[:4] = lanes
    pair.slow.wide[:16] = lanes.tobytes()
    pair.give(slow.MAC, PLAIN)
    slow.run(pair.slow, slow.MAC, PLAIN)
    pair.run()
    assert pair.rtl.narrow[4096:4100].tolist() == [0, 2, 2, 4]


@pytest.mark.parametrize(("disabled", "expected"), [(14, 10), (12, 20), (0, 40)])
def test_a_maximum_is_that_of_its_byte_planes(disabled: int, expected: int) -> None:
    """Of the first, the first two, or all four, where the granule begins a row."""
    pair = TileAndModel({})
    lanes = np.full(4, 0x281E140A, np.uint32)
    pair.rtl.wide[:4] = lanes
    pair.slow.wide[:16] = lanes.tobytes()
    fields = PLAIN | {"mac_disable": disabled, "output_scale": 1.0}
    pair.give(slow.MAXIMUM, fields)
    slow.run(pair.slow, slow.MAXIMUM, fields)
    pair.run()
    assert pair.rtl.narrow[4096:4100].tolist() == [expected] * 4


@pytest.mark.parametrize("wide", [0, 1], ids=["8 bit", "16 bit"])
def test_a_maximum_looks_at_every_bit(wide: int) -> None:
    """Of numbers that differ in a bit or two, in each lane, within a step and from step to step."""
    pair, random, steps = TileAndModel({}), np.random.default_rng(3), 4
    bits = 16 if wide else 8
    shape = (steps, 64, 32 // bits)
    near = random.integers(1 << bits, size=(1, 64, 1)) ^ (1 << random.integers(bits, size=shape))
    words = near.astype("<u2" if wide else "u1").view("<u4").ravel()
    pair.rtl.wide[: words.size] = words
    pair.slow.wide[: 4 * words.size] = words.tobytes()
    lanes = 64
    fields = PLAIN | {
        "parameter_16bit": wide,
        "mac_disable": 0,
        "main_limit": [steps - 1, 0, 0, 0, 0, 0, 0, 0],
        "reduction_loops": 1,
        "last_block_lanes": lanes - 1,
        "output_scale": 1.0,
        "high_clip": 65535.0,
        "function": 4,
    }
    ones, rest = (1,) * 7, (0,) * 7
    fields |= Walk((steps, *ones), (4, *rest)).fields(slow.MAC, "parameter_read")
    fields |= Walk((lanes // 2, *ones), (4, *rest), base=4096).fields(slow.MAC, "narrow_write")
    pair.give(slow.MAXIMUM, fields)
    assert slow.run(pair.slow, slow.MAXIMUM, fields)
    pair.run()
    assert pair.rtl.idle


def test_sums_in_wide_memory_go_on() -> None:
    """Two sums, each begun in the first pass of the reduction and finished in the second."""
    pair = TileAndModel({})
    fields = PLAIN | {
        "partial_sum_read": 1,
        "main_limit": [1, 1, 0, 0, 0, 0, 0, 0],
        "reduction_loops": 2,
        "output_scale": 2.0**-10,
    }
    ones, zeros = (1,) * 6, (0,) * 6
    for name, walk in {
        "narrow_read": Walk((2, 2, *ones), (0, 9, *zeros)),
        "parameter_read": Walk((2, 2, *ones), (4, 8, *zeros)),
        "partial_sum": Walk((2, 2, *ones), (4, 0, *zeros), base=400),
        "narrow_write": Walk((2, 1, *ones), (4, 0, *zeros), base=4096),
    }.items():
        fields |= walk.fields(slow.MAC, name)
    pair.give(slow.MAC, fields)
    assert slow.run(pair.slow, slow.MAC, fields)
    pair.run()


@pytest.mark.parametrize("start", [0, 1])
def test_sums_of_a_double_buffer_end_where_their_address_changes(start: int) -> None:
    """Three steps to each of four sums, two in each buffer: results leave behind the third."""
    pair = TileAndModel({})
    fields = PLAIN | {"main_limit": [2, 1, 1, 0, 0, 0, 0, 0], "reduction_loops": 1}
    ones, zeros = (1,) * 5, (0,) * 5
    for name, walk in {
        "narrow_read": Walk((3, 2, 2, *ones), (1, 7, 0, *zeros)),
        "parameter_read": Walk((3, 2, 2, *ones), (4, 12, 24, *zeros)),
        "partial_sum": Walk((3, 2, 2, *ones), (0, 4, 0, *zeros), base=400, double=(2, 40, start)),
        "narrow_write": Walk((4, 1, 1, *ones), (4, 0, 0, *zeros), base=4096),
    }.items():
        fields |= walk.fields(slow.MAC, name)
    fields["output_scale"] = 2.0**-9
    pair.give(slow.MAC, fields)
    assert slow.run(pair.slow, slow.MAC, fields)
    pair.run()
    assert pair.rtl.idle


@pytest.mark.parametrize("missing", [0, 1])
def test_a_watcher_passes_at_its_value_and_not_before(missing: int) -> None:
    watcher = {"watcher_valid": 1, "watcher_flag": 13, "watcher_expected": 7}
    fields = PLAIN | {name: [value, 0, 0, 0, 0, 0] for name, value in watcher.items()}
    pair = TileAndModel({13: 7 - missing})
    pair.give(slow.MAC, fields)
    assert slow.run(pair.slow, slow.MAC, fields) == (not missing)
    pair.run(limit=200)
    assert pair.rtl.idle == (not missing)


def test_an_iteration_takes_a_cycle() -> None:
    """docs/rtl.md: results leave while the next run of sums is made."""
    cycles = []
    for runs in (4, 8):
        pair = TileAndModel({})
        fields: dict[str, Any] = {
            "partial_sum_read": 3,
            "mac_disable": 0,
            "main_limit": [31, runs - 1, 0, 0, 0, 0, 0, 0],
            "reduction_loops": 1,
            "output_block_loop": 1,
            "block_lanes": 63,
            "last_block_lanes": 63,
            "high_clip": 255.0,
            "output_scale": 2.0**-12,
        }
        ones = (1,) * 6
        rest = (0,) * 6
        for name, walk in {
            "narrow_read": Walk((32, runs, *ones), (4, 0, *rest)),
            "parameter_read": Walk((32, runs, *ones), (4, 128, *rest)),
            "partial_sum": Walk((32, runs, *ones), (0, 4, *rest)),
            "narrow_write": Walk((16, runs, *ones), (4, 64, *rest), base=4096),
        }.items():
            fields |= walk.fields(slow.MAC, name)
        pair.give(slow.MAC, fields)
        slow.run(pair.slow, slow.MAC, DEFAULTS | fields)
        cycles.append(pair.run())
    assert cycles[1] - cycles[0] == 4 * 32


def _check_random(operation: str, nightly: bool) -> None:
    check = partial(_check, operation)
    check_cases(f"RTL tensor unit, {operation}", cases(operation), check, 60, nightly=nightly)


def test_zero_points_begin_anew_however_far_their_next_row_is() -> None:
    """Beyond all rows that 12 bits can name."""
    far = st.tuples(cases(slow.MAC), st.integers(chip.WIDE_ROWS, 4095)).map(
        lambda drawn: (drawn[0][0] | {"zero_point_stride": drawn[1]}, *drawn[0][1:])
    )
    check_cases(
        "RTL tensor unit, rows of zero points",
        far.filter(lambda case: bool(case[0]["load_parameter_zero_point"])),
        partial(_check, slow.MAC),
        20,
        nightly=False,
    )


@pytest.mark.parametrize("wide", [0, 1])
@pytest.mark.parametrize("name", ["activation", "parameter"])
def test_every_bit_of_a_zero_point_counts(name: str, wide: int) -> None:
    """Also those beyond the width of the operand; sums show more than their low byte."""
    # A sum in wide memory is as it is.
    fields = PLAIN | {"mac_disable": 0, "partial_sum_read": 1, "partial_sum_base": 4 * 400}
    for bit in range(16):
        operand = {f"{name}_16bit": wide, f"{name}_zero_point": 1 << bit}
        _check(slow.MAC, (fields | operand, NO_TABLE, {}))


@nightly_too
def test_maximum(nightly: bool) -> None:
    _check_random(slow.MAXIMUM, nightly)


@nightly_too
def test_sum(nightly: bool) -> None:
    _check_random(slow.SUM, nightly)


@nightly_too
def test_interpolation(nightly: bool) -> None:
    _check_random(slow.INTERPOLATE, nightly)


NEAREST = nothing(slow.INTERPOLATE) | {
    "reduction_loops": 3,
    "partial_sum_read": 3,
    "output_block_loop": 3,
    "last_block_lanes": 3,
    "apply_bias": 1,
    "output_scale": 1.0,
    "x_loop": 3,
    "y_loop": 3,
}
"""Outputs of four lanes, each the nearest pixel."""


def _nearest(count: int, axis: str, **fields: int) -> list[list[int]]:
    """So many outputs along an axis, of pixels that are 8 bytes apart."""
    ones, zeros = (1,) * 5, (0,) * 5
    every = NEAREST | {f"{axis}_loop": 2, f"{axis}_pitch": 8, **fields}
    every |= {"main_limit": [0, 0, count - 1, *zeros]}
    for name, walk in {
        "narrow_read": Walk((1, 1, count, *ones), (0, 0, 0, *zeros), base=20_000),
        "partial_sum": Walk((1, 1, count, *ones), (0, 0, 4, *zeros)),
        "narrow_write": Walk((count, 1, 1, *ones), (4, 0, 0, *zeros), base=4096),
    }.items():
        every |= walk.fields(slow.INTERPOLATE, name)
    pair = TileAndModel({})
    pair.give(slow.INTERPOLATE, every)
    assert slow.run(pair.slow, slow.INTERPOLATE, every)
    pair.run(1 << 16)
    assert pair.rtl.idle
    found: list[list[int]] = pair.rtl.narrow[4096:][: 4 * count].reshape(count, 4).tolist()
    return found


@pytest.mark.parametrize("axis", "xy")
@pytest.mark.parametrize("bit", range(16))
def test_every_bit_of_a_step_between_pixels(axis: str, bit: int) -> None:
    """The second output is one pixel on, or further: without the bit it would be the first one."""
    step, half = 1 << bit, 64
    start = max(128 - half - step, 0 - half)
    first, second = _nearest(2, axis, **{f"{axis}_step": step, f"{axis}_start": start})
    assert first != second


@pytest.mark.parametrize("axis", "xy")
def test_every_bit_of_the_number_of_an_output(axis: str) -> None:
    """As many as there are rows of sums, four to a pixel."""
    found = _nearest(chip.WIDE_ROWS, axis, **{f"{axis}_step": 32})
    assert found[1 << 10] != found[0]


@pytest.mark.parametrize("axis", "xy")
def test_every_bit_of_a_pitch(axis: str) -> None:
    """The second output is the next pixel: without the bit it would be the first one."""
    for bit in range(BY_NAME[slow.INTERPOLATE].field(f"{axis}_pitch").width):
        first, second = _nearest(2, axis, **{f"{axis}_step": 128, f"{axis}_pitch": 1 << bit})
        assert first != second, bit


def _loops(fields: dict[str, Any], **walks: Walk) -> dict[str, Any]:
    """A multiplication with these traversals, all of whose multipliers work."""
    every = PLAIN | {"mac_disable": 0, "output_scale": 2.0**-10} | fields
    for name, walk in walks.items():
        every |= walk.fields(slow.MAC, name)
    return every


def _eight(*innermost: int, rest: int) -> tuple[int, ...]:
    return (*innermost, *[rest] * (8 - len(innermost)))


LAST_GRANULE = 4 * (chip.WIDE_ROWS - 1) - 1
"""The last one that has a row behind its own."""

PLACES = {
    "narrow_read": (1, chip.NARROW_BYTES - 12),
    "narrow_write": (1, chip.NARROW_BYTES - 7),
    "parameter_read": (1, LAST_GRANULE - 12),
    "partial_sum": (4, chip.WIDE_ROWS - 1),
    "zero_point": (1, chip.WIDE_ROWS),
}
"""Units in which the base of an operand counts, and how many places it has."""


@pytest.mark.parametrize("operand", PLACES)
def test_every_bit_of_an_address_counts(operand: str) -> None:
    """Of two sums that are begun in a first pass, written, and finished in a second."""
    twice = _eight(2, 2, rest=1)
    fields = _loops(
        {
            "partial_sum_read": 1,
            "main_limit": _eight(1, 1, rest=0),
            "reduction_loops": 2,
            "load_parameter_zero_point": 1,
            "zero_point_base": 300,
        },
        narrow_read=Walk(twice, _eight(0, 9, rest=0), base=100),
        parameter_read=Walk(twice, _eight(4, 8, rest=0), base=40),
        partial_sum=Walk(twice, _eight(4, 0, rest=0), base=400),
        narrow_write=Walk(_eight(2, rest=1), _eight(4, rest=0), base=5000),
    )
    unit, places = PLACES[operand]
    for base in around_powers(places):
        _check(slow.MAC, (fields | {f"{operand}_base": unit * base}, NO_TABLE, {}))


NO_TABLE = {"coefficient": [0.0] * 40, "lower_bound": [0.0] * 7, "degree": 3}


def test_a_run_ends_whichever_bit_of_the_address_of_its_sums_changes() -> None:
    """And changes back: four runs of two places."""
    for bit in range(BY_NAME[slow.MAC].field("partial_sum_base").width):
        fields = _loops(
            {"main_limit": _eight(3, rest=0)},
            narrow_read=Walk(_eight(4, rest=1), _eight(1, rest=0), base=100),
            partial_sum=Walk(_eight(2, 2, rest=1), _eight(1 << bit, 0, rest=0)),
            narrow_write=Walk(_eight(4, rest=1), _eight(4, rest=0), base=5000),
        )
        _check(slow.MAC, (fields, NO_TABLE, {}))


STEPS = {
    "narrow_read": (1, 100, chip.NARROW_BYTES - 200),
    "narrow_write": (1, 0, chip.NARROW_BYTES - 100),
    "parameter_read": (1, 0, LAST_GRANULE - 12),
    "partial_sum": (4, 0, chip.WIDE_ROWS - 4),
}
"""Units in which an operand steps, and its first and last base."""


THREE = _loops(
    {"main_limit": _eight(2, rest=0), "partial_sum_read": 1},
    narrow_read=Walk(_eight(3, rest=1), _eight(7, rest=0), base=50_000),
    parameter_read=Walk(_eight(3, rest=1), _eight(4, rest=0), base=4400),
    partial_sum=Walk(_eight(3, rest=1), _eight(4, rest=0), base=4800),
    narrow_write=Walk(_eight(3, rest=1), _eight(4, rest=0), base=60_000),
)
"""Three sums of an iteration each."""


@pytest.mark.parametrize("operand", STEPS)
def test_every_bit_of_a_stride_and_of_a_reset_counts(operand: str) -> None:
    """Of three sums, the second pass being shorter by one; forward and backward."""
    unit, first, last = STEPS[operand]
    for step in signed_powers(slow.MAC, f"{operand}_alternate_reset", unit):
        steps = _eight(unit * step, unit * 3, rest=0)
        base = unit * (first if step > 0 else last)
        short = Walk(_eight(2, 2, rest=1), steps, base=base, alternate=(1, 1))
        if abs(step) < last - first:
            _check(slow.MAC, (THREE | short.fields(slow.MAC, operand), NO_TABLE, {}))


@pytest.mark.parametrize("operand", STEPS)
def test_every_bit_of_the_distance_of_a_double_buffer_counts(operand: str) -> None:
    """Of three sums: there and back, from either side on."""
    unit, first, last = STEPS[operand]
    for distance in around_powers(last - first - 10):
        double = (0, unit * distance, distance & 1)
        steps = _eight(unit * 5, rest=0)
        walked = Walk(_eight(3, rest=1), steps, base=unit * first, double=double)
        _check(slow.MAC, (THREE | walked.fields(slow.MAC, operand), NO_TABLE, {}))


@pytest.mark.parametrize("loop", range(8))
def test_every_bit_of_a_main_loop_counts(loop: int) -> None:
    """Of a run of ones: it has as many terms as there are iterations, each of which takes a cycle;
    the walks of its operands, of one element each, begin anew all the time."""
    fields = PLAIN | {"function": 4, "high_clip": 65535.0, "output_scale": 1.0}
    fields |= {"reduction_loops": 0xFF}
    pair, cycles = TileAndModel({}), []
    for limit in (0, *(1 << bit for bit in range(BY_NAME[slow.MAC].field("main_limit").width))):
        pair.rtl.narrow[0] = pair.rtl.wide[0] = 1
        limits = [limit if k == loop else 0 for k in range(8)]
        pair.give(slow.MAC, fields | {"main_limit": limits, "last_block_lanes": 0})
        cycles.append(pair.rtl.run(1 << 15) - limit)
        assert pair.rtl.narrow[4096:4100].view("<u2").tolist() == [limit + 1, 0]
    assert len(set(cycles)) == 1, cycles


@pytest.mark.parametrize("loop", [0, 3, 7])
def test_every_bit_of_a_loop_of_blocks_counts(loop: int) -> None:
    """The last block, of one lane, is that of the last iteration and of no other."""
    pair = TileAndModel({})
    pair.rtl.narrow[0] = 1
    pair.rtl.wide[:4] = 1
    fields = PLAIN | {"block_lanes": 3, "last_block_lanes": 0, "output_scale": 1.0}
    # A sum is that of one iteration: the next one's has another address.
    fields |= Walk(_eight(2, rest=1), _eight(4, rest=0)).fields(slow.MAC, "partial_sum")
    for limit in (1 << bit for bit in range(BY_NAME[slow.MAC].field("main_limit").width)):
        limits = [limit if k == loop else 0 for k in range(8)]
        places = line(slow.MAC, "narrow_write", limit + 1, 4096, 4)
        pair.give(slow.MAC, fields | places | {"main_limit": limits})
        pair.rtl.run(1 << 15)
        words = pair.rtl.narrow[4096 : 4096 + 4 * (limit + 1)].view("<u4")
        assert (words[:-1] == 0x01010101).all() and words[-1] == 1, limit


@st.composite
def _with_what_has_no_effect(draw: Any, operation: str) -> Case:
    """A case, with values of fields that change nothing (docs/isa.md, "Values by grade"): bits of
    functions without a table, what saves power, the gate and the tag, the degree of a table."""
    fields, table, flags = draw(cases(operation))
    widths = {each.name: each.width for each in BY_NAME[operation].fields}
    silent = {name: draw(st.integers(0, (1 << widths[name]) - 1)) for name in SILENT}
    if not fields["function"] & 1:
        silent["function"] = fields["function"] | draw(st.sampled_from([0, 2]))
        silent |= {name: draw(st.integers(0, 1)) for name in ("symmetric_function", "odd_function")}
    degree = {"degree": draw(st.integers(0, 3))}
    return fields | silent, table | degree, flags


SILENT = (
    *("gate", "predicate", "polarity", "trace", "base_register", "tiles_register", "tag"),
    *("hiccup", "partial_sum_wrap", "zero_activation_power_save"),
)


@pytest.mark.parametrize("operation", [slow.MAC, slow.MAXIMUM, slow.SUM])
def test_what_has_no_effect_changes_nothing(operation: str) -> None:
    drawn = _with_what_has_no_effect(operation)
    check = partial(_check, operation)
    check_cases(f"RTL tensor unit, no effect on {operation}", drawn, check, 30, nightly=False)


FUNCTIONS = [(3, 0, 0), *product((0, 1, 2), (1,), (0, 1)), *product((0, 1, 2), (0,), (0,))]
"""Bits of a function, and whether it is symmetric and odd, as far as it is known what they do."""


@pytest.mark.parametrize(("function", "symmetric", "odd"), FUNCTIONS)
def test_an_infinite_clip_keeps_the_low_byte_whatever_the_function(
    function: int, symmetric: int, odd: int
) -> None:
    """Of sums far beyond a byte, of either sign; without a table no sign is changed."""
    lanes = 64
    fields = PLAIN | {
        "function": function,
        "symmetric_function": symmetric,
        "odd_function": odd,
        "parameter_zero_point": 128,
        "activation_zero_point": 0,
        "output_scale": 1.0,
        "low_clip": float("-inf"),
        "high_clip": float("inf"),
        "output_zero_point": 7,
        "last_block_lanes": lanes - 1,
    }
    fields |= line(slow.MAC, "narrow_write", lanes // 4, 4096, 4)
    coefficients = [c for k in range(chip.TABLE_SEGMENTS) for c in (3.0 + k, 1.5, 0.25, 0.0, 0.0)]
    bounds = [-4000.0, -200.0, -1.0, 1.0, 2.5, 900.0, 5000.0]
    table = {"coefficient": coefficients, "lower_bound": bounds, "degree": 3}
    _check(slow.MAC, (fields, table, {}))


SCALING = int(TileFlag.WIDE_TO_SCALING)


@pytest.mark.parametrize(("first", "second"), list(combinations(range(6), 2)))
def test_the_first_watcher_of_the_scales_says_which_half(first: int, second: int) -> None:
    """Whatever others there are: one that is off before it, one of the other half behind it, of
    another flag, or at another depth."""
    for half, depth in product((0, 1), (0, 7)):
        slots: dict[str, list[int]] = {
            f"watcher_{part}": [0] * 6 for part in ("valid", "flag", "expected", "depth")
        }
        slots["watcher_flag"] = [SCALING] * 6
        for slot, expected in ((first, 1 + half), (second, 2 - half)):
            slots["watcher_valid"][slot] = 1
            slots["watcher_expected"][slot] = expected
            slots["watcher_depth"][slot] = depth if slot == first else 7 - depth
        scaled = {
            "use_scales": 1,
            "apply_bias": 1,
            "output_scale": 2.0**-9,
            "output_zero_point": 99,
        }
        fields = PLAIN | slots | scaled | {"last_block_lanes": 63}
        fields |= line(slow.MAC, "narrow_write", 16, 4096, 4)
        _check(slow.MAC, (fields, NO_TABLE, {SCALING: 2}))


COUNTS = (3, 2, 2)
"""Iterations of the innermost main loops."""


@pytest.mark.parametrize("mode", [1, 3], ids=["sums in wide memory", "sums in the unit"])
@pytest.mark.parametrize("alternate", [(0, 0), (1, 1), (1, 2), (2, 1), (2, 2)])
def test_lanes_and_edges_of_reductions_whichever_loops_there_are(
    alternate: tuple[int, int], mode: int
) -> None:
    """Every set of loops that are summed over, every loop from which blocks are counted, and a loop
    0 that is shorter on the last pass of another."""
    for summed, block_loop in product(range(1 << len(COUNTS)), range(len(COUNTS) + 1)):
        steps, unit = [0] * 8, 4
        for loop, count in enumerate(COUNTS):
            if not summed >> loop & 1:
                steps[loop] = unit
                unit *= count
        counts = (*COUNTS, *[1] * 5)
        walks = {
            "narrow_read": Walk(counts, (5, 7, 40, *[0] * 5), base=100, alternate=alternate),
            "parameter_read": Walk(counts, (4, 12, 24, *[0] * 5), base=40, alternate=alternate),
            "partial_sum": Walk(counts, tuple(steps), base=4 * 400, alternate=alternate),
        }
        fields = _loops(
            {
                "main_limit": [count - 1 for count in counts],
                "main_alternate_loop": alternate[0],
                "main_alternate_limit": max(alternate[1] - 1, 0),
                "reduction_loops": summed,
                "output_block_loop": block_loop,
                "block_lanes": 8,
                "last_block_lanes": 2,
                "partial_sum_read": mode,
            },
            **walks,
        )
        words = sum(-(-lanes // 4) for lanes in slow.output_lanes(fields))
        if words:
            fields |= line(slow.MAC, "narrow_write", words, 5000, 4)
            _check(slow.MAC, (fields, NO_TABLE, {}))


def test_an_interpolation_leaves_its_sums_in_wide_memory() -> None:
    """Where it is told to; the results are the same."""
    wide = cases(slow.INTERPOLATE).map(lambda case: (case[0] | {"partial_sum_read": 1}, *case[1:]))
    check = partial(_check, slow.INTERPOLATE)
    check_cases("RTL tensor unit, sums of interpolations", wide, check, 60, nightly=False)


@pytest.mark.parametrize("steps", [1, 2, 20])
@pytest.mark.parametrize("lanes", [4, 5, 64])
def test_results_leave_with_the_scales_of_their_own_run(lanes: int, steps: int) -> None:
    """While runs behind it are summed, whose scales are in the other half."""
    runs = 4
    waits = {"valid": 1, "flag": SCALING, "expected": 1, "stride": 1, "depth": 1}
    fields = _loops(
        {
            "main_limit": _eight(steps - 1, runs - 1, rest=0),
            "reduction_loops": 1,
            "block_lanes": lanes - 1,
            "last_block_lanes": lanes - 1,
            "use_scales": 1,
            "apply_bias": 1,
            "output_scale": 2.0**-9,
            "output_zero_point": 99,
            **{f"watcher_{part}": [value, *[0] * 5] for part, value in waits.items()},
        },
        narrow_read=Walk(_eight(steps, runs, rest=1), _eight(1, 9, rest=0), base=100),
        parameter_read=Walk(_eight(steps, runs, rest=1), _eight(4, 80, rest=0), base=40),
        partial_sum=Walk(_eight(steps, runs, rest=1), _eight(0, 4, rest=0)),
    )
    fields |= line(slow.MAC, "narrow_write", runs * -(-lanes // 4), 5000, 4)
    _check(slow.MAC, (fields, NO_TABLE, {SCALING: runs}))


@pytest.mark.parametrize(("positions", "wide"), [(1, False), (2, False), (3, False), (2, True)])
def test_in_place(positions: int, *, wide: bool) -> None:
    """An iteration reads while the result of the one before is on its way."""
    pair, fields = TileAndModel({}), in_place(16, positions, wide=wide)
    lanes = np.array([1 << 8 * lane for lane in range(4)], np.uint32)
    pair.rtl.wide[:4] = lanes
    pair.slow.wide[:16] = lanes.tobytes()
    octets = np.arange(16, dtype=np.uint8)
    pair.rtl.narrow[64:80] = octets
    pair.slow.narrow[64:80] = octets.tobytes()
    pair.give(slow.MAC, fields)
    assert slow.run(pair.slow, slow.MAC, fields)
    pair.run()
    assert pair.rtl.idle


@pytest.mark.parametrize(("total", "bias", "expected"), SATURATING)
def test_a_sum_with_its_bias_saturates(total: int, bias: int, expected: int) -> None:
    pair, fields = TileAndModel({}), biased(total, bias)
    pair.rtl.wide[:4] = 1
    pair.slow.wide[:16] = np.ones(4, np.uint32).tobytes()
    pair.rtl.narrow[64:68] = 0
    pair.slow.narrow[64:68] = bytes(4)
    pair.give(slow.MAC, fields)
    assert slow.run(pair.slow, slow.MAC, fields)
    pair.run()
    assert pair.rtl.narrow[128:132].tolist() == [expected] * 4
