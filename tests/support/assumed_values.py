"""Random instructions with assumed values (docs/isa.md, "Values by grade"), for the model alone."""

from __future__ import annotations

from typing import Any

from darwinn_sim import chip
from hypothesis import strategies as st
from slow_model import tensor_unit as slow
from stimulus import near_edges
from tensor_stimulus import instructions, tables, writes
from unit_bench import sufficient
from unit_cases.tensor_unit import Case

_HALF_PAIRS = (0, 3, 12, 15)


@st.composite
def tensor_cases(draw: Any, operation: str) -> Case:
    """A tensor instruction of which multipliers, sums, function and symmetry are any at all."""
    fields = dict(draw(instructions(operation)))
    wide = fields["parameter_16bit"]
    if operation == slow.MAC:
        wide += fields["activation_16bit"]
    allowed = {0: range(16), 1: _HALF_PAIRS, 2: (0, 15)}[wide]
    fields["mac_disable"] = draw(st.sampled_from(list(allowed)))
    fields["partial_sum_read"] = draw(st.integers(0, 3))
    fields["symmetric_function"] = draw(st.integers(0, 1))
    fields["odd_function"] = draw(st.integers(0, 1))
    if not fields["function"] & 1:
        fields["function"] |= draw(st.sampled_from([0, 2]))
    elif fields["function"] & 2:
        fields |= {"low_clip": -4096.0, "high_clip": draw(st.sampled_from([0.5, 4096.0]))}
    if operation != slow.MAC:
        fields["load_parameter_zero_point"] = draw(st.integers(0, 1))
    fields["hiccup"] = draw(near_edges(0, (1 << 18) - 1))
    fields["partial_sum_wrap"] = draw(st.integers(0, 1))
    # Results leave at other places than before.
    fields |= writes(draw, fields)
    iterations = len(slow.main_elements(fields))
    return fields, draw(tables()), sufficient(fields, iterations, chip.TILE_FLAGS)
