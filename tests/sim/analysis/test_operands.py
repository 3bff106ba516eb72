"""Which activations belong to the first and the last group of results, against loops over them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from darwinn_sim.analysis import operands
from darwinn_sim.isa.builder import build, frame, traversal
from darwinn_sim.machine.lowering import lower
from darwinn_sim.units import marks
from darwinn_sim.units.tables import Tables
from hypothesis import given
from hypothesis import strategies as st
from slow_model import tensor_unit as slow
from slow_model.traversal import walk
from stimulus import constrained_random
from tensor_stimulus import instructions


def group_addresses(tables: Tables, *, last: bool) -> list[int]:
    """What the group takes; ``in_groups`` has to say the same of the plan's iterations."""
    iterations = operands.group_iterations(tables, 0, last=last)
    bit = marks.LAST_GROUP if last else marks.FIRST_GROUP
    groups = operands.groups(tables)
    assert groups[0][last].tolist() == iterations.tolist()
    assert np.flatnonzero(operands.in_groups(tables, groups) & bit).tolist() == iterations.tolist()
    addresses: list[int] = tables.tensor_plan.operand[iterations].tolist()
    if not last:
        assert operands.group_operands(tables, 0).tolist() == addresses
    return addresses


@constrained_random(60)
@given(instructions("TensorMac"))
def test_operands_of_the_first_and_the_last_result(fields: dict[str, Any]) -> None:
    """Of all iterations that are reduced to it; with an alternate limit, of a run of sums."""
    tables = lower((frame(build([("TensorMac", fields)])),)).tables
    addresses = [element.address for element in walk(fields, "narrow_read")]
    limits, elements = fields["main_limit"], slow.main_elements(fields)
    kept = [k for k in range(8) if not fields["reduction_loops"] >> k & 1]
    for last in (False, True):
        if fields["main_alternate_loop"]:
            ends = [0, *(k + 1 for k, end in enumerate(slow.run_ends(fields)) if end)]
            expected = addresses[ends[-2] :] if last else addresses[: ends[1]]
        else:
            wanted = [limits[k] if last else 0 for k in kept]
            expected = [
                address
                for address, element in zip(addresses, elements, strict=True)
                if [element.index[k] for k in kept] == wanted
            ]
        assert group_addresses(tables, last=last) == expected


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_operands_of_few_sums_with_a_shorter_last_one(runs: int) -> None:
    """Two iterations of each sum, but one of the last."""
    loops, alternate = [(2, 3), (runs, 50)], (1, 1)
    fields = {
        **traversal("TensorMac", "narrow_read", 100, loops, alternate=alternate),
        **traversal("TensorMac", "partial_sum", 0, [(2, 0), (runs, 4)], alternate=alternate),
        "main_limit": [1, runs - 1, *[0] * 6],
        "main_alternate_loop": 1,
        "reduction_loops": 1,
        "partial_sum_read": 3,
    }
    tables = lower((frame(build([("TensorMac", fields)])),)).tables
    first, last = (group_addresses(tables, last=each) for each in (False, True))
    assert first == ([100] if runs == 1 else [100, 103])
    assert last == [100 + 50 * (runs - 1)]


@given(st.lists(st.integers(-3, 9)))
def test_distinct_values_come_once_and_in_order(values: list[int]) -> None:
    assert operands.distinct(np.array(values, np.int32)).tolist() == sorted(set(values))


@constrained_random(40)
@given(st.integers(0, 20_000), st.integers(1, 100_000), st.integers(-(1 << 31), 1 << 30))
def test_distinct_values_of_few_and_of_many(count: int, spread: int, least: int) -> None:
    """Sorted where they are few or far apart, and marked otherwise."""
    random = np.random.default_rng(count)
    values = (least + random.integers(0, spread, count)).astype(np.int32)
    found = operands.distinct(values)
    assert found.dtype == values.dtype
    assert found.tolist() == sorted(set(values.tolist()))
