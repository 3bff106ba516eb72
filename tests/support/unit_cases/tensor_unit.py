"""Tensor unit: random valid instructions with flags that let them pass, or hold them back."""

from __future__ import annotations

from typing import Any

from darwinn_sim import chip
from hypothesis import strategies as st
from slow_model import tensor_unit as slow
from stimulus import NO_AIMS, Aims, near_edges
from tensor_stimulus import instructions, interpolations, tables
from unit_bench import sufficient

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
