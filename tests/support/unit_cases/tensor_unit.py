"""Tensor unit: random valid instructions with flags that let them pass, or hold them back."""

from __future__ import annotations

from typing import Any

import numpy as np
from darwinn_sim import chip
from hypothesis import strategies as st
from slow_model import tensor_unit as slow
from stimulus import NO_AIMS, Aims, near_edges
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
