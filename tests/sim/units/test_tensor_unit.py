"""Tensor unit: random multiply-accumulate, maximum and sum instructions against a slow model."""

from __future__ import annotations

from typing import Any

import numpy as np
from functional_coverage import Coverage
from hypothesis import given
from slow_model import tensor_unit as slow
from slow_model.sync import Watchers
from slow_model.traversal import walk
from stimulus import constrained_random
from unit_cases import tensor_unit
from unit_cases.tensor_unit import Case, cases

PLAIN_BINS = (
    *(f"main loops used: {n}" for n in range(4)),
    "main alternate limit",
    "sums in the accumulator",
    "sums in wide memory",
    "sums read back from wide memory",
    "several results",
    "last block of lanes",
    "other block of lanes",
    "all 64 lanes",
    "one lane",
    "lanes not a multiple of 4",
    "parameters wrap",
    "8-bit output",
    "16-bit output",
    "raw output",
    "raw 16-bit output",
    "table",
    "range reduction",
    "symmetric function",
    "odd function",
    "16-bit table output",
    "immediate bias",
    "bias of the lane",
    "scale of the lane",
    "scales from the second half",
    "watcher",
    "held back",
    "held back after some results",
)
MAC_BINS = (
    *PLAIN_BINS,
    "8 x 8, four products",
    "8 x 8, two products",
    "8 x 8, one product",
    "16 x 8, two products",
    "16 x 8, one product",
    "8 x 16, two products",
    "8 x 16, one product",
    "16 x 16",
    "granules that start no row",
    "a 16-bit parameter in two rows",
    "zero points of the lanes",
    "zero points advance",
    "zero points wrap",
)
RAW_BINS = (
    "bytes",
    "16-bit halves",
    "whole granule rows",
    "one plane of a row",
    "a 16-bit half in two rows",
)


def cover(coverage: Coverage, fields: dict[str, Any], done: bool, written: bool) -> None:
    used = sum(limit > 0 for limit in fields["main_limit"])
    coverage.hit(f"main loops used: {used}", when=used < 4)
    shorter = fields["main_alternate_limit"] < fields["main_limit"][0]
    coverage.hit("main alternate limit", when=fields["main_alternate_loop"] and shorter)
    _cover_sums(coverage, fields)
    iterations = len(slow.main_elements(fields))
    coverage.hit("parameters wrap", when=len(walk(fields, "parameter_read")) < iterations)
    coverage.hit("watcher", when=any(fields["watcher_valid"]))
    coverage.hit("held back", when=not done)
    coverage.hit("held back after some results", when=not done and written)
    _cover_output(coverage, fields)


def _cover_sums(coverage: Coverage, fields: dict[str, Any]) -> None:
    in_memory = fields["partial_sum_read"] == 1
    coverage.hit("sums in wide memory" if in_memory else "sums in the accumulator")
    elements, ends = slow.main_elements(fields), slow.run_ends(fields)
    starts = [True, *ends[:-1]]
    again = [
        start and not slow.reduction_edges(fields, element.index)[0]
        for start, element in zip(starts, elements, strict=True)
    ]
    coverage.hit("sums read back from wide memory", when=in_memory and any(again))
    results = slow.output_lanes(fields)
    coverage.hit("several results", when=len(results) > 1)
    blocks = {slow.lanes(fields, element.index) for element in elements}
    coverage.hit("last block of lanes", when=fields["last_block_lanes"] + 1 in blocks)
    coverage.hit("other block of lanes", when=len(blocks) == 2)
    coverage.hit("all 64 lanes", when=64 in results)
    coverage.hit("one lane", when=1 in results)
    coverage.hit("lanes not a multiple of 4", when=any(lanes % 4 for lanes in results))


def _cover_output(coverage: Coverage, fields: dict[str, Any]) -> None:
    function = fields["function"]
    raw = np.isinf(fields["high_clip"])
    wide = function >> 2
    if raw:
        coverage.hit("raw 16-bit output" if wide else "raw output")
    else:
        coverage.hit("16-bit output" if wide else "8-bit output")
    coverage.hit("table", when=function & 1)
    coverage.hit("range reduction", when=function >> 1 & 1)
    coverage.hit("16-bit table output", when=function & 5 == 5)
    coverage.hit("symmetric function", when=fields["symmetric_function"])
    coverage.hit("odd function", when=fields["odd_function"])
    coverage.hit("bias of the lane" if fields["apply_bias"] else "immediate bias")
    coverage.hit("scale of the lane", when=fields["use_scales"])


def cover_operands(coverage: Coverage, fields: dict[str, Any]) -> None:
    kind = f"{8 << fields['activation_16bit']} x {8 << fields['parameter_16bit']}"
    number = {1: "one product", 2: "two products", 4: "four products"}[slow.products(fields)]
    coverage.hit(kind if kind == "16 x 16" else f"{kind}, {number}")
    granules = [element.address for element in walk(fields, "parameter_read")]
    coverage.hit("granules that start no row", when=any(granule % 4 for granule in granules))
    in_two_rows = fields["parameter_16bit"] and any(granule % 4 == 3 for granule in granules)
    coverage.hit("a 16-bit parameter in two rows", when=in_two_rows)
    if not fields["load_parameter_zero_point"]:
        return
    coverage.hit("zero points of the lanes")
    depth = fields["output_block_loop"]
    blocks = sum(depth in element.ends for element in slow.main_elements(fields))
    rows = 1
    if fields["zero_point_stride"]:
        span = fields["zero_point_limit"] - fields["zero_point_base"]
        rows = span // fields["zero_point_stride"] + 1
    coverage.hit("zero points advance", when=rows > 1 and blocks > 1)
    coverage.hit("zero points wrap", when=1 < rows < blocks)


def run_both(
    operation: str, fields: dict[str, Any], table: dict[str, Any], flags: dict[int, int]
) -> tuple[bool, bool, int]:
    """Run engine and slow model; return (ended, wrote results, half of the scales)."""
    done, written = tensor_unit.run_both(operation, (fields, table, flags))
    flag = slow.SCALE_FLAG
    watchers = [w for w in Watchers(fields).watchers if w["flag"] == flag][:1]
    half = (watchers[0]["expected"] - 1) % 2 if watchers else 0
    return done, written, half


def test_multiply_accumulate() -> None:
    """Results, sums in wide memory and flags agree on random instructions of every kind."""
    coverage = Coverage("tensor unit", MAC_BINS)

    @constrained_random(300)
    @given(cases(slow.MAC))
    def check(case: Case) -> None:
        fields, table, flags = case
        done, written, half = run_both(slow.MAC, fields, table, flags)
        cover(coverage, fields, done, written)
        cover_operands(coverage, fields)
        coverage.hit("scales from the second half", when=fields["use_scales"] and half)

    coverage.close(check)


def _check_raw(operation: str, bins: tuple[str, ...]) -> None:
    coverage = Coverage(operation, bins)

    @constrained_random(120)
    @given(cases(operation))
    def check(case: Case) -> None:
        fields, table, flags = case
        run_both(operation, fields, table, flags)
        coverage.hit("16-bit halves" if fields["parameter_16bit"] else "bytes")
        granules = [element.address for element in walk(fields, "parameter_read")]
        aligned = any(granule % 4 == 0 for granule in granules)
        disabled = fields["mac_disable"]
        coverage.hit("whole granule rows", when=aligned and not disabled)
        coverage.hit("one plane where a row begins", when=aligned and disabled)
        coverage.hit("one plane of a row", when=any(granule % 4 for granule in granules))
        in_two_rows = fields["parameter_16bit"] and any(granule % 4 == 3 for granule in granules)
        coverage.hit("a 16-bit half in two rows", when=in_two_rows)

    coverage.close(check)


def test_maximum_over_raw_parameters() -> None:
    _check_raw(slow.MAXIMUM, (*RAW_BINS, "one plane where a row begins"))


def test_sum_over_raw_parameters() -> None:
    _check_raw(slow.SUM, RAW_BINS)
