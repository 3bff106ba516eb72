"""Tensor unit: interpolation at random, numerics worked out by hand, faults, and strict mode."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from darwinn_sim import chip, timing
from darwinn_sim.errors import ChipFault, UnsupportedInstruction
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.isa.codes import TileFlag
from darwinn_sim.kernel import state
from darwinn_sim.machine.lowering import lower
from darwinn_sim.units.output_stage import saturate
from functional_coverage import Coverage
from hypothesis import given
from slow_model import tensor_unit as slow
from stimulus import Walk, constrained_random
from unit_bench import Bench
from unit_cases.tensor_unit import SATURATING, Case, biased, cases, in_place

BINS = (
    "position before the first pixel",
    "position within a pixel",
    "several columns",
    "several rows",
    "several results",
    "64 lanes",
    "held back",
    "four taps",
    "nearest pixel, half a pixel goes up",
    "nearest pixel, less goes down",
    "nearest pixel before the first",
)
FULL = int(state.WRITTEN)


def test_interpolation() -> None:
    """Bilinear and nearest pixel agree on random positions, steps and pitches."""
    coverage = Coverage("interpolation", BINS)

    @constrained_random(150)
    @given(cases(slow.INTERPOLATE))
    def check(case: Case) -> None:
        fields, _, flags = case
        bench = Bench([(slow.INTERPOLATE, fields | {"tiles": 1 << 9})])
        for flag, value in flags.items():
            bench.tiles[9]["flags"][flag] = value
        tile = bench.tile(9)
        done = slow.run(tile, slow.INTERPOLATE, fields)
        bench.run()
        assert bench.fault is None
        bench.assert_tiles([tile])
        assert (bench.waiting == ()) == done
        limits = fields["main_limit"]
        coverage.hit("position before the first pixel", when=fields["x_start"] < 0)
        coverage.hit("position within a pixel", when=fields["y_start"] % 128)
        coverage.hit("several columns", when=limits[fields["x_loop"]] and fields["x_step"])
        coverage.hit("several rows", when=limits[fields["y_loop"]] and fields["y_step"])
        coverage.hit("several results", when=len(slow.output_lanes(fields)) > 1)
        coverage.hit("64 lanes", when=64 in slow.output_lanes(fields))
        coverage.hit("held back", when=not done)
        _cover_nearest(coverage, fields)

    coverage.close(check)


def _cover_nearest(coverage: Coverage, fields: dict[str, Any]) -> None:
    if not fields["apply_bias"]:
        coverage.hit("four taps")
        return
    loop = fields["x_loop"]
    passes = range(fields["main_limit"][loop] + 1)
    positions = [fields["x_start"] + fields["x_step"] * index for index in passes]
    coverage.hit("nearest pixel, half a pixel goes up", when=any(p % 128 >= 64 for p in positions))
    coverage.hit("nearest pixel, less goes down", when=any(p % 128 < 64 for p in positions))
    coverage.hit("nearest pixel before the first", when=any(p < -64 for p in positions))


PLAIN = {
    "tiles": 1,
    "partial_sum_read": 3,
    "mac_disable": 14,
    "last_block_lanes": 3,
    "output_scale": 1.0,
    "high_clip": 255.0,
    "low_clip": 0.0,
    "narrow_write_base": 4096,
    "parameter_read_base": 40,
}
"""One product of the byte at address 0 with four lanes of granule 40 (row 10), into 4096."""


def one_product(
    activation: int, parameters: list[int], changes: dict[str, Any], *, strict: bool = False
) -> Bench:
    bench = Bench([("TensorMac", PLAIN | changes)], strict=strict)
    bench.tiles[0]["narrow"].view(np.uint8)[0] = activation
    row = bench.tiles[0]["wide"][640:704].view(np.uint8)
    row[: 4 * len(parameters) : 4] = parameters
    return bench


def results(bench: Bench) -> list[int]:
    assert bench.fault is None
    octets: list[int] = bench.tiles[0]["narrow"].view(np.uint8)[4096:4100].tolist()
    return octets


@pytest.mark.parametrize(
    ("activation", "parameters", "changes", "expected"),
    [
        (3, [1, 2, 10, 100], {}, [3, 6, 30, 255]),
        (3, [1, 2, 10, 100], {"activation_zero_point": 1}, [2, 4, 20, 200]),
        (3, [1, 2, 10, 100], {"parameter_zero_point": 2}, [0, 0, 24, 255]),
        (1, [1, 3, 5, 7], {"output_scale": 0.5}, [0, 2, 2, 4]),
        (1, [1, 3, 5, 7], {"output_scale": 0.5, "output_zero_point": 9}, [9, 11, 11, 13]),
        (1, [1, 3, 5, 7], {"immediate_bias": -4}, [0, 0, 1, 3]),
        (2, [100, 128, 200, 255], {"high_clip": float("inf")}, [200, 0, 144, 254]),
        (1, [1, 2, 3, 4], {"high_clip": 3.0, "low_clip": 2.0}, [2, 2, 3, 3]),
        (255, [255, 0, 0, 0], {"last_block_lanes": 1, "output_scale": 2.0**-9}, [127, 0, 0, 0]),
    ],
    ids=[
        "products",
        "activation zero point",
        "parameter zero point",
        "ties round to even",
        "the offset comes after rounding",
        "bias",
        "raw outputs keep the low byte",
        "clips",
        "bytes beyond the last lane are zero",
    ],
)
def test_numerics_worked_out_by_hand(
    activation: int, parameters: list[int], changes: dict[str, Any], expected: list[int]
) -> None:
    bench = one_product(activation, parameters, changes)
    bench.run()
    assert results(bench) == expected


def test_the_product_with_the_scale_is_a_float32_product() -> None:
    """16777217 = 2^24 + 1 has no float32: the sum is rounded before it is scaled."""
    wide = {"function": 4, "last_block_lanes": 1, "output_scale": 2.0**-9, "high_clip": 65535.0}
    bench = one_product(1, [1, 1], wide | {"immediate_bias": 1 << 24})
    bench.run()
    halves = bench.tiles[0]["narrow"].view(np.uint16)[2048:2050].tolist()
    assert halves == [32768, 32768]


def test_a_scale_of_the_lane_is_multiplied_as_float32() -> None:
    """0.1 x 10 in float32 is 1.0000000149, which rounds to 1; ties do not arise from float64."""
    bench = one_product(5, [2, 5, 15, 25], {"use_scales": 1})
    scales = np.array([0.1, 0.1, 0.1, 0.1], np.float32)
    bench.tiles[0]["scale_bias"][:4] = scales.view(np.uint32)
    bench.run()
    exact = [np.rint(np.float32(v) * np.float32(0.1)) for v in (10, 25, 75, 125)]
    assert results(bench) == [int(v) for v in exact] == [1, 2, 8, 12]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"parameter_read_base": 4 * chip.WIDE_ROWS}, ("wide memory", "row outside the memory")),
        (
            {"narrow_write_base": chip.NARROW_BYTES - 2},
            ("narrow memory", "address outside the memory"),
        ),
        (
            {"narrow_write_limit": [1, 0, 0, 0, 0, 0, 0, 0]},
            ("tensor unit", "the write traversal ends before or after the results"),
        ),
        (
            {"last_block_lanes": 4},
            ("tensor unit", "the write traversal ends before or after the results"),
        ),
        (
            {"partial_sum_read": 1, "partial_sum_base": 4 * chip.WIDE_ROWS},
            ("wide memory", "row outside the memory"),
        ),
        (
            {
                "load_parameter_zero_point": 1,
                "zero_point_base": chip.WIDE_ROWS,
                "zero_point_limit": chip.WIDE_ROWS,
            },
            ("wide memory", "row outside the memory"),
        ),
    ],
    ids=["parameters", "results", "too few results", "too many results", "sums", "zero points"],
)
def test_what_the_chip_cannot_do_is_a_fault(
    changes: dict[str, Any], fault: tuple[str, str]
) -> None:
    bench = one_product(1, [1, 1, 1, 1], changes)
    bench.run()
    assert bench.fault == fault
    if fault[0] == "tensor unit":
        with pytest.raises(ChipFault, match=fault[1]):
            timing.simulate_program(bench.program, (16,))
    assert (int(bench.core["fault_pc"]), int(bench.core["fault_tile"])) == (1, 0)


def test_surplus_results_are_a_fault_before_a_wait_without_end() -> None:
    """The first of two runs has five lanes for one word of four bytes; the second never begins."""
    changes = {
        "block_lanes": 4,
        "main_limit": [1, 0, 0, 0, 0, 0, 0, 0],
        **Walk((2, *[1] * 7), (4, *[0] * 7)).fields("TensorMac", "partial_sum"),
        "watcher_valid": [1, 0, 0, 0, 0, 0],
        "watcher_flag": [TileFlag.RING_BUS_READ_A, 0, 0, 0, 0, 0],
        "watcher_stride": [1, 0, 0, 0, 0, 0],
    }
    bench = one_product(1, [1, 1, 1, 1, 1], changes)
    bench.run()
    fault = ("tensor unit", "the write traversal ends before or after the results")
    assert bench.fault == fault
    with pytest.raises(ChipFault, match=fault[1]):
        timing.simulate_program(bench.program, (16,))


@pytest.mark.parametrize(
    ("activation", "parameters", "unwritten", "expected"),
    [
        (3, [1, 2, 3, 4], None, [1, 1, 1, 1]),
        (3, [1, 2, 3, 4], "activation", [0, 0, 0, 0]),
        (3, [1, 0, 3, 0], "activation", [0, 1, 0, 1]),
        (3, [1, 2, 3, 4], "parameter of lane 1", [1, 0, 1, 1]),
        (0, [1, 2, 3, 4], "parameter of lane 1", [1, 1, 1, 1]),
    ],
)
def test_results_carry_the_mark_of_operands_that_nothing_has_written(
    activation: int, parameters: list[int], unwritten: str | None, expected: list[int]
) -> None:
    """A product with a written operand that equals its zero point is known all the same."""
    bench = one_product(activation, parameters, {}, strict=True)
    if unwritten == "activation":
        bench.tiles[0]["narrow_written"][0] = 0x01010100
    elif unwritten:
        bench.tiles[0]["wide_written"][641] = 0x01010100
    bench.run()
    assert bench.fault is None
    shadow = bench.tiles[0]["narrow_written"].view(np.uint8)[4096:4100].tolist()
    assert shadow == expected


@pytest.mark.parametrize(("field", "word"), [("apply_bias", 130), ("use_scales", 2)])
def test_results_carry_the_mark_of_scales_and_biases(field: str, word: int) -> None:
    bench = one_product(3, [1, 2, 3, 4], {field: 1}, strict=True)
    bench.tiles[0]["scale_bias_written"][word] = 0
    bench.run()
    shadow = bench.tiles[0]["narrow_written"].view(np.uint8)[4096:4100].tolist()
    assert shadow == [1, 1, 0, 1]


def test_sums_in_wide_memory_carry_the_mark() -> None:
    """A run that goes on from a row of unwritten sums leaves unwritten sums."""
    twice = {"main_limit": [1, 1, 0, 0, 0, 0, 0, 0], "reduction_loops": 2, "partial_sum_read": 1}
    sums = Walk((2, 2, 1, 1, 1, 1, 1, 1), (4, 0, 0, 0, 0, 0, 0, 0), base=400)
    write = Walk((2, 1, 1, 1, 1, 1, 1, 1), (4, 0, 0, 0, 0, 0, 0, 0), base=4096)
    changes = twice | {"output_block_loop": 2} | sums.fields("TensorMac", "partial_sum")
    changes |= write.fields("TensorMac", "narrow_write")
    bench = one_product(3, [1, 2, 3, 4], changes, strict=True)
    bench.tiles[0]["wide_written"][642] = 0
    bench.run()
    assert bench.fault is None
    assert bench.tiles[0]["wide_written"][6400:6404].tolist() == [FULL, FULL, 0, FULL]


def test_results_of_a_table_that_nothing_has_loaded_are_unwritten() -> None:
    for strict in (True, False):
        bench = one_product(1, [1, 1, 1, 1], {"function": 1}, strict=strict)
        before = bench.tiles[0]["narrow_written"].copy()
        bench.run()
        assert bench.fault is None
        assert np.array_equal(before, bench.tiles[0]["narrow_written"]) == (not strict)


@pytest.mark.parametrize(
    ("operation", "changes", "expected"),
    [
        ("TensorMax", {"mac_disable": 0}, [40, 40, 40, 40]),
        ("TensorMax", {"mac_disable": 14}, [10, 10, 10, 10]),
        ("TensorMax", {"mac_disable": 0, "parameter_read_base": 41}, [20, 20, 20, 20]),
        ("TensorMax", {"mac_disable": 14, "parameter_read_base": 42}, [30, 30, 30, 30]),
        ("TensorSum", {"mac_disable": 0}, [100, 100, 100, 100]),
    ],
    ids=["row", "one plane", "plane 1 of four", "plane 2 of one", "sum"],
)
def test_a_maximum_takes_as_many_planes_as_multipliers_work(
    operation: str, changes: dict[str, Any], expected: list[int]
) -> None:
    """Planes hold 10, 20, 30 and 40; all of them where the granule begins the row."""
    bench = Bench([(operation, PLAIN | changes)])
    bench.tiles[0]["wide"][640:704].view(np.uint8)[:] = 64 * [10, 20, 30, 40]
    bench.run()
    assert results(bench) == expected


@pytest.mark.parametrize("start", [1, 65, -63])
@pytest.mark.parametrize("strict", [False, True])
def test_the_nearest_pixel_is_taken_whole(start: int, strict: bool) -> None:
    """Twice as many columns: each pixel comes twice; a bias in the buffer is not added."""
    fields: dict[str, Any] = {
        "main_limit": [0, 0, 5, 0, 0, 0, 0, 0],
        "reduction_loops": 3,
        "partial_sum_read": 3,
        "last_block_lanes": 3,
        "block_lanes": 3,
        "output_scale": 1.0,
        "apply_bias": 1,
        "x_loop": 2,
        "x_start": start,
        "x_step": 64,
        "x_pitch": 8,
        "y_loop": 3,
        "narrow_read_base": 8,
    }
    once = (1, 1)
    for name, walk in {
        "narrow_read": Walk((*once, 6, 1, 1, 1, 1, 1), (0,) * 8, base=8),
        "partial_sum": Walk((6, 1, 1, 1, 1, 1, 1, 1), (4, 0, 0, 0, 0, 0, 0, 0)),
        "narrow_write": Walk((6, 1, 1, 1, 1, 1, 1, 1), (4, 0, 0, 0, 0, 0, 0, 0), base=4096),
    }.items():
        fields |= walk.fields("TensorInterpolate", name)
    bench = Bench([("TensorInterpolate", fields | {"tiles": 1})], strict=strict)
    narrow = bench.tiles[0]["narrow"].view(np.uint8)
    narrow[:64] = np.arange(64)
    bench.run()
    assert bench.fault is None
    written = narrow[4096 : 4096 + 24].reshape(6, 4)
    # Positions are in 1/128 pixel; half a pixel goes up.
    pixels = [int(np.floor((start + 64 * k) / 128 + 0.5)) for k in range(6)]
    assert written.tolist() == [[8 + 8 * pixel + lane for lane in range(4)] for pixel in pixels]


@pytest.mark.parametrize("name", ["TensorMac", "TensorSum", "TensorMax"])
def test_a_product_is_made_if_all_its_multipliers_work(name: str) -> None:
    """Of 4 multipliers a 16-bit operand takes 2 for a product, two of them all four."""
    looked_at = set()
    for disabled, parameters, activations in itertools.product(range(16), (0, 1), (0, 1)):
        fields = {
            "mac_disable": disabled,
            "parameter_16bit": parameters,
            "activation_16bit": activations,
        }
        try:
            (record,) = lower((frame(build([(name, fields)])),)).tables.tensor
        except UnsupportedInstruction:
            continue
        size = 1 << parameters + (name == "TensorMac") * activations
        products = [
            all(not disabled >> k & 1 for k in range(first, first + size))
            for first in range(0, 4, size)
        ]
        assert record["working"] == sum(made << k for k, made in enumerate(products)), fields
        last = max((k + 1 for k, made in enumerate(products) if made), default=0)
        assert record["products"] == last, fields
        looked_at.add((parameters, activations))
    assert len(looked_at) == 4, looked_at


def test_what_is_no_number_counts_as_0() -> None:
    """As in RTL; what a processor makes of it as an integer is not the same on all of them."""
    rounded = np.zeros(5, np.int32)
    scaled = np.array([np.nan, 1.5, -np.inf, np.inf, -9.0], np.float32)
    written: Any = saturate
    written.py_func(scaled, np.float32(7), np.float32(255), rounded, len(scaled))
    assert rounded.tolist() == [7, 9, 0, 255, 0]


@pytest.mark.parametrize(("positions", "wide"), [(1, False), (2, False), (3, False), (2, True)])
def test_a_result_is_in_its_place_when_the_next_iteration_has_read(
    positions: int, *, wide: bool
) -> None:
    """Twice in place is once; each further time adds one, since that result has arrived."""
    fields = in_place(16, positions, wide=wide) | {"tiles": 1}
    bench = Bench([(slow.MAC, fields)])
    bench.tiles["wide"][0, :4] = [1 << 8 * lane for lane in range(4)]
    octets = np.arange(16, dtype=np.uint8)
    bench.tiles["narrow"][0].view(np.uint8)[64:80] = octets
    tile = bench.tile(0)
    assert slow.run(tile, slow.MAC, fields)
    bench.run()
    assert bench.fault is None
    bench.assert_tiles([tile])
    if not wide:
        assert bytes(tile.narrow[64:80]) == bytes(octets + (positions + 1) // 2)


@pytest.mark.parametrize(("total", "bias", "expected"), SATURATING)
def test_a_sum_with_its_bias_saturates(total: int, bias: int, expected: int) -> None:
    """Beyond 32 bits it does not come out at the other end."""
    fields = biased(total, bias) | {"tiles": 1}
    bench = Bench([(slow.MAC, fields)])
    bench.tiles["wide"][0, :4] = 1
    bench.tiles["narrow"][0, 16] = 0
    tile = bench.tile(0)
    assert slow.run(tile, slow.MAC, fields)
    bench.run()
    assert bench.fault is None
    bench.assert_tiles([tile])
    assert list(tile.narrow[128:132]) == [expected] * 4
