"""Coefficient tables equal a slow scalar evaluation, and are recognised by what they compute."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from darwinn_formats.darwinn import Executable, InstructionBitstream
from darwinn_reference.tflite.call import CompilerChoices
from darwinn_reference.tflite.coefficient_tables import CoefficientTable, compiler_choices
from darwinn_sim.isa.codec import encode_operations
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from one_operator import Array, f32, tensor

moderate = st.floats(-8, 8, width=32)


@given(
    hnp.arrays("f4", (8, 5), elements=moderate),
    hnp.arrays("f4", 7, elements=moderate),
    hnp.arrays("f4", 9, elements=st.floats(-16, 16, width=32)),
    st.booleans(),
    st.booleans(),
)
def test_a_table_is_a_polynomial_in_each_segment(
    coefficients: Array, bounds: Array, x: Array, symmetric: bool, odd: bool
) -> None:
    table = CoefficientTable(coefficients, bounds, f32(-6), f32(7), symmetric, odd)
    for argument, found in zip(x, table(x), strict=True):
        clipped = min(max(argument, f32(-6)), f32(7))
        y = f32(abs(clipped)) if symmetric else clipped
        c0, c1, c2, c3, c4 = coefficients[sum(bound <= y for bound in bounds)]
        value = f32(f32(f32(f32(c4 * y) + c3) * y) + c2)
        value = f32(f32(f32(value * y) + c1) * y) + c0
        assert found == (-value if odd and clipped < 0 else value)


def executable(*loads: tuple[float, float, int, bool]) -> Executable:
    """A program that loads tables and uses each: (amplitude, clip, function bits, odd)."""
    operations: list[tuple[str, dict[str, int | list[int]]]] = []
    for amplitude, clip, function, odd in loads:
        operations.append(("CoefficientTable", quadratic_tables(amplitude, clip)))
        user = {"function": function, "symmetric_function": int(odd), "odd_function": int(odd)}
        operations.append(("TensorMac", {**user, "high_clip": bits(clip), "low_clip": bits(-clip)}))
    stream = encode_operations(operations)
    return Executable(instruction_bitstreams=(InstructionBitstream(bitstream=stream),))


def quadratic_tables(amplitude: float, clip: float) -> dict[str, int | list[int]]:
    """tanh between 0 and ``clip`` by a parabola through three points of each of eight segments."""
    edges = np.linspace(0, clip, 9)
    coefficients: list[int] = []
    for low, high in itertools.pairwise(edges):
        x = np.array([low, (low + high) / 2, high])
        fit = np.polynomial.polynomial.polyfit(x, amplitude * np.tanh(x), 2)
        coefficients += [bits(float(each)) for each in (*fit, 0, 0)]
    return {"coefficient": coefficients, "lower_bound": [bits(float(e)) for e in edges[1:-1]]}


def bits(value: float) -> int:
    return int(np.array([value], np.float32).view(np.uint32)[0])


def test_functions_are_recognised_by_what_they_compute() -> None:
    choices = compiler_choices(executable((127.5, 4.0, 1, True), (99.0, 4.0, 5, True)))
    assert set(choices.functions) == {"tanh"}
    found = [each.amplitude for each in choices.functions["tanh"]]
    assert found == pytest.approx([127.5, 99], rel=1e-3)
    output = tensor(0, (), "i1", 1 / 99)
    x = np.array([-1.0, 0.5], np.float32)
    assert choices.levels("tanh", x, output).tolist() == [round(99 * math.tanh(v)) for v in x]


def test_other_functions_and_range_reduction_are_left_alone() -> None:
    """An even parabola is no sigmoid and no tanh; range reduction is part of the softmax."""
    assert not compiler_choices(executable((10.0, 4.0, 1, False))).functions
    assert not compiler_choices(executable((10.0, 4.0, 3, True))).functions


def test_without_a_table_of_the_amplitude_the_function_is_ideal() -> None:
    choices = compiler_choices(executable((127.5, 4.0, 1, True)))
    output = tensor(0, (), "i1", 1 / 50)
    x = np.array([0.3], np.float32)
    assert choices.levels("tanh", x, output) == CompilerChoices().levels("tanh", x, output)
