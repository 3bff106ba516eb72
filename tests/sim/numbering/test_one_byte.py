"""A sum of one byte stays one while it is put aside, and what is the same for each value of the
byte is a constant."""

from __future__ import annotations

from typing import Any

import numpy as np
from chained_programs import AGAIN, FRESH, LAST, MAC, WHOLE, Chain, Step
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.kernel.field import CONSTANTS, random_elements
from darwinn_sim.numbering import run
from darwinn_testbench.compiler.assembler import walk
from numbered_runs import Ignored
from tensor_programs import INPUT_BYTES, TILE

_LANES = 4
_SUM_ROW = 1000
_ONE_HOT, _NOTHING, _PLUS = 0, 1, 2
"""Rows of wide memory: of each lane one weight is 1; all weights are 0. With a zero point of 1 a
byte of each lane is added, and by the next row subtracted."""
_TABLE: dict[str, Any] = {
    "coefficient": [0.0] * 40,
    "lower_bound": [float(k) for k in range(7)],
    "degree": 3,
}


class _Chain(Chain):
    """A chain whose weights are known."""

    def chip(self) -> Accelerator:
        """Lane k takes byte k."""
        accelerator = super().chip()
        one_hot = np.zeros((chip.ROW_WORDS, chip.WORD_BYTES), np.uint8)
        one_hot[np.arange(_LANES), np.arange(_LANES)] = 1
        rows = [one_hot, np.zeros_like(one_hot), 1 + one_hot, 1 - one_hot]
        accelerator.preload_wide(TILE, _ONE_HOT, b"".join(row.tobytes() for row in rows))
        return accelerator


def _step(row: int, mode: int, **fields: Any) -> Step:
    """A product of four bytes of the input with a row of weights."""
    whole = {
        "main_limit": [0] * 8,
        "reduction_loops": 1,
        "output_block_loop": 2,
        "block_lanes": _LANES - 1,
        "last_block_lanes": _LANES - 1,
        "low_clip": 0.0,
        "high_clip": 255.0,
        "output_scale": 1.0,
        **walk(MAC, "narrow_read", 0, [(1, 4)]),
        **walk(MAC, "parameter_read", 4 * row, [(1, 4)]),
    }
    return Step(whole | {"function": 0} | fields, mode, _SUM_ROW, 1, None, 0, packs=False)


def _results(chain: Chain) -> tuple[list[int], list[int]]:
    """Numbers of all results of a chain, and of its input."""
    numbers = random_elements(np.random.default_rng(0), INPUT_BYTES)
    numbered = run.number_program(chain.chip(), chain.executable(), {"image": numbers}, Ignored())
    words = sum(step.words for step in chain.steps)
    return numbered.outputs["results"].tolist()[: chip.WORD_BYTES * words], numbers.tolist()


def test_a_sum_that_is_put_aside_twice_is_still_of_its_byte() -> None:
    steps = [_step(_ONE_HOT, FRESH), _step(_NOTHING, AGAIN), _step(_NOTHING, LAST)]
    results, numbers = _results(_Chain(steps, [_TABLE], 0))
    assert results[-_LANES:] == numbers[:_LANES]


def test_a_sum_that_another_byte_is_added_to_is_no_byte() -> None:
    steps = [_step(_ONE_HOT, FRESH), _step(_ONE_HOT, LAST, narrow_read_base=_LANES)]
    results, numbers = _results(_Chain(steps, [_TABLE], 0))
    assert not set(results[-_LANES:]) & set(numbers)


def test_a_table_that_is_constant_gives_a_constant() -> None:
    table = _TABLE | {"coefficient": [7.0, 0.0, 0.0, 0.0, 0.0] * 8}
    tabled = _step(_ONE_HOT, WHOLE, function=1, low_clip=-8.0, high_clip=8.0)
    results, _ = _results(_Chain([tabled], [table], 0))
    assert set(results[:_LANES]) < set(range(CONSTANTS))


def test_the_same_byte_twice_is_one_byte() -> None:
    """As an average over equal elements takes it; the factor undoes the weight."""
    again = {"main_limit": [1] + [0] * 7, "output_scale": 0.5}
    step = _step(_ONE_HOT, WHOLE, **again, **walk(MAC, "narrow_read", 0, [(2, 0)]))
    results, numbers = _results(_Chain([step], [_TABLE], 0))
    assert results[:_LANES] == numbers[:_LANES]


def test_bytes_that_cancel_leave_a_constant() -> None:
    again = {"main_limit": [1] + [0] * 7, "parameter_zero_point": 1, "output_zero_point": 7}
    reads = {
        **walk(MAC, "narrow_read", 0, [(2, 0)]),
        **walk(MAC, "parameter_read", 4 * _PLUS, [(2, 4)]),
    }
    results, _ = _results(_Chain([_step(_PLUS, WHOLE, **again, **reads)], [_TABLE], 0))
    assert results[:_LANES] == [7] * _LANES
