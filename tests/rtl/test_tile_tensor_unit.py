"""Tensor unit in RTL: random instructions of every operation against the model."""

from __future__ import annotations

from typing import Any

from darwinn_sim import chip
from hypothesis import given
from hypothesis import strategies as st
from slow_model import tensor_unit as slow
from stimulus import constrained_random, near_edges
from tensor_stimulus import instructions, interpolations, scale_bias, tables
from tile_runs import TilePair
from unit_bench import sufficient


@st.composite
def cases(draw: Any, operation: str) -> tuple[dict[str, Any], dict[str, Any], dict[int, int]]:
    """An instruction, a coefficient table, and values of flags."""
    drawn = interpolations() if operation == slow.INTERPOLATE else instructions(operation)
    fields = draw(drawn)
    iterations = len(slow.main_elements(fields))
    flags = sufficient(fields, iterations, chip.TILE_FLAGS)
    if flags and draw(st.booleans()):
        flags[draw(st.sampled_from(sorted(flags)))] -= draw(near_edges(1, iterations))
    return fields, draw(tables()), flags


def _check(operation: str, examples: int) -> None:
    @constrained_random(examples, 1000)
    @given(cases(operation))
    def check(case: tuple[dict[str, Any], dict[str, Any], dict[int, int]]) -> None:
        fields, table, flags = case
        pair = TilePair([("CoefficientTable", table), (operation, fields)])
        pair.record["scale_bias"] = scale_bias(7)
        for flag, value in flags.items():
            pair.record["flags"][flag] = value
        pair.run()

    check()


def test_multiply_accumulate() -> None:
    _check(slow.MAC, 50)


def test_maximum() -> None:
    _check(slow.MAXIMUM, 20)


def test_sum() -> None:
    _check(slow.SUM, 20)


def test_interpolation() -> None:
    _check(slow.INTERPOLATE, 20)
