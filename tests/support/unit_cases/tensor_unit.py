"""Tensor unit: random valid instructions with flags that let them pass, or hold them back."""

from __future__ import annotations

from typing import Any

import numpy as np
from darwinn_sim import chip
from hypothesis import strategies as st
from slow_model import tensor_unit as slow
from stimulus import NO_AIMS, Aims, Walk, near_edges, nothing
from tensor_stimulus import instructions, interpolations, scale_bias, tables
from unit_bench import Bench, sufficient

TRAVERSALS = ("parameter_read",)
"""The traversal that tests aim at; the others follow the main loops or the results."""

Case = tuple[dict[str, Any], dict[str, Any], dict[int, int]]
"""An instruction, a coefficient table, and values of flags."""


@st.composite
def cases(draw: Any, operation: str, aims: Aims = NO_AIMS) -> Case:
    """A case of one operation."""
    if operation == slow.INTERPOLATE:
        fields = draw(interpolations())
    else:
        fields = draw(instructions(operation, aims))
    iterations = len(slow.main_elements(fields))
    flags = sufficient(fields, iterations, chip.TILE_FLAGS)
    if flags and draw(st.booleans()):
        flags[draw(st.sampled_from(sorted(flags)))] -= draw(near_edges(1, iterations))
    return fields, draw(tables()), flags


def operations(name: str) -> st.SearchStrategy[tuple[str, dict[str, Any], dict[int, int]]]:
    """The instruction of a case of one operation, and the values of flags."""
    return cases(name).map(lambda case: (name, case[0], case[2]))


def run_both(operation: str, case: Case) -> tuple[bool, bool]:
    """Run engine and slow model, which must agree; return (ended, wrote results)."""
    fields, table, flags = case
    loading = ("CoefficientTable", table | {"tiles": 1})
    bench = Bench([loading, (operation, fields | {"tiles": 1})])
    bench.tiles["scale_bias"][0] = scale_bias(7)
    for flag, value in flags.items():
        bench.tiles[0]["flags"][flag] = value
    tile = bench.tile(0)
    tile.coefficient = [np.float32(value) for value in table["coefficient"]]
    tile.lower_bound = [np.float32(value) for value in table["lower_bound"]]
    before = bytes(tile.narrow)
    done = slow.run(tile, operation, fields)
    bench.run()
    assert bench.fault is None
    bench.assert_tiles([tile])
    assert (bench.waiting == ()) == done
    return done, before != bytes(tile.narrow)


def in_place(octets: int, positions: int, *, wide: bool = False) -> dict[str, Any]:
    """Each of some bytes, four at a time, plus 1, where it is; the same ``positions`` times.

    As programs have it on tiles with one position beside those with two. Row 0 of wide memory has a
    1 for each lane in the byte of its own. ``wide``: results of 16 bits.
    """
    ones, zeros = (1,) * 6, (0,) * 6
    words = 2 if wide else 1
    fields = nothing(slow.MAC) | {
        "main_limit": [positions - 1, octets // 4 - 1, 0, 0, 0, 0, 0, 0],
        "partial_sum_read": 3,
        "block_lanes": 3,
        "last_block_lanes": 3,
        "output_scale": 1.0,
        "high_clip": 255.0,
        "immediate_bias": 1,
        "function": 4 if wide else 0,
    }
    walks = {
        "narrow_read": Walk((positions, octets // 4, *ones), (0, 4 * words, *zeros), base=64),
        "partial_sum": Walk((positions, octets // 4, *ones), (4, 4 * positions, *zeros)),
        "narrow_write": Walk(
            (words, positions, octets // 4, *ones[1:]), (4, 0, 4 * words, *zeros[1:]), base=64
        ),
    }
    for name, walk in walks.items():
        fields |= walk.fields(slow.MAC, name)
    return fields


SATURATING = (
    (0, -(1 << 31), 0),
    (-255, -(1 << 31), 0),
    (255, -(1 << 31), 0),
    (255, (1 << 31) - 1, 255),
    (255, (1 << 31) - 255, 255),
    (-255, (1 << 31) - 1, 255),
)
"""A sum, a bias, and what comes out of 2^-24 of both together around 128."""


def biased(total: int, bias: int) -> dict[str, Any]:
    """Four sums of ``total`` with a bias: byte 64, which is 0, less 255 or nothing, times a 1 or
    -1 of each lane of row 0, which is 1."""
    return nothing(slow.MAC) | {
        "partial_sum_read": 3,
        "mac_disable": 14,
        "activation_zero_point": abs(total),
        "parameter_zero_point": 2 if total > 0 else 0,
        "narrow_read_base": 64,
        "narrow_write_base": 128,
        "block_lanes": 3,
        "last_block_lanes": 3,
        "output_scale": 2.0**-24,
        "low_clip": -1024.0,
        "high_clip": 1024.0,
        "output_zero_point": 128,
        "immediate_bias": bias,
    }
