"""Two programs that differ in what they compute: none of their bytes have the same number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from averaging_program import (
    INPUT_BYTES,
    OUTPUT_BYTES,
    RESULT_BYTE,
    RESULT_ROW,
    ROW,
    TILE,
    Operation,
    changed,
    executable,
    line,
    operations,
    watch,
)
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.kernel.field import random_elements
from numbered_runs import Traces

Program = list[Operation]
_LAST_ROW = 30
_ONE_WORD, _ONE_BYTE = 12, 14
"""``mac_disable`` of a unit that takes the first value of a word alone."""


def traces() -> Traces:
    random = np.random.default_rng(0)
    images = [random.bytes(INPUT_BYTES) for _ in range(4)]
    images += [bytes(k // 2 for k in range(INPUT_BYTES)), b"\xff" * INPUT_BYTES]
    return Traces([{"image": each} for each in images], {"image": random_elements(random, 256)})


def contradictions(*programs: Program) -> int:
    """Bytes of the programs that have a number of others, and other values."""
    known = traces()
    found = [known.contradictions(Accelerator(), executable(each)) for each in programs]
    assert None not in found
    return sum(len(each or ()) for each in found)


def stepped(first: dict[str, Any], second: dict[str, Any], *, name: str = "TensorSum") -> Program:
    """The averages with other fields, of whose results something else is made in a second step."""
    program = changed("TensorSum", **first)
    names = [operation for operation, _ in program]
    at = names.index("NarrowToWide") + 1
    step, pack = dict(operations()[at - 2][1]), dict(program[at - 1][1])
    program[at - 2] = (name, program[at - 2][1])
    step |= {"parameter_read_base": 4 * RESULT_ROW, **watch(6, 13, 1, None)}
    step |= line("narrow_write", 8, OUTPUT_BYTES // 4, RESULT_BYTE + 1024, 4)
    step |= second
    pack |= line("narrow_read", 6, OUTPUT_BYTES // 4, RESULT_BYTE // 4 + 256)
    pack |= {"wide_write_base": _LAST_ROW, **watch(6, 0, 2)}
    program[at:at] = [("TensorSum", step), ("NarrowToWide", pack)]
    sends = program[[operation for operation, _ in program].index("RingProducer")][1]
    sends |= {"wide_read_base": _LAST_ROW, **watch(3, 13, 2)}
    return program


HALF = {**line("narrow_write", 8, OUTPUT_BYTES // 4, RESULT_BYTE, 4), "last_block_lanes": 31}
"""Results of two bytes, of half the lanes."""
WHOLE_WORDS: dict[str, Any] = {"function": 4, "high_clip": 65535.0, "output_scale": 1.0} | HALF
HALVES = {"parameter_16bit": 1}


def test_the_same_program_is_the_same() -> None:
    assert contradictions(operations(), operations()) == 0


def test_a_lower_bound_beside_no_upper_one() -> None:
    raw = {"output_scale": 1.0, "high_clip": float("inf")}
    bounds = (float("-inf"), 0.0, 300.0)
    assert contradictions(*(changed("TensorSum", low_clip=each, **raw) for each in bounds)) == 0


def test_a_sum_that_16_bits_do_not_hold_is_no_value_of_16_bits() -> None:
    """Two values of 16 bits are added up and saturate; a second step scales the result."""
    scaled: dict[str, Any] = {"output_scale": 2.0**-10, "high_clip": 255.0}
    direct = changed("TensorSum", **HALVES, **scaled)
    both = stepped(HALVES | WHOLE_WORDS, HALVES | scaled | {"mac_disable": _ONE_WORD})
    assert contradictions(direct, both) == 0


@pytest.mark.parametrize("name", ["TensorMax", "TensorSum"])
def test_a_value_of_16_bits_does_not_come_out_as_a_byte(name: str) -> None:
    one = HALVES | {"mac_disable": _ONE_WORD}
    scaled = {"output_scale": 0.25, "high_clip": 255.0}
    direct = changed("TensorSum", **one, **scaled)
    both = stepped(
        one | {"output_scale": 1.0, "high_clip": 255.0},
        scaled | {"mac_disable": _ONE_BYTE},
        name=name,
    )
    assert contradictions(direct, both) == 0


def test_constants_of_wide_memory_are_no_zeros() -> None:
    """Bytes that nothing writes go to the host as they are."""
    known = traces()
    accelerator = Accelerator()
    accelerator.preload_wide(TILE, ROW + 1, bytes(range(256)))
    program = changed("RingProducer", wide_read_base=ROW + 1)
    assert known.contradictions(accelerator, executable(program)) == []
    assert known.known.keys() == set(range(OUTPUT_BYTES))


def test_bytes_that_nothing_writes_are_not_the_same() -> None:
    """Nor do their weighted sums cancel."""
    program = operations()
    at = [operation for operation, _ in program].index("NarrowToWide")
    pack = program[at][1] | line("narrow_read", 6, OUTPUT_BYTES // 4, RESULT_BYTE // 4 + 512)
    assert (
        contradictions(operations(), [*program[:at], ("NarrowToWide", pack), *program[at + 1 :]])
        == 0
    )


def test_a_table_of_an_earlier_program_is_not_known() -> None:
    """Which one it is depends on what ran before."""
    found = traces().contradictions(Accelerator(), executable(changed("TensorSum", function=1)))
    assert found is None


def test_a_scale_that_nothing_writes_is_not_known() -> None:
    """Although the sum is a constant."""
    fields = {"use_scales": 1, "mac_disable": 15, "immediate_bias": 100, "output_scale": 1.0}
    program = changed("TensorSum", **fields)
    assert traces().contradictions(Accelerator(), executable(program)) is None
