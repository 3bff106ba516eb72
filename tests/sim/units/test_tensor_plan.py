"""A plan without addresses says the same of when something happens."""

from __future__ import annotations

from typing import Any

import numpy as np
from darwinn_sim.units import tensor_plan
from hypothesis import given
from hypothesis import strategies as st
from slow_model import tensor_unit as slow
from stimulus import constrained_random
from unit_bench import Bench
from unit_cases.tensor_unit import cases

OPERATIONS = (slow.MAC, slow.MAXIMUM, slow.SUM, slow.INTERPOLATE)


@st.composite
def programs(draw: Any) -> list[tuple[str, dict[str, Any]]]:
    """Some instructions, of which two may walk alike."""
    operations = [
        (operation, draw(cases(operation))[0] | {"tiles": 1})
        for operation in draw(st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=3))
    ]
    return operations + operations[: draw(st.integers(0, 1))]


def test_a_plan_without_addresses_has_the_same_segments_and_flags() -> None:
    @constrained_random(200)
    @given(programs())
    def check(operations: list[tuple[str, dict[str, Any]]]) -> None:
        tensor = Bench(operations).program.tables.tensor
        whole = tensor_plan.plan(tensor)
        lean = tensor_plan.plan(tensor, addresses=False)
        assert (lean.place == whole.place).all()
        np.testing.assert_array_equal(lean.write_flag, whole.write_flag)
        for name in set(whole.segment.dtype.names or ()) - {"late"}:
            np.testing.assert_array_equal(lean.segment[name], whole.segment[name], name)
        assert not lean.segment["late"].any()
        for addresses in (lean.operand, lean.granule, lean.write_address):
            assert len(addresses) == 0

    check()
