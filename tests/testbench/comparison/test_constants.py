"""Constants of two programs are compared directly, whatever their names and orders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from darwinn_testbench.comparison.constant import Constant
from darwinn_testbench.comparison.constants import differing
from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.compiler import (
    Convolution,
    bef_file,
    executorch_program,
    random_convolution,
    uncompiled,
)
from darwinn_testbench.report import Verdict

NETWORK = random_convolution(6, 7, 4, 9, 1, signed=True)
RANDOM = np.random.default_rng(0)
WEIGHTS = RANDOM.integers(-127, 128, (8, 3, 3, 4)).astype(np.int8)


def changed(data: Any, *, count: int = 1, by: int = 6) -> Any:
    """The same but for some elements."""
    copy = np.array(data)
    copy.reshape(-1)[:count] = np.where(copy.reshape(-1)[:count] > 0, -by, by)
    return copy


def found(left: Any, right: Any) -> list[tuple[int, int]]:
    pairs = differing([Constant("a", left)], [Constant("b", right)])
    return [(each.differing, each.elements) for each in pairs]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 3, 1, 2), (1, 2, 3, 0)])
def test_a_changed_element_is_found_in_another_order_of_dimensions(order: Any) -> None:
    turned = np.ascontiguousarray(WEIGHTS.transpose(order))
    assert found(turned, WEIGHTS) == []
    (one,) = found(changed(turned), WEIGHTS)
    assert one == (1, WEIGHTS.size)


def test_constants_of_other_networks_are_not_compared() -> None:
    other = RANDOM.integers(-127, 128, WEIGHTS.shape).astype(np.int8)
    assert found(other, WEIGHTS) == []
    assert found(changed(WEIGHTS, count=100), WEIGHTS) == []
    assert found(WEIGHTS.astype(np.float32), WEIGHTS) == []
    assert found(np.zeros(64, np.int8), changed(np.zeros(64, np.int8))) == []


def test_the_counterpart_is_told_from_equal_constants_beside_it() -> None:
    other = RANDOM.integers(-127, 128, WEIGHTS.shape).astype(np.int8)
    left = [Constant("other", other), Constant("ours", changed(WEIGHTS))]
    right = [Constant("theirs", WEIGHTS), Constant("same", other)]
    (difference,) = differing(left, right)
    assert (difference.where, difference.name) == ("constant ours", "theirs")


def planted(network: Convolution) -> Convolution:
    """The network with one weight that is one step off."""
    weights = network.weights.copy()
    weights[0, 0, 0, 0] += 1 if weights[0, 0, 0, 0] < 0 else -1
    return replace(network, weights=weights)


@pytest.mark.parametrize("other", ["pte", "tflite", "bef"])
def test_a_weight_that_differs_is_a_mismatch_though_outputs_agree(other: str) -> None:
    made = {"pte": executorch_program, "tflite": uncompiled, "bef": bef_file}
    natives = "darwinn_testbench.compiler.natives" if other == "bef" else None
    reference = made["pte" if other == "tflite" else "tflite"](NETWORK)

    def judged(network: Convolution) -> Any:
        return verify(made[other](network), reference=reference, runs=2, natives=natives)

    same, report = judged(NETWORK), judged(planted(NETWORK))
    assert (same.verdict, same.figures["divergences"]) == (Verdict.PASS, [])
    assert {row.verdict for row in report.rows} == {Verdict.PASS}
    assert report.verdict is Verdict.MISMATCH
    (difference,) = report.figures["divergences"]
    assert (difference.differing, difference.elements) == (1, NETWORK.weights.size)
    assert difference.max_difference == 1
